/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Workers, with real threads: who overtakes whom, and for what an owner waits. Gates hold jobs, so
 * that nothing depends on time.
 */
#include "conn/worker.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/log.h"

enum { WORKERS = 4, STRANGERS_AT_WORK = 2, JOBS = 64, OWNERS = 4, LOAD = 2000 };

/* A job waits until its gate is open. */
struct gate {
	bool open;
	unsigned inside, most; /* jobs that have begun and not ended: now, and at most so far */
};

struct task {
	struct verve_job job;
	struct gate *gate; /* NULL: the job does not wait */
	unsigned number, place; /* place: how many jobs began before */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned begun;
static struct task tasks[JOBS];

static void setup(void)
{
	static struct fi_provider provider = {.name = "test"};

	verve_log_provider = &provider;
	begun = 0;
}

TestSuite(worker, .init = setup);

static void task_run(struct verve_job *job)
{
	struct task *task = (struct task *)job;
	struct gate *gate = task->gate;

	pthread_mutex_lock(&lock);
	task->place = begun++;
	if (gate && ++gate->inside > gate->most)
		gate->most = gate->inside;
	pthread_cond_broadcast(&changed);
	while (gate && !gate->open)
		pthread_cond_wait(&changed, &lock);
	if (gate)
		gate->inside--;
	pthread_mutex_unlock(&lock);
}

static void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&lock);
	gate->open = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* Waits until count jobs stand at the gate. */
