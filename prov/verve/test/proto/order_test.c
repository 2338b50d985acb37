/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tries every order of events between two transports that are out of everything: queue entries,
 * credits, slabs, receive buffers, and memory to register. Two applications send each other a few
 * messages, again and again. In each state the test tries every next step: which side polls, which
 * side posts, and which packet, response or completion comes next. A digest tells states apart, so
 * their number is finite. From each state the messages must still be able to complete.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "fixture.h"
#include "msg/recv.h"
#include "msg/recv_op.h"
#include "msg/send_op.h"
#include "msg/unexpected.h"
#include "xport/dispatch.h"
#include "xport/link.h"
#include "xport/post.h"
#include "xport/transfer.h"

enum { ROOM = 3 * NODE_EAGER, MESSAGES = 4, WAY_MAX = 1000 };
enum { PAGE = 4096, STAGED = 2 * PAGE }; /* bytes of a message that is registered in two stages */

/* The messages that each application sends in one round, in order. */
struct scene {
	struct {
		size_t lens[MESSAGES];
		uint32_t count;
	} from[2];
	uint32_t flags;
	bool poor; /* no memory can be registered any more */
	bool staged; /* both sides register memory in stages */
	bool parts;  /* the first side does */
	bool halves; /* messages of NODE_EAGER - 1 weigh half a credit */
};

struct side {
	struct node node;
	uint32_t index;
	struct side *other;
	_Alignas(PAGE) char out[STAGED], in[MESSAGES][STAGED];
	uint32_t sent, posted, completed, received; /* numbers in this round */
};

enum {
	POLL,
	RECV,
	LEG,
	ACTIONS_A_SIDE = LEG + FAKE_NET_LEGS,
	NEXT_ROUND = 2 * ACTIONS_A_SIDE,
	ACTIONS
};

struct state {
	UT_hash_handle hh;
	uint64_t digest;
	uint32_t index;
	bool complete; /* the round is complete, or a later state of it is */
	/* to: next state by action; from: previous state in a search */
	struct state *to[ACTIONS], *from;
	uint32_t action;
	uint32_t search;
};

static struct side sides[2];
static const struct scene *scene;
static struct state *states; /* all states, by digest (uthash) */
static struct state **all;
static uint32_t count, untried, searches, diverged;

/* The digest: everything that the transport's next steps depend on. */

static uint64_t mix(uint64_t digest, uint64_t value)
{
	digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
	return digest ^ digest >> 29;
}

/* Adds the part of an operation that decides how the operation goes on. */
static uint64_t digest_op(struct verve_op *op, uint64_t digest)
{
	digest = mix(digest,
		     (uint64_t)op->cls->name[0] << 48 | (uint64_t)op->state << 32 | op->flags);
	digest = mix(digest, op->len);
	if (op->cls->memory_at) {
		const struct verve_memory *memory = verve_op_memory(op);

		digest = mix(digest, (uint64_t)memory->owned << 32 | memory->iov_count << 1 |
				     !memory->slab);
	}
	if (op->cls->move_at && op->state != VERVE_OP_POSTED) {
		const struct verve_transfer *transfer = verve_op_transfer(op);

		digest = mix(digest, (uint64_t)transfer->remote_count << 32 | transfer->offset);
		digest = mix(digest, transfer->unoffered);
	}
	if (verve_op_is_send(op)) {
		digest = mix(digest, verve_send_op_of(op)->pulled);
		digest = mix(digest, verve_send_op_of(op)->parts ? 2 : 1);
	}
	if (op->cls->is_receive && op->state != VERVE_OP_POSTED)
		digest = mix(digest, 1 + verve_recv_op_of(op)->stopped);
	return digest;
}

static uint64_t digest_ops(const struct verve_op_queue *queue, uint64_t digest)
{
	struct verve_op *op;

	TAILQ_FOREACH(op, queue, link)
		digest = digest_op(op, digest);
	return mix(digest, 1);
}

static uint64_t digest_link(const struct verve_link *link, uint64_t digest)
{
	digest = mix(digest, link->produced - link->retired);
	digest = mix(digest, link->signaled - link->retired);
	digest = mix(digest, (uint64_t)link->credits << 32 | link->owed);
	digest = mix(digest, (uint64_t)link->held << 32 | link->may_send);
	digest = mix(digest, link->weight_sent % VERVE_WIRE_WEIGHT << 32 |
			     link->weight_arrived % VERVE_WIRE_WEIGHT);
	digest = mix(digest, link->weight_kept);
	digest = mix(digest, (uint64_t)link->parts.room << 32 | link->parts.count << 1 |
			     !link->parts.recv);
	for (uint32_t i = link->retired; i != link->produced; i++) {
		const struct verve_slot *slot = verve_link_slot((struct verve_link *)link, i);

		digest = mix(digest, (uint64_t)slot->length << 32 | slot->kind << 1 | slot->tell);
	}
	return digest;
}

static uint64_t digest_match(const struct verve_match *match, uint64_t digest)
{
	const struct verve_match_msg *msg;

	TAILQ_FOREACH(msg, &match->unexpected, order) {
		const struct verve_unexpected *message =
			verve_unexpected_of((struct verve_match_msg *)msg);

		digest = mix(digest, message->packet.len << 8 | message->packet.type);
	}
	return mix(digest, match->posted_count);
}

