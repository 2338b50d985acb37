/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "td.h"

#include <errno.h>
#include <stdlib.h>

#include "conf.h"
#include "log.h"

struct ibv_td *shmv_alloc_td(struct ibv_context *ib, struct ibv_td_init_attr *init)
{
	struct shmv_td *td;

	if (!shmv_conf.td || init->comp_mask)
		return shmv_fail(EOPNOTSUPP);
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ib.context = ib;
	return &td->ib;
}

int shmv_dealloc_td(struct ibv_td *ib)
{
	if (shmv_load32(&((struct shmv_td *)ib)->refs))
		return EBUSY;
	free(ib);
	return 0;
}

void shmv_td_broken(void)
{
	shmv_log("two threads post to queue pairs of one thread domain at the same time");
	abort();
}
