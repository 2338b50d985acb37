/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Bulk reads: how many are under way, and what overtakes the others. */
#include "xport/bulk.h"

#include <string.h>

#include "../proto/pair.h"
#include "base/config.h"
#include "mr/keytab.h"
#include "mr/region.h"
#include "proto/cancel.h"
#include "xport/keepalive.h"

/* The devices have DEPTH reads under way, and of these FULL bulk reads. */
enum { BULK = 100, LONG = 2000, DEPTH = 8, FULL = 6, MANY = 20, WRITES = 300 };

static char out[LONG], in[LONG], local[MANY][LONG], remote[LONG];
static struct verve_mr_region *theirs, *ours;
static struct verve_mr_keytab keytab; /* of b: empty */
static int contexts[MANY + 1];

static void open_nodes(uint32_t depth)
{
	struct verve_xport_attr attr;
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.rd_atomic = depth;
	config.limits.rd_atomic_target = 2 * DEPTH;
	fake_net_start(&config);
	verve_mr_keytab_init(&keytab);
	node_attr(&attr);
	attr.bulk_read = BULK;
	attr.tx_size = WRITES;
	node_open(&a, 0, &attr);
	attr.mr_keytab = &keytab;
	node_open(&b, 1, &attr);
	node_join(&a, &b, NODE_WINDOW);
	nodes_settle();
	cr_assert_eq(verve_mr_region_open(b.dev, remote, LONG,
					  VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_READ, &theirs),
		     0);
	cr_assert_eq(verve_mr_region_open(a.dev, local, sizeof(local), VERVE_NET_LOCAL_WRITE,
					  &ours), 0);
	pattern_fill(remote, LONG, 1);
	pattern_fill(out, LONG, 2);
}

static void setup(void)
{
	open_nodes(DEPTH);
}

static void teardown(void)
{
	verve_mr_region_close(ours);
	verve_mr_region_close(theirs);
	pair_close();
	verve_mr_keytab_fini(&keytab);
}

TestSuite(bulk, .init = setup, .fini = teardown);

/* a accesses the segment, from or to local[i]; the completion has contexts[context]. */
static void start(enum verve_rma_kind kind, int i, const struct verve_wire_segment *segment,
		  struct verve_mr_region *region, int context, uint32_t flags)
{
	struct iovec iov = {local[i], segment->len};
	void *desc = region;

	cr_assert_eq(verve_rma(a.xport, kind, &(struct verve_request) {
			.iov = &iov,
			.desc = &desc,
			.iov_count = 1,
			.addr = node_addr(&a, &b),
			.context = &contexts[context],
			.flags = flags | VERVE_OP_NOTIFY,
			.remote = segment,
			.remote_count = 1,
		}), 0);
}

static struct verve_wire_segment of_remote(size_t offset, size_t len)
{
	return (struct verve_wire_segment){(uintptr_t)remote + offset, len, theirs->rkey};
}

static void rma(enum verve_rma_kind kind, int i, size_t len, uint32_t flags)
{
	struct verve_wire_segment segment = of_remote(0, len);

	start(kind, i, &segment, ours, i, flags);
}

/* An access by a key that b does not know. */
static void rma_unknown(enum verve_rma_kind kind, size_t len)
{
	struct verve_wire_segment unknown = {0, len, VERVE_MR_KEY_EXPORTED | 1};

	start(kind, MANY - 1, &unknown, NULL, MANY, 0);
}

static void read_many(int count)
{
	for (int i = 0; i < count; i++)
		rma(VERVE_RMA_READ, i, LONG, 0);
}

static uint32_t under_way(void)
{
	return node_link(&a, &b)->produced - node_link(&a, &b)->retired;
}

static void send_short(uint32_t flags)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = 1,
						     .flags = flags, .context = &contexts[MANY]}),
		     0);
}

static void expect_reads(int count)
{
	for (int i = 0; i < count; i++)
		cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[i], "in order");
	for (int i = 0; i < count; i++)
		cr_expect(pattern_holds(local[i], LONG, 1));
	cr_expect_eq(node_link(&a, &b)->bulk_reads, 0);
}

/* How many completions come before the error of a key that b does not know. */
static int comps_until_error(void)
{
	struct verve_comp comp;
	int count = 0;

	while (verve_comp_queue_read(&a.tx_queue, &comp, 1) == 1)
		count++;
	expect_error(&a.tx_queue, FI_EACCES);
	return count;
}

