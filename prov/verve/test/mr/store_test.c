/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Store, compared with a model that searches an array: which entry is found, which is evicted, who
 * must free it; and the limits of linked entries. cache_test.c has the rest.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "mr/store.h"

enum { PAGE = 4096, PAGES = 24, COUNT = 10, SIZE = 40 * PAGE, ENTRIES = 40, STEPS = 3000000 };

/* An entry that was added and not freed yet. */
struct model {
	struct verve_mr_entry *entry; /* NULL: this place of the model is free */
	struct verve_mr_want want;
	bool linked, ready;
	int uses, holds; /* each hold is of a use */
};

static struct verve_mr_store *store;
static struct model models[ENTRIES];
static uint64_t hits, evictions, joins, holds;
static uint64_t state = 88172645463325252u;

static uint64_t below(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % limit;
}

static void setup(void)
{
	store = verve_mr_store_open(COUNT, SIZE);
	cr_assert_not_null(store);
}

static void teardown(void)
{
	verve_mr_store_close(store);
}

TestSuite(store, .init = setup, .fini = teardown, .timeout = 120);

static struct verve_mr_want any_want(void)
{
	struct verve_mr_want want = {.exact = below(3) == 0, .access = below(4)};

	want.start = (1000 + below(PAGES)) * PAGE + (want.exact ? below(3) : 0);
	want.end = want.start + 1 + below(below(3) ? 2 * PAGE : 12 * PAGE);
	return want;
}

static size_t pinned(const struct verve_mr_want *want)
{
	return ((want->end - 1) / PAGE + 1 - want->start / PAGE) * PAGE;
}

static bool covers(const struct verve_mr_want *has, const struct verve_mr_want *want)
{
	if (has->exact != want->exact)
		return false;
	if (want->exact)
		return has->start == want->start && has->end == want->end &&
		       has->access == want->access;
	return has->start <= want->start && has->end >= want->end &&
	       (has->access & want->access) == want->access;
}

static bool grants(const struct model *model, const struct verve_mr_want *want)
{
	return model->linked && model->ready && covers(&model->want, want) &&
	       !(want->exact && model->uses);
}

static struct model *model_of(const struct verve_mr_entry *entry)
{
	int i = 0;

	while (i < ENTRIES && models[i].entry != entry)
		i++;
	cr_assert_lt(i, ENTRIES);
	return &models[i];
}

static void free_model(struct model *model)
{
	verve_mr_store_free(store, model->entry);
	*model = (struct model){0};
}

/* Buries: exactly the entries that the model knows as unlinked and not in use must come. */
static void bury(void)
{
	struct verve_mr_entry *entry;

	while ((entry = verve_mr_store_bury(store))) {
		struct model *model = model_of(entry);

		cr_assert(!model->linked && !model->uses);
		free_model(model);
	}
	for (int i = 0; i < ENTRIES; i++)
		cr_assert(!models[i].entry || models[i].linked || models[i].uses);
}

static void check_find(void)
{
	struct verve_mr_want want = any_want();
	struct verve_mr_entry *entry;
	bool there = false;

	for (int i = 0; i < ENTRIES; i++)
		there |= models[i].entry && grants(&models[i], &want);
	entry = verve_mr_store_find(store, &want);
	cr_assert_eq(!!entry, there);
	if (!entry)
		return;
	cr_assert(grants(model_of(entry), &want));
	model_of(entry)->uses++;
	hits++;
}

/* Buries after an add: an entry that comes although the model has it linked was evicted. */
static void bury_evicted(void)
{
	struct verve_mr_entry *entry;

	while ((entry = verve_mr_store_bury(store))) {
		struct model *model = model_of(entry);

		cr_assert(model->linked && !model->uses);
		evictions++;
		free_model(model);
	}
}

/* True: the entry takes a place, and is not evicted. */
static bool is_fixed(const struct model *model)
{
	return model->linked && model->uses && !model->holds;
}

/* A free place of the model; NULL: none. used_: sums of entries in use, never evicted. */
static struct model *place_of(size_t *used_count, size_t *used_size)
{
	struct model *place = NULL;

	*used_count = *used_size = 0;
	for (int i = 0; i < ENTRIES; i++) {
		if (!models[i].entry)
			place = &models[i];
		*used_count += is_fixed(&models[i]);
		*used_size += is_fixed(&models[i]) ? pinned(&models[i].want) : 0;
	}
	return place;
}

static void check_caps(void)
{
	size_t count = 0, size = 0;

	for (int i = 0; i < ENTRIES; i++) {
		count += models[i].linked && !models[i].holds;
		size += models[i].linked && !models[i].holds ? pinned(&models[i].want) : 0;
	}
	cr_assert(count <= COUNT && size <= SIZE);
}

