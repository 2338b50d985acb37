/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics by the processor at their target: the segments of a region, the requests that are refused
 * and the reasons, requests and replies that no honest endpoint sends (posted by hand), and device
 * memory.
 */
#include <rdma/fi_rma.h>
#include <string.h>

#include "../support/fake_memory.h"
#include "api/ep.h"
#include "atomic_fixture.h"
#include "engine/engine.h"
#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/xport.h"

Test(atomic, target_refuses_wrong_keys_ranges_and_access)
{
	uint64_t value = 1, result = 77, good = key;
	struct fid_mr *full = mr;

	key ^= 0x5a5a00;
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect_refusal(1, "no region");
	key = good;
	cr_assert_eq(atomic_add(WORDS, &value, NULL), 0);
	atomic_expect_refusal(2, "beyond");
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, at(WORDS) - 7, key, FI_UINT64,
			       FI_SUM, NULL),
		     0);
	atomic_expect_refusal(3, "beyond");
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, at(0) - 1, key, FI_UINT64, FI_SUM,
			       NULL), 0);
	atomic_expect_refusal(4, "beyond");
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, UINT64_MAX - 3, key, FI_UINT64,
			       FI_SUM, NULL), 0);
	atomic_expect_refusal(5, "beyond");

	atomic_reg(FI_REMOTE_READ);
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect_refusal(6, "grant");
	cr_assert_eq(atomic_fetch(0, &value, &result, FI_ATOMIC_WRITE), 0);
	atomic_expect_refusal(7, "grant");
	cr_assert_eq(atomic_fetch(0, NULL, &result, FI_ATOMIC_READ), 0);
	atomic_expect(8, 0);
	cr_expect_eq(result, 0);
	cr_assert_eq(fi_close(&mr->fid), 0);

	atomic_reg(FI_REMOTE_WRITE);
	cr_assert_eq(atomic_fetch(0, NULL, &result, FI_ATOMIC_READ), 0);
	atomic_expect_refusal(9, "grant");
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(10, 0);
	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect_refusal(11, "no region");
	mr = full;
	for (size_t i = 0; i < WORDS; i++)
		cr_assert_eq(words[i], i == 0);
	cr_expect_eq(fi_cntr_readerr(us->cntr[CNTR_WRITE]), 7);
	cr_expect_eq(fi_cntr_readerr(us->cntr[CNTR_READ]), 2);
	atomic_expect_counts(1, 1);
}

/* One region of two segments, the later one first: words 8 to 15, then 0 to 2. */
static void reg_two(size_t last_len)
{
	struct iovec iov[2] = {{words + 8, 64}, {words, last_len}};

	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(fi_mr_regv(fix.domain, iov, 2, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr,
				NULL), 0);
	key = fi_mr_key(mr);
}

Test(atomic, goes_on_in_the_next_segment)
{
	uint64_t values[4] = {1, 2, 3, 4}, results[4];

	reg_two(24);
	for (size_t i = 0; i < 16; i++)
		words[i] = 100 * i;
	cr_assert_eq(fi_fetch_atomic(us->ep, values, 4, NULL, results, NULL, us->peer, at(14), key,
				     FI_UINT64, FI_SUM, NULL), 0);
	atomic_expect(1, 0);
	cr_expect_eq(words[14], 1401);
	cr_expect_eq(words[15], 1502);
	cr_expect_eq(words[0], 3);
	cr_expect_eq(words[1], 104);
	cr_expect_eq(words[2], 200);
	cr_expect_eq(results[0], 1400);
	cr_expect_eq(results[1], 1500);
	cr_expect_eq(results[2], 0);
	cr_expect_eq(results[3], 100);
	cr_assert_eq(fi_fetch_atomic(us->ep, values, 4, NULL, results, NULL, us->peer, at(1), key,
				     FI_UINT64, FI_SUM, NULL), 0);
	atomic_expect_refusal(2, "beyond");
	cr_expect_eq(words[1], 104);
}

Test(atomic, elements_in_two_segments_are_refused)
{
	uint64_t values[2] = {1, 2};

	reg_two(24);
	cr_assert_eq(fi_atomic(us->ep, values, 2, NULL, us->peer, at(14) + 4, key, FI_UINT64,
			       FI_SUM, NULL), 0);
	atomic_expect(1, FI_EINVAL);
	for (size_t i = 0; i < WORDS; i++)
		cr_assert_eq(words[i], 0);
	cr_assert_eq(fi_atomic(us->ep, values, 3, NULL, us->peer, at(15) + 4, key, FI_UINT32,
			       FI_SUM, NULL), 0);
	atomic_expect(2, 0);
	cr_expect_eq(words[15], 1ull << 32);
	cr_expect_eq(words[0], 2ull << 32);
}

