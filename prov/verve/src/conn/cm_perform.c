/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Output of the connection manager: queue pairs, events for the engine, datagrams to peers. */
#include "conn/cm_perform.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "conn/cm_entry.h"
#include "conn/cm_job.h"
#include "conn/conn.h"
#include "net/sys.h"

int verve_cm_send(struct verve_cm *cm, const struct verve_hello *hello,
		  const struct verve_addr *to)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	verve_guard_seal(&cm->guard, hello, buf, to);
	cm->stats.sent++;
	return verve_net_dgram_send(cm->dgram, buf, sizeof(buf), to);
}

/* Puts the event into the engine's mailbox. The engine owns it from then on; *eventp is NULL. */
static void event_post(struct verve_cm *cm, struct verve_cm_entry *entry,
		       struct verve_cm_event **eventp, enum verve_cm_event_type type, int error)
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

static void event_post_down(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_conn_out *out)
{
	char name[VERVE_ADDR_STRLEN];

	VERVE_INFO(EP_CTRL, "connection %#x to %s is down: %s\n", entry->id,
		   verve_addr_str(&entry->conn.addr, name), fi_strerror(out->error));
	entry->down->suspended = out->suspended;
	event_post(cm, entry, &entry->down, VERVE_CM_DOWN, out->error);
}

static void event_post_failed(struct verve_cm *cm, struct verve_cm_entry *entry, int error)
{
	char name[VERVE_ADDR_STRLEN];

	if (!entry->request)
		return;
	/* The engine may try again where queue pairs are missing, and logs if it gives up. */
	if (entry->request->scarce || error == FI_EBUSY)
		VERVE_INFO(EP_CTRL, "no queue pair %s to connect to %s now\n",
			   entry->request->scarce ? "here" : "there",
			   verve_addr_str(&entry->conn.addr, name));
	else if (entry->for_peer)
		verve_guard_warn_again(&cm->guard, &entry->conn.addr, error, verve_net_now());
	else
		VERVE_WARN(EP_CTRL, "cannot connect to %s: %s\n",
			   verve_addr_str(&entry->conn.addr, name), fi_strerror(error));
	event_post(cm, entry, &entry->request, VERVE_CM_FAILED, error);
	cm->stats.failed++;
}

static void event_post_up(struct verve_cm *cm, struct verve_cm_entry *entry,
		    const struct verve_conn_out *out)
{
	struct verve_cm_event *event = entry->up;

	event->remote_id = entry->conn.remote.id;
	event->qp = entry->job->qp;
	event->window = entry->conn.remote.window;
	event->eager_size = entry->conn.remote.eager_size;
	event->features = entry->conn.remote.features;
	event->resumes = entry->conn.remote.resumes;
	event->drop->event.conn_id = entry->id;
	event->may_send = out->may_send;
	event->listen = out->listen;
	event->greet = out->greet;
	event_post(cm, entry, &entry->up, VERVE_CM_UP, 0); /* the event is the engine's now */
	free(entry->job);
	entry->job = NULL;
	if (!entry->request && !entry->conn.remote.resumes)
		entry->for_peer = true;
	free(entry->request);
	entry->request = NULL;
	cm->stats.connected++;
}

static void event_post_ready(struct verve_cm *cm, struct verve_cm_entry *entry,
		       const struct verve_conn_out *out)
{
	entry->ready->greet = out->greet;
	event_post(cm, entry, &entry->ready, VERVE_CM_READY, 0);
}

void verve_cm_fail_request(struct verve_cm *cm, struct verve_cm_event *request, int error)
{
	request->type = VERVE_CM_FAILED;
	request->conn_id = 0;
	request->error = error;
	verve_mailbox_put(cm->attr.events, &request->mail);
	cm->has_news = true;
	cm->stats.failed++;
}

/* Returns the result of sending the datagram; 0: there was none to send. */
static int perform_once(struct verve_cm *cm, struct verve_cm_entry *entry,
			struct verve_conn_out *out)
{
	if (out->actions & VERVE_CONN_DO_CONNECT) {
		int ret = verve_cm_job_connect(cm, entry, out);

		if (!ret) {
			verve_cm_entry_settle(cm, entry);
			return 0;
		}
		verve_conn_abort(&entry->conn, -ret, out);
	}
	if (out->actions & VERVE_CONN_DO_DOWN)
		event_post_down(cm, entry, out);
	if (out->actions & VERVE_CONN_DO_FAIL)
		event_post_failed(cm, entry, out->error);
	if (out->actions & VERVE_CONN_DO_UP)
		event_post_up(cm, entry, out);
	if (out->actions & VERVE_CONN_DO_READY)
		event_post_ready(cm, entry, out);
	if (out->foreign)
		cm->stats.foreign++;
	verve_cm_entry_settle(cm, entry);
	if (!(out->actions & VERVE_CONN_DO_SEND))
		return 0;
	return verve_cm_send(cm, &out->hello, &entry->conn.addr);
}

void verve_cm_perform(struct verve_cm *cm, struct verve_cm_entry *entry, struct verve_conn_out *out)
{
	int ret = perform_once(cm, entry, out);

	if (ret && ret != -FI_EAGAIN) {
		struct verve_conn_out unreachable;

		verve_conn_unreachable(&entry->conn, -ret, &unreachable);
		perform_once(cm, entry, &unreachable);
	}
}
