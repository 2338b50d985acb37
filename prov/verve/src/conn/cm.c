/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager: performs what the connections (conn/conn.c) decide: datagrams, queue pairs,
 * events, timers, admission. All in the service thread but verve_cm_connect, _drop, _check and
 * _resume, whose requests have the types FAILED, DOWN, READY (may_send: the first) and UP.
 *
 * A connection's events are allocated before its first HELLO, so that none can be missing later.
 */
#define HASH_NONFATAL_OOM 1

#include "conn/cm.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <uthash.h>

#include "base/idtab.h"
#include "base/log.h"
#include "conn/conn.h"
#include "conn/guard.h"
#include "conn/hello.h"
#include "conn/timer.h"
#include "net/dgram.h"
#include "net/sys.h"

enum {
	DGRAMS_A_STEP = 256,
	WINDOW = 64,		/* handshakes of ours that may be at their beginning */
	WINDOW_ATTEMPTS = 3,	/* repetitions after which one is no more: the peer may be away */
	HALF_OPEN_LIMIT = 4096, /* connections that wait for the peer's READY */
	IDLE_LIMIT = 1024,	/* addresses remembered without a connection */
	PSN_MASK = 0xffffff,
};

enum list { LIST_NONE, LIST_QUEUED, LIST_HALF_OPEN, LIST_IDLE, LISTS };

/* One peer address. */
struct entry {
	struct verve_timer timer; /* first: verve_timers_first finds the entry */
	struct verve_conn conn;
	UT_hash_handle hh; /* by conn.addr */
	enum list list;
	TAILQ_ENTRY(entry) link;
	bool in_window;
	struct verve_cm_event *request; /* asked for; becomes FAILED */
	uint32_t id;			/* in cm->ids; 0: our end is not open */
	struct verve_net_qp *qp;	/* ours until UP */
	struct verve_cm_event *up, *ready, *down;
};

TAILQ_HEAD(entry_list, entry);

struct verve_cm {
	struct verve_cm_attr attr;
	struct verve_conn_self self;
	struct verve_guard guard;
	struct verve_net_dgram *dgram;
	struct verve_mailbox requests; /* verve_cm_event: FAILED, a connect; DOWN, a drop; and so on */
	struct entry *entries;	       /* uthash */
	struct entry_list lists[LISTS];
	size_t count[LISTS];
	struct verve_idtab ids;
	struct verve_timers timers;
	unsigned window_used;
	uint64_t serial;
	bool has_news; /* events since the last notify */
	struct verve_cm_stats stats;
};

static uint64_t random64(void)
{
	uint64_t random;

	verve_net_random(&random, sizeof(random));
	return random;
}

/* Entries. */

static struct entry *find_entry(const struct verve_cm *cm, const struct verve_addr *addr)
{
	struct entry *entry;

	HASH_FIND(hh, cm->entries, addr, verve_addr_len(addr), entry);
	return entry;
}

static void move_to_list(struct verve_cm *cm, struct entry *entry, enum list list)
{
	if (entry->list == list)
		return;
	if (entry->list != LIST_NONE) {
		TAILQ_REMOVE(&cm->lists[entry->list], entry, link);
		cm->count[entry->list]--;
	}
	if (list != LIST_NONE) {
		TAILQ_INSERT_TAIL(&cm->lists[list], entry, link);
		cm->count[list]++;
	}
	entry->list = list;
}

static struct entry *make_entry(struct verve_cm *cm, const struct verve_addr *addr)
{
	struct entry *entry = find_entry(cm, addr);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	if (verve_timers_reserve(&cm->timers, HASH_COUNT(cm->entries) + 1))
		goto err_entry;
	verve_conn_init(&entry->conn, &cm->self, addr);
	HASH_ADD(hh, cm->entries, conn.addr, verve_addr_len(addr), entry);
	if (!entry->hh.tbl)
		goto err_entry;
	move_to_list(cm, entry, LIST_IDLE);
	return entry;

err_entry:
	free(entry);
	return NULL;
}

