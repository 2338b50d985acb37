/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock: the time, for deadlines and for measuring. It knows no options: deadlines are env's. */
#ifndef FABTESTS_CLOCK_H
#define FABTESTS_CLOCK_H

#include <stdint.h>

/* Nanoseconds of the monotonic clock. */
uint64_t clock_now(void);

#endif
