/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fork: libibverbs is asked to help where the kernel needs it, once. It is played here. */
#include "net/fork.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "base/log.h"
#include "net/device.h"

static struct fi_provider provider = {.name = "verve"};
static enum ibv_fork_status status;
static int inits, error;

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return status;
}

int ibv_fork_init(void)
{
	inits++;
	return error;
}

static void prepare(void)
{
	verve_log_provider = &provider;
	verve_net_fork_prepare();
	verve_net_fork_prepare();
}

Test(fork, needs_nothing_where_the_kernel_copies)
{
	status = IBV_FORK_UNNEEDED;
	prepare();
	cr_expect_eq(inits, 0);
}

Test(fork, needs_nothing_where_the_application_has_asked)
{
	status = IBV_FORK_ENABLED;
	prepare();
	cr_expect_eq(inits, 0);
}

Test(fork, asks_for_help_where_the_kernel_is_old)
{
	status = IBV_FORK_DISABLED;
	prepare();
	cr_expect_eq(inits, 1);
}

Test(fork, too_late_is_no_error_of_the_provider)
{
	status = IBV_FORK_DISABLED;
	error = EINVAL;
	prepare();
	cr_expect_eq(inits, 1);
}

/* Nothing can be registered before a device was listed. */
Test(fork, is_prepared_when_devices_are_listed)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	status = IBV_FORK_DISABLED;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	verve_net_port_list_free(list, count);
	cr_expect_eq(inits, 1);
}
