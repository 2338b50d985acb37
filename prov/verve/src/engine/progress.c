/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Progress thread: poll while there is work, then arm, then sleep on the engines' descriptors. */
#include "engine/progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/log.h"
#include "engine/engine.h"
#include "net/sys.h"
#include <rdma/fi_errno.h>

enum { TURNS = 64 }; /* of one engine before the next has its turn */

struct client {
	LIST_ENTRY(client) link;
	struct verve_engine *engine;
};

struct verve_progress {
	LIST_ENTRY(verve_progress) link; /* in all */
	pthread_mutex_t lock;		 /* guards what follows */
	LIST_HEAD(, client) clients;
	struct verve_net_thread *thread; /* NULL: stopped by verve_progress_fini */
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* guards all; taken before each one's */
static LIST_HEAD(, verve_progress) all = LIST_HEAD_INITIALIZER(all);

/* A child after fork(2), where another thread may have held the lock: its parent's threads are not there to be stopped. */
static void in_child(void)
{
	pthread_mutex_init(&all_lock, NULL);
	LIST_INIT(&all);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/*
 * Armed, or false: there is more to do. Arming clears the engine's descriptor and looks once more:
 * what comes after that makes the descriptor readable, and the thread watches it.
 */
static bool serve(struct verve_engine *engine)
{
	for (int turn = 0; turn < TURNS; turn++)
		if (!verve_engine_progress(engine))
			return verve_engine_arm(engine) == 0;
	return false;
}

static uint64_t step(void *arg)
{
	struct verve_progress *progress = arg;
	struct client *client;
	bool idle = true;

	pthread_mutex_lock(&progress->lock);
	LIST_FOREACH(client, &progress->clients, link)
		idle &= serve(client->engine);
	pthread_mutex_unlock(&progress->lock);
	return idle ? UINT64_MAX : 0;
}

int verve_progress_open(struct verve_progress **progressp)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct verve_progress *progress = calloc(1, sizeof(*progress));
	int ret;

	if (!progress)
		return -FI_ENOMEM;
	pthread_mutex_init(&progress->lock, NULL);
	LIST_INIT(&progress->clients);
	ret = verve_net_thread_start("verve-progress", step, progress, &progress->thread);
	if (ret) {
		VERVE_WARN(DOMAIN, "cannot start a progress thread: %s\n", fi_strerror(-ret));
		pthread_mutex_destroy(&progress->lock);
		free(progress);
		return ret;
	}
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all, progress, link);
	pthread_mutex_unlock(&all_lock);
	*progressp = progress;
	return 0;
}

/* The thread, which the caller stops without the lock. */
static struct verve_net_thread *take_thread(struct verve_progress *progress)
{
	struct verve_net_thread *thread;

	pthread_mutex_lock(&progress->lock);
	thread = progress->thread;
	progress->thread = NULL;
	pthread_mutex_unlock(&progress->lock);
	return thread;
}

void verve_progress_close(struct verve_progress *progress)
{
	struct verve_net_thread *thread;
	struct verve_progress *listed;

	pthread_mutex_lock(&all_lock);
	/* In a child after fork(2) its parent's are not. */
	LIST_FOREACH(listed, &all, link)
		if (listed == progress)
			break;
	if (listed)
		LIST_REMOVE(listed, link);
	thread = take_thread(progress);
	pthread_mutex_unlock(&all_lock);
	if (thread)
		verve_net_thread_stop(thread);
	pthread_mutex_destroy(&progress->lock);
	free(progress);
}

int verve_progress_add(struct verve_progress *progress, struct verve_engine *engine)
{
	struct client *client = malloc(sizeof(*client));
	int ret = 0;

	if (!client)
		return -FI_ENOMEM;
	client->engine = engine;
	pthread_mutex_lock(&progress->lock);
	if (progress->thread)
		ret = verve_net_thread_watch(progress->thread, verve_engine_fd(engine));
	if (ret) {
		VERVE_WARN(EP_CTRL, "the progress thread cannot watch an endpoint: %s\n",
			   fi_strerror(-ret));
		free(client);
		goto out;
	}
	LIST_INSERT_HEAD(&progress->clients, client, link);
	/* Nobody has armed the engine yet. */
	if (progress->thread)
		verve_net_thread_wake(progress->thread);
out:
	pthread_mutex_unlock(&progress->lock);
	return ret;
}

void verve_progress_remove(struct verve_progress *progress, struct verve_engine *engine)
{
	struct client *client;

	pthread_mutex_lock(&progress->lock);
	LIST_FOREACH(client, &progress->clients, link)
		if (client->engine == engine)
			break;
	if (client)
		LIST_REMOVE(client, link);
	if (client && progress->thread)
		verve_net_thread_unwatch(progress->thread, verve_engine_fd(engine));
	pthread_mutex_unlock(&progress->lock);
	free(client);
}

void verve_progress_fini(void)
{
	struct verve_progress *progress;

	for (;;) {
		struct verve_net_thread *thread = NULL;

		pthread_mutex_lock(&all_lock);
		LIST_FOREACH(progress, &all, link)
			if ((thread = take_thread(progress)))
				break;
		pthread_mutex_unlock(&all_lock);
		if (!thread)
			return;
		verve_net_thread_stop(thread);
	}
}