static void check_add(void)
{
	struct verve_mr_want want = any_want();
	size_t used_count, used_size;
	struct model *place = place_of(&used_count, &used_size);
	struct verve_mr_entry *entry;

	if (!place)
		return;
	entry = verve_mr_store_add(store, &want);
	bury_evicted();
	cr_assert_eq(!!entry, used_count < COUNT && used_size + pinned(&want) <= SIZE);
	if (entry)
		*place = (struct model){entry, want, true, false, 1, 0};
	check_caps();
}

static bool shares(const struct verve_mr_want *a, uintptr_t start, uintptr_t end)
{
	return a->start < end && a->end > start;
}

static bool can_join(const struct model *model, const struct verve_mr_want *want)
{
	return model->ready && !model->want.exact && model->want.access == want->access &&
	       shares(&model->want, want->start, want->end);
}

/* A joined range has only memory of its entries, is not too long, and could take no more. */
static void check_range(const struct model *before, const struct verve_mr_want *own,
			const struct verve_mr_want *all)
{
	size_t max = (own->end - own->start) * VERVE_MR_STORE_JOIN;

	cr_assert(all->start <= own->start && all->end >= own->end && all->end - all->start <= max);
	cr_assert(all->access == own->access && !all->exact);
	for (uintptr_t page = all->start / PAGE * PAGE; page < all->end; page += PAGE) {
		uintptr_t start = page < all->start ? all->start : page;
		uintptr_t end = page + PAGE < all->end ? page + PAGE : all->end;
		bool known = shares(own, start, end);

		for (int i = 0; i < ENTRIES; i++)
			known |= can_join(&before[i], all) && shares(&before[i].want, start, end);
		cr_assert(known);
	}
	for (int i = 0; i < ENTRIES; i++) {
		const struct verve_mr_want *has = &before[i].want;

		if (can_join(&before[i], all) && (has->start < all->start || has->end > all->end))
			cr_assert_gt((has->end > all->end ? has->end : all->end) -
				     (has->start < all->start ? has->start : all->start), max);
	}
}

static void check_join(void)
{
	struct verve_mr_want own = any_want(), all;
	size_t used_count, used_size;
	struct model *place = place_of(&used_count, &used_size), before[ENTRIES];
	struct verve_mr_entry *entry;
	bool joined;

	own.exact = false;
	if (!place)
		return;
	memcpy(before, models, sizeof(before));
	entry = verve_mr_store_add_joined(store, &own, &joined);
	bury_evicted();
	check_caps();
	if (joined && !entry) {
		cr_assert(used_count == COUNT ||
			  used_size + VERVE_MR_STORE_JOIN * pinned(&own) > SIZE);
		return;
	}
	cr_assert_eq(!!entry, joined);
	all = own;
	if (entry) {
		all = (struct verve_mr_want){entry->node.start, entry->node.end, entry->access,
					     entry->exact};
		*place = (struct model){entry, all, true, false, 1, 0};
		joins++;
	}
	cr_assert_eq(joined, all.start != own.start || all.end != own.end);
	check_range(before, &own, &all);
}

static void check_ready(struct model *model)
{
	cr_assert_eq(verve_mr_store_ready(store, model->entry), model->linked);
	model->ready = model->linked;
	for (int i = 0; model->linked && i < ENTRIES; i++) {
		struct model *other = &models[i];

		if (other != model && other->ready && covers(&model->want, &other->want))
			other->linked = other->ready = false;
	}
}

/* The last release evicts others, or the entry itself, if those in use fill the store. */
static void check_release(struct model *model)
{
	size_t used_count, used_size;

	place_of(&used_count, &used_size);
	verve_mr_store_release(store, model->entry);
	if (--model->holds == 0 && model->linked &&
	    (used_count == COUNT || used_size + pinned(&model->want) > SIZE)) {
		model->linked = model->ready = false;
		evictions++;
	}
	bury_evicted();
	check_caps();
}

static void check_hold(struct model *model)
{
	if (model->holds && below(2)) {
		check_release(model);
	} else if (model->holds < model->uses) {
		verve_mr_store_hold(store, model->entry);
		model->holds++;
		holds++;
	}
}

static void check_put(struct model *model)
{
	bool mine = --model->uses == 0 && !model->linked;

	cr_assert_eq(verve_mr_store_put(model->entry), mine);
	if (mine)
		free_model(model);
}

static void check_invalidate(void)
{
	struct verve_mr_want range = any_want();
	size_t count = 0;

	for (int i = 0; i < ENTRIES; i++) {
		struct model *model = &models[i];

		if (model->linked && model->want.start < range.end &&
		    model->want.end > range.start) {
			model->linked = model->ready = false;
			count++;
		}
	}
	cr_assert_eq(verve_mr_store_invalidate(store, range.start, range.end), count);
}

static void check_evict_idle(void)
{
	bool any = false;

	for (int i = 0; i < ENTRIES; i++)
		any |= models[i].linked && !models[i].uses;
	cr_assert_eq(verve_mr_store_evict_idle(store), any);
	bury_evicted();
}

