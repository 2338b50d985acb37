/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads and writes with an exported key: across every border of its segments, with what the key
 * grants and with what it does not. key_exchange_test.c has queries, answers and revocations.
 */
#include "key_fixture.h"
#include "xport/protocols.h"

#include <string.h>

static unsigned char model[MEMORY];

static void try_borders(bool virt)
{
	static const size_t lens[] = {7, 1, 30, 0, 64, 3, 20, 5};

	key_export(&x, 1ull << 40, 8, lens, virt, both);
	for (size_t from = 0; from < x.len; from++)
		for (size_t to = from + 1; to <= x.len; to += 1 + to % 5) {
			pattern_fill(local, to - from, (unsigned)(from * 31 + to));
			key_finish(VERVE_RMA_WRITE, x.key.key, key_addr(&x, from), to - from);
			memcpy(model + from, local, to - from);
			for (size_t i = 0; i < to; i++)
				cr_assert_eq(*key_byte(&x, i), model[i]);
			memset(local, 0, to - from);
			key_finish(VERVE_RMA_READ, x.key.key, key_addr(&x, from), to - from);
			cr_assert_eq(memcmp(local, model + from, to - from), 0);
		}
	for (uint32_t i = 0; i < 8; i++)
		for (size_t j = 0; j < GAP; j++)
			cr_assert_eq(((unsigned char *)(uintptr_t)x.segments[i].addr)[lens[i] + j],
				     0);
	key_unexport(&x);
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
	key_export(&x, 3, VERVE_MR_SEGMENTS_MAX, lens, true, both);
	pattern_fill(local, x.len, 9);
	key_finish(VERVE_RMA_WRITE, 3, key_addr(&x, 0), x.len);
	memset(local, 0, x.len);
	key_finish(VERVE_RMA_READ, 3, key_addr(&x, 0), x.len);
	cr_expect(pattern_holds(local, x.len, 9));
	key_unexport(&x);
}

