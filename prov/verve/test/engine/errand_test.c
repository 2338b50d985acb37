/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errands: memory is registered, and given back, while other threads have the engine's lock. The
 * fake device calls the test meanwhile, which does what another thread might do.
 */
#include "xport/errand.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "../support/fake_memory.h"
#include "../support/fake_net.h"
#include "../support/fake_world.h"
#include "base/config.h"
#include "base/wakefd.h"
#include "ends.h"
#include "engine/engine_state.h"
#include "msg/recv.h"
#include "msg/send.h"
#include "net/cq.h"
#include "net/sys.h"
#include "proto/cancel.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/start.h"

enum { LONG = 4 * EAGER, MANY = 100 };

static _Alignas(4096) char from[LONG], to[LONG], small[64];
static _Alignas(4096) char stages[16 * 4096];
static struct end c; /* on host 1, as b */

/* What the test does while a buffer of a message is registered (opens), or given back. */
static void (*act)(bool opens, const void *addr);
static int opened[2], closed[2]; /* of from, and of to */

static void on_mr(void *arg, bool opens, const void *addr)
{
	int at = addr == to;

	(void)arg;
	if (addr != from && addr != to)
		return;
	if (opens)
		opened[at]++;
	else
		closed[at]++;
	if (act)
		act(opens, addr);
}

static void all_progress(void *arg)
{
	progress(arg);
	if (c.engine)
		verve_engine_progress(c.engine);
}

static void setup(void)
{
	ends_setup();
	memset(&c, 0, sizeof(c));
	end_prepare(&c, 1);
	fake_net_on_pause(all_progress, NULL);
	open_both();
	open_end(&c);
	memset(from, 'f', sizeof(from));
	/* Connects, and fills the slabs. */
	recv_any(&b);
	recv_any(&c);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	cr_assert_eq(send_to(addr_of(&a, &c), 5, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, 5);
	expect_len(&a.tx_queue, 5);
	expect_len(&b.rx_queue, 5);
	expect_len(&c.rx_queue, 5);
	fake_net_on_mr(on_mr, NULL);
}

static void teardown(void)
{
	act = NULL;
	end_release(&c);
	ends_teardown();
}

TestSuite(errand, .init = setup, .fini = teardown);

static struct verve_request request_of(struct iovec *iov, uint64_t addr)
{
	return (struct verve_request){.iov = iov, .iov_count = 1, .addr = addr,
				      .context = iov->iov_base, .flags = VERVE_OP_NOTIFY};
}

static void send_buffer(struct end *end, void *buf, size_t len, uint64_t addr)
{
	struct iovec iov = {buf, len};
	struct verve_request request = request_of(&iov, addr);

	cr_assert_eq(verve_send(verve_engine_lock(end->engine), &request), 0);
	verve_engine_unlock(end->engine);
}

static void recv_buffer(struct end *end, void *buf, size_t len)
{
	struct iovec iov = {buf, len};
	struct verve_request request = request_of(&iov, UINT64_MAX);

	cr_assert_eq(verve_recv(verve_engine_lock(end->engine), &request), 0);
	verve_engine_unlock(end->engine);
}

static void send_long(void)
{
	recv_buffer(&b, to, LONG);
	send_buffer(&a, from, LONG, b_addr());
}

static void expect_free(bool opens, const void *addr)
{
	cr_expect(end_is_free(addr == from ? &a : &b), "%s %s",
		  opens ? "registering" : "giving back",
		  addr == from ? "the source" : "the receive");
}

Test(errand, no_lock_is_held)
{
	act = expect_free;
	send_long();
	run(100 * ms);
	expect_len(&a.tx_queue, LONG);
	expect_len(&b.rx_queue, LONG);
	cr_expect_eq(memcmp(from, to, LONG), 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(opened[i], 1);
		cr_expect_eq(closed[i], 1);
	}
}

/* The application may free its buffer when it sees the completion; nobody may reach it then. */
static void expect_unreported(bool opens, const void *addr)
{
	struct verve_comp_queue *queue = addr == from ? &a.tx_queue : &b.rx_queue;

	(void)opens;
	all_progress(NULL);
	cr_expect(verve_comp_queue_is_empty(queue));
}

Test(errand, completion_waits_until_the_memory_is_given_back)
{
	act = expect_unreported;
	send_long();
	run(100 * ms);
	expect_len(&a.tx_queue, LONG);
	expect_len(&b.rx_queue, LONG);
}

static void send_to_c(bool opens, const void *addr)
{
	if (!opens || addr != from)
		return;
	recv_buffer(&c, small, sizeof(small));
	send_buffer(&a, from, 5, addr_of(&a, &c));
	/* Other threads progress: the one message comes while the other one waits. */
	run(10 * ms);
	expect_len(&a.tx_queue, 5);
	expect_len(&c.rx_queue, 5);
	cr_expect(verve_comp_queue_is_empty(&b.rx_queue));
}

Test(errand, other_threads_go_on)
{
	act = send_to_c;
	send_long();
	run(100 * ms);
	expect_len(&a.tx_queue, LONG);
	expect_len(&b.rx_queue, LONG);
	cr_expect_eq(opened[0], 1);
}

/* Messages to one peer keep their order: one that has no errand waits behind one that has. */
static void send_more_to_b(bool opens, const void *addr)
{
	if (!opens || addr != from)
		return;
	act = NULL;
	recv_buffer(&b, small, sizeof(small));
	send_buffer(&a, small, 7, b_addr());
	run(10 * ms);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(errand, messages_to_one_peer_keep_their_order)
{
	struct verve_comp comp;

	act = send_more_to_b;
	send_long();
	run(100 * ms);
	cr_assert_eq(verve_comp_queue_read(&b.rx_queue, &comp, 1), 1);
	cr_expect_eq(comp.context, small, "it is the shorter one, but took the second receive");
	cr_expect_eq(comp.len, 7);
	expect_len(&b.rx_queue, LONG);
	expect_len(&a.tx_queue, 7);
	expect_len(&a.tx_queue, LONG);
}

static void cancel_message(bool opens, const void *addr)
{
	if (!opens || addr != from)
		return;
	act = expect_unreported;
	cr_expect_eq(verve_cancel(verve_engine_lock(a.engine), from), 0);
	verve_engine_unlock(a.engine);
	all_progress(NULL);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue), "the memory is still being registered");
}

