/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress thread: one for each domain that asked for FI_PROGRESS_AUTO. Polls the domain's engines
 * so that peers are answered while the application computes; asleep when there is nothing to do.
 *
 * Its lock is taken before an engine's, never under one. Any thread may call anything here.
 */
#ifndef VERVE_ENGINE_PROGRESS_H
#define VERVE_ENGINE_PROGRESS_H

struct verve_engine;
struct verve_progress;

/* -FI_ENOMEM, or what starting a thread said. Logs. */
int verve_progress_open(struct verve_progress **progress);
/* Every engine has been removed. Returns when the thread has ended. */
void verve_progress_close(struct verve_progress *progress);

/* From now on the thread polls engine. -FI_ENOMEM, -errno. Logs. */
int verve_progress_add(struct verve_progress *progress, struct verve_engine *engine);
/*
 * When it returns, the thread does not touch engine any more. Removing what was never added does
 * nothing. The engine's lock must not be held.
 */
void verve_progress_remove(struct verve_progress *progress, struct verve_engine *engine);

/* The provider is unloaded: stops all threads, even of domains that were left open. */
void verve_progress_fini(void);

#endif
