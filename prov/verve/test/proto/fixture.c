/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nodes: opening and joining them, sending and receiving messages, and reading completions. */
#include "fixture.h"

#include <rdma/providers/fi_prov.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "conn/hello.h"
#include "msg/peek.h"
#include "msg/recv.h"
#include "msg/send.h"
#include "net/device.h"
#include "xport/post.h"

enum { TIMEOUT_MS = 100 }; /* in simulated time */

static struct fi_provider provider = {.name = "verve"};
static struct node *nodes;

static void ignore(void *arg)
{
	(void)arg;
}

void nodes_limit(size_t len)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.msg_size = len;
	fake_net_start(&config);
}

struct fake_net_stats nodes_stats(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats;
}

void node_attr(struct verve_xport_attr *attr)
{
	*attr = (struct verve_xport_attr){
		.tx_size = NODE_TX_SIZE,
		.inline_size = NODE_INLINE,
		.eager_size = NODE_EAGER,
		.bulk_read = SIZE_MAX,
		.rx_first = SIZE_MAX, /* all */
		.rx_uncredited = 64,
		.window = NODE_WINDOW,
		.min_multi_recv = NODE_MIN_MULTI,
		.keepalive = 1000000000,
		.source = true,
	};
}

static void open_device(struct node *node, uint32_t host)
{
	struct verve_net_port *list;
	size_t count;

	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_lt(host, count);
	cr_assert_eq(verve_net_device_open(list[host].device, list[host].port_num, NULL,
					   &node->dev),
		     0);
	verve_net_port_list_free(list, count);
	fake_net_host_addr(host, &node->addr);
}

static void open_cm(struct node *node)
{
	struct verve_cm_attr attr = {
		.dev = node->dev,
		.addr = node->addr,
		.window = node->xport->attr.window,
		.connect_timeout = 1000000000,
		.transport_timeout_ms = TIMEOUT_MS,
		.events = &node->xport->events,
		.notify = ignore,
		.wake = ignore,
	};

	cr_assert_eq(verve_cm_open(&attr, &node->xport->cm), 0);
	node->addr = *verve_cm_addr(node->xport->cm);
	fake_net_step_threads(); /* the first worker finds no job, and is no event any more */
}

void node_open(struct node *node, uint32_t host, const struct verve_xport_attr *wanted)
{
	struct verve_xport_attr attr;

	memset(node, 0, sizeof(*node));
	verve_log_provider = &provider;
	if (wanted)
		attr = *wanted;
	else
		node_attr(&attr);
	open_device(node, host);
	verve_addrvec_init(&node->addrvec);
	verve_mr_cache_init(&node->mr_cache, node->dev);
	cr_assert_eq(verve_comp_queue_init(&node->tx_queue, 64, true), 0);
	cr_assert_eq(verve_comp_queue_init(&node->rx_queue, 64, true), 0);
	attr.dev = node->dev;
	attr.addrvec = &node->addrvec;
	attr.mr_cache = &node->mr_cache;
	attr.sink = (struct verve_sink){
		.tx_queue = &node->tx_queue,
		.rx_queue = &node->rx_queue,
		.send = &node->send,
		.recv = &node->recv,
		.read = &node->read,
		.write = &node->write,
		.remote_write = &node->remote_write,
	};
	verve_lock_init(&node->lock, true);
	verve_lock_acquire(&node->lock);
	node->xport = verve_proto_xport(&node->proto);
	cr_assert_eq(verve_proto_init(&node->proto, &attr, &node->lock), 0);
	open_cm(node);
	node->next = nodes;
	nodes = node;
}

static void discard_events(struct verve_xport *xport)
{
	struct verve_mail *mail = verve_mailbox_take(&xport->events), *next;

	for (; mail; mail = next) {
		struct verve_cm_event *event = (struct verve_cm_event *)mail;

		next = mail->next;
		if (event->qp)
			verve_net_qp_close(event->qp);
		verve_cm_event_free(event);
	}
}

