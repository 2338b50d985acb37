/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mail between an engine and its connection manager: events that the engine reads, and requests
 * that the manager reads. They share memory: a request for a connection becomes its FAILED event,
 * and an UP event carries the request that will give its connection up.
 *
 * This file owns their layout, making and freeing. It must not know the manager, nor connections.
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
	 * A connection exists; the reader owns qp from now on. It may carry messages to the peer at
	 * once if may_send, else after READY or the peer's first message, whichever comes first.
	 */
	VERVE_CM_UP,
	VERVE_CM_READY,
	/* verve_cm_connect to addr failed: refused, timed out, or no resources here. No conn_id. */
	VERVE_CM_FAILED,
	/*
	 * The peer ended the connection, restarted, or began anew. What had arrived before is still
	 * in the completion queue: take it first. conn_id is free for another connection's UP from
	 * here on.
	 */
	VERVE_CM_DOWN,
};

/* Owned by the reader of the mailbox; free with verve_cm_event_free. */
struct verve_cm_event {
	struct verve_mail mail;
	enum verve_cm_event_type type;
	struct verve_addr addr; /* the peer */
	uint32_t conn_id;	/* ours: the destination id in the peer's packets (base/idtab.h) */
	uint32_t remote_id;	/* the peer's: goes into our packets */
	struct verve_net_qp *qp;
	uint32_t window;     /* eager messages that the peer lets us have unconsumed */
	uint32_t eager_size; /* bytes of payload that the peer's receive buffers take */
	uint32_t features;   /* that the peer announced: VERVE_HELLO_* */
	/*
	 * UP: for verve_cm_drop. Made with the event, so that giving a connection up needs no
	 * memory. A reader that takes it sets it NULL, and owns it: verve_cm_request_free.
	 */
	struct verve_cm_request *drop;
	bool may_send;
	/* UP: READY may come as a packet: verve_cm_hear at the first packet; verve_cm_expire */
	bool listen;
	/* UP, READY: the peer listens: send it a packet of any kind as soon as there is room */
	bool greet;
	/* UP: the peer's id of the suspended connection continued here; 0: none */
	uint32_t resumes;
	/* DOWN: the peer wants to continue with another queue pair: verve_cm_resume */
	bool suspended;
	int error;	/* FAILED, DOWN: positive FI errno */
};

/* NULL: nothing. */
void verve_cm_event_free(struct verve_cm_event *event);
/* NULL: nothing. */
void verve_cm_request_free(struct verve_cm_request *request);

/* For the manager's files: an event with its drop. NULL: no memory. */
struct verve_cm_event *verve_cm_event_alloc_up(void);

enum verve_cm_request_kind {
	VERVE_CM_REQUEST_CONNECT,
	VERVE_CM_REQUEST_RESUME,
	VERVE_CM_REQUEST_DROP,
	VERVE_CM_REQUEST_EXPIRE,
	VERVE_CM_REQUEST_CHECK,
	VERVE_CM_REQUEST_HEAR,
};

/* For the manager's files: see the functions of conn/cm.h that ask. */
struct verve_cm_request {
	/* first. CONNECT, RESUME: becomes FAILED. addr or conn_id: of what */
	struct verve_cm_event event;
	enum verve_cm_request_kind kind;
	bool first; /* CHECK: the peer was heard of since the last check */
};

#endif
