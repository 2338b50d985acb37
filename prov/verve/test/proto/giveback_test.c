/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's buffer is its own as soon as its completion can be read: nothing of it is
 * registered any more. So is every buffer when its endpoint has been closed, whatever the device
 * does.
 */
#include <string.h>

#include "fixture.h"
#include "mr/keytab.h"
#include "mr/region.h"
#include "proto/cancel.h"

enum { LONG = 20 * NODE_EAGER };

static struct node a, b;
static char out[LONG], in[LONG], remote[LONG];
static struct verve_mr_region *region;
static struct verve_mr_keytab keytab;
static int context;

static void setup(void)
{
	nodes_limit(2 * NODE_EAGER); /* so that a long write takes many requests */
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	verve_mr_keytab_init(&keytab);
	b.xport->attr.mr_keytab = &keytab;
	b.xport->attr.rma_event = true;
	node_join(&a, &b, NODE_WINDOW);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, LONG,
					  VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE, &region),
		     0);
	node_watch(&a);
	node_watch(&b);
}

static void teardown(void)
{
	fake_net_memlock(UINT64_MAX);
	verve_mr_region_close(region);
	node_close(&b);
	verve_mr_keytab_fini(&keytab);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(giveback, .init = setup, .fini = teardown);

static void send_long(uint32_t flags)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = LONG,
						     .context = &context, .flags = flags}),
		     0);
}

static void receive(size_t len, uint32_t flags)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = len, .flags = flags}), 0);
}

static void rma(enum verve_rma_kind kind, size_t len)
{
	struct verve_wire_segment to = {(uintptr_t)remote, len, region->rkey};
	struct iovec iov = {out, len};
	struct verve_request request = {
		.iov = &iov,
		.iov_count = 1,
		.addr = node_addr(&a, &b),
		.context = &context,
		.flags = VERVE_OP_NOTIFY,
		.remote = &to,
		.remote_count = 1,
	};

	cr_assert_eq(verve_rma(a.xport, kind, &request), 0);
}

Test(giveback, of_a_message_that_is_read)
{
	receive(LONG, 0);
	send_long(0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&b.rx_queue);
	node_close(&a);
}

Test(giveback, of_a_message_that_is_read_and_whose_fin_waits)
{
	receive(LONG, 0);
	send_long(0);
	while (TAILQ_EMPTY(&node_peer(&b, &a)->active)) {
		cr_assert(fake_net_run_next());
		verve_proto_poll(&b.proto);
	}
	b.xport->wr_limit = 0;
	nodes_settle();
	expect_comp(&b.rx_queue);
	cr_expect_not(TAILQ_EMPTY(&node_peer(&b, &a)->control), "the FIN has left");
	cr_expect_eq(AO_load(&b.mr_cache.regions), 0);
	b.xport->wr_limit = 8192;
	nodes_settle();
	node_close(&a);
}

Test(giveback, of_a_message_that_is_pulled_from_registered_memory)
{
	send_long(0);
	nodes_settle();
	cr_expect_gt(AO_load(&a.mr_cache.regions), 0);
	fake_net_memlock(0);
	receive(LONG, 0);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&b.rx_queue);
	node_close(&a);
}

Test(giveback, of_a_multi_receive_buffer)
{
	receive(LONG, VERVE_OP_MULTI);
	send_long(0);
	nodes_settle();
	cr_expect(expect_comp(&b.rx_queue).flags & VERVE_COMP_MULTI_RECV);
	expect_comp(&a.tx_queue);
	node_close(&a);
}

Test(giveback, of_a_message_that_is_longer_than_its_buffer)
{
	receive(LONG / 2, 0);
	send_long(VERVE_OP_ACK);
	nodes_settle();
	expect_error(&b.rx_queue, FI_ETRUNC);
	expect_comp(&a.tx_queue);
	node_close(&a);
}

Test(giveback, of_a_message_that_is_taken_back)
{
	send_long(0);
	nodes_settle();
	cr_expect_eq(verve_cancel(a.xport, &context), 0);
	nodes_settle();
	expect_error(&a.tx_queue, FI_ECANCELED);
	node_close(&a);
}

Test(giveback, of_what_is_written_and_read)
{
	for (int kind = VERVE_RMA_WRITE; kind <= VERVE_RMA_READ; kind++) {
		rma(kind, LONG);
		nodes_settle();
		expect_comp(&a.tx_queue);
		node_watch(&a);
	}
	node_close(&a);
}

Test(giveback, of_a_write_that_is_cancelled_under_way)
{
	rma(VERVE_RMA_WRITE, LONG);
	cr_expect_eq(verve_cancel(a.xport, &context), 0);
	nodes_settle();
	cr_expect_not(verve_comp_queue_is_empty(&a.tx_queue));
	node_close(&a);
}

Test(giveback, of_what_the_device_refuses)
{
	region->rkey++;
	rma(VERVE_RMA_READ, LONG);
	nodes_settle();
	expect_error(&a.tx_queue, FI_EACCES);
	region->rkey--;
	node_close(&a);
}

Test(giveback, of_what_its_connection_takes_along)
{
	receive(LONG, 0);
	send_long(0);
	for (int i = 0; i < 5; i++) {
		verve_proto_poll(&b.proto);
		cr_assert(fake_net_run_next());
	}
	verve_link_break(b.xport, node_link(&b, &a), FI_ENOTCONN, 0, "test");
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "test");
	nodes_settle();
	expect_error(&a.tx_queue, FI_ENOTCONN);
	node_close(&a);
}

/* The endpoint is closed while its device has all of it, and the wait for the device has ended. */
Test(giveback, of_all_when_the_device_never_lets_go)
{
	struct verve_link *link = node_link(&a, &b);

	send_long(0);
	rma(VERVE_RMA_WRITE, LONG);
	rma(VERVE_RMA_READ, LONG);
	rma(VERVE_RMA_WRITE, 1);
	cr_expect_neq(link->produced, link->retired);
	cr_expect_gt(AO_load(&a.mr_cache.regions), 0);
	node_drop(&a);
	nodes_settle();
}
