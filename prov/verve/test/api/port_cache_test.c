/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo keeps the list of ports: how often it looks at devices, and that it is never stale. */
#include "api/port_cache.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <rdma/fabric.h>

#include "../support/child.h"
#include "../support/fake_net.h"
#include "../support/fake_world.h"
#include "api/info.h"
#include "api/prov.h"
#include "base/log.h"
#include "fixture.h"

enum { CALLS = 1000, THREADS = 4 };

static const uint64_t second = 1000000000;

static void setup(void)
{
	verve_log_provider = &verve_prov;
	fake_net_stamps();
}

static void teardown(void)
{
	verve_port_cache_clear();
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(port_cache, .init = setup, .fini = teardown);

/* Lists of ports that were made since the last call. */
static uint64_t made(void)
{
	static uint64_t before;
	struct fake_net_stats stats;
	uint64_t lists;

	fake_net_stats(&stats);
	lists = stats.port_lists - before;
	before = stats.port_lists;
	return lists;
}

/* Number of infos that fi_getinfo answers. */
static int getinfo(void)
{
	struct fi_info *list = NULL;
	int count = 0, ret;

	ret = verve_info_get(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &list);
	cr_assert(ret == 0 || ret == -FI_ENODATA);
	for (const struct fi_info *info = list; info; info = info->next)
		count++;
	fi_freeinfo(list);
	return count;
}

/* Long after any change, with a list that is kept. */
static int settle(void)
{
	int count;

	getinfo();
	fake_net_advance(3 * second);
	count = getinfo();
	made();
	return count;
}

Test(port_cache, devices_are_looked_at_once_and_once_more_later)
{
	int count = getinfo();

	for (int i = 0; i < CALLS; i++)
		cr_expect_eq(getinfo(), count);
	cr_expect_eq(made(), 1);
	fake_net_advance(3 * second);
	for (int i = 0; i < CALLS; i++)
		cr_expect_eq(getinfo(), count);
	cr_expect_eq(made(), 1, "the first list may have been made too early");
	fake_net_advance(1000 * second);
	getinfo();
	cr_expect_eq(made(), 0);
}

Test(port_cache, new_address_is_seen_at_once)
{
	int count;

	fake_net_host_addrs(0, 1, 1);
	count = settle();
	fake_net_host_addrs(0, 2, 2);
	cr_expect_eq(getinfo(), count + 1);
	cr_expect_eq(made(), 1);
	fake_net_host_addrs(0, 1, 1);
	cr_expect_eq(getinfo(), count);
}

/* The address is there, its GID is not yet: the list without it is not kept. */
Test(port_cache, gid_that_comes_after_its_address_is_seen_at_once)
{
	int count;

	fake_net_host_addrs(0, 1, 1);
	count = settle();
	fake_net_host_addrs(0, 2, 1);
	cr_expect_eq(getinfo(), count);
	fake_net_advance(second);
	cr_expect_eq(getinfo(), count);
	fake_net_host_addrs(0, 2, 2);
	cr_expect_eq(getinfo(), count + 1);
	fake_net_advance(3 * second);
	made();
	cr_expect_eq(getinfo(), count + 1);
	cr_expect_eq(getinfo(), count + 1);
	cr_expect_eq(made(), 1);
}

Test(port_cache, link_that_goes_down_or_up_is_seen_at_once)
{
	int count;

	fake_net_port_reject(0, "port is DOWN: ip link set fakenet0 up");
	count = settle();
	fake_net_port_reject(0, NULL);
	cr_expect_gt(getinfo(), count);
	fake_net_port_reject(0, "port is DOWN: ip link set fakenet0 up");
	cr_expect_eq(getinfo(), count);
}

Test(port_cache, removed_device_is_seen_at_once)
{
	int count = settle();

	fake_net_device_remove(0);
	cr_expect_lt(getinfo(), count);
}

Test(port_cache, child_after_fork_goes_on)
{
	int count = settle();
	pid_t pid = fork();

	if (!pid) {
		int child = getinfo() == count && !made();

		fake_net_host_addrs(0, 1, 1);
		_exit(child && getinfo() == count - 1 ? 0 : 1);
	}
	child_expect_success(pid);
}

/*
 * A GID may go where the stamp shows nothing: to the other device of a bond that fails over, or to
 * another type. Whoever opens the port finds out.
 */
Test(port_cache, port_that_cannot_be_opened_is_looked_at_anew)
{
	struct fid_domain *domain;
	struct fixture fix;
	int count;

	fake_net_host_addrs(0, 2, 2);
	count = settle();
	fixture_init(&fix, FI_VERSION(1, 17));
	while (fix.info && fix.info->addr_format != FI_SOCKADDR_IN6)
		fix.info = fix.info->next;
	cr_assert_not_null(fix.info);
	fake_net_host_addrs(0, 2, 1);
	cr_expect_eq(fi_domain(fix.fabric, fix.info, &domain, NULL), -FI_ENODEV);
	cr_expect_eq(getinfo(), count - 1);
	cr_expect_eq(fi_close(&fix.fabric->fid), 0);
	fi_freeinfo(fix.list);
}

/* A list that is lent stays while another takes its place. */
Test(port_cache, lent_list_outlives_its_place)
{
	struct verve_port_list *old, *new;

	settle();
	cr_assert_eq(verve_port_cache_get(&old), 0);
	fake_net_device_remove(1);
	cr_assert_eq(verve_port_cache_get(&new), 0);
	cr_expect_neq(old, new);
	cr_expect_eq(old->count, new->count + 1);
	cr_expect_str_not_empty(old->ports[old->count - 1].device);
	verve_port_cache_put(old);
	verve_port_cache_put(new);
}

static void *borrow(void *arg)
{
	(void)arg;
	for (int i = 0; i < CALLS; i++) {
		struct verve_port_list *list;

		cr_assert_eq(verve_port_cache_get(&list), 0);
		cr_assert_gt(list->count, 0);
		verve_port_cache_put(list);
	}
	return NULL;
}

Test(port_cache, threads_share_the_kept_list)
{
	pthread_t threads[THREADS];

	settle();
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, borrow, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(made(), 0);
}

static void reject_unopened(const char *reason, bool reason_may_end)
{
	fake_net_port_reject(1, reason);
	fake_world.hosts[1].unopened = true;
	fake_world.hosts[1].reason_may_end = reason_may_end;
}

/* A container has the file of one device, and sees the names of all. */
Test(port_cache, device_that_cannot_be_opened_is_no_reason_to_open_others_anew)
{
	reject_unopened("there is no /dev/infiniband/uverbs1", false);
	settle();
	getinfo();
	getinfo();
	cr_expect_eq(made(), 0);
}

Test(port_cache, list_with_a_reason_that_the_stamp_does_not_show_is_not_kept)
{
	reject_unopened("no memory to open it", true);
	settle();
	getinfo();
	getinfo();
	cr_expect_eq(made(), 2);
}

/* The caller probably waits for one. */
Test(port_cache, list_without_a_usable_port_is_not_kept)
{
	for (uint32_t i = 0; i < 2; i++)
		fake_net_port_reject(i, "its device cannot be opened");
	settle();
	getinfo();
	getinfo();
	cr_expect_eq(made(), 2);
}
