/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fake net itself: it does as real devices do. */
#include "fake_net.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "child.h"
#include "net/cq.h"
#include "net/mr.h"
#include "net/qp.h"
#include "net/srq.h"
#include "net/sys.h"

enum { LOC_LEN = 1, LOC_PROT = 4, REM_INV_REQ = 9, REM_OP = 11 };
enum { ALL = VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE };

static const uint64_t second = 1000000000;

/* One end of a connection. */
struct side {
	struct verve_net_device *dev;
	struct verve_net_channel *channel;
	struct verve_net_cq *send_cq, *recv_cq;
	struct verve_net_srq *srq;
	struct verve_net_qp *qp;
	struct verve_net_mr mr;
	char memory[8192];
};

static struct side a, b;
static struct fake_net_config config;

static void open_qp(struct side *side, uint32_t psn)
{
	struct verve_net_qp_attr attr = {
		.send_cq = side->send_cq,
		.recv_cq = side->recv_cq,
		.srq = side->srq,
		.send_wr = 8,
		.send_sge = 4,
		.inline_size = 128,
	};

	cr_assert_eq(verve_net_qp_open(side->dev, &attr, psn, &side->qp), 0);
}

static void open_side(struct side *side, const char *device, uint32_t psn)
{
	memset(side, 0, sizeof(*side));
	cr_assert_eq(verve_net_device_open(device, 1, NULL, &side->dev), 0);
	cr_assert_eq(verve_net_channel_open(side->dev, &side->channel), 0);
	cr_assert_eq(verve_net_cq_open(side->dev, 16, side->channel, 0, &side->send_cq), 0);
	cr_assert_eq(verve_net_cq_open(side->dev, 16, side->channel, 0, &side->recv_cq), 0);
	cr_assert_eq(verve_net_srq_open(side->dev, 16, &side->srq), 0);
	cr_assert_eq(
		verve_net_mr_reg(side->dev, side->memory, sizeof(side->memory), ALL, &side->mr), 0);
	open_qp(side, psn);
}

static void close_side(struct side *side)
{
	if (side->qp)
		verve_net_qp_close(side->qp);
	verve_net_mr_dereg(&side->mr);
	verve_net_srq_close(side->srq);
	verve_net_cq_close(side->recv_cq);
	verve_net_cq_close(side->send_cq);
	verve_net_channel_close(side->channel);
	verve_net_device_close(side->dev);
}

static int connect_to(struct side *from, const struct side *to)
{
	struct verve_net_qp_addr addr;

	verve_net_qp_addr(to->qp, &addr);
	return verve_net_qp_connect(from->qp, &addr, 1000);
}

static void setup(void)
{
	fake_net_config_default(&config);
	fake_net_start(&config);
	open_side(&a, "fake0", 100);
	open_side(&b, "fake1", 0xffffff);
}

static void setup_connected(void)
{
	setup();
	cr_assert_eq(connect_to(&a, &b), 0);
	cr_assert_eq(connect_to(&b, &a), 0);
}

static void teardown(void)
{
	char open[128];

	close_side(&a);
	close_side(&b);
	cr_expect_eq(fake_net_leaks(open, sizeof(open)), 0, "still open: %s", open);
}

TestSuite(fake_net, .init = setup_connected, .fini = teardown);
TestSuite(fake_net_connect, .init = setup, .fini = teardown);

/* The offsets are into each side's memory. */
static int post(struct side *side, enum verve_net_wr_op op, size_t offset, uint32_t len,
		uint32_t flags, uint64_t wr_id)
{
	struct side *other = side == &a ? &b : &a;
	struct verve_net_sge sge = {(uintptr_t)side->memory + offset, len, side->mr.lkey};
	struct verve_net_wr wr = {
		.wr_id = wr_id,
		.op = op,
		.flags = flags,
		.imm = 77,
		.rkey = other->mr.rkey,
		.remote_addr = (uintptr_t)other->memory + offset,
		.sge = &sge,
		.sge_count = 1,
	};

	return verve_net_qp_post(side->qp, &wr);
}