Test(errand, message_that_is_cancelled_meanwhile_ends_afterwards)
{
	act = cancel_message;
	send_buffer(&a, from, LONG, b_addr());
	run(10 * ms);
	expect_error(&a.tx_queue, FI_ECANCELED);
	cr_expect_eq(opened[0], 1);
	cr_expect_eq(closed[0], 1);
}

static void kill_b(bool opens, const void *addr)
{
	if (!opens || addr != from)
		return;
	act = NULL;
	fake_net_host_kill(1);
	run(4 * TRANSPORT_MS * ms);
}

/* The link may break while the source is registered: the operation ends as any other. */
Test(errand, link_that_breaks_meanwhile)
{
	act = kill_b;
	send_buffer(&a, from, LONG, b_addr());
	send_buffer(&a, small, 5, b_addr());
	run(4 * (CONNECT_MS + TRANSPORT_MS) * ms);
	cr_expect_eq(AO_load(&a.tx_queue.count), 2);
	cr_expect_eq(closed[0], opened[0]);
}

static void fail_registering(bool opens, const void *addr)
{
	(void)addr;
	cr_expect(opens);
	fake_net_memlock(0);
}

/* What failed once is not tried each time that the message could start: it is pulled. */
Test(errand, memory_that_cannot_be_registered_is_tried_once)
{
	act = fail_registering;
	send_buffer(&a, from, LONG, b_addr());
	run(10 * ms);
	cr_expect_eq(opened[0], 1);
	opened[0] = 0;
	recv_buffer(&b, to, LONG);
	run(100 * ms);
	cr_expect_eq(opened[0], 0);
	expect_len(&a.tx_queue, LONG);
	expect_len(&b.rx_queue, LONG);
	cr_expect_eq(memcmp(from, to, LONG), 0);
	fake_net_memlock(UINT64_MAX);
}

/* Without another thread, the lock is nobody's: everything is done in place. */
Test(errand, elided_lock_needs_no_errands)
{
	close_end(&a);
	a.attr.elide_lock = true;
	open_end(&a);
	send_buffer(&a, from, LONG, b_addr());
	run(100 * ms);
	cr_expect_eq(opened[0], 1);
	cr_expect_eq(verve_engine_lock(a.engine)->errand_count, 0);
	verve_engine_unlock(a.engine);
	recv_buffer(&b, to, LONG);
	run(100 * ms);
	expect_len(&a.tx_queue, LONG);
	expect_len(&b.rx_queue, LONG);
}

/*
 * The last completion of a multi-receive buffer gives the buffer back: no other one of it may come
 * later. So their memory is given back in place.
 */
