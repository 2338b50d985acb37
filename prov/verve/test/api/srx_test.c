/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive context: which messages its receives take, where receives complete, and the order
 * of closing.
 */
#include "fixture.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <string.h>

enum { LONG = 50000, RECEIVERS = 2, SENDERS = 2 };

struct end {
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t addr; /* address in av */
};

static struct fixture fix;
static struct fid_av *av;
static struct fid_ep *srx;
static struct end receiver[RECEIVERS], sender[SENDERS];
static char to[4][LONG];

static void setup(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};

	fixture_init(&fix, FI_VERSION(1, 17));
	fix.info->rx_attr->caps |= FI_DIRECTED_RECV;
	fixture_open_domain(&fix);
	cr_assert_eq(fi_av_open(fix.domain, &attr, &av, NULL), 0);
	cr_assert_eq(fi_srx_context(fix.domain, fix.info->rx_attr, &srx, &fix), 0);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&srx->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
	fixture_fini(&fix);
}

TestSuite(srx, .init = setup, .fini = teardown);

static void open_end(struct end *end, struct fid_ep *shared)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct sockaddr_in name;
	size_t len = sizeof(name);

	fix.info->ep_attr->rx_ctx_cnt = shared ? FI_SHARED_CONTEXT : 1;
	cr_assert_eq(fi_cq_open(fix.domain, &attr, &end->cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &end->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	if (shared)
		cr_assert_eq(fi_ep_bind(end->ep, &shared->fid, 0), 0);
	cr_assert_eq(fi_enable(end->ep), 0);
	cr_assert_eq(fi_getname(&end->ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(av, &name, 1, &end->addr, 0, NULL), 1);
}

static void open_all(void)
{
	for (int i = 0; i < RECEIVERS; i++)
		open_end(&receiver[i], srx);
	for (int i = 0; i < SENDERS; i++)
		open_end(&sender[i], NULL);
}

static void close_end(struct end *end)
{
	if (!end->ep)
		return;
	cr_expect_eq(fi_close(&end->ep->fid), 0);
	cr_expect_eq(fi_close(&end->cq->fid), 0);
	end->ep = NULL;
}

static void close_all(void)
{
	for (int i = 0; i < SENDERS; i++)
		close_end(&sender[i]);
	for (int i = 0; i < RECEIVERS; i++)
		close_end(&receiver[i]);
}

static void progress(void)
{
	for (int i = 0; i < SENDERS; i++)
		if (sender[i].ep)
			fi_cq_read(sender[i].cq, NULL, 0);
	for (int i = 0; i < RECEIVERS; i++)
		if (receiver[i].ep)
			fi_cq_read(receiver[i].cq, NULL, 0);
	fake_net_advance(20000);
}

static void settle(void)
{
	for (int i = 0; i < 500; i++)
		progress();
}

/* Takes the next completion of one end. It must come within bounded time. */
static struct fi_cq_tagged_entry await(struct end *end)
{
	struct fi_cq_tagged_entry entry = {0};

	for (int i = 0; i < 5000; i++) {
		ssize_t ret = fi_cq_read(end->cq, &entry, 1);

		if (ret == 1)
			return entry;
		cr_assert_eq(ret, -FI_EAGAIN, "%s", fi_strerror((int)-ret));
		progress();
	}
	cr_assert_fail("no completion");
	return entry;
}

static void pause_sender(void *arg)
{
	(void)arg;
	fi_cq_read(sender[0].cq, NULL, 0);
}

static bool is_empty(struct end *end)
{
	struct fi_cq_tagged_entry entry;

	settle();
	return fi_cq_read(end->cq, &entry, 1) == -FI_EAGAIN;
}

static void post(int buffer, size_t len)
{
	memset(to[buffer], 0, LONG);
	cr_assert_eq(fi_recv(srx, to[buffer], len, NULL, FI_ADDR_UNSPEC, to[buffer]), 0);
}

/* Sends from sender s to receiver r. */
static void send_text(int s, int r, char text, size_t len)
{
	static char from[LONG];

	memset(from, text, len);
	cr_assert_eq(fi_send(sender[s].ep, from, len, NULL, receiver[r].addr, NULL), 0);
	await(&sender[s]);
}

static void start_send(int s, int r, const char *from, size_t len)
{
	cr_assert_eq(fi_send(sender[s].ep, from, len, NULL, receiver[r].addr, NULL), 0);
}

Test(srx, receives_take_what_comes_to_any_endpoint)
{
	struct fi_cq_tagged_entry entry;

	open_all();
	post(0, LONG);
	post(1, LONG);
	send_text(0, 1, 'a', 10);
	entry = await(&receiver[1]);
	cr_expect_eq(entry.op_context, to[0]);
	cr_expect_eq(entry.len, 10);
	cr_expect_eq(to[0][9], 'a');
	send_text(1, 0, 'b', 11);
	entry = await(&receiver[0]);
	cr_expect_eq(entry.op_context, to[1]);
	cr_expect_eq(to[1][10], 'b');
	cr_expect(is_empty(&receiver[0]));
	cr_expect(is_empty(&receiver[1]));
	close_all();
}

Test(srx, long_messages_are_read_over_their_own_connection)
{
	static char from[2][LONG];
	struct fi_cq_tagged_entry entry;

	open_all();
	memset(from[0], 'x', LONG);
	memset(from[1], 'y', LONG);
	/* One message waits for its receive, one receive waits for its message. */
	start_send(0, 0, from[0], LONG);
	settle();
	post(0, LONG);
	post(1, LONG);
	start_send(1, 1, from[1], LONG);
	entry = await(&receiver[0]);
	cr_expect_eq(entry.op_context, to[0]);
	cr_expect_eq(memcmp(to[0], from[0], LONG), 0);
	entry = await(&receiver[1]);
	cr_expect_eq(entry.op_context, to[1]);
	cr_expect_eq(memcmp(to[1], from[1], LONG), 0);
	await(&sender[0]);
	await(&sender[1]);
	close_all();
}

Test(srx, receives_may_be_posted_before_any_endpoint_and_through_one)
{
	post(0, 100);
	open_all();
	cr_assert_eq(fi_recv(receiver[0].ep, to[1], 100, NULL, FI_ADDR_UNSPEC, to[1]), 0);
	send_text(0, 1, 'a', 1);
	cr_expect_eq(await(&receiver[1]).op_context, to[0]);
	send_text(0, 1, 'b', 1);
	cr_expect_eq(await(&receiver[1]).op_context, to[1]);
	close_all();
}

Test(srx, tagged_messages_match_in_order_across_endpoints)
{
	struct fi_cq_tagged_entry entry;

	open_all();
	cr_assert_eq(fi_tsend(sender[0].ep, "a", 1, NULL, receiver[0].addr, 7, NULL), 0);
	settle();
	cr_assert_eq(fi_tsend(sender[1].ep, "b", 1, NULL, receiver[1].addr, 7, NULL), 0);
	settle();
	cr_assert_eq(fi_trecv(srx, to[0], 1, NULL, FI_ADDR_UNSPEC, 7, 0, to[0]), 0);
	entry = await(&receiver[0]);
	cr_expect_eq(entry.tag, 7);
	cr_expect_eq(to[0][0], 'a');
	cr_assert_eq(fi_trecv(srx, to[1], 1, NULL, FI_ADDR_UNSPEC, 0, ~0ull, to[1]), 0);
	await(&receiver[1]);
	cr_expect_eq(to[1][0], 'b');
	await(&sender[0]);
	await(&sender[1]);
	close_all();
}

Test(srx, directed_receives_know_the_sender_at_every_endpoint)
{
	open_all();
	cr_assert_eq(fi_recv(srx, to[0], 10, NULL, sender[1].addr, to[0]), 0);
	cr_assert_eq(fi_recv(srx, to[1], 10, NULL, sender[1].addr, to[1]), 0);
	cr_assert_eq(fi_recv(srx, to[2], 10, NULL, sender[0].addr, to[2]), 0);
	send_text(0, 0, 'a', 1);
	cr_expect_eq(await(&receiver[0]).op_context, to[2]);
	send_text(1, 0, 'b', 1);
	cr_expect_eq(await(&receiver[0]).op_context, to[0]);
	send_text(1, 1, 'c', 1);
	cr_expect_eq(await(&receiver[1]).op_context, to[1]);
	close_all();
}

/* The index of a removed address is given to another sender. */
Test(srx, directed_receives_forget_addresses_that_are_removed)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);
	fi_addr_t addr;

	open_all();
	cr_assert_eq(fi_recv(srx, to[0], 10, NULL, sender[0].addr, to[0]), 0);
	send_text(0, 0, 'a', 1);
	cr_expect_eq(await(&receiver[0]).op_context, to[0]);
	addr = sender[0].addr;
	cr_assert_eq(fi_av_remove(av, &sender[0].addr, 1, 0), 0);
	cr_assert_eq(fi_av_remove(av, &sender[1].addr, 1, 0), 0);
	cr_expect_eq(fi_recv(srx, to[0], 10, NULL, addr, to[0]), -FI_EINVAL);
	cr_assert_eq(fi_getname(&sender[1].ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(av, &name, 1, &sender[1].addr, 0, NULL), 1);
	cr_assert_eq(sender[1].addr, addr);
	cr_assert_eq(fi_recv(srx, to[1], 10, NULL, addr, to[1]), 0);
	send_text(1, 1, 'b', 1);
	cr_expect_eq(await(&receiver[1]).op_context, to[1]);
	close_all();
}

Test(srx, cancelled_receives_complete_once_at_one_endpoint)
{
	struct fi_cq_err_entry error;
	int count = 0;

	open_all();
	post(0, 10);
	cr_expect_eq(fi_cancel(&srx->fid, to[0]), 0);
	cr_expect_eq(fi_cancel(&srx->fid, to[0]), -FI_ENOENT);
	for (int i = 0; i < RECEIVERS; i++) {
		memset(&error, 0, sizeof(error));
		if (fi_cq_readerr(receiver[i].cq, &error, 0) != 1)
			continue;
		cr_expect_eq(error.op_context, to[0]);
		cr_expect_eq(error.err, FI_ECANCELED);
		count++;
	}
	cr_expect_eq(count, 1);
	close_all();
}

Test(srx, counters_bound_late_count_what_ends_at_their_endpoint)
{
	struct fid_cntr *cntr[RECEIVERS];
	uint64_t errors = 0;

	open_all();
	for (int i = 0; i < RECEIVERS; i++) {
		cr_assert_eq(fi_cntr_open(fix.domain, NULL, &cntr[i], NULL), 0);
		cr_assert_eq(fi_ep_bind(receiver[i].ep, &cntr[i]->fid, FI_RECV), 0);
	}
	post(0, 10);
	send_text(0, 0, 'a', 10);
	await(&receiver[0]);
	cr_expect_eq(fi_cntr_read(cntr[0]), 1);
	/* A cancelled receive completes at any one of the endpoints. */
	post(1, 10);
	cr_assert_eq(fi_cancel(&srx->fid, to[1]), 0);
	for (int i = 0; i < RECEIVERS; i++)
		errors += fi_cntr_readerr(cntr[i]);
	cr_expect_eq(errors, 1);
	close_all();
	for (int i = 0; i < RECEIVERS; i++)
		cr_expect_eq(fi_close(&cntr[i]->fid), 0);
}

Test(srx, multi_receive_buffers_are_filled_from_all)
{
	struct iovec iov = {to[0], 100};
	struct fi_msg msg = {.msg_iov = &iov,
			     .iov_count = 1,
			     .addr = FI_ADDR_UNSPEC,
			     .context = to};
	struct fi_cq_tagged_entry entry;
	size_t min = 40;

	cr_assert_eq(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			       sizeof(min)), 0);
	open_all();
	cr_assert_eq(fi_recvmsg(srx, &msg, FI_MULTI_RECV), 0);
	send_text(0, 0, 'a', 30);
	entry = await(&receiver[0]);
	cr_expect_eq(entry.buf, to[0]);
	cr_expect_not(entry.flags & FI_MULTI_RECV);
	send_text(0, 1, 'b', 31);
	entry = await(&receiver[1]);
	cr_expect_eq(entry.buf, to[0] + 30);
	cr_expect(entry.flags & FI_MULTI_RECV);
	cr_expect_eq(to[0][29], 'a');
	cr_expect_eq(to[0][60], 'b');
	close_all();
}

