/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The kernel's counters of devices. */
#include "stat_device.h"

#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False: the file holds no number, or cannot be read. */
static bool read_number(const char *path, uint64_t *value)
{
	FILE *file = fopen(path, "re");
	bool is_number = file && fscanf(file, "%" SCNu64, value) == 1;

	if (file)
		fclose(file);
	return is_number;
}

/* path: ".../infiniband/DEVICE/ports/N/hw_counters/NAME". */
static bool split(char *path, struct verve_stat_counter *counter)
{
	char *part[6];

	for (int i = 5; i >= 0; i--) {
		part[i] = strrchr(path, '/');
		if (!part[i])
			return false;
		*part[i]++ = '\0';
	}
	return snprintf(counter->device, VERVE_STAT_NAME, "%s", part[1]) < VERVE_STAT_NAME &&
	       snprintf(counter->port, VERVE_STAT_NAME, "%s", part[3]) < VERVE_STAT_NAME &&
	       snprintf(counter->name, VERVE_STAT_NAME, "%s", part[5]) < VERVE_STAT_NAME;
}

static int by_name(const void *a, const void *b)
{
	const struct verve_stat_counter *one = a, *other = b;
	int order = strcmp(one->device, other->device);

	if (!order)
		order = strcmp(one->port, other->port);
	return order ? order : strcmp(one->name, other->name);
}

/* A name may be in both folders. */
static void drop_doubles(struct verve_stat_device *device)
{
	size_t count = 0;

	qsort(device->counters, device->count, sizeof(device->counters[0]), by_name);
	for (size_t i = 0; i < device->count; i++)
		if (!count || by_name(&device->counters[i], &device->counters[count - 1]))
			device->counters[count++] = device->counters[i];
	device->count = count;
}

void verve_stat_device_read(struct verve_stat_device *device, const char *sys)
{
	char pattern[VERVE_STAT_NAME + 64];
	glob_t found = {0};

	*device = (struct verve_stat_device){0};
	snprintf(pattern, sizeof(pattern), "%s/class/infiniband/*/ports/*/counters/*", sys);
	glob(pattern, 0, NULL, &found);
	snprintf(pattern, sizeof(pattern), "%s/class/infiniband/*/ports/*/hw_counters/*", sys);
	glob(pattern, GLOB_APPEND, NULL, &found);
	device->counters = calloc(found.gl_pathc + 1, sizeof(device->counters[0]));
	for (size_t i = 0; device->counters && i < found.gl_pathc; i++) {
		struct verve_stat_counter *counter = &device->counters[device->count];
		char *path = found.gl_pathv[i];

		/* "lifespan" is how long the kernel keeps the others, in milliseconds. */
		device->count += read_number(path, &counter->value) && split(path, counter) &&
				 strcmp(counter->name, "lifespan");
	}
	if (device->count)
		drop_doubles(device);
	globfree(&found);
}

void verve_stat_device_fini(struct verve_stat_device *device)
{
	free(device->counters);
	*device = (struct verve_stat_device){0};
}
