/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs and shared receive queues of the fake net. fake_qp.c opens, posts and closes,
 * fake_rc.c is the initiator's side of the transport, fake_responder.c the target's, and fake_wr.c
 * knows the memory of a work request.
 *
 * A work request goes POSTED, FLYING (its packets are under way; executed at the target when they
 * arrive, in order), EXECUTED (a read or atomic whose response is under way), DONE (its completion
 * is under way).
 */
#ifndef VERVE_TEST_SUPPORT_FAKE_QP_H
#define VERVE_TEST_SUPPORT_FAKE_QP_H

#include <sys/queue.h>

#include "fake_world.h"
#include "net/bind.h"
#include "net/qp.h"
#include "net/srq.h"

/* InfiniBand spec. vol. 1, 11.6.2, with the numbers of enum ibv_wc_status. */
enum {
	FAKE_WC_OK = 0,
	FAKE_WC_LOCAL_LENGTH = 1,
	FAKE_WC_LOCAL_OPERATION = 2,
	FAKE_WC_LOCAL_PROTECTION = 4,
	FAKE_WC_FLUSHED = 5,
	FAKE_WC_BIND = 6,
	FAKE_WC_REMOTE_INVALID = 9,
	FAKE_WC_REMOTE_ACCESS = 10,
	FAKE_WC_REMOTE_OPERATION = 11,
	FAKE_WC_RETRY_EXCEEDED = 12,
};

enum fake_qp_state { FAKE_QP_INIT, FAKE_QP_RTS, FAKE_QP_ERROR };

enum fake_wr_state { FAKE_WR_POSTED, FAKE_WR_FLYING, FAKE_WR_EXECUTED, FAKE_WR_DONE };

struct fake_wr {
	TAILQ_ENTRY(fake_wr) link;
	struct verve_net_wr wr; /* sge points to the array below */
	struct verve_net_sge sge[FAKE_MAX_SGE];
	struct verve_net_bind bind;
	uint8_t *inline_data; /* few, or on the heap; NULL: not inline */
	uint8_t few[64];
	uint32_t len;	      /* bytes */
	uint32_t number;      /* of the queue pair's requests */
	uint64_t fetched;     /* atomic: the word's value before */
	enum fake_wr_state state;
	uint32_t status;
	uint64_t when; /* FLYING: executed; EXECUTED: response; DONE: completes */
	bool acked;    /* the acknowledgement has left the target */
	uint8_t *response; /* a read's, sent before the target refused a later request; or NULL */
	bool responded;	   /* the response has left so */
	bool lie;	   /* reported as done although the response has not come */
};

TAILQ_HEAD(fake_wr_queue, fake_wr);

struct verve_net_qp {
	UT_hash_handle hh; /* of its host */
	uint32_t num;
	struct verve_net_device *dev;
	struct verve_net_qp_attr attr;
	enum fake_qp_state state;
	struct fake_host *peer; /* NULL until connected */
	bool receives;		/* verve_net_qp_may_receive */
	uint32_t peer_num;
	uint32_t send_psn, recv_psn; /* of the next request, 24 bits */
	uint64_t timeout;
	uint32_t read_limit, reads; /* in flight, atomics among them */
	struct fake_wr_queue wrs;   /* oldest first: DONE and EXECUTED, FLYING, POSTED */
	struct fake_wr *flying;	    /* oldest that is FLYING; NULL */
	struct fake_wr *posted;	    /* oldest that is POSTED; NULL */
	/* kept for the next request, because a heap full of holes is slow; or NULL */
	struct fake_wr *spare;
	uint32_t produced, polled;  /* requests */
	uint64_t last_arrival, last_response;
	uint64_t silent_since; /* 0: the peer answers */
	bool failing;	       /* an error is on its way: no request leaves any more */
	bool has_silent; /* requests ended well and silently since the last completion; */
	uint64_t silent; /* the id of the first of them */
	bool has_begun;	       /* a message arrives, */
	struct verve_net_recv begun; /* in this receive */
	uint32_t serial;       /* number among the queue pairs of its shared receive queue */
	struct fake_event arrive, respond, complete, flush;
};

/* Something comes back but an acknowledgement. */
static inline bool fake_wr_fetches(const struct fake_wr *wr)
{
	return wr->wr.op >= VERVE_NET_READ && wr->wr.op <= VERVE_NET_FETCH_ADD;
}

/* Binds or ends a window for a peer: concerns the initiator alone. */
static inline bool fake_wr_is_local(const struct fake_wr *wr)
{
	return wr->wr.op == VERVE_NET_BIND || wr->wr.op == VERVE_NET_INVALIDATE;
}

struct verve_net_srq {
	struct verve_net_device *dev;
	struct verve_net_recv *ring;
	uint32_t depth, head, count;
	uint32_t users;
	uint32_t begun; /* receives that queue pairs have taken out and not filled */
	uint32_t opened, closed; /* queue pairs, ever */
};

/* The oldest receive, out of the queue. False: empty. */
bool fake_srq_take(struct verve_net_srq *srq, struct verve_net_recv *recv);

/* The application has polled request number: it and older requests leave the send queue. */
void fake_qp_polled(struct verve_net_qp *qp, uint32_t number);

/* Sends the requests that may leave now. */
void fake_rc_launch(struct verve_net_qp *qp);
/* Puts the queue pair in the error state. */
void fake_rc_error(struct verve_net_qp *qp);
void fake_wr_free(struct verve_net_qp *qp, struct fake_wr *wr);

/* fake_wr.c: qp is the initiator's queue pair, on which wr was posted. */

/* True if the local keys of wr cover its segments, and let reads and atomics write there. */
bool fake_wr_is_valid(const struct verve_net_qp *qp, const struct fake_wr *wr);
/* The memory of a segment, which is valid. */
void *fake_wr_memory(const struct verve_net_qp *qp, const struct verve_net_sge *sge);
/* Executes a request that concerns the initiator alone: FAKE_WC_*. */
int fake_wr_execute_here(struct verve_net_qp *qp, const struct fake_wr *wr);
/* Copies the segments, or the inline data, into wr->len bytes. */
void fake_wr_gather(const struct verve_net_qp *qp, const struct fake_wr *wr, void *to);
/* Copies wr->len bytes into the segments. */
void fake_wr_scatter(const struct verve_net_qp *qp, const struct fake_wr *wr, const void *from);
/* Spoils the destination of a read, which may hold anything until the read completes. */
void fake_wr_poison(const struct verve_net_qp *qp, const struct fake_wr *wr);

/* fake_responder.c */

/* Results of fake_responder_execute() beside FAKE_WC_*. */
enum {
	FAKE_NOT_READY = -1, /* the target has no receive: the initiator tries again */
	FAKE_BEGUN = -2,     /* the first packet has arrived: the rest is to be executed later */
};

/* Executes a request at the target: FAKE_WC_* for the initiator, or one of the two above. */
int fake_responder_execute(struct verve_net_qp *qp, struct fake_wr *wr,
			   struct verve_net_qp *target);
/* Puts the target's queue pair in error. Returns status, which is the initiator's. */
int fake_responder_refuse(struct verve_net_qp *target, int status);
/* True if the remote key of a read covers its range. */
bool fake_responder_may_read(const struct fake_wr *wr, const struct verve_net_qp *target);
/*
 * The same for a read whose response was lost and which is asked for again. soft-RoCE then wants a
 * region even for a read of 0 bytes.
 */
bool fake_responder_may_read_again(const struct fake_wr *wr, const struct verve_net_qp *target);

#endif
