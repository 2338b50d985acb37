/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Id table: uniqueness, stale ids, growth, the limit. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/idtab.h"

static struct verve_idtab tab;

static void setup(void)
{
	verve_idtab_init(&tab);
}

static void teardown(void)
{
	verve_idtab_fini(&tab);
}

TestSuite(idtab, .init = setup, .fini = teardown);

/* Criterion's assertions are too slow for a loop of a million: it reports each that holds. */
static void expect(bool holds, const char *what)
{
	if (!holds)
		cr_assert_fail("%s", what);
}

static uint32_t alloc(void *object)
{
	uint32_t id = 0;

	expect(!verve_idtab_alloc(&tab, object, &id) && id, "an object gets an id");
	return id;
}

Test(idtab, empty_knows_no_id)
{
	cr_assert_null(verve_idtab_get(&tab, 0));
	cr_assert_null(verve_idtab_get(&tab, 1));
	cr_assert_null(verve_idtab_get(&tab, UINT32_MAX));
}

Test(idtab, many_live_ids_each_name_their_object)
{
	enum { MANY = 5000 };
	static char objects[MANY];
	static uint32_t ids[MANY];

	for (int i = 0; i < MANY; i++)
		ids[i] = alloc(&objects[i]);
	cr_assert_eq(tab.used, MANY);
	for (int i = 0; i < MANY; i++)
		expect(verve_idtab_get(&tab, ids[i]) == &objects[i], "an id names its object");
	for (int i = 0; i < MANY; i += 2)
		verve_idtab_free(&tab, ids[i]);
	for (int i = 0; i < MANY; i++)
		expect(verve_idtab_get(&tab, ids[i]) == (i % 2 ? &objects[i] : NULL),
		       "a freed id names nothing");
	cr_assert_eq(tab.used, MANY / 2);
}

Test(idtab, stale_id_finds_nothing_when_its_slot_is_taken_again)
{
	char first, second;
	uint32_t stale = alloc(&first), id;

	verve_idtab_free(&tab, stale);
	do
		id = alloc(&second);
	while (verve_idtab_index(id) != verve_idtab_index(stale));
	cr_assert_neq(id, stale);
	cr_assert_null(verve_idtab_get(&tab, stale));
	cr_assert_eq(verve_idtab_get(&tab, id), &second);
}

Test(idtab, an_id_returns_only_after_all_generations_of_all_slots)
{
	char object;
	uint32_t first = alloc(&object), id = first;
	uint64_t count = 0;

	do {
		verve_idtab_free(&tab, id);
		id = alloc(&object);
		count++;
	} while (id != first);
	cr_assert_eq(count, (uint64_t)(tab.count - 1) << VERVE_IDTAB_GENERATION_BITS);
}

Test(idtab, limit)
{
	char object;
	uint32_t id;

	for (uint32_t i = 1; i < 1u << VERVE_IDTAB_INDEX_BITS; i++)
		alloc(&object);
	cr_assert_eq(verve_idtab_alloc(&tab, &object, &id), -FI_ENOMEM);
	verve_idtab_free(&tab, 77);
	cr_assert_eq(verve_idtab_index(alloc(&object)), 77);
}

Test(idtab, random_against_a_model)
{
	enum { SLOTS = 300 };
	static char objects[SLOTS];
	uint32_t ids[SLOTS] = {0}, stale[SLOTS] = {0};

	srandom(1);
	for (int i = 0; i < 100000; i++) {
		int n = (int)(random() % SLOTS);

		if (ids[n]) {
			expect(verve_idtab_get(&tab, ids[n]) == &objects[n], "an id is lost");
			verve_idtab_free(&tab, ids[n]);
			stale[n] = ids[n];
			ids[n] = 0;
		} else {
			ids[n] = alloc(&objects[n]);
		}
		if (stale[n])
			expect(!verve_idtab_get(&tab, stale[n]), "a stale id names nothing");
	}
}