/* Takes the completion of a peek, which may be in any endpoint's queue. */
static struct fi_cq_tagged_entry await_any(void)
{
	struct fi_cq_tagged_entry entry = {0};

	for (int i = 0; i < RECEIVERS; i++)
		if (fi_cq_read(receiver[i].cq, &entry, 1) == 1)
			return entry;
	cr_assert_fail("no completion");
	return entry;
}

Test(srx, peek_claim_and_discard_see_all_endpoints)
{
	struct iovec iov = {to[0], 100};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
				    .ignore = ~0ull, .context = to};

	open_all();
	for (int r = 0; r < RECEIVERS; r++)
		for (unsigned i = 0; i < 2; i++)
			cr_assert_eq(fi_tsend(sender[r].ep, "ab", 2, NULL, receiver[r].addr, i,
					      NULL), 0);
	settle();
	msg.tag = 1;
	msg.ignore = 0;
	for (int r = 0; r < RECEIVERS; r++) {
		cr_assert_eq(fi_trecvmsg(srx, &msg, FI_PEEK | FI_CLAIM), 0);
		cr_expect_eq(await_any().len, 2);
		cr_assert_eq(fi_trecvmsg(srx, &msg, r ? FI_CLAIM | FI_DISCARD : FI_CLAIM), 0);
		cr_expect_eq(await_any().tag, 1);
	}
	msg.tag = 0;
	for (int r = 0; r < RECEIVERS; r++) {
		cr_assert_eq(fi_trecvmsg(srx, &msg, FI_PEEK | FI_DISCARD), 0);
		cr_expect_eq(await_any().tag, 0);
	}
	cr_assert_eq(fi_trecvmsg(srx, &msg, FI_PEEK), 0);
	settle();
	close_all();
}

