/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Segment: the mapped file of an open device, one's own or a peer's. A file's name is its number,
 * which is part of the numbers of all its queue pairs.
 */
#ifndef SHMV_SEGMENT_H
#define SHMV_SEGMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "layout.h"

enum { SHMV_WAKES = 64 }; /* descriptors of a peer that are kept open */

struct shmv_seg {
	struct shmv_seg *next;
	struct shm *shm;
	size_t size;
	uint32_t slot;
	int refs, pidfd;
	pid_t pid;
	uint64_t nonce;
	uint32_t dead; /* the process is, or cannot be reached */
	pthread_mutex_t wake_lock;
	struct {
		uint64_t id;
		int fd;
	} wake[SHMV_WAKES];
	uint32_t wakes;
	uint8_t warm[SHM_CQ_MAX]; /* completion queues whose memory was touched */
};

/* A new one for device dev; NULL and errno. note_fd, note_id: the pipe in which this process takes notes. */
struct shmv_seg *shmv_seg_create(uint32_t dev, int note_fd, uint64_t note_id);
/* The file with a number; NULL: there is none whose process lives. Give back with detach. */
struct shmv_seg *shmv_seg_attach(uint32_t slot);
void shmv_seg_detach(struct shmv_seg *seg);
/* Takes the file of one's own out of the fabric; the mapping stays. */
void shmv_seg_unlink(const struct shmv_seg *seg);

/* Whether any process of the fabric has a device open. Takes away what dead ones left. */
bool shmv_seg_any(void);

/* The process of a segment died. seg: the mark that attach gave to the thread; ignored if the segment is gone. */
void shmv_seg_bury(struct shmv_seg *seg);

/*
 * Writes a record of at most PIPE_BUF bytes to a pipe of the segment's process. owners_fd: its number
 * there; id: the pipe's, unique in that process, so that a number that was used again is noticed.
 * False: the pipe is full, or the process gone.
 */
bool shmv_seg_write(struct shmv_seg *seg, uint64_t id, int owners_fd, const void *record, size_t size);
/* A new such id. */
uint64_t shmv_seg_pipe_id(void);

/* After fork(2): the child has none. */
void shmv_seg_forked(void);

#endif
