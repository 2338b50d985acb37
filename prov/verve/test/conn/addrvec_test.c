/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address table: indices, duplicates, reuse, growth, and readers during a change. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "conn/addrvec.h"

static struct verve_addrvec vec;

static void setup(void)
{
	verve_addrvec_init(&vec);
}

static void teardown(void)
{
	verve_addrvec_fini(&vec);
}

TestSuite(addrvec, .init = setup, .fini = teardown);

/* The n-th of many different IPv4 addresses. */
static struct verve_addr in_addr_of(uint32_t n)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(4000),
		.sin_addr.s_addr = htonl(0x0a000001 + n),
	};
	struct verve_addr addr;

	cr_assert_eq(verve_addr_set(&addr, &in, sizeof(in)), 0);
	return addr;
}

/* The n-th of many different IPv6 addresses; every byte depends on n. */
static struct verve_addr in6_addr_of(uint8_t n)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(n * 0x0101)};
	struct verve_addr addr;

	memset(&in6.sin6_addr, n, sizeof(in6.sin6_addr));
	cr_assert_eq(verve_addr_set(&addr, &in6, sizeof(in6)), 0);
	return addr;
}

static uint64_t insert(struct verve_addr addr)
{
	uint64_t index = UINT64_MAX;

	cr_assert_eq(verve_addrvec_insert(&vec, &addr, &index), 0);
	return index;
}

static bool is_at(uint64_t index, struct verve_addr addr)
{
	struct verve_addr got;

	return verve_addrvec_get(&vec, index, &got) && verve_addr_equal(&got, &addr);
}

static uint64_t find(struct verve_addr addr)
{
	return verve_addrvec_find(&vec, &addr);
}

Test(addrvec, indices_count_up_from_0)
{
	for (uint32_t i = 0; i < 10; i++)
		cr_expect_eq(insert(in_addr_of(i)), i);
	for (uint32_t i = 0; i < 10; i++) {
		cr_expect(is_at(i, in_addr_of(i)));
		cr_expect_eq(find(in_addr_of(i)), i);
	}
}

Test(addrvec, index_without_address_is_refused)
{
	struct verve_addr out;

	cr_expect_not(verve_addrvec_get(&vec, 0, &out));
	insert(in_addr_of(0));
	cr_expect_not(verve_addrvec_get(&vec, 1, &out));
	cr_expect_not(verve_addrvec_get(&vec, 64, &out));
	cr_expect_not(verve_addrvec_get(&vec, 1ull << 30, &out));
	cr_expect_not(verve_addrvec_get(&vec, 1ull << 63, &out));
	cr_expect_not(verve_addrvec_get(&vec, UINT64_MAX, &out));
	cr_expect_eq(verve_addrvec_remove(&vec, 1), -FI_EINVAL);
	cr_expect_eq(verve_addrvec_remove(&vec, UINT64_MAX), -FI_EINVAL);
}

Test(addrvec, unknown_address_is_not_found)
{
	struct verve_addr other_port = in_addr_of(0);

	cr_expect_eq(find(in_addr_of(0)), UINT64_MAX);
	insert(in_addr_of(0));
	verve_addr_set_port(&other_port, 4001);
	cr_expect_eq(find(other_port), UINT64_MAX);
	cr_expect_eq(find(in6_addr_of(1)), UINT64_MAX);
}

Test(addrvec, both_families_side_by_side)
{
	cr_expect_eq(insert(in6_addr_of(1)), 0);
	cr_expect_eq(insert(in_addr_of(1)), 1);
	cr_expect(is_at(0, in6_addr_of(1)));
	cr_expect(is_at(1, in_addr_of(1)));
	cr_expect_eq(find(in6_addr_of(1)), 0);
}

Test(addrvec, rest_of_an_ipv4_address_does_not_count)
{
	struct verve_addr addr = in_addr_of(0), dirty;

	memset(&dirty, 0xff, sizeof(dirty));
	memcpy(&dirty, &addr, verve_addr_len(&addr));
	insert(addr);
	cr_expect_eq(find(dirty), 0);
	cr_expect_eq(insert(dirty), 0);
}

Test(addrvec, duplicate_keeps_the_index_and_is_counted)
{
	insert(in_addr_of(0));
	cr_expect_eq(insert(in_addr_of(1)), 1);
	cr_expect_eq(insert(in_addr_of(1)), 1);
	cr_expect_eq(insert(in_addr_of(2)), 2);
	cr_expect_eq(verve_addrvec_remove(&vec, 1), 0);
	cr_expect(is_at(1, in_addr_of(1)));
	cr_expect_eq(verve_addrvec_remove(&vec, 1), 1);
	cr_expect_not(is_at(1, in_addr_of(1)));
	cr_expect_eq(verve_addrvec_remove(&vec, 1), -FI_EINVAL);
}

