/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address table. The slots are in chunks; each further chunk doubles the table. A chunk is
 * allocated once and stays until fini.
 *
 * A slot's address is written under the lock and read without it. The slot's sequence count is odd
 * while the address changes. A reader that finds the count odd, or changed, reads again.
 */
#define HASH_NONFATAL_OOM 1

#include "conn/addrvec.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { ADDR_WORDS = (sizeof(struct verve_addr) + sizeof(AO_t) - 1) / sizeof(AO_t) };

struct verve_addrvec_slot {
	volatile AO_t sequence;		 /* odd while words change */
	volatile AO_t words[ADDR_WORDS]; /* the address, zero padded: the hash's key; all 0: free */
	uint64_t index;
	uint64_t references; /* insertions less removals */
	UT_hash_handle hh;
};

/* Chunk 0 has the first 2^FIRST_BITS slots; chunk n > 0 as many as all chunks before it. */
static unsigned chunk_of(uint64_t index)
{
	if (index >> VERVE_ADDRVEC_FIRST_BITS == 0)
		return 0;
	return 64 - (unsigned)__builtin_clzll(index >> VERVE_ADDRVEC_FIRST_BITS);
}

static uint64_t chunk_start(unsigned chunk)
{
	return chunk ? 1ull << (VERVE_ADDRVEC_FIRST_BITS + chunk - 1) : 0;
}

static uint64_t chunk_size(unsigned chunk)
{
	return chunk ? chunk_start(chunk) : 1ull << VERVE_ADDRVEC_FIRST_BITS;
}

/* NULL: the chunk of that index was never allocated. */
static struct verve_addrvec_slot *slot_of(const struct verve_addrvec *vec, uint64_t index)
{
	struct verve_addrvec_slot *chunk;
	unsigned n = chunk_of(index);

	if (n >= VERVE_ADDRVEC_CHUNKS)
		return NULL;
	chunk = (struct verve_addrvec_slot *)AO_load_acquire(&vec->chunks[n]);
	return chunk ? chunk + (index - chunk_start(n)) : NULL;
}

static void addr_pack(AO_t *words, const struct verve_addr *addr)
{
	memset(words, 0, ADDR_WORDS * sizeof(*words));
	memcpy(words, addr, verve_addr_len(addr));
}

/* The words are stored with release: a reader that sees a new word also sees the odd count. */
static void slot_write(struct verve_addrvec_slot *slot, const AO_t *words)
{
	AO_t sequence = AO_load(&slot->sequence);

	AO_store(&slot->sequence, sequence + 1);
	for (size_t i = 0; i < ADDR_WORDS; i++)
		AO_store_release(&slot->words[i], words[i]);
	AO_store_release(&slot->sequence, sequence + 2);
}

void verve_addrvec_init(struct verve_addrvec *vec)
{
	memset(vec, 0, sizeof(*vec));
	verve_lock_init(&vec->lock, false);
}

void verve_addrvec_fini(struct verve_addrvec *vec)
{
	HASH_CLEAR(hh, vec->by_addr);
	for (unsigned i = 0; i < VERVE_ADDRVEC_CHUNKS; i++)
		free((void *)AO_load(&vec->chunks[i]));
	free(vec->used);
	verve_lock_fini(&vec->lock);
}

static struct verve_addrvec_slot *slot_find(struct verve_addrvec *vec, const AO_t *words)
{
	struct verve_addrvec_slot *slot;

	HASH_FIND(hh, vec->by_addr, words, ADDR_WORDS * sizeof(*words), slot);
	return slot;
}

/* Finds the lowest free index. The caller marks the index as used. */
static int index_find_free(struct verve_addrvec *vec, uint64_t *index)
{
	size_t words = vec->used_words ? vec->used_words * 2 : 1;
	uint64_t *used;

	while (vec->first_word < vec->used_words && vec->used[vec->first_word] == UINT64_MAX)
		vec->first_word++;
	if (vec->first_word == vec->used_words) {
		used = realloc(vec->used, words * sizeof(*used));
		if (!used)
			return -FI_ENOMEM;
		memset(used + vec->used_words, 0, (words - vec->used_words) * sizeof(*used));
		vec->used = used;
		vec->used_words = words;
	}
	*index = vec->first_word * 64 + (uint64_t)__builtin_ctzll(~vec->used[vec->first_word]);
	return 0;
}

