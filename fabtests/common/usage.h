/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* usage: memory and threads that a process uses. */
#ifndef FABTESTS_USAGE_H
#define FABTESTS_USAGE_H

#include <sys/types.h>

/* A line of /proc/PID/status in KiB, as "VmRSS:". 0 if there is no such process or line. */
long usage_status_kb(pid_t pid, const char *name);
/*
 * Memory in KiB, of which each page counts as its part for each process that maps it (proc(5),
 * Pss). 0 as above, and where the kernel does not say.
 */
long usage_share_kb(pid_t pid);
/* Bytes that malloc has given out to this process. */
long usage_heap(void);

#endif
