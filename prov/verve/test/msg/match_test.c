/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching, compared with a simple model: two lists that are walked through. Millions of seeded
 * random steps; every allocation fails once. match_cost_test.c counts comparisons.
 */
#include "msg/match.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "../support/oom.h"

struct recv {
	struct verve_match_recv match;
	TAILQ_ENTRY(recv) link;
};

struct msg {
	struct verve_match_msg match;
	TAILQ_ENTRY(msg) link;
};

struct model {
	struct verve_match match;
	TAILQ_HEAD(, recv) recvs;
	TAILQ_HEAD(, msg) msgs;
	size_t recv_count, msg_count;
	uint64_t seed;
};

static void model_init(struct model *model, uint64_t seed)
{
	*model = (struct model){.seed = seed * 2 + 1};
	cr_assert_eq(verve_match_init(&model->match), 0);
	TAILQ_INIT(&model->recvs);
	TAILQ_INIT(&model->msgs);
}

static void model_fini(struct model *model)
{
	struct recv *recv;
	struct msg *msg;

	while ((recv = TAILQ_FIRST(&model->recvs))) {
		TAILQ_REMOVE(&model->recvs, recv, link);
		free(recv);
	}
	while ((msg = TAILQ_FIRST(&model->msgs))) {
		TAILQ_REMOVE(&model->msgs, msg, link);
		free(msg);
	}
	verve_match_fini(&model->match);
}

static uint32_t draw(struct model *model, uint32_t below)
{
	model->seed = model->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((model->seed >> 33) % below);
}

static bool takes(uint32_t source, uint64_t tag, uint64_t ignore, uint32_t msg_source,
		  uint64_t msg_tag)
{
	return (source == VERVE_MATCH_ANY || source == msg_source) && !((tag ^ msg_tag) & ~ignore);
}

static struct recv *model_arrive(struct model *model, uint32_t source, uint64_t tag)
{
	struct recv *recv;

	TAILQ_FOREACH(recv, &model->recvs, link)
		if (takes(recv->match.source, recv->match.tag, recv->match.ignore, source, tag))
			return recv;
	return NULL;
}

static struct msg *model_find(struct model *model, uint32_t source, uint64_t tag, uint64_t ignore)
{
	struct msg *msg;

	TAILQ_FOREACH(msg, &model->msgs, link)
		if (takes(source, tag, ignore, msg->match.source, msg->match.tag))
			return msg;
	return NULL;
}

static void model_drop_recv(struct model *model, struct recv *recv)
{
	TAILQ_REMOVE(&model->recvs, recv, link);
	model->recv_count--;
	free(recv);
}

static void model_drop_msg(struct model *model, struct msg *msg)
{
	TAILQ_REMOVE(&model->msgs, msg, link);
	model->msg_count--;
	free(msg);
}

/* The model's lists and the table's lists have the same entries in the same order. */
static void check_lists(struct model *model)
{
	struct verve_match_recv *recv = TAILQ_FIRST(&model->match.posted);
	struct verve_match_msg *msg = TAILQ_FIRST(&model->match.unexpected);
	struct recv *model_recv;
	struct msg *model_msg;

	cr_assert_eq(model->match.posted_count, model->recv_count);
	cr_assert_eq(model->match.unexpected_count, model->msg_count);
	TAILQ_FOREACH(model_recv, &model->recvs, link) {
		cr_assert_eq(recv, &model_recv->match);
		recv = TAILQ_NEXT(recv, order);
	}
	TAILQ_FOREACH(model_msg, &model->msgs, link) {
		cr_assert_eq(msg, &model_msg->match);
		msg = TAILQ_NEXT(msg, order);
	}
	cr_assert_null(recv);
	cr_assert_null(msg);
}

/* How many different values a random run uses. */
struct mix {
	uint32_t masks;	  /* different ignore masks */
	uint32_t sources; /* different senders */
	uint32_t tags;	  /* different values of the tag bits that no mask below ignores */
	uint32_t fill;	  /* the lists grow to about this length */
};

/* Ignore mask number n: none, some or all of the bits that draw_tag sets. */
static uint64_t mask_of(uint32_t n)
{
	static const uint64_t first[] = {0, 3ull << 62, UINT64_MAX, 0xff};

	return n < 4 ? first[n] : (uint64_t)n << 3 | 3ull << 62;
}

