/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote keys: a link's cache of the peer's exported keys; rma/key.h asks the peer for them. An
 * rkey opens memory by itself. An exported key (one that the application chose, or that has several
 * segments) stands for segments, which only the peer knows. The engine's lock protects everything
 * here.
 */
#ifndef VERVE_XPORT_REMOTE_KEY_H
#define VERVE_XPORT_REMOTE_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "mr/keytab.h"
#include "mr/segments.h"

struct verve_net_wr;
struct verve_wire_segment;

enum { VERVE_REMOTE_KEYS_MAX = 64 }; /* keys of a link, at most */

struct verve_remote_key {
	UT_hash_handle hh;
	uint64_t key;
	uint64_t generation; /* the peer's, from KEY_REPLY; KEY_REVOKE names it */
	uint32_t access; /* VERVE_WIRE_KEY_* */
	uint32_t total;	 /* segments of the key; 0: the peer has not answered */
	uint32_t filled; /* segments that have arrived */
	struct verve_mr_segment *segments; /* total entries, from malloc; owned */
};

/* The cache of a link; zeroed when the link is opened. */
struct verve_remote_keys {
	struct verve_remote_key *keys; /* uthash by key, the least recently used first */
	uint32_t count;	  /* keys */
	uint32_t asked;	  /* queries of this side that the peer has not answered */
	uint32_t answers; /* queries of the peer that this side has not answered */
	uint64_t told;	  /* a bit, by the key's hash, for each key that the peer asked for */
	uint64_t told_last; /* the highest generation of a key that the peer was told */
	bool chosen;	  /* the peer's application chooses its keys: no key is an rkey */
};

/* True if the key is no rkey: its segments have to be asked for. */
static inline bool verve_remote_key_is_exported(const struct verve_remote_keys *keys, uint64_t key)
{
	return keys->chosen || key & VERVE_MR_KEY_EXPORTED;
}

/* The cached key, known or not. NULL: it was never asked for, or was dropped. */
struct verve_remote_key *verve_remote_key_find(const struct verve_remote_keys *keys, uint64_t key);
/*
 * Adds a key without an answer. A full cache drops its least recently used known key before. NULL:
 * no memory.
 */
struct verve_remote_key *verve_remote_key_add(struct verve_remote_keys *keys, uint64_t key);
/* Makes the key the most recently used one. */
void verve_remote_key_touch(struct verve_remote_keys *keys, struct verve_remote_key *key);
/* Removes the key and frees it with its segments. */
void verve_remote_key_drop(struct verve_remote_keys *keys, struct verve_remote_key *key);
/* Drops all keys: the link closes. */
void verve_remote_key_drop_all(struct verve_remote_keys *keys);

/* True if all segments have arrived. */
static inline bool verve_remote_key_is_known(const struct verve_remote_key *key)
{
	return key->total && key->filled == key->total;
}

/* The segments of a known key; valid until the key is dropped. */
struct verve_mr_segments verve_remote_key_segments(const struct verve_remote_key *key);
/*
 * Sets wr's remote_addr and rkey to the memory offset bytes into segment, whose key is known.
 * Returns the bytes from there on that this rkey reaches.
 */
uint64_t verve_remote_key_locate(const struct verve_remote_keys *keys,
				 const struct verve_wire_segment *segment, uint64_t offset,
				 struct verve_net_wr *wr);

#endif
