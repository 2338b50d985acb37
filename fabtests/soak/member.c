/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * member: every operation has a slot, and must complete once, within -T seconds. Every message has
 * a number, which says who sent it, to whom, how long it is and what is in it, and must not come
 * twice. An error is right only where a mayfly is at one of the two ends, and only if it is one
 * that says so; with -o torn elsewhere, too, and then it is printed with the time.
 */
#include "soak/member.h"

#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "common/atomic.h"
#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/xfer.h"

#define SLOTS 8
#define SLOTS_MAYFLY (SLOTS / 2) /* at most: finding a dead one takes seconds */
#define LONGEST 300000
#define SLICE 32768 /* bytes of every region that belong to one slot of one member */
#define WORDS (SOAK_ALL * SLOTS * SLICE) /* where the words begin that members add to */
#define REGION (WORDS + SOAK_ALL * sizeof(uint64_t))
#define REGION_KEY 7
#define RECVS 12
#define POOLS 2 /* multi-receive buffers */
#define POOL_SIZE (2 * LONGEST)
#define SEEN 4096 /* numbers of one sender that are remembered */
#define BATCH 16
#define NAP_MS 20
#define SECOND 1000000000ull

enum kind { SLOT, RECV, POOL };

enum job { JOB_TAGGED, JOB_MESSAGE, JOB_WRITE, JOB_READ, JOB_ADD };

static const char *const job_names[] = { "a tagged message", "a message", "a write", "a read",
					 "an addition" };

/* What an operation's context points to. */
struct slot {
	enum kind kind;
	bool busy, posted;
	enum job job;
	unsigned to;
	uint64_t number; /* of the message; what is written */
	uint64_t since, before;
	size_t len;
	void *buf;
};

struct recv {
	enum kind kind;
	struct xfer xfer;
	unsigned arrived; /* messages in a pool's buffer */
};

/* Of one sender. */
struct seen {
	unsigned life;
	uint32_t last;
	uint64_t bits[SEEN / 64];
};

/* A word of the peer's that only we add to: what it may be. */
struct word {
	bool busy, known;
	uint64_t least, most;
};

struct member {
	struct env env;
	struct node node;
	struct soak_board *board;
	struct soak_entry *entry;
	unsigned self, members, life;
	uint64_t random;
	uint64_t die_at, operations;
	struct region region;
	fi_addr_t addrs[SOAK_ALL];
	uint32_t next[SOAK_ALL];
	struct seen seen[SOAK_ALL];
	struct word words[SOAK_ALL];
	struct slot slots[SLOTS];
	struct recv recvs[RECVS], pools[POOLS];
	uint64_t turn; /* when the last one was */
	bool torn;     /* connections may break */
};

static const int codes[SOAK_CODES - 1] = { FI_EHOSTUNREACH, FI_ENOTCONN, FI_ECONNREFUSED,
					   FI_ETIMEDOUT, FI_EIO, FI_EACCES };

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* From 0 to below. */
static unsigned draw(struct member *m, unsigned below)
{
	m->random = mix(m->random);
	return (unsigned)(m->random % below);
}

/* The number of a message: 8 bits from, 8 to, 16 which life of the sender, 32 of the pair. */

static uint64_t number_of(unsigned from, unsigned to, unsigned life, uint32_t n)
{
	return (uint64_t)from << 56 | (uint64_t)to << 48 | (uint64_t)(life & 0xffff) << 32 | n;
}

static unsigned from_of(uint64_t number)
{
	return (unsigned)(number >> 56);
}

static size_t length_of(uint64_t number)
{
	static const size_t lengths[] = { 8, 0, 40, 64, 65, 200, 1000, 1, 64, 4096, 8, 16000, 512,
					  30000, 70000, LONGEST };

	return lengths[mix(number) % (sizeof(lengths) / sizeof(*lengths))];
}

static bool is_acked(uint64_t number)
{
	return number & 1;
}

