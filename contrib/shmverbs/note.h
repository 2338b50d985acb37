/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Notes: what a process is told to do for its own devices: deliver an asynchronous event, wake the sleeper
 * on a completion channel, both maybe later; fail something on demand. Each process with an open device
 * has a pipe for them, and one thread that reads it. The thread also hears of processes that died, and
 * tries again what sends could not do (retry.h) while the application neither posts nor polls.
 */
#ifndef SHMV_NOTE_H
#define SHMV_NOTE_H

#include <stdint.h>

struct shmv_seg;

enum shmv_note_kind {
	SHMV_NOTE_EVENT,  /* type: enum ibv_event_type */
	SHMV_NOTE_WAKE,	  /* index: of a completion queue */
	SHMV_NOTE_INJECT, /* as EVENT, and what it tells of comes true first; index SHMV_NOTE_ALL: of all */
};

enum { SHMV_NOTE_ALL = -1 };

struct shmv_note {
	uint32_t kind, type;
	uint32_t slot;		/* of the open device */
	uint32_t index, serial; /* of the object; 0: of the port or device */
	uint64_t due;		/* nanoseconds of CLOCK_MONOTONIC; 0: at once */
};

/* Where this process takes notes. Starts the thread, the first time. */
void shmv_note_address(int *fd, uint64_t *id);

/* To the process of an open device. */
void shmv_note_send(struct shmv_seg *to, const struct shmv_note *note);

/* The process behind a pidfd: shmv_seg_bury(seg) when it ends. */
void shmv_note_watch(int pidfd, struct shmv_seg *seg);
void shmv_note_unwatch(int pidfd);

/* Something waits to be tried again. */
void shmv_note_kick(void);

/* After fork(2): the child has no thread. */
void shmv_note_forked(void);

#endif
