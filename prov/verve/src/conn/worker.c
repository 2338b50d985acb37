/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Workers: the queues of jobs, the choice of the next one, and the threads. */
#include "conn/worker.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/log.h"
#include "net/sys.h"

enum {
	WORKERS = 4,
	STRANGERS = 2, /* workers that execute strangers' jobs at the same time, at most */
};

struct worker {
	struct verve_net_thread *thread;
	bool idle; /* sleeps until it is woken */
};

TAILQ_HEAD(owner_list, verve_job_owner);

/* The lock guards all below. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rested = PTHREAD_COND_INITIALIZER; /* some owner has no running job */
static struct worker *workers[WORKERS];
static unsigned worker_count, owner_count, strangers_running;
/* Owners that have queued jobs of a class; the first is the next to be served. */
static struct owner_list turns[VERVE_JOB_CLASSES] = {
	TAILQ_HEAD_INITIALIZER(turns[VERVE_JOB_URGENT]),
	TAILQ_HEAD_INITIALIZER(turns[VERVE_JOB_STRANGER]),
};

/* See engine/service.c: the child has none of the threads, and the lock may have been held. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&rested, NULL);
	worker_count = owner_count = strangers_running = 0;
	for (int class = 0; class < VERVE_JOB_CLASSES; class++)
		TAILQ_INIT(&turns[class]);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static void job_enqueue(struct verve_job *job, enum verve_job_class class)
{
	struct verve_job_owner *owner = job->owner;

	if (TAILQ_EMPTY(&owner->queues[class]))
		TAILQ_INSERT_TAIL(&turns[class], owner, turn[class]);
	job->class = class;
	job->queued = true;
	TAILQ_INSERT_TAIL(&owner->queues[class], job, link);
}

static void job_dequeue(struct verve_job *job)
{
	struct verve_job_owner *owner = job->owner;

	TAILQ_REMOVE(&owner->queues[job->class], job, link);
	job->queued = false;
	if (TAILQ_EMPTY(&owner->queues[job->class]))
		TAILQ_REMOVE(&turns[job->class], owner, turn[job->class]);
}

/* NULL: none may be begun now. */
static struct verve_job *next_job(void)
{
	enum verve_job_class class = VERVE_JOB_URGENT;
	struct verve_job_owner *owner;

	if (TAILQ_EMPTY(&turns[class]))
		class = VERVE_JOB_STRANGER;
	if (class == VERVE_JOB_STRANGER && strangers_running == STRANGERS)
		return NULL;
	owner = TAILQ_FIRST(&turns[class]);
	return owner ? TAILQ_FIRST(&owner->queues[class]) : NULL;
}

static void job_begin(struct verve_job *job)
{
	struct verve_job_owner *owner = job->owner;
	enum verve_job_class class = job->class;

	job_dequeue(job);
	if (!TAILQ_EMPTY(&owner->queues[class])) {
		TAILQ_REMOVE(&turns[class], owner, turn[class]);
		TAILQ_INSERT_TAIL(&turns[class], owner, turn[class]);
	}
	owner->running++;
	strangers_running += class == VERVE_JOB_STRANGER;
}

/* The mail comes before running is counted down, so that the owner stays until then. */
static void job_end(struct verve_job *job)
{
	struct verve_job_owner *owner = job->owner;
	enum verve_job_class class = job->class;

	if (verve_mailbox_put(&owner->done, &job->mail))
		owner->wake(owner->arg);
	pthread_mutex_lock(&lock);
	strangers_running -= class == VERVE_JOB_STRANGER;
	if (!--owner->running)
		pthread_cond_broadcast(&rested);
	pthread_mutex_unlock(&lock);
}

static uint64_t worker_step(void *arg);

static int worker_start(void)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	int ret;

	if (!worker)
		return -FI_ENOMEM;
	ret = verve_net_thread_start("verve-worker", worker_step, worker, &worker->thread);
	if (ret) {
		free(worker);
		return ret;
	}
	workers[worker_count++] = worker;
	return 0;
}

static struct worker *find_idle(void)
{
	for (unsigned i = 0; i < worker_count; i++)
		if (workers[i]->idle)
			return workers[i];
	return NULL;
}

