/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two nodes, a and b, that are not joined: a sends, b receives. */
#include "peer_fixture.h"

struct node a, b;
char out[ROOM], in[ROOM];

static void setup(void)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	pattern_fill(out, sizeof(out), 1);
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(peer, .init = setup, .fini = teardown);

void send_len(size_t len)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = out, .len = len,
						     .context = out}),
		     0);
}

void recv_any(void)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = in, .len = ROOM, .context = in}), 0);
}
