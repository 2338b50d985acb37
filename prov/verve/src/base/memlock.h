/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Locked memory: what of RLIMIT_MEMLOCK (getrlimit(2)) the provider may use. Any thread. */
#ifndef VERVE_BASE_MEMLOCK_H
#define VERVE_BASE_MEMLOCK_H

#include <stddef.h>

/*
 * Bytes that receive buffers may pin, and the registration cache as many: a quarter of the limit
 * each, so that the rest is left to the application. SIZE_MAX where the limit does not count.
 */
size_t verve_memlock_share(void);

#endif
