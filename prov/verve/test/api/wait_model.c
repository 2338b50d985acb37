/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Model of waiting: the program of each role, and the search through all their interleavings. */
#include "wait_model.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum pc {
	START,
	EVENT, /* device: the event of a completion */
	LOOK,
	CLEAR,
	TURN_AGAIN,
	ARM,
	ARM_CHECK, /* counter: the look after the arming */
	RENOTIFY,
	ENGINE_CLEAR, /* takes the engine's lock */
	ENGINE_ARM,
	ENGINE_POLL,
	ARMED_CHECK, /* counter: is it armed, so that threads must be woken? */
	DISARM,
	WAKE_OWN,
	WAKE_GIVEN,
	LATE_DISARM,
	ENGINE_DONE,
	SLEEP,
	BED, /* caller: becomes the leader, follows, or looks again */
	FOLLOW_ARM,
	FOLLOW_CHECK,
	FOLLOW,
	UP, /* the leader has woken */
	SIGNAL,
	NOTIFY_OWN,
	NOTIFY_GIVEN,
	TRY_SIGNALS,
	DONE,
};

/* Why a thread takes a turn of the engine. */
enum purpose { TO_LOOK, TO_ARM, TO_WRITE };

struct local {
	uint8_t pc;
	uint8_t purpose;
	bool current; /* no new turn has begun since the thread read the number */
	bool any;     /* the engine's turn had work */
	bool event;   /* device: the completion makes an event */
	uint8_t to;   /* queue that the work of the engine's turn went to */
};

struct queue {
	uint8_t count; /* entries, or the value of the counter */
	uint8_t seen;
	bool armed, own, given, asleep;
	bool ends;	       /* a flag of the application: its threads are to end */
	uint8_t signals, tried; /* how many signals were sent; how many of them a poller saw */
	uint8_t sleep_lock; /* 0: free; else 1 + the thread that has it */
};

struct state {
	struct queue queue[MODEL_QUEUES];
	struct local local[MODEL_THREADS];
	/* pieces of work: completed; completed and not polled; polled */
	uint8_t made, pending, polled;
	bool device_armed, engine_event;
	uint8_t engine_lock; /* 0: free; else 1 + the thread that has it */
};

struct run {
	const struct model *model;
	struct state *s;
	int me;
};

static struct local *local_of(struct run *run)
{
	return &run->s->local[run->me];
}

static const struct model_thread *thread_of(struct run *run)
{
	return &run->model->thread[run->me];
}

static struct queue *queue_of(struct run *run)
{
	return &run->s->queue[thread_of(run)->queue];
}

static bool go(struct run *run, enum pc pc)
{
	local_of(run)->pc = (uint8_t)pc;
	return true;
}

static bool has(const struct run *run, enum model_fault fault)
{
	return run->model->fault == fault;
}

/* True if the thread finds what it waits for, or if it polls a counter whose value is new. */
static bool is_ready(struct run *run)
{
	const struct queue *queue = queue_of(run);

	if (!run->model->counters)
		return queue->count > 0;
	if (thread_of(run)->role == MODEL_POLLER)
		return queue->count != queue->seen;
	return queue->count >= thread_of(run)->threshold;
}

/* Reads one entry, or the counter's value. */
static bool take(struct run *run)
{
	struct queue *queue = queue_of(run);

	if (run->model->counters) {
		if (thread_of(run)->role == MODEL_POLLER)
			queue->seen = queue->count;
		return queue->count >= thread_of(run)->threshold;
	}
	if (!queue->count)
		return false;
	queue->count--;
	return true;
}

static void next_turn(struct run *run)
{
	for (int i = 0; i < MODEL_THREADS; i++)
		if (run->model->thread[i].queue == thread_of(run)->queue)
			run->s->local[i].current = false;
}

static bool step_device(struct run *run)
{
	struct local *local = local_of(run);
	struct state *s = run->s;

	if (local->pc == EVENT) {
		s->engine_event |= local->event;
		return go(run, START);
	}
	if (s->made == run->model->work)
		return go(run, DONE);
	s->made++;
	s->pending++;
	local->event = s->device_armed;
	s->device_armed = false;
	return go(run, EVENT);
}

