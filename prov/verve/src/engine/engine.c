/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The engine: opening, shared receive contexts, and the close that drains operations. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/wakefd.h"
#include "conn/cm.h"
#include "conn/hello.h"
#include "engine/engine_state.h"
#include "engine/service.h"
#include "engine/share.h"
#include "net/cq.h"
#include "net/device.h"
#include "net/sys.h"
#include "proto/proto.h"
#include "xport/let_go.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/publish.h"
#include "xport/request.h"
#include <rdma/fi_errno.h>

/*
 * Bytes. A quarter of the eager size is 16 KiB by default: 1.3 us of a wire of 100 Gbit/s. Where
 * the eager size is small, a read of less than this is short all the same.
 */
enum { BULK_MIN = 4096 };

static const uint64_t ms = 1000000;

static void notify(void *arg)
{
	verve_wakefd_signal(((struct verve_engine *)arg)->event_fd);
}

static void tell_failed(void *arg, int error)
{
	const struct verve_engine *engine = arg;

	if (engine->failed)
		engine->failed(engine->failed_arg, error);
}

static void wake_service(void *arg)
{
	(void)arg;
	verve_service_wake();
}

static int watch_fd(int wait_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(wait_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_wait_fds(struct verve_engine *engine)
{
	int ret;

	ret = engine->event_fd = verve_wakefd_open();
	if (ret < 0)
		return ret;
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
	ret = watch_fd(engine->wait_fd, engine->event_fd);
	if (!ret)
		ret = watch_fd(engine->wait_fd, engine->timer_fd);
	if (!ret)
		ret = watch_fd(engine->wait_fd, verve_net_channel_fd(engine->head.xport->channel));
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

static int open_wait(struct verve_engine *engine)
{
	int ret = open_wait_fds(engine);

	if (ret)
		VERVE_WARN(EP_CTRL, "cannot open an endpoint's wait descriptors: %s%s\n",
			   fi_strerror(-ret),
			   ret == -FI_EMFILE ? ": raise the limit of descriptors (ulimit -n)" : "");
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
	struct verve_xport *xport = engine->head.xport;
	struct verve_cm_attr attr = {
		.dev = xport->attr.dev,
		.qp_attr = {
			.send_cq = xport->send_cq,
			.recv_cq = xport->recv_cq,
			.srq = xport->srq,
			.send_wr = VERVE_LINK_REQUESTS,
			.send_sge = VERVE_IOV_LIMIT,
			.inline_size = xport->attr.inline_size,
			.dscp = xport->attr.dscp,
		},
		.addr = *addr,
		.key = key,
		.roce = verve_net_device_port(xport->attr.dev)->ethernet,
		.window = xport->attr.window,
		.eager_size = xport->attr.eager_size,
		.features = (xport->attr.rma_event ? VERVE_HELLO_RMA_EVENT : 0) |
			    (xport->attr.app_keys ? VERVE_HELLO_APP_KEYS : 0) |
			    (xport->attr.device_atomics ? VERVE_HELLO_DEVICE_ATOMICS : 0) |
			    VERVE_HELLO_OWN_ORDER | VERVE_HELLO_BATCHES |
			    VERVE_HELLO_IMMEDIATES | VERVE_HELLO_BOUND_KEYS,
		.connect_timeout = verve_config.connect_timeout * ms,
		.transport_timeout_ms = verve_config.transport_timeout,
		.events = &xport->events,
		.notify = notify,
		.wake = wake_service,
		.fatal = tell_failed,
		.arg = engine,
	};

	return verve_cm_open(&attr, &engine->head.xport->cm);
}

static struct verve_engine *engine_alloc(const struct verve_engine_attr *attr)
{
	struct verve_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->head.xport = verve_proto_xport(&engine->proto);
	engine->pid = getpid();
	verve_lock_init(&engine->own_lock, attr->elide_lock);
	engine->failed = attr->failed;
	engine->failed_arg = attr->arg;
	engine->shared = attr->shared;
	engine->head.group = &verve_engine_group(engine)->head;
	engine->head.errands = &engine->head.group->xport->errands.waiting;
	engine->head.lock = attr->lock ? attr->lock : &verve_engine_group(engine)->own_lock;
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
	ret = verve_proto_init_shared(&engine->proto, attr->xport, engine->head.lock);
	if (ret) {
		engine_free(engine);
		return ret;
	}
	*enginep = engine;
	return 0;
}

void verve_engine_close_shared(struct verve_engine *engine)
{
	verve_lock_acquire(engine->head.lock);
	verve_proto_fini_shared(&engine->proto);
	verve_lock_release(engine->head.lock);
	engine_free(engine);
}

/*
 * Gives a shared receive context the address vector and the sink of one of its members. All members
 * use the same address vector. A context without members forgets its peers. The lock is held.
 */
static void copy_from_member(struct verve_engine *shared)
{
	static const struct verve_sink none;
	struct verve_engine *first = LIST_FIRST(&shared->members);

	shared->head.xport->attr.addrvec = first ? first->head.xport->attr.addrvec : NULL;
	shared->head.xport->attr.sink = first ? first->head.xport->attr.sink : none;
	if (!first)
		verve_peer_forget_all(shared->head.xport);
}

static int join_shared(struct verve_engine *engine, struct verve_engine *shared)
{
	const struct verve_addrvec *addrvec = engine->head.xport->attr.addrvec;
	int ret = 0;

	verve_lock_acquire(shared->head.lock);
	if (!LIST_EMPTY(&shared->members) && shared->head.xport->attr.addrvec != addrvec) {
		VERVE_WARN(EP_CTRL, "the endpoints of a shared receive context must share an "
				    "address vector\n");
		ret = -FI_EINVAL;
	} else {
		LIST_INSERT_HEAD(&shared->members, engine, member);
		copy_from_member(shared);
		shared->head.xport->failed = 0;
	}
	verve_lock_release(shared->head.lock);
	return ret;
}

/* The lock is held. */
static void leave_shared(struct verve_engine *engine, struct verve_engine *shared)
{
	LIST_REMOVE(engine, member);
	copy_from_member(shared);
}

/*
 * The manager is closed, and its last events may not be handled yet. An event may own a queue pair,
 * which is closed here.
 */
static void discard_events(struct verve_xport *xport)
{
	struct verve_mail *mail, *next;

	for (int i = 0; i < 2; i++) {
		mail = i ? verve_mailbox_take(&xport->events) : xport->inbox;
		for (; mail; mail = next) {
			struct verve_cm_event *event = (struct verve_cm_event *)mail;

			next = mail->next;
			if (event->qp)
				verve_let_go(xport, event->qp);
			verve_cm_event_free(event);
		}
		xport->inbox = NULL;
	}
}

static void choose_buffers(struct verve_xport_attr *xport)
{
	xport->rx_limit = verve_share_buffers(xport->eager_size + VERVE_CONFIG_BUFFER_EXTRA);
	xport->rx_uncredited = verve_share_uncredited_buffers(xport->rx_limit);
	xport->rx_first = verve_share_first_buffers(xport->window, xport->rx_uncredited);
}

int verve_engine_open(const struct verve_engine_attr *attr, struct verve_engine **enginep)
{
	struct verve_xport_attr xport = *attr->xport;
	struct verve_engine *engine = engine_alloc(attr);
	int ret;

	if (!engine)
		return -FI_ENOMEM;
	xport.bulk_read = xport.eager_size / 4 > BULK_MIN ? xport.eager_size / 4 : BULK_MIN;
	xport.max_conns = verve_share_conns(&verve_net_device_port(xport.dev)->limits);
	choose_buffers(&xport);
	xport.off_lock = !attr->elide_lock;
	xport.shared = attr->shared ? attr->shared->head.xport : NULL;
	ret = verve_proto_init(&engine->proto, &xport, engine->head.lock);
	if (ret)
		goto err_free;
	ret = open_wait(engine);
	if (ret)
		goto err_xport;
	verve_let_go_open(engine->head.xport, notify, engine);
	ret = open_cm(engine, &attr->addr, attr->key);
	if (ret)
		goto err_wait;
	verve_publish(engine->head.xport);
	ret = verve_service_add(engine->head.xport->cm, attr->xport->dev);
	if (ret)
		goto err_cm;
	ret = attr->shared ? join_shared(engine, attr->shared) : 0;
	if (ret)
		goto err_service;
	*enginep = engine;
	return 0;

err_service:
	verve_service_remove(engine->head.xport->cm);
err_cm:
	verve_cm_close(engine->head.xport->cm);
	discard_events(engine->head.xport);
err_wait:
	verve_let_go_close(engine->head.xport); /* a worker may wake the engine until then */
	close_wait(engine);
err_xport:
	verve_proto_fini(&engine->proto);
err_free:
	engine_free(engine);
	return ret;
}

void verve_engine_start(struct verve_engine *engine)
{
	verve_lock_acquire(engine->head.lock);
	engine->started = true;
	verve_lock_release(engine->head.lock);
}

/*
 * Takes turns, and tries done() after each, until done() is true or the deadline has passed, which
 * includes the transport time-out, because a device needs that long to report a dead peer.
 */
static void poll_until(struct verve_engine *engine, bool (*done)(struct verve_engine *),
		       uint64_t deadline)
{
	for (;;) {
		bool any, end;

		verve_lock_acquire(engine->head.lock);
		any = verve_engine_turn(engine);
		end = done(engine);
		verve_lock_release(engine->head.lock);
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

/*
 * An errand cannot be given up: the kernel registers. From the last one on, memory is registered
 * and given back in place, because nobody may take turns any more.
 */
static bool has_ended_errands(struct verve_engine *engine)
{
	if (engine->away || engine->head.xport->errand_count)
		return false;
	engine->head.xport->attr.off_lock = false;
	return true;
}

static bool is_let_go(struct verve_engine *engine)
{
	return TAILQ_EMPTY(&engine->head.xport->broken_links) &&
	       !engine->head.xport->qps_at_workers;
}

/*
 * Takes the manager away under the lock, because other threads may use this engine through its
 * shared receive context: they poll this engine, and the receives that they post send packets to
 * its peers. The manager itself is closed without the lock, because it may wait for a worker.
 */
static void close_cm(struct verve_engine *engine)
{
	struct verve_cm *cm = engine->head.xport->cm;

	verve_lock_acquire(engine->head.lock);
	verve_service_remove(cm);
	engine->head.xport->cm = NULL;
	discard_events(engine->head.xport);
	verve_proto_cancel(&engine->proto);
	verve_lock_release(engine->head.lock);
	verve_cm_close(cm);
}

bool verve_engine_is_inherited(const struct verve_engine *engine)
{
	return engine->pid != getpid();
}

void verve_engine_stop(struct verve_engine *engine)
{
	uint64_t connect = verve_config.connect_timeout * ms;
	uint64_t transport = verve_config.transport_timeout * ms;

	verve_lock_acquire(engine->head.lock);
	verve_proto_begin_close(&engine->proto);
	verve_lock_release(engine->head.lock);
	poll_until(engine, is_sent, verve_net_now() + connect + transport);
	poll_until(engine, is_answered, verve_net_now() + transport);
	poll_until(engine, is_acknowledged, verve_net_now() + transport);
	close_cm(engine);
	poll_until(engine, is_let_go, verve_net_now() + transport);
	poll_until(engine, has_ended_errands, UINT64_MAX);
}

void verve_engine_close(struct verve_engine *engine)
{
	verve_lock_acquire(engine->head.lock);
	if (engine->shared)
		leave_shared(engine, engine->shared);
	verve_proto_fini(&engine->proto);
	verve_lock_release(engine->head.lock);
	close_wait(engine);
	engine_free(engine);
}

void verve_engine_set_sink(struct verve_engine *engine, const struct verve_sink *sink)
{
	verve_lock_acquire(engine->head.lock);
	engine->head.xport->attr.sink = *sink;
	if (engine->shared)
		copy_from_member(engine->shared);
	verve_lock_release(engine->head.lock);
}

const struct verve_addr *verve_engine_addr(const struct verve_engine *engine)
{
	return verve_cm_addr(engine->head.xport->cm);
}

void verve_engine_forget(struct verve_engine *engine, uint64_t fi_addr)
{
	verve_lock_acquire(engine->head.lock);
	verve_peer_forget(engine->head.xport, fi_addr);
	if (engine->shared)
		verve_peer_forget(engine->shared->head.xport, fi_addr);
	verve_lock_release(engine->head.lock);
}

const struct verve_lock *verve_engine_lock_of(const struct verve_engine *engine)
{
	return engine->head.lock;
}

int verve_engine_fd(const struct verve_engine *engine)
{
	return engine->wait_fd;
}
