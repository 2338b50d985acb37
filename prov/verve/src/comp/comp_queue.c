/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queue: the ring, and the list behind it with its reserve. */
#include "comp/comp_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include <rdma/fi_errno.h>

struct verve_comp_extra {
	STAILQ_ENTRY(verve_comp_extra) link;
	struct verve_comp comp;
	size_t olen;
	int err; /* positive FI errno; 0: a success that did not fit into the ring */
	int prov_errno;
	bool uninvited; /* see struct verve_comp_queue */
	bool reserved; /* belongs to reserve_memory: goes back to the reserve, is not freed */
	char reason[]; /* no memory for it if reserved */
};

int verve_comp_queue_init(struct verve_comp_queue *queue, size_t size, bool elide)
{
	size_t entries = 1;

	memset(queue, 0, sizeof(*queue));
	if (size > UINT32_MAX / 2 + 1)
		return -FI_ENOMEM;
	while (entries < size)
		entries *= 2;
	queue->ring = calloc(entries, sizeof(queue->ring[0]));
	if (!queue->ring)
		return -FI_ENOMEM;
	queue->reserve_memory = calloc(VERVE_COMP_RESERVE, sizeof(queue->reserve_memory[0]));
	if (!queue->reserve_memory) {
		free(queue->ring);
		return -FI_ENOMEM;
	}
	STAILQ_INIT(&queue->extra);
	STAILQ_INIT(&queue->reserve);
	for (int i = 0; i < VERVE_COMP_RESERVE; i++) {
		queue->reserve_memory[i].reserved = true;
		STAILQ_INSERT_TAIL(&queue->reserve, &queue->reserve_memory[i], link);
	}
	queue->mask = (uint32_t)(entries - 1);
	verve_lock_init(&queue->lock, elide);
	return 0;
}

static void free_extras(struct verve_comp_extras *extras)
{
	struct verve_comp_extra *extra;

	while ((extra = STAILQ_FIRST(extras))) {
		STAILQ_REMOVE_HEAD(extras, link);
		if (!extra->reserved)
			free(extra);
	}
}

void verve_comp_queue_fini(struct verve_comp_queue *queue)
{
	free_extras(&queue->extra);
	free(queue->reserve_memory);
	free(queue->ring);
	verve_lock_fini(&queue->lock);
}

/* Counts an entry that was added, releases the lock, and calls wake if a sleeper waits for it. */
static inline void publish(struct verve_comp_queue *queue, bool error)
{
	AO_t count = queue->count + 1;
	bool wake = __builtin_expect(queue->armed, 0) && (error || count >= queue->wanted);

	AO_store(&queue->count, count);
	if (__builtin_expect(error, 0))
		AO_store(&queue->errors, queue->errors + 1);
	if (wake)
		queue->armed = false;
	verve_lock_release(&queue->lock);
	if (wake)
		queue->wake(queue->arg);
}

static inline bool has_room(const struct verve_comp_queue *queue)
{
	return STAILQ_EMPTY(&queue->extra) && queue->tail - queue->head <= queue->mask &&
	       !queue->overrun;
}

static inline void put(struct verve_comp_queue *queue, const struct verve_comp *comp)
{
	queue->ring[queue->tail++ & queue->mask] = *comp;
	publish(queue, false);
}

static struct verve_comp_extra *take_reserve(struct verve_comp_queue *queue)
{
	struct verve_comp_extra *extra = STAILQ_FIRST(&queue->reserve);

	if (!extra)
		return NULL;
	STAILQ_REMOVE_HEAD(&queue->reserve, link);
	return extra;
}

/* The overrun counts as an error entry that stays for ever. Releases the lock. */
static void overrun(struct verve_comp_queue *queue)
{
	VERVE_WARN(CQ,
		   "completion queue %p is overrun: no memory for a completion, and the reserve of "
		   "%d is used up\n",
		   (void *)queue, VERVE_COMP_RESERVE);
	queue->overrun = true;
	publish(queue, true);
}

/*
 * Puts an entry into the list. error: NULL for a success; otherwise comp is error->comp. Called
 * without the lock, which must not be held across malloc.
 */
static __attribute__((noinline)) void append(struct verve_comp_queue *queue,
					     const struct verve_comp *comp,
					     const struct verve_comp_error *error, bool uninvited)
{
	size_t len = error ? strnlen(error->reason, VERVE_COMP_REASON_MAX - 1) : 0;
	struct verve_comp_extra *extra = malloc(sizeof(*extra) + len + 1);

	if (extra)
		extra->reserved = false;
	verve_lock_acquire(&queue->lock);
	/* A reader may have emptied the list during malloc: then the ring takes the completion. */
	if ((!error && has_room(queue)) || queue->overrun) {
		if (queue->overrun)
			verve_lock_release(&queue->lock);
		else
			put(queue, comp);
		free(extra);
		return;
	}
	if (!extra)
		extra = take_reserve(queue);
	if (!extra) {
		overrun(queue);
		return;
	}
	extra->comp = *comp;
	extra->uninvited = uninvited;
	extra->olen = error ? error->olen : 0;
	extra->err = error ? error->err : 0;
	extra->prov_errno = error ? error->prov_errno : 0;
	if (!extra->reserved) {
		memcpy(extra->reason, error ? error->reason : "", len);
		extra->reason[len] = '\0';
	}
	STAILQ_INSERT_TAIL(&queue->extra, extra, link);
	AO_store(&queue->uninvited, queue->uninvited + uninvited);
	publish(queue, error);
}

