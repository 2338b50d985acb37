/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segment: the mapped file of an open device, of this process or of a peer. The name of the file
 * is its slot, a number, which is part of the numbers of all queue pairs of the device.
 */
#ifndef SHMV_SEGMENT_H
#define SHMV_SEGMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "layout.h"

enum { SHMV_WAKES = 64 }; /* pipes of a peer that this process keeps open */

struct shmv_seg {
	struct shmv_seg *next;
	struct shm *shm;
	size_t size;
	uint32_t slot;
	int refs, pidfd;
	pid_t pid;
	uint64_t nonce;
	uint32_t dead; /* the process ended, or cannot be reached */
	pthread_mutex_t wake_lock;
	struct {
		uint64_t id;
		int fd;
	} wake[SHMV_WAKES];
	uint32_t wakes;
	uint8_t warm[SHM_CQ_MAX]; /* 1: the memory of this completion queue was touched */
};

/*
 * Makes the segment of an open device dev; NULL and errno. note_fd, note_id: descriptor and id of
 * the pipe for this process's notes.
 */
struct shmv_seg *shmv_seg_create(uint32_t dev, int note_fd, uint64_t note_id);
/*
 * attach: the segment of a slot; NULL: there is none with a living process. detach gives it back.
 */
struct shmv_seg *shmv_seg_attach(uint32_t slot);
void shmv_seg_detach(struct shmv_seg *seg);
/* Takes the file of this process's own segment out of the fabric; the mapping stays. */
void shmv_seg_unlink(const struct shmv_seg *seg);

/* True if a process of the fabric has a device open. Removes the files of dead processes. */
bool shmv_seg_any(void);

/*
 * Marks a segment as dead, because its process ended. seg: the mark that attach gave to the
 * thread; ignored if the segment is detached meanwhile.
 */
void shmv_seg_bury(struct shmv_seg *seg);

/*
 * Writes a record of at most PIPE_BUF bytes to a pipe of the segment's process. owners_fd: the
 * descriptor in that process. id: the pipe's, unique in that process, because descriptors are
 * used again. False: the pipe is full, or the process gone.
 */
bool shmv_seg_write(struct shmv_seg *seg, uint64_t id, int owners_fd, const void *record,
		    size_t size);
/* A new id for a pipe of this process. */
uint64_t shmv_seg_pipe_id(void);

/* After fork(2): the child has no segments. */
void shmv_seg_forked(void);

#endif