static bool step_signaler(struct run *run)
{
	struct queue *queue = queue_of(run);

	switch (local_of(run)->pc) {
	case START:
		queue->ends = true;
		return go(run, SIGNAL);
	case SIGNAL:
		queue->signals++;
		return go(run, LOOK);
	case LOOK:
		if (queue->sleep_lock)
			return false;
		next_turn(run);
		return go(run, NOTIFY_OWN);
	case NOTIFY_OWN:
		queue->own |= queue->asleep;
		return go(run, has(run, MODEL_OWN_SIGNAL) ? DONE : NOTIFY_GIVEN);
	default: /* NOTIFY_GIVEN */
		queue->given = true;
		return go(run, DONE);
	}
}

/* Adds one entry to the queue, or one to the counter's value. */
static bool publish(struct run *run)
{
	struct local *local = local_of(run);
	struct queue *to;

	local->to = (uint8_t)(run->s->polled++ % run->model->queues);
	to = &run->s->queue[local->to];
	to->count++;
	if (run->model->counters)
		return go(run, ARMED_CHECK);
	/* For a queue, this is one step, because the queue's lock is held. */
	if (!to->armed)
		return go(run, ENGINE_DONE);
	to->armed = false;
	return go(run, WAKE_OWN);
}

static bool engine_done(struct run *run)
{
	struct local *local = local_of(run);

	if (local->purpose == TO_WRITE)
		return go(run, START);
	if (local->any && local->purpose == TO_ARM && !has(run, MODEL_NO_REANNOUNCE))
		run->s->engine_event = true;
	run->s->engine_lock = 0;
	if (local->purpose == TO_LOOK)
		return go(run, LOOK);
	if (!local->any)
		return go(run, SLEEP);
	return go(run, thread_of(run)->role == MODEL_CALLER ? UP : START);
}

static bool step_writer(struct run *run)
{
	if (run->s->made == run->model->work)
		return go(run, DONE);
	run->s->made++;
	local_of(run)->purpose = TO_WRITE;
	return publish(run);
}

/* One step of a turn of the engine. A turn polls at most one piece of work. */
static bool step_engine(struct run *run)
{
	struct local *local = local_of(run);
	struct state *s = run->s;
	struct queue *to = &s->queue[local->to];

	switch (local->pc) {
	case ENGINE_CLEAR:
		if (s->engine_lock)
			return false;
		s->engine_lock = (uint8_t)(run->me + 1);
		s->engine_event = false;
		return go(run, ENGINE_ARM);
	case ENGINE_ARM:
		s->device_armed = true;
		return go(run, ENGINE_POLL);
	case ENGINE_POLL:
		local->any = s->pending;
		if (!local->any)
			return go(run, ENGINE_DONE);
		s->pending--;
		return publish(run);
	case ARMED_CHECK:
		if (!to->armed)
			return go(run, ENGINE_DONE);
		return go(run, has(run, MODEL_LATE_DISARM) ? WAKE_OWN : DISARM);
	case DISARM:
		to->armed = false;
		return go(run, WAKE_OWN);
	case WAKE_OWN:
		to->own |= to->asleep;
		return go(run, WAKE_GIVEN);
	case WAKE_GIVEN:
		to->given = true;
		return go(run, has(run, MODEL_LATE_DISARM) ? LATE_DISARM : ENGINE_DONE);
	case LATE_DISARM:
		to->armed = false;
		return go(run, ENGINE_DONE);
	default: /* ENGINE_DONE */
		return engine_done(run);
	}
}

/* verve_wait_progress: does nothing if another thread has the lock. */
static bool progress(struct run *run)
{
	struct local *local = local_of(run);

	if (run->s->engine_lock)
		return go(run, LOOK);
	run->s->engine_lock = (uint8_t)(run->me + 1);
	local->purpose = TO_LOOK;
	return go(run, ENGINE_POLL);
}

/* Arms. This is one step for a queue, which has a lock, and two steps for a counter. */
static bool arm(struct run *run, enum pc check, enum pc if_ready, enum pc if_not)
{
	struct queue *queue = queue_of(run);

	if (run->model->counters) {
		queue->armed = true;
		return go(run, check);
	}
	if (is_ready(run) && !has(run, MODEL_NO_CHECK))
		return go(run, if_ready);
	queue->armed = true;
	return go(run, if_not);
}

static bool arm_check(struct run *run, enum pc if_ready, enum pc if_not)
{
	return go(run, is_ready(run) && !has(run, MODEL_NO_CHECK) ? if_ready : if_not);
}