/* Messages that came to a closed endpoint go with it. The receives stay for the other endpoints. */
Test(srx, a_closed_endpoint_takes_its_messages_along)
{
	static char from[LONG];
	struct iovec iov = {to[3], 100};
	struct fi_msg msg = {.msg_iov = &iov,
			     .iov_count = 1,
			     .addr = FI_ADDR_UNSPEC,
			     .context = to};

	open_all();
	send_text(0, 0, 'a', 100);
	start_send(1, 0, from, LONG);
	settle();
	cr_assert_eq(fi_recvmsg(srx, &msg, FI_PEEK | FI_CLAIM), 0);
	await_any();
	close_end(&receiver[0]);
	post(0, LONG);
	cr_expect(is_empty(&receiver[1]));
	cr_assert_eq(fi_recvmsg(srx, &msg, FI_CLAIM), -FI_EINVAL);
	send_text(0, 1, 'b', 5);
	cr_expect_eq(await(&receiver[1]).op_context, to[0]);
	cr_expect_eq(to[0][4], 'b');
	close_all();
}

/*
 * The receive was posted to the context, which stays open. So the receive completes, at the
 * endpoint that its message came to.
 */
Test(srx, receive_that_a_closing_endpoint_has_taken_completes)
{
	static char from[LONG];
	struct fi_cq_tagged_entry entry;

	open_all();
	post(0, LONG);
	memset(from, 'x', LONG);
	start_send(0, 0, from, LONG);
	for (int i = 0; i < 200 && fi_cancel(&srx->fid, to[0]) == 0; i++) {
		struct fi_cq_err_entry error = {0};

		cr_assert_eq(fi_cq_readerr(receiver[0].cq, &error, 0) +
			     fi_cq_readerr(receiver[1].cq, &error, 0), 1 - FI_EAGAIN);
		post(0, LONG);
		progress();
	}
	fake_net_on_pause(pause_sender, NULL);
	cr_expect_eq(fi_close(&receiver[0].ep->fid), 0);
	fake_net_on_pause(NULL, NULL);
	cr_expect_eq(fi_cq_read(receiver[0].cq, &entry, 1), 1);
	cr_expect_eq(entry.op_context, to[0]);
	cr_expect_eq(to[0][LONG - 1], 'x');
	cr_expect_eq(fi_close(&receiver[0].cq->fid), 0);
	receiver[0].ep = NULL;
	close_all();
}