/* A random step with an entry in use. The model's add makes each entry ready at most once. */
static void step_used(struct model *model)
{
	if (model->linked && !model->ready && below(2)) {
		check_ready(model);
	} else if (below(8) == 0) {
		verve_mr_store_unlink(store, model->entry);
		model->linked = model->ready = false;
	} else if (below(4) == 0) {
		check_hold(model);
	} else if (model->uses > model->holds && (model->ready || !model->linked)) {
		check_put(model);
	}
}

Test(store, agrees_with_a_naive_model)
{
	for (int step = 0; step < STEPS; step++) {
		struct model *model = &models[below(ENTRIES)];
		uint64_t what = below(64);

		if (what < 24)
			check_find();
		else if (what < 32)
			check_add();
		else if (what < 36)
			check_join();
		else if (what == 36)
			check_invalidate();
		else if (what == 37 && below(16) == 0)
			check_evict_idle();
		else if (model->entry && model->uses)
			step_used(model);
		bury();
		if (step % 64 == 0) {
			cr_assert_eq(verve_mr_store_hits(store), hits);
			cr_assert_eq(verve_mr_store_evictions(store), evictions);
		}
	}
	cr_expect(hits > STEPS / 100 && evictions > STEPS / 1000);
	cr_expect_gt(joins, STEPS / 2000);
	cr_expect_gt(holds, STEPS / 1000);
	for (int i = 0; i < ENTRIES; i++) {
		while (models[i].holds)
			check_release(&models[i]);
		while (models[i].uses)
			check_put(&models[i]);
	}
	verve_mr_store_invalidate(store, 0, UINTPTR_MAX);
	for (int i = 0; i < ENTRIES; i++)
		models[i].linked = models[i].ready = false;
	bury();
}

static struct verve_mr_entry *add_ready(uintptr_t page)
{
	struct verve_mr_want want = {page * PAGE, (page + 1) * PAGE, 0, false};
	struct verve_mr_entry *entry = verve_mr_store_add(store, &want);

	cr_assert_not_null(entry);
	cr_assert(verve_mr_store_ready(store, entry));
	cr_assert_not(verve_mr_store_put(entry));
	return entry;
}

static bool use(uintptr_t page)
{
	struct verve_mr_want want = {page * PAGE, (page + 1) * PAGE, 0, false};
	struct verve_mr_entry *entry = verve_mr_store_find(store, &want);

	if (entry)
		cr_assert_not(verve_mr_store_put(entry));
	return entry;
}

static void clear(void)
{
	struct verve_mr_entry *entry;

	verve_mr_store_invalidate(store, 0, UINTPTR_MAX);
	while ((entry = verve_mr_store_bury(store)))
		verve_mr_store_free(store, entry);
}

Test(store, evicts_what_was_found_least_lately)
{
	struct verve_mr_entry *entry;

	for (uintptr_t i = 1; i <= COUNT; i++)
		add_ready(i);
	add_ready(COUNT + 1); /* eviction gave all a second chance: entry 1 went */
	for (uintptr_t i = 2; i <= COUNT; i++)
		if (i != 5)
			cr_expect(use(i));
	add_ready(COUNT + 2);
	cr_expect_not(use(1));
	cr_expect_not(use(5));
	for (uintptr_t i = 2; i <= COUNT + 2; i++)
		cr_expect_eq(use(i), i != 5);
	while ((entry = verve_mr_store_bury(store)))
		verve_mr_store_free(store, entry);
	clear();
}

/* Threads find an entry without the lock while another unlinks it: the last user frees it. */
enum { THREADS = 4, FINDS = 20000 };

static int freed;

static void free_it(struct verve_mr_entry *entry)
{
	__atomic_add_fetch(&freed, 1, __ATOMIC_SEQ_CST);
	verve_mr_store_free(store, entry);
}

static void *find_and_put(void *arg)
{
	struct verve_mr_want want = {PAGE, 2 * PAGE, 0, false};

	(void)arg;
	for (int i = 0; i < FINDS; i++) {
		struct verve_mr_entry *entry = verve_mr_store_find(store, &want);

		if (entry && (entry->node.start != PAGE || entry->node.end != 2 * PAGE))
			return arg;
		if (entry && verve_mr_store_put(entry))
			free_it(entry);
	}
	return NULL;
}

Test(store, whoever_puts_the_last_use_has_it)
{
	struct verve_mr_entry *entry;
	pthread_t threads[THREADS];
	void *wrong;
	int added = 0;

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, find_and_put, &freed), 0);
	for (int i = 0; i < FINDS; i++) {
		add_ready(1 + i % 2);
		added++;
		if (i % 3 == 0)
			verve_mr_store_invalidate(store, 0, UINTPTR_MAX);
		while ((entry = verve_mr_store_bury(store)))
			free_it(entry);
	}
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(threads[i], &wrong), 0);
		cr_expect_null(wrong);
	}
	verve_mr_store_invalidate(store, 0, UINTPTR_MAX);
	while ((entry = verve_mr_store_bury(store)))
		free_it(entry);
	cr_expect_eq(freed, added);
}
