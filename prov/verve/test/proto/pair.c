/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two nodes: opening and closing them, a message from the one to the other. */
#include "pair.h"

struct node a, b;
static void *from, *to;

void pair_open_apart(void *out, void *in, size_t len)
{
	node_open(&a, 0, NULL);
	node_open(&b, 1, NULL);
	from = out;
	to = in;
	pattern_fill(out, len, 1);
}

void pair_open(void *out, void *in, size_t len)
{
	pair_open_apart(out, in, len);
	node_join(&a, &b, NODE_WINDOW);
}

void pair_close(void)
{
	fake_net_memlock(UINT64_MAX);
	node_close(&a);
	node_close(&b);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

void pair_send(size_t len, uint32_t flags, void *context)
{
	cr_assert_eq(node_send(&a, &(struct message){.peer = &b, .buf = from, .len = len,
						     .context = context, .flags = flags}),
		     0);
}

void pair_recv(size_t len, uint32_t flags, void *context)
{
	cr_assert_eq(node_recv(&b, &(struct message){.buf = to, .len = len, .context = context,
						     .flags = flags}),
		     0);
}
