/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slabs: growth up to the limit, the half for kept payload, and registrations that fail. */
#include "xport/slab.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/child.h"
#include "../support/fake_memory.h"
#include "../support/fake_net.h"
#include "../support/oom.h"
#include "base/log.h"
#include "mr/monitor.h"
#include "net/device.h"

enum { SIZE = 100, BATCH = 4, LIMIT = 10 };

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static struct verve_slab_pool pool;

static void setup(void)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_eq(verve_net_device_open(list->device, list->port_num, NULL, &dev), 0);
	verve_net_port_list_free(list, count);
	verve_slab_pool_init(&pool, dev, SIZE, BATCH, LIMIT);
}

static void teardown(void)
{
	verve_slab_pool_fini(&pool);
	verve_net_device_close(dev);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(slab, .init = setup, .fini = teardown);

static uint64_t registrations(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats.regs;
}

Test(slab, nothing_is_registered_before_the_first_is_wanted)
{
	cr_expect_eq(registrations(), 0);
	cr_expect_eq(pool.count, 0);
}

Test(slab, grows_by_batches_up_to_the_limit_and_no_further)
{
	struct verve_slab *slab[LIMIT];

	for (int i = 0; i < LIMIT; i++) {
		slab[i] = verve_slab_alloc(&pool);
		cr_assert_not_null(slab[i]);
		cr_expect_eq(pool.count, i < 4 ? 4 : i < 8 ? 8 : LIMIT);
	}
	cr_expect_eq(registrations(), 3); /* the last chunk is smaller */
	cr_expect_null(verve_slab_alloc(&pool));
	cr_expect_eq(pool.used, LIMIT);
	verve_slab_free(&pool, slab[3]);
	cr_expect_eq(verve_slab_alloc(&pool), slab[3]);
	cr_expect_null(verve_slab_alloc(&pool));
	cr_expect_eq(registrations(), 3);
}

static bool nothing_gone(struct verve_mr_listener *listener, uintptr_t start, uintptr_t end)
{
	(void)listener, (void)start, (void)end;
	return false;
}

/* As a cache that closes an idle registration. */
static bool give(struct verve_mr_listener *listener)
{
	(void)listener;
	fake_net_memlock(UINT64_MAX);
	return true;
}

Test(slab, idle_registrations_of_caches_give_way)
{
	struct verve_mr_listener cache = {.gone = nothing_gone, .spare = give};

	fake_net_watch_allow(true);
	fake_net_memlock(0);
	cr_expect_eq(verve_slab_reserve(&pool, 1), -FI_ENOMEM);
	cr_assert_eq(verve_mr_monitor_add(&cache), 0);
	cr_expect_eq(verve_slab_reserve(&pool, 1), 0);
	verve_mr_monitor_remove(&cache);
}

/* Takes slabs for a holder that returns none, until it gets no more. Returns how many. */
static size_t take_share(void)
{
	size_t has = 0;

	while (verve_slab_alloc_spare(&pool, has))
		has++;
	return has;
}

Test(slab, holders_that_come_one_by_one_leave_some_to_those_that_have_none)
{
	enum { MANY = 64 };

	verve_slab_pool_fini(&pool);
	verve_slab_pool_init(&pool, dev, SIZE, BATCH, MANY);
	cr_expect_eq(take_share(), MANY * 3 / 4 / 2);
	for (int i = 0; pool.used < MANY * 3 / 4; i++)
		cr_assert_gt(take_share(), 0);
	for (int i = 0; i < MANY / 4; i++)
		cr_expect_eq(take_share(), 1);
	cr_expect_eq(take_share(), 0);
}

/* The spared quarter of the pool is not registered before a slab of it is taken. */
Test(slab, first_holder_brings_no_more_chunks_than_its_share)
{
	verve_slab_pool_fini(&pool);
	verve_slab_pool_init(&pool, dev, SIZE, BATCH, 64);
	cr_assert_not_null(verve_slab_alloc_spare(&pool, 0));
	cr_assert_not_null(verve_slab_alloc_spare(&pool, 1));
	cr_expect_eq(pool.count, BATCH);
}

enum { HUGE_PAGE = 2 << 20, LARGE = HUGE_PAGE / BATCH + 64 };

/* Pages of address space that the process has. */
static long mapped(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%ld", &pages), 1);
	fclose(file);
	return pages;
}

/* True if the kernel was asked for huge pages at this address: proc(5), smaps. */
static bool wants_huge(uintptr_t at)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	bool here = false, found = false;
	uintptr_t from, to;
	char line[512];

	cr_assert_not_null(file);
	while (!found && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = from <= at && at < to;
		found = here && !strncmp(line, "VmFlags:", 8) && strstr(line, " hg");
	}
	fclose(file);
	return found;
}

