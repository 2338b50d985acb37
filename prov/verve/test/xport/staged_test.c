/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory that is registered in stages, of messages, reads and writes. */
#include "xport/staged.h"

#include <string.h>

#include "../proto/pair.h"
#include "../support/fake_memory.h"
#include "../support/fake_world.h"
#include "mr/keytab.h"
#include "mr/region.h"
#include "net/mr.h"
#include "proto/cancel.h"
#include "xport/replay.h"

enum { PAGE = 4096, STAGE = 2 * PAGE, ROOM = 40 * PAGE };

static _Alignas(PAGE) char out[ROOM], in[ROOM];
static struct verve_mr_region *theirs; /* all of in, at b */

static void setup(void)
{
	pair_open(out, in, sizeof(out));
	b.mr_cache.crossover.stage = STAGE;
	cr_assert_eq(verve_mr_region_open(b.dev, in, ROOM, VERVE_NET_LOCAL_WRITE |
					  VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_READ, &theirs),
		     0);
}

static void teardown(void)
{
	verve_mr_region_close(theirs);
	pair_close();
}

/* The cache keeps the registration of memory that is used a second time. */
static void setup_kept(void)
{
	fake_net_watch_allow(true);
	setup();
}

TestSuite(staged, .init = setup, .fini = teardown);
TestSuite(staged_kept, .init = setup_kept, .fini = teardown);

/* An operation that has nothing but memory. */
struct holder {
	struct verve_op op;
	struct verve_memory memory;
};

static const struct verve_op_class holder_class = {
	.name = "holder",
	.size = sizeof(struct holder),
	.memory_at = offsetof(struct holder, memory),
};

static struct holder holder_of(void *addr, size_t len)
{
	return (struct holder){.op.cls = &holder_class,
			       .memory = {.iov_count = 1, .iov = {{addr, len}}}};
}

static int stage(struct holder *holder, size_t len, uint64_t offset)
{
	return verve_staged_register(b.xport, &holder->op, len, offset, VERVE_NET_LOCAL_WRITE,
				     true);
}

Test(staged, memory_is_cut_between_pages_into_growing_pieces)
{
	size_t len = ROOM - 300, sum = 0;
	struct holder holder = holder_of(in + 100, len + 50);

	cr_assert_eq(stage(&holder, len, 0), 0);
	cr_assert(holder.memory.staged);
	cr_assert_eq(holder.memory.iov_count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		cr_expect_eq(holder.memory.iov[i].iov_base, in + 100 + sum);
		cr_expect(!i || !((uintptr_t)holder.memory.iov[i].iov_base % PAGE));
		cr_expect(!i || holder.memory.iov[i].iov_len > holder.memory.iov[i - 1].iov_len);
		sum += holder.memory.iov[i].iov_len;
		cr_expect_eq(verve_staged_ready(&holder.memory), sum);
		/* As long as bytes with regions are left, no other piece is registered. */
		cr_assert_eq(stage(&holder, len, sum - 1), 0);
		cr_expect_eq(verve_staged_ready(&holder.memory), sum);
		if (i < 3)
			cr_assert_eq(stage(&holder, len, sum), 0);
	}
	cr_expect_eq(sum, len);
	verve_memory_release(b.xport, &holder.memory);
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
}

/* Few pages that many pieces share: the last ones would be empty. */
Test(staged, no_piece_is_empty)
{
	struct holder holder = holder_of(in + 1, PAGE + 1);

	b.mr_cache.crossover.stage = 1;
	cr_assert_eq(stage(&holder, PAGE + 1, 0), 0);
	cr_expect_eq(holder.memory.iov_count, 2);
	cr_expect_eq(holder.memory.iov[1].iov_len, 2);
	verve_memory_release(b.xport, &holder.memory);
}

static void expect_whole(struct holder *holder, size_t len, bool alone)
{
	struct verve_memory *memory = &holder->memory;

	cr_assert_eq(verve_staged_register(b.xport, &holder->op, len, 0, VERVE_NET_LOCAL_WRITE,
					   alone), 0);
	cr_expect_not(memory->staged);
	for (uint32_t i = 0; i < memory->iov_count; i++)
		cr_expect_not_null(memory->region[i]);
	verve_memory_release(b.xport, memory);
}

Test(staged, short_memory_and_several_pieces_are_registered_at_once)
{
	struct holder holder = holder_of(in, ROOM), pieces = holder_of(in, ROOM / 2);

	expect_whole(&holder, 2 * STAGE - 1, true);
	expect_whole(&holder, ROOM, false);
	pieces.memory.iov[pieces.memory.iov_count++] = (struct iovec){in + ROOM / 2, ROOM / 2};
	expect_whole(&pieces, ROOM, true);
}

