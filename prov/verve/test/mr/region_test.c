/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Region: what is registered; the log's explanation when the registration fails. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/child.h"
#include "../support/fake_memory.h"
#include "../support/fake_region.h"
#include "../support/fake_world.h"
#include "base/log.h"
#include "mr/region.h"
#include "net/device.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static char buffer[256];

static void setup(void)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_gt(count, 0);
	cr_assert_eq(verve_net_device_open(list->device, list->port_num, NULL, &dev), 0);
	verve_net_port_list_free(list, count);
}

static void teardown(void)
{
	verve_net_device_close(dev);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(region, .init = setup, .fini = teardown);

static struct verve_mr_region *open_region(size_t len, unsigned access)
{
	struct verve_mr_region *region;

	cr_assert_eq(verve_mr_region_open(dev, buffer, len, access, &region), 0);
	return region;
}

Test(region, of_a_dmabuf_begins_at_its_offset)
{
	struct verve_mr_dmabuf dmabuf = {.offset = 4096 + 16, .addr = (void *)0x5000010};
	struct verve_mr_region *region;
	static char memory[8192];
	uint32_t base;

	dmabuf.fd = fake_net_dmabuf(memory, sizeof(memory));
	cr_assert_eq(verve_mr_region_open_dmabuf(dev, &dmabuf, 64, VERVE_NET_REMOTE_WRITE, NULL,
						 &region), 0);
	cr_expect(fake_rkey_covers(dev, region->rkey, 0x5000010, 64, VERVE_NET_REMOTE_WRITE));
	cr_expect_not(fake_rkey_covers(dev, region->rkey, 0x5000010, 65, VERVE_NET_REMOTE_WRITE));
	cr_expect_eq(fake_rkey_memory(dev, region->rkey, 0x5000010), memory + 4096 + 16);
	verve_mr_region_close(region);
	cr_assert_eq(verve_mr_region_open_dmabuf(dev, &dmabuf, 64, VERVE_NET_REMOTE_READ, &base,
						 &region), 0);
	cr_expect_eq(base, 16);
	cr_expect_eq(fake_rkey_memory(dev, region->rkey, 16), memory + 4096 + 16);
	verve_mr_region_close(region);
}

/* libfabric reads FI_LOG_LEVEL at the first call of any of its functions. */
static void show_warnings(void)
{
	struct fi_param *params;
	int count;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_PROVIDER", "verve", 1);
	setenv("FI_PROVIDER_PATH", "/nonexistent", 1);
	cr_redirect_stderr();
	cr_assert_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
}

/* Writes the log's new lines about memory regions to text; returns their number. */
static int read_warnings(char *text, size_t size)
{
	FILE *log = cr_get_redirected_stderr();
	char line[2048];
	int count = 0;

	fflush(stderr);
	text[0] = '\0';
	while (fgets(line, sizeof(line), log)) {
		if (!strstr(line, ":mr:"))
			continue;
		count++;
		strncat(text, line, size - strlen(text) - 1);
	}
	return count;
}

/* Writes the log's line for a registration of buffer that fails with error to text. */
static void explained(int error, unsigned access, char *text, size_t size)
{
	struct verve_mr_region *region;

	show_warnings();
	fake_net_fail(FAKE_NET_MR_REG, 1, error);
	cr_assert_eq(verve_mr_region_open(dev, buffer, sizeof(buffer), access, &region), error);
	cr_expect_eq(read_warnings(text, size), 1, "one line a failure, not: %s", text);
}

Test(region, says_what_was_registered)
{
	struct verve_mr_region *region = open_region(sizeof(buffer), VERVE_NET_REMOTE_READ);

	cr_expect_eq(region->addr, buffer);
	cr_expect_eq(region->len, sizeof(buffer));
	cr_expect_eq(region->access, VERVE_NET_REMOTE_READ);
	cr_expect_eq(region->lkey, region->net.lkey);
	cr_expect_eq(region->rkey, region->net.rkey);
	verve_mr_region_close(region);
}

/* Its memory held something else before. */
Test(region, is_no_window)
{
	struct verve_mr_region *region = open_region(8, 0);

	cr_expect_null(region->base);
	cr_expect_eq(region->peer_window, VERVE_MR_NO_PEER_WINDOW);
	verve_mr_region_close(region);
}

Test(region, remote_writers_need_local_write)
{
	struct verve_mr_region *write = open_region(sizeof(buffer), VERVE_NET_REMOTE_WRITE);
	struct verve_mr_region *atomic = open_region(sizeof(buffer), VERVE_NET_REMOTE_ATOMIC);

	cr_expect_eq(write->access, VERVE_NET_REMOTE_WRITE | VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(atomic->access, VERVE_NET_REMOTE_ATOMIC | VERVE_NET_LOCAL_WRITE);
	verve_mr_region_close(write);
	verve_mr_region_close(atomic);
}

Test(region, of_nothing_has_keys_that_open_nothing)
{
	struct verve_mr_region *a = open_region(0, VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE);
	struct verve_mr_region *b = open_region(0, 0);

	cr_expect_eq(a->addr, buffer);
	cr_expect_eq(a->len, 0);
	cr_expect_eq(a->access, 0);
	cr_expect_eq(b->len, 0);
	cr_expect_eq(b->access, 0);
	verve_mr_region_close(a);
	verve_mr_region_close(b);
}

/* Kernels before 5.12: libibverbs keeps the pages of registered memory out of children. */
Test(region, of_nothing_takes_nothing_from_a_child)
{
	struct verve_mr_region *region = open_region(0, 0);
	const struct fake_region *registered = region->net.handle;
	const size_t page = sysconf(_SC_PAGESIZE);
	uintptr_t start = registered->memory / page * page;
	pid_t child;

	cr_expect_eq(registered->memory, start, "what else is in the page?");
	cr_expect_eq(registered->len, page);
	cr_assert_eq(madvise((void *)start, page, MADV_DONTFORK), 0);
	child = fork();
	if (!child)
		_exit(0);
	child_expect_success(child);
	verve_mr_region_close(region);
}

Test(region, no_memory_names_the_limit_and_the_size)
{
	struct rlimit limit;
	char text[2048], value[32];

	cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	snprintf(value, sizeof(value), "%llu bytes", (unsigned long long)limit.rlim_cur);
	explained(-FI_ENOMEM, VERVE_NET_LOCAL_WRITE, text, sizeof(text));
	cr_expect(strstr(text, "RLIMIT_MEMLOCK"), "%s", text);
	cr_expect(strstr(text, value), "%s", text);
	cr_expect(strstr(text, "256 bytes"), "%s", text);
	cr_expect(strstr(text, "ulimit -l"), "%s", text);
}

Test(region, bad_range_names_access_and_range)
{
	char text[2048], range[64];

	snprintf(range, sizeof(range), "%p-%p", (void *)buffer, (void *)(buffer + sizeof(buffer)));
	explained(-FI_EFAULT, VERVE_NET_REMOTE_WRITE, text, sizeof(text));
	cr_expect(strstr(text, "256 bytes"), "%s", text);
	cr_expect(strstr(text, range), "%s", text);
	cr_expect(strstr(text, "local write, remote write"), "%s", text);
	cr_expect(strstr(text, "read-only memory"), "%s", text);
}

Test(region, refused_reading_does_not_speak_of_writing)
{
	char text[2048];

	explained(-FI_EACCES, VERVE_NET_REMOTE_READ, text, sizeof(text));
	cr_expect(strstr(text, "local read, remote read"), "%s", text);
	cr_expect(strstr(text, "mapped and readable"), "%s", text);
	cr_expect_not(strstr(text, "writable"), "%s", text);
}

/* The fake's true limits, not an error that the test injects. */
Test(region, limits_that_are_reached_are_explained)
{
	struct verve_mr_region *region;
	char text[2048];

	show_warnings();
	fake_net_memlock(sizeof(buffer) - 1);
	cr_assert_eq(verve_mr_region_open(dev, buffer, sizeof(buffer), 0, &region), -FI_ENOMEM);
	cr_expect_eq(read_warnings(text, sizeof(text)), 1, "one line a failure, not: %s", text);
	cr_expect(strstr(text, "RLIMIT_MEMLOCK is"), "%s", text);
	cr_assert_eq(verve_mr_region_open(dev, buffer,
					  verve_net_device_port(dev)->limits.mr_size + 1,
					  0, &region), -FI_EINVAL);
	cr_expect_eq(read_warnings(text, sizeof(text)), 1, "one line a failure, not: %s", text);
	cr_expect(strstr(text, "the device's largest region has 1099511627776"), "%s", text);
}

/* Each message to such a buffer would say so. */
Test(region, memory_that_no_device_may_use_is_explained_once)
{
	struct verve_mr_region *region;
	char text[2048];

	explained(-FI_EOPNOTSUPP, VERVE_NET_LOCAL_WRITE, text, sizeof(text));
	cr_expect(strstr(text, "256 bytes"), "%s", text);
	cr_expect(strstr(text, "mapped from a disk"), "%s", text);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EOPNOTSUPP);
	cr_expect_eq(verve_mr_region_open(dev, buffer, sizeof(buffer), 0, &region),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(read_warnings(text, sizeof(text)), 0, "%s", text);
}

Test(region, dmabuf_that_is_refused_is_explained)
{
	struct verve_mr_dmabuf dmabuf = {.fd = 3, .offset = 8192};
	struct verve_mr_region *region;
	char text[2048];

	show_warnings();
	cr_assert_eq(verve_mr_region_open_dmabuf(dev, &dmabuf, 64, VERVE_NET_REMOTE_READ, NULL,
						 &region), -FI_EOPNOTSUPP);
	cr_expect_eq(read_warnings(text, sizeof(text)), 1, "one line a failure, not: %s", text);
	cr_expect(strstr(text, "64 bytes from 8192 on of dmabuf descriptor 3"), "%s", text);
	cr_expect(strstr(text, "local read, remote read"), "%s", text);
	cr_expect(strstr(text, "copy to host memory"), "%s", text);
}

Test(region, invalid_range_is_explained)
{
	char text[2048];

	explained(-FI_EINVAL, VERVE_NET_LOCAL_WRITE, text, sizeof(text));
	cr_expect(strstr(text, "local write"), "%s", text);
	cr_expect(strstr(text, "ordinary memory"), "%s", text);
}

/* NULL to SIZE_MAX, as of an application that takes unmapped memory for allowed. */
Test(region, all_memory_says_what_to_register)
{
	static const int errors[] = {-FI_EINVAL, -FI_ENOMEM, -FI_EFAULT};
	struct verve_mr_region *region;
	char text[2048];

	show_warnings();
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fake_net_fail(FAKE_NET_MR_REG, 1, errors[i]);
		cr_assert_eq(verve_mr_region_open(dev, NULL, SIZE_MAX, VERVE_NET_REMOTE_READ,
						  &region),
			     errors[i]);
		cr_expect_eq(read_warnings(text, sizeof(text)), 1, "one line a failure, not: %s",
			     text);
		cr_expect(strstr(text, "all memory"), "%s", text);
		cr_expect(strstr(text, "FI_MR_ALLOCATED"), "%s", text);
		cr_expect(strstr(text, "register what is mapped"), "%s", text);
		cr_expect(strstr(text, "--enable-remote-virtual-addressing"), "%s", text);
	}
}
