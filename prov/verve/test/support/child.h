/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Children of a test: what must hold after fork(2), and misuse that must end a process. */
#ifndef VERVE_TEST_SUPPORT_CHILD_H
#define VERVE_TEST_SUPPORT_CHILD_H

#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* Waits for the child's end. Returns its status, as waitpid(2) gives it. */
static inline int child_wait(pid_t child)
{
	int status = 0;

	cr_assert_gt(child, 0, "there is no child");
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

/* Waits for the child's end, and expects exit code 0. */
static inline void child_expect_success(pid_t child)
{
	int status = child_wait(child);

	cr_expect_eq(status, 0, "status %#x", status);
}

/* Forks a child that may abort: Criterion does not see the signal, and its words are not shown. */
static inline pid_t child_fork_to_abort(void)
{
	pid_t child = fork();

	if (!child) {
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
	}
	return child;
}

/* Waits for the child's end. True: the child called abort(3). */
static inline bool child_has_aborted(pid_t child)
{
	int status = child_wait(child);

	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
