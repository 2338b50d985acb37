/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key exchange: queries, answers and revocations; reads and writes with an exported key across
 * every border of its segments, and while the key changes.
 */
#include "rma/key.h"

#include <stdlib.h>
#include <string.h>

#include "../proto/fixture.h"
#include "mr/keytab.h"
#include "mr/region.h"
#include "rma/rma.h"

enum { LONGEST = 256, MEMORY = 1 << 16, GAP = 16, MANY = 200 };

/* A region of b: segments in memory, from the last to the first, with gaps. */
struct exported {
	struct verve_mr_key key;
	struct verve_mr_segment segments[VERVE_MR_SEGMENTS_MAX];
	struct verve_mr_region *regions[VERVE_MR_SEGMENTS_MAX];
	size_t len;
};

static struct node a, b;
static struct verve_mr_keytab keytab;
static unsigned char local[MEMORY], memory[MEMORY], model[MEMORY];
static const unsigned both = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE;
static struct exported x;
static int context;

static void setup(void)
{
	struct verve_xport_attr attr;
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.msg_size = LONGEST + VERVE_WIRE_ATOMIC_PREFIX;
	config.rc_slow = 0; /* refusals and acknowledgements come in a known order */
	fake_net_start(&config);
	verve_mr_keytab_init(&keytab);
	node_attr(&attr);
	node_open(&a, 0, &attr);
	attr.mr_keytab = &keytab;
	attr.app_keys = true;
	node_open(&b, 1, &attr);
	node_join(&a, &b, NODE_WINDOW);
	memset(memory, 0, sizeof(memory));
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	verve_mr_keytab_fini(&keytab);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(key, .init = setup, .fini = teardown);

static void export(struct exported *of, uint64_t key, uint32_t count, const size_t *lens, bool virt,
		   unsigned access)
{
	unsigned char *at = memory + MEMORY;

	*of = (struct exported){.key = {.key = key, .access = access}};
	for (uint32_t i = 0; i < count; i++) {
		at -= lens[i] + GAP;
		of->len += lens[i];
		cr_assert_eq(verve_mr_region_open(b.dev, at, lens[i], access, &of->regions[i]), 0);
		of->segments[i] = (struct verve_mr_segment){
			(uintptr_t)at, lens[i], of->regions[i]->rkey};
	}
	of->key.segments = (struct verve_mr_segments){of->segments, count, virt};
	cr_assert_eq(verve_mr_keytab_add(&keytab, &of->key), 0);
}

static void export_one(struct exported *of, uint64_t key, size_t len)
{
	export(of, key, 1, &len, false, both);
}

static void unexport(struct exported *of)
{
	verve_mr_keytab_remove(&keytab, &of->key);
	if (AO_load(&of->key.told))
		verve_key_revoke(b.xport, of->key.key, of->key.generation);
	for (uint32_t i = 0; i < of->key.segments.count; i++)
		verve_mr_region_close(of->regions[i]);
}

/* The byte at a position of an exported region. addr_of gives the address that peers use for it. */
static unsigned char *byte_of(const struct exported *of, size_t position)
{
	struct verve_mr_segment rest;

	cr_assert(verve_mr_segments_rest(&of->key.segments, position, &rest));
	return (unsigned char *)(uintptr_t)rest.addr;
}

static uint64_t addr_of(const struct exported *of, size_t position)
{
	return of->key.segments.virt ? (uintptr_t)byte_of(of, position) : position;
}

static int start(enum verve_rma_kind kind, void *buf, const struct verve_wire_segment *to,
		 size_t count, uint32_t flags)
{
	struct iovec iov = {buf, 0};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b), .context = &context,
		.data = 77, .flags = flags | VERVE_OP_NOTIFY, .remote = to, .remote_count = count,
	};

	for (size_t i = 0; i < count; i++)
		iov.iov_len += to[i].len;
	return verve_rma(a.xport, kind, &request);
}

static void begin(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len)
{
	struct verve_wire_segment to = {addr, len, key};

	cr_assert_eq(start(kind, local, &to, 1, 0), 0);
}

