/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reliable connections of the fake net: requests travel in order, are executed at the target when
 * they arrive, and complete in order at the initiator. InfiniBand spec. vol. 1, chapters 9 and 10.
 *
 * Memory is read and written as late as the rules allow: a send's or write's source when the
 * request is executed at the target, a read's source and destination when its response arrives.
 * Atomics are executed when they arrive, and once. A provider that frees memory before the
 * completion is found out.
 */
#include <stdlib.h>
#include <string.h>

#include "fake_qp.h"
#include "fake_world.h"
#include "net/cq.h"

enum { TRIES = 8 };

static const uint64_t flush_time = 100;			 /* ns */
static const uint64_t flush_late = 20000;		 /* ns, of a receive at most */
static const uint64_t rnr_min = 20000, rnr_max = 200000; /* ns: a receiver-not-ready timer */

enum { LONG = 1024 }; /* bytes; a read of more may lie, whatever the network's MTU */

static void arrive(struct fake_event *event);
static void respond(struct fake_event *event);
static void complete(struct fake_event *event);
static void flush_recv(struct fake_event *event);

#define QP_OF(event, member)                                                                       \
	((struct verve_net_qp *)((char *)(event)-offsetof(struct verve_net_qp, member)))

/* The queue pair at the other end, if it would accept qp's next request; NULL: silence. */
static struct verve_net_qp *target_of(const struct verve_net_qp *qp)
{
	struct verve_net_qp *target;

	if (!fake_is_reachable(qp->dev->host, qp->peer))
		return NULL;
	HASH_FIND(hh, qp->peer->qps, &qp->peer_num, sizeof(qp->peer_num), target);
	if (!target || target->state != FAKE_QP_RTS || target->peer != qp->dev->host ||
	    target->peer_num != qp->num || target->recv_psn != qp->send_psn)
		return NULL;
	return target;
}

/* The queue pair is in error: the receive of a message that will not come. */
static void flush_recv(struct fake_event *event)
{
	struct verve_net_qp *qp = QP_OF(event, flush);
	struct verve_net_wc wc = {
		.wr_id = qp->begun.wr_id,
		.status = FAKE_WC_FLUSHED,
		.opcode = VERVE_NET_WC_RECV,
		.qp_num = qp->num,
	};

	qp->has_begun = false;
	qp->attr.srq->begun--;
	fake_cq_push(qp->attr.recv_cq, &wc, NULL, 0);
}

/* Requests at the initiator. */

static void schedule_completion(struct verve_net_qp *qp)
{
	struct fake_wr *wr = TAILQ_FIRST(&qp->wrs);

	if (wr && wr->state == FAKE_WR_DONE && !fake_event_is_set(&qp->complete))
		fake_event_at(&qp->complete, wr->when, complete);
}

/*
 * wr will end with status, after all older requests. Younger requests are not sent: they will be
 * flushed.
 */
static void fail_unsent(struct verve_net_qp *qp, struct fake_wr *wr, uint32_t status, uint64_t when)
{
	wr->status = status;
	wr->state = FAKE_WR_DONE;
	wr->when = when;
	qp->failing = true;
	qp->posted = NULL;
	schedule_completion(qp);
}

/* The same for a request that was sent. Requests that fly behind it are lost. */
static void fail(struct verve_net_qp *qp, struct fake_wr *wr, uint32_t status, uint64_t when)
{
	qp->flying = NULL;
	fake_event_cancel(&qp->arrive);
	fail_unsent(qp, wr, status, when);
}