Test(key, several_segments_of_a_request_have_keys_of_their_own)
{
	struct verve_wire_segment to[4];
	struct exported y;
	size_t other = 40;

	key_export_one(&x, 1, 100);
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
	cr_assert_eq(key_start(VERVE_RMA_WRITE, local, to, 4, 0), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	cr_expect_eq(memcmp(key_byte(&x, 90), local, 10), 0);
	cr_expect_eq(memcmp(memory + 5, local + 10, 35), 0);
	cr_expect_eq(memcmp(key_byte(&x, 0), local + 45, 20), 0);
	key_unexport(&y);
	key_unexport(&x);
}

Test(key, of_nothing_moves_nothing)
{
	key_begin(VERVE_RMA_WRITE, 4711, 5, 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	key_begin(VERVE_RMA_READ, 4711, 5, 0);
	nodes_settle();
	cr_expect_eq(expect_comp(&a.tx_queue).flags, VERVE_COMP_RMA | VERVE_COMP_READ);
	cr_expect_eq(AO_load(&a.read.value), 1);
}

Test(key, unknown_ones_fail_alone)
{
	key_export_one(&x, 8, 100);
	key_begin(VERVE_RMA_WRITE, 8, 0, 100);
	for (int i = 0; i < 20; i++)
		key_begin(i % 2 ? VERVE_RMA_READ : VERVE_RMA_WRITE, 1000 + i, 0, 8);
	key_begin(VERVE_RMA_READ, 8, 0, 100);
	nodes_settle();
	expect_comp(&a.tx_queue);
	for (int i = 0; i < 20; i++)
		expect_error(&a.tx_queue, FI_EACCES);
	expect_comp(&a.tx_queue);
	cr_expect_eq(node_link(&a, &b)->keys.asked, 0);
	cr_expect_eq(node_link(&b, &a)->keys.answers, 0);
	cr_expect_eq(node_link(&a, &b)->keys.count, 1, "what is not there is not kept");
	key_unexport(&x);
}

Test(key, opens_what_it_grants_and_no_more)
{
	static const size_t lens[] = {50, 50};

	key_export(&x, 8, 2, lens, false, VERVE_NET_REMOTE_READ);
	key_expect_refused(VERVE_RMA_WRITE, 8, 0, 8, "does not grant remote writes");
	key_expect_refused(VERVE_RMA_READ, 8, 93, 8, "beyond");
	key_expect_refused(VERVE_RMA_READ, 8, UINT64_MAX, 8, "beyond");
	key_expect_refused(VERVE_RMA_READ, 9, 0, 8, "no region with the key");
	key_finish(VERVE_RMA_READ, 8, 92, 8);
	key_unexport(&x);
	nodes_settle();
	key_export(&x, 8, 2, lens, true, VERVE_NET_REMOTE_WRITE);
	key_expect_refused(VERVE_RMA_READ, 8, key_addr(&x, 0), 8, "does not grant remote reads");
	key_expect_refused(VERVE_RMA_WRITE, 8, key_addr(&x, 0) - 1, 8, "beyond");
	key_unexport(&x);
}

Test(key, that_is_revoked_opens_nothing)
{
	key_export_one(&x, 8, 100);
	key_finish(VERVE_RMA_WRITE, 8, 0, 100);
	key_unexport(&x);
	nodes_settle();
	cr_expect_eq(node_link(&a, &b)->keys.count, 0);
	key_expect_refused(VERVE_RMA_WRITE, 8, 0, 100, "no region with the key");
}

Test(key, that_is_used_again_has_its_new_meaning)
{
	for (unsigned i = 0; i < 5; i++) {
		key_export_one(&x, 8, 100 + 50 * i);
		pattern_fill(local, 100, i);
		key_finish(VERVE_RMA_WRITE, 8, 50 * i, 100);
		cr_expect(pattern_holds(key_byte(&x, 50 * i), 100, i));
		key_unexport(&x);
		nodes_settle();
	}
}

Test(key, closed_under_way_completes_or_fails)
{
	key_export_one(&x, 8, MEMORY / 2);
	key_finish(VERVE_RMA_WRITE, 8, 0, 1);
	key_begin(VERVE_RMA_WRITE, 8, 0, MEMORY / 2);
	key_unexport(&x);
	memset(memory, 0, sizeof(memory));
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	for (size_t i = 0; i < sizeof(memory); i++)
		cr_assert_eq(memory[i], 0, "closed memory was written");
}

Test(key, rkeys_are_nothing_to_ask_for)
{
	b.xport->attr.app_keys = false;
	key_export_one(&x, 8, 16);
	key_expect_refused(VERVE_RMA_READ, 8, 0, 16, "no region with the key");
	key_unexport(&x);
	key_export_one(&x, VERVE_MR_KEY_EXPORTED | 5, 16);
	key_finish(VERVE_RMA_READ, x.key.key, 0, 16);
	key_unexport(&x);
}

/* b's application chooses its keys. */
Test(key, every_number_can_be_a_chosen_key)
{
	static const uint64_t keys[] = {0, 8, 1ull << 32, VERVE_MR_KEY_EXPORTED,
					VERVE_MR_KEY_EXPORTED | 1, UINT64_MAX};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		key_export_one(&x, keys[i], 16);
		key_finish(VERVE_RMA_WRITE, keys[i], 0, 16);
		key_finish(VERVE_RMA_READ, keys[i], 0, 16);
		key_unexport(&x);
		nodes_settle(); /* until a has heard of it */
		key_expect_refused(VERVE_RMA_READ, keys[i], 0, 16, "no region with the key");
	}
}

Test(key, data_comes_with_a_write_across_borders)
{
	static const size_t lens[] = {50, 50};
	struct verve_wire_segment to = {40, 20, 8};
	struct verve_comp comp;

	key_export(&x, 8, 2, lens, false, both);
	cr_assert_eq(key_start(VERVE_RMA_WRITE, local, &to, 1, VERVE_OP_DATA), 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	comp = expect_comp(&b.rx_queue);
	cr_expect_eq(comp.data, 77);
	cr_expect_eq(comp.len, 20);
	to.key = 9; /* an unknown key: the write fails, and the target does not hear of it */
	cr_assert_eq(key_start(VERVE_RMA_WRITE, local, &to, 1, VERVE_OP_DATA), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	expect_none(&b.rx_queue);
	key_unexport(&x);
}

Test(key, events_count_for_the_region_of_the_key)
{
	static const size_t lens[] = {50, 50};
	struct verve_comp_counter read = {0}, write = {0};

	b.xport->attr.rma_event = true;
	node_link(&a, &b)->rma_event = true;
	key_export(&x, 1ull << 50, 2, lens, false, both);
	verve_mr_keytab_count(&keytab, &x.key, &read, &write);
	key_finish(VERVE_RMA_WRITE, 1ull << 50, 40, 20);
	key_finish(VERVE_RMA_READ, 1ull << 50, 0, 100);
	key_finish(VERVE_RMA_READ, 1ull << 50, 0, 1);
	cr_expect_eq(AO_load(&write.value), 1);
	cr_expect_eq(AO_load(&read.value), 2);
	key_unexport(&x);
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

		key_export(&x, 8, 1, &(size_t){100}, false, claims[i].access);
		verve_mr_keytab_count(&keytab, &x.key, &read, &write);
		claim(claims[i].tag, claims[i].len, claims[i].count, claims[i].keys);
		cr_expect_eq(AO_load(claims[i].tag == VERVE_WIRE_READ ? &read.value : &write.value),
			     claims[i].counted, "claim %zu", i);
		cr_expect_eq(AO_load(&read.value) + AO_load(&write.value), claims[i].counted);
		cr_expect_not(link->broken, "an honest peer may say so of a replaced region");
		key_unexport(&x);
	}
}
