/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creating threads: where they run, and with which priority, as the watch's thread shows. */
#include "net/thread.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <rdma/providers/fi_prov.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "net/unmaps.h"

enum { PRIORITY = 5, SIZE = 1 << 20, GIVE_UP = 5 /* seconds */ };

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_unmaps *watch;
static volatile bool spinning, enough;
static sem_t opened;

static cpu_set_t only(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

static bool stay_on(int cpu)
{
	cpu_set_t set = only(cpu);

	return !sched_setaffinity(0, sizeof(set), &set);
}

/* False: the process may not have a real-time priority. */
static bool set_priority(int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return !sched_setscheduler(0, policy, &param);
}

/* Skips the test unless the process may use two processors, and real-time priorities. */
static void need_processors_and_priority(void)
{
	if (!stay_on(1) || !stay_on(0) || !set_priority(SCHED_FIFO, PRIORITY) ||
	    !set_priority(SCHED_OTHER, 0))
		cr_skip_test("no second processor, or no real-time priority");
}

struct seen {
	cpu_set_t set;
	int policy, priority;
};

static void *look(void *arg)
{
	struct sched_param param;
	struct seen *seen = arg;

	sem_wait(&opened);
	sched_getaffinity(0, sizeof(seen->set), &seen->set);
	seen->policy = sched_getscheduler(0);
	sched_getparam(0, &param);
	seen->priority = param.sched_priority;
	return NULL;
}

/* Creates a thread that says what it has got. *seen: in, the policy of the creator. */
static void *create(void *arg)
{
	struct seen *seen = arg;
	pthread_t thread;

	cr_assert(stay_on(1));
	if (seen->policy != SCHED_OTHER)
		cr_assert(set_priority(seen->policy, PRIORITY));
	cr_assert_eq(verve_thread_create(&thread, "verve-test", look, seen), 0);
	verve_thread_raise(thread);
	sem_post(&opened);
	pthread_join(thread, NULL);
	return NULL;
}

static struct seen create_by(int policy)
{
	struct seen seen = {.policy = policy};
	pthread_t thread;

	sem_init(&opened, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, create, &seen), 0);
	pthread_join(thread, NULL);
	return seen;
}

Test(thread, an_ordinary_thread_gives_its_processors_on)
{
	cpu_set_t one = only(1);
	struct seen seen;

	need_processors_and_priority();
	seen = create_by(SCHED_OTHER);
	cr_expect(CPU_EQUAL(&seen.set, &one));
	cr_expect(seen.policy == SCHED_OTHER && seen.priority == 0);
}

Test(thread, a_real_time_thread_gives_those_of_the_first_thread_and_more_priority)
{
	cpu_set_t zero = only(0);
	struct seen seen;

	need_processors_and_priority();
	seen = create_by(SCHED_RR);
	cr_expect(CPU_EQUAL(&seen.set, &zero));
	cr_expect(seen.policy == SCHED_RR && seen.priority == PRIORITY + 1);
}

static void on_gone(void *arg, uintptr_t start, uintptr_t end)
{
	(void)arg, (void)start, (void)end;
}

/* As a program that polls at a real-time priority, and leaves its processor to nobody. */
static void *open_and_spin(void *arg)
{
	struct timespec start, now;

	cr_assert(stay_on(1) && set_priority(SCHED_FIFO, PRIORITY));
	cr_assert_eq(verve_net_unmaps_open(on_gone, NULL, &watch), 0);
	spinning = true;
	sem_post(&opened);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (!enough && now.tv_sec - start.tv_sec < GIVE_UP);
	spinning = false;
	return arg;
}

/* Every munmap(2) of watched memory waits for the watch's thread. */
Test(thread, watch_hears_though_who_opened_it_never_sleeps, .timeout = 60)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	pthread_t thread;
	char *memory;

	if (fd < 0 && (errno == EPERM || errno == ENOSYS))
		cr_skip_test("userfaultfd(2) is not allowed here");
	close(fd);
	need_processors_and_priority();
	verve_log_provider = &provider;
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	sem_init(&opened, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, open_and_spin, NULL), 0);
	sem_wait(&opened);
	cr_assert_eq(verve_net_unmaps_add(watch, (uintptr_t)memory, (uintptr_t)memory + SIZE), 0);
	cr_assert_eq(munmap(memory, SIZE), 0);
	cr_expect(spinning);
	enough = true;
	pthread_join(thread, NULL);
	verve_net_unmaps_close(watch);
}
