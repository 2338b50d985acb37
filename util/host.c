/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Host: /sys against the list of ports, limits of the process, and userfaultfd(2). */
#include "host.h"

#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/auth.h"
#include "base/config.h"
#include "engine/share.h"
#include "net/unmaps.h"
#include "settings.h"
#include "told.h"

/*
 * Drivers of network cards, and the module that makes RDMA devices of them. NULL: these have no
 * shared receive queues (irdma of the first two generations), so the module would not help.
 */
static const struct {
	const char *driver, *module;
} modules[] = {
	{"bnxt_en", "bnxt_re"},	     {"hns3", "hns-roce-hw-v2"}, {"i40e", NULL},
	{"ice", NULL},		     {"ionic", "ionic_rdma"},	 {"mlx4_en", "mlx4_ib"},
	{"mlx4_core", "mlx4_ib"},    {"mlx5_core", "mlx5_ib"},	 {"qede", "qedr"},
	{"mana", "mana_ib"},
};

struct search {
	struct verve_report *report;
	const char *root;
	const struct verve_net_port *ports;
	size_t count;
	size_t found;
};

static void each_entry(struct search *search, const char *folder,
		       void (*look)(struct search *search, const char *name))
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/class/%s", search->root, folder);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			look(search, entry->d_name);
	closedir(dir);
}

static bool exists(const struct search *search, const char *folder, const char *name,
		   const char *rest)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sys/class/%s/%s%s", search->root, folder, name, rest);
	return !access(path, F_OK);
}

/* A device of the kernel that libibverbs does not know. */
static void look_at_device(struct search *search, const char *name)
{
	search->found++;
	for (size_t i = 0; i < search->count; i++)
		if (!strcmp(search->ports[i].device, name))
			return;
	if (!exists(search, "infiniband_verbs", "", ""))
		verve_report_add(search->report, VERVE_REFUSED, name, "modprobe ib_uverbs",
				 "the kernel module ib_uverbs is not loaded");
	else
		verve_report_add(search->report, VERVE_REFUSED, name,
				 "apt-get install ibverbs-providers (or rdma-core)",
				 "libibverbs has no driver for it, or may not see it");
}

/* A network card that could be an RDMA device. */
static void look_at_netdev(struct search *search, const char *name)
{
	char path[PATH_MAX], target[PATH_MAX], remedy[64];
	const char *driver;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/driver", search->root, name);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0 || exists(search, "net", name, "/device/infiniband"))
		return;
	target[len] = '\0';
	driver = strrchr(target, '/');
	driver = driver ? driver + 1 : target;
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		if (strcmp(driver, modules[i].driver))
			continue;
		search->found++;
		if (!modules[i].module) {
			verve_report_add(search->report, VERVE_REFUSED, name, NULL,
					 "RDMA devices of its driver %s have no shared receive "
					 "queues, which verve needs", driver);
			continue;
		}
		snprintf(remedy, sizeof(remedy), "modprobe %s", modules[i].module);
		verve_report_add(search->report, VERVE_REFUSED, name, remedy,
				 "its driver %s has made no RDMA device of it", driver);
	}
}

void verve_host_report_missing(struct verve_report *report, const char *root,
			       const struct verve_net_port *ports, size_t count)
{
	struct search search = {.report = report, .root = root, .ports = ports, .count = count};

	each_entry(&search, "infiniband", look_at_device);
	each_entry(&search, "net", look_at_netdev);
	if (search.found || count)
		return;
	if (exists(&search, "infiniband", "", ""))
		verve_report_add(report, VERVE_REFUSED, "devices",
				 "rdma system show; rdma dev set DEVICE netns PID (where it is)",
				 "no RDMA device is in this network namespace, or none is there");
	else
		verve_report_add(report, VERVE_REFUSED, "devices",
				 "modprobe ib_uverbs; without a card: modprobe rdma_rxe; "
				 "rdma link add rxe0 type rxe netdev INTERFACE",
				 "the kernel has no RDMA devices, its modules are not loaded");
}

bool verve_host_report_key(struct verve_report *report)
{
	static const char variable[] = "FI_VERVE_AUTH_KEY_FILE";
	struct verve_auth_key key = {0};
	char why[VERVE_TOLD_LINE_MAX] = "=it cannot be read";
	bool has_key;

	if (!verve_config.auth_key_file)
		return true;
	verve_told_clear();
	has_key = !verve_auth_from_file(verve_config.auth_key_file, &key);
	verve_auth_key_wipe(&key);
	if (has_key)
		return true;
	verve_told_last(variable, why);
	verve_report_add(report, VERVE_REFUSED, variable, NULL, "no domain opens: %s", why + 1);
	return false;
}

void verve_host_report_memlock(struct verve_report *report)
{
	const struct verve_config_param *param;
	struct rlimit limit;
	size_t size = verve_config.eager_size + VERVE_CONFIG_BUFFER_EXTRA;
	bool reduced = verve_config_is_auto(verve_config.rx_limit) &&
		       verve_config.locked / size < VERVE_CONFIG_RX_LIMIT_AUTO;
	uint32_t most = verve_share_buffers(size);

	for (size_t i = 0; (param = verve_config_param(i)); i++)
		reduced |= !strcmp(verve_settings_source(param), verve_settings_memlock);
	if (!reduced || getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	verve_report_add(report, VERVE_WARNING, "RLIMIT_MEMLOCK",
			 "ulimit -l unlimited (limits.conf: * - memlock unlimited)",
			 "%llu KiB may be locked: %u receive buffers of %zu bytes are left, and "
			 "memory above the limit is copied in pieces",
			 (unsigned long long)limit.rlim_cur / 1024,
			 verve_share_uncredited_buffers(most), verve_config.eager_size);
}

static void gone(void *arg, uintptr_t start, uintptr_t end)
{
	(void)arg;
	(void)start;
	(void)end;
}

void verve_host_report_watch(struct verve_report *report)
{
	char why[VERVE_TOLD_LINE_MAX];
	struct verve_net_unmaps *watch;

	if (!strcmp(verve_config.mr_cache, "off") || !verve_config.mr_cache_count ||
	    strcmp(verve_config.mr_cache_monitor, "userfaultfd"))
		return;
	verve_told_clear();
	if (!verve_net_unmaps_open(gone, NULL, &watch)) {
		verve_net_unmaps_close(watch);
		return;
	}
	if (!verve_told_last("no registration is kept: ", why))
		snprintf(why, sizeof(why), "userfaultfd(2) cannot be used");
	verve_report_add(report, VERVE_WARNING, "registration cache",
			 "a kernel from 5.15, and a container that allows userfaultfd (or "
			 "FI_VERVE_MR_CACHE=off, and no warning)", "%s", why);
}
