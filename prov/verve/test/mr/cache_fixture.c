/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration cache: opening it, getting and putting regions, the counts. */
#include "cache_fixture.h"

#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "base/log.h"
#include "net/device.h"

static struct fi_provider provider = {.name = "verve"};
struct verve_net_device *dev;
struct verve_mr_cache cache;
_Alignas(PAGE) char pages[64 * PAGE];

void cache_open(void)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_gt(count, 0);
	verve_config.mr_cache_count = 8;
	verve_config.mr_cache_size = 16 * PAGE;
	cr_assert_eq(verve_net_device_open(list->device, list->port_num, NULL, &dev), 0);
	verve_net_port_list_free(list, count);
	verve_mr_cache_init(&cache, dev);
}

void cache_close(void)
{
	verve_mr_cache_fini(&cache);
	verve_net_device_close(dev);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

struct verve_mr_region *cache_get(void *addr, size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get(&cache, addr, len, access, &region), 0);
	return region;
}

struct verve_mr_cache_stats cache_stats(void)
{
	struct verve_mr_cache_stats now;

	verve_mr_cache_stats_get(&cache, &now);
	return now;
}

void cache_open_kept(void)
{
	if (strcmp(verve_config.mr_cache, "strict"))
		verve_config.mr_cache = "on";
	fake_net_watch_allow(true);
	cache_open();
	cr_assert_not_null(cache.store);
}

TestSuite(kept, .init = cache_open_kept, .fini = cache_close);

void cache_use(void *addr, size_t len, unsigned access)
{
	verve_mr_cache_put(&cache, cache_get(addr, len, access));
}

struct verve_mr_region *cache_get_exact(void *addr, size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_cache_get_exact(&cache, addr, len, access, NULL, &region), 0);
	cr_expect_eq(region->addr, addr);
	cr_expect_eq(region->len, len);
	cr_expect_eq(region->access, access);
	return region;
}

void cache_reopen_with_room(void)
{
	verve_mr_cache_fini(&cache);
	verve_config.mr_cache_count = 1024;
	verve_config.mr_cache_size = 1024 * PAGE;
	verve_mr_cache_init(&cache, dev);
}