static void post_recv(struct side *side, size_t offset, uint32_t len, uint64_t wr_id)
{
	struct verve_net_recv recv = {
		.wr_id = wr_id,
		.sge = {(uintptr_t)side->memory + offset, len, side->mr.lkey},
	};
	uint32_t posted;

	cr_assert_eq(verve_net_srq_post(side->srq, &recv, 1, &posted), 0);
}

/* The next completion, which must come within 10 simulated seconds. */
static struct verve_net_wc next_wc(struct verve_net_cq *cq)
{
	uint64_t end = fake_net_time() + 10 * second;
	struct verve_net_wc wc = {0};

	while (verve_net_cq_poll(cq, 1, &wc) != 1) {
		cr_assert(fake_net_time() < end && fake_net_run_next(), "no completion comes");
	}
	return wc;
}

static void expect_none(struct verve_net_cq *cq)
{
	struct verve_net_wc wc;

	cr_expect_eq(verve_net_cq_poll(cq, 1, &wc), 0);
}

Test(fake_net, send_arrives_and_then_completes)
{
	struct verve_net_wc wc;

	strcpy(a.memory, "hello");
	post_recv(&b, 100, 50, 7);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 6, VERVE_NET_SIGNALED, 9), 0);
	expect_none(b.recv_cq);
	wc = next_wc(b.recv_cq);
	cr_expect_eq(wc.wr_id, 7);
	cr_expect_eq(wc.status, VERVE_NET_WC_OK);
	cr_expect_eq(wc.opcode, VERVE_NET_WC_RECV);
	cr_expect_eq(wc.byte_len, 6);
	cr_expect_eq(wc.qp_num, verve_net_qp_num(b.qp));
	cr_expect_str_eq(b.memory + 100, "hello");
	expect_none(a.send_cq);
	wc = next_wc(a.send_cq);
	cr_expect_eq(wc.wr_id, 9);
	cr_expect_eq(wc.opcode, VERVE_NET_WC_SEND);
}

Test(fake_net, source_is_read_as_late_as_delivery_but_inline_at_once)
{
	post_recv(&b, 100, 50, 1);
	post_recv(&b, 200, 50, 2);
	a.memory[0] = 'x';
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 1, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 1, VERVE_NET_INLINE, 2), 0);
	a.memory[0] = 'y';
	next_wc(b.recv_cq);
	next_wc(b.recv_cq);
	cr_expect_eq(b.memory[100], 'y');
	cr_expect_eq(b.memory[200], 'x');
}

Test(fake_net, unsignaled_requests_complete_silently_in_order)
{
	for (int i = 0; i < 4; i++)
		post_recv(&b, 100, 50, i);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, i == 3 ? VERVE_NET_SIGNALED : 0, i), 0);
	for (uint64_t i = 0; i < 4; i++)
		cr_expect_eq(next_wc(b.recv_cq).wr_id, i);
	cr_expect_eq(next_wc(a.send_cq).wr_id, 3);
	expect_none(a.send_cq);
}

Test(fake_net, send_queue_has_room_again_only_after_poll)
{
	struct fake_net_stats stats;

	for (int i = 0; i < 8; i++) {
		post_recv(&b, 100, 50, i);
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, i == 3 ? VERVE_NET_SIGNALED : 0, i), 0);
	}
	fake_net_advance(second);
	cr_expect_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 9), -FI_ENOMEM);
	fake_net_stats(&stats);
	cr_expect_eq(stats.full, 1);
	cr_expect_eq(next_wc(a.send_cq).wr_id, 3);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, i), 0);
	cr_expect_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 9), -FI_ENOMEM);
}

Test(fake_net, write_and_read_move_memory)
{
	strcpy(a.memory, "to b");
	strcpy(b.memory + 1000, "from b");
	cr_assert_eq(post(&a, VERVE_NET_WRITE, 0, 5, VERVE_NET_SIGNALED, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_READ, 1000, 7, VERVE_NET_SIGNALED, 2), 0);
	cr_expect_eq(next_wc(a.send_cq).wr_id, 1);
	cr_expect_str_eq(b.memory, "to b");
	cr_expect_eq(next_wc(a.send_cq).wr_id, 2);
	cr_expect_str_eq(a.memory + 1000, "from b");
	expect_none(b.recv_cq);
}