/* Nobody answers: the transport tries again until its time is over. */
static void unanswered(struct verve_net_qp *qp, struct fake_wr *wr, struct fake_event *event,
		       void (*run)(struct fake_event *))
{
	uint64_t now = fake_world.now, next = now + qp->timeout / TRIES + 1;

	fake_world.stats.unanswered++;
	if (!qp->silent_since)
		qp->silent_since = now;
	if (now - qp->silent_since >= qp->timeout) {
		fake_trace("host %u qp %u: retries exceeded", qp->dev->host->index, qp->num);
		fail(qp, wr, FAKE_WC_RETRY_EXCEEDED, now);
		return;
	}
	if (next > qp->silent_since + qp->timeout)
		next = qp->silent_since + qp->timeout;
	fake_event_at(event, next, run);
}

/* The errors that the device finds before it sends anything. */
static uint32_t check_request(const struct verve_net_qp *qp, const struct fake_wr *wr)
{
	if (wr->len > fake_world.config.limits.msg_size)
		return FAKE_WC_LOCAL_LENGTH;
	if (fake_wr_fetches(wr) && !qp->read_limit)
		return FAKE_WC_LOCAL_OPERATION;
	return fake_wr_is_valid(qp, wr) ? FAKE_WC_OK : FAKE_WC_LOCAL_PROTECTION;
}

static void flush_posted(struct verve_net_qp *qp)
{
	struct fake_wr *wr;

	while ((wr = qp->posted)) {
		wr->status = FAKE_WC_FLUSHED;
		wr->state = FAKE_WR_DONE;
		wr->when = fake_world.now + flush_time;
		qp->posted = TAILQ_NEXT(wr, link);
	}
	schedule_completion(qp);
}

void fake_rc_launch(struct verve_net_qp *qp)
{
	struct fake_wr *wr;

	if (qp->state == FAKE_QP_ERROR) {
		if (fake_world.config.error_forgets_posts)
			qp->posted = NULL;
		flush_posted(qp);
		return;
	}
	while ((wr = qp->posted) && !qp->failing) {
		bool read = fake_wr_fetches(wr);
		uint64_t when = fake_world.now + fake_rc_delay();
		uint32_t status = check_request(qp, wr);

		if (read && qp->reads >= qp->read_limit && qp->read_limit)
			return;
		if (status) {
			fake_world.stats.access_errors++;
			fail_unsent(qp, wr, status, when);
			return;
		}
		if (read) {
			qp->reads++;
			fake_wr_poison(qp, wr);
		}
		wr->state = FAKE_WR_FLYING;
		wr->when = qp->last_arrival = when > qp->last_arrival ? when : qp->last_arrival;
		qp->posted = TAILQ_NEXT(wr, link);
		if (!qp->flying) {
			qp->flying = wr;
			fake_event_at(&qp->arrive, wr->when, arrive);
		}
	}
}

/* The oldest request under way has been executed: its response leaves, and the next one follows. */
static void advance(struct verve_net_qp *qp, struct fake_wr *wr)
{
	struct fake_wr *next = TAILQ_NEXT(wr, link);

	qp->flying = next && next->state == FAKE_WR_FLYING ? next : NULL;
	if (fake_wr_fetches(wr)) {
		wr->state = FAKE_WR_EXECUTED;
		wr->when = fake_world.now + fake_rc_delay();
		if (wr->when < qp->last_response)
			wr->when = qp->last_response;
		qp->last_response = wr->when;
		if (!fake_event_is_set(&qp->respond))
			fake_event_at(&qp->respond, wr->when, respond);
	} else {
		wr->state = FAKE_WR_DONE;
		wr->when = fake_world.now + fake_rc_delay();
		wr->acked = !fake_chance(250);
	}
}

/*
 * A responder answers in order. Responses to requests before the refused one are on their way
 * already, and the refusal acknowledges those requests (InfiniBand spec. vol. 1, 9.7.5.1.2). But an
 * older read whose region was closed since is refused itself. Returns the request that is refused.
 */
static struct fake_wr *answer_older(struct verve_net_qp *qp, struct fake_wr *refused)
{
	struct verve_net_qp *target;
	struct fake_wr *wr;