static uint64_t draw_tag(struct model *model, const struct mix *mix)
{
	return (uint64_t)draw(model, 2) << 62 | (uint64_t)draw(model, mix->tags) << 20 |
	       draw(model, 4) << 4;
}

static uint32_t draw_source(struct model *model, const struct mix *mix)
{
	return draw(model, 3) ? 1 + draw(model, mix->sources) : VERVE_MATCH_ANY;
}

/* False: memory ran out, and nothing has changed. */
static bool step_recv(struct model *model, const struct mix *mix)
{
	struct recv *recv = malloc(sizeof(*recv));
	struct msg *expected;
	struct verve_match_msg *found;

	if (!recv)
		return false;
	recv->match.source = draw_source(model, mix);
	recv->match.tag = draw_tag(model, mix);
	recv->match.ignore = mask_of(draw(model, mix->masks));
	expected = model_find(model, recv->match.source, recv->match.tag, recv->match.ignore);
	found = verve_match_find(&model->match, recv->match.source, recv->match.tag,
				 recv->match.ignore);
	cr_assert_eq(found, expected ? &expected->match : NULL);
	/*
	 * In 3 of 4 such steps the receive takes the message. In the others it is posted, and the
	 * message stays: the table must not depend on the caller taking every message that it
	 * finds.
	 */
	if (expected && draw(model, 4)) {
		verve_match_remove(&model->match, found);
		model_drop_msg(model, expected);
		free(recv);
		return true;
	}
	if (verve_match_post(&model->match, &recv->match)) {
		free(recv);
		return false;
	}
	TAILQ_INSERT_TAIL(&model->recvs, recv, link);
	model->recv_count++;
	return true;
}

static bool step_msg(struct model *model, const struct mix *mix)
{
	uint32_t source = 1 + draw(model, mix->sources);
	uint64_t tag = draw_tag(model, mix);
	struct recv *expected = model_arrive(model, source, tag);
	bool keep = draw(model, 4) == 0;
	struct verve_match_recv *found;
	struct msg *msg;

	if (expected)
		expected->match.stays = keep;
	found = verve_match_arrive(&model->match, source, tag);
	cr_assert_eq(found, expected ? &expected->match : NULL);
	if (expected && !keep) {
		model_drop_recv(model, expected);
		return true;
	}
	if (expected && draw(model, 2)) {
		verve_match_cancel(&model->match, found);
		model_drop_recv(model, expected);
		return true;
	}
	msg = malloc(sizeof(*msg));
	if (!msg)
		return false;
	msg->match.source = source;
	msg->match.tag = tag;
	if (verve_match_add(&model->match, &msg->match)) {
		free(msg);
		return false;
	}
	TAILQ_INSERT_TAIL(&model->msgs, msg, link);
	model->msg_count++;
	return true;
}

static void step_drop(struct model *model)
{
	struct recv *recv = TAILQ_FIRST(&model->recvs);
	struct msg *msg = TAILQ_FIRST(&model->msgs);
	uint32_t n;

	if (recv && draw(model, 2)) {
		for (n = draw(model, 20); n && TAILQ_NEXT(recv, link); n--)
			recv = TAILQ_NEXT(recv, link);
		verve_match_cancel(&model->match, &recv->match);
		model_drop_recv(model, recv);
	} else if (msg) {
		for (n = draw(model, 20); n && TAILQ_NEXT(msg, link); n--)
			msg = TAILQ_NEXT(msg, link);
		verve_match_remove(&model->match, &msg->match);
		model_drop_msg(model, msg);
	}
}

static bool step(struct model *model, const struct mix *mix)
{
	bool full = model->recv_count + model->msg_count > mix->fill;

	switch (draw(model, full ? 3 : 9)) {
	case 0:
	case 1:
		step_drop(model);
		return true;
	case 2:
	case 3:
	case 4:
	case 5:
		return step_recv(model, mix);
	default:
		return step_msg(model, mix);
	}
}

