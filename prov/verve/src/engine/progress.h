/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress thread: one for each domain that asked for FI_PROGRESS_AUTO (fi_domain(3)). It polls the
 * domain's engines, so that peers are answered while the application computes, and sleeps when
 * there is nothing to do.
 *
 * Its lock is taken before an engine's lock, never under one. Any thread may call the functions
 * here.
 */
#ifndef VERVE_ENGINE_PROGRESS_H
#define VERVE_ENGINE_PROGRESS_H

struct verve_engine;
struct verve_progress;

/*
 * Starts the thread. -FI_ENOMEM, or the error of starting a thread. Logs. The caller owns *progress
 * and closes it with verve_progress_close.
 */
int verve_progress_open(struct verve_progress **progress);
/*
 * Stops the thread and frees progress; returns when the thread has ended. Every engine has been
 * removed before.
 */
void verve_progress_close(struct verve_progress *progress);

/*
 * From now on the thread polls engine, which stays the caller's. -FI_ENOMEM, -errno: the thread
 * cannot watch the engine's descriptor. Logs.
 */
int verve_progress_add(struct verve_progress *progress, struct verve_engine *engine);
/*
 * After this call the thread does not touch engine any more. An engine that was never added:
 * nothing. The engine's lock must not be held.
 */
void verve_progress_remove(struct verve_progress *progress, struct verve_engine *engine);

/* The provider is unloaded: stops all threads, also those of domains that were left open. */
void verve_progress_fini(void);

#endif