Test(addrvec, lowest_free_index_is_taken_first)
{
	for (uint32_t i = 0; i < 200; i++)
		insert(in_addr_of(i));
	cr_expect_eq(verve_addrvec_remove(&vec, 150), 1);
	cr_expect_eq(verve_addrvec_remove(&vec, 3), 1);
	cr_expect_eq(verve_addrvec_remove(&vec, 70), 1);
	cr_expect_eq(insert(in_addr_of(1000)), 3);
	cr_expect_eq(insert(in_addr_of(1001)), 70);
	cr_expect_eq(insert(in_addr_of(1002)), 150);
	cr_expect_eq(insert(in_addr_of(1003)), 200);
	cr_expect_eq(find(in_addr_of(3)), UINT64_MAX);
	cr_expect(is_at(3, in_addr_of(1000)));
}

Test(addrvec, version_counts_what_becomes_known_or_unknown)
{
	AO_t before = verve_addrvec_version(&vec), after;

	insert(in_addr_of(0));
	after = verve_addrvec_version(&vec);
	cr_expect_gt(after, before);
	insert(in_addr_of(0));
	cr_expect_eq(verve_addrvec_remove(&vec, 0), 0);
	cr_expect_eq(verve_addrvec_version(&vec), after);
	cr_expect_eq(verve_addrvec_remove(&vec, 0), 1);
	cr_expect_gt(verve_addrvec_version(&vec), after);
}

/* Random insertions and removals, compared with an array that is searched from end to end. */
Test(addrvec, agrees_with_a_naive_table)
{
	enum { SLOTS = 400, STEPS = 40000 };
	static int naive[SLOTS], references[SLOTS]; /* address number + 1 */
	unsigned seed = 1;

	for (int step = 0; step < STEPS; step++) {
		int n = rand_r(&seed) % (SLOTS / 2), slot, expected = -1;

		for (slot = 0; slot < SLOTS; slot++)
			if (naive[slot] == n + 1)
				break;
		if (rand_r(&seed) % 2) {
			for (expected = 0; slot == SLOTS && naive[expected]; expected++)
				;
			slot = slot == SLOTS ? expected : slot;
			naive[slot] = n + 1;
			references[slot]++;
			cr_assert_eq(insert(in_addr_of((uint32_t)n)), (uint64_t)slot);
		} else if (slot < SLOTS) {
			int last = --references[slot] == 0;

			if (last)
				naive[slot] = 0;
			cr_assert_eq(verve_addrvec_remove(&vec, (uint64_t)slot), last);
			cr_assert_eq(is_at((uint64_t)slot, in_addr_of((uint32_t)n)), !last);
		}
	}
}

Test(addrvec, grows_without_losing_anything)
{
	enum { COUNT = 100000 };

	for (uint32_t i = 0; i < COUNT; i++)
		cr_assert_eq(insert(in_addr_of(i)), i);
	for (uint32_t i = 0; i < COUNT; i++) {
		cr_assert(is_at(i, in_addr_of(i)));
		cr_assert_eq(find(in_addr_of(i)), i);
	}
}

enum { CHANGES = 20000 };
static volatile AO_t changed; /* the writer has ended */

/*
 * The writer: index 0 changes between two addresses that differ in every byte; other addresses make
 * the table grow.
 */
static void *change(void *arg)
{
	void *wrong = NULL;

	(void)arg;
	for (uint32_t i = 0; i < CHANGES && !wrong; i++) {
		struct verve_addr addr = in6_addr_of(i % 2 ? 0x55 : 0xaa), other = in_addr_of(i);
		uint64_t index;

		if (verve_addrvec_insert(&vec, &addr, &index) || index != 0 ||
		    verve_addrvec_insert(&vec, &other, &index) || index != i + 1 ||
		    verve_addrvec_remove(&vec, 0) != 1)
			wrong = "wrong index";
	}
	AO_store_release(&changed, 1);
	return wrong;
}

Test(addrvec, reader_sees_a_whole_address_or_none)
{
	struct verve_addr a = in6_addr_of(0x55), b = in6_addr_of(0xaa), got;
	pthread_t writer;
	void *wrong;

	cr_assert_eq(pthread_create(&writer, NULL, change, NULL), 0);
	do {
		if (verve_addrvec_get(&vec, 0, &got))
			cr_assert(verve_addr_equal(&got, &a) || verve_addr_equal(&got, &b));
	} while (!AO_load_acquire(&changed));
	cr_assert_eq(pthread_join(writer, &wrong), 0);
	cr_expect_null(wrong);
}