static void run(const struct mix *mix, uint64_t seed, long steps)
{
	struct model model;

	model_init(&model, seed);
	for (long i = 0; i < steps; i++) {
		cr_assert(step(&model, mix));
		if (i % 500 == 0)
			check_lists(&model);
	}
	check_lists(&model);
	model_fini(&model);
}

Test(match, agrees_with_the_model_for_exact_tags)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		run(&(struct mix){.masks = 1, .sources = 3, .tags = 40, .fill = 300}, seed, 40000);
}

Test(match, agrees_with_the_model_for_few_masks)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		run(&(struct mix){.masks = 4, .sources = 4, .tags = 30, .fill = 300}, seed, 40000);
}

/* More classes than can have an index, and more classes than the table keeps. */
Test(match, agrees_with_the_model_for_many_masks)
{
	for (uint64_t seed = 0; seed < 20; seed++)
		run(&(struct mix){.masks = 31, .sources = 2, .tags = 12, .fill = 200}, seed, 40000);
}

Test(match, agrees_with_the_model_for_long_lists_of_equals)
{
	for (uint64_t seed = 0; seed < 5; seed++)
		run(&(struct mix){.masks = 2, .sources = 1, .tags = 1, .fill = 1000}, seed, 40000);
}

Test(match, agrees_with_the_model_when_tables_grow)
{
	for (uint64_t seed = 0; seed < 5; seed++)
		run(&(struct mix){.masks = 3, .sources = 50, .tags = 5000, .fill = 2000}, seed,
		    40000);
}

Test(match, agrees_with_the_model_when_lists_are_short)
{
	for (uint64_t seed = 0; seed < 100; seed++)
		run(&(struct mix){.masks = 12, .sources = 2, .tags = 3, .fill = 12}, seed, 10000);
}

/*
 * Each allocation of a run fails, alone or with all later ones. A step that fails for lack of
 * memory changes nothing.
 */
static bool run_oom(long nth, bool forever)
{
	const struct mix mix = {.masks = 31, .sources = 5, .tags = 100, .fill = 600};
	struct model model;
	bool failed;

	model_init(&model, 7);
	oom_fail(nth, forever);
	for (int i = 0; i < 1500; i++)
		if (!step(&model, &mix))
			check_lists(&model);
	failed = oom_stop();
	for (int i = 0; i < 200; i++)
		cr_assert(step(&model, &mix));
	check_lists(&model);
	model_fini(&model);
	return failed;
}

Test(match, survives_the_failure_of_any_allocation)
{
	long nth = 0;

	while (run_oom(nth, false))
		nth++;
	cr_assert_gt(nth, 100);
}

Test(match, survives_the_end_of_memory_at_any_time)
{
	for (long nth = 0; run_oom(nth, true); nth += 7)
		;
}

Test(match, message_that_cannot_be_indexed_is_refused)
{
	enum { COUNT = 5000 };
	struct verve_match_msg *msg = calloc(COUNT, sizeof(*msg));
	struct verve_match match;
	uint32_t refused = 0;

	verve_match_init(&match);
	for (uint32_t i = 0; i < COUNT; i++) {
		msg[i] = (struct verve_match_msg){.source = 1, .tag = i};
		if (i == 100) {
			/* Two indexes from here on. */
			cr_assert_eq(verve_match_find(&match, 1, 99, 0), &msg[99]);
			cr_assert_eq(verve_match_find(&match, VERVE_MATCH_ANY, 99, 0), &msg[99]);
			oom_fail(0, true);
		}
		if (verve_match_add(&match, &msg[i])) {
			refused = i;
			break;
		}
	}
	cr_assert_gt(refused, 100);
	cr_assert_gt(oom_stop(), 0);
	cr_assert_eq(match.unexpected_count, refused);
	cr_assert_null(verve_match_find(&match, 1, refused, 0));
	cr_assert_null(verve_match_find(&match, VERVE_MATCH_ANY, refused, 0));
	cr_assert_eq(verve_match_add(&match, &msg[refused]), 0);
	for (uint32_t i = 0; i <= refused; i++) {
		cr_assert_eq(verve_match_find(&match, i % 2 ? 1 : VERVE_MATCH_ANY, i, 0), &msg[i]);
		verve_match_remove(&match, &msg[i]);
	}
	verve_match_fini(&match);
	free(msg);
}

