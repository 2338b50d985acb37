/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote keys: what a link remembers of the peer's keys, as far as the peer has told (rma/key.h asks). An rkey opens
 * memory by itself; an exported key (one that the application chose, or of several segments) means the segments
 * that its owner named. The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_REMOTE_KEY_H
#define VERVE_XPORT_REMOTE_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "mr/segments.h"

struct verve_net_wr;
struct verve_wire_segment;

enum { VERVE_REMOTE_KEYS_MAX = 64 }; /* that a link remembers; the least recently used go */

struct verve_remote_key {
	UT_hash_handle hh;
	uint64_t key;
	uint64_t generation;
	uint32_t access; /* VERVE_WIRE_KEY_* */
	uint32_t total;	 /* segments; 0: no answer yet */
	uint32_t filled; /* of them; all: it may be used */
	struct verve_mr_segment *segments; /* from malloc */
};

/* Of a link, zeroed at first. */
struct verve_remote_keys {
	struct verve_remote_key *keys; /* uthash by key, the least recently used first */
	uint32_t count;
	uint32_t asked;	  /* questions of ours that the peer has not answered */
	uint32_t answers; /* questions of the peer that we have not answered */
	uint64_t told;	  /* a bit for each key that the peer asked for, by its hash */
	uint64_t told_last; /* the highest generation of a key that the peer was told */
	bool chosen;	  /* the peer's application chooses its keys: none is an rkey */
};

/* The peer's key is one to ask for. */
bool verve_remote_key_is_exported(const struct verve_remote_keys *keys, uint64_t key);
/* NULL: it was never asked for, or is forgotten. */
struct verve_remote_key *verve_remote_key_find(const struct verve_remote_keys *keys, uint64_t key);
/* A new one without an answer; the least recently used known one makes place. NULL: no memory. */
struct verve_remote_key *verve_remote_key_add(struct verve_remote_keys *keys, uint64_t key);
/* It was used last. */
void verve_remote_key_touch(struct verve_remote_keys *keys, struct verve_remote_key *key);
void verve_remote_key_drop(struct verve_remote_keys *keys, struct verve_remote_key *key);
/* The link closes. */
void verve_remote_key_drop_all(struct verve_remote_keys *keys);

/* The answer is complete. */
static inline bool verve_remote_key_is_known(const struct verve_remote_key *key)
{
	return key->total && key->filled == key->total;
}

/* What a known key opens; valid as long as the key is remembered. */
struct verve_mr_segments verve_remote_key_segments(const struct verve_remote_key *key);
/*
 * Where offset bytes into segment lie: into wr's remote_addr and rkey. Its key is known. Returns the bytes that follow
 * in one piece.
 */
uint64_t verve_remote_key_locate(const struct verve_remote_keys *keys,
				 const struct verve_wire_segment *segment, uint64_t offset,
				 struct verve_net_wr *wr);

#endif
