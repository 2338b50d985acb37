/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration cache: what get and put promise, and what they count. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "../support/fake_net.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/region.h"
#include "net/device.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static struct verve_mr_cache cache;
static char buffer[4096];

static void setup(void)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_gt(count, 0);
	cr_assert_eq(verve_net_device_open(list->device, list->port_num, NULL, &dev), 0);
	verve_net_port_list_free(list, count);
	verve_mr_cache_init(&cache, dev);
}

static void teardown(void)
{
	verve_mr_cache_fini(&cache);
	verve_net_device_close(dev);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(cache, .init = setup, .fini = teardown);

static struct verve_mr_region *get(void *addr, size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get(&cache, addr, len, access, &region), 0);
	return region;
}

static struct verve_mr_cache_stats stats(void)
{
	struct verve_mr_cache_stats now;

	verve_mr_cache_stats_get(&cache, &now);
	return now;
}

Test(cache, region_contains_the_range_and_grants_the_access)
{
	struct verve_mr_region *region = get(buffer + 100, 200, VERVE_NET_REMOTE_READ);
	char *start = region->addr;

	cr_expect(start <= buffer + 100 && start + region->len >= buffer + 300);
	cr_expect_eq(region->access & VERVE_NET_REMOTE_READ, VERVE_NET_REMOTE_READ);
	verve_mr_cache_put(&cache, region);
}

Test(cache, one_range_may_be_out_several_times)
{
	struct verve_mr_region *read = get(buffer, 4096, 0);
	struct verve_mr_region *write = get(buffer, 4096, VERVE_NET_LOCAL_WRITE);

	verve_mr_cache_put(&cache, read);
	cr_expect_eq(write->access & VERVE_NET_LOCAL_WRITE, VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(write->len, 4096);
	verve_mr_cache_put(&cache, write);
}

Test(cache, counts_what_is_registered)
{
	struct verve_mr_region *a = get(buffer, 1000, 0), *b = get(buffer, 24, 0);

	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().regions, 2);
	cr_expect_eq(stats().bytes, 1024);
	verve_mr_cache_put(&cache, a);
	cr_expect_eq(stats().regions, 1);
	cr_expect_eq(stats().bytes, 24);
	verve_mr_cache_put(&cache, b);
	cr_expect_eq(stats().bytes, 0);
	cr_expect_eq(stats().misses, 2);
	cr_expect_eq(stats().failures, 0);
}

/* No monitor proves that the mapping is still there: keeping a region would be unsafe. */
Test(cache, keeps_nothing_pinned)
{
	for (int i = 0; i < 10; i++)
		verve_mr_cache_put(&cache, get(buffer, sizeof(buffer), 0));
	cr_expect_eq(stats().regions, 0);
	cr_expect_eq(stats().misses, 10);
}

Test(cache, failure_is_passed_on_and_counted)
{
	struct verve_mr_region *region;

	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_eq(verve_mr_cache_get(&cache, buffer, 10, 0, &region), -FI_ENOMEM);
	cr_expect_eq(stats().failures, 1);
	cr_expect_eq(stats().regions, 0);
	verve_mr_cache_put(&cache, get(buffer, 10, 0));
}
