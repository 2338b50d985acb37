/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress thread: it polls while there is work, then arms the engines, then sleeps on their
 * descriptors.
 */
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

enum { TURNS = 64 }; /* turns of one engine before the next engine is polled */

struct client {
	LIST_ENTRY(client) link;
	struct verve_engine *engine;
};

struct verve_progress {
	LIST_ENTRY(verve_progress) link; /* in all_progress */
	pthread_mutex_t lock;		 /* guards the fields below */
	LIST_HEAD(, client) clients;
	struct verve_net_thread *thread; /* NULL: verve_progress_fini has stopped the thread */
};

/* guards all_progress; taken before the lock of an entry */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, verve_progress) all_progress = LIST_HEAD_INITIALIZER(all_progress);

/*
 * Another thread may have held the lock at the fork(2). The child has none of its parent's threads,
 * so the child has none to stop: the list starts empty.
 */
static void in_child(void)
{
	pthread_mutex_init(&all_lock, NULL);
	LIST_INIT(&all_progress);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/*
 * True: the engine is armed, and has nothing to do. False: there is more to do. Arming clears the
 * engine's descriptor and polls once more. Work that comes after that poll makes the descriptor
 * readable, and the thread watches the descriptor.
 */
static bool poll_or_arm(struct verve_engine *engine)
{
	for (int turn = 0; turn < TURNS; turn++)
		if (!verve_engine_progress(engine))
			return verve_engine_arm(engine) == 0;
	return false;
}

static uint64_t progress_step(void *arg)
{
	struct verve_progress *progress = arg;
	struct client *client;
	bool idle = true;

	pthread_mutex_lock(&progress->lock);
	LIST_FOREACH(client, &progress->clients, link)
		idle &= poll_or_arm(client->engine);
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
	ret = verve_net_thread_start("verve-progress", progress_step, progress, &progress->thread);
	if (ret) {
		VERVE_WARN(DOMAIN, "cannot start a progress thread: %s\n", fi_strerror(-ret));
		pthread_mutex_destroy(&progress->lock);
		free(progress);
		return ret;
	}
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&all_lock);
	LIST_INSERT_HEAD(&all_progress, progress, link);
	pthread_mutex_unlock(&all_lock);
	*progressp = progress;
	return 0;
}

/*
 * Takes the thread out of progress. The caller stops it after releasing all locks, because the
 * thread needs progress->lock to end. NULL: it is stopped already.
 */
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
	/* In a child after fork(2), the list does not have the parent's threads. */
	LIST_FOREACH(listed, &all_progress, link)
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
	/* Wake the thread: nothing has armed this engine yet. */
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
		LIST_FOREACH(progress, &all_progress, link)
			if ((thread = take_thread(progress)))
				break;
		pthread_mutex_unlock(&all_lock);
		if (!thread)
			return;
		verve_net_thread_stop(thread);
	}
}
