/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fork: asks libibverbs to keep registered memory out of children, where the kernel needs that. */
#include "net/fork.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static void prepare(void)
{
	int ret;

	if (ibv_is_fork_initialized() != IBV_FORK_DISABLED)
		return;
	/* Else libibverbs cannot register a part of a huge page. The user's value holds. */
	setenv("RDMAV_HUGEPAGES_SAFE", "1", 0);
	ret = ibv_fork_init();
	if (ret)
		VERVE_WARN(FABRIC,
			   "this process must not fork: the kernel is older than Linux 5.12, and "
			   "libibverbs cannot keep registered memory out of children (%s): memory "
			   "was registered before; set RDMAV_FORK_SAFE=1\n",
			   strerror(ret));
	else
		VERVE_INFO(FABRIC,
			   "children after fork(2) do not have memory that is registered (the "
			   "kernel is older than Linux 5.12)\n");
}

void verve_net_fork_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
}
