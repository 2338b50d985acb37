/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading pages (base/page.h): what all processes of this host tell. A page is taken for bytes that
 * anybody may have written: counts are bounded, texts end and have printable ASCII alone, and the
 * kernel says which process has written the page.
 */
#ifndef VERVE_UTIL_STAT_READ_H
#define VERVE_UTIL_STAT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/page.h"
#include "base/rundir.h"
#include "xport/stat_values.h"

/* An entry, copied. Its kind is one of enum verve_stat_kind. */
struct verve_stat_entry {
	uint32_t index; /* place in the page; no other entry of the page has it */
	struct verve_page_entry page;
};

struct verve_stat_process {
	uid_t uid;
	pid_t pid;
	char name[VERVE_RUNDIR_NAME]; /* of the page's file; no other page of the user has it */
	char command[VERVE_PAGE_SHORT];
	uint64_t hidden; /* objects without an entry */
	uint32_t places; /* of the page that were read, the first ones */
	uint32_t unread; /* places that were in use once and were not read */
	struct verve_stat_entry *entries; /* in the order of their places */
	struct verve_stat_entry **by_id;  /* sorted by kind, then id; NULL without entries */
	struct verve_stat_entry **peers;  /* sorted by owner, then place; NULL without entries */
	size_t count, peer_count;
};

enum { VERVE_STAT_PAGES_MAX = 4096 }; /* names of one user that are read */

struct verve_stat_host {
	uint64_t when; /* nanoseconds, as in events */
	struct verve_stat_process *processes;
	size_t count;
	size_t reaped; /* pages of dead processes that were removed */
	size_t foreign; /* pages of live processes that another version of verve has written */
};

/*
 * Reads all pages of a folder; NULL: of the caller's folder, or of all users' folders if the caller
 * is root. Removes the pages of dead processes. A folder that is not there has no pages.
 * entries_max: entries of one folder, not root's own, that are read at most, the first ones of each
 * page; pages share them, so that a page with few entries is read whole. SIZE_MAX: all.
 * Says on standard error if a user has VERVE_STAT_PAGES_MAX files, so that some may not be read,
 * and if entries are not read.
 * -FI_EPERM: the folder is another user's, or open to others. Ends the program without memory. The
 * caller frees the host with verve_stat_host_fini, after an error, too.
 */
int verve_stat_host_read(struct verve_stat_host *host, const char *folder, size_t entries_max);
void verve_stat_host_fini(struct verve_stat_host *host);

/* The entry of the process to which this one belongs; NULL: it is not in the page. */
const struct verve_stat_entry *verve_stat_owner(const struct verve_stat_process *process,
						const struct verve_stat_entry *entry);
/*
 * The peers of the endpoint, *count of them, in the order of their places. None if the page gives
 * the endpoint's id to several, and these peers to another one of them.
 */
struct verve_stat_entry *const *verve_stat_peers(const struct verve_stat_process *process,
						 const struct verve_stat_entry *endpoint,
						 size_t *count);
/*
 * The peer with which a process of the host talks over this queue pair, of this port of a device;
 * NULL: none.
 */
const struct verve_stat_entry *verve_stat_peer_of(const struct verve_stat_host *host,
						  const char *device, uint32_t port,
						  uint32_t qp_num);
/* The same entry in an earlier look (of verve_stat_host_read); NULL: it was not there. */
const struct verve_stat_entry *verve_stat_before(const struct verve_stat_host *before,
						 const struct verve_stat_process *process,
						 const struct verve_stat_entry *entry);
/* False: the earlier look did not read the entry's place. */
bool verve_stat_was_read(const struct verve_stat_host *before,
			 const struct verve_stat_process *process,
			 const struct verve_stat_entry *entry);
/* The name of a peer's state. */
const char *verve_stat_state_name(const struct verve_stat_entry *peer);
/*
 * Copies the entry's events to events of VERVE_PAGE_EVENTS, the oldest first; leaves out those that
 * are none. Returns how many.
 */
size_t verve_stat_events(const struct verve_stat_entry *entry, struct verve_page_event *events);

#endif