/* Frees what is left of our end; what was handed over is the engine's. */
static void close_end(struct verve_cm *cm, struct entry *entry)
{
	if (!entry->id)
		return;
	if (entry->qp)
		verve_net_qp_close(entry->qp);
	verve_idtab_free(&cm->ids, entry->id);
	free(entry->up);
	free(entry->ready);
	free(entry->down);
	entry->id = 0;
	entry->qp = NULL;
	entry->up = entry->ready = entry->down = NULL;
}

static void free_entry(struct verve_cm *cm, struct entry *entry)
{
	close_end(cm, entry);
	verve_timers_set(&cm->timers, &entry->timer, VERVE_TIMER_NEVER);
	move_to_list(cm, entry, LIST_NONE);
	HASH_DEL(cm->entries, entry);
	free(entry->request);
	free(entry);
}

static int open_end(struct verve_cm *cm, struct entry *entry)
{
	struct verve_conn_local local = {.nonce = random64() | 1};
	int ret = -FI_ENOMEM;

	entry->up = calloc(1, sizeof(*entry->up));
	entry->ready = calloc(1, sizeof(*entry->ready));
	entry->down = calloc(1, sizeof(*entry->down));
	if (!entry->up || !entry->ready || !entry->down)
		goto err_events;
	ret = verve_idtab_alloc(&cm->ids, entry, &local.id);
	if (ret)
		goto err_events;
	ret = verve_net_qp_open(cm->attr.dev, &cm->attr.qp_attr, (uint32_t)random64() & PSN_MASK,
				&entry->qp);
	if (ret)
		goto err_id;
	verve_net_qp_addr(entry->qp, &local.qp);
	local.serial = ++cm->serial;
	entry->id = local.id;
	verve_conn_open(&entry->conn, &local);
	return 0;

err_id:
	entry->qp = NULL;
	verve_idtab_free(&cm->ids, local.id);
err_events:
	free(entry->up);
	free(entry->ready);
	free(entry->down);
	entry->up = entry->ready = entry->down = NULL;
	return ret;
}

/* What a connection decided. */

/* The event is the reader's from here on. */
static void put_event(struct verve_cm *cm, struct entry *entry, struct verve_cm_event **eventp,
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

static void put_down(struct verve_cm *cm, struct entry *entry, const struct verve_conn_out *out)
{
	char name[VERVE_ADDR_STRLEN];

	VERVE_INFO(EP_CTRL, "connection %#x to %s is down: %s\n", entry->id,
		   verve_addr_str(&entry->conn.addr, name), fi_strerror(out->error));
	entry->down->suspended = out->suspended;
	put_event(cm, entry, &entry->down, VERVE_CM_DOWN, out->error);
}

static void put_failed(struct verve_cm *cm, struct entry *entry, int error)
{
	char name[VERVE_ADDR_STRLEN];

	if (!entry->request)
		return;
	VERVE_WARN(EP_CTRL, "cannot connect to %s: %s\n", verve_addr_str(&entry->conn.addr, name),
		   fi_strerror(error));
	put_event(cm, entry, &entry->request, VERVE_CM_FAILED, error);
	cm->stats.failed++;
}

static void put_up(struct verve_cm *cm, struct entry *entry, bool may_send)
{
	struct verve_cm_event *event = entry->up;

	event->remote_id = entry->conn.remote.id;
	event->qp = entry->qp;
	event->window = entry->conn.remote.window;
	event->eager_size = entry->conn.remote.eager_size;
	event->features = entry->conn.remote.features;
	event->resumes = entry->conn.remote.resumes;
	event->may_send = may_send;
	put_event(cm, entry, &entry->up, VERVE_CM_UP, 0);
	entry->qp = NULL;
	free(entry->request);
	entry->request = NULL;
	cm->stats.connected++;
}

static int send_hello(struct verve_cm *cm, const struct verve_hello *hello,
		      const struct verve_addr *to)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	verve_guard_seal(&cm->guard, hello, buf, to);
	cm->stats.sent++;
	return verve_net_dgram_send(cm->dgram, buf, sizeof(buf), to);
}

