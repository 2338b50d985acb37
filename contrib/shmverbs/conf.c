/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "conf.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "atomic.h"
#include "layout.h"
#include "log.h"

enum { SLEEP_FROM_NS = 100000 }; /* a shorter time is spun away */

struct number {
	const char *name;
	size_t offset;
	uint32_t value, max;
};

static const struct number numbers[] = {
	{"max_inline", offsetof(struct shmv_conf, max_inline), 220, 4096},
	{"max_qp", offsetof(struct shmv_conf, max_qp), SHM_QP_MAX - 1, SHM_QP_MAX - 1},
	{"spare_qp", offsetof(struct shmv_conf, spare_qp), SHM_QP_MAX - 1, SHM_QP_MAX - 1},
	{"max_qp_wr", offsetof(struct shmv_conf, max_qp_wr), 1 << 15, 1 << 15},
	{"max_sge", offsetof(struct shmv_conf, max_sge), 30, 30},
	{"max_cqe", offsetof(struct shmv_conf, max_cqe), (1 << 18) - 1, (1 << 18) - 1},
	{"max_rd_atomic", offsetof(struct shmv_conf, max_rd_atomic), 16, 255},
	{"vendor", offsetof(struct shmv_conf, vendor), 0x5348, UINT32_MAX},
	{"part", offsetof(struct shmv_conf, part), 1, UINT32_MAX},
	{"srq", offsetof(struct shmv_conf, srq), 1, 1},
	{"mw", offsetof(struct shmv_conf, mw), 1, 1},
	{"td", offsetof(struct shmv_conf, td), 1, 1},
	{"ah", offsetof(struct shmv_conf, ah), 1, 1},
	{"atomics", offsetof(struct shmv_conf, atomics), 1, 1},
	{"qp_us", offsetof(struct shmv_conf, qp_us), 0, UINT32_MAX},
	{"reg_us", offsetof(struct shmv_conf, reg_us), 0, UINT32_MAX},
	{"reg_ns_per_page", offsetof(struct shmv_conf, reg_ns_per_page), 0, UINT32_MAX},
	{"resolve_ms", offsetof(struct shmv_conf, resolve_ms), 0, UINT32_MAX},
	{"mlx5_wqes", offsetof(struct shmv_conf, mlx5_wqes), 0, 1},
	{"inline_exact", offsetof(struct shmv_conf, inline_exact), 1, 1},
	{"qp_errno", offsetof(struct shmv_conf, qp_errno), 1, 1},
	{"clean_cq", offsetof(struct shmv_conf, clean_cq), 0, 1},
	{"err_post", offsetof(struct shmv_conf, err_post), 0, 2},
	{"last_wqe", offsetof(struct shmv_conf, last_wqe), 1, 1},
	{"pin_memory", offsetof(struct shmv_conf, pin_memory), 1, 1},
	{"pin_rings", offsetof(struct shmv_conf, pin_rings), 0, 1},
	{"populate", offsetof(struct shmv_conf, populate), 1, 1},
	{"warm", offsetof(struct shmv_conf, warm), 1, 1},
	{"infiniband", offsetof(struct shmv_conf, infiniband), 0, 1},
	{"grh_required", offsetof(struct shmv_conf, grh_required), 0, 1},
	{"lmc", offsetof(struct shmv_conf, lmc), 0, 7},
	{"mtu", offsetof(struct shmv_conf, mtu), 4096, 4096},
	{"roce_v1", offsetof(struct shmv_conf, roce_v1), 0, 1},
	{"wire_ns", offsetof(struct shmv_conf, wire_ns), 0, 1000000000},
	{"wire_mbps", offsetof(struct shmv_conf, wire_mbps), 0, UINT32_MAX},
	{"jitter_ns", offsetof(struct shmv_conf, jitter_ns), 0, 1000000000},
	{"event_us", offsetof(struct shmv_conf, event_us), 0, 10000000},
	{"wake_us", offsetof(struct shmv_conf, wake_us), 0, 10000000},
	{"lose_one_in", offsetof(struct shmv_conf, lose_one_in), 0, UINT32_MAX},
	{"seed", offsetof(struct shmv_conf, seed), 0, UINT32_MAX},
	{"beside_max", offsetof(struct shmv_conf, beside_max), SHM_BESIDE_MAX, SHM_BESIDE_MAX},
	{"heap_mb", offsetof(struct shmv_conf, heap_mb), 1024, 1 << 20},
	{"stats", offsetof(struct shmv_conf, stats), 0, 1},
};

