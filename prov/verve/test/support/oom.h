/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Out of memory, on purpose. A program that has oom.c is linked with $(oom_wrap), which names the
 * functions. Only allocations of the program's own objects fail.
 */
#ifndef VERVE_TEST_OOM_H
#define VERVE_TEST_OOM_H

#include <stdbool.h>

/* The nth allocation from now on (0: the next) fails, and, if forever, all that follow it. */
void oom_fail(long nth, bool forever);
/* So do those behind it, count in all. */
void oom_fail_row(long nth, long count);
/* No more failures. Returns how many there were since oom_fail. */
long oom_stop(void);

#endif