/* Takes slabs that fill a chunk, and writes to them. Returns the lowest address. */
static uintptr_t fill_chunk(struct verve_slab_pool *large)
{
	uintptr_t first = UINTPTR_MAX;

	for (int i = 0; i < BATCH; i++) {
		struct verve_slab *slab = verve_slab_alloc(large);

		cr_assert_not_null(slab);
		memset(slab->data, i, LARGE);
		first = (uintptr_t)slab->data < first ? (uintptr_t)slab->data : first;
	}
	return first;
}

Test(slab, a_large_first_chunk_begins_at_a_huge_page)
{
	struct verve_slab_pool large;
	long before, chunk = LARGE * BATCH / sysconf(_SC_PAGESIZE) + 1;
	uintptr_t first;

	/* The C library and the sanitizer map what they need for this, once. */
	mapped();
	verve_slab_pool_init(&large, dev, LARGE, BATCH, 2 * BATCH);
	verve_slab_pool_fini(&large);
	before = mapped();
	first = fill_chunk(&large);
	cr_expect_eq(first % HUGE_PAGE, 0);
	cr_expect_eq(wants_huge(first), !access("/sys/kernel/mm/transparent_hugepage", F_OK));
	cr_expect_lt(mapped() - before, chunk + HUGE_PAGE / sysconf(_SC_PAGESIZE) / 2);
	/* A later chunk comes during traffic, and asks for no huge pages. */
	cr_expect_not(wants_huge(fill_chunk(&large)));
	verve_slab_pool_fini(&large);
	cr_expect_lt(mapped() - before, chunk / 2);
}

Test(slab, a_large_chunk_takes_small_pages_where_there_is_no_room_to_align)
{
	struct rlimit limit, tight;
	struct verve_slab_pool large;

	verve_slab_pool_init(&large, dev, LARGE, BATCH, BATCH);
	cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
	tight = limit;
	tight.rlim_cur = mapped() * sysconf(_SC_PAGESIZE) + LARGE * BATCH + HUGE_PAGE / 2;
	cr_assert_eq(setrlimit(RLIMIT_AS, &tight), 0);
	cr_expect_eq(verve_slab_reserve(&large, BATCH), 0);
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	verve_slab_pool_fini(&large);
}

Test(slab, each_has_memory_of_its_own_on_cache_lines)
{
	struct verve_slab *slab[LIMIT];

	cr_expect_eq(pool.size, 128); /* rounded up to whole lines of 64 bytes */
	for (int i = 0; i < LIMIT; i++) {
		slab[i] = verve_slab_alloc(&pool);
		cr_expect_eq((uintptr_t)slab[i]->data % 64, 0);
		memset(slab[i]->data, i, pool.size);
	}
	for (int i = 0; i < LIMIT; i++)
		for (size_t at = 0; at < pool.size; at++)
			cr_assert_eq(((unsigned char *)slab[i]->data)[at], i);
}

/* The kernel copies pinned pages when it forks. */
Test(slab, a_child_has_none)
{
	struct verve_slab *slab = verve_slab_alloc(&pool);
	uintptr_t page = sysconf(_SC_PAGESIZE), at = (uintptr_t)slab->data & -page;
	unsigned char is_there;
	pid_t child;

	cr_assert_eq(mincore((void *)at, page, &is_there), 0);
	child = fork();
	if (!child)
		_exit(mincore((void *)at, page, &is_there) == 0 || errno != ENOMEM);
	child_expect_success(child);
}

Test(slab, keys_are_those_of_the_chunk)
{
	struct verve_slab *slab[BATCH + 1];

	for (int i = 0; i <= BATCH; i++)
		slab[i] = verve_slab_alloc(&pool);
	for (int i = 1; i < BATCH; i++)
		cr_expect_eq(slab[i]->lkey, slab[0]->lkey);
	cr_expect_neq(slab[BATCH]->lkey, slab[0]->lkey);
	cr_expect_neq(slab[0]->lkey, 0);
}

/* For a peer for which nothing is kept yet. */
static struct verve_slab *keep_one(struct verve_slab_pool *from)
{
	static uint32_t keepers[LIMIT], next;
	uint32_t *keeper = &keepers[next++ % LIMIT];

	*keeper = 0;
	return verve_slab_alloc_kept(from, keeper);
}

