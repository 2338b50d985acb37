/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* slots: operations of this member. Every operation has a slot, and must complete once. */
#include <string.h>

#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "soak/state.h"

/* Slots with mayflies, at most: finding that one is dead takes seconds. */
enum { SLOTS_MAYFLY = SOAK_SLOTS / 2 };

const char *const soak_job_names[] = { "a tagged message", "a message", "a write", "a read",
					 "an addition" };

static uint64_t place_of(const struct soak_member *m, const struct soak_slot *slot)
{
	return (m->self * SOAK_SLOTS + (size_t)(slot - m->slots)) * SOAK_SLICE;
}

static ssize_t try_send(struct soak_member *m, struct soak_slot *slot)
{
	struct xfer send = { .tagged = slot->job == SOAK_TAGGED, .buf = slot->buf, .len = slot->len,
			     .addr = m->addrs[slot->to], .tag = slot->number, .data = slot->number,
			     .context = slot };

	send.op = send.tagged ? XFER_SEND : XFER_SENDDATA;
	if (soak_is_acked(slot->number))
		send.op = XFER_SENDMSG;
	send.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION | (send.tagged ? 0 : FI_REMOTE_CQ_DATA);
	return xfer_try(&m->node, &send);
}

static ssize_t try_access(struct soak_member *m, struct soak_slot *slot)
{
	struct rma rma = { .op = slot->job == SOAK_WRITE ? RMA_WRITE : RMA_READ, .buf = slot->buf,
			   .len = slot->len, .addr = m->addrs[slot->to], .key = SOAK_REGION_KEY,
			   .remote_addr = place_of(m, slot), .context = slot };

	return rma_try(&m->node, &rma);
}

static ssize_t try_add(struct soak_member *m, struct soak_slot *slot)
{
	static const uint64_t one = 1;
	struct atomic add = { .call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM, .count = 1,
			      .buf = &one, .result = &slot->before, .addr = m->addrs[slot->to],
			      .key = SOAK_REGION_KEY, .context = slot,
			      .remote_addr = SOAK_WORDS + m->self * sizeof(uint64_t) };

	return atomic_try(&m->node, &add);
}

void soak_try_post(struct soak_member *m, struct soak_slot *slot)
{
	ssize_t ret;

	if (slot->job == SOAK_ADD)
		ret = try_add(m, slot);
	else if (slot->job == SOAK_WRITE || slot->job == SOAK_READ)
		ret = try_access(m, slot);
	else
		ret = try_send(m, slot);
	if (ret == -FI_EAGAIN)
		return;
	REQUIRE_RET(ret, 0);
	slot->posted = true;
	slot->since = clock_now();
}

void soak_start(struct soak_member *m, struct soak_slot *slot, enum soak_job job, unsigned to)
{
	slot->busy = true;
	slot->posted = false;
	slot->job = job;
	slot->to = to;
	slot->number = soak_number(m->self, to, m->life, ++m->next[to]);
	slot->len = soak_number_len(slot->number);
	slot->since = clock_now();
	if (job == SOAK_WRITE && slot->len > SOAK_SLICE)
		slot->len = SOAK_SLICE;
	if (job == SOAK_ADD)
		m->words[to].busy = true;
	else
		pattern_fill(slot->buf, slot->len, slot->number);
	soak_try_post(m, slot);
}

static unsigned choose_peer(struct soak_member *m)
{
	unsigned used = 0, to;

	for (unsigned i = 0; i < SOAK_SLOTS; i++)
		used += m->slots[i].busy && soak_is_mayfly(m->slots[i].to);
	do {
		to = soak_draw(m, 2) * SOAK_MEMBERS + soak_draw(m, m->members);
	} while (!soak_is_other(m, to));
	return soak_is_mayfly(to) && used >= SLOTS_MAYFLY ? to - 1 : to;
}

void soak_start_any(struct soak_member *m, struct soak_slot *slot)
{
	unsigned lot = soak_draw(m, 100), to = choose_peer(m);

	if (to == m->self)
		return;
	if (lot < 20 && !m->words[to].busy)
		soak_start(m, slot, SOAK_ADD, to);
	else if (lot < 45)
		soak_start(m, slot, SOAK_WRITE, to);
	else
		soak_start(m, slot, lot < 75 ? SOAK_TAGGED : SOAK_MESSAGE, to);
}

/* A read brings what this member wrote, or nothing if a mayfly began a new life in between. */
static void check_read(const struct soak_slot *slot)
{
	const uint8_t *at = slot->buf;
	size_t i = 0;

	if (pattern_holds(slot->buf, slot->len, slot->number))
		return;
	while (soak_is_mayfly(slot->to) && i < slot->len && at[i] == PATTERN_EMPTY)
		i++;
	if (i < slot->len)
		pattern_check(slot->buf, slot->len, slot->number);
}

/* An addition that succeeded was executed once; one that failed, at most once. */
static void check_added(struct soak_word *word, const struct soak_slot *slot)
{
	if (word->known && !soak_is_mayfly(slot->to) &&
	    (slot->before < word->least || slot->before > word->most))
		check_fail("a word of member %u was %llu, and not from %llu to %llu", slot->to,
			   (unsigned long long)slot->before, (unsigned long long)word->least,
			   (unsigned long long)word->most);
	word->known = true;
	word->least = word->most = slot->before + 1;
}

static void end_slot(struct soak_member *m, struct soak_slot *slot)
{
	slot->busy = false;
	m->entry->operations++;
	m->operations++;
	if (m->env.opts.iterations && m->operations >= m->env.opts.iterations)
		m->entry->enough = true;
}

static void fail_slot(struct soak_member *m, struct soak_slot *slot, const struct comp *comp)
{
	soak_judge_error(m, comp, soak_job_names[slot->job], slot->to);
	if (slot->job == SOAK_ADD)
		m->words[slot->to].most++;
	else if (slot->job == SOAK_TAGGED || slot->job == SOAK_MESSAGE)
		soak_count_of(m, slot->number, slot->to)->failed++;
}

void soak_finish_slot(struct soak_member *m, struct soak_slot *slot, const struct comp *comp)
{
	if (!slot->busy || !slot->posted)
		check_fatal("member %u: an operation with member %u has completed twice", m->self,
			    slot->to);
	slot->posted = false;
	if (slot->job == SOAK_ADD)
		m->words[slot->to].busy = false;
	if (comp->err) {
		fail_slot(m, slot, comp);
	} else if (slot->job == SOAK_WRITE) {
		memset(slot->buf, PATTERN_EMPTY ^ 0xff, slot->len);
		slot->job = SOAK_READ;
		soak_try_post(m, slot);
		return;
	} else if (slot->job == SOAK_READ) {
		check_read(slot);
	} else if (slot->job == SOAK_ADD) {
		check_added(&m->words[slot->to], slot);
	} else {
		soak_count_of(m, slot->number, slot->to)->sent++;
	}
	end_slot(m, slot);
}
