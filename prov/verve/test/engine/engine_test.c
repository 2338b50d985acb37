/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engine: opening, the wait descriptor, and the close that drains operations. The handshake in
 * between is the real one.
 */
#include "engine/engine.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/fake_net.h"
#include "../support/last_log.h"
#include "base/config.h"
#include "ends.h"
#include "msg/send.h"
#include "net/sys.h"

TestSuite(engine, .init = ends_setup, .fini = ends_teardown);

/* Opening. */

Test(engine, has_a_name_that_others_reach)
{
	const struct verve_addr *name;

	open_both();
	name = verve_engine_addr(a.engine);
	cr_expect(verve_addr_same_host(name, &a.attr.addr));
	cr_expect_neq(verve_addr_port(name), 0);
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, 5);
	expect_len(&b.rx_queue, 5);
}

/* One more can be opened, which is the device's. */
Test(engine, descriptors_that_lack_have_a_remedy)
{
	int next = dup(0);
	struct rlimit one = {next + 1, next + 1};

	close(next);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &one), 0);
	cr_expect_eq(verve_engine_open(&a.attr, &a.engine), -FI_EMFILE);
	cr_expect_not_null(strstr(last_log, "ulimit -n"), "%s", last_log);
}

/* As on a host where every processor has a polling process: the service thread never runs. */
static void setup_starved(void)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.starved = "verve-service";
	fake_net_start(&config);
	ends_setup();
}

TestSuite(engine_starved, .init = setup_starved, .fini = ends_teardown);

Test(engine_starved, polling_connects_without_the_service_thread)
{
	open_both();
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(CONNECT_MS / 2 * ms);
	expect_len(&a.tx_queue, 5);
	expect_len(&b.rx_queue, 5);
}

static uint32_t buffers_of_first_end(size_t number)
{
	uint32_t count;

	verve_config.rx_buffers = number;
	open_end(&a);
	count = verve_engine_lock(a.engine)->rx_count;
	verve_engine_unlock(a.engine);
	close_end(&a);
	return count;
}

/* Without a number, the endpoint has the buffers for one connection, and some besides. */
Test(engine, has_as_many_receive_buffers_as_the_user_says)
{
	uint32_t few = buffers_of_first_end(SIZE_MAX);

	cr_expect_geq(few, a.xport.window + 2 * VERVE_POLL_BATCH);
	cr_expect_lt(few, VERVE_CONFIG_RX_BUFFERS_AUTO);
	cr_expect_eq(buffers_of_first_end(16), 16);
	cr_expect_eq(buffers_of_first_end(3000), 3000);
}

static size_t bulk_read_of(size_t eager_size)
{
	size_t bytes;

	a.xport.eager_size = eager_size;
	open_end(&a);
	bytes = verve_engine_lock(a.engine)->attr.bulk_read;
	verve_engine_unlock(a.engine);
	close_end(&a);
	return bytes;
}

Test(engine, reads_longer_than_a_quarter_of_the_eager_size_are_bulk_reads)
{
	cr_expect_eq(bulk_read_of(65536), 16384);
	cr_expect_eq(bulk_read_of(256), 4096);
}

Test(engine, name_that_is_taken_is_refused)
{
	open_end(&a);
	b.attr.addr = *verve_engine_addr(a.engine);
	cr_expect_eq(verve_engine_open(&b.attr, &b.engine), -FI_EADDRINUSE);
	b.engine = NULL;
	close_end(&a);
	cr_expect_eq(verve_engine_open(&b.attr, &b.engine), 0); /* the address is free again */
}

Test(engine, name_that_nobody_has_is_refused)
{
	/* 198.51.100.1, an address for documentation */
	a.attr.addr.in.sin_addr.s_addr = htonl(0xc6336401);
	cr_expect_eq(verve_engine_open(&a.attr, &a.engine), -FI_EADDRNOTAVAIL);
	a.engine = NULL;
}

Test(engine, each_failure_of_opening_leaves_nothing)
{
	size_t before = fake_net_leaks(NULL, 0);
	uint64_t nth = 0;

	do {
		int ret;

		fake_net_fail(FAKE_NET_CALL_ALL, ++nth, -FI_ENOMEM);
		ret = verve_engine_open(&a.attr, &a.engine);
		if (!fake_net_has_failed()) {
			cr_assert_eq(ret, 0);
			break;
		}
		a.engine = NULL;
		cr_expect_lt(ret, 0);
		cr_expect_eq(fake_net_leaks(NULL, 0), before);
	} while (true);
	fake_net_fail(0, 0, 0);
	/* channel, two CQs, SRQ, region, receives, socket, thread, watched descriptor */
	cr_expect_gt(nth, 7);
}

/* The lock. */

