/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Page: the counters of this process, for verve_stat(1): one file in the user's run directory
 * (base/rundir.h), mapped into memory. Only the user can read it. A reader never makes the process
 * wait. The page is there while it has a user; without it, nothing else changes.
 *
 * The file is a head and an array of entries of one size. An entry belongs to its getter, whose
 * lock protects it. What the numbers mean is the getter's matter.
 *
 * The page has a lock of its own, the last of all. Any thread. A child after fork(2) has no page,
 * and no part of the parent's in its memory.
 */
#ifndef VERVE_BASE_PAGE_H
#define VERVE_BASE_PAGE_H

#include <atomic_ops.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VERVE_PAGE_LAYOUT = 3, /* changes with the layout of the file, or the numbers' meaning */
	VERVE_PAGE_ENTRIES = 4096, /* entries at most; further ones are only counted */
	VERVE_PAGE_VALUES = 128,	   /* numbers of an entry */
	VERVE_PAGE_EVENTS = 32,	   /* of an entry, the last ones */
	VERVE_PAGE_TEXT = 96,	   /* bytes of a text, its end included */
	VERVE_PAGE_SHORT = 16,	   /* bytes of a short text, likewise */
};

struct verve_page_event {
	uint64_t when; /* verve_net_now() */
	uint32_t what, id;
	uint32_t error, status;
};

struct verve_page_entry {
	AO_t changes;	/* odd while the texts or the owner change, or an event is written */
	uint32_t kind;	/* 0: the entry is free */
	uint32_t id;	/* of the entry: no other one of this process ever had it; from 1 */
	uint32_t owner; /* id of the entry to which this one belongs; 0: none */
	uint32_t unused[3];
	char name[VERVE_PAGE_TEXT], text[VERVE_PAGE_TEXT];
	AO_t values[VERVE_PAGE_VALUES];
	AO_t event_count; /* ever; the last one is at (event_count - 1) % VERVE_PAGE_EVENTS */
	struct verve_page_event events[VERVE_PAGE_EVENTS];
};

/* Where entry 0 would be. */
struct verve_page_head {
	char magic[VERVE_PAGE_SHORT];
	uint32_t layout, entry_size;
	uint32_t pid, unused;
	char command[VERVE_PAGE_SHORT]; /* as prctl(2), PR_GET_NAME, says */
	AO_t count;			/* entries behind the head that were ever in use */
	AO_t hidden; /* objects that have no entry now, because VERVE_PAGE_ENTRIES are in use */
};

extern const char verve_page_magic[VERVE_PAGE_SHORT];

/*
 * Makes the page if the process has none; also removes the pages of the user's dead processes.
 * False: there is none, and nothing else of the page may be called but this and
 * verve_page_remove. The caller that got
 * true calls verve_page_close. Logs why there is none, once.
 */
bool verve_page_open(void);
/* The last user's call removes the page. */
void verve_page_close(void);
/* At the process's end: removes the page, if there is one. Its memory stays mapped. */
void verve_page_remove(void);

/*
 * An entry with this kind, owner and name, everything else zero. key, if not NULL: a second get of
 * the kind with this key gives the same entry; several callers then write its numbers, by
 * verve_page_set alone. NULL: there is no place, and the object is counted as hidden.
 */
struct verve_page_entry *verve_page_get(uint32_t kind, uint32_t owner, const char *name,
					const void *key);
/* Gives an entry back, once for each get. entry NULL: the object that was hidden is no more. */
void verve_page_put(struct verve_page_entry *entry);

/* A text longer than its place is cut. */
void verve_page_set_name(struct verve_page_entry *entry, const char *name);
void verve_page_set_text(struct verve_page_entry *entry, const char *text);
void verve_page_add_event(struct verve_page_entry *entry, const struct verve_page_event *event);

static inline void verve_page_set(struct verve_page_entry *entry, int index, uint64_t value)
{
	AO_store(&entry->values[index], value);
}

#endif
