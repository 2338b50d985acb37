/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Model of waiting (api/wait.c, comp/comp_queue.c, comp/counter.c, engine/engine_turn.c). Each
 * thread is a small program of atomic steps. The model runs the threads in every possible
 * interleaving.
 */
#ifndef VERVE_TEST_WAIT_MODEL_H
#define VERVE_TEST_WAIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>

enum model_role {
	MODEL_NONE,
	MODEL_DEVICE, /* completes work; a turn of the engine brings the work to the queues */
	/* adds work to the queues, as a turn does that the reader of another queue makes */
	MODEL_WRITER,
	/* a thread of the application: calls fi_trywait, then sleeps on the descriptor */
	MODEL_POLLER,
	MODEL_CALLER,	/* a thread in verve_wait_for */
	MODEL_READER,	/* a thread that reads and never sleeps */
	/*
	 * sets a flag of the application, which ends its threads, and calls verve_wait_signal, as
	 * each poller does that ends
	 */
	MODEL_SIGNALER,
};

/* A precaution that is left out, to see that the model finds its absence. */
enum model_fault {
	MODEL_SOUND,
	/* verve_wait_try: a thread that cleared the event in vain does not write it again */
	MODEL_NO_RENOTIFY,
	MODEL_NO_REANNOUNCE, /* verve_engine_arm: a turn with work does not write the event again */
	MODEL_ARM_FIRST,     /* the descriptor is cleared after the arming */
	MODEL_LATE_TURN,     /* the number of the turn is read after the look */
	MODEL_NO_SECOND_TURN, /* a leader that cleared its event does not compare the turn */
	MODEL_NO_NEXT_TURN,  /* a leader that wakes does not wake the others */
	MODEL_NO_CHECK,	     /* no look after the arming */
	MODEL_LATE_DISARM,   /* counter: it is disarmed after the wake */
	MODEL_OWN_SIGNAL,    /* verve_wait_signal: does not write the application's descriptor */
	MODEL_NO_TRY_SIGNALS, /* verve_wait_try: does not look for signals */
};

enum { MODEL_THREADS = 5, MODEL_QUEUES = 2 };

struct model_thread {
	enum model_role role;
	int queue;     /* the queue that the thread waits for */
	int threshold; /* counters: the value that the thread waits for */
};

struct model {
	bool counters; /* counters instead of queues: a value stays, and every thread sees it */
	int queues;    /* queues of the one engine; pieces of work go to them in turn */
	int work;      /* pieces of work that complete */
	enum model_fault fault;
	struct model_thread thread[MODEL_THREADS];
};

struct model_result {
	size_t states;
	size_t stuck; /* states from which some thread can never finish */
};

struct model_result model_run(const struct model *model);

#endif