Test(bulk, a_quarter_of_the_reads_is_left_for_others)
{
	read_many(MANY);
	cr_expect_eq(under_way(), FULL);
	cr_expect_eq(node_link(&a, &b)->bulk_reads, FULL);
	nodes_settle();
	expect_reads(MANY);
	expect_none(&a.tx_queue);
}

Test(bulk, a_device_with_one_read_has_one)
{
	teardown();
	open_nodes(1);
	read_many(3);
	cr_expect_eq(under_way(), 1);
	nodes_settle();
	expect_reads(3);
}

/* Of a read that is cut, only the last piece tells of its end. */
Test(bulk, pieces_of_one_read_wait_for_each_other)
{
	verve_config.read_size = BULK + 1;
	read_many(3);
	cr_expect_eq(under_way(), FULL);
	send_short(0);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	nodes_settle();
	expect_reads(3);
	verve_config.read_size = SIZE_MAX;
}

Test(bulk, short_requests_overtake)
{
	read_many(MANY - 2);
	send_short(0);
	rma(VERVE_RMA_READ, MANY - 1, BULK, 0);
	pattern_fill(local[MANY - 2], LONG, 1); /* the device may write before it reads */
	rma(VERVE_RMA_WRITE, MANY - 2, LONG, 0);
	cr_expect_eq(under_way(), FULL + 3);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	nodes_settle();
	cr_expect(pattern_holds(local[MANY - 1], BULK, 1));
}

/* A short read steps aside for nobody, so that it does not wait for megabytes. */
Test(bulk, a_short_read_that_waits_for_its_key_is_not_put_behind_long_ones)
{
	read_many(MANY - 1);
	rma_unknown(VERVE_RMA_READ, BULK);
	nodes_settle();
	cr_expect_lt(comps_until_error(), MANY - 1, "it is refused before the last reads leave");
}

/* Only reads may be passed: two writes would change places (FI_ORDER_RMA_WAW). */
Test(bulk, a_write_that_waits_does_not_step_aside)
{
	read_many(FULL);
	rma_unknown(VERVE_RMA_WRITE, LONG);
	rma(VERVE_RMA_WRITE, MANY - 2, LONG, 0);
	cr_expect_eq(under_way(), FULL + 1, "the reads, and the question about the key");
	nodes_settle();
	comps_until_error();
	expect_comp(&a.tx_queue);
}

/* A slab that a waiting read holds is missing elsewhere. */
Test(bulk, a_read_that_waits_holds_no_slab)
{
	struct verve_wire_segment from = of_remote(0, NODE_EAGER);

	for (int i = 0; i < MANY; i++)
		start(VERVE_RMA_READ, i, &from, NULL, i, 0);
	cr_expect_eq(a.xport->tx_slabs.used, FULL, "%zu slabs", (size_t)a.xport->tx_slabs.used);
	nodes_settle();
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[i]);
}

/* Receives are read first, as they were when no read stepped aside. */
Test(bulk, receives_come_before_reads_that_stepped_aside)
{
	static int first;

	send_short(0); /* b may send when a packet of a has come */
	nodes_settle();
	expect_comp(&a.tx_queue);
	read_many(MANY - 1);
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = LONG}), 0);
	cr_assert_eq(node_recv(&a, &(struct message){.buf = local[MANY - 1], .len = LONG,
						     .context = &first}),
		     0);
	nodes_settle();
	/* The reads that were under way when the offer came end before it, and no others. */
	cr_expect_eq(expect_comp(&a.rx_queue).context, &first);
	cr_expect(pattern_holds(local[MANY - 1], LONG, 2));
	expect_reads(MANY - 1);
}

static void receive_long(int i)
{
	cr_assert_eq(node_recv(&a, &(struct message){.buf = local[i], .len = LONG,
						     .context = &contexts[i]}), 0);
	cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = LONG,
						     .quiet = true}), 0);
}

/*
 * Long messages of the peer, of which more wait than places are free, come until something
 * completes, but no more than most. Returns how many came.
 */
static int stream(int most)
{
	struct verve_comp comp;
	int count = 0;

	while (!AO_load(&a.tx_queue.count) && count < most) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&a.proto);
		verve_proto_poll(&b.proto);
		while (verve_comp_queue_read(&a.rx_queue, &comp, 1) == 1) {
			receive_long((int)((int *)comp.context - contexts));
			count++;
		}
	}
	return count;
}