/* Where a connection's state puts its entry. */
static void settle(struct verve_cm *cm, struct entry *entry)
{
	static const enum list list_of[VERVE_CONN_STATES] = {
		[VERVE_CONN_IDLE] = LIST_IDLE,
		[VERVE_CONN_QUEUED] = LIST_QUEUED,
		[VERVE_CONN_WAIT_HELLO] = LIST_NONE,
		[VERVE_CONN_WAIT_READY] = LIST_HALF_OPEN,
		[VERVE_CONN_UP] = LIST_NONE,
	};
	const struct verve_conn *conn = &entry->conn;
	bool in_window = conn->state == VERVE_CONN_WAIT_HELLO && conn->attempts < WINDOW_ATTEMPTS;

	if (!conn->local.id)
		close_end(cm, entry);
	cm->window_used += (unsigned)in_window - (unsigned)entry->in_window;
	entry->in_window = in_window;
	verve_timers_set(&cm->timers, &entry->timer, conn->timer);
	move_to_list(cm, entry, list_of[conn->state]);
}

/* Returns what sending said, if anything was to be sent. */
static int perform_once(struct verve_cm *cm, struct entry *entry, struct verve_conn_out *out)
{
	int ret = 0;

	if (out->actions & VERVE_CONN_DO_CONNECT) {
		ret = verve_net_qp_connect(entry->qp, &entry->conn.remote.qp,
					   cm->attr.transport_timeout_ms);
		if (ret)
			verve_conn_abort(&entry->conn, -ret, out);
	}
	if (out->actions & VERVE_CONN_DO_DOWN)
		put_down(cm, entry, out);
	if (out->actions & VERVE_CONN_DO_FAIL)
		put_failed(cm, entry, out->error);
	if (out->actions & VERVE_CONN_DO_UP)
		put_up(cm, entry, out->may_send);
	if (out->actions & VERVE_CONN_DO_READY)
		put_event(cm, entry, &entry->ready, VERVE_CM_READY, 0);
	if (out->foreign)
		cm->stats.foreign++;
	settle(cm, entry);
	if (!(out->actions & VERVE_CONN_DO_SEND))
		return 0;
	return send_hello(cm, &out->hello, &entry->conn.addr);
}

static void perform(struct verve_cm *cm, struct entry *entry, struct verve_conn_out *out)
{
	int ret = perform_once(cm, entry, out);

	if (ret && ret != -FI_EAGAIN) {
		struct verve_conn_out unreachable;

		verve_conn_unreachable(&entry->conn, -ret, &unreachable);
		perform_once(cm, entry, &unreachable);
	}
}

/* Requests. */

static void request_connect(struct verve_cm *cm, struct verve_cm_event *request)
{
	struct entry *entry = make_entry(cm, &request->addr);

	if (!entry) {
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
	settle(cm, entry);
}

/* If a suspended one is gone, the peer may have suspended it, or have asked for the next: that serves both. */
static void step_request(struct verve_cm *cm, struct verve_cm_event *request)
{
	struct entry *entry = verve_idtab_get(&cm->ids, request->conn_id);
	struct verve_conn_out out;

	if (entry) {
		if (request->type == VERVE_CM_DOWN)
			verve_conn_drop(&entry->conn, &out);
		else if (request->type == VERVE_CM_READY)
			verve_conn_check(&entry->conn, request->may_send, &out);
		else
			verve_conn_suspend(&entry->conn, &out);
		perform(cm, entry, &out);
	}
	if (request->type == VERVE_CM_UP || request->type == VERVE_CM_FAILED)
		request_connect(cm, request);
	else
		free(request);
}

static void step_requests(struct verve_cm *cm)
{
	struct verve_mail *mail, *next;

	for (mail = verve_mailbox_take(&cm->requests); mail; mail = next) {
		next = mail->next;
		step_request(cm, (struct verve_cm_event *)mail);
	}
}

/* Datagrams. */

static void refuse(struct verve_cm *cm, const struct verve_hello *hello,
		   enum verve_hello_reason reason, const struct verve_addr *to)
{
	struct verve_hello bye;

	verve_conn_refuse(&cm->self, hello, reason, &bye);
	send_hello(cm, &bye, to);
}

static void refuse_version(struct verve_cm *cm, const struct verve_hello *hello,
			   const struct verve_addr *from, uint64_t now)
{
	verve_guard_warn_version(&cm->guard, hello, from, now);
	if (hello->kind == VERVE_HELLO_HELLO)
		refuse(cm, hello, VERVE_HELLO_VERSION, from);
}

/* It is told why, in clear: it could not read anything else; and not too often. */
static void refuse_key(struct verve_cm *cm, const struct verve_hello *hello,
		       enum verve_guard_verdict why, const struct verve_addr *from, uint64_t now)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_hello bye;

	verve_guard_warn_refused(&cm->guard, why, from, now);
	if (!verve_guard_may_answer(&cm->guard, now))
		return;
	verve_conn_refuse(&cm->self, hello, VERVE_HELLO_AUTH, &bye);
	verve_hello_encode(&bye, buf);
	cm->stats.sent++;
	verve_net_dgram_send(cm->dgram, buf, sizeof(buf), from);
}