/* A request is executed on all of its segments or on none. */
Test(atomic, one_bad_segment_spoils_all)
{
	uint64_t values[2] = {1, 1};
	struct fi_ioc iov = {values, 2};
	struct fi_rma_ioc remote[2] = {{at(0), 1, key}, {at(WORDS), 1, key}};
	struct fi_msg_atomic msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = us->peer, .rma_iov = remote,
		.rma_iov_count = 2, .datatype = FI_UINT64, .op = FI_SUM,
	};

	cr_assert_eq(fi_atomicmsg(us->ep, &msg, FI_COMPLETION), 0);
	atomic_expect_refusal(1, "beyond");
	cr_expect_eq(words[0], 0);
}

/* Sends a packet that no honest initiator sends over our connection to the peer. */
static void post_raw(const void *packet, size_t len)
{
	struct verve_xport *xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	struct verve_link *link = xport->peers->link;
	struct verve_outgoing out;

	cr_assert(verve_link_reserve(xport, link, len, &out));
	memcpy(out.data, packet, len);
	cr_assert_eq(verve_link_post_packet(xport, link, &out, len, false, NULL), 0);
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
}

static void post_packet(struct verve_wire_packet *packet, size_t operands)
{
	struct verve_xport *xport = verve_engine_lock(verve_ep_from_fid(us->ep)->engine);
	unsigned char buf[4096] = {1};
	size_t len;

	verve_link_address(xport->peers->link, packet);
	len = verve_wire_encode(packet, buf);
	verve_engine_unlock(verve_ep_from_fid(us->ep)->engine);
	post_raw(buf, len + operands);
}

/*
 * The target answers each bad request and changes no memory. The replies name an operation that
 * does not exist.
 */
Test(atomic, bad_requests_break_nothing)
{
	uint64_t value = 1;

	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(1, 0);
	for (unsigned op = 0; op < 256; op += op < 25 ? 1 : 50)
		for (unsigned type = 0; type < 256; type += type < 18 ? 1 : 60)
			for (unsigned count = 0; count <= 4; count += 2) {
				struct verve_wire_packet packet = {
					.type = VERVE_WIRE_ATOMIC,
					.flags = type % 2 ? VERVE_WIRE_FETCH : 0,
					.amo_op = op, .amo_type = type, .segment_count = count,
					.op_id = 0xdead,
				};

				for (unsigned i = 0; i < count; i++)
					packet.segment[i] = (struct verve_wire_segment){
						at(0), op % 3 ? UINT64_MAX - 7 : 64 * i,
						(uint32_t)key};
				post_packet(&packet, 7);
				atomic_settle();
			}
	for (size_t i = 0; i < WORDS; i++)
		cr_assert_eq(words[i], i == 0);
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(2, 0);
	cr_expect_eq(words[0], 2);
}

/* Replies for which no operation waits, or an operation that is no atomic. */
Test(atomic, stray_replies_are_ignored)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_ATOMIC_REPLY};
	uint64_t value = 1;

	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(1, 0);
	for (uint32_t id = 0; id < 40; id++) {
		packet.op_id = id;
		packet.status = id % 9;
		post_packet(&packet, id % 3);
		atomic_settle();
	}
	cr_expect_eq(them->completions, 0);
	cr_assert_eq(atomic_add(0, &value, NULL), 0);
	atomic_expect(2, 0);
}

/*
 * The processor cannot reach device memory: writes by the device succeed, atomics by the processor
 * are refused.
 */
Test(atomic, device_memory_is_left_to_devices)
{
	static _Alignas(4096) uint64_t device_memory[512];
	struct {
		int fd;
		uint64_t offset;
		size_t len;
		void *base_addr;
	} dmabuf = {fake_net_dmabuf(device_memory, sizeof(device_memory)), 0, 64,
		    (void *)0x7000000};
	struct fi_mr_attr attr = {.mr_iov = (const void *)&dmabuf, .iov_count = 1,
				  .access = FI_REMOTE_READ | FI_REMOTE_WRITE};
	struct fid_mr *device_mr;
	uint64_t value = 9;

	cr_assert_eq(fi_mr_regattr(fix.domain, &attr, 1ull << 40 /* FI_MR_DMABUF */, &device_mr),
		     0);
	cr_assert_eq(fi_atomic(us->ep, &value, 1, NULL, us->peer, 0x7000008, fi_mr_key(device_mr),
			       FI_UINT64, FI_SUM, NULL), 0);
	atomic_expect_refusal(1, "does not grant");
	cr_assert_eq(fi_write(us->ep, &value, 8, NULL, us->peer, 0x7000008, fi_mr_key(device_mr),
			      NULL), 0);
	atomic_expect(2, 0);
	cr_expect_eq(device_memory[1], 9);
	cr_expect_eq(fi_close(&device_mr->fid), 0);
}
