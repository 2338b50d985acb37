/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Thread: the device's own thread, one in each process that has a device open. It sleeps until a
 * descriptor can be read, then calls the functions that it was started with. It knows neither
 * notes nor sends.
 */
#ifndef SHMV_THREAD_H
#define SHMV_THREAD_H

#include <stdbool.h>

struct shmv_thread_calls {
	/* Once after each sleep. True: call again in a millisecond, whatever happens. */
	bool (*turn)(void);
	/* A watched descriptor with this mark can be read. */
	void (*ready)(void *mark);
};

/* Starts the thread: once in a process, before all other calls. The table is not copied. */
void shmv_thread_start(const struct shmv_thread_calls *calls);

/*
 * A descriptor that ends the sleep while it can be read. mark: for calls->ready; NULL: no such
 * call.
 */
void shmv_thread_watch(int fd, void *mark);
void shmv_thread_unwatch(int fd);

/* Ends the thread's sleep. From any thread. */
void shmv_thread_kick(void);

/* After fork(2): the child has no thread. */
void shmv_thread_forked(void);

#endif