/* The slot of an index; allocates its chunk if needed. NULL: no memory, or the table is full. */
static struct verve_addrvec_slot *slot_make(struct verve_addrvec *vec, uint64_t index)
{
	struct verve_addrvec_slot *slot = slot_of(vec, index);
	unsigned n = chunk_of(index);
	void *chunk;

	if (slot || n >= VERVE_ADDRVEC_CHUNKS)
		return slot;
	chunk = calloc(chunk_size(n), sizeof(*slot));
	if (!chunk)
		return NULL;
	AO_store_release(&vec->chunks[n], (AO_t)chunk);
	return slot_of(vec, index);
}

static int slot_insert(struct verve_addrvec *vec, const AO_t *words, uint64_t *fi_addr)
{
	struct verve_addrvec_slot *slot;
	uint64_t index;
	int ret;

	ret = index_find_free(vec, &index);
	if (ret)
		return ret;
	slot = slot_make(vec, index);
	if (!slot)
		return -FI_ENOMEM;
	slot_write(slot, words);
	HASH_ADD(hh, vec->by_addr, words, sizeof(slot->words), slot);
	if (!slot->hh.tbl) {
		slot_write(slot, (const AO_t[ADDR_WORDS]){0});
		return -FI_ENOMEM;
	}
	slot->index = index;
	slot->references = 1;
	vec->used[index / 64] |= 1ull << (index % 64);
	AO_fetch_and_add1_full(&vec->version);
	*fi_addr = index;
	return 0;
}

int verve_addrvec_insert(struct verve_addrvec *vec, const struct verve_addr *addr,
			 uint64_t *fi_addr)
{
	struct verve_addrvec_slot *slot;
	AO_t words[ADDR_WORDS];
	int ret = 0;

	addr_pack(words, addr);
	verve_lock_acquire(&vec->lock);
	slot = slot_find(vec, words);
	if (slot) {
		slot->references++;
		*fi_addr = slot->index;
	} else {
		ret = slot_insert(vec, words, fi_addr);
	}
	verve_lock_release(&vec->lock);
	return ret;
}

int verve_addrvec_remove(struct verve_addrvec *vec, uint64_t fi_addr)
{
	struct verve_addrvec_slot *slot;
	int ret = 0;

	verve_lock_acquire(&vec->lock);
	slot = slot_of(vec, fi_addr);
	if (!slot || !slot->references) {
		ret = -FI_EINVAL;
	} else if (!--slot->references) {
		HASH_DEL(vec->by_addr, slot);
		slot_write(slot, (const AO_t[ADDR_WORDS]){0});
		vec->used[fi_addr / 64] &= ~(1ull << (fi_addr % 64));
		if (fi_addr / 64 < vec->first_word)
			vec->first_word = fi_addr / 64;
		AO_fetch_and_add1_full(&vec->version);
		ret = 1;
	}
	verve_lock_release(&vec->lock);
	return ret;
}

bool verve_addrvec_get(const struct verve_addrvec *vec, uint64_t fi_addr, struct verve_addr *out)
{
	const struct verve_addrvec_slot *slot = slot_of(vec, fi_addr);
	AO_t words[ADDR_WORDS];
	AO_t sequence;

	if (!slot)
		return false;
	do {
		sequence = AO_load_acquire(&slot->sequence);
		for (size_t i = 0; i < ADDR_WORDS; i++)
			words[i] = AO_load_acquire(&slot->words[i]);
	} while (sequence & 1 || AO_load(&slot->sequence) != sequence);
	memcpy(out, words, sizeof(*out));
	return out->sa.sa_family != AF_UNSPEC;
}

uint64_t verve_addrvec_find(struct verve_addrvec *vec, const struct verve_addr *addr)
{
	struct verve_addrvec_slot *slot;
	AO_t words[ADDR_WORDS];
	uint64_t index = UINT64_MAX;

	addr_pack(words, addr);
	verve_lock_acquire(&vec->lock);
	slot = slot_find(vec, words);
	if (slot)
		index = slot->index;
	verve_lock_release(&vec->lock);
	return index;
}
