/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: what the engine asks for, and hears. What asks may be called by any thread; the
 * rest is the service thread's.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "conn/cm_state.h"
#include "conn/conn.h"

enum request_kind { CONNECT, RESUME, DROP, EXPIRE, CHECK, HEAR };

struct verve_cm_request {
	struct verve_cm_event event; /* first: of a connection that is asked for, it becomes FAILED */
	enum request_kind kind;
	bool first; /* CHECK */
};

/* Events. */

struct verve_cm_event *verve_cm_up_alloc(void)
{
	struct verve_cm_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->drop = calloc(1, sizeof(*event->drop));
	if (!event->drop) {
		free(event);
		return NULL;
	}
	event->drop->kind = DROP;
	return event;
}

/* The event is the reader's from here on. */
static void post(struct verve_cm *cm, struct verve_cm_entry *entry, struct verve_cm_event **eventp,
		 enum verve_cm_event_type type, int error)
{
	struct verve_cm_event *event = *eventp;

	*eventp = NULL;
	event->type = type;
	event->addr = entry->conn.addr;
	event->conn_id = type == VERVE_CM_FAILED ? 0 : entry->id;
	event->error = error;
	verve_mailbox_put(cm->attr.events, &event->mail);
	cm->has_news = true;
}

void verve_cm_post_down(struct verve_cm *cm, struct verve_cm_entry *entry,
			const struct verve_conn_out *out)
{
	char name[VERVE_ADDR_STRLEN];

	VERVE_INFO(EP_CTRL, "connection %#x to %s is down: %s\n", entry->id,
		   verve_addr_str(&entry->conn.addr, name), fi_strerror(out->error));
	entry->down->suspended = out->suspended;
	post(cm, entry, &entry->down, VERVE_CM_DOWN, out->error);
}

void verve_cm_post_failed(struct verve_cm *cm, struct verve_cm_entry *entry, int error)
{
	char name[VERVE_ADDR_STRLEN];

	if (!entry->request)
		return;
	VERVE_WARN(EP_CTRL, "cannot connect to %s: %s\n", verve_addr_str(&entry->conn.addr, name),
		   fi_strerror(error));
	post(cm, entry, &entry->request, VERVE_CM_FAILED, error);
	cm->stats.failed++;
}

void verve_cm_post_up(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_conn_out *out)
{
	struct verve_cm_event *event = entry->up;

	event->remote_id = entry->conn.remote.id;
	event->qp = entry->qp;
	event->window = entry->conn.remote.window;
	event->eager_size = entry->conn.remote.eager_size;
	event->features = entry->conn.remote.features;
	event->resumes = entry->conn.remote.resumes;
	event->drop->event.conn_id = entry->id;
	event->may_send = out->may_send;
	event->listen = out->listen;
	event->greet = out->greet;
	post(cm, entry, &entry->up, VERVE_CM_UP, 0);
	entry->qp = NULL;
	free(entry->request);
	entry->request = NULL;
	cm->stats.connected++;
}

void verve_cm_post_ready(struct verve_cm *cm, struct verve_cm_entry *entry,
			 const struct verve_conn_out *out)
{
	entry->ready->greet = out->greet;
	post(cm, entry, &entry->ready, VERVE_CM_READY, 0);
}

/* Requests, in the service thread. */

static void request_connect(struct verve_cm *cm, struct verve_cm_event *request)
{
	struct verve_cm_entry *entry = verve_cm_entry_make(cm, &request->addr);

	if (!entry) {
		request->type = VERVE_CM_FAILED;
		request->conn_id = 0;
		request->error = FI_ENOMEM;
		verve_mailbox_put(cm->attr.events, &request->mail);
		cm->has_news = true;
		cm->stats.failed++;
		return;
	}
	if (entry->conn.state == VERVE_CONN_IDLE)
		verve_conn_forget(&entry->conn, request->conn_id);
	verve_conn_connect(&entry->conn);
	if (entry->request || verve_conn_is_established(&entry->conn))
		free(request);
	else
		entry->request = request;
	verve_cm_entry_settle(cm, entry);
}