Test(match, allocates_nothing_in_the_steady_state)
{
	struct verve_match_recv recv[64];
	struct verve_match_msg msg[64];
	struct verve_match match;

	verve_match_init(&match);
	for (int round = 0; round < 3; round++) {
		if (round == 1)
			oom_fail(0, true);
		for (uint32_t i = 0; i < 64; i++) {
			recv[i] = (struct verve_match_recv){.source = i % 2 ? 5 : VERVE_MATCH_ANY,
							    .tag = i};
			recv[i].ignore = i % 3 ? 3ull << 62 : 0;
			cr_assert_eq(verve_match_post(&match, &recv[i]), 0);
		}
		for (uint32_t i = 0; i < 64; i++)
			cr_assert_eq(verve_match_arrive(&match, 5, i), &recv[i]);
		for (uint32_t i = 0; i < 64; i++) {
			msg[i] = (struct verve_match_msg){.source = 5, .tag = i};
			cr_assert_eq(verve_match_add(&match, &msg[i]), 0);
		}
		for (uint32_t i = 64; i-- > 0;) {
			cr_assert_eq(verve_match_find(&match, i % 2 ? 5 : VERVE_MATCH_ANY, i, 0),
				     &msg[i]);
			verve_match_remove(&match, &msg[i]);
		}
	}
	cr_assert_eq(oom_stop(), 0);
	verve_match_fini(&match);
}

Test(match, keeps_a_receive_that_stays)
{
	struct verve_match_recv recv = {.source = 1, .tag = 2, .stays = true};
	struct verve_match match;

	verve_match_init(&match);
	cr_assert_eq(verve_match_post(&match, &recv), 0);
	cr_assert_eq(verve_match_arrive(&match, 1, 2), &recv);
	cr_assert_eq(verve_match_arrive(&match, 1, 2), &recv);
	cr_assert_eq(match.posted_count, 1);
	cr_assert_null(verve_match_arrive(&match, 2, 2));
	recv.stays = false;
	cr_assert_eq(verve_match_arrive(&match, 1, 2), &recv);
	cr_assert_null(verve_match_arrive(&match, 1, 2));
	verve_match_fini(&match);
}

Test(match, says_which_receive_a_message_would_get)
{
	struct verve_match_recv recv[] = {{.source = 1, .tag = 2}, {.source = 1, .tag = 2}};
	struct verve_match match;

	verve_match_init(&match);
	cr_assert_null(verve_match_expect(&match, 1, 2));
	for (int i = 0; i < 2; i++)
		cr_assert_eq(verve_match_post(&match, &recv[i]), 0);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(verve_match_expect(&match, 1, 2), &recv[i]);
		cr_assert_null(verve_match_expect(&match, 2, 2));
		cr_assert_eq(verve_match_arrive(&match, 1, 2), &recv[i]);
	}
	cr_assert_null(verve_match_expect(&match, 1, 2));
	verve_match_fini(&match);
}

Test(match, a_walk_goes_on_behind_messages_that_are_removed)
{
	struct verve_match_msg msg[3] = {{0}};
	struct verve_match match;

	verve_match_init(&match);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(verve_match_add(&match, &msg[i]), 0);
	match.next = &msg[1];
	verve_match_remove(&match, &msg[0]);
	cr_assert_eq(match.next, &msg[1]);
	verve_match_remove(&match, &msg[1]);
	cr_assert_eq(match.next, &msg[2]);
	verve_match_remove(&match, &msg[2]);
	cr_assert_null(match.next);
	verve_match_fini(&match);
}

Test(match, oldest_receive_wins_whatever_its_mask)
{
	struct verve_match_recv recv[] = {
		{.source = 1, .tag = 0xa0, .ignore = 0xf},
		{.source = VERVE_MATCH_ANY, .tag = 0xa5, .ignore = 0},
		{.source = 1, .tag = 0xa5, .ignore = 0},
		{.source = VERVE_MATCH_ANY, .tag = 0, .ignore = UINT64_MAX},
	};
	struct verve_match match;

	verve_match_init(&match);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(verve_match_post(&match, &recv[i]), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(verve_match_arrive(&match, 1, 0xa5), &recv[i]);
	verve_match_fini(&match);
}