void node_close(struct node *node)
{
	struct verve_xport *xport = node->xport;

	verve_proto_cancel(&node->proto);
	nodes_settle();
	cr_expect(TAILQ_EMPTY(&xport->broken_links), "a broken connection never ended");
	cr_expect_eq(xport->wr_used, 0);
	cr_expect_eq(xport->asked, 0);
	cr_expect_eq(xport->tx_slabs.used, 0, "%zu slabs were not given back",
		     xport->tx_slabs.used);
	cr_expect_eq(xport->tx_used, 0);
	cr_expect_eq(xport->op_ids.used, 0);
	cr_expect_eq(xport->leaving_count, 0);
	node_drop(node);
}

void node_drop(struct node *node)
{
	struct verve_xport *xport = node->xport;
	struct node **at = &nodes;

	verve_proto_cancel(&node->proto);
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	verve_cm_close(xport->cm);
	xport->cm = NULL;
	discard_events(xport);
	verve_proto_fini(&node->proto);
	verve_lock_release(&node->lock);
	verve_lock_fini(&node->lock);
	verve_comp_queue_fini(&node->tx_queue);
	verve_comp_queue_fini(&node->rx_queue);
	verve_mr_cache_fini(&node->mr_cache);
	verve_addrvec_fini(&node->addrvec);
	verve_net_device_close(node->dev);
}

uint64_t node_addr(struct node *node, const struct node *to)
{
	uint64_t fi_addr = verve_addrvec_find(&node->addrvec, &to->addr);

	if (fi_addr == UINT64_MAX)
		cr_assert_eq(verve_addrvec_insert(&node->addrvec, &to->addr, &fi_addr), 0);
	return fi_addr;
}

struct verve_peer *node_peer(struct node *node, const struct node *to)
{
	struct verve_peer *peer;

	cr_assert_eq(verve_peer_find(node->xport, node_addr(node, to), &peer), 0);
	return peer;
}

struct verve_link *node_link(struct node *node, const struct node *to)
{
	struct verve_link *link = node_peer(node, to)->link;

	cr_assert_not_null(link);
	return link;
}

static struct verve_cm_event *make_event(enum verve_cm_event_type type, const struct node *about,
					 uint32_t conn_id, int error)
{
	struct verve_cm_event *event = calloc(1, sizeof(*event));

	cr_assert_not_null(event);
	event->type = type;
	event->addr = about->addr;
	event->conn_id = conn_id;
	event->error = error;
	return event;
}

void node_event(struct node *node, enum verve_cm_event_type type, const struct node *about,
		uint32_t conn_id, int error)
{
	verve_mailbox_put(&node->xport->events, &make_event(type, about, conn_id, error)->mail);
}

void node_greet(struct node *node, const struct node *about, uint32_t conn_id)
{
	struct verve_cm_event *event = make_event(VERVE_CM_READY, about, conn_id, 0);

	event->greet = true;
	verve_mailbox_put(&node->xport->events, &event->mail);
}

static struct verve_net_qp *open_qp(struct node *node)
{
	struct verve_xport *xport = node->xport;
	struct verve_net_qp_attr attr = {
		.send_cq = xport->send_cq,
		.recv_cq = xport->recv_cq,
		.srq = xport->srq,
		.send_wr = VERVE_LINK_REQUESTS,
		.send_sge = VERVE_IOV_LIMIT,
		.inline_size = xport->attr.inline_size,
	};
	struct verve_net_qp *qp;

	cr_assert_eq(verve_net_qp_open(node->dev, &attr, 0, &qp), 0);
	return qp;
}

static void connect_qp(struct verve_net_qp *qp, const struct verve_net_qp *to)
{
	struct verve_net_qp_addr addr;

	verve_net_qp_addr(to, &addr);
	cr_assert_eq(verve_net_qp_connect(qp, &addr, TIMEOUT_MS), 0);
}