static void gate_await(struct gate *gate, unsigned count)
{
	pthread_mutex_lock(&lock);
	while (gate->inside != count)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void task_put(struct verve_job_owner *owner, struct task *task, struct gate *gate,
		     enum verve_job_class class)
{
	*task = (struct task){.gate = gate, .job.run = task_run};
	cr_assert_eq(verve_worker_put(owner, &task->job, class), 0);
}

/* Waits for the owner's next mail. */
static struct task *take(struct verve_job_owner *owner, struct verve_mail **mail)
{
	struct task *task;

	while (!*mail) {
		*mail = verve_mailbox_take(&owner->done);
		sched_yield();
	}
	task = (struct task *)*mail;
	*mail = (*mail)->next;
	return task;
}

static void nothing(void *arg)
{
	(void)arg;
}

static void count_wake(void *arg)
{
	pthread_mutex_lock(&lock);
	++*(unsigned *)arg;
	pthread_mutex_unlock(&lock);
}

/* The first connection of a daemon may come when all its descriptors are in use. */
Test(worker, later_lack_of_descriptors_leaves_the_first)
{
	struct rlimit none = {.rlim_cur = 0, .rlim_max = 1024};
	struct verve_job_owner owner;
	struct verve_mail *mail = NULL;

	verve_worker_open(&owner, nothing, NULL);
	cr_assert_eq(verve_worker_prepare(), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (unsigned i = 0; i < JOBS; i++)
		task_put(&owner, &tasks[i], NULL, VERVE_JOB_STRANGER);
	for (unsigned i = 0; i < JOBS; i++)
		take(&owner, &mail);
	none.rlim_cur = none.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	verve_worker_close(&owner);
}

Test(worker, lack_of_descriptors_is_told_before_there_are_jobs)
{
	struct rlimit none = {.rlim_cur = 0, .rlim_max = 1024};
	struct verve_job_owner owner;
	int ret;

	verve_worker_open(&owner, nothing, NULL);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = verve_worker_prepare();
	none.rlim_cur = none.rlim_max; /* Criterion needs some */
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(ret, -FI_EMFILE);
	verve_worker_close(&owner);
}

Test(worker, jobs_come_back_and_wake_their_owner)
{
	struct verve_job_owner owner;
	struct verve_mail *mail = NULL;
	unsigned wakes = 0;

	verve_worker_open(&owner, count_wake, &wakes);
	for (int i = 0; i < JOBS; i++)
		task_put(&owner, &tasks[i], NULL, (enum verve_job_class)(i % VERVE_JOB_CLASSES));
	for (int i = 0; i < JOBS; i++)
		cr_expect_not(take(&owner, &mail)->job.dropped);
	verve_worker_close(&owner);
	cr_expect(verve_mailbox_is_empty(&owner.done));
	cr_expect_eq(begun, JOBS);
	cr_expect_geq(wakes, 1);
}

/* All workers stand at gates; gate_one is that of the only worker who goes on. */
static void occupy(struct verve_job_owner *owner, struct gate *gate, struct gate *gate_one)
{
	for (int i = 0; i < WORKERS; i++)
		task_put(owner, &tasks[i], i ? gate : gate_one, VERVE_JOB_URGENT);
	gate_await(gate, WORKERS - 1);
	gate_await(gate_one, 1);
}

Test(worker, urgent_jobs_overtake_strangers)
{
	struct verve_job_owner owner, other;
	struct verve_mail *mail = NULL;
	struct gate gate = {0}, gate_one = {0};

	verve_worker_open(&owner, nothing, NULL);
	verve_worker_open(&other, nothing, NULL);
	occupy(&owner, &gate, &gate_one);
	for (int i = 10; i < 20; i++)
		task_put(&other, &tasks[i], NULL, VERVE_JOB_STRANGER);
	task_put(&owner, &tasks[20], NULL, VERVE_JOB_STRANGER);
	task_put(&owner, &tasks[21], NULL, VERVE_JOB_URGENT);
	verve_worker_hurry(&tasks[19].job);
	gate_open(&gate_one);
	for (int i = 10; i < 20; i++)
		take(&other, &mail);
	gate_open(&gate);
	verve_worker_close(&owner);
	verve_worker_close(&other);
	cr_expect_eq(tasks[21].place, WORKERS);
	cr_expect_eq(tasks[19].place, WORKERS + 1, "whom this side asks for is no stranger");
}

/* One owner's thirty jobs do not keep another owner's waiting. */
Test(worker, owners_take_turns)
{
	struct verve_job_owner many, few;
	struct verve_mail *mail = NULL;
	struct gate gate = {0}, gate_one = {0};

	verve_worker_open(&many, nothing, NULL);
	verve_worker_open(&few, nothing, NULL);
	occupy(&many, &gate, &gate_one);
	for (int i = 10; i < 40; i++)
		task_put(&many, &tasks[i], NULL, VERVE_JOB_URGENT);
	task_put(&few, &tasks[40], NULL, VERVE_JOB_URGENT);
	gate_open(&gate_one);
	cr_expect_eq(take(&few, &mail), &tasks[40]);
	gate_open(&gate);
	verve_worker_close(&few);
	verve_worker_close(&many);
	cr_expect_eq(tasks[40].place, WORKERS + 1);
}

Test(worker, strangers_never_have_all_workers)
{
	struct verve_job_owner owner;
	struct verve_mail *mail = NULL;
	struct gate gate = {0};

	verve_worker_open(&owner, nothing, NULL);
	for (int i = 0; i < 10; i++)
		task_put(&owner, &tasks[i], &gate, VERVE_JOB_STRANGER);
	gate_await(&gate, STRANGERS_AT_WORK);
	for (int i = 10; i < 20; i++) {
		task_put(&owner, &tasks[i], NULL, VERVE_JOB_URGENT);
		cr_expect_eq(take(&owner, &mail), &tasks[i]);
	}
	gate_open(&gate);
	for (int i = 0; i < 10; i++)
		take(&owner, &mail);
	verve_worker_close(&owner);
	cr_expect_eq(gate.most, STRANGERS_AT_WORK);
}

static void *close_owner(void *owner)
{
	verve_worker_close(owner);
	return NULL;
}

/* One owner's job stands at the gate all the time. */
Test(worker, owner_that_leaves_waits_only_for_its_own)
{
	struct verve_job_owner stays, leaves;
	struct gate gate = {0}, own = {0};
	pthread_t thread;
	unsigned dropped = 0;

	verve_worker_open(&stays, nothing, NULL);
	verve_worker_open(&leaves, nothing, NULL);
	for (int i = 0; i < WORKERS - 1; i++)
		task_put(&stays, &tasks[i], &gate, VERVE_JOB_URGENT);
	task_put(&leaves, &tasks[10], &own, VERVE_JOB_URGENT);
	gate_await(&gate, WORKERS - 1);
	gate_await(&own, 1);
	for (int i = 11; i < 20; i++)
		task_put(&leaves, &tasks[i], NULL, (enum verve_job_class)(i % VERVE_JOB_CLASSES));
	pthread_create(&thread, NULL, close_owner, &leaves);
	gate_open(&own);
	pthread_join(thread, NULL);
	for (struct verve_mail *mail = verve_mailbox_take(&leaves.done); mail; mail = mail->next)
		dropped += ((struct verve_job *)mail)->dropped;
	cr_expect_not(tasks[10].job.dropped);
	cr_expect_eq(dropped + begun, WORKERS + 9, "each job was dropped, or has begun");
	gate_open(&gate);
	verve_worker_close(&stays);
}

/* Owners come and go, each in a thread of its own, and start and end the workers meanwhile. */
static void *load(void *arg)
{
	struct verve_job_owner owner;
	struct verve_mail *mail = NULL;
	struct task task[8];

	(void)arg;
	for (int round = 0; round < LOAD / 8; round++) {
		verve_worker_open(&owner, nothing, NULL);
		for (int i = 0; i < 8; i++)
			task_put(&owner, &task[i], NULL,
				 (enum verve_job_class)(i % VERVE_JOB_CLASSES));
		verve_worker_hurry(&task[7].job);
		for (int i = 0; i < round % 8; i++)
			take(&owner, &mail);
		verve_worker_close(&owner);
		mail = NULL;
	}
	return NULL;
}

Test(worker, owners_come_and_go)
{
	pthread_t threads[OWNERS];

	for (int i = 0; i < OWNERS; i++)
		pthread_create(&threads[i], NULL, load, NULL);
	for (int i = 0; i < OWNERS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_leq(begun, OWNERS * LOAD);
	cr_expect_gt(begun, 0);
}
