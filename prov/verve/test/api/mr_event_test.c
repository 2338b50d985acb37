/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events: which operations count, in which counters, and whose calls make progress; binding and
 * its errors.
 */
#include "fixture.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "api/cntr.h"

enum { SIZE = 8192, CNTRS = 4 };

struct end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
};

static struct fixture fix;
static struct end initiator, target;
static struct fid_cntr *cntrs[CNTRS];
static struct fid_mr *mrs[2];
static char memory[2][SIZE], local[SIZE];

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
	fixture_open_domain(&fix);
	for (int i = 0; i < CNTRS; i++)
		cr_assert_eq(fi_cntr_open(fix.domain, NULL, &cntrs[i], NULL), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_mr_reg(fix.domain, memory[i], SIZE,
				       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, FI_RMA_EVENT,
				       &mrs[i], NULL),
			     0);
}

static void teardown(void)
{
	for (int i = 0; i < 2; i++)
		if (mrs[i])
			cr_expect_eq(fi_close(&mrs[i]->fid), 0);
	for (int i = 0; i < CNTRS; i++)
		cr_expect_eq(fi_close(&cntrs[i]->fid), 0);
	fixture_fini(&fix);
}

TestSuite(event, .init = setup, .fini = teardown);

static void open_end(struct end *end, uint64_t caps)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	fix.info->caps = FI_MSG | FI_RMA | caps;
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &end->av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &attr, &end->cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &end->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
}

static void enable_both(void)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	cr_assert_eq(fi_enable(target.ep), 0);
	cr_assert_eq(fi_enable(initiator.ep), 0);
	cr_assert_eq(fi_getname(&target.ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(initiator.av, &name, 1, &initiator.peer, 0, NULL), 1);
}

static void open_both(uint64_t target_caps)
{
	open_end(&target, target_caps);
	open_end(&initiator, 0);
	enable_both();
}

static void close_end(struct end *end)
{
	cr_expect_eq(fi_close(&end->ep->fid), 0);
	cr_expect_eq(fi_close(&end->cq->fid), 0);
	cr_expect_eq(fi_close(&end->av->fid), 0);
}

static void close_both(void)
{
	close_end(&initiator);
	close_end(&target);
}

/* Waits for the initiator's completion. The target makes no progress meanwhile. */
static void await_initiator(void)
{
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < 100000; i++) {
		ssize_t ret = fi_cq_read(initiator.cq, &entry, 1);

		if (ret == 1)
			return;
		cr_assert_eq(ret, -FI_EAGAIN);
		fake_net_advance(10000);
	}
	cr_assert_fail("no completion");
}

static void write_region(int i, size_t len)
{
	cr_assert_eq(fi_write(initiator.ep, local, len, NULL, initiator.peer, (uintptr_t)memory[i],
			      fi_mr_key(mrs[i]), NULL),
		     0);
	await_initiator();
}

static void read_region(int i, size_t len)
{
	cr_assert_eq(fi_read(initiator.ep, local, len, NULL, initiator.peer, (uintptr_t)memory[i],
			     fi_mr_key(mrs[i]), NULL),
		     0);
	await_initiator();
}

/* The value of counter i, by the progress of fi_cntr_read on this counter alone. */
static uint64_t value(int i)
{
	uint64_t value = 0;

	for (int turn = 0; turn < 20; turn++) {
		value = fi_cntr_read(cntrs[i]);
		fake_net_advance(100000);
	}
	return value;
}

Test(event, writes_and_reads_count_in_their_regions)
{
	open_both(FI_RMA_EVENT);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[1]->fid, FI_REMOTE_READ), 0);
	cr_assert_eq(fi_mr_bind(mrs[1], &cntrs[2]->fid, FI_REMOTE_WRITE | FI_REMOTE_READ), 0);
	write_region(0, 100);
	cr_expect_eq(value(0), 1);
	write_region(0, SIZE);
	write_region(0, 0);
	cr_expect_eq(value(0), 3);
	cr_expect_eq(value(1), 0);
	read_region(0, SIZE);
	cr_expect_eq(value(1), 1);
	cr_expect_eq(value(2), 0);
	write_region(1, 8);
	read_region(1, 8);
	cr_expect_eq(value(2), 2);
	cr_expect_eq(value(0), 3);
	close_both();
}