static void stream_beside(uint32_t flags)
{
	teardown();
	open_nodes(1); /* so that one place becomes free at a time */
	send_short(0); /* b may send when a packet of a has come */
	nodes_settle();
	expect_comp(&a.tx_queue);
	for (int i = 1; i < MANY; i++)
		receive_long(i);
	stream(MANY);
	rma(VERVE_RMA_READ, 0, LONG, flags);
	cr_expect_lt(stream(100 * MANY), 3 * MANY);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[0]);
	cr_expect(pattern_holds(local[0], LONG, 1));
	nodes_settle();
	while (AO_load(&a.rx_queue.count))
		expect_comp(&a.rx_queue);
}

/* One of the places that become free is the reads'. */
Test(bulk, a_read_comes_between_messages_without_end)
{
	stream_beside(0);
}

Test(bulk, a_fenced_read_comes_between_messages_without_end)
{
	stream_beside(VERVE_OP_FENCE);
}

/* More writes than the link takes are queued, always; the peer's messages are not kept by them. */
Test(bulk, messages_come_between_writes_without_end)
{
	enum { MOST = 50 * WRITES };
	struct verve_comp comp;
	int count = 0;

	send_short(0); /* b may send when a packet of a has come */
	nodes_settle();
	expect_comp(&a.tx_queue);
	for (int i = 0; i < WRITES; i++)
		rma(VERVE_RMA_WRITE, 0, BULK, 0);
	for (int i = 1; i < FULL; i++)
		receive_long(i);
	while (AO_load(&a.rx_queue.count) < FULL - 1 && count < MOST) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&a.proto);
		verve_proto_poll(&b.proto);
		for (; verve_comp_queue_read(&a.tx_queue, &comp, 1) == 1; count++)
			rma(VERVE_RMA_WRITE, 0, BULK, 0);
	}
	cr_expect_lt(count, MOST);
	nodes_settle();
	while (AO_load(&a.rx_queue.count))
		expect_comp(&a.rx_queue);
}

/* soft-RoCE never says that a peer is dead: its port must be asked, also while a read is cut. */
Test(bulk, a_half_posted_read_waits_for_its_peer)
{
	uint32_t retired;

	verve_config.read_size = BULK + 1;
	rma(VERVE_RMA_READ, 0, LONG, 0);
	cr_assert_eq(under_way(), FULL);
	cr_assert(TAILQ_EMPTY(&node_peer(&a, &b)->active));
	cr_assert(verve_keepalive_is_needed(a.xport));
	retired = node_link(&a, &b)->retired;
	node_link(&a, &b)->heard = retired - 1;
	node_link(&a, &b)->silent = true;
	verve_keepalive_step(a.xport);
	cr_expect_eq(node_link(&a, &b)->heard, retired, "it was probed");
	cr_expect_not(node_link(&a, &b)->silent);
	nodes_settle();
	expect_reads(1);
	verve_config.read_size = SIZE_MAX;
}

/* Behind a bulk read no request ends, so that many are outstanding without being work for long. */
Test(bulk, short_messages_do_not_wait_to_leave_together)
{
	node_link(&a, &b)->batches = true;
	read_many(FULL);
	for (uint32_t i = 1; i <= 2 * VERVE_LINK_SIGNAL; i++) {
		send_short(0);
		cr_assert_eq(under_way(), FULL + i);
	}
	nodes_settle();
}

/* Nobody is to see a write before the write that was posted earlier (FI_ORDER_RMA_WAW). */
Test(bulk, writes_and_messages_keep_their_order)
{
	read_many(MANY);
	memset(local[0], 7, LONG);
	rma(VERVE_RMA_WRITE, 0, LONG, 0);
	memset(local[1], 8, LONG);
	rma(VERVE_RMA_WRITE, 1, LONG, 0);
	send_short(0);
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = LONG}), 0);
	nodes_settle();
	expect_comp(&b.rx_queue);
	cr_expect_eq(remote[0], 8);
	cr_expect_eq(remote[LONG - 1], 8);
}

/* A read returns what an earlier write to the same memory has written (FI_ORDER_RMA_RAW). */
Test(bulk, reads_stay_behind_the_writes_before_them)
{
	read_many(FULL);
	memset(local[MANY - 1], 9, LONG);
	rma(VERVE_RMA_WRITE, MANY - 1, LONG, 0);
	rma(VERVE_RMA_READ, 0, LONG, 0);
	nodes_settle();
	cr_expect_eq(local[0][0], 9);
	cr_expect_eq(local[0][LONG - 1], 9);
}

Test(bulk, a_fence_waits_for_all_reads)
{
	read_many(MANY);
	send_short(VERVE_OP_FENCE);
	cr_expect_eq(under_way(), FULL);
	nodes_settle();
	expect_reads(MANY);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
}

