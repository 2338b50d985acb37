/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Creating threads: their signals, processors and priority. */
#include "net/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

/*
 * False: the caller has no real-time priority. libc's answer (pthread_getschedparam(3)) may be old:
 * it does not know what sched_setscheduler(2) has set.
 */
static bool is_real_time(int *policy, struct sched_param *param)
{
	*policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	return (*policy == SCHED_FIFO || *policy == SCHED_RR) && !sched_getparam(0, param);
}

/* If it fails, the thread stays where the caller is. */
static void let_roam(pthread_t thread)
{
	cpu_set_t set;

	if (!sched_getaffinity(getpid(), sizeof(set), &set))
		pthread_setaffinity_np(thread, sizeof(set), &set);
}

int verve_thread_create(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
	struct sched_param param;
	sigset_t all, old;
	int ret, policy;

	/* So that no signal handler of the application runs in the thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return -ret;
	pthread_setname_np(*thread, name);
	if (is_real_time(&policy, &param))
		let_roam(*thread);
	return 0;
}

void verve_thread_raise(pthread_t thread)
{
	struct sched_param param;
	int policy;

	if (!is_real_time(&policy, &param) ||
	    param.sched_priority >= sched_get_priority_max(policy))
		return;
	param.sched_priority++;
	pthread_setschedparam(thread, policy, &param);
}
