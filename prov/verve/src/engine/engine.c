/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine: lock, loop, wait descriptor, and the drained close. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "conn/cm.h"
#include "conn/hello.h"
#include "engine/service.h"
#include "net/cq.h"
#include "net/sys.h"
#include "proto/proto.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/request.h"
#include <rdma/fi_errno.h>

struct verve_engine {
	struct verve_lock *lock; /* own_lock, or that of shared */
	struct verve_lock own_lock;
	struct verve_engine *shared; /* the shared receive context's; NULL: none */
	struct verve_engine *group;  /* shared, or this engine: has the lock */
	LIST_HEAD(, verve_engine) members; /* of a shared receive context, guarded by lock */
	LIST_ENTRY(verve_engine) member;
	struct verve_proto proto;
	struct verve_xport *xport; /* proto's */
	int event_fd; /* the service thread has put events */
	int timer_fd; /* a sleeper is to look after its peers */
	bool timer_set;
	/* Armed, timer not set: who starts work sets it. Of a shared receive context: a member may be. */
	bool asleep;
	int wait_fd;  /* epoll: event_fd, timer_fd and the device's channel */
	pid_t pid; /* of the process that opened it */
	uint32_t idle_turns; /* of those, every so many the service thread is helped, */
	uint64_t helped;     /* if that was long ago. When it was */
};

enum { HELP_TURNS = 64 };

static const uint64_t ms = 1000000, help_interval = 2 * 1000000;

static void notify(void *arg)
{
	struct verve_engine *engine = arg;
	uint64_t one = 1;

	/* A full counter is readable already. */
	(void) !write(engine->event_fd, &one, sizeof(one));
}

static void wake_service(void *arg)
{
	(void) arg;
	verve_service_wake();
}

static int watch(int wait_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(wait_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_wait(struct verve_engine *engine)
{
	int ret;

	engine->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->event_fd < 0)
		return -errno;
	engine->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (engine->timer_fd < 0) {
		ret = -errno;
		goto err_event;
	}
	engine->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->wait_fd < 0) {
		ret = -errno;
		goto err_timer;
	}
	ret = watch(engine->wait_fd, engine->event_fd);
	if (!ret)
		ret = watch(engine->wait_fd, engine->timer_fd);
	if (!ret)
		ret = watch(engine->wait_fd, verve_net_channel_fd(engine->xport->channel));
	if (ret)
		goto err_wait;
	return 0;

err_wait:
	close(engine->wait_fd);
err_timer:
	close(engine->timer_fd);
err_event:
	close(engine->event_fd);
	return ret;
}

static void close_wait(struct verve_engine *engine)
{
	close(engine->wait_fd);
	close(engine->timer_fd);
	close(engine->event_fd);
}

static int open_cm(struct verve_engine *engine, const struct verve_addr *addr,
		   const struct verve_auth_key *key)
{
	struct verve_xport *xport = engine->xport;
	struct verve_cm_attr attr = {
		.dev = xport->attr.dev,
		.qp_attr = {
			.send_cq = xport->send_cq,
			.recv_cq = xport->recv_cq,
			.srq = xport->srq,
			.send_wr = VERVE_LINK_REQUESTS,
			.send_sge = 1 + VERVE_IOV_LIMIT,
			.inline_size = xport->attr.inline_size,
		},
		.addr = *addr,
		.key = key,
		.window = xport->attr.window,
		.eager_size = xport->attr.eager_size,
		.features = (xport->attr.rma_event ? VERVE_HELLO_RMA_EVENT : 0) |
			    (xport->attr.app_keys ? VERVE_HELLO_APP_KEYS : 0) |
			    (xport->attr.device_atomics ? VERVE_HELLO_DEVICE_ATOMICS : 0),
		.connect_timeout = verve_config.connect_timeout * ms,
		.transport_timeout_ms = verve_config.transport_timeout,
		.events = &xport->events,
		.notify = notify,
		.wake = wake_service,
		.arg = engine,
	};

	return verve_cm_open(&attr, &engine->xport->cm);
}

static struct verve_engine *engine_alloc(const struct verve_engine_attr *attr)
{
	struct verve_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->xport = verve_proto_xport(&engine->proto);
	engine->pid = getpid();
	verve_lock_init(&engine->own_lock, attr->elide_lock);
	engine->shared = attr->shared;
	engine->group = attr->shared ? attr->shared : engine;
	engine->lock = &engine->group->own_lock;
	LIST_INIT(&engine->members);
	return engine;
}

static void engine_free(struct verve_engine *engine)
{
	verve_lock_fini(&engine->own_lock);
	free(engine);
}

int verve_engine_open_shared(const struct verve_engine_attr *attr, struct verve_engine **enginep)
{
	struct verve_engine *engine = engine_alloc(attr);
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	ret = verve_proto_init_shared(&engine->proto, attr->xport, engine->lock);
	if (ret) {
		engine_free(engine);
		return ret;
	}
	*enginep = engine;
	return 0;
}

