/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Between nth.c, which opens, fails and closes, and nth_request.c. */
#ifndef VERVE_TEST_SIM_NTH_WORLD_H
#define VERVE_TEST_SIM_NTH_WORLD_H

#include "nth.h"

/* Fails the test, and prints how to run the same seed again. */
void nth_fail(const struct nth *nth, const struct nth_request *request, const char *what);
/* Reads all queues; arg is struct nth. */
void nth_progress(void *arg);
/*
 * Settles, and cancels receives whose message was lost. At most two ends may have seen a call fail.
 */
void nth_finish(struct nth *nth);

#endif