/*
 * There is something new to do: wakes a worker that sleeps, or starts one more. The error matters
 * only if there is no worker at all.
 */
static int call_worker(void)
{
	struct worker *worker = find_idle();
	int ret = 0;

	if (worker) {
		worker->idle = false;
		verve_net_thread_wake(worker->thread);
	} else if (worker_count < WORKERS) {
		ret = worker_start();
	}
	return worker_count ? 0 : ret;
}

/* Executes one job. */
static uint64_t worker_step(void *arg)
{
	struct worker *worker = arg;
	struct verve_job *job;

	pthread_mutex_lock(&lock);
	job = next_job();
	worker->idle = !job;
	if (job)
		job_begin(job);
	pthread_mutex_unlock(&lock);
	if (!job)
		return UINT64_MAX;
	job->run(job);
	job_end(job);
	return 0;
}

void verve_worker_open(struct verve_job_owner *owner, void (*wake)(void *arg), void *arg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	verve_mailbox_init(&owner->done);
	owner->wake = wake;
	owner->arg = arg;
	owner->running = 0;
	for (int class = 0; class < VERVE_JOB_CLASSES; class++)
		TAILQ_INIT(&owner->queues[class]);
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&lock);
	owner_count++;
	pthread_mutex_unlock(&lock);
}

static void log_no_worker(int ret)
{
	const char *remedy = "";

	if (ret == -FI_EMFILE)
		remedy = ": raise the limit of descriptors (ulimit -n)";
	else if (ret == -FI_EAGAIN)
		remedy = ": raise the limit of threads (ulimit -u; pids.max of the control group)";
	VERVE_WARN(EP_CTRL, "cannot start a thread for queue pairs: %s%s\n", fi_strerror(-ret),
		   remedy);
}

int verve_worker_prepare(void)
{
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!worker_count)
		ret = worker_start();
	pthread_mutex_unlock(&lock);
	if (ret)
		log_no_worker(ret);
	return ret;
}

int verve_worker_put(struct verve_job_owner *owner, struct verve_job *job,
		     enum verve_job_class class)
{
	int ret;

	job->owner = owner;
	job->dropped = false;
	pthread_mutex_lock(&lock);
	ret = call_worker();
	if (!ret)
		job_enqueue(job, class);
	pthread_mutex_unlock(&lock);
	if (ret)
		log_no_worker(ret);
	return ret;
}

void verve_worker_hurry(struct verve_job *job)
{
	pthread_mutex_lock(&lock);
	if (job->queued && job->class == VERVE_JOB_STRANGER) {
		job_dequeue(job);
		job_enqueue(job, VERVE_JOB_URGENT);
		call_worker();
	}
	pthread_mutex_unlock(&lock);
}

static void drop_queued(struct verve_job_owner *owner)
{
	struct verve_job *job;

	for (int class = 0; class < VERVE_JOB_CLASSES; class++) {
		while ((job = TAILQ_FIRST(&owner->queues[class]))) {
			job_dequeue(job);
			job->dropped = true;
			verve_mailbox_put(&owner->done, &job->mail);
		}
	}
}

/* Moves the workers to taken, which has room for all. Returns their number. */
static unsigned take_workers(struct worker **taken)
{
	unsigned count = worker_count;

	for (unsigned i = 0; i < count; i++)
		taken[i] = workers[i];
	worker_count = 0;
	return count;
}

/* The lock is not held, because a worker needs it to end. */
static void stop_workers(struct worker **taken, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		verve_net_thread_stop(taken[i]->thread);
		free(taken[i]);
	}
}

void verve_worker_close(struct verve_job_owner *owner)
{
	struct worker *last[WORKERS];
	unsigned count = 0;

	pthread_mutex_lock(&lock);
	drop_queued(owner);
	while (owner->running)
		pthread_cond_wait(&rested, &lock);
	if (!--owner_count)
		count = take_workers(last);
	pthread_mutex_unlock(&lock);
	stop_workers(last, count);
}

void verve_worker_fini(void)
{
	struct worker *last[WORKERS];
	unsigned count;

	pthread_mutex_lock(&lock);
	count = take_workers(last);
	pthread_mutex_unlock(&lock);
	stop_workers(last, count);
}
