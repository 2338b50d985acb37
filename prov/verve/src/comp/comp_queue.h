/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queue: a ring of completions, and behind it a list of the completions that did not fit
 * and of the errors. fi_cq(3): an error entry blocks reads (-FI_EAVAIL) until it is fetched, in
 * order.
 *
 * No completion is dropped, whatever the ring's size. If malloc fails, the list takes entries from
 * a reserve of VERVE_COMP_RESERVE. If the reserve is used up, too, the queue is in fi_cq(3)'s
 * overrun state for ever. Each queue has its own lock, see comp.h.
 */
#ifndef VERVE_COMP_COMP_QUEUE_H
#define VERVE_COMP_COMP_QUEUE_H

#include <atomic_ops.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/lock.h"
#include "comp/comp.h"

enum {
	VERVE_COMP_RESERVE = 256,     /* entries */
	VERVE_COMP_UNINVITED = 16384, /* unread uninvited entries: the queue is flooded */
};

struct verve_comp_extra; /* an entry of the list: a completion that did not fit, or an error */

STAILQ_HEAD(verve_comp_extras, verve_comp_extra);

struct verve_comp_queue {
	/* Guarded by lock. */
	struct verve_lock lock;
	struct verve_comp *ring;
	uint32_t mask; /* ring entries - 1; entries are a power of two */
	uint32_t head, tail; /* counts of entries read and written; wrap around */
	struct verve_comp_extras extra; /* the list; each entry is younger than all of the ring */
	struct verve_comp_extras reserve; /* entries for extra without memory */
	struct verve_comp_extra *reserve_memory; /* all of the reserve, from calloc */
	bool armed;    /* a reader sleeps, or polls the wait descriptor */
	size_t wanted; /* armed: wake is called for so many entries; the smallest of all readers */
	bool overrun;  /* reading ends with FI_EOVERRUN; completions are dropped */

	/* Written under lock, read by any thread without it. */
	volatile AO_t count;	/* entries to be read: ring, list and overrun */
	volatile AO_t errors;	/* errors among them */
	volatile AO_t uninvited; /* entries of the list that peers cause as they like */

	/* Called without the lock, once for each arming. Must not block or re-enter. */
	void (*wake)(void *arg);
	void *arg;
};

/*
 * size: entries of the ring, rounded up to a power of two. elide: the application serializes all
 * calls, so that the lock does nothing. The caller sets wake and arg. -FI_ENOMEM.
 */
int verve_comp_queue_init(struct verve_comp_queue *queue, size_t size, bool elide);
/* Frees the queue. Completions that were not read are lost. */
void verve_comp_queue_fini(struct verve_comp_queue *queue);

/* Writes a completion. Any thread, under its engine's lock. Calls wake if the queue is armed. */
void verve_comp_queue_write(struct verve_comp_queue *queue, const struct verve_comp *comp);
/*
 * The same for a completion that a peer causes as often as it likes: of its writes, and of its
 * messages in a multi-receive buffer.
 */
void verve_comp_queue_write_uninvited(struct verve_comp_queue *queue,
				      const struct verve_comp *comp);
/* Writes an error. Without memory, the entry has no reason. Otherwise like a completion. */
void verve_comp_queue_write_error(struct verve_comp_queue *queue,
				  const struct verve_comp_error *error);

/*
 * True if the list holds so many unread uninvited completions that engines must take no more
 * packets. Any thread; the answer may be old.
 */
static inline bool verve_comp_queue_is_flooded(const struct verve_comp_queue *queue)
{
	return AO_load(&queue->uninvited) >= VERVE_COMP_UNINVITED;
}

/*
 * Takes up to max completions, in order, and returns how many. 0: there is none. -FI_EAVAIL: the
 * next entry is an error. buf: the first size bytes of each completion go there, one behind the
 * other. src: their sources go there; NULL: nowhere. Any thread.
 */
ssize_t verve_comp_queue_copy(struct verve_comp_queue *queue, void *buf, size_t size, uint64_t *src,
			      size_t max);
/* The same for whole completions. */
static inline ssize_t verve_comp_queue_read(struct verve_comp_queue *queue, struct verve_comp *comp,
					    size_t max)
{
	return verve_comp_queue_copy(queue, comp, sizeof(*comp), NULL, max);
}

/* Takes the next entry, if it is an error. -FI_EAGAIN: it is none. Any thread. */
int verve_comp_queue_read_error(struct verve_comp_queue *queue, struct verve_comp_error *error);

/* True if there is no entry. Any thread, without the lock; the answer may be old. */
static inline bool verve_comp_queue_is_empty(const struct verve_comp_queue *queue)
{
	return AO_load(&queue->count) == 0;
}

/* True if there are wanted entries (at least 1), or an error. The answer may be old. */
static inline bool verve_comp_queue_is_ready(const struct verve_comp_queue *queue, size_t wanted)
{
	return AO_load(&queue->count) >= wanted || AO_load(&queue->errors);
}

/*
 * Arms the queue: wake is called once, as soon as the queue is ready for the reader that wants the
 * fewest entries. False: the queue is ready now, and is not armed. Any thread.
 */
bool verve_comp_queue_arm(struct verve_comp_queue *queue, size_t wanted);

#endif