/* A peer, or whoever speaks in its name, says that it has another key. */
static void receive_rejection(struct verve_cm *cm, const struct verve_hello *bye,
			      const struct verve_addr *from, uint64_t now)
{
	struct entry *entry = find_entry(cm, from);

	if (entry && verve_conn_doubt(&entry->conn, bye))
		verve_guard_warn_rejected(&cm->guard, from, now);
}

static void receive_unauthenticated(struct verve_cm *cm, const struct verve_hello *hello,
				    enum verve_guard_verdict why, const struct verve_addr *from,
				    uint64_t now)
{
	cm->stats.unauthenticated++;
	/* Not our own, reflected. */
	if (hello->kind == VERVE_HELLO_HELLO && hello->sender_incarnation != cm->self.incarnation)
		refuse_key(cm, hello, why, from, now);
}

/* The peer asks for a connection, and our end cannot be opened. */
static void refuse_resource(struct verve_cm *cm, struct entry *entry,
			    const struct verve_hello *hello, int error)
{
	struct verve_conn_out out;

	verve_conn_abort(&entry->conn, error, &out);
	perform(cm, entry, &out);
	refuse(cm, hello, VERVE_HELLO_RESOURCE, &entry->conn.addr);
}

static void receive(struct verve_cm *cm, struct entry *entry, const struct verve_hello *hello,
		    uint64_t now)
{
	struct verve_conn_out out;
	int ret;

	for (;;) {
		verve_conn_receive(&entry->conn, hello, now, random64(), &out);
		perform(cm, entry, &out);
		if (!(out.actions & VERVE_CONN_DO_OPEN))
			return;
		ret = open_end(cm, entry);
		if (ret) {
			refuse_resource(cm, entry, hello, -ret);
			return;
		}
	}
}

/* Who would be connected is asked to show first that it lives, and hears us. Nothing is kept. */
static void challenge(struct verve_cm *cm, const struct verve_hello *hello,
		      const struct verve_addr *from, uint64_t now)
{
	uint64_t cookie = verve_guard_cookie(&cm->guard, hello, from, now);
	struct verve_hello reply;

	verve_conn_challenge(&cm->self, hello, cookie, &reply);
	cm->stats.challenged++;
	send_hello(cm, &reply, from);
}

/* A datagram from an address of which nothing is known. */
static void receive_first(struct verve_cm *cm, const struct verve_hello *hello,
			  const struct verve_addr *from, uint64_t now)
{
	struct entry *entry;

	if (hello->sender_incarnation == cm->self.incarnation || hello->kind == VERVE_HELLO_BYE ||
	    hello->kind == VERVE_HELLO_CHALLENGE) {
		cm->stats.foreign++;
		return;
	}
	if (hello->recipient_id) {
		cm->stats.foreign++;
		refuse(cm, hello, VERVE_HELLO_UNKNOWN, from);
		return;
	}
	entry = make_entry(cm, from);
	if (entry)
		receive(cm, entry, hello, now);
	else
		refuse(cm, hello, VERVE_HELLO_RESOURCE, from);
}

