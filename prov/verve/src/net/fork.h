/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fork: keeps the memory of the device the parent's. Linux before 5.12 gives the pinned pages of a
 * process that forks to whichever of parent and child writes first, so that the device may go on
 * with pages that the parent does not have any more. There, libibverbs can keep registered memory
 * out of children: ibv_fork_init(3). Any thread.
 */
#ifndef VERVE_NET_FORK_H
#define VERVE_NET_FORK_H

/*
 * To be called before memory is registered; the first call acts. If neither the kernel nor
 * libibverbs can help, a warning says that the process must not fork.
 */
void verve_net_fork_prepare(void);

#endif