/* A message that is posted after a read with FI_FENCE starts after that read (fi_endpoint(3)). */
Test(bulk, nothing_overtakes_a_read_with_a_fence)
{
	read_many(FULL + 1);
	rma(VERVE_RMA_READ, FULL + 1, LONG, VERVE_OP_FENCE);
	send_short(0);
	cr_expect_eq(under_way(), FULL);
	nodes_settle();
	expect_reads(FULL + 1);
	/* The message leaves behind the request of the read, and completes when it has left. */
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[FULL + 1]);
}

Test(bulk, a_read_that_waits_can_be_cancelled)
{
	read_many(MANY);
	cr_expect_eq(verve_cancel(a.xport, &contexts[MANY - 1]), 0);
	cr_expect_eq(expect_error(&a.tx_queue, FI_ECANCELED).comp.context, &contexts[MANY - 1]);
	nodes_settle();
	expect_reads(MANY - 1);
	expect_none(&a.tx_queue);
}

Test(bulk, reads_that_wait_end_with_the_connection)
{
	read_many(MANY);
	verve_link_break(a.xport, node_link(&a, &b), FI_ECONNRESET, 0, "test");
	nodes_settle();
	for (int i = 0; i < MANY; i++)
		expect_error(&a.tx_queue, FI_ECONNRESET);
	expect_none(&a.tx_queue);
}

/* A refused request ends the queue pair; on the next one nothing is counted that is not posted. */
Test(bulk, reads_go_on_over_another_queue_pair)
{
	struct verve_wire_segment beyond = of_remote(LONG, 8);

	start(VERVE_RMA_WRITE, MANY - 1, &beyond, NULL, MANY, 0);
	read_many(MANY - 1);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	node_resume(&a, &b);
	nodes_settle();
	expect_reads(MANY - 1);
}

Test(bulk, messages_are_read_so_many_at_a_time)
{
	/* b may send when a packet of a has come. */
	send_short(0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(node_send(&b, &(struct message){.peer = &a, .buf = out, .len = LONG}),
			     0);
		cr_assert_eq(node_recv(&a, &(struct message){.buf = local[i], .len = LONG,
							     .context = &contexts[i]}),
			     0);
	}
	/* All offers come before a takes the first. */
	do
		verve_proto_poll(&b.proto);
	while (fake_net_run_next());
	while (verve_proto_poll(&a.proto))
		;
	cr_assert_eq(node_link(&a, &b)->bulk_reads, FULL);
	send_short(0);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	nodes_settle();
	for (int i = 0; i < MANY; i++)
		expect_comp(&a.rx_queue);
	for (int i = 0; i < MANY; i++)
		cr_expect(pattern_holds(local[i], LONG, 2));
}

/* The target says that it has no such region, to a read that has stepped aside behind others. */
Test(bulk, a_read_that_waits_for_its_key_is_refused)
{
	read_many(FULL + 2);
	rma_unknown(VERVE_RMA_READ, LONG);
	send_short(0);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	nodes_settle();
	cr_expect_eq(comps_until_error(), FULL + 2);
	expect_none(&a.tx_queue);
}

/* Half of it is posted: it ends behind these requests. */
Test(bulk, a_half_posted_read_can_be_cancelled)
{
	verve_config.read_size = BULK + 1;
	rma(VERVE_RMA_READ, 0, LONG, 0);
	cr_expect_eq(verve_cancel(a.xport, &contexts[0]), 0);
	nodes_settle();
	cr_expect_eq(expect_error(&a.tx_queue, FI_ECANCELED).comp.context, &contexts[0]);
	expect_none(&a.tx_queue);
	verve_config.read_size = SIZE_MAX;
}

/* All that is under way are requests of a read that has not left its queue. */
Test(bulk, a_fence_waits_for_a_half_posted_read)
{
	verve_config.read_size = BULK + 1;
	rma(VERVE_RMA_READ, 0, LONG, 0);
	send_short(VERVE_OP_FENCE);
	cr_expect_eq(under_way(), FULL);
	nodes_settle();
	expect_reads(1);
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	verve_config.read_size = SIZE_MAX;
}

Test(bulk, nothing_passes_a_half_posted_read_with_a_fence)
{
	verve_config.read_size = BULK + 1;
	rma(VERVE_RMA_READ, 0, LONG, VERVE_OP_FENCE);
	send_short(0);
	cr_expect_eq(under_way(), FULL);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).context, &contexts[MANY]);
	expect_reads(1);
	verve_config.read_size = SIZE_MAX;
}
