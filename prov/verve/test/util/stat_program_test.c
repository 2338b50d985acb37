/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_stat: the program's options and exit status. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
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