static uint64_t digest_side(const struct side *side, uint64_t digest)
{
	const struct verve_xport *xport = side->node.xport;
	const struct verve_peer *peer = node_peer((struct node *)&side->node, &side->other->node);

	digest = digest_link(peer->link, digest);
	digest = digest_ops(&peer->pending, digest);
	digest = digest_ops(&peer->reads, digest);
	digest = digest_ops(&peer->control, digest);
	digest = digest_ops(&peer->active, digest);
	digest = digest_match(&side->node.proto.msg.match[0], digest);
	digest = mix(digest, (uint64_t)xport->wr_used << 32 | xport->rx_free_count);
	digest = mix(digest, (uint64_t)xport->tx_slabs.used << 32 | peer->is_waiting);
	digest = mix(digest, (uint64_t)side->sent << 32 | side->posted);
	return mix(digest, (uint64_t)side->completed << 32 | side->received);
}

static uint64_t digest_all(void)
{
	uint64_t digest = digest_side(&sides[1], digest_side(&sides[0], 0));

	return mix(mix(digest, fake_net_digest(0)), fake_net_digest(1));
}

/* The two applications. */

/* The round is complete, and nothing is under way any more. */
static bool is_complete(void)
{
	if (fake_net_next() != UINT64_MAX)
		return false;
	for (int i = 0; i < 2; i++)
		if (sides[i].completed < scene->from[i].count ||
		    sides[i].received < scene->from[!i].count)
			return false;
	return true;
}

static void poll_side(struct side *side)
{
	verve_proto_poll(&side->node.proto);
	/*
	 * The transport gives receive buffers back in batches. Here there are fewer than a batch.
	 */
	verve_dispatch_refill(side->node.xport);
	while (!verve_comp_queue_is_empty(&side->node.tx_queue)) {
		expect_comp(&side->node.tx_queue);
		side->completed++;
	}
	while (!verve_comp_queue_is_empty(&side->node.rx_queue)) {
		struct verve_comp comp = expect_comp(&side->node.rx_queue);

		uint32_t i = (uint32_t)(uintptr_t)comp.context - 1;

		cr_assert_eq(comp.len, scene->from[!side->index].lens[i]);
		cr_assert(pattern_holds(side->in[i], comp.len, 1));
		side->received++;
	}
}

static void send_next(struct side *side)
{
	uint32_t i = side->sent;
	struct message message = {.peer = &side->other->node, .buf = side->out,
				  .len = scene->from[side->index].lens[i], .flags = scene->flags};

	cr_assert_eq(node_send(&side->node, &message), 0);
	side->sent++;
}

static void post_next(struct side *side)
{
	uint32_t i = side->posted++;

	cr_assert_eq(node_recv(&side->node, &(struct message){.peer = &side->other->node,
							      .buf = side->in[i], .len = STAGED,
							      .context = (void *)(i + 1ul)}),
		     0);
}

static void begin_round(void)
{
	for (int i = 0; i < 2; i++) {
		struct side *side = &sides[i];

		side->sent = side->posted = side->completed = side->received = 0;
		while (side->sent < scene->from[i].count)
			send_next(side);
	}
}

static void act(uint32_t action)
{
	struct side *side = &sides[action / ACTIONS_A_SIDE % 2];
	uint32_t what = action % ACTIONS_A_SIDE;

	if (action == NEXT_ROUND) {
		if (is_complete())
			begin_round();
	} else if (what == POLL) {
		poll_side(side);
	} else if (what == RECV) {
		if (side->posted < scene->from[!side->index].count)
			post_next(side);
	} else {
		fake_net_run_leg(side->index, what - LEG);
	}
}

/* Leaves each transport as little of everything as possible. */
static void make_scarce(struct verve_xport *xport)
{
	xport->wr_limit = xport->link_count + VERVE_LINK_RESERVE + 2;
	xport->tx_slabs.limit = xport->tx_slabs.count;
}

static void open_sides(void)
{
	struct fake_net_config config;
	struct verve_xport_attr attr;

	fake_net_config_default(&config);
	config.rc_delay_min = config.rc_delay_max = 1000;
	fake_net_start(&config);
	node_attr(&attr);
	attr.rx_uncredited = 2;
	attr.window = 1;
	if (scene->halves)
		attr.eager_size = 2 * NODE_EAGER;
	attr.keepalive = UINT64_MAX;
	for (int i = 0; i < 2; i++) {
		memset(&sides[i], 0, sizeof(sides[i]));
		sides[i].index = i;
		sides[i].other = &sides[!i];
		pattern_fill(sides[i].out, STAGED, 1);
		node_open(&sides[i].node, i, &attr);
		if (scene->staged || (scene->parts && !i))
			sides[i].node.mr_cache.crossover.stage = PAGE;
	}
	node_join(&sides[0].node, &sides[1].node, 1);
	for (int i = 0; i < 2; i++)
		make_scarce(sides[i].node.xport);
	if (scene->poor)
		fake_net_memlock(0);
	begin_round();
}