static inline __attribute__((always_inline)) void
write_comp(struct verve_comp_queue *queue, const struct verve_comp *comp, bool uninvited)
{
	verve_lock_acquire(&queue->lock);
	if (__builtin_expect(has_room(queue), 1)) {
		put(queue, comp);
		return;
	}
	verve_lock_release(&queue->lock);
	append(queue, comp, NULL, uninvited);
}

void verve_comp_queue_write(struct verve_comp_queue *queue, const struct verve_comp *comp)
{
	write_comp(queue, comp, false);
}

void verve_comp_queue_write_uninvited(struct verve_comp_queue *queue, const struct verve_comp *comp)
{
	write_comp(queue, comp, true);
}

void verve_comp_queue_write_error(struct verve_comp_queue *queue,
				  const struct verve_comp_error *error)
{
	append(queue, &error->comp, error, error->uninvited);
}

/*
 * Removes the first entry of the list: to the reserve, or to read, whose entries the caller frees
 * when it has released the lock.
 */
static void take_extra(struct verve_comp_queue *queue, struct verve_comp_extras *read)
{
	struct verve_comp_extra *extra = STAILQ_FIRST(&queue->extra);

	STAILQ_REMOVE_HEAD(&queue->extra, link);
	AO_store(&queue->uninvited, queue->uninvited - extra->uninvited);
	if (extra->reserved)
		STAILQ_INSERT_TAIL(&queue->reserve, extra, link);
	else
		STAILQ_INSERT_TAIL(read, extra, link);
}

static inline void copy_out(const struct verve_comp *comp, size_t n, char *buf, size_t size,
			    uint64_t *src)
{
	memcpy(buf + n * size, comp, size);
	if (src)
		src[n] = comp->src;
}

/*
 * n completions of the ring were copied, and the list has entries, or the queue is overrun. Ends
 * verve_comp_queue_copy. Releases the lock.
 */
static __attribute__((noinline)) ssize_t copy_list(struct verve_comp_queue *queue, size_t n,
						   char *buf, size_t size, uint64_t *src,
						   size_t max)
{
	struct verve_comp_extras read = STAILQ_HEAD_INITIALIZER(read);
	struct verve_comp_extra *extra;
	ssize_t ret;

	while (n < max && (extra = STAILQ_FIRST(&queue->extra)) && !extra->err) {
		copy_out(&extra->comp, n++, buf, size, src);
		take_extra(queue, &read);
	}
	AO_store(&queue->count, queue->count - n);
	/* No entry was taken though there are entries: the next one is an error. */
	ret = !n && queue->count ? -FI_EAVAIL : (ssize_t)n;
	verve_lock_release(&queue->lock);
	free_extras(&read);
	return ret;
}

ssize_t verve_comp_queue_copy(struct verve_comp_queue *queue, void *buf, size_t size, uint64_t *src,
			      size_t max)
{
	size_t n = 0;

	verve_lock_acquire(&queue->lock);
	for (; n < max && queue->head != queue->tail; n++)
		copy_out(&queue->ring[queue->head++ & queue->mask], n, buf, size, src);
	if (__builtin_expect(n < max && queue->count > n, 0))
		return copy_list(queue, n, buf, size, src, max);
	AO_store(&queue->count, queue->count - n);
	verve_lock_release(&queue->lock);
	return (ssize_t)n;
}

static int get_error(struct verve_comp_queue *queue, struct verve_comp_error *error,
		     struct verve_comp_extras *read)
{
	struct verve_comp_extra *extra = STAILQ_FIRST(&queue->extra);

	if (queue->head != queue->tail)
		return -FI_EAGAIN;
	if (!extra && queue->overrun) {
		*error = (struct verve_comp_error){.comp.src = UINT64_MAX, .err = FI_EOVERRUN};
		return 0;
	}
	if (!extra || !extra->err)
		return -FI_EAGAIN;
	error->comp = extra->comp;
	error->olen = extra->olen;
	error->err = extra->err;
	error->prov_errno = extra->prov_errno;
	strcpy(error->reason, extra->reserved ? "" : extra->reason);
	take_extra(queue, read);
	AO_store(&queue->count, queue->count - 1);
	AO_store(&queue->errors, queue->errors - 1);
	return 0;
}

int verve_comp_queue_read_error(struct verve_comp_queue *queue, struct verve_comp_error *error)
{
	struct verve_comp_extras read = STAILQ_HEAD_INITIALIZER(read);
	int ret;

	verve_lock_acquire(&queue->lock);
	ret = get_error(queue, error, &read);
	verve_lock_release(&queue->lock);
	free_extras(&read);
	return ret;
}

bool verve_comp_queue_arm(struct verve_comp_queue *queue, size_t wanted)
{
	bool ready;

	verve_lock_acquire(&queue->lock);
	ready = verve_comp_queue_is_ready(queue, wanted);
	if (!ready) {
		queue->wanted = queue->armed && queue->wanted < wanted ? queue->wanted : wanted;
		queue->armed = true;
	}
	verve_lock_release(&queue->lock);
	return !ready;
}
