/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_stat: the kernel's counters of devices, from a folder instead of /sys. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stat_print.h"

static char folder[] = "/tmp/verve-test-XXXXXX";
static struct verve_stat_look look;
static char *text;
static size_t text_len;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void)
{
	char command[128];

	verve_stat_device_fini(&look.device);
	free(text);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_expect_eq(system(command), 0);
}

TestSuite(stat_device, .init = setup, .fini = teardown);

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_len);
}

static void has(const char *part)
{
	cr_expect_not_null(strstr(text, part), "%s is not in:\n%s", part, text);
}

static void print_table(const struct verve_stat_look *before)
{
	FILE *file = begin();

	verve_stat_print(file, &look, before, false);
	fclose(file);
}

static void write_counter(const char *name, const char *content)
{
	char path[256], *slash;
	FILE *file;

	snprintf(path, sizeof(path), "%s/class/infiniband/rxe0/ports/1/%s", folder, name);
	for (slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	file = fopen(path, "we");
	cr_assert_not_null(file);
	fputs(content, file);
	fclose(file);
}

Test(stat_device, counters_of_devices)
{
	FILE *file;

	write_counter("hw_counters/rnr_nak_retry_err", "3\n");
	write_counter("hw_counters/out_of_sequence", "0\n");
	write_counter("hw_counters/lifespan", "10\n");
	write_counter("hw_counters/port_xmit_data", "7\n");
	write_counter("counters/port_xmit_data", "8\n");
	write_counter("counters/port_rcv_data", "none\n");
	verve_stat_device_read(&look.device, folder);
	cr_expect_eq(look.device.count, 3);
	print_table(NULL);
	has("device rxe0:1 port_xmit_data ");
	has(", rnr_nak_retry_err 3\n");
	file = begin();
	verve_stat_print_prometheus(file, &look);
	fclose(file);
	has("verve_device_counter_total{device=\"rxe0\",port=\"1\",counter=\"out_of_sequence\"} "
	    "0\n");
}

/* One has grown, and one has begun anew, as when the driver was loaded again. */
Test(stat_device, counters_of_devices_that_begin_anew)
{
	struct verve_stat_look before = {0};

	write_counter("hw_counters/rnr_nak_retry_err", "3\n");
	write_counter("counters/port_xmit_data", "8\n");
	verve_stat_device_read(&before.device, folder);
	write_counter("hw_counters/rnr_nak_retry_err", "5\n");
	write_counter("counters/port_xmit_data", "1\n");
	verve_stat_device_read(&look.device, folder);
	print_table(&before);
	has("since the last look port_xmit_data 1, rnr_nak_retry_err 2\n");
	verve_stat_device_fini(&before.device);
}
