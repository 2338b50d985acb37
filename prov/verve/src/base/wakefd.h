/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wakefd: a descriptor that any thread makes readable, so that a sleep ends. Source: eventfd(2).
 * The owner closes it with close(2).
 */
#ifndef VERVE_BASE_WAKEFD_H
#define VERVE_BASE_WAKEFD_H

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Returns the descriptor, which is not readable yet and never blocks; or -FI_EMFILE, -FI_ENOMEM. */
static inline int verve_wakefd_open(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* From here on, fd is readable. */
static inline void verve_wakefd_signal(int fd)
{
	uint64_t one = 1;

	/* The write fails only when the counter is full: fd is readable then in any case. */
	(void)!write(fd, &one, sizeof(one));
}

/* From here on, fd is not readable until the next signal. */
static inline void verve_wakefd_drain(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

#endif