Test(srx, receives_outlive_all_endpoints)
{
	open_all();
	post(0, 10);
	close_all();
	open_all();
	send_text(0, 0, 'a', 1);
	cr_expect_eq(await(&receiver[0]).op_context, to[0]);
	post(1, 10);
	close_all();
	cr_expect_eq(fi_cancel(&srx->fid, to[1]), 0);
	post(2, 10);
}

Test(srx, endpoints_share_an_address_vector)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fid_av *other;
	struct fid_cq *cq;
	struct fid_ep *ep;

	open_all();
	cr_assert_eq(fi_av_open(fix.domain, &attr, &other, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &cq_attr, &cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &other->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_ep_bind(ep, &srx->fid, 0), 0);
	cr_expect_eq(fi_enable(ep), -FI_EINVAL);
	close_all();
	cr_expect_eq(fi_enable(ep), 0);
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&other->fid), 0);
}

Test(srx, stays_open_while_bound)
{
	struct fid_ep *ep;

	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_expect_eq(fi_ep_bind(ep, &srx->fid, FI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &srx->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(ep, &srx->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&srx->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&fix.domain->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&ep->fid), 0);
}

Test(srx, endpoint_that_was_to_share_must)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fid_cq *cq;
	struct fid_ep *ep;

	fix.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	cr_assert_eq(fi_cq_open(fix.domain, &attr, &cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_expect_eq(fi_enable(ep), -FI_ENORX);
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
}

Test(srx, other_domains_are_refused)
{
	struct fid_domain *other;
	struct fid_ep *ep;

	cr_assert_eq(fi_domain(fix.fabric, fix.info, &other, NULL), 0);
	cr_assert_eq(fi_endpoint(other, fix.info, &ep, NULL), 0);
	cr_expect_eq(fi_ep_bind(ep, &srx->fid, 0), -FI_EDOMAIN);
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&other->fid), 0);
}