static const struct {
	const char *name;
	size_t offset, size;
	const char *value;
} texts[] = {
	{"ips", offsetof(struct shmv_conf, ips), sizeof(shmv_conf.ips), "10.9.0.1,10.9.0.2"},
	{"pkeys", offsetof(struct shmv_conf, pkeys), sizeof(shmv_conf.pkeys), "0xffff"},
	{"subnets", offsetof(struct shmv_conf, subnets), sizeof(shmv_conf.subnets),
	 "0xfe80000000000000"},
	{"fabric", offsetof(struct shmv_conf, fabric), sizeof(shmv_conf.fabric), "shmverbs"},
	{"profile", offsetof(struct shmv_conf, profile), sizeof(shmv_conf.profile), "ideal"},
};

struct shmv_conf shmv_conf;

static const char *variable(const char *name)
{
	char text[64] = "SHMV_";
	size_t at = strlen(text);

	for (; *name && at < sizeof(text) - 1; name++)
		text[at++] = toupper((unsigned char)*name);
	text[at] = '\0';
	return getenv(text);
}

/* False: there is no property of this name, or it cannot have this value. */
static bool set(const char *name, const char *value)
{
	char *end;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		unsigned long number;

		if (strcmp(name, numbers[i].name))
			continue;
		number = strtoul(value, &end, 0);
		*(uint32_t *)((char *)&shmv_conf + numbers[i].offset) = number;
		return end != value && !*end && number <= numbers[i].max;
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (strcmp(name, texts[i].name))
			continue;
		return (size_t)snprintf((char *)&shmv_conf + texts[i].offset, texts[i].size, "%s",
					value) < texts[i].size;
	}
	return false;
}

static bool read_profile(const char *profile)
{
	const char *home = getenv("SHMV_HOME");
	char path[512], line[256], name[64], value[160];
	bool good = true;
	FILE *file;

	if (strchr(profile, '/'))
		snprintf(path, sizeof(path), "%s", profile);
	else
		snprintf(path, sizeof(path), "%s/profiles/%s", home ? home : SHMV_HOME, profile);
	file = fopen(path, "re");
	if (!file) {
		shmv_log("cannot read the profile %s", path);
		return false;
	}
	while (good && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "#\n")] = '\0';
		if (sscanf(line, "%63s %159s", name, value) == 2)
			good = set(name, value);
		else
			good = sscanf(line, "%63s", name) < 1;
		if (!good)
			shmv_log("%s: %s is no property, or its value is wrong", path, name);
	}
	fclose(file);
	return good;
}

static bool read_variables(void)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) + sizeof(texts) / sizeof(*texts);
	     i++) {
		const char *name = i < sizeof(numbers) / sizeof(*numbers) ? numbers[i].name :
				   texts[i - sizeof(numbers) / sizeof(*numbers)].name;
		const char *value = variable(name);

		if (value && !set(name, value)) {
			shmv_log("the variable for %s: %s is no value for it", name, value);
			return false;
		}
	}
	return true;
}

bool shmv_conf_read(void)
{
	const char *profile = getenv("SHMV_PROFILE");

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		*(uint32_t *)((char *)&shmv_conf + numbers[i].offset) = numbers[i].value;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		set(texts[i].name, texts[i].value);
	if (!read_profile(profile ? profile : shmv_conf.profile) || !read_variables())
		return false;
	snprintf(shmv_conf.dir, sizeof(shmv_conf.dir), "/dev/shm/%s", shmv_conf.fabric);
	shmv_conf.timed = shmv_conf.wire_ns || shmv_conf.wire_mbps || shmv_conf.jitter_ns;
	return true;
}

void shmv_conf_spend(uint64_t ns)
{
	uint64_t end;

	if (!ns)
		return;
	end = shmv_now() + ns;
	if (ns > SLEEP_FROM_NS)
		nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
	while (shmv_now() < end)
		shmv_pause();
}
