/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* member: the life of one process of the soak. Every operation must complete within -T seconds. */
#include "soak/member.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/pattern.h"
#include "common/usage.h"
#include "soak/state.h"

enum { BATCH = 16, NAP_MS = 20 };

static const uint64_t second = 1000000000; /* ns */

static bool read_some(struct soak_member *m, bool wait)
{
	struct comp comp;
	unsigned n = 0;

	while (n < BATCH) {
		if (!(wait && !n ? comp_nap(&m->node, m->node.txcq, NAP_MS, &comp) :
				   comp_read(&m->node, m->node.txcq, &comp)))
			break;
		n++;
		if (!comp.context)
			check_fatal("member %u: a completion of nothing", m->self);
		if (*(enum soak_kind *)comp.context == SOAK_SLOT)
			soak_finish_slot(m, comp.context, &comp);
		else
			soak_finish_recv(m, comp.context, &comp);
	}
	return n;
}

static unsigned busy_slots(const struct soak_member *m)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < SOAK_SLOTS; i++)
		busy += m->slots[i].busy;
	return busy;
}

/* A process that stood still itself did not lose an operation. */
static void check_time(struct soak_member *m)
{
	uint64_t now = clock_now(), gap = now - m->turn;

	m->turn = now;
	for (unsigned i = 0; i < SOAK_SLOTS; i++) {
		struct soak_slot *slot = &m->slots[i];

		if (gap > second)
			slot->since += gap;
		if (slot->busy && now > slot->since + m->env.opts.timeout * second)
			check_fatal("member %u: %s with member %u, %zu bytes, has no completion "
				    "after %u s", m->self, soak_job_names[slot->job], slot->to,
				    slot->len, m->env.opts.timeout);
	}
}

/* One turn: start operations, read completions, and now and then die. */
static void turn(struct soak_member *m, bool begin)
{
	for (unsigned i = 0; i < SOAK_SLOTS; i++) {
		if (m->slots[i].busy && !m->slots[i].posted)
			soak_try_post(m, &m->slots[i]);
		else if (!m->slots[i].busy && begin)
			soak_start_any(m, &m->slots[i]);
	}
	if (begin && m->die_at && m->operations >= m->die_at)
		raise(SIGKILL);
	if (!read_some(m, false)) {
		if (m->env.opts.method == OPTS_SREAD)
			read_some(m, true);
		else
			sched_yield();
	}
	check_time(m);
}

static void run(struct soak_member *m)
{
	uint64_t measured = 0;

	while (m->board->phase == SOAK_RUN) {
		turn(m, true);
		if (m->turn - measured > second) {
			measured = m->turn;
			m->entry->heap = usage_heap();
		}
	}
}

/* Messages before it on the same way have arrived when the last has, which asks for that. */
static void start_last(struct soak_member *m, struct soak_slot *slot, enum soak_job job,
		       unsigned to)
{
	m->next[to] += m->next[to] & 1;
	soak_start(m, slot, job, to);
	while (busy_slots(m))
		turn(m, false);
}

static void send_last(struct soak_member *m)
{
	for (unsigned to = 0; to < SOAK_ALL; to++) {
		if (!soak_is_other(m, to) || soak_is_mayfly(to))
			continue;
		start_last(m, &m->slots[0], SOAK_TAGGED, to);
		start_last(m, &m->slots[0], SOAK_MESSAGE, to);
	}
}

static void reach(struct soak_member *m, int phase)
{
	m->entry->reached = phase;
}

static void await(struct soak_member *m, int phase)
{
	while (m->board->phase < phase)
		turn(m, false);
}

static void part(struct soak_member *m)
{
	while (busy_slots(m))
		turn(m, false);
	if (soak_is_mayfly(m->self))
		return;
	reach(m, SOAK_PART);
	await(m, SOAK_DRAIN);
	send_last(m);
	reach(m, SOAK_DRAIN);
	await(m, SOAK_END);
	while (read_some(m, false))
		;
}

static char *name_of(struct soak_member *m, unsigned number)
{
	return m->board->names[number / SOAK_MEMBERS][number % SOAK_MEMBERS];
}

static void open_endpoint(struct soak_member *m)
{
	struct node_attr attr = { .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV,
				  .msg_order = FI_ORDER_SAS, .one_cq = true, .app_keys = true,
				  .by_offset = true };
	char *name = name_of(m, m->self);
	uint64_t end = env_deadline(&m->env);
	char port[NODE_PORT_MAX];

	if (m->life) {
		/* The device's port may be down. */
		while (m->torn && !node_offered(&m->env, attr.caps) && clock_now() < end)
			sched_yield();
		attr.src_port = node_port(name, port);
	}
	node_open(&m->node, &m->env, &attr);
	m->node.next_key = SOAK_REGION_KEY - 1;
	node_enable(&m->node);
	region_open(&m->node, &m->region, SOAK_REGION, FI_REMOTE_READ | FI_REMOTE_WRITE);
	memset((char *)m->region.buf + SOAK_WORDS, 0, SOAK_REGION - SOAK_WORDS);
	soak_post_recvs(m);
	if (!m->life)
		node_name(&m->node, name);
}

static void meet(struct soak_member *m)
{
	open_endpoint(m);
	for (unsigned i = 0; i < SOAK_SLOTS; i++) {
		m->slots[i].kind = SOAK_SLOT;
		m->slots[i].buf = pattern_alloc(SOAK_LONGEST);
	}
	m->turn = clock_now();
	reach(m, SOAK_MEET + 1);
	await(m, SOAK_RUN);
	for (unsigned i = 0; i < SOAK_ALL; i++)
		if (soak_is_other(m, i))
			m->addrs[i] = node_insert(&m->node, name_of(m, i));
	m->turn = clock_now();
}

static void close_endpoint(struct soak_member *m)
{
	node_close_ep(&m->node);
	for (unsigned i = 0; i < SOAK_SLOTS; i++)
		pattern_free(m->slots[i].buf);
	for (unsigned i = 0; i < SOAK_RECVS; i++)
		pattern_free(m->recvs[i].xfer.buf);
	for (unsigned i = 0; i < SOAK_POOLS; i++)
		pattern_free(m->pools[i].xfer.buf);
	region_close(&m->region);
	node_close(&m->node);
}

int soak_member_run(const struct opts *opts, struct soak_board *board, unsigned half,
		    unsigned index, unsigned members)
{
	static struct soak_member m;

	m.env.opts = *opts;
	m.env.oob.fd = -1;
	LIST_INIT(&m.env.members);
	m.board = board;
	m.entry = &board->entries[index];
	m.self = half * SOAK_MEMBERS + index;
	m.members = members;
	m.life = m.entry->life;
	m.torn = opts->op && opts_selects(opts, "torn");
	m.random = (uint64_t)m.self << 32 | m.life;
	if (soak_is_mayfly(m.self))
		m.die_at = 200 + soak_draw(&m, 1000);
	meet(&m);
	run(&m);
	part(&m);
	close_endpoint(&m);
	return check_failed() ? CHECK_FAIL : CHECK_PASS;
}
