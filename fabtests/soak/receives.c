/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receives: messages that come in. Every message must be whole, and none may come twice. */
#include <string.h>

#include <rdma/fi_endpoint.h>

#include "common/check.h"
#include "common/pattern.h"
#include "soak/state.h"

enum { POOL_SIZE = 2 * SOAK_LONGEST };

static void post_recv(struct soak_member *m, struct soak_recv *recv)
{
	REQUIRE_RET(xfer_post(&m->node, &recv->xfer), 0);
}

void soak_post_recvs(struct soak_member *m)
{
	size_t min = SOAK_LONGEST;

	REQUIRE_RET(fi_setopt(&m->node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			      sizeof(min)), 0);
	for (unsigned i = 0; i < SOAK_RECVS; i++) {
		struct soak_recv *recv = &m->recvs[i];

		recv->kind = SOAK_RECV;
		recv->xfer = (struct xfer){ .op = XFER_RECV, .tagged = true, .len = SOAK_LONGEST,
					    .buf = pattern_alloc(SOAK_LONGEST), .context = recv,
					    .addr = FI_ADDR_UNSPEC, .ignore = UINT64_MAX };
		post_recv(m, recv);
	}
	for (unsigned i = 0; i < SOAK_POOLS; i++) {
		struct soak_recv *pool = &m->pools[i];

		pool->kind = SOAK_POOL;
		pool->xfer = (struct xfer){ .op = XFER_RECVMSG, .len = POOL_SIZE, .context = pool,
					    .buf = pattern_alloc(POOL_SIZE), .addr = FI_ADDR_UNSPEC,
					    .flags = FI_MULTI_RECV | FI_COMPLETION };
		post_recv(m, pool);
	}
}

/* Messages of one sender may complete in another order than they were sent, but none twice. */
static void see(struct soak_member *m, uint64_t number)
{
	unsigned from = soak_number_from(number), life = number >> 32 & 0xffff;
	struct soak_seen *seen = &m->seen[from];
	uint32_t n = (uint32_t)number;

	/* The last ones of a mayfly that has been replaced. */
	if (life < seen->life)
		return;
	if (life > seen->life) {
		memset(seen, 0, sizeof(*seen));
		seen->life = life;
	}
	if (n + SOAK_SEEN <= seen->last)
		check_fatal("message %u of member %u comes when %u was there", n, from, seen->last);
	for (; seen->last < n; seen->last++)
		seen->bits[(seen->last + 1) % SOAK_SEEN / 64] &= ~(1ull << (seen->last + 1) % 64);
	if (seen->bits[n % SOAK_SEEN / 64] & 1ull << n % 64)
		check_fatal("message %u of member %u, life %u, comes twice", n, from, life);
	seen->bits[n % SOAK_SEEN / 64] |= 1ull << n % 64;
}

static void take_message(struct soak_member *m, uint64_t number, const void *buf, size_t len)
{
	unsigned from = soak_number_from(number);

	if (!soak_is_other(m, from) || (number >> 48 & 0xff) != m->self)
		check_fatal("a message from member %u for %u came to %u", from,
			    (unsigned)(number >> 48 & 0xff), m->self);
	CHECK_EQ(len, soak_number_len(number));
	pattern_check(buf, len, number);
	see(m, number);
	soak_count_of(m, number, from)->received++;
}

void soak_finish_recv(struct soak_member *m, struct soak_recv *recv, const struct comp *comp)
{
	bool pool = recv->kind == SOAK_POOL;
	uint64_t number = pool ? comp->data : comp->tag;

	if (comp->err)
		soak_judge_error(m, comp, "a receive",
				 number ? soak_number_from(number) : SOAK_ALL);
	else if (!pool || comp->flags & FI_REMOTE_CQ_DATA)
		take_message(m, number, pool ? comp->buf : recv->xfer.buf, comp->len);
	if (!pool || comp->flags & FI_MULTI_RECV)
		post_recv(m, recv);
}