void verve_engine_close_shared(struct verve_engine *engine)
{
	verve_lock_acquire(engine->lock);
	verve_proto_fini_shared(&engine->proto);
	verve_lock_release(engine->lock);
	engine_free(engine);
}

/* What a shared receive context knows from the engines that use it, all of one address vector. The lock is held. */
static void choose_member(struct verve_engine *shared)
{
	static const struct verve_sink none;
	struct verve_engine *first = LIST_FIRST(&shared->members);

	shared->xport->attr.addrvec = first ? first->xport->attr.addrvec : NULL;
	shared->xport->attr.sink = first ? first->xport->attr.sink : none;
	if (!first)
		verve_peer_forget_all(shared->xport);
}

static int join(struct verve_engine *engine, struct verve_engine *shared)
{
	const struct verve_addrvec *addrvec = engine->xport->attr.addrvec;
	int ret = 0;

	verve_lock_acquire(shared->lock);
	if (!LIST_EMPTY(&shared->members) && shared->xport->attr.addrvec != addrvec) {
		VERVE_WARN(EP_CTRL, "the endpoints of a shared receive context must share an "
				    "address vector\n");
		ret = -FI_EINVAL;
	} else {
		LIST_INSERT_HEAD(&shared->members, engine, member);
		choose_member(shared);
	}
	verve_lock_release(shared->lock);
	return ret;
}

/* The lock is held. */
static void leave(struct verve_engine *engine, struct verve_engine *shared)
{
	LIST_REMOVE(engine, member);
	choose_member(shared);
}

/* Connections that came up while nobody looked own a queue pair. */
static void discard_events(struct verve_xport *xport)
{
	struct verve_mail *mail, *next;

	for (int i = 0; i < 2; i++) {
		for (mail = i ? verve_mailbox_take(&xport->events) : xport->inbox; mail; mail = next) {
			struct verve_cm_event *event = (struct verve_cm_event *) mail;

			next = mail->next;
			if (event->type == VERVE_CM_UP)
				verve_net_qp_close(event->qp);
			verve_cm_event_free(event);
		}
		xport->inbox = NULL;
	}
}

int verve_engine_open(const struct verve_engine_attr *attr, struct verve_engine **enginep)
{
	struct verve_xport_attr xport = *attr->xport;
	struct verve_engine *engine = engine_alloc(attr);
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	xport.max_conns = verve_config.max_conns;
	xport.shared = attr->shared ? attr->shared->xport : NULL;
	ret = verve_proto_init(&engine->proto, &xport, engine->lock);
	if (ret)
		goto err_free;
	ret = open_wait(engine);
	if (ret)
		goto err_xport;
	ret = open_cm(engine, &attr->addr, attr->key);
	if (ret)
		goto err_wait;
	ret = verve_service_add(engine->xport->cm, attr->xport->dev);
	if (ret)
		goto err_cm;
	ret = attr->shared ? join(engine, attr->shared) : 0;
	if (ret)
		goto err_service;
	*enginep = engine;
	return 0;

err_service:
	verve_service_remove(engine->xport->cm);
err_cm:
	verve_cm_close(engine->xport->cm);
	discard_events(engine->xport);
err_wait:
	close_wait(engine);
err_xport:
	verve_proto_fini(&engine->proto);
err_free:
	engine_free(engine);
	return ret;
}

/*
 * Where threads that poll leave no processor to the service thread, as where each processor has a
 * process that polls, handshakes would wait for the scheduler's time slices.
 */
static void help_service(struct verve_engine *engine)
{
	uint64_t now = verve_net_now();

	if (now - engine->helped < help_interval)
		return;
	engine->helped = now;
	verve_service_help(engine->xport->cm, now);
}

/* The lock is held. */
static bool take_turn(struct verve_engine *engine)
{
	bool any = verve_proto_poll(&engine->proto);

	/* An engine that closes has none any more in the end. */
	if (!any && engine->xport->cm && !(++engine->idle_turns % HELP_TURNS))
		help_service(engine);
	return any;
}

/* One attempt a turn, until done or out of time. A peer that is gone takes the transport's time-out. */
static void poll_until(struct verve_engine *engine, bool (*done)(struct verve_engine *),
		       uint64_t deadline)
{
	for (;;) {
		bool any, end;

		verve_lock_acquire(engine->lock);
		any = take_turn(engine);
		end = done(engine);
		verve_lock_release(engine->lock);
		if (end || verve_net_now() >= deadline)
			return;
		if (!any)
			verve_net_pause();
	}
}

static bool is_sent(struct verve_engine *engine)
{
	return !verve_proto_is_busy(&engine->proto, false);
}

static bool is_answered(struct verve_engine *engine)
{
	return !verve_proto_is_busy(&engine->proto, true);
}

static bool is_acknowledged(struct verve_engine *engine)
{
	return verve_proto_say_bye(&engine->proto);
}

static bool is_let_go(struct verve_engine *engine)
{
	return TAILQ_EMPTY(&engine->xport->broken_links);
}

/*
 * Under the lock: other threads use this engine through its shared receive context. They poll it, and the receives
 * that they post send to its peers.
 */