Test(errand, completions_of_a_multi_receive_buffer_keep_their_order)
{
	struct iovec iov = {to, LONG};
	struct verve_request request = request_of(&iov, UINT64_MAX);
	struct verve_comp comp[2];

	request.flags |= VERVE_OP_MULTI;
	cr_assert_eq(verve_recv(verve_engine_lock(b.engine), &request), 0);
	verve_engine_unlock(b.engine);
	send_buffer(&a, from, LONG - 96, b_addr());
	send_buffer(&a, small, 64, b_addr());
	run(100 * ms);
	cr_assert_eq(verve_comp_queue_read(&b.rx_queue, comp, 2), 2);
	cr_expect(comp[1].flags & VERVE_COMP_MULTI_RECV);
	cr_expect_not(comp[0].flags & VERVE_COMP_MULTI_RECV);
	expect_len(&a.tx_queue, 64);
	expect_len(&a.tx_queue, LONG - 96);
}

/* Other threads poll for a while. */
static void let_others_poll(void)
{
	for (int i = 0; i < 20; i++) {
		all_progress(NULL);
		run(ms);
	}
}

/*
 * A message that was offered in stages, and is pulled: the peer could read it until all its stages
 * are given back.
 */
static void on_stage(void *arg, bool opens, const void *addr)
{
	const char *at = addr;

	(void)arg;
	if (opens && at == to)
		fake_net_memlock(0);
	if (opens || at < stages || at >= stages + sizeof(stages))
		return;
	let_others_poll();
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
	closed[0]++;
}

Test(errand, pulled_message_ends_when_its_stages_are_given_back)
{
	a.mr_cache.crossover.stage = 4096;
	fake_net_on_mr(on_stage, NULL);
	recv_buffer(&b, to, LONG);
	send_buffer(&a, stages, sizeof(stages), b_addr());
	run(200 * ms);
	cr_expect_gt(closed[0], 1);
	expect_len(&a.tx_queue, sizeof(stages));
	expect_error(&b.rx_queue, FI_ETRUNC);
	fake_net_memlock(UINT64_MAX);
}

/* Each time that memory is registered, another thread sends one more message. */
static void send_one_more(bool opens, const void *addr)
{
	struct verve_comp comp;

	if (!opens || addr != from || opened[0] >= MANY)
		return;
	recv_buffer(&b, to, LONG);
	send_buffer(&a, from, LONG, b_addr());
	run(ms);
	verve_comp_queue_read(&a.tx_queue, &comp, 1);
	verve_comp_queue_read(&b.rx_queue, &comp, 1);
}

Test(errand, one_call_does_not_do_the_errands_of_all)
{
	act = send_one_more;
	send_long();
	cr_expect_lt(opened[0], MANY / 2);
	act = NULL;
	run(200 * ms);
}

static void break_links(struct end *end)
{
	struct verve_xport *xport = verve_engine_lock(end->engine);
	struct verve_link *link;

	while ((link = TAILQ_FIRST(&xport->links)))
		verve_link_break(xport, link, FI_ENOTCONN, 0, "by the test");
	/* Not verve_engine_unlock: no errand is done now. */
	verve_lock_release(xport->lock);
}

static void break_links_of_a(bool opens, const void *addr)
{
	if (opens && addr == from)
		break_links(&a);
}

/* The endpoint does not wait until the device has let go of the link, nor for the message. */
static void close_in_a_hurry(struct end *end)
{
	verve_config.connect_timeout = verve_config.transport_timeout = 0;
	close_end(end);
	verve_config.connect_timeout = CONNECT_MS;
	verve_config.transport_timeout = TRANSPORT_MS;
}

Test(errand, close_gives_back_what_no_message_took)
{
	act = break_links_of_a;
	send_buffer(&a, from, LONG, b_addr());
	cr_expect_eq(opened[0], 1);
	close_in_a_hurry(&a);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
}

/* a and c become members of a shared receive context; a is connected to b. */
static struct verve_engine *share(void)
{
	static struct verve_xport_attr xport = {.min_multi_recv = 64};
	struct verve_engine_attr attr = {.xport = &xport};
	struct verve_engine *shared;

	close_end(&a);
	close_end(&c);
	cr_assert_eq(verve_engine_open_shared(&attr, &shared), 0);
	a.attr.shared = c.attr.shared = shared;
	c.xport.addrvec = &a.addrvec;
	open_end(&a);
	open_end(&c);
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(100 * ms);
	expect_len(&b.rx_queue, 5);
	expect_len(&a.tx_queue, 5);
	return shared;
}