	HASH_FIND(hh, qp->peer->qps, &qp->peer_num, sizeof(qp->peer_num), target);
	for (wr = TAILQ_FIRST(&qp->wrs); wr != refused; wr = TAILQ_NEXT(wr, link)) {
		wr->acked |= wr->state == FAKE_WR_DONE;
		if (wr->state != FAKE_WR_EXECUTED)
			continue;
		if (wr->wr.op == VERVE_NET_READ && !fake_responder_may_read(wr, target))
			return wr;
		wr->responded = true;
		if (wr->wr.op != VERVE_NET_READ)
			continue;
		wr->response = malloc(wr->len + 1);
		if (!wr->response)
			fake_fatal("no memory");
		if (wr->len)
			memcpy(wr->response,
			       fake_rkey_memory(target->dev, wr->wr.rkey, wr->wr.remote_addr),
			       wr->len);
	}
	return refused;
}

/* The oldest request under way concerns this side alone, and is executed. */
static void execute_here(struct verve_net_qp *qp)
{
	struct fake_wr *wr = qp->flying;
	int status = fake_wr_execute_here(qp, wr);

	fake_trace("host %u qp %u: request %u, op %d, status %d", qp->dev->host->index, qp->num,
		   wr->number, wr->wr.op, status);
	if (status) {
		fail(qp, wr, (uint32_t)status, fake_world.now + fake_rc_delay());
		return;
	}
	advance(qp, wr);
	wr->acked = wr->responded = true;
	if (qp->flying)
		fake_event_at(&qp->arrive, qp->flying->when, arrive);
	schedule_completion(qp);
}

static void arrive(struct fake_event *event)
{
	struct verve_net_qp *qp = QP_OF(event, arrive), *target = target_of(qp);
	struct fake_wr *wr = qp->flying;
	int status;

	if (fake_wr_is_local(wr)) {
		execute_here(qp);
		return;
	}
	if (!target) {
		unanswered(qp, wr, event, arrive);
		return;
	}
	qp->silent_since = 0;
	status = fake_responder_execute(qp, wr, target);
	fake_trace("host %u qp %u -> host %u qp %u: request %u, op %d, %u bytes, status %d",
		   qp->dev->host->index, qp->num, qp->peer->index, qp->peer_num, wr->number,
		   wr->wr.op, wr->len, status);
	if (status == FAKE_BEGUN) {
		fake_event_at(event, fake_world.now + 10 * fake_rc_delay(), arrive);
		return;
	}
	if (status == FAKE_NOT_READY) {
		fake_world.stats.rnr++;
		fake_event_at(event, fake_world.now + fake_between(rnr_min, rnr_max), arrive);
		return;
	}
	if (qp->state != FAKE_QP_RTS)
		return; /* connected to itself: the error flushed it */
	if (status) {
		if (status >= FAKE_WC_REMOTE_INVALID)
			wr = answer_older(qp, wr);
		fail(qp, wr, (uint32_t)status, fake_world.now + fake_rc_delay());
		return;
	}
	advance(qp, wr);
	if (qp->flying)
		fake_event_at(&qp->arrive, qp->flying->when, arrive);
	schedule_completion(qp);
}

static struct fake_wr *oldest_response(struct verve_net_qp *qp)
{
	struct fake_wr *wr;

	/* Behind one that failed there is none. */
	TAILQ_FOREACH (wr, &qp->wrs, link)
		if (wr->state == FAKE_WR_EXECUTED || wr->status)
			return wr->status ? NULL : wr;
	return NULL;
}

/* True for a read that may lie: its response has several packets. */
static bool is_long(const struct fake_wr *wr)
{
	return wr->len > LONG || wr->len > fake_world.config.mtu;
}

