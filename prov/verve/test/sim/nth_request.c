/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Requests of a scene: how they are made, made again after a refusal, and how they end. */
#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

#include "api/ep.h"
#include "engine/engine.h"
#include "fake_net.h"
#include "msg/msg.h"
#include "nth_world.h"
#include "xport/xport.h"

static const uint64_t patience = 120000000000, quiet = 300000000; /* simulated ns */

enum { TRIES = 100, NOBODYS_KEY = 12345, TAG_FROM = 8, TAG_ROUND = 16 };

void nth_fail(const struct nth *nth, const struct nth_request *request, const char *what)
{
	static const char *const kinds[] = {"send", "receive", "write", "read", "atomic", "peek"};

	cr_assert_fail(
		"%s, seed %lu, %s %lu fails, round %u: %s %#lx of %d, peer %d, %zu bytes: %s",
		nth->scene->name, nth->seed, nth->what, nth->n, nth->round, kinds[request->kind],
		request->tag, request->end, request->peer, request->len, what);
}

/*
 * A tag has the round, the sender and the number of the message. The bytes of a message follow from
 * its tag.
 */

static uint64_t tag_of(const struct nth *nth, int from, unsigned number)
{
	return (uint64_t)nth->round << TAG_ROUND | (uint64_t)from << TAG_FROM | number;
}

static void fill(uint8_t *bytes, uint64_t tag, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(tag * 31 + i * 7);
	memcpy(bytes, &tag, len < sizeof(tag) ? len : sizeof(tag));
}

static bool holds(const uint8_t *bytes, uint64_t tag, size_t len)
{
	uint8_t *wanted = malloc(len + 1);
	bool same;

	cr_assert_not_null(wanted);
	fill(wanted, tag, len);
	same = !memcmp(wanted, bytes, len);
	free(wanted);
	return same;
}

static struct nth_request *request_new(struct nth *nth, enum nth_kind kind, int end, int peer,
				       uint64_t tag, size_t len)
{
	struct nth_request *request = calloc(1, sizeof(*request));

	cr_assert_not_null(request);
	request->buf = calloc(1, len + 1);
	cr_assert_not_null(request->buf);
	request->kind = kind;
	request->end = end;
	request->peer = peer;
	request->tag = tag;
	request->len = len;
	request->next = nth->requests;
	nth->requests = request;
	return request;
}

/* Completions. */

static void check_message(struct nth *nth, const struct nth_request *request,
			  const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	const struct nth_end *end = &nth->end[request->end];
	const uint8_t *bytes = entry->buf ? entry->buf : request->buf;
	uint64_t tag;
	fi_addr_t from;

	memcpy(&tag, bytes, sizeof(tag));
	if (!holds(bytes, tag, entry->len) || (entry->flags & FI_TAGGED && entry->tag != tag))
		nth_fail(nth, request, "other bytes came than were sent");
	if (tag >> TAG_ROUND != nth->round || (!request->untagged && (tag ^ request->tag) & 0xff))
		nth_fail(nth, request, "another message came");
	from = end->addr[tag >> TAG_FROM & 0xff];
	if (src != from && (nth->strict || src != FI_ADDR_NOTAVAIL))
		nth_fail(nth, request, "the sender's name is wrong");
}

static void check_success(struct nth *nth, struct nth_request *request,
			  const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	switch (request->kind) {
	case NTH_RECV:
		check_message(nth, request, entry, src);
		break;
	case NTH_WRITE:
		if (!request->may_fail && !holds(request->slice, request->tag, request->len))
			nth_fail(nth, request, "was not done");
		break;
	case NTH_READ:
		if (!holds(request->buf, request->tag, request->len))
			nth_fail(nth, request, "brought something else");
		break;
	default:
		break;
	}
}

static void complete(struct nth *nth, struct nth_request *request, int error,
		     const struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	cr_assert_not_null(request);
	if (request->done)
		nth_fail(nth, request, "completes twice");
	request->error = error;
	request->messages++;
	request->done = !request->multi || error || entry->flags & FI_MULTI_RECV;
	if (!error)
		check_success(nth, request, entry, src);
	else if (nth->strict && !request->must_fail && !request->may_fail &&
		 request->kind != NTH_PEEK)
		nth_fail(nth, request, fi_strerror(error));
	if (!error && request->must_fail)
		nth_fail(nth, request, "should have failed");
}

