/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection manager: opening and closing, the steps, and the engine's requests. */
#include "conn/cm.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "conn/cm_dgram.h"
#include "conn/cm_done.h"
#include "conn/cm_entry.h"
#include "conn/cm_job.h"
#include "conn/cm_mail.h"
#include "conn/cm_perform.h"
#include "conn/cm_state.h"
#include "conn/conn.h"
#include "net/sys.h"

enum {
	WINDOW = 64,		/* handshakes that we may have begun at the same time */
	WINDOW_FOR_PEERS = 32,	/* those of them that only peers have made our engine begin */
	HALF_OPEN_LIMIT = 4096, /* connections that wait for the peer's READY */
	IDLE_LIMIT = 1024,	/* entries of addresses that have no connection */
};

static void step_timers(struct verve_cm *cm, uint64_t now)
{
	struct verve_timer *timer;
	struct verve_conn_out out;

	while ((timer = verve_timers_first(&cm->timers)) && timer->when <= now) {
		struct verve_cm_entry *entry = (struct verve_cm_entry *)timer;
		struct verve_conn *conn = &entry->conn;

		if (verve_mailbox_is_empty(cm->attr.events))
			verve_conn_taken(conn);
		verve_conn_timer(conn, now, verve_net_random64(), &out);
		if (out.hello.kind == VERVE_HELLO_HELLO || out.hello.kind == VERVE_HELLO_READY)
			cm->stats.retransmitted++;
		verve_cm_perform(cm, entry, &out);
		/*
		 * A repetition means that datagrams get lost, and the peer answers each only once:
		 * send two.
		 */
		if (out.hello.kind == VERVE_HELLO_HELLO && conn->state == VERVE_CONN_WAIT_HELLO)
			verve_cm_send(cm, &out.hello, &conn->addr);
	}
}

/* The handshake starts when our end is open: conn/cm_done.c. */
static void entry_admit(struct verve_cm *cm, struct verve_cm_entry *entry)
{
	struct verve_conn_out out;
	int ret = verve_cm_entry_open(cm, entry);

	if (!ret)
		return;
	verve_conn_abort(&entry->conn, -ret, &out);
	verve_cm_perform(cm, entry, &out);
}

/*
 * The next connection to begin. Those that our engine continues only because the peer suspended
 * them (entry->for_peer) come last, and have half of the window: strangers can make as many of them
 * as they like.
 */
static struct verve_cm_entry *next_to_admit(const struct verve_cm *cm)
{
	struct verve_cm_entry *entry = TAILQ_FIRST(&cm->lists[VERVE_CM_LIST_QUEUED]);

	if (cm->window_used >= WINDOW)
		return NULL;
	if (!entry && cm->window_for_peers < WINDOW_FOR_PEERS)
		entry = TAILQ_FIRST(&cm->lists[VERVE_CM_LIST_AGAIN]);
	return entry;
}

/* Admits connections that wait for the window. Bounds the lists that unknown senders can fill. */
static void step_lists(struct verve_cm *cm)
{
	struct verve_conn_out out;
	struct verve_cm_entry *entry;

	while ((entry = next_to_admit(cm)))
		entry_admit(cm, entry);
	while (cm->count[VERVE_CM_LIST_HALF_OPEN] > HALF_OPEN_LIMIT) {
		entry = TAILQ_FIRST(&cm->lists[VERVE_CM_LIST_HALF_OPEN]);
		verve_conn_expire(&entry->conn, &out);
		verve_cm_perform(cm, entry, &out);
	}
	while (cm->count[VERVE_CM_LIST_IDLE] > IDLE_LIMIT)
		verve_cm_entry_free(cm, TAILQ_FIRST(&cm->lists[VERVE_CM_LIST_IDLE]));
}

uint64_t verve_cm_step(struct verve_cm *cm, uint64_t now)
{
	const struct verve_timer *timer;
	bool more;

	verve_cm_step_requests(cm);
	verve_cm_step_jobs(cm, now);
	more = verve_cm_step_dgrams(cm, now);
	step_timers(cm, now);
	step_lists(cm);
	if (cm->has_news) {
		cm->has_news = false;
		cm->attr.notify(cm->attr.arg);
	}
	timer = verve_timers_first(&cm->timers);
	if (more)
		return now;
	return timer ? timer->when : UINT64_MAX;
}