static void receive_dgram(struct verve_cm *cm, const void *buf, size_t len,
			  const struct verve_addr *from, uint64_t now)
{
	enum verve_guard_verdict verdict;
	struct verve_hello hello;
	struct entry *entry;
	int ret = verve_hello_decode(buf, len, &hello);

	cm->stats.received++;
	if (ret)
		cm->stats.malformed++;
	if (ret && ret != -FI_ENOPROTOOPT)
		return;
	if (verve_addr_equal(from, &cm->self.addr)) {
		cm->stats.foreign++; /* nobody else has it, and we do not talk to ourselves */
		return;
	}
	verdict = verve_guard_check(&cm->guard, &hello, buf, len, from);
	if (hello.kind == VERVE_HELLO_BYE && hello.reason == VERVE_HELLO_AUTH)
		receive_rejection(cm, &hello, from, now);
	if (verdict != VERVE_GUARD_PASS) {
		receive_unauthenticated(cm, &hello, verdict, from, now);
		return;
	}
	if (ret) {
		refuse_version(cm, &hello, from, now);
		return;
	}
	entry = find_entry(cm, from);
	if (!(entry && verve_conn_is_established(&entry->conn)) &&
	    verve_guard_doubts(&cm->guard, &hello, from, now, cm->count[LIST_HALF_OPEN]))
		challenge(cm, &hello, from, now);
	else if (entry)
		receive(cm, entry, &hello, now);
	else
		receive_first(cm, &hello, from, now);
}

static void receive_error(struct verve_cm *cm, const struct verve_addr *about, int error)
{
	struct entry *entry = find_entry(cm, about);
	struct verve_conn_out out;

	if (!entry)
		return;
	verve_conn_unreachable(&entry->conn, error, &out);
	perform(cm, entry, &out);
}

/* True: there may be more. */
static bool step_dgrams(struct verve_cm *cm, uint64_t now)
{
	uint8_t buf[VERVE_HELLO_SIZE_MAX + 1];
	struct verve_addr from;

	for (int i = 0; i < DGRAMS_A_STEP; i++) {
		ssize_t len = verve_net_dgram_recv(cm->dgram, buf, sizeof(buf), &from);

		if (len >= 0)
			receive_dgram(cm, buf, (size_t)len, &from, now);
		else if (len == -FI_ECONNREFUSED || len == -FI_EHOSTUNREACH || len == -FI_ENETUNREACH)
			receive_error(cm, &from, (int)-len);
		else
			return false;
	}
	return true;
}

/* Time. */

static void step_timers(struct verve_cm *cm, uint64_t now)
{
	struct verve_timer *timer;
	struct verve_conn_out out;

	while ((timer = verve_timers_first(&cm->timers)) && timer->when <= now) {
		struct entry *entry = (struct entry *)timer;

		verve_conn_timer(&entry->conn, now, random64(), &out);
		if (out.hello.kind == VERVE_HELLO_HELLO)
			cm->stats.retransmitted++;
		perform(cm, entry, &out);
	}
}

static void admit(struct verve_cm *cm, struct entry *entry, uint64_t now)
{
	struct verve_conn_out out;
	int ret = open_end(cm, entry);

	if (ret)
		verve_conn_abort(&entry->conn, -ret, &out);
	else
		verve_conn_start(&entry->conn, now, random64(), &out);
	perform(cm, entry, &out);
}

/* Opens the window for those who wait, and bounds the lists that a stranger can fill. */
static void step_lists(struct verve_cm *cm, uint64_t now)
{
	struct verve_conn_out out;
	struct entry *entry;

	while (cm->window_used < WINDOW && (entry = TAILQ_FIRST(&cm->lists[LIST_QUEUED])))
		admit(cm, entry, now);
	while (cm->count[LIST_HALF_OPEN] > HALF_OPEN_LIMIT) {
		entry = TAILQ_FIRST(&cm->lists[LIST_HALF_OPEN]);
		verve_conn_expire(&entry->conn, &out);
		perform(cm, entry, &out);
	}
	while (cm->count[LIST_IDLE] > IDLE_LIMIT)
		free_entry(cm, TAILQ_FIRST(&cm->lists[LIST_IDLE]));
}

