/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The run directory: whose folder and whose file is taken, and who counts as dead. */
#include "base/rundir.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/dev/shm/verve-test-XXXXXX", link_path[64];
static int dir;

/* The signal of a profiler, of which one waits whenever it is not blocked. */
static bool is_profiled;

int __wrap_posix_fallocate(int file, off_t offset, off_t len);
int __real_posix_fallocate(int file, off_t offset, off_t len);

/* tmpfs gives up where a signal waits, and has then allocated nothing. */
int __wrap_posix_fallocate(int file, off_t offset, off_t len)
{
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	if (is_profiled && !sigismember(&blocked, SIGPROF))
		return EINTR;
	return __real_posix_fallocate(file, offset, len);
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	snprintf(link_path, sizeof(link_path), "%s.link", folder);
	dir = verve_rundir_open(folder, geteuid(), false);
	cr_assert_geq(dir, 0);
}

/* Every test removes what it made. */
static void teardown(void)
{
	close(dir);
	cr_expect_eq(rmdir(folder), 0, "the folder is not empty");
}

TestSuite(rundir, .init = setup, .fini = teardown);

Test(rundir, a_signal_does_not_keep_a_file_from_being_made)
{
	sigset_t blocked;
	int file;

	is_profiled = true;
	file = verve_rundir_create(dir, 4096);
	cr_assert_geq(file, 0);
	cr_expect_eq(verve_rundir_allocate(file, 4096, 4096), 0);
	close(file);
	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	cr_expect_not(sigismember(&blocked, SIGPROF));
}

Test(rundir, another_users_folder_is_refused)
{
	cr_expect_eq(verve_rundir_open(folder, geteuid() + 1, false), -FI_EPERM);
}

Test(rundir, a_folder_open_to_others_is_refused)
{
	cr_assert_eq(chmod(folder, 0710), 0);
	cr_expect_eq(verve_rundir_open(folder, geteuid(), true), -FI_EPERM);
}

Test(rundir, a_symbolic_link_is_refused)
{
	cr_assert_eq(symlink(folder, link_path), 0);
	cr_expect_lt(verve_rundir_open(link_path, geteuid(), true), 0);
	cr_assert_eq(unlink(link_path), 0);
}

Test(rundir, a_missing_folder_is_made_if_asked_for)
{
	int made;

	cr_expect_eq(verve_rundir_open(link_path, geteuid(), false), -FI_ENOENT);
	made = verve_rundir_open(link_path, geteuid(), true);
	cr_expect_geq(made, 0);
	close(made);
	cr_expect_eq(rmdir(link_path), 0);
}

static void make_file(const char *name)
{
	int file = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY, 0600);

	cr_assert_geq(file, 0);
	close(file);
}

Test(rundir, only_names_of_pages_are_opened)
{
	static const char *const names[] = {
		"1",	      "1.",	   "1.0123456",	 "1.012345678",
		"x.01234567", ".01234567", "1.0123456G", "1234567890.01234567"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_file(names[i]);
		cr_expect_eq(verve_rundir_open_file(dir, names[i], geteuid()), -FI_EPERM, "%s",
			     names[i]);
		cr_expect_eq(verve_rundir_reap(dir, geteuid()), 0, "%s", names[i]);
		cr_assert_eq(unlinkat(dir, names[i], 0), 0);
	}
}

Test(rundir, only_plain_files_of_the_user_are_opened)
{
	const char *name = "1.01234567";

	cr_assert_eq(mkfifoat(dir, name, 0600), 0);
	cr_expect_eq(verve_rundir_open_file(dir, name, geteuid()), -FI_EPERM);
	cr_assert_eq(unlinkat(dir, name, 0), 0);
	cr_assert_eq(symlinkat("/etc/passwd", dir, name), 0);
	cr_expect_lt(verve_rundir_open_file(dir, name, geteuid()), 0);
	cr_assert_eq(unlinkat(dir, name, 0), 0);
	make_file(name);
	cr_expect_eq(verve_rundir_open_file(dir, name, geteuid() + 1), -FI_EPERM);
	cr_expect_eq(verve_rundir_reap(dir, geteuid()), 1, "nobody has locked the file");
}

Test(rundir, a_file_with_two_names_is_refused)
{
	make_file("1.01234567");
	cr_assert_eq(linkat(dir, "1.01234567", dir, "2.01234567", 0), 0);
	cr_expect_eq(verve_rundir_open_file(dir, "1.01234567", geteuid()), -FI_EPERM);
	cr_expect_eq(verve_rundir_open_file(dir, "2.01234567", geteuid()), -FI_EPERM);
	cr_assert_eq(unlinkat(dir, "2.01234567", 0), 0);
	cr_expect_eq(verve_rundir_reap(dir, geteuid()), 1);
}

Test(rundir, own_file_is_left_alone)
{
	int file = verve_rundir_create(dir, 4096);
	char name[VERVE_RUNDIR_NAME];

	cr_assert_geq(file, 0);
	cr_assert_eq(verve_rundir_link(dir, file, name), 0);
	cr_expect_eq(verve_rundir_open_file(dir, name, geteuid()), -FI_EPERM);
	cr_expect_eq(verve_rundir_reap(dir, geteuid()), 0);
	cr_expect_eq(unlinkat(dir, name, 0), 0);
	close(file);
}

/* A child that has a file, and lives until it is killed. Returns when the file has its name. */
static pid_t start_child(char *name)
{
	int pipes[2];
	pid_t pid;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		int file = verve_rundir_create(dir, 4096);
		char own[VERVE_RUNDIR_NAME] = "";

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (file >= 0)
			verve_rundir_link(dir, file, own);
		(void)!write(pipes[1], own, sizeof(own));
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(read(pipes[0], name, VERVE_RUNDIR_NAME), VERVE_RUNDIR_NAME);
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

Test(rundir, a_killed_process_is_dead_and_its_file_is_removed)
{
	char name[VERVE_RUNDIR_NAME];
	pid_t child = start_child(name), pid;
	struct stat stat;
	int file = verve_rundir_open_file(dir, name, geteuid());

	cr_assert_geq(file, 0);
	cr_expect_eq(fstat(file, &stat), 0);
	cr_expect_eq(stat.st_mode & 0777, 0600);
	cr_expect_eq(stat.st_blocks * 512, 4096, "the file has its memory from the start");
	cr_expect(verve_rundir_is_alive(file, &pid));
	cr_expect_eq(pid, child);
	cr_expect_eq(verve_rundir_reap(dir, geteuid()), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	cr_expect_not(verve_rundir_is_alive(file, &pid));
	cr_expect_eq(verve_rundir_reap(dir, geteuid()), 1);
	close(file);
}

Test(rundir, a_limit_of_file_sizes_is_heeded)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 4095;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	/* Without the look at the limit, SIGXFSZ ends the test. */
	cr_expect_eq(verve_rundir_create(dir, 4096), -FI_E2BIG);
}