Test(fake_net, write_with_immediate_takes_a_receive)
{
	struct verve_net_wc wc;

	post_recv(&b, 4000, 16, 5);
	strcpy(a.memory, "imm");
	cr_assert_eq(post(&a, VERVE_NET_WRITE_IMM, 0, 4, 0, 1), 0);
	wc = next_wc(b.recv_cq);
	cr_expect_eq(wc.opcode, VERVE_NET_WC_RECV_IMM);
	cr_expect_eq(wc.imm, 77);
	cr_expect_eq(wc.wr_id, 5);
	cr_expect_eq(wc.byte_len, 4);
	cr_expect_str_eq(b.memory, "imm");
}

Test(fake_net, a_write_may_pass_a_read)
{
	int passed = 0;

	for (int i = 0; i < 200; i++) {
		memset(b.memory, 'o', 8);
		memset(a.memory, 'n', 8);
		/* The read goes to memory that the write does not come from. */
		{
			struct verve_net_sge sge = {(uintptr_t)a.memory + 64, 8, a.mr.lkey};
			struct verve_net_wr wr = {
				.op = VERVE_NET_READ,
				.rkey = b.mr.rkey,
				.sge = &sge,
				.sge_count = 1,
				.remote_addr = (uintptr_t)b.memory,
			};

			cr_assert_eq(verve_net_qp_post(a.qp, &wr), 0);
		}
		cr_assert_eq(post(&a, VERVE_NET_WRITE, 0, 8, VERVE_NET_SIGNALED, 1), 0);
		next_wc(a.send_cq);
		passed += a.memory[64] == 'n';
	}
	cr_expect_gt(passed, 0);
}

Test(fake_net, empty_receive_queue_delays_and_loses_nothing)
{
	struct fake_net_stats stats;

	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, VERVE_NET_SIGNALED, 1), 0);
	fake_net_advance(10 * second);
	expect_none(a.send_cq);
	post_recv(&b, 100, 50, 3);
	cr_expect_eq(next_wc(b.recv_cq).wr_id, 3);
	cr_expect_eq(next_wc(a.send_cq).status, VERVE_NET_WC_OK);
	fake_net_stats(&stats);
	cr_expect_gt(stats.rnr, 0);
}

/* The error of the first, and a flush of the second. */
static void expect_failure(struct side *side, uint32_t status)
{
	struct verve_net_wc wc = next_wc(side->send_cq);

	cr_expect_eq(wc.status, status);
	cr_expect_eq(wc.wr_id, 1);
	wc = next_wc(side->send_cq);
	cr_expect_eq(wc.status, VERVE_NET_WC_FLUSHED);
	cr_expect_eq(wc.wr_id, 2);
}

Test(fake_net, too_long_message_fails_on_both_sides)
{
	post_recv(&b, 100, 7, 3);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 2), 0);
	cr_expect_eq(next_wc(b.recv_cq).status, LOC_LEN);
	expect_failure(&a, REM_INV_REQ);
	cr_expect_eq(post(&b, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_expect_eq(next_wc(b.send_cq).status, VERVE_NET_WC_FLUSHED);
}

Test(fake_net, deregistered_receive_buffer_fails_on_both_sides)
{
	post_recv(&b, 100, 50, 3);
	verve_net_mr_dereg(&b.mr);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 2), 0);
	cr_expect_eq(next_wc(b.recv_cq).status, LOC_PROT);
	expect_failure(&a, REM_OP);
	cr_assert_eq(verve_net_mr_reg(b.dev, b.memory, sizeof(b.memory), ALL, &b.mr), 0);
}

