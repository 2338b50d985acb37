/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pattern: payload that can be checked byte for byte from (seed, offset), and buffers with a guard
 * behind them that shows a write past the end.
 */
#ifndef FABTESTS_PATTERN_H
#define FABTESTS_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void pattern_fill(void *buf, size_t len, uint64_t seed);
/* Every byte is as pattern_fill made it. */
bool pattern_holds(const void *buf, size_t len, uint64_t seed);
/* A check: every byte is as pattern_fill made it; names the first that is not. */
bool pattern_check(const void *buf, size_t len, uint64_t seed);
/* A check: every byte is value. */
bool pattern_check_byte(const void *buf, size_t len, uint8_t value);

/* len bytes (0 allowed), all PATTERN_EMPTY, page-aligned, guarded. */
#define PATTERN_EMPTY 0xee
void *pattern_alloc(size_t len);
/* Checks the guard, then frees. NULL is fine. */
void pattern_free(void *buf);

#endif