/* What is counted of messages like this one, with that member. */
static struct soak_count *messages_of(struct member *m, uint64_t number, unsigned other)
{
	struct soak_tally *tally = &m->entry->tally;

	return is_acked(number) ? &tally->acked[other] : &tally->plain[other];
}

static bool is_other(const struct member *m, unsigned number)
{
	return number < SOAK_ALL && number % SOAK_MEMBERS < m->members && number != m->self;
}

/* What comes in. */

static void post_recv(struct member *m, struct recv *recv)
{
	recv->arrived = 0;
	REQUIRE_RET(xfer_post(&m->node, &recv->xfer), 0);
}

static void post_recvs(struct member *m)
{
	size_t min = LONGEST;

	REQUIRE_RET(fi_setopt(&m->node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			      sizeof(min)), 0);
	for (unsigned i = 0; i < RECVS; i++) {
		struct recv *recv = &m->recvs[i];

		recv->kind = RECV;
		recv->xfer = (struct xfer){ .op = XFER_RECV, .tagged = true, .len = LONGEST,
					    .buf = pattern_alloc(LONGEST), .context = recv,
					    .addr = FI_ADDR_UNSPEC, .ignore = UINT64_MAX };
		post_recv(m, recv);
	}
	for (unsigned i = 0; i < POOLS; i++) {
		struct recv *pool = &m->pools[i];

		pool->kind = POOL;
		pool->xfer = (struct xfer){ .op = XFER_RECVMSG, .len = POOL_SIZE, .context = pool,
					    .buf = pattern_alloc(POOL_SIZE), .addr = FI_ADDR_UNSPEC,
					    .flags = FI_MULTI_RECV | FI_COMPLETION };
		post_recv(m, pool);
	}
}

/* Messages of one sender may complete in another order than they were sent, but none twice. */
static void see(struct member *m, uint64_t number)
{
	unsigned from = from_of(number), life = number >> 32 & 0xffff;
	struct seen *seen = &m->seen[from];
	uint32_t n = (uint32_t)number;

	/* The last ones of a mayfly that has been replaced. */
	if (life < seen->life)
		return;
	if (life > seen->life) {
		memset(seen, 0, sizeof(*seen));
		seen->life = life;
	}
	if (n + SEEN <= seen->last)
		check_fatal("message %u of member %u comes when %u was there", n, from, seen->last);
	for (; seen->last < n; seen->last++)
		seen->bits[(seen->last + 1) % SEEN / 64] &= ~(1ull << (seen->last + 1) % 64);
	if (seen->bits[n % SEEN / 64] & 1ull << n % 64)
		check_fatal("message %u of member %u, life %u, comes twice", n, from, life);
	seen->bits[n % SEEN / 64] |= 1ull << n % 64;
}

static void take_message(struct member *m, uint64_t number, const void *buf, size_t len)
{
	unsigned from = from_of(number);

	if (!is_other(m, from) || (number >> 48 & 0xff) != m->self)
		check_fatal("a message from member %u for %u came to %u", from,
			    (unsigned)(number >> 48 & 0xff), m->self);
	CHECK_EQ(len, length_of(number));
	pattern_check(buf, len, number);
	see(m, number);
	messages_of(m, number, from)->received++;
}

/* other: the member at the other end, or SOAK_ALL: it is not known. */
static void judge_error(struct member *m, const struct comp *comp, const char *what, unsigned other)
{
	unsigned code = 0;

	while (code < SOAK_CODES - 1 && codes[code] != comp->err)
		code++;
	m->entry->errors[code]++;
	/* Some devices refuse access to the memory of a process before its connections end. */
	if (code < SOAK_CODES - 1 && comp->err != FI_EIO && *comp->reason &&
	    (other == SOAK_ALL || soak_is_mayfly(other) || soak_is_mayfly(m->self)))
		return;
	if (code < SOAK_CODES - 1 && *comp->reason && m->torn) {
		printf("torn,%llu,%u,%u,%s,%s\n", (unsigned long long)(clock_now() / SECOND),
		       m->self, other, what, comp->reason);
		return;
	}
	check_fail("member %u: %s %s member %u: %s, prov_errno %d: \"%s\"", m->self, what,
		   other == SOAK_ALL ? "of some" : "with", other, fi_strerror(comp->err),
		   comp->prov_errno, comp->reason);
}