/* An error says why, but if that, too, found no memory. */
static void read_error(struct nth *nth, struct nth_end *end)
{
	char reason[256];
	struct fi_cq_err_entry entry = {.err_data = reason, .err_data_size = sizeof(reason)};
	struct nth_request *request;

	cr_assert_eq(fi_cq_readerr(end->cq, &entry, 0), 1);
	request = entry.op_context;
	cr_assert_gt(entry.err, 0);
	cr_assert_neq(entry.err, FI_EOVERRUN);
	if (nth->strict && entry.err != FI_ENOMSG && entry.err != FI_ECANCELED &&
	    !entry.err_data_size)
		nth_fail(nth, request, "fails for no reason");
	complete(nth, request, entry.err, NULL, FI_ADDR_NOTAVAIL);
}

/* Free objects are given back, so that the next request allocates. */
static void exhaust(struct fid_ep *fid)
{
	struct verve_engine *engine = fid ? verve_ep_from_fid(fid)->engine : NULL;
	struct verve_xport *xport;
	struct verve_msg *msg;

	if (!engine)
		return;
	xport = verve_engine_lock(engine);
	msg = verve_msg_of(xport);
	for (int i = 0; i < VERVE_OP_SIZES; i++)
		xport->home->ops[i].free = NULL;
	msg->match[0].indexes.free = msg->match[1].indexes.free = NULL;
	verve_engine_unlock(engine);
}

void nth_progress(void *arg)
{
	struct nth *nth = arg;

	for (int i = 0; i < NTH_ENDS; i++) {
		struct nth_end *end = &nth->end[i];
		struct fi_cq_tagged_entry entry;
		fi_addr_t src;
		ssize_t ret = 0;

		if (!end->cq)
			continue;
		exhaust(end->ep);
		while (ret != -FI_EAGAIN) {
			ret = fi_cq_readfrom(end->cq, &entry, 1, &src);
			if (ret == -FI_EAVAIL)
				read_error(nth, end);
			else if (ret == 1)
				complete(nth, entry.op_context, 0, &entry, src);
			else
				cr_assert_eq(ret, -FI_EAGAIN);
		}
	}
}

static void step(struct nth *nth)
{
	uint64_t next = fake_net_next(), now = fake_net_time();

	nth_progress(nth);
	fake_net_advance(next > now + 1000000 ? 1000000 : next - now);
}

void nth_pass(struct nth *nth, uint64_t ns)
{
	for (uint64_t end = fake_net_time() + ns; fake_net_time() < end;)
		step(nth);
}

static struct nth_request *find_waiting(struct nth *nth, bool receives)
{
	struct nth_request *request;

	for (request = nth->requests; request; request = request->next)
		if (!request->done && (request->kind == NTH_RECV) == receives)
			return request;
	return NULL;
}

void nth_settle(struct nth *nth)
{
	uint64_t end = fake_net_time() + patience;
	struct nth_request *request;

	while ((request = find_waiting(nth, false))) {
		if (fake_net_time() > end)
			nth_fail(nth, request, "hangs");
		step(nth);
	}
	for (end = fake_net_time() + quiet; fake_net_time() < end && find_waiting(nth, true);)
		step(nth);
}

/* Making requests. */

/* 0: accepted. */
typedef ssize_t request_call(struct nth *nth, struct nth_request *request);

/* Refused, it changed nothing, and is taken later. */
static void submit(struct nth *nth, struct nth_request *request, request_call *call)
{
	ssize_t ret = 0;

	for (int i = 0; i < TRIES; i++) {
		exhaust(nth->end[request->end].ep);
		ret = call(nth, request);
		if (!ret)
			return;
		if (nth->strict || (ret != -FI_EAGAIN && ret != -FI_ENOMEM))
			break;
		step(nth);
	}
	nth_fail(nth, request, fi_strerror((int)-ret));
}