static bool step_poller(struct run *run)
{
	bool arm_first = has(run, MODEL_ARM_FIRST);
	enum pc armed = arm_first ? CLEAR : ENGINE_CLEAR;
	struct queue *queue = queue_of(run);

	local_of(run)->purpose = TO_ARM;
	switch (local_of(run)->pc) {
	case START:
		if (queue->ends)
			return go(run, SIGNAL);
		return go(run, take(run) ? DONE : arm_first ? ARM : CLEAR);
	case SIGNAL: /* for other pollers: this one may have seen the signal in their place */
		queue->signals++;
		return go(run, NOTIFY_GIVEN);
	case NOTIFY_GIVEN:
		queue->given = true;
		return go(run, DONE);
	case CLEAR:
		queue->given = false;
		return go(run, arm_first ? ENGINE_CLEAR : TRY_SIGNALS);
	case TRY_SIGNALS:
		if (queue->signals == queue->tried || has(run, MODEL_NO_TRY_SIGNALS))
			return go(run, ARM);
		queue->tried = queue->signals;
		return go(run, RENOTIFY);
	case ARM:
		return arm(run, ARM_CHECK, RENOTIFY, armed);
	case ARM_CHECK:
		return arm_check(run, RENOTIFY, armed);
	case RENOTIFY:
		if (!has(run, MODEL_NO_RENOTIFY))
			queue->given = true;
		return go(run, START);
	default: /* SLEEP */
		return (queue->given || run->s->engine_event) && go(run, START);
	}
}

static bool go_to_bed(struct run *run)
{
	struct queue *queue = queue_of(run);

	if (queue->sleep_lock)
		return false;
	if (!local_of(run)->current && !has(run, MODEL_LATE_TURN))
		return go(run, START);
	local_of(run)->current = true;
	if (queue->asleep) {
		queue->sleep_lock = (uint8_t)(run->me + 1);
		return go(run, FOLLOW_ARM);
	}
	queue->asleep = true;
	return go(run, has(run, MODEL_ARM_FIRST) ? ARM : CLEAR);
}

static bool unlock_and_go(struct run *run, enum pc pc)
{
	queue_of(run)->sleep_lock = 0;
	return go(run, pc);
}

static bool step_follower(struct run *run)
{
	struct queue *queue = queue_of(run);

	switch (local_of(run)->pc) {
	case FOLLOW_ARM:
		if (run->model->counters) {
			queue->armed = true;
			return go(run, FOLLOW_CHECK);
		}
		if (is_ready(run))
			return unlock_and_go(run, START);
		queue->armed = true;
		return unlock_and_go(run, FOLLOW);
	case FOLLOW_CHECK:
		return unlock_and_go(run, is_ready(run) ? START : FOLLOW);
	default: /* FOLLOW */
		return !queue->sleep_lock && !local_of(run)->current && go(run, START);
	}
}

static bool step_leader(struct run *run)
{
	bool arm_first = has(run, MODEL_ARM_FIRST);
	enum pc armed = arm_first ? CLEAR : ENGINE_CLEAR;
	struct local *local = local_of(run);
	struct queue *queue = queue_of(run);

	local->purpose = TO_ARM;
	switch (local->pc) {
	case CLEAR:
		queue->own = false;
		return go(run, TURN_AGAIN);
	case TURN_AGAIN:
		if (!local->current && !has(run, MODEL_NO_SECOND_TURN))
			return go(run, UP);
		return go(run, arm_first ? ENGINE_CLEAR : ARM);
	case ARM:
		return arm(run, ARM_CHECK, UP, armed);
	case ARM_CHECK:
		return arm_check(run, UP, armed);
	case SLEEP:
		return (queue->own || run->s->engine_event) && go(run, UP);
	default: /* UP */
		if (queue->sleep_lock)
			return false;
		queue->asleep = false;
		if (!has(run, MODEL_NO_NEXT_TURN))
			next_turn(run);
		return go(run, START);
	}
}

static bool step_caller(struct run *run)
{
	struct local *local = local_of(run);

	switch (local->pc) {
	case START:
		local->current = true;
		return progress(run);
	case LOOK:
		return go(run, take(run) || queue_of(run)->signals ? DONE : BED);
	case BED:
		return go_to_bed(run);
	case FOLLOW_ARM:
	case FOLLOW_CHECK:
	case FOLLOW:
		return step_follower(run);
	default:
		return step_leader(run);
	}
}

