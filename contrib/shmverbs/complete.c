/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "complete.h"

#include <string.h>

#include "atomic.h"
#include "conf.h"
#include "cq.h"
#include "lock.h"
#include "log.h"
#include "move.h"
#include "note.h"
#include "segment.h"

/* A wake-up at most so long before its completion is sent at once: no note, no timer. */
enum { EARLY_NS = 100000 };

static __attribute__((noinline)) void wake(struct shmv_seg *seg, struct shm_cq *cq, uint64_t ready)
{
	struct shmv_note note = {.kind = SHMV_NOTE_WAKE, .slot = seg->slot, .index = cq->index};

	if (!cq->channel_id)
		return;
	if (ready || shmv_conf.wake_us) {
		uint64_t now = shmv_now();

		note.due = (ready > now ? ready : now) + shmv_conf.wake_us * UINT64_C(1000);
		if (note.due > now + EARLY_NS) {
			shmv_note_send(seg, &note);
			return;
		}
	}
	shmv_seg_write(seg, cq->channel_id, cq->channel_fd, &cq->index, sizeof(cq->index));
}

/* Called behind a full barrier that follows the writing of the completion. */
static inline void wake_if_armed(struct shmv_seg *seg, struct shm_cq *cq, bool solicited,
				 uint64_t ready)
{
	uint32_t armed = shmv_load32(&cq->armed);

	if (shmv_likely(!armed) || (armed == 2 && !solicited) || !shmv_swap32(&cq->armed, 0))
		return;
	wake(seg, cq, ready);
}

static __attribute__((noinline)) void overrun(struct shmv_seg *seg, struct shm_cq *cq)
{
	if (shmv_swap32(&cq->error, 1))
		return;
	shmv_log("a completion queue of process %u is overrun", seg->pid);
	shmv_note_event(seg, IBV_EVENT_CQ_ERR, cq->index, cq->serial);
}

static void gather(uint8_t *to, const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* The place beside the queue for the payload of completion number at. */
static inline void *beside(struct shmv_seg *seg, const struct shm_cq *cq, uint32_t at)
{
	return shm_at(seg->shm, cq->besides + (uint64_t)(at % SHM_BESIDES) * SHM_BESIDE_MAX);
}

bool shmv_complete_recv(struct shmv_seg *seg, struct shm_cq *cq, struct shm_cqe *entry,
			const struct iovec *iov, int count, uint64_t arrival)
{
	struct shm_cqe *ring = shm_at(seg->shm, cq->ring), *to;
	uint32_t at;

	if (shmv_unlikely(shmv_load32(&cq->error)))
		return false;
	shmv_lock_shared(&cq->lock);
	at = cq->tail;
	to = &ring[at & cq->mask];
	if (shmv_unlikely(at - cq->seen > cq->mask)) {
		cq->seen = shmv_load32(&cq->head);
		if (at - cq->seen > cq->mask) {
			shmv_unlock_shared(&cq->lock);
			overrun(seg, cq);
			return false;
		}
	}
	if (entry->kind & SHM_CQE_HERE) {
		gather(to->data, iov, count);
	} else if (entry->kind & SHM_CQE_BESIDE) {
		if (at - cq->seen >= SHM_BESIDES)
			cq->seen = shmv_load32(&cq->head);
		if (at - cq->seen < SHM_BESIDES) {
			gather(beside(seg, cq, at), iov, count);
		} else {
			entry->kind &= ~SHM_CQE_BESIDE;
			entry->status = shmv_move_to_wqe(seg, &seg->shm->rq[entry->rq], entry->wqe,
							     iov, count, entry->len);
		}
	}
	if (shmv_unlikely(arrival)) {
		((uint64_t *)shm_at(seg->shm, cq->times))[at & cq->mask] = arrival;
		entry->kind |= SHM_CQE_LATER;
	}
	memcpy(&to->qpn, &entry->qpn,
	       offsetof(struct shm_cqe, data) - offsetof(struct shm_cqe, qpn));
	shmv_store32(&to->seq, at + 1);
	shmv_store32(&cq->tail, at + 1);
	shmv_unlock_shared(&cq->lock);
	shmv_prefetch(&ring[(at + 1) & cq->mask]);
	wake_if_armed(seg, cq, entry->kind & SHM_CQE_SOLICITED || entry->status, arrival);
	return true;
}

void shmv_complete_send(struct shmv_cq *cq, const struct shmv_sent *sent)
{
	struct shmv_seg *seg = cq->ctx->seg;
	uint32_t tail;

	shmv_lock(&cq->lock);
	tail = cq->sent_tail;
	if (shmv_unlikely(tail - cq->sent_head > cq->mask || shmv_load32(&cq->shm->error))) {
		shmv_unlock(&cq->lock);
		overrun(seg, cq->shm);
		return;
	}
	cq->sent[tail & cq->mask] = *sent;
	shmv_store32(&cq->sent_tail, tail + 1);
	(void)shmv_swap32(&cq->lock, 0); /* a full barrier */
	if (shmv_unlikely(shmv_load32(&cq->shm->armed)))
		wake_if_armed(seg, cq->shm, sent->status, sent->ready);
}

void shmv_complete_wake(struct shmv_cq *cq)
{
	const struct shm_cqe *ring = shm_at(cq->ctx->seg->shm, cq->shm->ring);
	const uint64_t *times = shm_at(cq->ctx->seg->shm, cq->shm->times);
	uint64_t ready = UINT64_MAX;

	if (cq->sent_head != shmv_load32(&cq->sent_tail))
		ready = cq->sent[cq->sent_head & cq->mask].ready;
	if (shmv_load32(&ring[cq->head & cq->mask].seq) == cq->head + 1 &&
	    times[cq->head & cq->mask] < ready)
		ready = times[cq->head & cq->mask];
	/*
	 * Another thread may have polled the completion meanwhile: one wake-up too many does no
	 * harm.
	 */
	if (shmv_swap32(&cq->shm->armed, 0))
		wake(cq->ctx->seg, cq->shm, ready == UINT64_MAX ? 0 : ready);
}