Test(srx, only_receives)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	cr_expect_eq(srx->fid.fclass, FI_CLASS_SRX_CTX);
	cr_expect_eq(srx->fid.context, &fix);
	cr_expect_eq(fi_send(srx, "x", 1, NULL, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_tsend(srx, "x", 1, NULL, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_getname(&srx->fid, &name, &len), -FI_ENOSYS);
	cr_expect_eq(fi_ep_bind(srx, &av->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_enable(srx), 0);
	/* Without an endpoint there is no address vector, and no such address. */
	cr_expect_eq(fi_recv(srx, to[0], 1, NULL, 0, NULL), -FI_EINVAL);
}

Test(srx, attributes_that_receives_cannot_have_are_refused)
{
	struct fi_rx_attr attr = {.caps = FI_SEND};
	struct fid_ep *ep;

	cr_expect_eq(fi_srx_context(fix.domain, &attr, &ep, NULL), -FI_EINVAL);
	attr.caps = FI_MSG | FI_RECV;
	attr.op_flags = FI_PEER;
	cr_expect_eq(fi_srx_context(fix.domain, &attr, &ep, NULL), -FI_EINVAL);
	attr.op_flags = FI_COMPLETION;
	attr.iov_limit = 1000;
	cr_expect_eq(fi_srx_context(fix.domain, &attr, &ep, NULL), -FI_EINVAL);
	cr_assert_eq(fi_srx_context(fix.domain, NULL, &ep, NULL), 0);
	/* FI_DIRECTED_RECV was not asked for, so the address does not count. */
	cr_expect_eq(fi_recv(ep, to[0], 1, NULL, 99, NULL), 0);
	cr_expect_eq(fi_close(&ep->fid), 0);
}
