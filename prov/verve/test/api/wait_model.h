/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Model of waiting (api/wait.c, comp/comp_queue.c, comp/comp.c, engine/engine.c): each thread a
 * little program of atomic steps, run in every possible interleaving.
 */
#ifndef VERVE_TEST_WAIT_MODEL_H
#define VERVE_TEST_WAIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>

enum model_role {
	MODEL_NONE,
	MODEL_DEVICE, /* completes the work; a turn of the engine brings it into the queues */
	MODEL_WRITER, /* puts work into the queues, as a turn that another queue's reader makes */
	MODEL_POLLER,	/* of the application: fi_trywait, then sleeps on the descriptor */
	MODEL_CALLER,	/* in verve_wait_for */
	MODEL_READER,	/* never sleeps */
	MODEL_SIGNALER, /* verve_wait_signal, once */
};

/* A precaution that is left out, to see that the model would notice. */
enum model_fault {
	MODEL_SOUND,
	MODEL_NO_RENOTIFY,   /* verve_wait_try: who cleared in vain does not write again */
	MODEL_NO_REANNOUNCE, /* verve_engine_arm: a turn with work does not announce the next */
	MODEL_ARM_FIRST,     /* cleared after arming */
	MODEL_LATE_TURN,     /* the number of the turn is taken after the look */
	MODEL_NO_SECOND_TURN, /* a leader that cleared does not compare the turn */
	MODEL_NO_NEXT_TURN,  /* a leader that wakes does not wake the others */
	MODEL_NO_CHECK,	     /* armed without a look afterwards */
	MODEL_LATE_DISARM,   /* counter: disarmed after the wake */
};

enum { MODEL_THREADS = 5, MODEL_QUEUES = 2 };

struct model_thread {
	enum model_role role;
	int queue;     /* which it waits on */
	int threshold; /* counters: the value that it waits for */
};

struct model {
	bool counters; /* instead of queues: a value stays, and everybody sees it */
	int queues;    /* on one engine; work goes to them in turn */
	int work;      /* pieces that complete */
	enum model_fault fault;
	struct model_thread thread[MODEL_THREADS];
};

struct model_result {
	size_t states;
	size_t stuck; /* states that not everybody can finish from */
};

struct model_result model_run(const struct model *model);

#endif