Test(engine, progress_does_not_wait_for_another_thread_in_progress)
{
	struct verve_xport *xport;

	open_both();
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	xport = verve_engine_lock(b.engine);
	cr_expect(verve_lock_held(xport->lock));
	run(100 * ms); /* the turns of b return at once */
	cr_expect(verve_comp_queue_is_empty(&b.rx_queue));
	verve_engine_unlock(b.engine);
	cr_expect_not(verve_lock_held(xport->lock));
	run(100 * ms);
	expect_len(&b.rx_queue, 5);
}

Test(engine, elided_lock_serves_as_well)
{
	a.attr.elide_lock = b.attr.elide_lock = true;
	open_both();
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), ROOM, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, ROOM);
	expect_len(&b.rx_queue, ROOM);
}

Test(engine, forgotten_address_is_refused)
{
	uint64_t fi_addr;

	open_both();
	fi_addr = b_addr();
	cr_assert_eq(send_to(fi_addr, 5, 0), 0);
	run(100 * ms);
	verve_engine_forget(a.engine, fi_addr);
	cr_assert_eq(verve_addrvec_remove(&a.addrvec, fi_addr), 1);
	cr_expect_eq(send_to(fi_addr, 5, 0), -FI_EINVAL);
}

/* The wait descriptor. */

static bool is_readable(const struct end *end)
{
	struct pollfd fd = {.fd = verve_engine_fd(end->engine), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

Test(engine, descriptor_sleeps_until_there_is_something_to_do)
{
	open_both();
	recv_any(&b);
	recv_any(&b);
	fake_net_on_pause(NULL, NULL);
	cr_expect_eq(verve_engine_arm(b.engine), 0);
	cr_expect_not(is_readable(&b));
	/* First comes a connection. */
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	while (!is_readable(&b)) {
		verve_engine_progress(a.engine);
		cr_assert_lt(fake_net_time(), 1000 * ms);
		verve_net_pause();
	}
	while (verve_engine_arm(b.engine) == -FI_EAGAIN || is_readable(&b)) {
		verve_engine_progress(a.engine);
		cr_assert_lt(fake_net_time(), 1000 * ms);
		verve_net_pause();
	}
	/* Then comes a message, if it has not come with the connection. */
	if (verve_comp_queue_is_empty(&b.rx_queue)) {
		run(10 * ms);
		verve_engine_progress(a.engine);
		run(10 * ms);
		cr_expect(is_readable(&b));
		cr_expect_eq(verve_engine_arm(b.engine), -FI_EAGAIN);
	}
	expect_len(&b.rx_queue, 5);
	while (verve_engine_arm(b.engine) == -FI_EAGAIN)
		;
	cr_expect_not(is_readable(&b));
	cr_assert_eq(send_to(b_addr(), 6, 0), 0);
	run(10 * ms);
	cr_expect(is_readable(&b));
	cr_expect_eq(verve_engine_arm(b.engine), -FI_EAGAIN);
	expect_len(&b.rx_queue, 6);
	cr_expect_eq(verve_engine_arm(b.engine), 0);
	cr_expect_not(is_readable(&b));
	fake_net_on_pause(progress, NULL);
}

/* Closing. */

Test(engine, close_waits_for_what_was_accepted)
{
	static const size_t sizes[] = {0, 64, EAGER, ROOM};

	open_both();
	for (int i = 0; i < 4; i++) {
		recv_any(&b);
		cr_assert_eq(send_to(b_addr(), sizes[i], i % 2 ? VERVE_OP_ACK : 0), 0);
	}
	close_end(&a); /* before the connection is up */
	run(100 * ms);
	for (int i = 0; i < 4; i++) {
		struct verve_comp comp;

		cr_assert_eq(verve_comp_queue_read(&b.rx_queue, &comp, 1), 1);
	}
	/* The closed endpoint reports no completions. */
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(engine, close_of_an_idle_one_takes_no_time)
{
	uint64_t start;

	open_both();
	start = fake_net_time();
	close_end(&a);
	cr_expect_lt(fake_net_time() - start, 10 * ms);
}

Test(engine, close_drops_receives)
{
	open_end(&a);
	recv_any(&a);
	recv_any(&a);
	close_end(&a);
	cr_expect(verve_comp_queue_is_empty(&a.rx_queue));
}

Test(engine, close_gives_up_on_a_peer_that_never_was)
{
	struct verve_addr nobody = b.attr.addr;
	uint64_t fi_addr, start;

	open_end(&a);
	fake_net_host_kill(1);
	verve_addr_set_port(&nobody, 9);
	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &nobody, &fi_addr), 0);
	cr_assert_eq(send_to(fi_addr, 5, 0), 0);
	start = fake_net_time();
	close_end(&a);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
	cr_expect_lt(fake_net_time() - start, (CONNECT_MS + TRANSPORT_MS) * ms + 100 * ms);
}

Test(engine, close_gives_up_on_a_peer_that_died)
{
	uint64_t start;

	open_both();
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, 5);
	fake_net_host_kill(1);
	cr_assert_eq(send_to(b_addr(), ROOM, 0), 0);
	start = fake_net_time();
	close_end(&a);
	cr_expect_lt(fake_net_time() - start, 5 * TRANSPORT_MS * ms);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(engine, close_gives_up_on_a_peer_that_does_not_receive)
{
	uint64_t start;

	open_both();
	cr_assert_eq(send_to(b_addr(), 5, VERVE_OP_ACK), 0);
	run(100 * ms);
	start = fake_net_time();
	close_end(&a);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
	cr_expect_lt(fake_net_time() - start, 4 * TRANSPORT_MS * ms);
	/* The peer of the closed endpoint has the message all the same. */
	recv_any(&b);
	run(10 * ms);
	expect_len(&b.rx_queue, 5);
}

Test(engine, peer_hears_of_the_close_and_reaches_the_next_endpoint)
{
	struct verve_addr name;

	open_both();
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	run(100 * ms);
	expect_len(&b.rx_queue, 5);
	expect_len(&a.tx_queue, 5);
	name = *verve_engine_addr(b.engine);
	close_end(&b);
	run(100 * ms);
	b.attr.addr = name;
	open_end(&b);
	recv_any(&b);
	cr_assert_eq(send_to(b_addr(), 6, 0), 0);
	run(100 * ms);
	expect_len(&a.tx_queue, 6);
	expect_len(&b.rx_queue, 6);
}

/*
 * One message waits for its receive, another for its connection. A third message is refused, as the
 * device has gone.
 */
Test(engine, device_that_is_removed_fails_what_needs_it_and_closes)
{
	uint64_t start, nobody;
	struct verve_addr name;

	open_both();
	cr_assert_eq(send_to(b_addr(), ROOM, 0), 0);
	run(100 * ms);
	name = *verve_engine_addr(b.engine);
	name.in.sin_port++;
	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &name, &nobody), 0);
	fake_net_link(1, false);
	cr_assert_eq(send_to(nobody, 5, 0), 0);
	run(10 * ms);
	fake_net_device_remove(0);
	run(200 * ms);
	expect_error(&a.tx_queue, FI_ENODEV);
	expect_error(&a.tx_queue, FI_ENODEV);
	cr_expect_eq(send_to(b_addr(), 5, 0), -FI_ENODEV);
	start = fake_net_time();
	close_end(&a);
	cr_expect_lt(fake_net_time() - start, ms);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(engine, closes_with_events_that_nobody_read)
{
	open_both();
	cr_assert_eq(send_to(b_addr(), 5, 0), 0);
	/* The service threads connect both ends, but no application takes a turn. */
	fake_net_on_pause(NULL, NULL);
	verve_engine_progress(a.engine);
	run(100 * ms);
	fake_net_on_pause(progress, NULL);
	close_end(&b);
	close_end(&a);
	cr_expect_not(verve_comp_queue_is_empty(&a.tx_queue));
}

