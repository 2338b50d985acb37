/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unmaps: the kernel tells when memory of this process is unmapped, moved or discarded. Source:
 * userfaultfd(2). Memory is registered for write protection, which is never set, so that no access
 * ever faults. A thread that changes a watched mapping stops in the kernel until the watch's own
 * thread has read the event; hence the rule for gone below.
 *
 * In the simulation no kernel tells: the watch opens only if the test allows it, and the test
 * itself reports the events.
 */
#ifndef VERVE_NET_UNMAPS_H
#define VERVE_NET_UNMAPS_H

#include <stdbool.h>
#include <stdint.h>

struct verve_net_unmaps;

/*
 * At most one watch per process. The watch's thread calls gone(arg, start, end) when watched memory
 * in that range has lost its pages, or is losing them. gone must not map, unmap, allocate or free
 * memory, and must not take a lock that any thread holds while doing so. Opening changes mappings
 * of the watch's own first, to prove that each kind of event arrives. -FI_ENOSYS: the kernel gives
 * no events, or not all kinds, or the thread cannot start; -FI_ENOMEM. The first failure of the
 * process is logged.
 */
int verve_net_unmaps_open(void (*gone)(void *arg, uintptr_t start, uintptr_t end), void *arg,
			  struct verve_net_unmaps **watch);
/* gone is not running when close returns. The caller must hold no lock that gone takes. */
void verve_net_unmaps_close(struct verve_net_unmaps *watch);

/*
 * Watches the whole mappings that contain start to end (page boundaries), until they are unmapped.
 * The caller keeps that memory mapped during the call; memory beside it may change. A range that is
 * watched already costs no system call, but then an event may be under way that gone has not
 * handled yet. So the caller must first tell gone what to do about the range (publish the cache
 * entry), then call add, and at last ask verve_net_unmaps_quiet. Any thread. -FI_EOPNOTSUPP: a part
 * is not private anonymous memory that can be read; files, shared memory and what drivers put
 * behind addresses that they reserve lose pages without any event.
 */
int verve_net_unmaps_add(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end);

/*
 * Tells the watch that mappings in start to end have gone, or will go, without an event: the next
 * verve_net_unmaps_add asks the kernel again for that range. Any thread; obeys the rule for gone.
 */
void verve_net_unmaps_forget(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end);

/*
 * True: for all memory that went before this call began, gone has been called and has returned.
 * After an unmap, another thread can get the same address for new memory before the event is read.
 * So the cache must call this before it trusts an entry for an address. Yields the processor a few
 * times before it returns false. Always false in a child after fork(2). Any thread.
 */
bool verve_net_unmaps_quiet(struct verve_net_unmaps *watch);

#endif
