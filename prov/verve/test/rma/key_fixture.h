/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of keys: node a reads and writes regions of node b by keys that b exports.
 * a uses the array local; the regions of b lie in the array memory.
 */
#ifndef VERVE_TEST_RMA_KEY_FIXTURE_H
#define VERVE_TEST_RMA_KEY_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../proto/pair.h"
#include "mr/keytab.h"
#include "mr/region.h"
#include "rma/key.h"
#include "rma/rma.h"

enum { LONGEST = 256, MEMORY = 1 << 16, GAP = 16, MANY = 200 };

/* A region of b: segments in memory, from the last to the first, with gaps. */
struct exported {
	struct verve_mr_key key;
	struct verve_mr_segment segments[VERVE_MR_SEGMENTS_MAX];
	struct verve_mr_region *regions[VERVE_MR_SEGMENTS_MAX];
	size_t len;
};

extern struct verve_mr_keytab keytab; /* of b */
extern unsigned char local[MEMORY], memory[MEMORY];
extern const unsigned both; /* remote reads and remote writes */
extern struct exported x;   /* free for each test */

/* Exports a region of count segments with these lengths. virt: peers use addresses, not offsets. */
void key_export(struct exported *of, uint64_t key, uint32_t count, const size_t *lens, bool virt,
		unsigned access);
/* Exports a region of one segment of len bytes, by offset, for both accesses. */
void key_export_one(struct exported *of, uint64_t key, size_t len);
void key_unexport(struct exported *of);
/* The byte at a position of an exported region; the address that peers use for it. */
unsigned char *key_byte(const struct exported *of, size_t position);
uint64_t key_addr(const struct exported *of, size_t position);

/* a begins an operation between buf and the remote segments. Returns 0 or a negative FI errno. */
int key_start(enum verve_rma_kind kind, void *buf, const struct verve_wire_segment *to,
	      size_t count, uint32_t flags);
/* The same between local and one remote segment. */
void key_begin(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len);
/* key_begin, and the operation completes. */
void key_finish(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len);
/*
 * key_begin, and the operation is refused for a reason that contains the text why. The connection
 * lives on, and no query is left over.
 */
void key_expect_refused(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len,
			const char *why);

#endif