static void respond(struct fake_event *event)
{
	struct verve_net_qp *qp = QP_OF(event, respond), *target = target_of(qp);
	struct fake_wr *wr = oldest_response(qp);

	if (!wr)
		return;
	if (!target && !wr->responded) {
		unanswered(qp, wr, event, respond);
		return;
	}
	qp->silent_since = 0;
	if (wr->wr.op == VERVE_NET_READ && !wr->responded &&
	    !fake_responder_may_read_again(wr, target)) {
		fake_responder_refuse(target, 0);
		if (qp->state == FAKE_QP_RTS)
			fail(qp, wr, FAKE_WC_REMOTE_ACCESS, fake_world.now);
		return;
	}
	if (!fake_wr_is_valid(qp, wr)) {
		fake_world.stats.access_errors++;
		fail(qp, wr, FAKE_WC_LOCAL_PROTECTION, fake_world.now);
		return;
	}
	if (wr->wr.op == VERVE_NET_READ && is_long(wr) && target != qp && !qp->failing &&
	    fake_chance(fake_world.config.lies)) {
		wr->lie = wr->responded = true;
		fail(qp, wr, FAKE_WC_OK, fake_world.now);
		return;
	}
	if (wr->response)
		fake_wr_scatter(qp, wr, wr->response);
	else if (wr->wr.op == VERVE_NET_READ)
		fake_wr_scatter(qp, wr,
				fake_rkey_memory(target->dev, wr->wr.rkey, wr->wr.remote_addr));
	else
		fake_wr_scatter(qp, wr, &wr->fetched);
	qp->reads--;
	wr->state = FAKE_WR_DONE;
	wr->acked = true;
	wr->when = fake_world.now + fake_between(0, 500);
	fake_event_cancel(&qp->complete);
	schedule_completion(qp);
	wr = oldest_response(qp);
	if (wr)
		fake_event_at(event, wr->when, respond);
	fake_rc_launch(qp);
}

/* Has the acknowledgement come? If not, it is asked for again. */
static bool is_answered(struct verve_net_qp *qp, struct fake_wr *wr)
{
	if (wr->status || wr->responded ||
	    (wr->acked && fake_is_reachable(qp->dev->host, qp->peer)))
		return true;
	wr->acked = target_of(qp);
	return wr->acked;
}

static void complete(struct fake_event *event)
{
	struct verve_net_qp *qp = QP_OF(event, complete);
	struct fake_wr *wr;

	while ((wr = TAILQ_FIRST(&qp->wrs)) && wr->state == FAKE_WR_DONE &&
	       wr->when <= fake_world.now) {
		struct verve_net_wc wc = {
			.wr_id = wr->wr.wr_id,
			.opcode = VERVE_NET_WC_SEND,
			.qp_num = qp->num,
		};

		if (!is_answered(qp, wr)) {
			unanswered(qp, wr, event, complete);
			return;
		}
		wc.status = wr->status;
		TAILQ_REMOVE(&qp->wrs, wr, link);
		if (wc.status && qp->state != FAKE_QP_ERROR && qp->has_silent &&
		    fake_world.config.error_names_oldest)
			wc.wr_id = qp->silent;
		if (wc.status || wr->wr.flags & VERVE_NET_SIGNALED) {
			fake_cq_push(qp->attr.send_cq, &wc, qp, wr->number);
			qp->has_silent = false;
		} else if (!qp->has_silent) {
			qp->has_silent = true;
			qp->silent = wc.wr_id;
		}
		if (wc.status || wr->lie)
			fake_rc_error(qp);
		fake_wr_free(qp, wr);
	}
	schedule_completion(qp);
}

/* Packets that left before the error may still arrive; nobody will hear of it. */
static void strand(struct verve_net_qp *qp)
{
	struct fake_wr *wr;

	for (wr = qp->flying; wr && wr->state == FAKE_WR_FLYING && fake_chance(500);
	     wr = TAILQ_NEXT(wr, link)) {
		struct verve_net_qp *target = target_of(qp);

		if (fake_wr_is_local(wr)) {
			if (fake_wr_execute_here(qp, wr))
				return;
			continue;
		}
		if (!target || fake_responder_execute(qp, wr, target) != FAKE_WC_OK)
			return;
	}
}

