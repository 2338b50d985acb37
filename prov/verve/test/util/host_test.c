/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verve_info's host: missing modules and drivers in a folder instead of /sys, limits and filters of
 * the process, the environment of libfabric. Each test is a process of its own.
 */
#include "host.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/ipc_lock.h"
#include "base/config.h"
#include "library.h"
#include "settings.h"

static char root[] = "/tmp/verve-host-XXXXXX";
static struct verve_report report;
static rlim_t memlock = RLIM_INFINITY;

int __wrap_getrlimit(int resource, struct rlimit *limit);

/* Limits other than those of the user that runs the test. */
int __wrap_getrlimit(int resource, struct rlimit *limit)
{
	(void)resource;
	*limit = (struct rlimit){memlock, memlock};
	return 0;
}

static void setup(void)
{
	cr_assert_not_null(mkdtemp(root));
	unsetenv("FI_PROVIDER");
	unsetenv("FI_PROVIDER_PATH");
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	verve_report_fini(&report);
	cr_expect_eq(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

TestSuite(host, .init = setup, .fini = teardown);

/* The folder, and all that lead to it. */
static void add_folder(const char *path)
{
	char buf[PATH_MAX];

	snprintf(buf, sizeof(buf), "%s%s/", root, path);
	for (char *at = buf + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(buf, 0755);
		*at = '/';
	}
}

static void add_link(const char *path, const char *target)
{
	char buf[PATH_MAX];

	snprintf(buf, sizeof(buf), "%s%s", root, path);
	cr_assert_eq(symlink(target, buf), 0);
}

static void expect_one(enum verve_verdict verdict, const char *subject, const char *cause,
		       const char *remedy)
{
	cr_assert_eq(report.count, 1, "%zu findings", report.count);
	cr_expect_eq(report.list[0].verdict, verdict);
	cr_expect_not_null(strstr(report.list[0].subject, subject), "%s", report.list[0].subject);
	cr_expect_not_null(strstr(report.list[0].cause, cause), "%s", report.list[0].cause);
	cr_expect_not_null(strstr(report.list[0].remedy, remedy), "%s", report.list[0].remedy);
}

Test(host, without_any_module)
{
	verve_host_report_missing(&report, root, NULL, 0);
	expect_one(VERVE_REFUSED, "devices", "modules are not loaded", "modprobe ib_uverbs");
}

Test(host, with_modules_and_no_device)
{
	add_folder("/sys/class/infiniband");
	verve_host_report_missing(&report, root, NULL, 0);
	expect_one(VERVE_REFUSED, "devices", "network namespace", "rdma system show");
}

Test(host, without_ib_uverbs)
{
	add_folder("/sys/class/infiniband/mlx5_0");
	verve_host_report_missing(&report, root, NULL, 0);
	expect_one(VERVE_REFUSED, "mlx5_0", "ib_uverbs is not loaded", "modprobe ib_uverbs");
}

Test(host, without_the_driver_of_libibverbs)
{
	add_folder("/sys/class/infiniband/mlx5_0");
	add_folder("/sys/class/infiniband_verbs/uverbs0");
	verve_host_report_missing(&report, root, NULL, 0);
	expect_one(VERVE_REFUSED, "mlx5_0", "libibverbs has no driver", "ibverbs-providers");
}

Test(host, device_that_libibverbs_knows_is_not_missing)
{
	struct verve_net_port port = {.device = "mlx5_0"};

	add_folder("/sys/class/infiniband/mlx5_0");
	verve_host_report_missing(&report, root, &port, 1);
	cr_expect_eq(report.count, 0);
}

Test(host, card_without_the_module_that_makes_a_device)
{
	add_folder("/sys/class/infiniband");
	add_folder("/sys/class/net/eth3/device");
	add_link("/sys/class/net/eth3/device/driver", "../../bus/pci/drivers/mlx5_core");
	add_folder("/sys/class/net/eth4/device");
	add_link("/sys/class/net/eth4/device/driver", "../../bus/pci/drivers/e1000e");
	verve_host_report_missing(&report, root, NULL, 0);
	expect_one(VERVE_REFUSED, "eth3", "mlx5_core", "modprobe mlx5_ib");
}

Test(host, card_whose_device_would_be_refused)
{
	add_folder("/sys/class/infiniband");
	add_folder("/sys/class/net/eth3/device");
	add_link("/sys/class/net/eth3/device/driver", "../../bus/pci/drivers/ice");
	verve_host_report_missing(&report, root, NULL, 0);
	expect_one(VERVE_REFUSED, "eth3", "no shared receive queues", "");
	cr_expect_str_empty(report.list[0].remedy);
}

Test(host, card_with_its_device)
{
	struct verve_net_port port = {.device = "mlx5_0"};

	add_folder("/sys/class/net/eth3/device/infiniband");
	add_link("/sys/class/net/eth3/device/driver", "../../bus/pci/drivers/mlx5_core");
	verve_host_report_missing(&report, root, &port, 1);
	cr_expect_eq(report.count, 0);
}

Test(host, key_that_cannot_be_read_opens_no_domain)
{
	char path[PATH_MAX];
	FILE *file;

	setenv("FI_VERVE_AUTH_KEY_FILE", "/nowhere/key", 1);
	verve_settings_load(&report);
	cr_expect_not(verve_host_report_key(&report));
	expect_one(VERVE_REFUSED, "FI_VERVE_AUTH_KEY_FILE", "/nowhere/key: No such file", "");
	verve_report_fini(&report);
	snprintf(path, sizeof(path), "%s/key", root);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs("0123456789abcdef", file);
	fclose(file);
	verve_config.auth_key_file = path;
	cr_assert_eq(chmod(path, 0644), 0);
	cr_expect_not(verve_host_report_key(&report));
	expect_one(VERVE_REFUSED, "FI_VERVE_AUTH_KEY_FILE", "chmod 600", "");
	verve_report_fini(&report);
	cr_assert_eq(chmod(path, 0600), 0);
	cr_expect(verve_host_report_key(&report));
	cr_expect_eq(report.count, 0);
}

static void limit_memory(rlim_t bytes)
{
	memlock = bytes;
	ipc_lock_drop();
	verve_settings_load(&report);
	verve_host_report_memlock(&report);
}

Test(host, little_memory_may_be_locked)
{
	limit_memory(64 << 10);
	expect_one(VERVE_WARNING, "RLIMIT_MEMLOCK",
		   "64 KiB may be locked: 31 receive buffers of 390 bytes", "ulimit -l unlimited");
	cr_expect_str_eq(verve_settings_source_of(&verve_config.eager_size), "RLIMIT_MEMLOCK");
	cr_expect_str_eq(verve_settings_source_of(&verve_config.window), "default");
}

Test(host, enough_memory_may_be_locked)
{
	limit_memory((rlim_t) 8 << 30);
	cr_expect_eq(report.count, 0);
	cr_expect_str_eq(verve_settings_source_of(&verve_config.eager_size), "default");
}

/* userfaultfd(2) as a kernel without it answers. */
static void forbid_userfaultfd(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	/* Emulated user space (qemu-user) has no filters: contrib/check-systems says so. */
	if (getenv("VERVE_EMULATED"))
		cr_skip_test("no seccomp(2) here");
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

Test(host, kernel_without_userfaultfd)
{
	verve_settings_load(&report);
	forbid_userfaultfd();
	verve_host_report_watch(&report);
	expect_one(VERVE_WARNING, "registration cache", "userfaultfd(2)", "5.15");
}

Test(host, cache_that_is_off_needs_no_userfaultfd)
{
	setenv("FI_VERVE_MR_CACHE", "off", 1);
	verve_settings_load(&report);
	forbid_userfaultfd();
	verve_host_report_watch(&report);
	cr_expect_eq(report.count, 0);
}

Test(host, settings_say_where_they_come_from)
{
	setenv("FI_VERVE_WINDOW", "7", 1);
	setenv("FI_VERVE_TX_SIZE", "many", 1);
	verve_settings_load(&report);
	cr_expect_str_eq(verve_settings_source_of(&verve_config.window), "FI_VERVE_WINDOW");
	cr_expect_str_eq(verve_settings_source_of(&verve_config.tx_size), "default");
	expect_one(VERVE_WARNING, "environment", "FI_VERVE_TX_SIZE=many is not a number", "");
}

Test(host, unknown_variable_is_a_warning)
{
	setenv("FI_VERVE_WINDOWS", "7", 1);
	verve_settings_load(&report);
	expect_one(VERVE_WARNING, "environment", "FI_VERVE_WINDOWS is set", "");
}

/* libfabric reads its environment once a process. */

Test(host, size_of_the_cache_that_is_no_number)
{
	setenv("FI_PROVIDER_PATH", PROVIDER, 1);
	setenv("FI_MR_CACHE_MAX_SIZE", "1G", 1);
	cr_expect(verve_library_report(&report));
	verve_report_fini(&report);
	verve_settings_load(&report);
	expect_one(VERVE_WARNING, "environment", "FI_MR_CACHE_MAX_SIZE=1G is not a number", "");
}

Test(host, libfabric_that_finds_the_provider)
{
	setenv("FI_PROVIDER_PATH", PROVIDER, 1);
	cr_expect(verve_library_report(&report));
	expect_one(VERVE_USED, "libfabric", "offers verve", "");
}

Test(host, libfabric_that_does_not_find_the_provider)
{
	setenv("FI_PROVIDER_PATH", root, 1);
	cr_expect_not(verve_library_report(&report));
	expect_one(VERVE_REFUSED, "libfabric", "is not where libfabric looks", "FI_PROVIDER_PATH");
}

Test(host, provider_that_a_filter_hides)
{
	setenv("FI_PROVIDER_PATH", PROVIDER, 1);
	setenv("FI_PROVIDER", "tcp,udp", 1);
	cr_expect_not(verve_library_report(&report));
	expect_one(VERVE_REFUSED, "libfabric", "FI_PROVIDER=tcp,udp hides verve",
		   "export FI_PROVIDER=verve");
}

Test(host, provider_that_a_negated_filter_hides)
{
	setenv("FI_PROVIDER_PATH", PROVIDER, 1);
	setenv("FI_PROVIDER", "^verve", 1);
	cr_expect_not(verve_library_report(&report));
	expect_one(VERVE_REFUSED, "libfabric", "FI_PROVIDER=^verve hides verve", "");
}

/* As libfabric compares names. */
Test(host, filter_in_another_case_is_the_same)
{
	setenv("FI_PROVIDER_PATH", PROVIDER, 1);
	setenv("FI_PROVIDER", "Verve,tcp", 1);
	cr_expect(verve_library_report(&report));
	expect_one(VERVE_USED, "libfabric", "offers verve", "");
	verve_report_fini(&report);
	setenv("FI_PROVIDER", "^VERVE", 1);
	cr_expect_not(verve_library_report(&report));
	expect_one(VERVE_REFUSED, "libfabric", "FI_PROVIDER=^VERVE hides verve", "");
}

/* Another machine's, or another library's: what the loader says. */
Test(host, file_of_a_wrong_abi)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/libverve-fi.so", root);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs("\177ELF and nothing else", file);
	fclose(file);
	setenv("FI_PROVIDER_PATH", root, 1);
	cr_expect_not(verve_library_report(&report));
	expect_one(VERVE_REFUSED, "libfabric", "cannot be loaded (", "ldd -r");
}

Test(host, file_that_is_no_provider)
{
	add_link("/libverve-fi.so", "/proc/self/exe");
	setenv("FI_PROVIDER_PATH", root, 1);
	cr_expect_not(verve_library_report(&report));
	expect_one(VERVE_REFUSED, "libfabric", "cannot be loaded (", "ldd -r");
}
