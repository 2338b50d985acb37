/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An engine's turns, and its wait descriptor's arming: once it is armed, the descriptor wakes a
 * thread that sleeps on it when a turn would find something.
 */
#ifndef VERVE_ENGINE_ENGINE_TURN_H
#define VERVE_ENGINE_ENGINE_TURN_H

#include <stdbool.h>

struct verve_engine;

/*
 * One turn of the loop: handles connection events, arrived packets and finished work. True if there
 * was any of these. False also if another thread has the lock, or waits for it: it probably polls,
 * and does this thread's work, too. So this call never waits.
 */
bool verve_engine_progress(struct verve_engine *engine);
/*
 * The same for a caller that has the engine's lock, which is released while errands are done
 * (xport/errand.h).
 */
bool verve_engine_turn(struct verve_engine *engine);

/*
 * Arms the wait descriptor. 0: armed, and there is nothing to do. -FI_EAGAIN: there was something
 * to do; take turns until they find nothing, then arm again. In this case the descriptor also
 * becomes readable for other sleepers. Takes the lock.
 */
int verve_engine_arm(struct verve_engine *engine);
/* The same for a caller that has the engine's lock. */
int verve_engine_arm_locked(struct verve_engine *engine);

/*
 * For verve_engine_unlock alone. The lock is held, and released meanwhile. Does the errands that
 * wait (xport/errand.h). Sets the timer of each thread that may sleep without one, because the
 * caller may have started work that needs turns.
 */
void verve_engine_before_unlock(struct verve_engine *engine);
/* As verve_engine_unlock, where the caller has other locks: leaves errands to a later turn. */
void verve_engine_unlock_within(struct verve_engine *engine);

#endif