static uint32_t features_of(const struct node *node)
{
	return (node->xport->attr.rma_event ? VERVE_HELLO_RMA_EVENT : 0) |
	       (node->xport->attr.app_keys ? VERVE_HELLO_APP_KEYS : 0);
}

static void put_up(struct node *node, const struct node *peer, struct verve_net_qp *qp,
		   uint32_t window, uint32_t resumes, bool first)
{
	struct verve_cm_event *event = make_event(VERVE_CM_UP, peer, node->next_conn, 0);

	event->remote_id = peer->next_conn;
	event->features = features_of(peer);
	event->qp = qp;
	event->window = window;
	event->eager_size = peer->xport->attr.eager_size;
	event->resumes = resumes;
	event->may_send = first;
	verve_mailbox_put(&node->xport->events, &event->mail);
}

/* a_resumes, b_resumes: the connection that this node says it goes on with; 0: none. */
static void make_connection(struct node *a, struct node *b, uint32_t window, uint32_t a_resumes,
			    uint32_t b_resumes)
{
	struct verve_net_qp *qp_a = open_qp(a), *qp_b = open_qp(b);

	connect_qp(qp_a, qp_b);
	connect_qp(qp_b, qp_a);
	a->next_conn++;
	b->next_conn++;
	put_up(a, b, qp_a, window, b_resumes, true);
	put_up(b, a, qp_b, window, a_resumes, false);
}

void node_ask(struct node *b, const struct node *a)
{
	struct verve_cm_event *event = make_event(VERVE_CM_UP, a, ++b->next_conn, 0);

	event->remote_id = 1;
	event->qp = open_qp(b);
	event->window = NODE_WINDOW;
	event->eager_size = NODE_EAGER;
	event->listen = true;
	verve_mailbox_put(&b->xport->events, &event->mail);
	verve_cm_events_step(b->xport);
}

void node_connect(struct node *a, struct node *b, uint32_t window)
{
	make_connection(a, b, window, 0, 0);
}

void node_fail_to_connect(struct node *a, struct node *b)
{
	struct verve_net_qp *qp_a = open_qp(a), *qp_b = open_qp(b);
	struct verve_cm_event *event = make_event(VERVE_CM_UNUSED, a, 0, 0);

	connect_qp(qp_a, qp_b);
	connect_qp(qp_b, qp_a);
	a->next_conn++;
	put_up(a, b, qp_a, NODE_WINDOW, 0, true);
	event->qp = qp_b;
	verve_mailbox_put(&b->xport->events, &event->mail);
}

void node_claim(struct node *a, struct node *b, uint32_t window)
{
	make_connection(a, b, window, node_link(b, a)->conn_id + 1, 0);
}

static void put_suspended(struct node *node, const struct node *peer, uint32_t conn_id)
{
	struct verve_cm_event *event = make_event(VERVE_CM_DOWN, peer, conn_id, FI_ENOTCONN);

	event->suspended = true;
	verve_mailbox_put(&node->xport->events, &event->mail);
}

void node_resume(struct node *a, struct node *b)
{
	uint32_t id_a = node_link(a, b)->conn_id, id_b = node_link(b, a)->conn_id;

	put_suspended(a, b, id_a);
	put_suspended(b, a, id_b);
	make_connection(a, b, NODE_WINDOW, id_a, id_b);
	nodes_settle();
}

void node_join(struct node *a, struct node *b, uint32_t window)
{
	node_connect(a, b, window);
	verve_cm_events_step(a->xport);
	verve_cm_events_step(b->xport);
	/* Each node puts the other into its address vector. */
	node_link(a, b);
	node_link(b, a);
}

void nodes_settle(void)
{
	do {
		for (struct node *node = nodes; node; node = node->next)
			while (verve_proto_poll(&node->proto))
				;
	} while (fake_net_run_next());
}

