/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log: lines on standard error, with the id of this process. */
#ifndef SHMV_LOG_H
#define SHMV_LOG_H

void shmv_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets errno; returns NULL. */
void *shmv_fail(int error);

#endif
