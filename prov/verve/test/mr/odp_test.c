/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* On-demand paging: the user's wish, the device's abilities, and the cache's regions. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdlib.h>

#include "../support/fake_memory.h"
#include "../support/fake_net.h"
#include "base/config.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/region.h"
#include "net/device.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static struct verve_mr_cache cache;
static char buffer[8192];

static const unsigned both = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE |
			     VERVE_NET_LOCAL_WRITE;

static void setup(void)
{
	verve_log_provider = &provider;
	verve_config.odp = "on";
	verve_config.mr_cache = "on";
	fake_net_watch_allow(true);
}

static void teardown(void)
{
	verve_mr_cache_fini(&cache);
	verve_net_device_close(dev);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(odp, .init = setup, .fini = teardown);

static void open_on(bool rc, bool atomic, bool implicit)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.odp_rc = rc;
	config.limits.odp_atomic = atomic;
	config.limits.odp_implicit = implicit;
	fake_net_start(&config);
	cr_assert_eq(verve_net_device_open("fake0", 1, NULL, &dev), 0);
	verve_mr_cache_init(&cache, dev);
}

static struct verve_mr_region *get(unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get(&cache, buffer, sizeof(buffer), access, &region), 0);
	return region;
}

static struct verve_mr_cache_stats stats(void)
{
	struct verve_mr_cache_stats now;

	verve_mr_cache_stats_get(&cache, &now);
	return now;
}

static uint64_t pinned(void)
{
	struct fake_net_stats now;

	fake_net_stats(&now);
	return now.pinned;
}

Test(odp, registrations_pin_nothing_and_are_not_kept)
{
	struct verve_mr_region *local, *remote;

	open_on(true, true, false);
	fake_net_memlock(0);
	local = get(VERVE_NET_LOCAL_WRITE);
	remote = get(both);
	cr_expect_eq(local->access, VERVE_NET_LOCAL_WRITE | VERVE_NET_ON_DEMAND);
	cr_expect_eq(remote->access, both | VERVE_NET_ON_DEMAND);
	cr_expect_eq(pinned(), 0);
	cr_expect_eq(stats().regions, 2);
	cr_expect_eq(stats().bytes, 0, "counted as what is pinned");
	verve_mr_cache_put(&cache, local);
	verve_mr_cache_put(&cache, remote);
	cr_expect_eq(stats().regions, 0);
	cr_expect_eq(stats().misses, 2);
}

Test(odp, one_region_serves_all_local_buffers)
{
	struct verve_mr_region *read, *written;
	struct fake_net_stats before, after;

	open_on(true, true, true);
	fake_net_stats(&before);
	read = get(0);
	written = get(VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(read, written);
	cr_expect_eq(read->shift, 0);
	cr_expect_eq(read->rkey, 0, "no peer reaches it");
	cr_expect(written->access & VERVE_NET_LOCAL_WRITE);
	verve_mr_cache_put(&cache, read);
	cr_expect_eq(get(VERVE_NET_LOCAL_WRITE), written, "it stays");
	fake_net_stats(&after);
	cr_expect_eq(after.regs, before.regs);
	cr_expect_eq(stats().hits, 3);
	cr_expect_eq(stats().misses, 0);
	cr_expect_eq(stats().regions, 0);
}

Test(odp, what_peers_reach_is_registered_as_far_as_it_was_asked)
{
	struct verve_mr_region *region, *own;
	uint32_t base;

	open_on(true, true, true);
	region = get(VERVE_NET_REMOTE_READ);
	cr_expect_eq(region->addr, buffer);
	cr_expect_eq(region->len, sizeof(buffer));
	cr_expect_eq(region->access, VERVE_NET_REMOTE_READ | VERVE_NET_ON_DEMAND);
	verve_mr_cache_put(&cache, region);
	/* A region of the application. */
	cr_assert_eq(verve_mr_cache_get_exact(&cache, buffer + 1, 10, 0, NULL, &own), 0);
	cr_expect_eq(own->addr, buffer + 1);
	cr_expect_eq(own->len, 10);
	verve_mr_cache_put(&cache, own);
	cr_assert_eq(verve_mr_cache_get_exact(&cache, buffer + 1, 10, both, &base, &own), 0);
	cr_expect_eq(base, (uintptr_t)(buffer + 1) % 4096);
	verve_mr_cache_put(&cache, own);
}

Test(odp, atomics_of_peers_are_pinned_where_the_device_cannot)
{
	struct verve_mr_region *region;

	open_on(true, false, false);
	region = get(both | VERVE_NET_REMOTE_ATOMIC);
	cr_expect_eq(region->access, both | VERVE_NET_REMOTE_ATOMIC);
	cr_expect_eq(pinned(), sizeof(buffer));
	cr_expect_eq(stats().bytes, sizeof(buffer));
	verve_mr_cache_put(&cache, region);
	verve_mr_cache_put(&cache, get(both));
	cr_expect_eq(stats().bytes, 0);
}

Test(odp, devices_without_it_pin_and_keep)
{
	open_on(false, false, false);
	verve_mr_cache_put(&cache, get(VERVE_NET_LOCAL_WRITE));
	cr_expect_eq(stats().regions, 1, "kept");
	verve_mr_cache_put(&cache, get(VERVE_NET_LOCAL_WRITE));
	cr_expect_eq(stats().hits, 1);
	cr_expect_eq(pinned(), stats().bytes);
}

Test(odp, memory_is_not_paged_on_demand_unasked)
{
	struct verve_mr_region *region;

	verve_config.odp = "off";
	open_on(true, true, true);
	region = get(VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(region->access, VERVE_NET_LOCAL_WRITE);
	cr_expect_geq(pinned(), sizeof(buffer));
	verve_mr_cache_put(&cache, region);
}

Test(odp, buffers_are_registered_where_all_memory_cannot_be)
{
	struct fake_net_config config;
	struct verve_mr_region *region;

	fake_net_config_default(&config);
	config.limits.odp_rc = config.limits.odp_implicit = true;
	fake_net_start(&config);
	cr_assert_eq(verve_net_device_open("fake0", 1, NULL, &dev), 0);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	verve_mr_cache_init(&cache, dev);
	region = get(VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(region->len, sizeof(buffer));
	cr_expect_eq(region->access, VERVE_NET_LOCAL_WRITE | VERVE_NET_ON_DEMAND);
	verve_mr_cache_put(&cache, region);
}