static struct verve_request request_of(struct node *node, const struct message *message,
				       struct iovec *iov)
{
	*iov = (struct iovec){message->buf, message->len};
	return (struct verve_request){
		.iov = message->iov ? message->iov : iov,
		.iov_count = message->iov ? message->iov_count : 1,
		.desc = message->desc,
		.addr = message->peer ? node_addr(node, message->peer) : UINT64_MAX,
		.tag = message->tag,
		.ignore = message->ignore,
		.data = message->data,
		.context = message->context,
		.flags = message->flags | (message->quiet ? 0 : VERVE_OP_NOTIFY),
	};
}

int node_send(struct node *node, const struct message *message)
{
	struct iovec iov;
	struct verve_request request = request_of(node, message, &iov);

	return verve_send(node->xport, &request);
}

int node_recv(struct node *node, const struct message *message)
{
	struct iovec iov;
	struct verve_request request = request_of(node, message, &iov);

	return verve_recv(node->xport, &request);
}

int node_peek(struct node *node, const struct message *message)
{
	struct iovec iov;
	struct verve_request request = request_of(node, message, &iov);

	return verve_recv_peek(node->xport, &request, message->peek);
}

void node_leave_room(struct node *node, uint32_t requests)
{
	struct verve_xport *xport = node->xport;
	uint32_t taken = xport->wr_used + xport->link_count;

	/* A link that has some has no more than are left to others, and not the last quarter. */
	taken += VERVE_LINK_RESERVE + 2 * (requests - 1);
	xport->wr_limit = taken * 4 / 3 + 1;
}

void node_send_raw(struct node *node, const struct node *to, const void *bytes, size_t len)
{
	struct verve_link *link = node_link(node, to);
	struct verve_outgoing out;

	cr_assert(verve_link_reserve(node->xport, link, len, &out));
	memcpy(out.data, bytes, len);
	cr_assert_eq(verve_link_post_packet(node->xport, link, &out, len, false, NULL), 0);
	nodes_settle();
}

struct verve_comp expect_comp(struct verve_comp_queue *queue)
{
	struct verve_comp_error error;
	struct verve_comp comp = {0};
	ssize_t ret = verve_comp_queue_read(queue, &comp, 1);

	if (ret == -FI_EAVAIL && !verve_comp_queue_read_error(queue, &error))
		cr_assert_fail("an error completes: %s (%s)", fi_strerror(error.err), error.reason);
	cr_assert_eq(ret, 1, "nothing completed");
	return comp;
}

struct verve_comp_error expect_error(struct verve_comp_queue *queue, int err)
{
	struct verve_comp_error error = {0};
	struct verve_comp comp;

	cr_assert_eq(verve_comp_queue_read(queue, &comp, 1), -FI_EAVAIL, "no error is next");
	cr_assert_eq(verve_comp_queue_read_error(queue, &error), 0);
	cr_assert_eq(error.err, err, "%s (%s) instead of %s", fi_strerror(error.err), error.reason,
		     fi_strerror(err));
	return error;
}

/* From the queue's wake, so as soon as another thread could read the completion. */
static void expect_unregistered(void *arg)
{
	struct node *node = arg;

	cr_expect_eq(AO_load(&node->mr_cache.regions), 0,
		     "a buffer is registered, but its completion is there");
}

void node_watch(struct node *node)
{
	struct verve_comp_queue *queues[] = {&node->tx_queue, &node->rx_queue};

	for (int i = 0; i < 2; i++) {
		queues[i]->wake = expect_unregistered;
		queues[i]->arg = node;
		cr_assert(verve_comp_queue_arm(queues[i], 1));
	}
}

void expect_none(struct verve_comp_queue *queue)
{
	cr_assert(verve_comp_queue_is_empty(queue), "something completed");
}

void pattern_fill(void *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)buf)[i] = (unsigned char)(i * 7 + i / 256 + seed);
}

bool pattern_holds(const void *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (((const unsigned char *)buf)[i] != (unsigned char)(i * 7 + i / 256 + seed))
			return false;
	return true;
}
