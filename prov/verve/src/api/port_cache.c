/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cache of the list of ports. A stamp (net/stamp.h), taken at each call, says whether the host has
 * changed. The kernel updates GID tables by a work queue, a moment after the change that the stamp
 * shows: so a list is kept only if it was made some time after the last change. At the first call
 * nobody knows when the last change was; that list is used for the same time and then made again.
 */
#include "api/port_cache.h"

#include <atomic_ops.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/stamp.h"
#include "net/sys.h"

/* Nanoseconds after a change in which GID tables may still follow. */
static const uint64_t settling = 2000000000;

struct entry {
	struct verve_port_list list; /* must be first */
	struct verve_net_stamp stamp; /* taken before the list was made */
	uint64_t made; /* nanoseconds */
	volatile AO_t references; /* borrowers, and the cache */
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
/* All guarded by cache_lock. */
static struct entry *kept; /* NULL: none */
static struct verve_net_stamp last; /* the newest stamp */
static uint64_t since; /* when the newest stamp was first seen, nanoseconds */
static unsigned stamps; /* 0: no stamp was taken yet; 1: all were equal; 2: there was a change */

/* A thread that the child does not have may have held the lock at the fork(2). */
static void in_child(void)
{
	pthread_mutex_init(&cache_lock, NULL);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static bool stamp_equal(const struct verve_net_stamp *a, const struct verve_net_stamp *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void entry_put(struct entry *entry)
{
	if (entry && AO_fetch_and_sub1_full(&entry->references) == 1) {
		verve_net_port_list_free(entry->list.ports, entry->list.count);
		free(entry);
	}
}

/* cache_lock is held. */
static void note_stamp(const struct verve_net_stamp *stamp, uint64_t now)
{
	if (stamps && stamp_equal(stamp, &last))
		return;
	last = *stamp;
	since = now;
	stamps += stamps < 2;
}

/* The kept list, if it is still true; NULL: it must be made anew. cache_lock is held. */
static struct entry *find_kept(const struct verve_net_stamp *stamp, uint64_t now)
{
	if (!kept || !stamp_equal(&kept->stamp, stamp))
		return NULL;
	if (kept->made < since + settling && (stamps > 1 || now >= kept->made + settling))
		return NULL;
	AO_fetch_and_add1(&kept->references);
	return kept;
}

/*
 * True if the list may be kept. A reason that is not in the stamp may be over at the next call, and
 * nothing would tell. Without a usable port, the caller probably waits for one.
 */
static bool may_keep(const struct verve_port_list *list)
{
	bool any = false;

	for (size_t i = 0; i < list->count; i++) {
		if (list->ports[i].reason_may_end)
			return false;
		any |= list->ports[i].usable;
	}
	return any;
}

static void entry_keep(struct entry *entry)
{
	struct entry *old;

	AO_fetch_and_add1(&entry->references);
	pthread_mutex_lock(&cache_lock);
	old = kept;
	kept = entry;
	pthread_mutex_unlock(&cache_lock);
	entry_put(old);
}

static int make_entry(struct entry **made)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int ret;

	if (!entry)
		return -FI_ENOMEM;
	ret = verve_net_port_list(&entry->list.ports, &entry->list.count);
	if (ret) {
		free(entry);
		return ret;
	}
	entry->references = 1;
	*made = entry;
	return 0;
}

int verve_port_cache_get(struct verve_port_list **list)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct verve_net_stamp stamp;
	bool stamped = verve_net_stamp_take(&stamp);
	uint64_t now = verve_net_now();
	struct entry *entry = NULL;
	int ret;

	pthread_once(&once, register_fork);
	if (stamped) {
		pthread_mutex_lock(&cache_lock);
		note_stamp(&stamp, now);
		entry = find_kept(&stamp, now);
		pthread_mutex_unlock(&cache_lock);
	}
	if (!entry) {
		ret = make_entry(&entry);
		if (ret)
			return ret;
		entry->stamp = stamp;
		entry->made = now;
		if (stamped && may_keep(&entry->list))
			entry_keep(entry);
	}
	*list = &entry->list;
	return 0;
}

void verve_port_cache_put(struct verve_port_list *list)
{
	entry_put((struct entry *)list);
}

void verve_port_cache_clear(void)
{
	struct entry *old;

	pthread_mutex_lock(&cache_lock);
	old = kept;
	kept = NULL;
	stamps = 0;
	pthread_mutex_unlock(&cache_lock);
	entry_put(old);
}