static bool step_reader(struct run *run)
{
	if (local_of(run)->pc == START)
		return progress(run);
	return go(run, take(run) ? DONE : START);
}

/* Takes one step of thread me. False: the thread cannot go on now, or is done. */
static bool step(const struct model *model, struct state *s, int me)
{
	struct run run = {model, s, me};
	enum pc pc = (enum pc)s->local[me].pc;

	if (pc == DONE)
		return false;
	if (pc >= ENGINE_CLEAR && pc <= ENGINE_DONE)
		return step_engine(&run);
	switch (model->thread[me].role) {
	case MODEL_DEVICE:
		return step_device(&run);
	case MODEL_WRITER:
		return step_writer(&run);
	case MODEL_POLLER:
		return step_poller(&run);
	case MODEL_CALLER:
		return step_caller(&run);
	case MODEL_READER:
		return step_reader(&run);
	case MODEL_SIGNALER:
		return step_signaler(&run);
	default:
		return go(&run, DONE);
	}
}

/* All states that were seen, a hash table of them, and for each state the next state by thread. */
struct search {
	struct state *states;
	int32_t (*next)[MODEL_THREADS]; /* -1: none */
	size_t count, limit;
	int32_t *table; /* -1: free */
	size_t mask;
};

static uint64_t hash(const struct state *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	uint64_t h = 1469598103934665603ull;

	for (size_t i = 0; i < sizeof(*s); i++)
		h = (h ^ bytes[i]) * 1099511628211ull;
	return h ^ h >> 29;
}

static void place(struct search *search, int32_t index)
{
	size_t at = hash(&search->states[index]) & search->mask;

	while (search->table[at] >= 0)
		at = (at + 1) & search->mask;
	search->table[at] = index;
}

static void grow(struct search *search)
{
	search->limit = search->limit ? 2 * search->limit : 1 << 16;
	search->states = realloc(search->states, search->limit * sizeof(search->states[0]));
	search->next = realloc(search->next, search->limit * sizeof(search->next[0]));
	free(search->table);
	search->mask = 2 * search->limit - 1;
	search->table = malloc((search->mask + 1) * sizeof(search->table[0]));
	if (!search->states || !search->next || !search->table)
		abort();
	memset(search->table, 0xff, (search->mask + 1) * sizeof(search->table[0]));
	for (size_t i = 0; i < search->count; i++)
		place(search, (int32_t)i);
}

static int32_t visit(struct search *search, const struct state *s)
{
	size_t at;

	if (search->count == search->limit)
		grow(search);
	for (at = hash(s) & search->mask; search->table[at] >= 0; at = (at + 1) & search->mask)
		if (!memcmp(&search->states[search->table[at]], s, sizeof(*s)))
			return search->table[at];
	search->states[search->count] = *s;
	search->table[at] = (int32_t)search->count;
	return (int32_t)search->count++;
}

static bool is_final(const struct state *s)
{
	for (int i = 0; i < MODEL_THREADS; i++)
		if (s->local[i].pc != DONE)
			return false;
	return true;
}

/*
 * Goes backwards from the final states. Counts the states from which some thread can never finish.
 */
static size_t count_stuck(const struct search *search)
{
	bool *good = calloc(search->count, 1), changed = true;
	size_t stuck = 0;

	if (!good)
		abort();
	for (size_t i = 0; i < search->count; i++)
		good[i] = is_final(&search->states[i]);
	while (changed) {
		changed = false;
		for (size_t i = search->count; i-- > 0;)
			for (int t = 0; !good[i] && t < MODEL_THREADS; t++)
				if (search->next[i][t] >= 0 && good[search->next[i][t]])
					good[i] = changed = true;
	}
	for (size_t i = 0; i < search->count; i++)
		stuck += !good[i];
	free(good);
	return stuck;
}

struct model_result model_run(const struct model *model)
{
	struct search search = {0};
	struct model_result result;
	struct state s;

	memset(&s, 0, sizeof(s));
	visit(&search, &s);
	for (size_t i = 0; i < search.count; i++) {
		for (int t = 0; t < MODEL_THREADS; t++) {
			int32_t next = -1;

			s = search.states[i];
			if (step(model, &s, t))
				next = visit(&search, &s);
			search.next[i][t] = next;
		}
	}
	result = (struct model_result){search.count, count_stuck(&search)};
	free(search.states);
	free(search.next);
	free(search.table);
	return result;
}