/* Shared receive contexts. */

static struct verve_engine *shared;
static struct verve_lock *shared_lock;
static int closed_without_lock;

static void open_shared(void)
{
	struct verve_xport_attr xport = {.mr_cache = &a.mr_cache, .min_multi_recv = 64};
	struct verve_engine_attr attr = {.xport = &xport};

	cr_assert_eq(verve_engine_open_shared(&attr, &shared), 0);
	shared_lock = verve_engine_lock(shared)->lock;
	verve_engine_unlock(shared);
	a.attr.shared = shared;
}

/* As another thread, polls the shared context while an endpoint closes an object. */
static void poll_shared(void *arg)
{
	(void)arg;
	closed_without_lock += !verve_lock_held(shared_lock);
	for (int i = 0; i < 200; i++)
		verve_engine_progress(shared);
}

/*
 * The service threads connect both ends. The application of a has taken no turn since, so its
 * events, which own queue pairs, are not handled. The manager is closed without the lock, after it
 * was taken away under the lock.
 */
Test(engine, nobody_polls_through_the_shared_context_what_an_endpoint_closes)
{
	uint64_t a_addr;

	open_shared();
	open_both();
	cr_assert_eq(verve_addrvec_insert(&b.addrvec, verve_engine_addr(a.engine), &a_addr), 0);
	cr_assert_eq(verve_send(verve_engine_lock(b.engine),
				&(struct verve_request){.addr = a_addr}),
		     0);
	verve_engine_unlock(b.engine);
	fake_net_on_pause(NULL, NULL);
	run(100 * ms);
	fake_net_on_close(poll_shared, NULL);
	close_end(&a);
	fake_net_on_close(NULL, NULL);
	cr_expect_gt(closed_without_lock, 0);
	verve_engine_close_shared(shared);
	fake_net_on_pause(progress, NULL);
}