static void finish(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len)
{
	begin(kind, key, addr, len);
	nodes_settle();
	expect_comp(&a.tx_queue);
}

/* Expects this operation to be refused, while the connection lives on and no query is left over. */
static void expect_refused(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len,
			   const char *why)
{
	struct verve_link *link = node_link(&a, &b);
	struct verve_comp_error error;

	begin(kind, key, addr, len);
	nodes_settle();
	error = expect_error(&a.tx_queue, FI_EACCES);
	cr_expect_not_null(strstr(error.reason, why), "%s", error.reason);
	cr_expect_eq(error.comp.context, &context);
	cr_expect_eq(node_link(&a, &b), link);
	cr_expect_eq(link->keys.asked, 0);
}

static uint64_t requests(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats.requests;
}

static void try_borders(bool virt)
{
	static const size_t lens[] = {7, 1, 30, 0, 64, 3, 20, 5};

	export(&x, 1ull << 40, 8, lens, virt, both);
	for (size_t from = 0; from < x.len; from++)
		for (size_t to = from + 1; to <= x.len; to += 1 + to % 5) {
			pattern_fill(local, to - from, (unsigned)(from * 31 + to));
			finish(VERVE_RMA_WRITE, x.key.key, addr_of(&x, from), to - from);
			memcpy(model + from, local, to - from);
			for (size_t i = 0; i < to; i++)
				cr_assert_eq(*byte_of(&x, i), model[i]);
			memset(local, 0, to - from);
			finish(VERVE_RMA_READ, x.key.key, addr_of(&x, from), to - from);
			cr_assert_eq(memcmp(local, model + from, to - from), 0);
		}
	for (uint32_t i = 0; i < 8; i++)
		for (size_t j = 0; j < GAP; j++)
			cr_assert_eq(((unsigned char *)(uintptr_t)x.segments[i].addr)[lens[i] + j],
				     0);
	unexport(&x);
}

Test(key, writes_and_reads_cross_every_border_by_offset)
{
	try_borders(false);
}

Test(key, writes_and_reads_cross_every_border_by_address)
{
	try_borders(true);
}

Test(key, sixty_four_segments_in_one_operation)
{
	size_t lens[VERVE_MR_SEGMENTS_MAX];

	for (int i = 0; i < VERVE_MR_SEGMENTS_MAX; i++)
		lens[i] = 5 + i;
	export(&x, 3, VERVE_MR_SEGMENTS_MAX, lens, true, both);
	pattern_fill(local, x.len, 9);
	finish(VERVE_RMA_WRITE, 3, addr_of(&x, 0), x.len);
	memset(local, 0, x.len);
	finish(VERVE_RMA_READ, 3, addr_of(&x, 0), x.len);
	cr_expect(pattern_holds(local, x.len, 9));
	unexport(&x);
}

Test(key, several_segments_of_a_request_have_keys_of_their_own)
{
	struct verve_wire_segment to[4];
	struct exported y;
	size_t other = 40;

	export_one(&x, 1, 100);
	y = (struct exported){.key = {.key = UINT64_MAX - 1, .access = both}};
	cr_assert_eq(verve_mr_region_open(b.dev, memory, other, both, &y.regions[0]), 0);
	y.segments[0] = (struct verve_mr_segment){(uintptr_t)memory, other, y.regions[0]->rkey};
	y.key.segments = (struct verve_mr_segments){y.segments, 1, false};
	cr_assert_eq(verve_mr_keytab_add(&keytab, &y.key), 0);
	to[0] = (struct verve_wire_segment){90, 10, 1};
	to[1] = (struct verve_wire_segment){0, 0, 12345}; /* no bytes: any key is accepted */
	to[2] = (struct verve_wire_segment){5, 35, UINT64_MAX - 1};
	to[3] = (struct verve_wire_segment){0, 20, 1};
	pattern_fill(local, 65, 4);
	cr_assert_eq(start(VERVE_RMA_WRITE, local, to, 4, 0), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(memcmp(byte_of(&x, 90), local, 10), 0);
	cr_expect_eq(memcmp(memory + 5, local + 10, 35), 0);
	cr_expect_eq(memcmp(byte_of(&x, 0), local + 45, 20), 0);
	unexport(&y);
	unexport(&x);
}

Test(key, is_asked_for_once)
{
	uint64_t before;

	export_one(&x, 8, 100);
	before = requests();
	finish(VERVE_RMA_WRITE, 8, 0, 100);
	cr_expect_eq(requests() - before, 3, "a question, an answer, a write");
	before = requests();
	finish(VERVE_RMA_WRITE, 8, 0, 100);
	cr_expect_eq(requests() - before, 1);
	cr_expect_eq(AO_load(&x.key.told), 1);
	unexport(&x);
}

Test(key, nothing_overtakes_who_waits_for_an_answer)
{
	struct message message = {.peer = &b, .buf = local, .len = 8};
	struct message take = {.buf = local + 100, .len = 8};

	export_one(&x, 8, 100);
	cr_assert_eq(node_recv(&b, &take), 0);
	begin(VERVE_RMA_WRITE, 8, 0, 100);
	cr_assert_eq(node_send(&a, &message), 0);
	expect_none(&a.tx_queue);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending), "the message waits, too");
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&a.tx_queue);
	expect_comp(&b.rx_queue);
	unexport(&x);
}