static void close_cm(struct verve_engine *engine)
{
	verve_lock_acquire(engine->lock);
	verve_service_remove(engine->xport->cm);
	verve_cm_close(engine->xport->cm);
	engine->xport->cm = NULL;
	discard_events(engine->xport);
	verve_proto_cancel(&engine->proto);
	verve_lock_release(engine->lock);
}

bool verve_engine_is_inherited(const struct verve_engine *engine)
{
	return engine->pid != getpid();
}

void verve_engine_close(struct verve_engine *engine)
{
	uint64_t connect = verve_config.connect_timeout * ms;
	uint64_t transport = verve_config.transport_timeout * ms;

	verve_lock_acquire(engine->lock);
	verve_proto_begin_close(&engine->proto);
	verve_lock_release(engine->lock);
	poll_until(engine, is_sent, verve_net_now() + connect + transport);
	poll_until(engine, is_answered, verve_net_now() + transport);
	poll_until(engine, is_acknowledged, verve_net_now() + transport);
	close_cm(engine);
	poll_until(engine, is_let_go, verve_net_now() + transport);

	verve_lock_acquire(engine->lock);
	if (engine->shared)
		leave(engine, engine->shared);
	verve_proto_fini(&engine->proto);
	verve_lock_release(engine->lock);
	close_wait(engine);
	engine_free(engine);
}

void verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink)
{
	verve_lock_acquire(engine->lock);
	engine->xport->attr.sink = *sink;
	if (engine->shared)
		choose_member(engine->shared);
	verve_lock_release(engine->lock);
}

const struct verve_addr *verve_engine_addr(const struct verve_engine *engine)
{
	return verve_cm_addr(engine->xport->cm);
}

static void set_timer(struct verve_engine *engine, uint64_t ns)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000},
	};

	engine->timer_set = ns;
	if (timerfd_settime(engine->timer_fd, 0, &when, NULL))
		VERVE_WARN(EP_CTRL, "cannot set the timer of an endpoint's wait descriptor: %s\n",
			   strerror(errno));
}

struct verve_xport *verve_engine_lock(struct verve_engine *engine)
{
	verve_lock_acquire(engine->lock);
	return engine->xport;
}

static void end_sleep(struct verve_engine *engine)
{
	if (!engine->asleep)
		return;
	engine->asleep = false;
	set_timer(engine, engine->xport->attr.keepalive);
}

/* Of a shared receive context any member may have been given work. */
static void end_all_sleep(struct verve_engine *group)
{
	struct verve_engine *member;

	if (group->xport->channel) {
		end_sleep(group);
		return;
	}
	group->asleep = false;
	LIST_FOREACH(member, &group->members, member)
		end_sleep(member);
}

void verve_engine_unlock(struct verve_engine *engine)
{
	/* The sleepers did not know of the work that may have been started just now. */
	if (__builtin_expect(engine->group->asleep, 0))
		end_all_sleep(engine->group);
	verve_lock_release(engine->lock);
}

void verve_engine_forget(struct verve_engine *engine, uint64_t fi_addr)
{
	verve_lock_acquire(engine->lock);
	verve_peer_forget(engine->xport, fi_addr);
	if (engine->shared)
		verve_peer_forget(engine->shared->xport, fi_addr);
	verve_lock_release(engine->lock);
}

/*
 * Another thread that polls does this thread's work too, or that of an engine with the same lock: no
 * need to wait for it.
 */
bool verve_engine_progress(struct verve_engine *engine)
{
	struct verve_engine *member;
	bool any = false;

	if (!verve_lock_try(engine->lock))
		return false;
	/* A shared receive context has no device of its own. */
	if (__builtin_expect(!engine->xport->channel, 0))
		LIST_FOREACH(member, &engine->members, member)
			any |= take_turn(member);
	else
		any = take_turn(engine);
	verve_lock_release(engine->lock);
	return any;
}

int verve_engine_fd(const struct verve_engine *engine)
{
	return engine->wait_fd;
}

/* A sleeper that waits for a peer's answer wakes to look after it. Setting the timer clears it. */
static void arm_timer(struct verve_engine *engine)
{
	bool wanted = verve_proto_is_waiting(&engine->proto);

	if (wanted || engine->timer_set)
		set_timer(engine, wanted ? engine->xport->attr.keepalive : 0);
	engine->asleep = !wanted;
	engine->group->asleep |= !wanted;
}

int verve_engine_arm(struct verve_engine *engine)
{
	uint64_t count;
	bool any;

	verve_lock_acquire(engine->lock);
	/* Clear first, then look: what comes in between is seen now or wakes later. */
	(void) !read(engine->event_fd, &count, sizeof(count));
	arm_timer(engine);
	verve_proto_arm(&engine->proto);
	any = verve_proto_poll(&engine->proto);
	/* One turn need not be all, and what woke another sleeper is cleared. */
	if (any)
		notify(engine);
	verve_lock_release(engine->lock);
	return any ? -FI_EAGAIN : 0;
}