Test(slab, what_is_kept_takes_half_of_the_limit)
{
	for (int i = 0; i < LIMIT / 2; i++)
		cr_assert_not_null(keep_one(&pool));
	cr_expect_null(keep_one(&pool));
	cr_expect_eq(pool.used, LIMIT / 2);
	cr_expect_not_null(verve_slab_alloc(&pool)); /* packets still find a slab */
}

/* All of the half but what one peer keeps: as much is left as it has, to the next one. */
Test(slab, what_is_kept_for_one_peer_leaves_some_to_the_next)
{
	uint32_t silent = 0, honest = 0;
	struct verve_slab *slab[LIMIT];

	while ((slab[silent] = verve_slab_alloc_kept(&pool, &silent)))
		;
	cr_expect_eq(silent, 4);
	cr_expect_not_null(verve_slab_alloc_kept(&pool, &honest));
	cr_expect_eq(honest, 1);
	verve_slab_free(&pool, slab[0]);
	cr_expect_eq(silent, 3);
	verve_slab_release(slab[1]); /* a request has it now, and frees it */
	cr_expect_eq(silent, 2);
	verve_slab_free(&pool, slab[1]);
	cr_expect_eq(silent, 2);
	cr_expect_eq(pool.used, 3);
}

Test(slab, packets_count_against_what_may_be_kept)
{
	struct verve_slab *slab = NULL;

	for (int i = 0; i < LIMIT / 2; i++)
		slab = verve_slab_alloc(&pool);
	cr_expect_null(keep_one(&pool));
	verve_slab_free(&pool, slab);
	cr_expect_not_null(keep_one(&pool));
}

Test(slab, refused_registration_leaves_the_pool_as_it_was)
{
	struct verve_slab *slab;

	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_null(verve_slab_alloc(&pool));
	cr_expect(fake_net_has_failed());
	cr_expect_eq(pool.count, 0);
	cr_expect_eq(pool.used, 0);
	/* The pool does not try again at once, but after some calls. */
	slab = verve_slab_alloc(&pool);
	cr_expect_null(slab);
	for (int i = 0; i < 2000 && !slab; i++)
		slab = verve_slab_alloc(&pool);
	cr_assert_not_null(slab);
	cr_expect_eq(pool.used, 1);
}

/* As where mlockall(2) holds all memory to RLIMIT_MEMLOCK. */
Test(slab, refused_mapping_is_not_tried_again_at_once)
{
	oom_fail(1, false);
	cr_expect_null(verve_slab_alloc(&pool));
	cr_expect_eq(oom_stop(), 1);
	cr_expect_eq(registrations(), 0);
	cr_expect_eq(pool.failures, 1);
	oom_fail(0, true);
	cr_expect_null(verve_slab_alloc(&pool));
	cr_expect_eq(oom_stop(), 0);
}

Test(slab, pool_that_has_grown_again_grows_as_before)
{
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_null(verve_slab_alloc(&pool));
	for (int i = 0; i < 2000 && !pool.count; i++)
		verve_slab_alloc(&pool);
	cr_assert_eq(pool.used, 1);
	cr_expect_eq(pool.failures, 0);
	for (int i = 1; i < LIMIT; i++)
		cr_assert_not_null(verve_slab_alloc(&pool));
}

Test(slab, what_is_reserved_is_there)
{
	uint64_t before = registrations();

	cr_assert_eq(verve_slab_reserve(&pool, 2), 0);
	cr_expect_eq(pool.count, 2);
	fake_net_memlock(0);
	cr_expect_not_null(verve_slab_alloc(&pool));
	cr_expect_not_null(verve_slab_alloc(&pool));
	cr_expect_null(verve_slab_alloc(&pool));
	cr_expect_eq(registrations(), before + 1);
	cr_expect_eq(verve_slab_reserve(&pool, 2), -FI_ENOMEM);
}

Test(slab, what_is_kept_leaves_half_of_a_pool_that_cannot_grow)
{
	cr_assert_eq(verve_slab_reserve(&pool, 4), 0);
	fake_net_memlock(0);
	cr_expect_not_null(keep_one(&pool));
	cr_expect_not_null(keep_one(&pool));
	cr_expect_null(keep_one(&pool));
	cr_expect_not_null(verve_slab_alloc(&pool));
	cr_expect_not_null(verve_slab_alloc(&pool));
	cr_expect_null(verve_slab_alloc(&pool));
}

Test(slab, limit_0_gives_nothing)
{
	struct verve_slab_pool empty;

	verve_slab_pool_init(&empty, dev, SIZE, BATCH, 0);
	cr_expect_null(verve_slab_alloc(&empty));
	cr_expect_null(keep_one(&empty));
	verve_slab_pool_fini(&empty);
}