Test(key, of_nothing_moves_nothing)
{
	begin(VERVE_RMA_WRITE, 4711, 5, 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	begin(VERVE_RMA_READ, 4711, 5, 0);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
	cr_expect_eq(AO_load(&a.read.value), 1);
}

Test(key, unknown_ones_fail_alone)
{
	export_one(&x, 8, 100);
	begin(VERVE_RMA_WRITE, 8, 0, 100);
	for (int i = 0; i < 20; i++)
		begin(i % 2 ? VERVE_RMA_READ : VERVE_RMA_WRITE, 1000 + i, 0, 8);
	begin(VERVE_RMA_READ, 8, 0, 100);
	nodes_settle();
	expect_comp(&a.tx_queue);
	for (int i = 0; i < 20; i++)
		expect_error(&a.tx_queue, FI_EACCES);
	expect_comp(&a.tx_queue);
	cr_expect_eq(node_link(&a, &b)->keys.asked, 0);
	cr_expect_eq(node_link(&b, &a)->keys.answers, 0);
	cr_expect_eq(node_link(&a, &b)->keys.count, 1, "what is not there is not kept");
	unexport(&x);
}

Test(key, opens_what_it_grants_and_no_more)
{
	static const size_t lens[] = {50, 50};

	export(&x, 8, 2, lens, false, VERVE_NET_REMOTE_READ);
	expect_refused(VERVE_RMA_WRITE, 8, 0, 8, "does not grant remote writes");
	expect_refused(VERVE_RMA_READ, 8, 93, 8, "beyond");
	expect_refused(VERVE_RMA_READ, 8, UINT64_MAX, 8, "beyond");
	expect_refused(VERVE_RMA_READ, 9, 0, 8, "no region with the key");
	finish(VERVE_RMA_READ, 8, 92, 8);
	unexport(&x);
	nodes_settle();
	export(&x, 8, 2, lens, true, VERVE_NET_REMOTE_WRITE);
	expect_refused(VERVE_RMA_READ, 8, addr_of(&x, 0), 8, "does not grant remote reads");
	expect_refused(VERVE_RMA_WRITE, 8, addr_of(&x, 0) - 1, 8, "beyond");
	unexport(&x);
}

Test(key, that_is_revoked_opens_nothing)
{
	export_one(&x, 8, 100);
	finish(VERVE_RMA_WRITE, 8, 0, 100);
	unexport(&x);
	nodes_settle();
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
	expect_refused(VERVE_RMA_WRITE, 8, 0, 100, "no region with the key");
}

Test(key, that_is_used_again_has_its_new_meaning)
{
	for (unsigned i = 0; i < 5; i++) {
		export_one(&x, 8, 100 + 50 * i);
		pattern_fill(local, 100, i);
		finish(VERVE_RMA_WRITE, 8, 50 * i, 100);
		cr_expect(pattern_holds(byte_of(&x, 50 * i), 100, i));
		unexport(&x);
		nodes_settle();
	}
}

/* The old key's answer, its revocation and the new key's answer arrive in this order. */
Test(key, that_changes_while_it_is_asked_for)
{
	static const size_t lens[] = {10, 10, 10, 10, 10, 10};

	export(&x, 8, 6, lens, false, both);
	begin(VERVE_RMA_WRITE, 8, 0, 20);
	verve_proto_poll(&a.proto);
	unexport(&x);
	export_one(&x, 8, 20);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(memcmp(byte_of(&x, 0), local, 20), 0);
	unexport(&x);
}

Test(key, revoked_under_way_ends_what_is_under_way)
{
	struct verve_wire_packet revoke = {.type = VERVE_WIRE_KEY_REVOKE, .tag = 8};

	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		export_one(&x, 8, MEMORY / 2);
		finish(VERVE_RMA_WRITE, 8, 0, 1);
		begin(kind, 8, 0, MEMORY / 2); /* more requests than there is room for */
		cr_assert_not(TAILQ_EMPTY(&node_peer(&a, &b)->pending));
		begin(VERVE_RMA_WRITE, 8, 0, 8); /* this write asks for the key again */
		revoke.key.generation = x.key.generation;
		verve_key_forget(a.xport, node_link(&a, &b), &revoke);
		nodes_settle();
		expect_error(&a.tx_queue, FI_EACCES);
		expect_comp(&a.tx_queue);
		unexport(&x);
		nodes_settle();
	}
}

