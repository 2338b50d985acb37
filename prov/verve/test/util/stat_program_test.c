/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_stat: the program's options and exit status. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(stat_program, exit_status_of_the_program)
{
	char folder[] = "/dev/shm/verve-test-XXXXXX", command[256];

	cr_assert_not_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "FI_VERVE_STAT=%s %s/verve_stat >/dev/null", folder,
		 TOOLS);
	cr_expect_eq(WEXITSTATUS(system(command)), 0);
	cr_expect_eq(WEXITSTATUS(system(TOOLS "/verve_stat --help >/dev/null")), 0);
	cr_expect_eq(WEXITSTATUS(system(TOOLS "/verve_stat -d /proc 2>/dev/null")), 2);
	cr_expect_eq(WEXITSTATUS(system(TOOLS "/verve_stat -d /dev/shm/none 2>/dev/null")), 2);
	cr_expect_eq(WEXITSTATUS(system("FI_VERVE_STAT=/dev/shm/none " TOOLS "/verve_stat")), 0);
	cr_expect_eq(WEXITSTATUS(system(TOOLS "/verve_stat -j -p 2>/dev/null")), 2);
	cr_expect_eq(WEXITSTATUS(system(TOOLS "/verve_stat -w0 2>/dev/null")), 2);
	cr_expect_eq(WEXITSTATUS(system(TOOLS "/verve_stat -n 0 2>/dev/null")), 2);
	snprintf(command, sizeof(command), TOOLS "/verve_stat -d %s -e 10.0.0.2", folder);
	cr_expect_eq(WEXITSTATUS(system(command)), 1);
	snprintf(command, sizeof(command), TOOLS "/verve_stat -d %s -w0.001 -n 2 >/dev/null",
		 folder);
	cr_expect_eq(WEXITSTATUS(system(command)), 0);
	cr_expect_eq(rmdir(folder), 0);
}

/* What it says on standard error, where the usage or the output is wrong. */
static void expect_said(const char *args, const char *part)
{
	char command[256], said[512];
	FILE *pipe;

	snprintf(command, sizeof(command), TOOLS "/verve_stat %s 2>&1 >/dev/full", args);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	said[fread(said, 1, sizeof(said) - 1, pipe)] = '\0';
	cr_expect_eq(WEXITSTATUS(pclose(pipe)), 2, "%s", args);
	cr_expect_not_null(strstr(said, part), "%s: %s", args, said);
}

Test(stat_program, wrong_usage_has_a_reason)
{
	expect_said("-w 2", "seconds are given as -w2");
	expect_said("--watch=0", "--watch takes seconds");
	expect_said("--count=0", "--count takes a number");
	expect_said("-j -p", "exclude each other");
	expect_said("-j", "cannot write: No space left on device");
}
