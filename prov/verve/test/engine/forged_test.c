/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that this host cannot be. The test itself speaks for them: it sends a HELLO and a READY
 * from a socket on host 1, as an endpoint there would, to the endpoint a.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "../support/fake_net.h"
#include "conn/hello.h"
#include "ends.h"
#include "net/dgram.h"
#include "net/device.h"
#include "rma/atomic.h"
#include "rma/rma.h"
#include "xport/link.h"
#include "xport/peer.h"

static struct verve_net_dgram *dgram;
static struct verve_addr name; /* of the forged peer */
static struct verve_hello hello; /* what it says */

static void setup(void)
{
	ends_setup();
	open_end(&a);
	fake_net_host_addr(1, &name);
	cr_assert_eq(verve_net_dgram_open(&name, &dgram), 0);
	hello = (struct verve_hello){
		.kind = VERVE_HELLO_HELLO,
		.version_min = VERVE_HELLO_VERSION_MIN,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.features = VERVE_HELLO_OWN_ORDER,
		.sender_incarnation = 1,
		.sender_id = 1,
		.serial = 1,
		.nonce = 1,
		.qp = {
			.gid = verve_net_device_port(b.dev)->addrs[0].gid,
			.mtu_log2 = 12,
			.rd_atomic_target = 1,
			.qp_num = 77,
		},
		.window = 4,
		.eager_size = EAGER,
	};
}

static void teardown(void)
{
	close_end(&a);
	verve_net_dgram_close(dgram);
	ends_teardown();
}

TestSuite(forged, .init = setup, .fini = teardown);

static void say(void)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	verve_hello_encode(&hello, buf);
	cr_assert_eq(verve_net_dgram_send(dgram, buf, sizeof(buf), verve_engine_addr(a.engine)),
		     0);
	run(10 * ms);
}

/* Answers the HELLO that a has sent. */
static void answer(void)
{
	uint8_t buf[VERVE_HELLO_SIZE_MAX];
	struct verve_hello theirs;
	struct verve_addr from;
	ssize_t len = verve_net_dgram_recv(dgram, buf, sizeof(buf), &from);

	cr_assert_gt(len, 0);
	cr_assert_eq(verve_hello_decode(buf, (size_t)len, &theirs), 0);
	cr_assert_eq(theirs.kind, VERVE_HELLO_HELLO);
	cr_expect_eq(theirs.features & VERVE_HELLO_BIG_ENDIAN, VERVE_HELLO_OWN_ORDER);
	hello.recipient_incarnation = theirs.sender_incarnation;
	hello.recipient_id = theirs.sender_id;
	hello.echo = theirs.nonce;
	say();
}

/* a answers the HELLO, and hears READY. Returns the peer's fi_addr_t. */
static uint64_t shake_hands(void)
{
	uint64_t fi_addr;

	say();
	hello.kind = VERVE_HELLO_READY;
	answer();
	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &name, &fi_addr), 0);
	return fi_addr;
}

static const struct verve_wire_segment somewhere = {.addr = 4096, .len = 8, .key = 5};

static void add_to(uint64_t fi_addr)
{
	uint64_t one = 1;
	struct iovec iov = {&one, sizeof(one)};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = fi_addr, .remote = &somewhere,
		.remote_count = 1, .flags = VERVE_OP_NOTIFY | VERVE_OP_INJECT};
	struct verve_atomic_request atomic = {
		.form = VERVE_AMO_UPDATE, .op = VERVE_AMO_SUM, .type = VERVE_AMO_UINT64};

	cr_assert_eq(verve_atomic(verve_engine_lock(a.engine), &request, &atomic), 0);
	verve_engine_unlock(a.engine);
	run(10 * ms);
}

Test(forged, atomics_with_a_peer_of_the_other_byte_order_are_refused)
{
	uint64_t fi_addr;

	hello.features ^= VERVE_HELLO_BIG_ENDIAN;
	fi_addr = shake_hands();
	add_to(fi_addr);
	expect_failure(&a.tx_queue, FI_EOPNOTSUPP, "the other byte order");
	/* Messages go: this one waits for an acknowledgement that nobody sends. */
	cr_expect_eq(send_to(fi_addr, 5, VERVE_OP_ACK), 0);
	run(10 * ms);
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(forged, atomics_with_a_peer_of_our_byte_order_go)
{
	add_to(shake_hands());
	cr_expect(verve_comp_queue_is_empty(&a.tx_queue));
}

Test(forged, peer_that_serves_no_reads_is_refused)
{
	uint64_t fi_addr;

	hello.qp.rd_atomic_target = 0;
	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &name, &fi_addr), 0);
	cr_assert_eq(send_to(fi_addr, 5, 0), 0);
	run(10 * ms);
	answer();
	expect_failure(&a.tx_queue, FI_EOPNOTSUPP, "the two devices do not fit");
}