Test(key, closed_under_way_completes_or_fails)
{
	export_one(&x, 8, MEMORY / 2);
	finish(VERVE_RMA_WRITE, 8, 0, 1);
	begin(VERVE_RMA_WRITE, 8, 0, MEMORY / 2);
	unexport(&x);
	memset(memory, 0, sizeof(memory));
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	for (size_t i = 0; i < sizeof(memory); i++)
		cr_assert_eq(memory[i], 0, "closed memory was written");
}

Test(key, many_are_remembered_up_to_a_limit)
{
	static struct exported all[MANY];
	const struct verve_remote_keys *cache = &node_link(&a, &b)->keys;
	uint64_t before;

	for (unsigned i = 0; i < MANY; i++)
		export_one(&all[i], i, 16);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < MANY; i++) {
			finish(VERVE_RMA_READ, i, 0, 16);
			cr_assert_leq(cache->count, VERVE_REMOTE_KEYS_MAX);
			finish(VERVE_RMA_READ, 0, 0, 16);
		}
	before = requests();
	finish(VERVE_RMA_READ, 0, 0, 16);
	cr_expect_eq(requests() - before, 1, "what is used often stays");
	for (unsigned i = 0; i < MANY; i++)
		unexport(&all[i]);
	nodes_settle();
	cr_expect_eq(cache->count, 0);
}

Test(key, whoever_asks_for_too_many_at_once_is_cut_off)
{
	struct verve_wire_packet query = {.type = VERVE_WIRE_KEY_QUERY, .tag = 8};
	struct verve_link *link = node_link(&b, &a);

	link->may_send = false; /* so no answer can leave */
	for (int i = 0; i < VERVE_KEY_QUERIES; i++)
		verve_key_answer(b.xport, link, &query);
	cr_expect_not(link->broken);
	verve_key_answer(b.xport, link, &query);
	cr_expect(link->broken);
}

static size_t owed_to_a(void)
{
	struct verve_op *op;
	size_t count = 0;

	TAILQ_FOREACH(op, &node_peer(&b, &a)->control, link)
		count++;
	return count;
}

/*
 * a has asked for many keys, and takes nothing any more. Regions that others use come and go: a
 * hears of the end of those alone that it was told.
 */
