/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* System: the thread runs its step when it should. The tests wait for events, never for a time. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/child.h"
#include "net/sys.h"

struct seen {
	sem_t steps; /* one for each step taken */
	uint64_t sleep; /* what the step returns */
	int fd; /* the step reads a byte from it; negative: none */
	bool signals_blocked;
	char name[16];
};

static uint64_t step(void *arg)
{
	struct seen *seen = arg;
	sigset_t mask;
	char byte;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	seen->signals_blocked = sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGALRM);
	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	if (seen->fd >= 0)
		cr_assert_geq(read(seen->fd, &byte, 1), -1);
	sem_post(&seen->steps);
	return seen->sleep;
}

static struct verve_net_thread *start(struct seen *seen, uint64_t sleep)
{
	struct verve_net_thread *thread;

	memset(seen, 0, sizeof(*seen));
	sem_init(&seen->steps, 0, 0);
	seen->sleep = sleep;
	seen->fd = -1;
	cr_assert_eq(verve_net_thread_start("verve-test", step, seen, &thread), 0);
	return thread;
}

static void await_steps(struct seen *seen, int count)
{
	while (count--)
		while (sem_wait(&seen->steps))
			;
}

Test(sys, clock_goes_forward)
{
	uint64_t before = verve_net_now(), after;

	verve_net_pause();
	after = verve_net_now();
	cr_expect_geq(after, before);
	cr_expect_gt(before, 0);
}

Test(sys, random_bytes_differ)
{
	unsigned char a[32] = {0}, b[32] = {0};

	verve_net_random(a, sizeof(a));
	verve_net_random(b, sizeof(b));
	cr_expect_neq(memcmp(a, b, sizeof(a)), 0);
}

Test(sys, steps_once_at_the_start)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, UINT64_MAX);

	await_steps(&seen, 1);
	verve_net_thread_stop(thread);
}

Test(sys, steps_again_when_its_time_has_come)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, 1);

	await_steps(&seen, 5);
	verve_net_thread_stop(thread);
}

Test(sys, steps_when_woken)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, UINT64_MAX);

	for (int i = 0; i < 100; i++) {
		await_steps(&seen, 1);
		verve_net_thread_wake(thread);
	}
	await_steps(&seen, 1);
	verve_net_thread_stop(thread);
}

Test(sys, steps_when_a_descriptor_is_readable)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, UINT64_MAX);
	int fds[2];

	cr_assert_eq(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
	await_steps(&seen, 1);
	seen.fd = fds[0];
	cr_assert_eq(verve_net_thread_watch(thread, fds[0]), 0);
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(write(fds[1], "x", 1), 1);
		await_steps(&seen, 1);
	}
	verve_net_thread_unwatch(thread, fds[0]);
	verve_net_thread_stop(thread);
	close(fds[0]);
	close(fds[1]);
}

Test(sys, negative_descriptors_are_ignored)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, UINT64_MAX);

	cr_expect_eq(verve_net_thread_watch(thread, -1), 0);
	verve_net_thread_unwatch(thread, -1);
	verve_net_thread_stop(thread);
}

Test(sys, a_bad_descriptor_is_an_error)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, UINT64_MAX);

	cr_expect_lt(verve_net_thread_watch(thread, 1 << 20), 0);
	verve_net_thread_stop(thread);
}

/*
 * verve_net_thread_stop writes its wake-up while the thread is about to read one: the thread must
 * not take that wake-up and then sleep for ever. read and write here replace libc's, and hold the
 * thread until the wake-up is written.
 */
static struct {
	_Atomic bool on;
	pthread_t stopper;
	sem_t reads, written;
} gate;

ssize_t read(int fd, void *buf, size_t len)
{
	if (gate.on && !pthread_equal(pthread_self(), gate.stopper)) {
		sem_post(&gate.reads);
		sem_wait(&gate.written);
	}
	return syscall(SYS_read, fd, buf, len);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	ssize_t ret = syscall(SYS_write, fd, buf, len);

	if (gate.on) {
		gate.on = false;
		sem_post(&gate.written);
	}
	return ret;
}

Test(sys, thread_that_is_stopped_while_it_looks_for_a_wake_ends, .timeout = 60)
{
	struct verve_net_thread *thread;
	struct seen seen;

	sem_init(&gate.reads, 0, 0);
	sem_init(&gate.written, 0, 0);
	gate.stopper = pthread_self();
	gate.on = true;
	thread = start(&seen, UINT64_MAX);
	while (sem_wait(&gate.reads))
		;
	verve_net_thread_stop(thread);
	cr_expect_not(gate.on);
}

Test(sys, thread_has_its_name_and_no_signals)
{
	sigset_t before, after;
	struct seen seen;
	struct verve_net_thread *thread;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	thread = start(&seen, UINT64_MAX);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	await_steps(&seen, 1);
	/* The thread gets its name after it was created: only a later step surely sees it. */
	verve_net_thread_wake(thread);
	await_steps(&seen, 1);
	cr_expect(seen.signals_blocked);
	cr_expect_str_eq(seen.name, "verve-test");
	cr_expect_eq(sigismember(&before, SIGUSR1), sigismember(&after, SIGUSR1));
	verve_net_thread_stop(thread);
}

/* The child has no thread to join: stop must not hang there, nor stop the parent's thread. */
Test(sys, stop_in_a_forked_child_returns)
{
	struct seen seen;
	struct verve_net_thread *thread = start(&seen, UINT64_MAX);
	pid_t pid;

	await_steps(&seen, 1);
	pid = fork();
	if (!pid) {
		verve_net_thread_stop(thread);
		_exit(0);
	}
	child_expect_success(pid);
	verve_net_thread_wake(thread);
	await_steps(&seen, 1);
	verve_net_thread_stop(thread);
}