/* The errands of a shared receive context lie together: none is left of a member that closes. */
Test(errand, member_that_closes_leaves_no_errand)
{
	struct verve_engine *shared = share();

	act = break_links_of_a;
	send_buffer(&a, from, LONG, b_addr());
	close_in_a_hurry(&a);
	verve_engine_progress(c.engine);
	cr_expect_eq(closed[0], 1);
	close_end(&c);
	verve_engine_close_shared(shared);
}

/* As a thread does that wakes: before the errands, nothing else makes the descriptor readable. */
static void drain(struct end *end)
{
	struct verve_engine *engine = end->engine;

	verve_lock_acquire(engine->head.lock);
	verve_wakefd_drain(engine->event_fd);
	verve_net_channel_drain(engine->head.xport->channel);
	verve_lock_release(engine->head.lock);
}

static bool is_readable(struct end *end)
{
	struct pollfd fd = {verve_engine_fd(end->engine), POLLIN, 0};

	return poll(&fd, 1, 0) == 1;
}

/* A thread sleeps at a while one that polls c, and then has other things to do, does errands. */
Test(errand, errands_that_are_left_wake_their_own_member)
{
	enum { MESSAGES = 20 }; /* more than a call does */
	static _Alignas(4096) char buffers[MESSAGES][LONG];
	struct verve_engine *shared = share();
	struct verve_xport *xport;

	fake_net_on_pause(NULL, NULL);
	xport = verve_engine_lock(a.engine);
	for (int i = 0; i < MESSAGES; i++) {
		struct iovec iov = {buffers[i], LONG};
		struct verve_request request = request_of(&iov, b_addr());

		cr_assert_eq(verve_send(xport, &request), 0);
	}
	/* Not verve_engine_unlock: a third thread does the first errand. */
	verve_lock_release(xport->lock);
	drain(&a);
	verve_engine_progress(c.engine);
	cr_assert_gt(verve_engine_lock(c.engine)->home->errands.waiting, 0);
	verve_lock_release(xport->lock);
	cr_expect(is_readable(&a));
	fake_net_on_pause(all_progress, NULL);
	close_in_a_hurry(&a);
	close_end(&c);
	verve_engine_close_shared(shared);
}

static void break_links_of_b(bool opens, const void *addr)
{
	if (!opens || addr != to)
		return;
	act = NULL;
	break_links(&b);
	let_others_poll();
	cr_expect(verve_comp_queue_is_empty(&b.rx_queue), "the memory is still being registered");
}

Test(errand, receive_that_breaks_meanwhile_ends_afterwards)
{
	act = break_links_of_b;
	send_long();
	run(200 * ms);
	expect_error(&b.rx_queue, FI_ENOTCONN);
}

/* Another thread reads the completions while the earlier operation's memory is given back. */
static void expect_fence(bool opens, const void *addr)
{
	if (opens || addr != from)
		return;
	let_others_poll();
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(errand, fenced_operation_waits_for_the_completion)
{
	struct iovec iov = {small, 7};
	struct verve_request request;

	act = expect_fence;
	recv_buffer(&b, to, LONG);
	recv_buffer(&b, small, sizeof(small));
	send_buffer(&a, from, LONG, b_addr());
	request = request_of(&iov, b_addr());
	request.flags |= VERVE_OP_FENCE;
	cr_assert_eq(verve_send(verve_engine_lock(a.engine), &request), 0);
	verve_engine_unlock(a.engine);
	run(100 * ms);
	expect_len(&a.tx_queue, LONG);
	expect_len(&a.tx_queue, 7);
}

/* Packets of its peer make an operation try to start again: its errand does not fall behind. */
Test(errand, errand_that_waits_keeps_its_place)
{
	struct verve_xport *xport = verve_engine_lock(a.engine);
	uint64_t addrs[] = {b_addr(), addr_of(&a, &c)};
	void *buffers[] = {from, to};
	struct verve_peer *peer;

	for (int i = 0; i < 2; i++) {
		struct iovec iov = {buffers[i], LONG};
		struct verve_request request = request_of(&iov, addrs[i]);

		cr_assert_eq(verve_send(xport, &request), 0);
	}
	cr_assert_eq(verve_peer_find(xport, addrs[0], &peer), 0);
	verve_peer_kick(xport, peer);
	cr_expect_eq(xport->errands.waiting, 2);
	cr_expect_eq(STAILQ_FIRST(&xport->errands.wanted)->op->context, from);
	verve_engine_unlock(a.engine);
	cr_expect_eq(opened[0], 1);
	cr_expect_eq(opened[1], 1);
}
