/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue: a ring of completions, and a list of what did not fit or went wrong.
 * fi_cq(3): an error entry blocks reads (-FI_EAVAIL) until it is fetched, in order.
 *
 * Nothing is dropped, whatever the ring's size. If memory runs out, a reserve of
 * VERVE_COMP_RESERVE entries takes over; if more than that many operations then complete unread, the
 * queue ends in fi_cq(3)'s overrun state. Its own lock, see comp.h.
 */
#ifndef VERVE_COMP_COMP_QUEUE_H
#define VERVE_COMP_COMP_QUEUE_H

#include <sys/queue.h>
#include <sys/types.h>

#include "base/lock.h"
#include "comp/comp.h"

enum {
	VERVE_COMP_RESERVE = 256,
	VERVE_COMP_UNINVITED = 16384, /* entries beyond the ring that peers may make us keep */
};

struct verve_comp_extra; /* an overflow or error entry */

STAILQ_HEAD(verve_comp_extras, verve_comp_extra);

struct verve_comp_queue {
	/* Guarded by lock. */
	struct verve_lock lock;
	struct verve_comp *ring;
	uint32_t mask; /* ring entries - 1; entries are a power of two */
	uint32_t head, tail;
	struct verve_comp_extras extra; /* younger than all of the ring while not empty */
	struct verve_comp_extras reserve;
	struct verve_comp_extra *reserve_memory;
	bool armed;    /* a reader sleeps, or gave the wait descriptor to poll */
	size_t wanted; /* armed: wake when so many wait, or an error; the least any reader wants */
	bool overrun;  /* ends with FI_EOVERRUN; takes no more */

	/* Written under lock, read anywhere. */
	volatile AO_t count;	/* entries that wait */
	volatile AO_t errors;	/* of those, errors */
	volatile AO_t uninvited; /* entries of peers' writes, beyond the ring */

	/* Called outside the lock, once for each arming. Must not block or re-enter. */
	void (*wake)(void *arg);
	void *arg;
};

/* size: entries wanted, at least 1, rounded up. elide: the application serializes. -FI_ENOMEM. */
int verve_comp_queue_init(struct verve_comp_queue *queue, size_t size, bool elide);
/* Completions that are still in the queue are lost. */
void verve_comp_queue_fini(struct verve_comp_queue *queue);

/* Writers. Any thread, under its engine's lock. */
void verve_comp_queue_write(struct verve_comp_queue *queue, const struct verve_comp *comp);
/* Without memory for the reason, the entry is written without a reason. */
void verve_comp_queue_write_error(struct verve_comp_queue *queue,
				  const struct verve_comp_error *error);

/*
 * The queue holds so many completions of peers' writes that nobody has read: no more packets are to
 * be taken from peers. Any thread; the answer may be old.
 */
static inline bool verve_comp_queue_is_flooded(const struct verve_comp_queue *queue)
{
	return AO_load(&queue->uninvited) >= VERVE_COMP_UNINVITED;
}

/* Readers: copies up to max entries in order; 0: none; -FI_EAVAIL: an error entry is next. */
ssize_t verve_comp_queue_read(struct verve_comp_queue *queue, struct verve_comp *comp, size_t max);
/* Takes the error entry that is next. -FI_EAGAIN: none. */
int verve_comp_queue_read_error(struct verve_comp_queue *queue, struct verve_comp_error *error);

/* A cheap look without the lock; may be old. */
static inline bool verve_comp_queue_is_empty(const struct verve_comp_queue *queue)
{
	return AO_load(&queue->count) == 0;
}

/* The same: wanted (at least 1) entries, or an error, wait. */
static inline bool verve_comp_queue_is_ready(const struct verve_comp_queue *queue, size_t wanted)
{
	return AO_load(&queue->count) >= wanted || AO_load(&queue->errors);
}

/* From now on wake is called as soon as the queue is ready. False: it is ready, and not armed. */
bool verve_comp_queue_arm(struct verve_comp_queue *queue, size_t wanted);

#endif