Test(fake_net, bad_remote_key_breaks_both_queue_pairs)
{
	uint32_t good = b.mr.rkey;
	struct verve_net_fault fault;

	b.mr.rkey = b.mr.lkey;
	cr_assert_eq(post(&a, VERVE_NET_WRITE, 0, 8, 0, 1), 0);
	b.mr.rkey = good;
	cr_assert_eq(post(&a, VERVE_NET_WRITE, 0, 8, 0, 2), 0);
	expect_failure(&a, VERVE_NET_WC_REMOTE_ACCESS);
	cr_assert_eq(post(&b, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_expect_eq(next_wc(b.send_cq).status, VERVE_NET_WC_FLUSHED);
	cr_expect_eq(verve_net_device_async_next(b.dev, &fault), 0);
	cr_expect_eq(verve_net_device_async_next(b.dev, &fault), -FI_EAGAIN);
}

Test(fake_net, remote_range_and_rights_are_checked)
{
	verve_net_mr_dereg(&b.mr);
	cr_assert_eq(verve_net_mr_reg(b.dev, b.memory, 100, VERVE_NET_REMOTE_READ, &b.mr), 0);
	cr_assert_eq(post(&a, VERVE_NET_READ, 92, 8, VERVE_NET_SIGNALED, 1), 0);
	cr_expect_eq(next_wc(a.send_cq).status, VERVE_NET_WC_OK);
	cr_assert_eq(post(&a, VERVE_NET_WRITE, 0, 0, VERVE_NET_SIGNALED, 1), 0);
	cr_expect_eq(next_wc(a.send_cq).status, VERVE_NET_WC_OK, "no bytes need no rights");
	cr_assert_eq(post(&a, VERVE_NET_READ, 93, 8, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 2), 0);
	expect_failure(&a, VERVE_NET_WC_REMOTE_ACCESS);
}

Test(fake_net, local_key_is_checked_until_the_end)
{
	post_recv(&b, 100, 50, 3);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 2), 0);
	verve_net_mr_dereg(&a.mr);
	expect_failure(&a, LOC_PROT);
	cr_assert_eq(verve_net_mr_reg(a.dev, a.memory, sizeof(a.memory), ALL, &a.mr), 0);
}

Test(fake_net, what_is_ahead_of_a_bad_request_still_completes)
{
	uint32_t good = a.mr.lkey;

	for (int i = 0; i < 3; i++) {
		post_recv(&b, 100, 50, i);
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, VERVE_NET_SIGNALED, 7), 0);
	}
	a.mr.lkey = a.mr.rkey;
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	a.mr.lkey = good;
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 2), 0);
	for (int i = 0; i < 3; i++) {
		struct verve_net_wc wc = next_wc(a.send_cq);

		cr_expect_eq(wc.wr_id, 7);
		cr_expect_eq(wc.status, VERVE_NET_WC_OK);
	}
	expect_failure(&a, LOC_PROT);
}

/*
 * An error flushes requests that are outstanding. An unsignaled request that is done already has no
 * completion.
 */
Test(fake_net, error_state_does_not_flush_what_is_done)
{
	for (int i = 0; i < 3; i++) {
		post_recv(&b, 100, 50, i);
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, i), 0);
	}
	fake_net_advance(second);
	verve_net_qp_error(a.qp);
	fake_net_advance(second);
	expect_none(a.send_cq);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 9), 0);
	cr_expect_eq(next_wc(a.send_cq).wr_id, 9);
}

Test(fake_net, silent_peer_exceeds_the_retries)
{
	uint64_t start = fake_net_time();

	verve_net_qp_close(b.qp);
	b.qp = NULL;
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 2), 0);
	expect_failure(&a, VERVE_NET_WC_RETRY_EXCEEDED);
	cr_expect(fake_net_time() - start >= second && fake_net_time() - start < 2 * second);
}

Test(fake_net, short_link_failure_is_survived)
{
	post_recv(&b, 100, 50, 3);
	fake_net_link(1, false);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, VERVE_NET_SIGNALED, 1), 0);
	fake_net_advance(second / 2);
	expect_none(b.recv_cq);
	fake_net_link(1, true);
	cr_expect_eq(next_wc(b.recv_cq).wr_id, 3);
	cr_expect_eq(next_wc(a.send_cq).status, VERVE_NET_WC_OK);
}

Test(fake_net, killed_host_is_silent)
{
	fake_net_host_kill(1);
	cr_assert_eq(post(&a, VERVE_NET_READ, 0, 8, 0, 1), 0);
	cr_assert_eq(post(&a, VERVE_NET_READ, 0, 8, 0, 2), 0);
	expect_failure(&a, VERVE_NET_WC_RETRY_EXCEEDED);
}

