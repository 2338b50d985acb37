/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waiting: every interleaving of a model of it. */
#include "wait_model.h"

#include <criterion/criterion.h>

#define DEVICE {.role = MODEL_DEVICE}
#define WRITER {.role = MODEL_WRITER}
#define READER {.role = MODEL_READER}
#define SIGNALER {.role = MODEL_SIGNALER}
#define POLLER(q) {.role = MODEL_POLLER, .queue = (q)}
#define CALLER(q) {.role = MODEL_CALLER, .queue = (q)}
#define POLLER_UNTIL(q, n) {.role = MODEL_POLLER, .queue = (q), .threshold = (n)}
#define CALLER_UNTIL(q, n) {.role = MODEL_CALLER, .queue = (q), .threshold = (n)}

static const struct model models[] = {
	/* Queues that the turn of another thread fills. */
	{.queues = 1, .work = 2, .thread = {WRITER, POLLER(0), POLLER(0)}},
	{.queues = 1, .work = 3, .thread = {WRITER, POLLER(0), POLLER(0), POLLER(0)}},
	{.queues = 1, .work = 2, .thread = {WRITER, CALLER(0), CALLER(0)}},
	{.queues = 1, .work = 3, .thread = {WRITER, CALLER(0), CALLER(0), POLLER(0)}},
	/* Queues that only the waiting threads fill. */
	{.queues = 1, .work = 2, .thread = {DEVICE, POLLER(0), POLLER(0)}},
	{.queues = 1, .work = 2, .thread = {DEVICE, CALLER(0), CALLER(0)}},
	{.queues = 1, .work = 2, .thread = {DEVICE, CALLER(0), POLLER(0)}},
	{.queues = 1, .work = 2, .thread = {DEVICE, POLLER(0), READER}},
	{.queues = 2, .work = 2, .thread = {DEVICE, POLLER(0), POLLER(1)}},
	{.queues = 2, .work = 2, .thread = {DEVICE, POLLER(0), CALLER(1)}},
	/* Signals. */
	{.queues = 1, .work = 0, .thread = {CALLER(0), SIGNALER}},
	{.queues = 1, .work = 0, .thread = {CALLER(0), CALLER(0), CALLER(0), SIGNALER}},
	{.queues = 1, .work = 1, .thread = {WRITER, CALLER(0), CALLER(0), SIGNALER}},
	{.queues = 1, .work = 0, .thread = {POLLER(0), POLLER(0), POLLER(0), SIGNALER}},
	{.queues = 1, .work = 1, .thread = {WRITER, POLLER(0), CALLER(0), SIGNALER}},
	/* Counters. */
	{.counters = true,
	 .queues = 1,
	 .work = 2,
	 .thread = {WRITER, CALLER_UNTIL(0, 1), CALLER_UNTIL(0, 2)}},
	{.counters = true,
	 .queues = 1,
	 .work = 2,
	 .thread = {WRITER, CALLER_UNTIL(0, 2), POLLER_UNTIL(0, 2)}},
	{.counters = true, .queues = 1, .work = 2, .thread = {WRITER, WRITER, CALLER_UNTIL(0, 2)}},
	{.counters = true,
	 .queues = 2,
	 .work = 2,
	 .thread = {DEVICE, POLLER_UNTIL(0, 1), CALLER_UNTIL(1, 1)}},
};

Test(wait_model, lets_everybody_finish_in_every_interleaving, .timeout = 300)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		struct model_result result = model_run(&models[i]);

		cr_expect_gt(result.states, 100, "model %zu", i);
		cr_expect_eq(result.stuck, 0, "model %zu: %zu stuck states", i, result.stuck);
	}
}

/* Each precaution is needed, and the model is detailed enough to find its absence. */
Test(wait_model, notices_every_missing_precaution, .timeout = 300)
{
	static const struct {
		enum model_fault fault;
		size_t model;
	} faults[] = {
		{MODEL_NO_RENOTIFY, 0},	   {MODEL_ARM_FIRST, 0},  {MODEL_NO_CHECK, 0},
		{MODEL_NO_REANNOUNCE, 8},  {MODEL_NO_NEXT_TURN, 2}, {MODEL_NO_SECOND_TURN, 10},
		{MODEL_LATE_TURN, 10},	   {MODEL_ARM_FIRST, 17}, {MODEL_NO_CHECK, 17},
		{MODEL_LATE_DISARM, 17},   {MODEL_OWN_SIGNAL, 13}, {MODEL_NO_TRY_SIGNALS, 13},
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct model model = models[faults[i].model];

		model.fault = faults[i].fault;
		cr_expect_gt(model_run(&model).stuck, 0, "fault %d was not noticed", model.fault);
	}
}