static ssize_t call_send(struct nth *nth, struct nth_request *request)
{
	struct nth_end *end = &nth->end[request->end];
	struct iovec iov = {request->buf, request->len};
	fi_addr_t addr = end->addr[request->peer];
	struct fi_msg_tagged tagged = {.msg_iov = &iov, .iov_count = 1, .addr = addr,
				       .tag = request->tag, .context = request};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = addr, .context = request};

	if (request->flags & FI_MULTI_RECV)
		return fi_sendmsg(end->ep, &msg, FI_COMPLETION);
	return fi_tsendmsg(end->ep, &tagged, request->flags | FI_COMPLETION);
}

struct nth_request *nth_send(struct nth *nth, int from, int to, unsigned number, size_t len,
			     uint64_t flags)
{
	struct nth_request *request = request_new(nth, NTH_SEND, from, to,
						  tag_of(nth, from, number), len);

	request->flags = flags;
	fill(request->buf, request->tag, len);
	submit(nth, request, call_send);
	return request;
}

static struct fid_ep *rx_of(struct nth_end *end)
{
	return end->srx ? end->srx : end->ep;
}

static ssize_t receive(struct nth *nth, struct nth_request *request, uint64_t flags, void *context)
{
	struct nth_end *end = &nth->end[request->end];
	bool any = request->peer == NTH_ANY;
	struct iovec iov = {request->buf, request->len};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = any ? FI_ADDR_UNSPEC : end->addr[request->peer],
		.tag = request->tag,
		.ignore = any ? 0xff << TAG_FROM : 0,
		.context = context,
	};

	return fi_trecvmsg(rx_of(end), &msg, flags);
}

static ssize_t call_recv(struct nth *nth, struct nth_request *request)
{
	struct nth_end *end = &nth->end[request->end];
	struct iovec iov = {request->buf, request->len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
			     .context = request};

	if (!request->untagged)
		return receive(nth, request, request->flags, request);
	return fi_recvmsg(rx_of(end), &msg, request->multi ? FI_MULTI_RECV : FI_COMPLETION);
}

struct nth_request *nth_recv(struct nth *nth, int to, int from, unsigned number, size_t len)
{
	struct nth_request *request =
		request_new(nth, NTH_RECV, to, from,
			    tag_of(nth, from == NTH_ANY ? 0 : from, number), len);

	submit(nth, request, call_recv);
	return request;
}

static struct nth_request *recv_untagged(struct nth *nth, int to, size_t len, bool multi)
{
	struct nth_request *request = request_new(nth, NTH_RECV, to, NTH_ANY, 0, len);

	request->untagged = true;
	request->multi = multi;
	submit(nth, request, call_recv);
	return request;
}

struct nth_request *nth_recv_untagged(struct nth *nth, int to, size_t len)
{
	return recv_untagged(nth, to, len, false);
}

struct nth_request *nth_recv_multi(struct nth *nth, int to, size_t len)
{
	return recv_untagged(nth, to, len, true);
}

/* RMA. */

static ssize_t call_rma(struct nth *nth, struct nth_request *request)
{
	struct nth_end *from = &nth->end[request->end], *to = &nth->end[request->peer];
	uint64_t key = request->must_fail ? NOBODYS_KEY : to->key;
	uint64_t target = (uintptr_t)request->slice;
	fi_addr_t addr = from->addr[request->peer];

	switch (request->kind) {
	case NTH_WRITE:
		return fi_write(from->ep, request->buf, request->len, NULL, addr, target, key,
				request);
	case NTH_READ:
		return fi_read(from->ep, request->buf, request->len, NULL, addr, target, key,
			       request);
	default:
		return fi_fetch_atomic(from->ep, request->buf, 1, NULL, request->buf + 8, NULL,
				       addr, target, key, FI_UINT64, FI_SUM, request);
	}
}

static struct nth_request *rma_new(struct nth *nth, enum nth_kind kind, int from, int to,
				   unsigned number, size_t len)
{
	struct nth_request *request =
		request_new(nth, kind, from, to, tag_of(nth, from, number), len);
	struct nth_end *end = &nth->end[to];

	request->slice = end->region + ((size_t)from * NTH_SLICES + number) * NTH_SLICE;
	request->may_fail = !end->mr;
	return request;
}

struct nth_request *nth_write(struct nth *nth, int from, int to, unsigned number, size_t len)
{
	struct nth_request *request = rma_new(nth, NTH_WRITE, from, to, number, len);

	fill(request->buf, request->tag, len);
	submit(nth, request, call_rma);
	return request;
}