static void close_sides(void)
{
	fake_net_memlock(UINT64_MAX);
	for (int i = 0; i < 2; i++)
		node_close(&sides[i].node);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

/* The graph of states. */

static struct state *here(void)
{
	uint64_t digest = digest_all();
	struct state *state;

	HASH_FIND(hh, states, &digest, sizeof(digest), state);
	if (state)
		return state;
	state = calloc(1, sizeof(*state));
	if (!(count & (count - 1)))
		all = realloc(all, (count ? 2 * count : 1) * sizeof(*all));
	cr_assert(state && all);
	state->digest = digest;
	state->index = count;
	state->complete = is_complete();
	all[count++] = state;
	untried += ACTIONS;
	HASH_ADD(hh, states, digest, sizeof(digest), state);
	return state;
}

static struct state *step(struct state *state, uint32_t action)
{
	struct state *next;

	act(action);
	next = here();
	untried -= !state->to[action];
	diverged += state->to[action] && state->to[action] != next;
	state->to[action] = next;
	return next;
}

/*
 * Goes a shortest way to a state with an untried action, and tries this action. False: every action
 * of every state was tried.
 */
static bool go_on(struct state *start)
{
	static struct state **queue;
	static uint32_t way[WAY_MAX];
	uint32_t head = 0, tail = 0, steps = 0;

	queue = realloc(queue, count * sizeof(*queue));
	cr_assert(queue);
	start->search = ++searches;
	start->from = NULL;
	queue[tail++] = start;
	while (head < tail && !steps) {
		struct state *state = queue[head++];

		for (uint32_t i = 0; i < ACTIONS && !steps; i++) {
			struct state *next = state->to[i];

			if (!next) {
				for (way[steps++] = i; state->from; state = state->from) {
					cr_assert_lt(steps, WAY_MAX);
					way[steps++] = state->action;
				}
			} else if (next->search != searches) {
				next->search = searches;
				next->from = state;
				next->action = i;
				queue[tail++] = next;
			}
		}
	}
	for (uint32_t i = steps; i-- > 0;)
		start = step(start, way[i]);
	return steps;
}

/* Counts the states from which the round cannot complete. Marks the others as complete. */
static uint32_t count_stuck(void)
{
	uint32_t stuck = 0;
	bool more = true;

	while (more) {
		more = false;
		stuck = 0;
		for (uint32_t i = count; i-- > 0;) {
			for (uint32_t j = 0; j < ACTIONS && !all[i]->complete; j++)
				if (all[i]->to[j]->complete)
					all[i]->complete = more = true;
			stuck += !all[i]->complete;
		}
	}
	return stuck;
}

static void try_all(const struct scene *wanted)
{
	scene = wanted;
	do {
		open_sides();
		while (go_on(here()))
			;
		close_sides();
	} while (untried);
	fprintf(stderr, "order_test: %u states\n", count);
	cr_expect_gt(count, 150, "so few states are not all");
	cr_expect_eq(diverged, 0, "%u steps went elsewhere the next time", diverged);
	cr_expect_eq(count_stuck(), 0);
}

/* One message uses the only credit, so the second message is offered. */
Test(order, credits)
{
	try_all(&(struct scene){.from = {{{NODE_EAGER, NODE_EAGER}, 2}, {{0}, 0}}});
}

/* The first two messages use the only credit. */
Test(order, halves_of_a_credit)
{
	enum { HALF = NODE_EAGER - 1 };

	try_all(&(struct scene){.from = {{{HALF, HALF, HALF}, 3}, {{0}, 0}}, .halves = true});
}

Test(order, both_ways)
{
	try_all(&(struct scene){.from = {{{NODE_EAGER}, 1}, {{NODE_EAGER}, 1}}});
}

Test(order, offers)
{
	try_all(&(struct scene){.from = {{{ROOM}, 1}, {{ROOM}, 1}}});
}

Test(order, staged)
{
	try_all(&(struct scene){.from = {{{STAGED}, 1}, {{0}, 0}}, .staged = true});
}

/* Both sides are short of everything, too, but a long message each way has 15,000 states. */
Test(order, staged_beside_an_eager_one)
{
	try_all(&(struct scene){.from = {{{STAGED}, 1}, {{NODE_EAGER}, 1}}, .staged = true});
}

/* The first side offers in parts, and reads in stages what it is offered as a whole. */
Test(order, parts_both_ways)
{
	try_all(&(struct scene){.from = {{{STAGED}, 1}, {{STAGED}, 1}}, .parts = true});
}

Test(order, pulled)
{
	try_all(&(struct scene){.from = {{{ROOM}, 1}, {{0}, 0}}, .poor = true});
}

Test(order, pulled_both_ways)
{
	try_all(&(struct scene){.from = {{{NODE_EAGER + 1}, 1}, {{NODE_EAGER + 1}, 1}},
				.poor = true});
}

Test(order, acknowledged)
{
	try_all(&(struct scene){.from = {{{NODE_EAGER}, 1}, {{0}, 0}}, .flags = VERVE_OP_ACK});
}
