/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* How much inline data queue pairs get, whatever else the device is short of. */
#include "net/qp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "fake_verbs.h"
#include "net/device.h"
#include "net/verbs.h"

static struct fi_provider provider = {.name = "verve"};

/*
 * Inline data. The fake device asks grant, whose result is 0, a positive errno, or SILENT: the
 * device does not say why.
 */

enum {
	WANTED = 256,
	SILENT = -1,
};

static uint32_t device_max; /* bytes of inline data that the device can do */
static unsigned tries, refuse;	/* attempts to make a queue pair; how many are refused */
static int refusal;
static int too_much; /* the result for more than device_max */

static int grant(const struct ibv_qp_init_attr *init)
{
	tries++;
	if (init->cap.max_inline_data > device_max)
		return too_much;
	if (!refuse)
		return 0;
	refuse--;
	return refusal;
}

static struct verve_net_device *dev;
static struct verve_net_cq cq;
static struct verve_net_srq shared;

static void setup(void)
{
	verve_log_provider = &provider;
	fake_verbs_reset();
	fake_verbs.listed = true;
	fake_verbs.create_qp = grant;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	verve_lock_init(&shared.lock, false);
	device_max = WANTED;
	too_much = EINVAL;
	cr_assert_eq(verve_net_device_open("none0", 1, NULL, &dev), 0);
	shared.td.pd = dev->pd;
}

static void teardown(void)
{
	verve_net_device_close(dev);
	verve_lock_fini(&shared.lock);
	fake_verbs_reset();
}

TestSuite(inline_size, .init = setup, .fini = teardown);

/* Opens and closes a queue pair; *size: its inline data. The attempts are counted anew. */
static int try_qp(uint32_t *size)
{
	const struct verve_net_qp_attr attr = {.send_cq = &cq, .recv_cq = &cq, .srq = &shared,
					       .send_wr = 1, .send_sge = 1, .inline_size = WANTED};
	struct verve_net_qp *qp;
	int ret;

	tries = 0;
	errno = EAGAIN; /* of an earlier call */
	ret = verve_net_qp_open(dev, &attr, 1, &qp);
	if (ret)
		return ret;
	*size = verve_net_qp_inline_size(qp);
	verve_net_qp_close(qp);
	return 0;
}

static void expect_qp(uint32_t size, unsigned attempts)
{
	uint32_t granted = UINT32_MAX;

	cr_assert_eq(try_qp(&granted), 0);
	cr_expect_eq(granted, size, "%u bytes", granted);
	cr_expect_eq(tries, attempts, "%u attempts", tries);
}

Test(inline_size, is_looked_for_once)
{
	device_max = 100;
	expect_qp(96, 6); /* 256, 224, 192, 160, 128, 96 */
	expect_qp(96, 1);
}

/* bnxt_re's library returns NULL for more than it can do, and leaves errno alone. */
Test(inline_size, is_looked_for_where_the_device_does_not_say_why)
{
	too_much = SILENT;
	device_max = 100;
	expect_qp(96, 6);
	expect_qp(96, 1);
}

/* The errno of an earlier call is no reason: EAGAIN would make the caller try again and again. */
Test(inline_size, that_is_not_the_reason_of_a_failure)
{
	uint32_t granted;

	refuse = UINT_MAX;
	refusal = SILENT;
	cr_expect_eq(try_qp(&granted), -FI_EIO);
	cr_expect_eq(tries, 1 + WANTED / 32, "%u attempts", tries);
	refuse = 0;
	expect_qp(WANTED, 1);
	refuse = 1;
	cr_expect_eq(try_qp(&granted), -FI_EIO);
	cr_expect_eq(tries, 1, "smaller ones were tried");
}

/* soft-RoCE says EINVAL where it has no queue pair left; meanwhile another one is closed. */
Test(inline_size, that_has_worked_is_not_lowered_by_another_shortage)
{
	uint32_t granted;

	expect_qp(WANTED, 1);
	refuse = 2;
	refusal = EINVAL;
	cr_expect_eq(try_qp(&granted), -FI_ENOSPC);
	cr_expect_eq(tries, 1, "smaller ones were tried");
	refuse = 0;
	expect_qp(WANTED, 1);
}

/* Less inline data may fit into the memory that there is. The next queue pair has all of it. */
Test(inline_size, that_is_small_because_memory_was_short_is_of_one_queue_pair)
{
	refuse = 2;
	refusal = ENOMEM;
	expect_qp(192, 3);
	expect_qp(WANTED, 1);
	refuse = 1;
	expect_qp(224, 2);
	expect_qp(WANTED, 1);
}