Test(staged_kept, memory_that_stays_registered_is_not_cut)
{
	struct holder holder = holder_of(in, ROOM);

	b.mr_cache.crossover.keep = PAGE;
	cr_assert_eq(stage(&holder, ROOM, 0), 0);
	cr_expect(holder.memory.staged, "the first use");
	verve_memory_release(b.xport, &holder.memory);
	holder = holder_of(in, ROOM);
	expect_whole(&holder, ROOM, true);
}

/* a moves len bytes between out and in of b. */
static void move_with(enum verve_rma_kind kind, size_t len, uint32_t flags)
{
	struct verve_wire_segment segment = {(uintptr_t)in, len, theirs->rkey};
	struct iovec iov = {out, len};

	cr_assert_eq(verve_rma(a.xport, kind, &(struct verve_request){
			.iov = &iov,
			.iov_count = 1,
			.addr = node_addr(&a, &b),
			.context = out,
			.data = 77,
			.flags = flags | VERVE_OP_NOTIFY,
			.remote = &segment,
			.remote_count = 1,
		}), 0);
}

static void move(enum verve_rma_kind kind, size_t len)
{
	move_with(kind, len, 0);
}

static void expect_moved(enum verve_rma_kind kind, unsigned seed)
{
	cr_expect_eq(expect_comp(&a.tx_queue).len, ROOM);
	cr_expect(pattern_holds(kind == VERVE_RMA_WRITE ? in : out, ROOM, seed));
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
}

static void prepare_move(enum verve_rma_kind kind, unsigned seed)
{
	bool write = kind == VERVE_RMA_WRITE;

	a.mr_cache.crossover.stage = STAGE;
	memset(write ? in : out, 0, ROOM);
	pattern_fill(write ? out : in, ROOM, seed);
}

/* Pages that are not pinned cost nothing to register. */
Test(staged, memory_of_on_demand_paging_is_not_cut)
{
	struct holder holder = holder_of(in, ROOM);

	fake_world.config.limits.odp_rc = true;
	b.mr_cache.odp.on = true;
	cr_assert_eq(stage(&holder, ROOM, 0), 0);
	cr_expect_not(holder.memory.staged);
	verve_memory_release(b.xport, &holder.memory);
	b.mr_cache.odp.on = false;
}

/* Another long read is under way, whose bytes move meanwhile. */
Test(staged, second_long_read_is_registered_at_once)
{
	uint64_t before;

	prepare_move(VERVE_RMA_READ, 8);
	a.xport->attr.bulk_read = 100;
	before = nodes_stats().regs;
	move(VERVE_RMA_READ, ROOM / 2);
	move(VERVE_RMA_READ, ROOM / 2);
	cr_expect_eq(nodes_stats().regs - before, 4 + 1);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
}

Test(staged, failed_stage_leaves_those_before_it)
{
	struct holder holder = holder_of(in, ROOM);

	cr_assert_eq(stage(&holder, ROOM, 0), 0);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_eq(stage(&holder, ROOM, holder.memory.iov[0].iov_len), -FI_ENOMEM);
	cr_expect_eq(verve_staged_ready(&holder.memory), holder.memory.iov[0].iov_len);
	cr_expect_not_null(holder.memory.region[0]);
	verve_memory_release(b.xport, &holder.memory);
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
}

static void post(size_t len, size_t room)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len}), 0);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = room}), 0);
}

static void expect_message(size_t len)
{
	cr_expect_eq(expect_comp(&b.rx_queue).len, len);
	cr_expect(pattern_holds(in, len, 1));
	expect_comp(&a.tx_queue);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
}

/* The sender registers its buffer once, the receiver in so many stages. */
Test(staged, receive_is_registered_in_stages_of_growing_length)
{
	static const struct {
		size_t len, stages;
	} cases[] = {{2 * STAGE - 1, 1}, {2 * STAGE, 2}, {3 * STAGE, 3}, {4 * STAGE, 4}, {ROOM, 4}};

	for (size_t i = 0; i < 5; i++) {
		uint64_t before = nodes_stats().regs;

		memset(in, 0, sizeof(in));
		post(cases[i].len, ROOM);
		nodes_settle();
		expect_message(cases[i].len);
		cr_expect_eq(nodes_stats().regs - before, 1 + cases[i].stages, "%zu bytes",
			     cases[i].len);
	}
}

/* Of five registrations the first is the sender's. */
Test(staged, message_is_pulled_if_a_later_stage_cannot_be_registered)
{
	for (uint64_t nth = 3; nth <= 5; nth++) {
		memset(in, 0, sizeof(in));
		post(0, 0);
		nodes_settle();
		expect_message(0);
		fake_net_fail(FAKE_NET_MR_REG, nth, -FI_ENOMEM);
		post(ROOM, ROOM);
		nodes_settle();
		cr_expect(fake_net_has_failed());
		expect_message(ROOM);
	}
}