Test(key, whoever_takes_no_revocation_is_owed_no_more_than_it_was_told)
{
	static struct exported told[4];

	for (unsigned i = 0; i < 4; i++) {
		export_one(&told[i], i, 16);
		finish(VERVE_RMA_READ, i, 0, 16);
	}
	node_link(&b, &a)->keys.told = UINT64_MAX;
	node_link(&b, &a)->may_send = false;
	for (unsigned i = 0; i < MANY; i++) {
		export_one(&x, 100 + i, 16);
		AO_store(&x.key.told, 1);
		unexport(&x);
	}
	cr_expect_eq(owed_to_a(), 0);
	for (unsigned i = 0; i < 4; i++)
		unexport(&told[i]);
	cr_expect_eq(owed_to_a(), 4);
	node_link(&b, &a)->may_send = true;
	verve_peer_kick(b.xport, node_peer(&b, &a));
	nodes_settle();
	cr_expect_eq(owed_to_a(), 0);
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
}

Test(key, rkeys_are_nothing_to_ask_for)
{
	b.xport->attr.app_keys = false;
	export_one(&x, 8, 16);
	expect_refused(VERVE_RMA_READ, 8, 0, 16, "no region with the key");
	unexport(&x);
	export_one(&x, VERVE_MR_KEY_EXPORTED | 5, 16);
	finish(VERVE_RMA_READ, x.key.key, 0, 16);
	unexport(&x);
}

/* b's application chooses its keys. */
Test(key, every_number_can_be_a_chosen_key)
{
	static const uint64_t keys[] = {0, 8, 1ull << 32, VERVE_MR_KEY_EXPORTED,
					VERVE_MR_KEY_EXPORTED | 1, UINT64_MAX};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		export_one(&x, keys[i], 16);
		finish(VERVE_RMA_WRITE, keys[i], 0, 16);
		finish(VERVE_RMA_READ, keys[i], 0, 16);
		unexport(&x);
		nodes_settle(); /* until a has heard of it */
		expect_refused(VERVE_RMA_READ, keys[i], 0, 16, "no region with the key");
	}
}

Test(key, data_comes_with_a_write_across_borders)
{
	static const size_t lens[] = {50, 50};
	struct verve_wire_segment to = {40, 20, 8};
	struct verve_comp comp;

	export(&x, 8, 2, lens, false, both);
	cr_assert_eq(start(VERVE_RMA_WRITE, local, &to, 1, VERVE_OP_DATA), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.data, 77);
	cr_expect_eq(comp.len, 20);
	to.key = 9; /* an unknown key: the write fails, and the target does not hear of it */
	cr_assert_eq(start(VERVE_RMA_WRITE, local, &to, 1, VERVE_OP_DATA), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	expect_none(&b.rx_queue);
	unexport(&x);
}

Test(key, events_count_for_the_region_of_the_key)
{
	static const size_t lens[] = {50, 50};
	struct verve_comp_counter read = {0}, write = {0};

	b.xport->attr.rma_event = true;
	node_link(&a, &b)->rma_event = true;
	export(&x, 1ull << 50, 2, lens, false, both);
	verve_mr_keytab_count(&keytab, &x.key, &read, &write);
	finish(VERVE_RMA_WRITE, 1ull << 50, 40, 20);
	finish(VERVE_RMA_READ, 1ull << 50, 0, 100);
	finish(VERVE_RMA_READ, 1ull << 50, 0, 1);
	cr_expect_eq(AO_load(&write.value), 1);
	cr_expect_eq(AO_load(&read.value), 2);
	unexport(&x);
}

/* b handles a notice of a about an operation that a has not done. */
static void claim(uint64_t tag, uint64_t len, uint32_t count, const uint64_t *keys)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_RMA_EVENT, .tag = tag, .len = len};

	for (; packet.segment_count < count; packet.segment_count++)
		packet.segment[packet.segment_count].key = keys[packet.segment_count];
	b.xport->protocols->handlers[packet.type](b.xport, node_link(&b, &a), &packet);
}