static void finish_recv(struct member *m, struct recv *recv, const struct comp *comp)
{
	bool pool = recv->kind == POOL;
	uint64_t number = pool ? comp->data : comp->tag;

	if (comp->err)
		judge_error(m, comp, "a receive", number ? from_of(number) : SOAK_ALL);
	else if (!pool || comp->flags & FI_REMOTE_CQ_DATA)
		take_message(m, number, pool ? comp->buf : recv->xfer.buf, comp->len);
	if (!pool || comp->flags & FI_MULTI_RECV)
		post_recv(m, recv);
}

/* What goes out. */

static uint64_t place_of(const struct member *m, const struct slot *slot)
{
	return (m->self * SLOTS + (size_t)(slot - m->slots)) * SLICE;
}

static ssize_t try_send(struct member *m, struct slot *slot)
{
	struct xfer send = { .tagged = slot->job == JOB_TAGGED, .buf = slot->buf, .len = slot->len,
			     .addr = m->addrs[slot->to], .tag = slot->number, .data = slot->number,
			     .context = slot };

	send.op = is_acked(slot->number) ? XFER_SENDMSG : send.tagged ? XFER_SEND : XFER_SENDDATA;
	send.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION | (send.tagged ? 0 : FI_REMOTE_CQ_DATA);
	return xfer_try(&m->node, &send);
}

static ssize_t try_access(struct member *m, struct slot *slot)
{
	struct rma rma = { .op = slot->job == JOB_WRITE ? RMA_WRITE : RMA_READ, .buf = slot->buf,
			   .len = slot->len, .addr = m->addrs[slot->to], .key = REGION_KEY,
			   .remote_addr = place_of(m, slot), .context = slot };

	return rma_try(&m->node, &rma);
}

static ssize_t try_add(struct member *m, struct slot *slot)
{
	static const uint64_t one = 1;
	struct atomic add = { .call = ATOMIC_FETCH, .datatype = FI_UINT64, .op = FI_SUM, .count = 1,
			      .buf = &one, .result = &slot->before, .addr = m->addrs[slot->to],
			      .key = REGION_KEY, .context = slot,
			      .remote_addr = WORDS + m->self * sizeof(uint64_t) };

	return atomic_try(&m->node, &add);
}

static void try_post(struct member *m, struct slot *slot)
{
	ssize_t ret;

	if (slot->job == JOB_ADD)
		ret = try_add(m, slot);
	else if (slot->job == JOB_WRITE || slot->job == JOB_READ)
		ret = try_access(m, slot);
	else
		ret = try_send(m, slot);
	if (ret == -FI_EAGAIN)
		return;
	REQUIRE_RET(ret, 0);
	slot->posted = true;
	slot->since = clock_now();
}

static void start(struct member *m, struct slot *slot, enum job job, unsigned to)
{
	slot->busy = true;
	slot->posted = false;
	slot->job = job;
	slot->to = to;
	slot->number = number_of(m->self, to, m->life, ++m->next[to]);
	slot->len = length_of(slot->number);
	slot->since = clock_now();
	if (job == JOB_WRITE && slot->len > SLICE)
		slot->len = SLICE;
	if (job == JOB_ADD)
		m->words[to].busy = true;
	else
		pattern_fill(slot->buf, slot->len, slot->number);
	try_post(m, slot);
}

