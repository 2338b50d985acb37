/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watch: hears from the kernel that memory of this process goes away: userfaultfd(2), registered
 * for write protection that is never set, so that no access ever faults. A thread that changes a
 * mapping stands still until the watch's own thread has read the event, hence the rule for what
 * that calls.
 *
 * The fake has no kernel to ask: it opens only where a test says so, which also says what goes.
 */
#ifndef VERVE_NET_WATCH_H
#define VERVE_NET_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct verve_net_watch;

/*
 * One a process. gone(arg, start, end) is called in the watch's thread after, or while, watched
 * memory in that range lost its pages. It must not map, unmap, allocate or free, nor take a lock
 * that anybody holds while doing so. Mappings of the watch's own prove first that each kind of
 * event arrives. -FI_ENOSYS: no events here, or not all of them, said in one line of the log;
 * -FI_ENOMEM and what starting a thread says.
 */
int verve_net_watch_open(void (*gone)(void *arg, uintptr_t start, uintptr_t end), void *arg,
			 struct verve_net_watch **watch);
/* No gone is running when it returns. Nothing that gone needs may be held. */
void verve_net_watch_close(struct verve_net_watch *watch);

/*
 * Watches the mappings that start to end, whole pages, lie in, until they are unmapped. That memory
 * stays mapped during the call; its neighbours may change. What is watched already costs no system
 * call: 0 is then as true as what has been given to gone, and no more, so whoever relies on it has
 * told gone before what to do, and asks quiet afterwards. -FI_EOPNOTSUPP: not all of it is private
 * anonymous memory; files and shared memory lose pages without any event.
 */
int verve_net_watch_add(struct verve_net_watch *watch, uintptr_t start, uintptr_t end);

/*
 * Mappings in start to end went, or go before they are watched again, without an event: what was
 * watched there is no longer relied on. Any thread; under the rule for gone.
 */
void verve_net_watch_forget(struct verve_net_watch *watch, uintptr_t start, uintptr_t end);

/*
 * True: whatever went before this call began has been given to gone, and gone has returned. The
 * address of unmapped memory can be another thread's new memory before the event has been read:
 * who trusts what it knows about an address has to ask first. Yields the processor a few times
 * before it says no. False in a child after fork(2). Any thread.
 */
bool verve_net_watch_quiet(struct verve_net_watch *watch);

#endif
