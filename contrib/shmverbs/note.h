/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Note: a request to a process that has a device open: deliver an asynchronous event, wake the
 * sleeper on a completion channel, or make an object fail. A note may be due later. Each such
 * process has a pipe for its notes; the device's thread reads it.
 */
#ifndef SHMV_NOTE_H
#define SHMV_NOTE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "thread.h"

struct shmv_seg;

enum shmv_note_kind {
	SHMV_NOTE_EVENT, /* deliver an event. type: enum ibv_event_type */
	SHMV_NOTE_WAKE,	 /* wake the sleeper on a completion queue. index: of the queue */
	SHMV_NOTE_INJECT, /* make the event true, then deliver it. index: or SHMV_NOTE_ALL */
};

enum { SHMV_NOTE_ALL = -1 };

struct shmv_note {
	uint32_t kind, type;
	uint32_t slot;		/* of the open device */
	uint32_t index, serial; /* of the object; 0: the note is about the port or the device */
	uint64_t due;		/* nanoseconds of CLOCK_MONOTONIC; 0: at once */
};

/*
 * Sets *fd and *id to descriptor and id of the pipe for this process's notes. The first call
 * makes the pipe and starts the device's thread with these functions. calls->turn has to call
 * shmv_note_read.
 */
void shmv_note_address(const struct shmv_thread_calls *calls, int *fd, uint64_t *id);

/* Calls take for each note that came and is due. Called by the device's thread alone. */
void shmv_note_read(void (*take)(const struct shmv_note *note));

/* Sends a note to the process of an open device. */
void shmv_note_send(struct shmv_seg *to, const struct shmv_note *note);

/*
 * Sends an asynchronous event to the process of an open device, due after the property event_us.
 * index: the object's place in the table of its type; serial: the object's; both 0: the event is
 * about the port or the device.
 */
void shmv_note_event(struct shmv_seg *to, enum ibv_event_type type, uint32_t index,
		     uint32_t serial);

/* After fork(2): the child has no pipe. */
void shmv_note_forked(void);

#endif