/* The engine knows it already: nothing is reported. READY may have come meanwhile. */
static void expire(struct verve_cm_entry *entry, struct verve_conn_out *out)
{
	if (entry->conn.state != VERVE_CONN_WAIT_READY) {
		verve_conn_drop(&entry->conn, out);
		return;
	}
	verve_conn_expire(&entry->conn, out);
	out->actions &= ~VERVE_CONN_DO_DOWN;
}

/* What the engine asks about a connection that there is. */
static void step_conn(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_cm_request *request)
{
	struct verve_conn_out out = {0};

	switch (request->kind) {
	case RESUME:
		verve_conn_suspend(&entry->conn, &out);
		break;
	case DROP:
		verve_conn_drop(&entry->conn, &out);
		break;
	case EXPIRE:
		expire(entry, &out);
		break;
	case CHECK:
		verve_conn_check(&entry->conn, request->first, &out);
		break;
	case HEAR:
		verve_conn_hear(&entry->conn);
		break;
	case CONNECT:
		break;
	}
	verve_cm_perform(cm, entry, &out);
}

/* If a suspended one is gone, the peer may have suspended it, or have asked for the next: that serves both. */
static void step_request(struct verve_cm *cm, struct verve_cm_request *request)
{
	struct verve_cm_entry *entry = verve_idtab_get(&cm->ids, request->event.conn_id);

	if (entry)
		step_conn(cm, entry, request);
	if (request->kind == CONNECT || request->kind == RESUME)
		request_connect(cm, &request->event);
	else
		free(request);
}

void verve_cm_step_requests(struct verve_cm *cm)
{
	struct verve_mail *mail, *next;

	for (mail = verve_mailbox_take(&cm->requests); mail; mail = next) {
		next = mail->next;
		step_request(cm, (struct verve_cm_request *)mail);
	}
}

/* Requests, in the engine. */

static void put(struct verve_cm *cm, struct verve_cm_request *request)
{
	if (verve_mailbox_put(&cm->requests, &request->event.mail))
		cm->attr.wake(cm->attr.arg);
}

static int put_request(struct verve_cm *cm, const struct verve_cm_request *from)
{
	struct verve_cm_request *request = malloc(sizeof(*request));

	if (!request)
		return -FI_ENOMEM;
	*request = *from;
	put(cm, request);
	return 0;
}

int verve_cm_connect(struct verve_cm *cm, const struct verve_addr *addr)
{
	return put_request(cm, &(struct verve_cm_request){.kind = CONNECT, .event.addr = *addr});
}

int verve_cm_resume(struct verve_cm *cm, const struct verve_addr *addr, uint32_t conn_id)
{
	return put_request(cm, &(struct verve_cm_request){.kind = RESUME, .event.addr = *addr,
							  .event.conn_id = conn_id});
}

void verve_cm_drop(struct verve_cm *cm, struct verve_cm_request **drop)
{
	if (*drop)
		put(cm, *drop);
	*drop = NULL;
}

void verve_cm_expire(struct verve_cm *cm, struct verve_cm_request **drop)
{
	if (*drop)
		(*drop)->kind = EXPIRE;
	verve_cm_drop(cm, drop);
}

void verve_cm_request_free(struct verve_cm_request *request)
{
	free(request);
}

int verve_cm_hear(struct verve_cm *cm, uint32_t conn_id)
{
	return put_request(cm, &(struct verve_cm_request){.kind = HEAR, .event.conn_id = conn_id});
}

int verve_cm_check(struct verve_cm *cm, uint32_t conn_id, bool first)
{
	return put_request(cm, &(struct verve_cm_request){.kind = CHECK, .event.conn_id = conn_id,
							  .first = first});
}

void verve_cm_event_free(struct verve_cm_event *event)
{
	if (event)
		free(event->drop);
	free(event);
}
