/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creating threads: pthread_create(3), sched(7). For the sources of net alone. */
#ifndef VERVE_NET_THREAD_H
#define VERVE_NET_THREAD_H

#include <pthread.h>

/*
 * Creates a thread in which all signals are blocked. name: at most 15 letters. It inherits the
 * caller's policy and priority (sched(7)); and its processors, unless that priority is a real-time
 * one: then it may run where the process's first thread may, because the caller may be bound to a
 * processor and leave it to nobody. The error of pthread_create(3), negative. Does not log.
 */
int verve_thread_create(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);
/*
 * Gives the thread a priority above the caller's, if that is a real-time one and the process may:
 * for a thread that others wait for, and that never computes for long.
 */
void verve_thread_raise(pthread_t thread);

#endif