void fake_rc_error(struct verve_net_qp *qp)
{
	bool connected = qp->state == FAKE_QP_RTS;
	struct fake_wr *wr;

	if (qp->state == FAKE_QP_ERROR)
		return;
	fake_trace("host %u qp %u goes to error", qp->dev->host->index, qp->num);
	qp->state = FAKE_QP_ERROR;
	fake_event_cancel(&qp->arrive);
	fake_event_cancel(&qp->respond);
	fake_event_cancel(&qp->complete);
	if (connected && !qp->failing)
		strand(qp);
	TAILQ_FOREACH (wr, &qp->wrs, link) {
		if (wr->state != FAKE_WR_DONE || !wr->status)
			wr->status = FAKE_WC_FLUSHED;
		wr->state = FAKE_WR_DONE;
		wr->when = fake_world.now + flush_time;
	}
	qp->flying = qp->posted = NULL;
	schedule_completion(qp);
	if (qp->has_begun && !fake_world.config.error_keeps_recv)
		fake_event_at(&qp->flush, fake_world.now + fake_between(0, flush_late), flush_recv);
}

static struct verve_net_qp *only_qp(uint32_t h)
{
	struct fake_host *host = &fake_world.hosts[h];

	if (HASH_COUNT(host->qps) > 1)
		fake_fatal("host %u has %u queue pairs", h, HASH_COUNT(host->qps));
	return host->qps;
}

/* Only the oldest request completes, whatever the clock says. */
static void put_off_younger(struct verve_net_qp *qp)
{
	struct fake_wr *wr = TAILQ_FIRST(&qp->wrs);

	while ((wr = TAILQ_NEXT(wr, link)))
		if (wr->when <= fake_world.now)
			wr->when = fake_world.now + 1;
}

bool fake_net_run_leg(uint32_t h, enum fake_net_leg leg)
{
	struct verve_net_qp *qp = only_qp(h);
	struct fake_event *event;

	if (!qp)
		return false;
	event = leg == FAKE_NET_ARRIVE ? &qp->arrive :
		leg == FAKE_NET_RESPOND ? &qp->respond : &qp->complete;
	if (!fake_event_is_set(event))
		return false;
	if (fake_world.now < event->time)
		fake_world.now = event->time;
	if (leg == FAKE_NET_COMPLETE)
		put_off_younger(qp);
	fake_event_run(event);
	return true;
}

static uint64_t digest_wr(const struct verve_net_qp *qp, const struct fake_wr *wr, uint64_t digest)
{
	uint32_t head = 0;

	if (wr->inline_data && wr->len >= sizeof(head))
		memcpy(&head, wr->inline_data, sizeof(head));
	else if (wr->wr.op == VERVE_NET_SEND && wr->wr.sge_count && wr->state < FAKE_WR_DONE)
		memcpy(&head, fake_wr_memory(qp, &wr->sge[0]), sizeof(head));
	digest = fake_mix(digest, (uint64_t)wr->wr.op << 32 | wr->state);
	digest = fake_mix(digest, (uint64_t)wr->len << 32 | wr->status);
	return fake_mix(digest, (uint64_t)head << 32 | wr->wr.flags);
}

uint64_t fake_net_digest(uint32_t h)
{
	const struct verve_net_qp *qp = only_qp(h);
	const struct fake_wr *wr;
	uint64_t digest = 0;

	if (!qp)
		return 0;
	TAILQ_FOREACH (wr, &qp->wrs, link)
		digest = digest_wr(qp, wr, digest);
	digest = fake_mix(digest, (uint64_t)qp->state << 32 | qp->reads);
	digest =
		fake_mix(digest, (uint64_t)qp->attr.srq->count << 32 | (qp->produced - qp->polled));
	return fake_cq_digest(qp->attr.recv_cq, fake_cq_digest(qp->attr.send_cq, digest));
}
