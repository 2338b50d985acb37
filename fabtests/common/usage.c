/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "common/usage.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind this word in a file of /proc/PID. */
static long read_kb(pid_t pid, const char *of, const char *name)
{
	char path[64], line[256];
	long value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, of);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name), NULL, 10);
	if (file)
		fclose(file);
	return value;
}

long usage_status_kb(pid_t pid, const char *name)
{
	return read_kb(pid, "status", name);
}

long usage_share_kb(pid_t pid)
{
	return read_kb(pid, "smaps_rollup", "Pss:");
}

long usage_heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return (long)(info.uordblks + info.hblkhd);
}