void verve_cm_abandon(struct verve_cm *cm, int error)
{
	struct verve_conn_out out;

	for (struct entry *entry = cm->entries; entry; entry = entry->hh.next) {
		verve_conn_abandon(&entry->conn, error, &out);
		perform(cm, entry, &out);
	}
}

uint64_t verve_cm_step(struct verve_cm *cm, uint64_t now)
{
	const struct verve_timer *timer;
	bool more;

	step_requests(cm);
	more = step_dgrams(cm, now);
	step_timers(cm, now);
	step_lists(cm, now);
	if (cm->has_news) {
		cm->has_news = false;
		cm->attr.notify(cm->attr.arg);
	}
	timer = verve_timers_first(&cm->timers);
	if (more)
		return now;
	return timer ? timer->when : UINT64_MAX;
}

/* The engine's side. */

static int put_request(struct verve_cm *cm, const struct verve_cm_event *from)
{
	struct verve_cm_event *request = malloc(sizeof(*request));

	if (!request)
		return -FI_ENOMEM;
	*request = *from;
	if (verve_mailbox_put(&cm->requests, &request->mail))
		cm->attr.wake(cm->attr.arg);
	return 0;
}

int verve_cm_connect(struct verve_cm *cm, const struct verve_addr *addr)
{
	return put_request(cm, &(struct verve_cm_event){.type = VERVE_CM_FAILED, .addr = *addr});
}

int verve_cm_drop(struct verve_cm *cm, uint32_t conn_id)
{
	return put_request(cm, &(struct verve_cm_event){.type = VERVE_CM_DOWN, .conn_id = conn_id});
}

int verve_cm_resume(struct verve_cm *cm, const struct verve_addr *addr, uint32_t conn_id)
{
	return put_request(cm, &(struct verve_cm_event){.type = VERVE_CM_UP, .addr = *addr,
							.conn_id = conn_id});
}

int verve_cm_check(struct verve_cm *cm, uint32_t conn_id, bool first)
{
	return put_request(cm, &(struct verve_cm_event){.type = VERVE_CM_READY, .conn_id = conn_id,
							.may_send = first});
}

void verve_cm_event_free(struct verve_cm_event *event)
{
	free(event);
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
	if (attr->key && verve_auth_is_wildcard(&attr->addr)) {
		VERVE_WARN(EP_CTRL, "an endpoint with an authentication key needs an address of its "
				    "own: peers cannot check a wildcard\n");
		ret = -FI_EINVAL;
		goto err_free;
	}
	ret = verve_net_dgram_open(&cm->self.addr, &cm->dgram);
	if (ret)
		goto err_free;
	verve_guard_init(&cm->guard, attr->key, &cm->self.addr);
	cm->self.incarnation = random64() | 1; /* not 0, as the nonces */
	cm->self.window = attr->window;
	cm->self.eager_size = attr->eager_size;
	cm->self.features = attr->features;
	cm->self.timeout = attr->connect_timeout;
	verve_mailbox_init(&cm->requests);
	verve_idtab_init(&cm->ids);
	verve_timers_init(&cm->timers);
	for (int list = 0; list < LISTS; list++)
		TAILQ_INIT(&cm->lists[list]);
	*cmp = cm;
	return 0;

err_free:
	free(cm);
	return ret;
}

void verve_cm_close(struct verve_cm *cm)
{
	struct verve_mail *mail, *next_mail;
	struct entry *entry, *next;

	for (mail = verve_mailbox_take(&cm->requests); mail; mail = next_mail) {
		next_mail = mail->next;
		free(mail);
	}
	HASH_ITER(hh, cm->entries, entry, next) {
		struct verve_conn_out out;

		verve_conn_drop(&entry->conn, &out);
		perform(cm, entry, &out);
		free_entry(cm, entry);
	}
	verve_timers_fini(&cm->timers);
	verve_idtab_fini(&cm->ids);
	verve_net_dgram_close(cm->dgram);
	verve_guard_fini(&cm->guard);
	free(cm);
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