/* A region counts only operations that it grants, and that it can hold. */
Test(key, events_count_only_what_the_regions_allow)
{
	static const struct {
		unsigned access;
		uint64_t tag, len;
		uint64_t keys[3];
		uint32_t count;
		uint64_t counted; /* for region 8 */
	} claims[] = {
		{VERVE_NET_REMOTE_READ, VERVE_WIRE_WROTE, 8, {8}, 1, 0},
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_READ, 8, {8}, 1, 0},
		{0, VERVE_WIRE_WROTE, 0, {8}, 1, 0},
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_WROTE, 8, {8}, 1, 1},
		{VERVE_NET_REMOTE_READ, VERVE_WIRE_READ, 8, {8}, 1, 1},
		{VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC, VERVE_WIRE_READ, 8, {8}, 1, 1},
		/* the same bytes, four times */
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_WROTE, 400, {8}, 1, 1},
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_WROTE, 401, {8}, 1, 0},
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_WROTE, UINT64_MAX, {8}, 1, 0},
		/* region 9 was closed meanwhile */
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_WROTE, 401, {8, 9}, 2, 1},
		{VERVE_NET_REMOTE_WRITE, VERVE_WIRE_WROTE, 8, {9, 8, 8}, 3, 1},
	};
	struct verve_link *link = node_link(&b, &a);

	b.xport->attr.rma_event = true;
	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		struct verve_comp_counter read = {0}, write = {0};

		export(&x, 8, 1, &(size_t){100}, false, claims[i].access);
		verve_mr_keytab_count(&keytab, &x.key, &read, &write);
		claim(claims[i].tag, claims[i].len, claims[i].count, claims[i].keys);
		cr_expect_eq(AO_load(claims[i].tag == VERVE_WIRE_READ ? &read.value : &write.value),
			     claims[i].counted, "claim %zu", i);
		cr_expect_eq(AO_load(&read.value) + AO_load(&write.value), claims[i].counted);
		cr_expect_not(link->broken, "an honest peer may say so of a replaced region");
		unexport(&x);
	}
}

/* Answers that no honest peer gives. */
static void reply(struct verve_wire_key key, uint64_t len, uint32_t count)
{
	struct verve_wire_packet packet = {
		.type = VERVE_WIRE_KEY_REPLY, .tag = 8, .key = key, .segment_count = count};

	for (uint32_t i = 0; i < count; i++)
		packet.segment[i] = (struct verve_wire_segment){0, len, 1};
	verve_key_learn(a.xport, node_link(&a, &b), &packet);
	verve_peer_kick(a.xport, node_peer(&a, &b));
}

Test(key, answers_that_nobody_asked_for_are_dropped)
{
	reply((struct verve_wire_key){1, VERVE_WIRE_KEY_READ, 1, 0}, 16, 1);
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
	expect_refused(VERVE_RMA_READ, 8, 0, 8, "no region with the key");
}

Test(key, segments_longer_than_memory_make_no_sense)
{
	begin(VERVE_RMA_READ, 8, 0, 8);
	reply((struct verve_wire_key){1, VERVE_WIRE_KEY_READ, 2, 0}, UINT64_MAX, 2);
	expect_error(&a.tx_queue, FI_EIO);
}

Test(key, answers_out_of_order_are_asked_for_again)
{
	static const size_t lens[] = {10, 10, 10, 10, 10};

	export(&x, 8, 5, lens, false, both);
	begin(VERVE_RMA_READ, 8, 0, 50);
	reply((struct verve_wire_key){99, VERVE_WIRE_KEY_READ, 5, 4}, 10, 1);
	nodes_settle();
	expect_comp(&a.tx_queue);
	begin(VERVE_RMA_READ, 8, 0, 50);
	nodes_settle();
	expect_comp(&a.tx_queue);
	unexport(&x);
}

Test(key, who_waits_for_an_answer_is_told_that_the_peer_died)
{
	begin(VERVE_RMA_READ, 8, 0, 8);
	cr_expect(verve_proto_is_waiting(&a.proto));
	fake_net_host_kill(1);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EHOSTUNREACH);
}

Test(key, is_asked_for_anew_over_a_new_connection)
{
	export_one(&x, 8, 100);
	finish(VERVE_RMA_WRITE, 8, 0, 100);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	node_event(&b, VERVE_CM_DOWN, &a, b.next_conn, FI_ENOTCONN);
	nodes_settle();
	node_join(&a, &b, NODE_WINDOW);
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
	finish(VERVE_RMA_WRITE, 8, 0, 100);
	unexport(&x);
}
