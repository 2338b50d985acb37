/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The memory of the fake net's devices: dmabufs, and the watch of mappings. */
#ifndef VERVE_TEST_SUPPORT_FAKE_MEMORY_H
#define VERVE_TEST_SUPPORT_FAKE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From now on devices take dmabufs. There is one: size bytes of memory. Returns its descriptor. */
int fake_net_dmabuf(void *memory, uint64_t size);

/*
 * The watch of memory (net/unmaps.h) opens only if the test has allowed it. The test says which
 * ranges cannot be watched, whether an event is under way, and which range is unmapped.
 */
void fake_net_watch_allow(bool allow);
void fake_net_watch_refuse(bool refuse);
void fake_net_watch_pending(bool pending);
void fake_net_watch_gone(const void *start, size_t len);
/* The start of the range in the last call of verve_net_unmaps_forget. */
bool fake_net_watch_forgot(const void *start);

/*
 * fn is called within each registration (opens) and deregistration of memory at addr, as if by
 * another thread, but not within another call of fn. NULL: none.
 */
void fake_net_on_mr(void (*fn)(void *arg, bool opens, const void *addr), void *arg);

#endif