static unsigned choose_peer(struct member *m)
{
	unsigned used = 0, to;

	for (unsigned i = 0; i < SLOTS; i++)
		used += m->slots[i].busy && soak_is_mayfly(m->slots[i].to);
	do {
		to = draw(m, 2) * SOAK_MEMBERS + draw(m, m->members);
	} while (!is_other(m, to));
	return soak_is_mayfly(to) && used >= SLOTS_MAYFLY ? to - 1 : to;
}

static void start_any(struct member *m, struct slot *slot)
{
	unsigned lot = draw(m, 100), to = choose_peer(m);

	if (to == m->self)
		return;
	if (lot < 20 && !m->words[to].busy)
		start(m, slot, JOB_ADD, to);
	else if (lot < 45)
		start(m, slot, JOB_WRITE, to);
	else
		start(m, slot, lot < 75 ? JOB_TAGGED : JOB_MESSAGE, to);
}

/* What we wrote is what we read; a mayfly may have begun a new life in between. */
static void check_read(const struct slot *slot)
{
	const uint8_t *at = slot->buf;
	size_t i = 0;

	if (pattern_holds(slot->buf, slot->len, slot->number))
		return;
	while (soak_is_mayfly(slot->to) && i < slot->len && at[i] == PATTERN_EMPTY)
		i++;
	if (i < slot->len)
		pattern_check(slot->buf, slot->len, slot->number);
}

/* Each addition that was reported was executed once; those that failed, at most once. */
static void check_added(struct word *word, const struct slot *slot)
{
	if (word->known && !soak_is_mayfly(slot->to) &&
	    (slot->before < word->least || slot->before > word->most))
		check_fail("a word of member %u was %llu, and not from %llu to %llu", slot->to,
			   (unsigned long long)slot->before, (unsigned long long)word->least,
			   (unsigned long long)word->most);
	word->known = true;
	word->least = word->most = slot->before + 1;
}

static void end_slot(struct member *m, struct slot *slot)
{
	slot->busy = false;
	m->entry->operations++;
	m->operations++;
	if (m->env.opts.iterations && m->operations >= m->env.opts.iterations)
		m->entry->enough = true;
}

static void fail_slot(struct member *m, struct slot *slot, const struct comp *comp)
{
	judge_error(m, comp, job_names[slot->job], slot->to);
	if (slot->job == JOB_ADD)
		m->words[slot->to].most++;
	else if (slot->job == JOB_TAGGED || slot->job == JOB_MESSAGE)
		messages_of(m, slot->number, slot->to)->failed++;
}

static void finish_slot(struct member *m, struct slot *slot, const struct comp *comp)
{
	if (!slot->busy || !slot->posted)
		check_fatal("member %u: an operation with member %u has completed twice", m->self,
			    slot->to);
	slot->posted = false;
	if (slot->job == JOB_ADD)
		m->words[slot->to].busy = false;
	if (comp->err) {
		fail_slot(m, slot, comp);
	} else if (slot->job == JOB_WRITE) {
		memset(slot->buf, PATTERN_EMPTY ^ 0xff, slot->len);
		slot->job = JOB_READ;
		try_post(m, slot);
		return;
	} else if (slot->job == JOB_READ) {
		check_read(slot);
	} else if (slot->job == JOB_ADD) {
		check_added(&m->words[slot->to], slot);
	} else {
		messages_of(m, slot->number, slot->to)->sent++;
	}
	end_slot(m, slot);
}

/* Both. */

static bool read_some(struct member *m, bool wait)
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
		if (*(enum kind *)comp.context == SLOT)
			finish_slot(m, comp.context, &comp);
		else
			finish_recv(m, comp.context, &comp);
	}
	return n;
}

static unsigned busy_slots(const struct member *m)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		busy += m->slots[i].busy;
	return busy;
}

