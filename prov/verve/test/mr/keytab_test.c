/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Key table: finding by key; a key that was found stays until the table is unlocked. */
#include "mr/keytab.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

enum { REGIONS = 5000, ROUNDS = 20000 };

static struct verve_mr_keytab tab;

static const struct verve_mr_key *find(uint64_t key)
{
	const struct verve_mr_key *found;

	verve_mr_keytab_lock(&tab);
	found = verve_mr_keytab_find(&tab, key);
	verve_mr_keytab_unlock(&tab);
	return found;
}

Test(keytab, finds_what_was_added_until_it_is_removed)
{
	struct verve_mr_key *regions = calloc(REGIONS, sizeof(*regions));

	verve_mr_keytab_init(&tab);
	cr_assert_null(find(0));
	for (uint32_t i = 0; i < REGIONS; i++) {
		regions[i].key = i << 8 | (i & 3);
		cr_assert_eq(verve_mr_keytab_add(&tab, &regions[i]), 0);
	}
	for (uint32_t i = 0; i < REGIONS; i++) {
		cr_assert_eq(find(regions[i].key), &regions[i]);
		cr_assert_null(find(regions[i].key + 4));
	}
	for (uint32_t i = 0; i < REGIONS; i += 2)
		verve_mr_keytab_remove(&tab, &regions[i]);
	for (uint32_t i = 0; i < REGIONS; i++)
		cr_assert_eq(find(regions[i].key), i % 2 ? &regions[i] : NULL);
	for (uint32_t i = 1; i < REGIONS; i += 2)
		verve_mr_keytab_remove(&tab, &regions[i]);
	verve_mr_keytab_fini(&tab);
	free(regions);
}

Test(keytab, a_key_is_one_regions)
{
	struct verve_mr_key a = {.key = UINT64_MAX}, b = {.key = UINT64_MAX};
	uint64_t generation;

	verve_mr_keytab_init(&tab);
	cr_assert_eq(verve_mr_keytab_add(&tab, &a), 0);
	generation = a.generation;
	cr_assert_eq(verve_mr_keytab_add(&tab, &b), -FI_ENOKEY);
	cr_assert_eq(find(UINT64_MAX), &a);
	cr_assert_null(find(UINT32_MAX));
	verve_mr_keytab_remove(&tab, &a);
	cr_assert_eq(verve_mr_keytab_add(&tab, &b), 0);
	cr_assert_gt(b.generation, generation,
		     "a region with the same key again has another generation");
	cr_assert_eq(find(UINT64_MAX), &b);
	verve_mr_keytab_remove(&tab, &b);
	verve_mr_keytab_fini(&tab);
}

Test(keytab, keys_that_the_domain_makes_are_no_rkeys)
{
	struct verve_mr_key a = {.key = 7}, b = {.key = 7};

	verve_mr_keytab_init(&tab);
	verve_mr_keytab_add_made(&tab, &a);
	verve_mr_keytab_add_made(&tab, &b);
	cr_assert_neq(a.key, b.key);
	cr_assert(a.key & VERVE_MR_KEY_EXPORTED && b.key & VERVE_MR_KEY_EXPORTED);
	cr_assert_eq(find(a.key), &a);
	verve_mr_keytab_remove(&tab, &a);
	verve_mr_keytab_remove(&tab, &b);
	verve_mr_keytab_fini(&tab);
}

Test(keytab, numbers_that_the_domain_could_have_made_can_be_chosen)
{
	struct verve_mr_key a = {.key = VERVE_MR_KEY_EXPORTED}, b = {.key = VERVE_MR_KEY_EXPORTED};

	verve_mr_keytab_init(&tab);
	cr_assert_eq(verve_mr_keytab_add(&tab, &a), 0);
	cr_assert_eq(a.key, VERVE_MR_KEY_EXPORTED);
	cr_assert_eq(verve_mr_keytab_add(&tab, &b), -FI_ENOKEY);
	cr_assert_eq(find(VERVE_MR_KEY_EXPORTED), &a);
	verve_mr_keytab_remove(&tab, &a);
	verve_mr_keytab_fini(&tab);
}

static unsigned is_open, is_over; /* is_open: only the table's lock guards it */

/* A thread that opens and closes one region for ever; a reader must find it open, or not at all. */
static void *open_and_close(void *arg)
{
	struct verve_mr_key region = {.key = 7};

	for (int i = 0; i < ROUNDS; i++) {
		is_open = 1;
		verve_mr_keytab_add(&tab, &region);
		verve_mr_keytab_remove(&tab, &region);
		is_open = 0;
	}
	__atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
	return arg;
}

Test(keytab, removing_waits_for_its_users)
{
	pthread_t thread;

	verve_mr_keytab_init(&tab);
	cr_assert_eq(pthread_create(&thread, NULL, open_and_close, NULL), 0);
	while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
		verve_mr_keytab_lock(&tab);
		if (verve_mr_keytab_find(&tab, 7))
			for (int i = 0; i < 100; i++)
				cr_assert_eq(*(volatile unsigned *)&is_open, 1);
		verve_mr_keytab_unlock(&tab);
	}
	pthread_join(thread, NULL);
	verve_mr_keytab_fini(&tab);
}
