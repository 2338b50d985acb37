/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log: one line on standard error, with this process's id. */
#ifndef SHMV_LOG_H
#define SHMV_LOG_H

void shmv_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets errno; returns NULL. */
void *shmv_fail(int error);

#endif