/* The same where the link breaks meanwhile. */
Test(staged, link_that_breaks_before_a_message_is_pulled_ends_the_receive)
{
	fake_net_fail(FAKE_NET_MR_REG, 4, -FI_ENOMEM);
	post(ROOM, ROOM);
	while (!fake_net_has_failed()) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&a.proto);
		verve_proto_poll(&b.proto);
	}
	verve_link_break(b.xport, node_link(&b, &a), FI_EIO, 0, "a test");
	nodes_settle();
	expect_error(&b.rx_queue, FI_EIO);
}

Test(staged, reads_and_writes_are_registered_in_stages)
{
	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		uint64_t before = nodes_stats().regs;

		prepare_move(kind, 3 + kind);
		move(kind, ROOM);
		nodes_settle();
		expect_moved(kind, 3 + kind);
		cr_expect_eq(nodes_stats().regs - before, 4);
	}
}

/* The target hears of it once, when all stages are there; also if the last ones are copied. */
Test(staged, remote_data_comes_behind_the_last_stage)
{
	for (uint64_t nth = 0; nth <= 4; nth++) {
		struct verve_comp comp;

		prepare_move(VERVE_RMA_WRITE, 20 + (unsigned)nth);
		fake_net_fail(FAKE_NET_MR_REG, nth, -FI_ENOMEM);
		move_with(VERVE_RMA_WRITE, ROOM, VERVE_OP_DATA);
		while (verve_comp_queue_is_empty(&b.rx_queue)) {
			verve_proto_poll(&a.proto);
			verve_proto_poll(&b.proto);
			cr_assert(fake_net_run_next() || !verve_comp_queue_is_empty(&b.rx_queue));
		}
		comp = expect_comp(&b.rx_queue);
		cr_expect_eq(comp.data, 77);
		cr_expect(pattern_holds(in, ROOM, 20 + (unsigned)nth));
		nodes_settle();
		expect_none(&b.rx_queue);
		expect_moved(VERVE_RMA_WRITE, 20 + (unsigned)nth);
	}
}

/* The bytes of the failed stage, and those behind it, move through a slab, a slab at a time. */
Test(staged, the_rest_is_copied_if_a_later_stage_cannot_be_registered)
{
	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++)
		for (uint64_t nth = 2; nth <= 4; nth++) {
			unsigned seed = 10 * (unsigned)kind + (unsigned)nth;

			prepare_move(kind, seed);
			fake_net_fail(FAKE_NET_MR_REG, nth, -FI_ENOMEM);
			move(kind, ROOM);
			nodes_settle();
			cr_expect(fake_net_has_failed());
			expect_moved(kind, seed);
		}
}

/* Copying would access memory that is not there. The stages before move, and end first. */
Test(staged, other_errors_of_a_later_stage_fail_the_operation)
{
	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++)
		for (uint64_t nth = 1; nth <= 4; nth++) {
			prepare_move(kind, 3);
			fake_net_fail(FAKE_NET_MR_REG, nth, -FI_EFAULT);
			move(kind, ROOM);
			cr_expect_eq(AO_load(&a.mr_cache.regions), nth - 1);
			nodes_settle();
			expect_error(&a.tx_queue, FI_EFAULT);
			cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
		}
}

/* Requests that are repeated on another queue pair take the registered part, not the slab. */
Test(staged, repeated_requests_go_where_they_went)
{
	prepare_move(VERVE_RMA_WRITE, 5);
	fake_net_fail(FAKE_NET_MR_REG, 3, -FI_ENOMEM);
	move(VERVE_RMA_WRITE, ROOM);
	cr_assert(fake_net_has_failed());
	verve_replay_renew(a.xport, node_link(&a, &b));
	node_resume(&a, &b);
	nodes_settle();
	expect_moved(VERVE_RMA_WRITE, 5);
}

/* Two stages have room, and the others when these have ended. */
Test(staged, stages_wait_for_room)
{
	uint32_t limit = a.xport->wr_limit;

	prepare_move(VERVE_RMA_WRITE, 6);
	node_leave_room(&a, 2);
	move(VERVE_RMA_WRITE, ROOM);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 2);
	nodes_settle();
	expect_moved(VERVE_RMA_WRITE, 6);
	a.xport->wr_limit = limit;
}

/* It is cancelled while stages move: it ends, but not before their requests. */
Test(staged, cancelled_operation_waits_for_its_stages)
{
	uint32_t limit = a.xport->wr_limit;

	prepare_move(VERVE_RMA_READ, 7);
	node_leave_room(&a, 2);
	move(VERVE_RMA_READ, ROOM);
	cr_assert_eq(verve_cancel(a.xport, out), 0);
	cr_expect_gt(AO_load(&a.mr_cache.regions), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECANCELED);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	a.xport->wr_limit = limit;
}