/* Nothing was lost if we stood still ourselves. */
static void check_time(struct member *m)
{
	uint64_t now = clock_now(), gap = now - m->turn;

	m->turn = now;
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *slot = &m->slots[i];

		if (gap > SECOND)
			slot->since += gap;
		if (slot->busy && now > slot->since + m->env.opts.timeout * SECOND)
			check_fatal("member %u: %s with member %u, %zu bytes, has no completion "
				    "after %u s", m->self, job_names[slot->job], slot->to,
				    slot->len, m->env.opts.timeout);
	}
}

/* One turn: begin, look, and now and then die. */
static void turn(struct member *m, bool begin)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (m->slots[i].busy && !m->slots[i].posted)
			try_post(m, &m->slots[i]);
		else if (!m->slots[i].busy && begin)
			start_any(m, &m->slots[i]);
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

static void run(struct member *m)
{
	uint64_t measured = 0;

	while (m->board->phase == SOAK_RUN) {
		turn(m, true);
		if (m->turn - measured > SECOND) {
			struct mallinfo2 info = mallinfo2();

			measured = m->turn;
			m->entry->heap = (long)(info.uordblks + info.hblkhd);
		}
	}
}

/* Messages before it on the same way have arrived when the last has, which asks for that. */
static void start_last(struct member *m, struct slot *slot, enum job job, unsigned to)
{
	m->next[to] += m->next[to] & 1;
	start(m, slot, job, to);
	while (busy_slots(m))
		turn(m, false);
}

static void send_last(struct member *m)
{
	for (unsigned to = 0; to < SOAK_ALL; to++) {
		if (!is_other(m, to) || soak_is_mayfly(to))
			continue;
		start_last(m, &m->slots[0], JOB_TAGGED, to);
		start_last(m, &m->slots[0], JOB_MESSAGE, to);
	}
}

static void reach(struct member *m, int phase)
{
	m->entry->reached = phase;
}

static void await(struct member *m, int phase)
{
	while (m->board->phase < phase)
		turn(m, false);
}

static void part(struct member *m)
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

static char *name_of(struct member *m, unsigned number)
{
	return m->board->names[number / SOAK_MEMBERS][number % SOAK_MEMBERS];
}

static void open_endpoint(struct member *m)
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
		node_port(name, port);
		attr.src_port = port;
	}
	node_open(&m->node, &m->env, &attr);
	m->node.next_key = REGION_KEY - 1;
	node_enable(&m->node);
	region_open(&m->node, &m->region, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE);
	memset((char *)m->region.buf + WORDS, 0, REGION - WORDS);
	post_recvs(m);
	if (!m->life)
		node_name(&m->node, name);
}

static void meet(struct member *m)
{
	open_endpoint(m);
	for (unsigned i = 0; i < SLOTS; i++) {
		m->slots[i].kind = SLOT;
		m->slots[i].buf = pattern_alloc(LONGEST);
	}
	m->turn = clock_now();
	reach(m, SOAK_MEET + 1);
	await(m, SOAK_RUN);
	for (unsigned i = 0; i < SOAK_ALL; i++)
		if (is_other(m, i))
			m->addrs[i] = node_insert(&m->node, name_of(m, i));
	m->turn = clock_now();
}

static void close_endpoint(struct member *m)
{
	node_close_ep(&m->node);
	for (unsigned i = 0; i < SLOTS; i++)
		pattern_free(m->slots[i].buf);
	for (unsigned i = 0; i < RECVS; i++)
		pattern_free(m->recvs[i].xfer.buf);
	for (unsigned i = 0; i < POOLS; i++)
		pattern_free(m->pools[i].xfer.buf);
	region_close(&m->region);
	node_close(&m->node);
}

int soak_member_run(const struct opts *opts, struct soak_board *board, unsigned half,
		    unsigned index, unsigned members)
{
	static struct member m;

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
		m.die_at = 200 + draw(&m, 1000);
	meet(&m);
	run(&m);
	part(&m);
	close_endpoint(&m);
	return check_failed() ? CHECK_FAIL : CHECK_PASS;
}