int verve_cm_open(const struct verve_cm_attr *attr, struct verve_cm **cmp)
{
	struct verve_cm *cm = calloc(1, sizeof(*cm));
	int ret;

	if (!cm)
		return -FI_ENOMEM;
	cm->attr = *attr;
	cm->attr.key = NULL;
	cm->self.addr = attr->addr;
	if (attr->key && verve_addr_is_wildcard(&attr->addr)) {
		VERVE_WARN(EP_CTRL,
			   "an endpoint with an authentication key needs an address of its own: "
			   "peers cannot check a wildcard\n");
		ret = -FI_EINVAL;
		goto err_free;
	}
	ret = -FI_ENOMEM;
	cm->fatal = calloc(1, sizeof(*cm->fatal));
	if (!cm->fatal)
		goto err_free;
	verve_worker_open(&cm->jobs, attr->wake, attr->arg);
	ret = verve_worker_prepare();
	if (ret)
		goto err_worker;
	ret = verve_net_dgram_open(&cm->self.addr, &cm->dgram);
	if (ret)
		goto err_worker;
	verve_guard_init(&cm->guard, attr->key, &cm->self.addr);
	cm->self.incarnation = verve_net_random64() | 1; /* 0 means unknown in a datagram */
	cm->self.window = attr->window;
	cm->self.eager_size = attr->eager_size;
	cm->self.features = attr->features;
	cm->self.timeout = attr->connect_timeout;
	verve_mailbox_init(&cm->requests);
	verve_idtab_init(&cm->ids);
	verve_timers_init(&cm->timers);
	for (int list = 0; list < VERVE_CM_LISTS; list++)
		TAILQ_INIT(&cm->lists[list]);
	*cmp = cm;
	return 0;

err_worker:
	verve_worker_close(&cm->jobs);
	free(cm->fatal);
err_free:
	free(cm);
	return ret;
}

void verve_cm_close(struct verve_cm *cm)
{
	struct verve_mail *mail, *next_mail;
	struct verve_cm_entry *entry, *next;

	cm->jobless = true;
	verve_worker_close(&cm->jobs);
	while (verve_cm_job_next(cm))
		; /* the entries have their jobs back, and close the queue pairs below */
	for (mail = verve_mailbox_take(&cm->requests); mail; mail = next_mail) {
		next_mail = mail->next;
		verve_cm_request_free((struct verve_cm_request *)mail);
	}
	HASH_ITER(hh, cm->entries, entry, next) {
		struct verve_conn_out out;

		verve_conn_drop(&entry->conn, &out);
		verve_cm_perform(cm, entry, &out);
		verve_cm_entry_free(cm, entry);
	}
	verve_timers_fini(&cm->timers);
	verve_idtab_fini(&cm->ids);
	verve_net_dgram_close(cm->dgram);
	verve_guard_fini(&cm->guard);
	free(cm->fatal);
	free(cm);
}

/* The engine's requests. Any thread. */

static void request_put(struct verve_cm *cm, struct verve_cm_request *request)
{
	if (verve_mailbox_put(&cm->requests, &request->event.mail))
		cm->attr.wake(cm->attr.arg);
}

static int request_put_copy(struct verve_cm *cm, const struct verve_cm_request *from)
{
	struct verve_cm_request *request = malloc(sizeof(*request));

	if (!request)
		return -FI_ENOMEM;
	*request = *from;
	request_put(cm, request);
	return 0;
}

int verve_cm_connect(struct verve_cm *cm, const struct verve_addr *addr)
{
	return request_put_copy(cm, &(struct verve_cm_request){
		.kind = VERVE_CM_REQUEST_CONNECT,
		.event.addr = *addr,
	});
}

int verve_cm_resume(struct verve_cm *cm, const struct verve_addr *addr, uint32_t conn_id)
{
	return request_put_copy(cm, &(struct verve_cm_request){
		.kind = VERVE_CM_REQUEST_RESUME,
		.event.addr = *addr,
		.event.conn_id = conn_id,
	});
}

void verve_cm_drop(struct verve_cm *cm, struct verve_cm_request **drop)
{
	if (*drop)
		request_put(cm, *drop);
	*drop = NULL;
}

void verve_cm_expire(struct verve_cm *cm, struct verve_cm_request **drop)
{
	if (*drop)
		(*drop)->kind = VERVE_CM_REQUEST_EXPIRE;
	verve_cm_drop(cm, drop);
}

int verve_cm_hear(struct verve_cm *cm, uint32_t conn_id)
{
	return request_put_copy(cm, &(struct verve_cm_request){
		.kind = VERVE_CM_REQUEST_HEAR,
		.event.conn_id = conn_id,
	});
}

int verve_cm_check(struct verve_cm *cm, uint32_t conn_id, bool first)
{
	return request_put_copy(cm, &(struct verve_cm_request){
		.kind = VERVE_CM_REQUEST_CHECK,
		.event.conn_id = conn_id,
		.first = first,
	});
}

int verve_cm_fail(struct verve_cm *cm, int error)
{
	return request_put_copy(cm, &(struct verve_cm_request){
		.kind = VERVE_CM_REQUEST_FAIL,
		.event.error = error,
	});
}

const struct verve_addr *verve_cm_addr(const struct verve_cm *cm)
{
	return &cm->self.addr;
}

int verve_cm_fd(const struct verve_cm *cm)
{
	return verve_net_dgram_fd(cm->dgram);
}

void verve_cm_stats_get(const struct verve_cm *cm, struct verve_cm_stats *stats)
{
	*stats = cm->stats;
}