Test(fake_net, error_state_flushes_everything)
{
	for (int i = 1; i <= 2; i++)
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, i), 0);
	verve_net_qp_error(a.qp);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 3), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		struct verve_net_wc wc = next_wc(a.send_cq);

		cr_expect_eq(wc.wr_id, i);
		cr_expect_eq(wc.status, VERVE_NET_WC_FLUSHED);
	}
}

Test(fake_net, armed_queue_wakes_once)
{
	struct pollfd fd = {.fd = verve_net_channel_fd(b.channel), .events = POLLIN};

	for (int i = 0; i < 3; i++) {
		post_recv(&b, 100, 50, i);
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, i), 0);
	}
	cr_assert_eq(verve_net_cq_arm(b.recv_cq), 0);
	cr_expect_eq(poll(&fd, 1, 0), 0);
	fake_net_advance(second);
	cr_expect_eq(poll(&fd, 1, 0), 1);
	verve_net_channel_drain(b.channel);
	/* Completions that are in the queue already do not wake anybody. */
	cr_assert_eq(verve_net_cq_arm(b.recv_cq), 0);
	cr_expect_eq(poll(&fd, 1, 0), 0);
}

/* In a child, which is to be ended by the fake net. */
static void expect_abort(void (*fn)(void))
{
	pid_t child = child_fork_to_abort();

	if (!child) {
		fn();
		_exit(0);
	}
	cr_expect(child_has_aborted(child));
}

static void overrun(void)
{
	for (int i = 0; i < 17; i++) {
		post_recv(&b, 100, 50, i);
		cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, VERVE_NET_SIGNALED, i), 0);
		next_wc(a.send_cq);
	}
}

static void close_used(void)
{
	verve_net_cq_close(a.send_cq);
}

Test(fake_net, misuse_aborts)
{
	expect_abort(overrun);
	expect_abort(close_used);
}

Test(fake_net_connect, request_waits_for_the_peer_to_connect)
{
	post_recv(&b, 100, 50, 3);
	cr_assert_eq(connect_to(&a, &b), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, VERVE_NET_SIGNALED, 1), 0);
	fake_net_advance(second / 2);
	expect_none(b.recv_cq);
	cr_assert_eq(connect_to(&b, &a), 0);
	cr_expect_eq(next_wc(b.recv_cq).wr_id, 3);
	cr_expect_eq(next_wc(a.send_cq).status, VERVE_NET_WC_OK);
}

Test(fake_net_connect, wrong_psn_is_silence)
{
	struct verve_net_qp_addr addr;

	post_recv(&b, 100, 50, 3);
	cr_assert_eq(connect_to(&b, &a), 0);
	verve_net_qp_close(a.qp);
	open_qp(&a, 5);
	verve_net_qp_addr(b.qp, &addr);
	cr_assert_eq(verve_net_qp_connect(a.qp, &addr, 1000), 0);
	cr_assert_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), 0);
	cr_expect_eq(next_wc(a.send_cq).status, VERVE_NET_WC_RETRY_EXCEEDED);
	expect_none(b.recv_cq);
}

Test(fake_net_connect, nonsense_is_refused)
{
	struct verve_net_qp_addr good, bad;

	verve_net_qp_addr(b.qp, &good);
	cr_expect_eq(post(&a, VERVE_NET_SEND, 0, 8, 0, 1), -FI_EINVAL);
	bad = good;
	bad.gid.raw[15] = 99;
	cr_expect_eq(verve_net_qp_connect(a.qp, &bad, 1000), -FI_EINVAL);
	bad = good;
	bad.psn = 1 << 24;
	cr_expect_eq(verve_net_qp_connect(a.qp, &bad, 1000), -FI_EINVAL);
	cr_expect_eq(verve_net_qp_connect(a.qp, &good, 1000), 0);
	cr_expect_eq(verve_net_qp_connect(a.qp, &good, 1000), -FI_EINVAL, "connected already");
}