struct nth_request *nth_write_refused(struct nth *nth, int from, int to)
{
	struct nth_request *request = rma_new(nth, NTH_WRITE, from, to, 0, 8);

	request->must_fail = true;
	submit(nth, request, call_rma);
	return request;
}

struct nth_request *nth_read(struct nth *nth, int from, int to, unsigned number, size_t len)
{
	struct nth_request *request = rma_new(nth, NTH_READ, from, to, number, len);

	fill(request->slice, request->tag, len);
	submit(nth, request, call_rma);
	return request;
}

struct nth_request *nth_add(struct nth *nth, int from, int to)
{
	struct nth_request *request = rma_new(nth, NTH_ADD, from, to, 0, 16);

	memcpy(request->buf, &(uint64_t){1}, 8);
	submit(nth, request, call_rma);
	return request;
}

/* Peeking and cancelling. */

static ssize_t call_peek(struct nth *nth, struct nth_request *request)
{
	return receive(nth, request, request->flags | FI_PEEK, request);
}

bool nth_peek(struct nth *nth, int to, int from, unsigned number, uint64_t flags,
	      struct nth_request **requestp)
{
	struct nth_request *request = request_new(nth, NTH_PEEK, to, from,
						  tag_of(nth, from, number), NTH_SLICE);

	request->flags = flags;
	submit(nth, request, call_peek);
	while (!request->done)
		step(nth);
	if (request->error && (request->error != FI_ENOMSG || nth->strict))
		nth_fail(nth, request, "finds nothing");
	if (requestp)
		*requestp = request;
	return !request->error;
}

void nth_claim(struct nth *nth, struct nth_request *request, size_t len)
{
	request->kind = NTH_RECV;
	request->done = false;
	request->flags = FI_CLAIM;
	request->len = len;
	submit(nth, request, call_recv);
}

static ssize_t call_cancel(struct nth *nth, struct nth_request *request)
{
	struct nth_end *end = &nth->end[request->end];
	struct fid_ep *ep = request->kind == NTH_RECV ? rx_of(end) : end->ep;
	ssize_t ret = fi_cancel(&ep->fid, request);

	return ret == -FI_ENOENT ? 0 : ret;
}

void nth_cancel(struct nth *nth, struct nth_request *request)
{
	request->may_fail = true;
	submit(nth, request, call_cancel);
}

/* The end of a round. */

/* A receive waits in vain: its message was lost, and does not lie beside it. */
static void give_up(struct nth *nth, struct nth_request *request)
{
	struct nth_end *end = &nth->end[request->end];
	struct nth_request *peek = request_new(nth, NTH_PEEK, request->end, request->peer,
					       request->tag, 0);
	struct fi_msg msg = {.addr = FI_ADDR_UNSPEC, .context = peek};

	if (nth->strict)
		nth_fail(nth, request, "its message never comes");
	cr_assert_eq(request->untagged ? fi_recvmsg(rx_of(end), &msg, FI_PEEK) :
					 receive(nth, peek, FI_PEEK, peek), 0);
	while (!peek->done)
		step(nth);
	if (peek->error != FI_ENOMSG)
		nth_fail(nth, request, "its message is there, and it does not take it");
	nth_cancel(nth, request);
	nth_progress(nth);
	if (!request->done)
		nth_fail(nth, request, "is cancelled, and does not say so");
	request->may_fail = false;
}

/* A bit for the two ends between which the request failed; 0: it did not fail, or was meant to. */
static unsigned harmed(const struct nth_request *request)
{
	if (!request->error || request->may_fail || request->must_fail ||
	    request->peer == NTH_ANY || request->kind == NTH_PEEK)
		return 0;
	return 1u << (request->end + request->peer);
}

void nth_finish(struct nth *nth)
{
	struct nth_request *request;
	unsigned pairs = 0;

	nth_settle(nth);
	while ((request = find_waiting(nth, true)))
		give_up(nth, request);
	if (!nth->strict)
		nth_pass(nth, quiet); /* all hear of connections that broke */
	while ((request = nth->requests)) {
		pairs |= harmed(request);
		if (__builtin_popcount(pairs) > nth->harmed_max)
			nth_fail(nth, request, "others suffer, too");
		nth->requests = request->next;
		free(request->buf);
		free(request);
	}
	nth->round++;
}
