/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two joined nodes, a and b, with memory at b that a writes and reads. */
#include "replay_fixture.h"

#include <string.h>

struct node a, b;
char local[ROOM], remote[ROOM], in[3 * NODE_EAGER], out[3 * NODE_EAGER];
struct verve_mr_region *region;

void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	node_join(&a, &b, NODE_WINDOW);
	pattern_fill(local, ROOM, 1);
	pattern_fill(out, sizeof(out), 2);
	cr_assert_eq(verve_mr_region_open(b.dev, remote, ROOM,
					  VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE, &region),
		     0);
}

void teardown(void)
{
	node_close(&a);
	verve_mr_region_close(region);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(replay, .init = setup, .fini = teardown);

void start_with(enum verve_rma_kind kind, uint32_t slot, uint32_t key, void *context,
		       uint32_t flags)
{
	struct iovec iov = {local + slot * SLOT, SLOT};
	struct verve_wire_segment to = {(uintptr_t)remote + slot * SLOT, SLOT, key};
	struct verve_request request = {
		.iov = &iov,
		.iov_count = 1,
		.addr = node_addr(&a, &b),
		.context = context,
		.flags = VERVE_OP_NOTIFY | flags,
		.remote = &to,
		.remote_count = 1,
	};

	cr_assert_eq(verve_rma(a.xport, kind, &request), 0);
}

void start(enum verve_rma_kind kind, uint32_t slot, uint32_t key, void *context)
{
	start_with(kind, slot, key, context, 0);
}

void refuse(void *context)
{
	start(VERVE_RMA_WRITE, 0, region->rkey + 1, context);
}

void send_to(struct node *from, struct node *to, size_t len, uint64_t tag, uint32_t flags)
{
	cr_assert_eq(node_send(from, &(struct message){.peer = to, .buf = out, .len = len,
						       .tag = tag,
						       .flags = flags | VERVE_OP_TAGGED}),
		     0);
}

void expect_message(struct node *node, size_t len, uint64_t tag)
{
	struct verve_comp comp;

	memset(in, 0, sizeof(in));
	cr_assert_eq(node_recv(node, &(struct message){.buf = in, .len = sizeof(in),
						       .ignore = UINT64_MAX,
						       .flags = VERVE_OP_TAGGED}),
		     0);
	nodes_settle();
	comp = expect_comp(&node->rx_queue);
	cr_expect_eq(comp.len, len);
	cr_expect_eq(comp.tag, tag);
	cr_expect(pattern_holds(in, len, 2));
}

void expect_nothing_waits(struct node *node)
{
	cr_expect(TAILQ_EMPTY(&node->proto.msg.match[1].unexpected), "a message came twice");
}

bool is_suspended(struct node *node, struct node *peer)
{
	return node_link(node, peer)->replay;
}
