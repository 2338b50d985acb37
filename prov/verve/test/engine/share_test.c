/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Share: a device's queue pairs and the host's memory, divided among the host's processes. */
#include "engine/share.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "net/device.h"

static const char *const names[] = {
	"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE", "MV2_COMM_WORLD_LOCAL_SIZE",
	"PALS_LOCAL_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE",
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void setup(void)
{
	for (int i = 0; i < NAMES; i++)
		unsetenv(names[i]);
	verve_config.max_conns = SIZE_MAX;
	verve_config.rx_buffers = SIZE_MAX;
	verve_config.rx_limit = SIZE_MAX;
}

TestSuite(share, .init = setup);

static uint32_t conns(uint32_t qps, const char *processes)
{
	struct verve_net_limits limits = {.qp = qps};

	setenv(names[NAMES - 1], processes, 1);
	return verve_share_conns(&limits);
}

Test(share, processes_are_those_of_the_launcher)
{
	cr_expect_eq(verve_share_processes(), sysconf(_SC_NPROCESSORS_ONLN));
	for (int i = 0; i < NAMES; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d(x2)", 100 + i);
		setenv(names[i], text, 1);
		cr_expect_eq(verve_share_processes(), 100 + i, "the later one counts");
	}
	setenv(names[NAMES - 1], "many", 1);
	setenv(names[NAMES - 2], "0", 1);
	setenv(names[NAMES - 3], "70000", 1);
	cr_expect_eq(verve_share_processes(), 102);
}

Test(share, is_of_the_device)
{
	cr_expect_eq(conns(131072, "128"), 768);
	cr_expect_eq(conns(262144, "128"), 1536);
	cr_expect_eq(conns(131072, "24"), 4096);
	cr_expect_eq(conns(UINT32_MAX, "1"), 4096);
	cr_expect_eq(conns(500, "128"), 16);
	cr_expect_eq(conns(0, "1"), 16);
}

Test(share, is_what_the_user_says)
{
	verve_config.max_conns = 65536;
	cr_expect_eq(conns(100, "128"), 65536);
	verve_config.max_conns = 0;
	cr_expect_eq(conns(100, "128"), 0);
}

static size_t memory(void)
{
	return (size_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static uint32_t buffers(size_t size, const char *processes)
{
	setenv(names[NAMES - 1], processes, 1);
	return verve_share_buffers(size);
}

Test(share, buffers_take_a_part_of_the_memory)
{
	cr_expect_eq(buffers(memory() / 32 / 2000, "1"), 2000);
	cr_expect_eq(buffers(memory() / 32 / 6000, "3"), 2000);
	cr_expect_eq(buffers(memory() / 32 / 6000, "1"), 4096);
	cr_expect_eq(buffers(memory() / 32 / 6000, "60"), 1024);
	cr_expect_eq(buffers(SIZE_MAX, "1"), 1024);
}

Test(share, buffers_fit_the_memory_that_may_be_locked)
{
	verve_config.locked = 3000000;
	cr_expect_eq(buffers(1000, "1"), 3000);
	verve_config.locked = memory();
	cr_expect_eq(buffers(memory() / 32 / 6000, "60"), 1024, "a process's share is less");
	verve_config.locked = 3000000;
	cr_expect_eq(buffers(1000000, "1"), 16);
	verve_config.locked = SIZE_MAX;
}

Test(share, buffers_are_what_the_user_says)
{
	verve_config.rx_limit = 16;
	cr_expect_eq(buffers(1, "1"), 16);
	verve_config.rx_limit = 32768;
	cr_expect_eq(buffers(SIZE_MAX, "128"), 32768);
}

Test(share, uncredited_buffers_are_what_the_user_says_or_a_number_below_the_limit)
{
	cr_expect_eq(verve_share_uncredited_buffers(4096), 256);
	cr_expect_eq(verve_share_uncredited_buffers(100), 100);
	verve_config.rx_buffers = 3000;
	cr_expect_eq(verve_share_uncredited_buffers(100), 3000);
}

Test(share, first_buffers_are_what_the_user_says_or_one_window_and_some)
{
	cr_expect_eq(verve_share_first_buffers(64, 256), 96);
	cr_expect_eq(verve_share_first_buffers(64, 95), 95);
	cr_expect_eq(verve_share_first_buffers(UINT32_MAX, 256), 256);
	verve_config.rx_buffers = 3000;
	cr_expect_eq(verve_share_first_buffers(64, 3000), 3000);
}