Test(event, endpoint_counts_everything)
{
	open_end(&target, FI_RMA_EVENT);
	open_end(&initiator, 0);
	cr_assert_eq(fi_ep_bind(target.ep, &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_assert_eq(fi_ep_bind(target.ep, &cntrs[1]->fid, FI_REMOTE_READ), 0);
	enable_both();
	write_region(0, 5000);
	write_region(1, 5);
	read_region(0, 5000);
	cr_expect_eq(value(0), 2);
	cr_expect_eq(value(1), 1);
	close_both();
}

Test(event, write_data_counts_once_and_completes)
{
	struct fi_cq_tagged_entry entry;

	open_end(&target, FI_RMA_EVENT);
	open_end(&initiator, 0);
	cr_assert_eq(fi_ep_bind(target.ep, &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[1]->fid, FI_REMOTE_WRITE), 0);
	enable_both();
	cr_assert_eq(fi_writedata(initiator.ep, local, 64, NULL, 77, initiator.peer,
				  (uintptr_t)memory[0], fi_mr_key(mrs[0]), NULL),
		     0);
	await_initiator();
	cr_expect_eq(value(0), 1);
	cr_expect_eq(value(1), 1);
	cr_expect_eq(fi_cq_read(target.cq, &entry, 1), 1);
	cr_expect_eq(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	cr_expect_eq(entry.data, 77);
	cr_expect_eq(entry.len, 64);
	cr_expect_eq(fi_cq_read(target.cq, &entry, 1), -FI_EAGAIN);
	close_both();
}

/* An operation on two segments of one region and one of another counts once in each region. */
Test(event, an_operation_counts_once_in_each_region)
{
	struct iovec iov = {local, 300};
	struct fi_rma_iov rma[3];
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = rma, .rma_iov_count = 3};

	open_both(FI_RMA_EVENT);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_assert_eq(fi_mr_bind(mrs[1], &cntrs[1]->fid, FI_REMOTE_WRITE), 0);
	for (int i = 0; i < 3; i++)
		rma[i] = (struct fi_rma_iov){(uintptr_t)memory[i % 2] + 200 * (unsigned)i, 100,
					     fi_mr_key(mrs[i % 2])};
	msg.addr = initiator.peer;
	cr_assert_eq(fi_writemsg(initiator.ep, &msg, FI_COMPLETION), 0);
	await_initiator();
	cr_expect_eq(value(0), 1);
	cr_expect_eq(value(1), 1);
	close_both();
}

Test(event, endpoints_without_the_capability_hear_nothing)
{
	open_both(0);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	write_region(0, 100);
	cr_expect_eq(value(0), 0);
	close_both();
}

Test(event, an_endpoint_may_write_its_own_memory)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	open_end(&initiator, FI_RMA_EVENT);
	cr_assert_eq(fi_enable(initiator.ep), 0);
	cr_assert_eq(fi_getname(&initiator.ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(initiator.av, &name, 1, &initiator.peer, 0, NULL), 1);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	write_region(0, 100);
	cr_expect_eq(value(0), 1);
	close_end(&initiator);
}

Test(event, a_closed_region_counts_no_more)
{
	open_both(FI_RMA_EVENT);
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_assert_eq(fi_mr_bind(mrs[1], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_expect_eq(fi_close(&cntrs[0]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&mrs[0]->fid), 0);
	mrs[0] = NULL;
	write_region(1, 100);
	cr_expect_eq(value(0), 1);
	cr_expect_eq(fi_close(&cntrs[0]->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&mrs[1]->fid), 0);
	mrs[1] = NULL;
	/*
	 * The counter can be closed while the endpoint is open: only the region had bound it to the
	 * endpoint.
	 */
	cr_expect_eq(fi_close(&cntrs[0]->fid), 0);
	cr_assert_eq(fi_cntr_open(fix.domain, NULL, &cntrs[0], NULL), 0);
	close_both();
}

Test(event, the_endpoints_own_counter_outlives_the_regions_use)
{
	open_end(&target, FI_RMA_EVENT);
	open_end(&initiator, 0);
	cr_assert_eq(fi_ep_bind(target.ep, &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	enable_both();
	cr_assert_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	write_region(0, 1);
	cr_expect_eq(value(0), 2);
	cr_expect_eq(fi_close(&mrs[0]->fid), 0);
	mrs[0] = NULL;
	write_region(1, 1);
	cr_expect_eq(value(0), 3);
	close_both();
}

Test(event, binding_errors)
{
	struct fid_domain *other;
	struct fid_cntr *foreign;

	cr_expect_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_WRITE), -FI_EBADFLAGS);
	cr_expect_eq(fi_mr_bind(mrs[0], &cntrs[0]->fid, FI_REMOTE_WRITE), 0);
	cr_expect_eq(fi_mr_bind(mrs[0], &cntrs[1]->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	cr_expect_eq(fi_mr_bind(mrs[0], &cntrs[1]->fid, FI_REMOTE_READ), 0);
	cr_assert_eq(fi_domain(fix.fabric, fix.info, &other, NULL), 0);
	cr_assert_eq(fi_cntr_open(other, NULL, &foreign, NULL), 0);
	cr_expect_eq(fi_mr_bind(mrs[1], &foreign->fid, FI_REMOTE_READ), -FI_EINVAL);
	cr_expect_eq(fi_close(&foreign->fid), 0);
	cr_expect_eq(fi_close(&other->fid), 0);
	cr_expect_eq(fi_mr_enable(mrs[0]), 0);
}
