/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mail between an engine and its connection manager: the engine reads events, the manager reads
 * requests. A request for a connection becomes the FAILED event in the same memory. An UP event
 * brings along the request that will give its connection up.
 *
 * This file owns layout, allocation and freeing of events and requests. It must not know the
 * manager, nor connections. Any thread.
 */
#ifndef VERVE_CONN_CM_EVENT_H
#define VERVE_CONN_CM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/mailbox.h"
#include "net/qp.h"

struct verve_cm_request;

enum verve_cm_event_type {
	/*
	 * A connection exists; the reader owns qp from now on. If may_send is true, the reader may
	 * send packets at once; if not, after READY or the peer's first packet, whichever is first.
	 */
	VERVE_CM_UP,
	/* The peer's queue pair is connected, too: the reader may send packets. */
	VERVE_CM_READY,
	/*
	 * A request to connect to addr failed: refused, timed out, or no resources. conn_id is 0.
	 */
	VERVE_CM_FAILED,
	/*
	 * The peer ended the connection, restarted, or began a new one; or a check failed. Packets
	 * that arrived before are still in the completion queue: the reader handles them first.
	 * From here on another connection's UP may have the same conn_id.
	 */
	VERVE_CM_DOWN,
	/*
	 * The device, or a queue of the endpoint, has failed: no connection is made any more. DOWN
	 * and FAILED of all that there was follow. Comes once. conn_id is 0.
	 */
	VERVE_CM_FATAL,
	/* A peer has asked, and this side found no queue pair for it. conn_id is 0. */
	VERVE_CM_SCARCE,
	/*
	 * qp was connected, or nearly so, and gets no connection. Packets may have come over it:
	 * the reader, who owns qp from now on, takes them before it closes qp. conn_id is 0.
	 */
	VERVE_CM_UNUSED,
};

/* Owned by the reader of the mailbox, who frees it with verve_cm_event_free. */
struct verve_cm_event {
	struct verve_mail mail;
	enum verve_cm_event_type type;
	struct verve_addr addr; /* the peer's address */
	uint32_t conn_id;	/* our connection id: the peer's packets carry it (base/idtab.h) */
	uint32_t remote_id;	/* UP: the peer's connection id: our packets carry it */
	struct verve_net_qp *qp; /* UP, UNUSED: the queue pair, now the reader's; else NULL */
	uint32_t window;     /* UP: credits that we have at the peer at first */
	uint32_t eager_size; /* UP: bytes of payload that the peer's receive buffers take */
	uint32_t features;   /* UP: VERVE_HELLO_* that the peer announced */
	/*
	 * UP: the request for verve_cm_drop. It is allocated with the event, so that giving up a
	 * connection cannot fail for lack of memory. A reader that keeps the request sets drop to
	 * NULL, and frees the request with verve_cm_request_free if it never drops.
	 */
	struct verve_cm_request *drop;
	bool may_send; /* UP: the peer's queue pair is connected */
	/*
	 * UP: the peer's first packet takes the place of READY: call verve_cm_hear when it comes,
	 * verve_cm_expire if it does not.
	 */
	bool listen;
	/* UP, READY: the peer listens: send a packet of any kind as soon as there is room */
	bool greet;
	/* UP: the peer's id of the suspended connection that this one continues; 0: none */
	uint32_t resumes;
	/* DOWN: the peer wants to continue with another queue pair: verve_cm_resume */
	bool suspended;
	/* FAILED: this side found no queue pair, and may find one when another is closed */
	bool scarce;
	int error;	/* FAILED, DOWN, FATAL: positive FI errno */
};

/* Frees an event with its drop; its queue pair stays. NULL is allowed. */
void verve_cm_event_free(struct verve_cm_event *event);
/* NULL is allowed. */
void verve_cm_request_free(struct verve_cm_request *request);

/* For the manager's files: allocates an UP event with its drop. NULL: no memory. */
struct verve_cm_event *verve_cm_event_alloc_up(void);

enum verve_cm_request_kind {
	VERVE_CM_REQUEST_CONNECT,
	VERVE_CM_REQUEST_RESUME,
	VERVE_CM_REQUEST_DROP,
	VERVE_CM_REQUEST_EXPIRE,
	VERVE_CM_REQUEST_CHECK,
	VERVE_CM_REQUEST_HEAR,
	VERVE_CM_REQUEST_FAIL,
};

/* For the manager's files. The functions of conn/cm.h make requests, and explain each kind. */
struct verve_cm_request {
	/*
	 * Must be first. addr or conn_id tell the peer or the connection. CONNECT, RESUME: becomes
	 * the FAILED event.
	 */
	struct verve_cm_event event;
	enum verve_cm_request_kind kind;
	bool first; /* CHECK: the peer was heard of since the last check */
};

#endif
