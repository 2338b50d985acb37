/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote keys: the cache, the oldest key first, and addresses behind a key. */
#define HASH_NONFATAL_OOM 1

#include "xport/remote_key.h"

#include <stdlib.h>

#include "mr/keytab.h"
#include "net/qp.h"
#include "xport/wire.h"

struct verve_remote_key *verve_remote_key_find(const struct verve_remote_keys *keys,
					       uint64_t wanted)
{
	struct verve_remote_key *key;

	HASH_FIND(hh, keys->keys, &wanted, sizeof(wanted), key);
	return key;
}

struct verve_mr_segments verve_remote_key_segments(const struct verve_remote_key *key)
{
	return (struct verve_mr_segments) {key->segments, key->total,
					   key->access & VERVE_WIRE_KEY_VIRT};
}

void verve_remote_key_drop(struct verve_remote_keys *keys, struct verve_remote_key *key)
{
	HASH_DEL(keys->keys, key);
	keys->count--;
	free(key->segments);
	free(key);
}

void verve_remote_key_drop_all(struct verve_remote_keys *keys)
{
	struct verve_remote_key *key, *next;

	HASH_ITER(hh, keys->keys, key, next)
		verve_remote_key_drop(keys, key);
}

/* Adds the key behind all others, as the most recently used one. False: no memory. */
static bool key_append(struct verve_remote_keys *keys, struct verve_remote_key *key)
{
	HASH_ADD(hh, keys->keys, key, sizeof(key->key), key);
	keys->count += key->hh.tbl != NULL;
	return key->hh.tbl;
}

/* Adding the key again allocates no memory, because the table has other keys. */
void verve_remote_key_touch(struct verve_remote_keys *keys, struct verve_remote_key *key)
{
	if (!key->hh.next)
		return;
	HASH_DEL(keys->keys, key);
	HASH_ADD(hh, keys->keys, key, sizeof(key->key), key);
}

/* Drops the least recently used key of a full cache. A key whose answer is under way stays. */
static void make_room(struct verve_remote_keys *keys)
{
	struct verve_remote_key *key, *next;

	if (keys->count < VERVE_REMOTE_KEYS_MAX)
		return;
	HASH_ITER(hh, keys->keys, key, next)
		if (verve_remote_key_is_known(key)) {
			verve_remote_key_drop(keys, key);
			return;
		}
}

struct verve_remote_key *verve_remote_key_add(struct verve_remote_keys *keys, uint64_t wanted)
{
	struct verve_remote_key *key = calloc(1, sizeof(*key));

	if (!key)
		return NULL;
	key->key = wanted;
	make_room(keys);
	if (key_append(keys, key))
		return key;
	free(key);
	return NULL;
}

uint64_t verve_remote_key_locate(const struct verve_remote_keys *keys,
				 const struct verve_wire_segment *segment, uint64_t offset,
				 struct verve_net_wr *wr)
{
	const struct verve_remote_key *key = verve_remote_key_find(keys, segment->key);
	struct verve_mr_segments segments;
	struct verve_mr_segment rest;
	uint64_t position, left = segment->len - offset;

	wr->remote_addr = 0;
	wr->rkey = 0;
	if (!left) /* no byte is moved, so no key is needed */
		return 0;
	segments = verve_remote_key_segments(key);
	verve_mr_segments_find(&segments, segment->addr, segment->len, &position);
	verve_mr_segments_rest(&segments, position + offset, &rest);
	wr->remote_addr = rest.addr;
	wr->rkey = rest.rkey;
	return rest.len < left ? rest.len : left;
}
