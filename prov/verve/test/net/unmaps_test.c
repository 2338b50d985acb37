/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watch on the real kernel: which changes make events, and which memory cannot be watched. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../support/child.h"
#include "base/log.h"
#include "net/unmaps.h"

enum { PAGE = 4096, PAGES = 8 };

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_unmaps *watch;
static char *memory;
static unsigned gone; /* bit i: page i of memory went */
static int watchings; /* number of UFFDIO_REGISTER calls */
/* Run once: before the next UFFDIO_REGISTER; after the next reading of /proc/self/maps. */
static void (*before_watching)(void), (*after_looking)(void);
static void (*while_going)(uintptr_t start); /* run inside of gone */

/* The kernel's release as uname(2) tells it (NULL: the true one); features that are hidden. */
static const char *release;
static uint64_t hidden;

static void once(void (**step)(void))
{
	void (*now)(void) = *step;

	*step = NULL;
	if (now)
		now();
}

/* Replaces libc's for the watch. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;
	int ret;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (request == UFFDIO_REGISTER) {
		watchings++;
		once(&before_watching);
	}
	ret = (int)syscall(SYS_ioctl, fd, request, arg);
	if (!ret && request == UFFDIO_API)
		((struct uffdio_api *)arg)->features &= ~hidden;
	return ret;
}

/* Replaces libc's for the watch. */
int uname(struct utsname *name)
{
	int ret = (int)syscall(SYS_uname, name);

	if (release)
		snprintf(name->release, sizeof(name->release), "%s", release);
	return ret;
}

/* Replaces libc's: the watch closes /proc/self/maps after each reading. */
int close(int fd)
{
	if (watchings)
		once(&after_looking);
	return syscall(SYS_close, fd);
}

static void on_gone(void *arg, uintptr_t start, uintptr_t end)
{
	(void)arg;
	if (while_going)
		while_going(start);
	for (int i = 0; i < PAGES; i++) {
		uintptr_t page = (uintptr_t)memory + i * PAGE;

		if (start <= page && page + PAGE <= end)
			__atomic_or_fetch(&gone, 1u << i, __ATOMIC_SEQ_CST);
	}
}

static char *map(int flags, int fd)
{
	char *mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	cr_assert_neq(mapped, MAP_FAILED);
	return mapped;
}

static int add(void *start, size_t pages)
{
	return verve_net_unmaps_add(watch, (uintptr_t)start, (uintptr_t)start + pages * PAGE);
}

/* Some containers forbid userfaultfd(2). */
static bool is_allowed(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		return errno != EPERM && errno != ENOSYS;
	close(fd);
	return true;
}

static void setup(void)
{
	verve_log_provider = &provider;
	if (!is_allowed())
		cr_skip_test("userfaultfd(2) is not allowed here");
	cr_assert_eq(verve_net_unmaps_open(on_gone, NULL, &watch), 0);
	/* A fixed address far from the kernel's own choices: a hole there stays a hole. */
	memory = mmap((void *)0x20000000, PAGES * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	for (int i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
	cr_assert_eq(add(memory, PAGES), 0);
}

static void teardown(void)
{
	if (!watch)
		return;
	verve_net_unmaps_close(watch);
	munmap(memory, PAGES * PAGE);
}

TestSuite(watch, .init = setup, .fini = teardown, .timeout = 60);

/* The pages that went since the last call. */
static unsigned heard(void)
{
	while (!verve_net_unmaps_quiet(watch))
		sched_yield();
	return __atomic_exchange_n(&gone, 0, __ATOMIC_SEQ_CST);
}

Test(watch, hears_each_way_to_lose_pages)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *other = map(flags, -1);

	cr_expect_eq(heard(), 0);
	cr_assert_eq(munmap(memory + PAGE, PAGE), 0);
	cr_expect_eq(heard(), 1 << 1);
	cr_assert_eq(madvise(memory + 2 * PAGE, PAGE, MADV_DONTNEED), 0);
	cr_expect_eq(heard(), 1 << 2);
	cr_assert_eq(madvise(memory + 3 * PAGE, PAGE, MADV_FREE), 0);
	cr_expect_eq(heard(), 1 << 3);
	cr_assert_neq(mmap(memory + 4 * PAGE, PAGE, PROT_READ, flags | MAP_FIXED, -1, 0),
		      MAP_FAILED);
	cr_expect_eq(heard(), 1 << 4);
	cr_assert_neq(mremap(memory + 5 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other),
		      MAP_FAILED);
	cr_expect_eq(heard(), 1 << 5);
	cr_assert_neq(mremap(memory + 6 * PAGE, 2 * PAGE, PAGE, 0), MAP_FAILED);
	cr_expect_eq(heard(), 1 << 7);
	munmap(other, PAGES * PAGE);
}

Test(watch, access_and_protection_are_no_events)
{
	memory[0] = 2;
	cr_assert_eq(mprotect(memory, PAGE, PROT_READ), 0);
	cr_assert_eq(mprotect(memory, PAGE, PROT_READ | PROT_WRITE), 0);
	memory[0] = 3;
	cr_expect_eq(heard(), 0);
}

Test(watch, hears_of_memory_that_is_watched_twice_once_it_goes)
{
	cr_assert_eq(add(memory, 2), 0);
	cr_assert_eq(add(memory + PAGE, 3), 0);
	munmap(memory, PAGES * PAGE);
	cr_expect_eq(heard(), (1 << PAGES) - 1);
}

/* mremap(2) moves only one mapping: watching a part must not split a mapping. */
Test(watch, a_mapping_stays_one)
{
	char *mapped = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *other = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);

	cr_assert_eq(add(mapped + 2 * PAGE, 1), 0);
	cr_expect_neq(
		mremap(mapped, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other),
		MAP_FAILED);
	munmap(other, PAGES * PAGE);
}

/* mremap(2) to another size fails on memory of two mappings, in every version of Linux. */
static bool is_one_mapping(char *start, size_t pages)
{
	return mremap(start, pages * PAGE, (pages + 1) * PAGE, MREMAP_MAYMOVE) != MAP_FAILED;
}

static char *reserve(size_t pages)
{
	char *reserved = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(reserved, MAP_FAILED);
	return reserved;
}

static void map_at(char *at, size_t pages)
{
	cr_assert_eq(mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		     at);
}

static char *area;

static void map_over_the_end(void)
{
	map_at(area + 6 * PAGE, 6);
}

static void map_over_the_start(void)
{
	map_at(area, 6);
}

/* Another thread maps memory that joins the mapping, after the watch has read /proc/self/maps. */
Test(watch, a_mapping_made_meanwhile_stays_one)
{
	area = reserve(16);
	map_at(area, 8);
	before_watching = map_over_the_end;
	cr_assert_eq(add(area, 1), 0);
	cr_expect(is_one_mapping(area + 6 * PAGE, 6));
	area = reserve(16);
	map_at(area + 4 * PAGE, 8);
	before_watching = map_over_the_start;
	cr_assert_eq(add(area + 11 * PAGE, 1), 0);
	cr_expect(is_one_mapping(area, 6));
}

/* Memory beside the mapping is watched too, if it can be. */
Test(watch, a_neighbour_that_another_watches_is_no_obstacle)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register theirs = {.mode = UFFDIO_REGISTER_MODE_WP};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	area = reserve(8);
	map_at(area, 8);
	theirs.range = (struct uffdio_range){(uintptr_t)area + 4 * PAGE, 4 * PAGE};
	cr_assert_eq(ioctl(fd, UFFDIO_API, &api), 0);
	cr_assert_eq(ioctl(fd, UFFDIO_REGISTER, &theirs), 0);
	cr_expect_eq(add(area, 4), 0);
	cr_expect_eq(add(area + 4 * PAGE, 1), -FI_EOPNOTSUPP);
	close(fd);
}

/* True: the range was known, and the kernel was not asked. */
static bool is_known(char *start, size_t pages)
{
	int before = watchings;

	cr_assert_eq(add(start, pages), 0);
	return watchings == before;
}

Test(watch, what_is_watched_is_remembered_until_it_is_unmapped)
{
	cr_expect(is_known(memory, PAGES));
	cr_expect(is_known(memory + 3 * PAGE, 1));
	cr_assert_eq(madvise(memory, PAGES * PAGE, MADV_DONTNEED), 0);
	cr_expect_eq(heard(), (1 << PAGES) - 1);
	cr_expect(is_known(memory, PAGES),
		  "discarded pages stay watched: a second discard is heard as well");
	cr_assert_eq(madvise(memory, PAGES * PAGE, MADV_DONTNEED), 0);
	cr_expect_eq(heard(), (1 << PAGES) - 1);
	map_at(memory + 5 * PAGE, 1);
	cr_expect_eq(heard(), 1 << 5);
	cr_expect(is_known(memory, 5));
	cr_expect_not(is_known(memory + 5 * PAGE, 1));
	cr_assert_eq(munmap(memory + 5 * PAGE, PAGE), 0);
	cr_expect_eq(heard(), 1 << 5, "what was mapped anew is watched anew");
}

Test(watch, what_moved_is_remembered_no_more)
{
	char *other = reserve(1);

	cr_assert_neq(mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, other), MAP_FAILED);
	cr_expect_eq(heard(), 1);
	map_at(memory, 1);
	cr_expect_not(is_known(memory, 1));
	cr_assert_eq(munmap(memory, PAGE), 0);
	cr_expect_eq(heard(), 1);
}

static void map_the_last_anew(void)
{
	map_at(memory + (PAGES - 1) * PAGE, 1);
	while (!verve_net_unmaps_quiet(watch))
		sched_yield();
}

Test(watch, what_went_behind_the_last_look_is_not_remembered)
{
	char *last = memory + (PAGES - 1) * PAGE;

	map_at(memory, PAGES);
	cr_expect_eq(heard(), (1 << PAGES) - 1);
	watchings = 0;
	after_looking = map_the_last_anew;
	cr_assert_eq(add(memory, 1), 0);
	cr_expect_eq(heard(), 1 << (PAGES - 1));
	cr_expect_not(is_known(last, 1));
	cr_assert_eq(munmap(last, PAGE), 0);
	cr_expect_eq(heard(), 1 << (PAGES - 1));
}

static int known_while_going;

static void ask_while_going(uintptr_t start)
{
	known_while_going += verve_net_unmaps_add(watch, start, start + PAGE) == 0;
}

/*
 * A thread publishes a cache entry, and add then finds the range known: the thread must still hear
 * that the memory went. If the range were forgotten only after gone was called, a thread that comes
 * between the two would be told that the range is watched, and never hear that it went.
 */
Test(watch, is_forgotten_before_anybody_hears_that_it_went)
{
	while_going = ask_while_going;
	munmap(memory + PAGE, PAGE);
	munmap(memory + 4 * PAGE, PAGE);
	cr_expect_eq(heard(), 1 << 1 | 1 << 4);
	cr_expect_eq(known_while_going, 0);
	while_going = NULL;
}

/* shmat(2) replaces mappings without an event, so verve_net_unmaps_forget must be called. */
Test(watch, forgets_when_told)
{
	int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	char *page = memory + 2 * PAGE;

	verve_net_unmaps_forget(watch, (uintptr_t)page, (uintptr_t)page + 1);
	cr_assert_eq(shmat(id, page, SHM_REMAP), page);
	shmctl(id, IPC_RMID, NULL);
	cr_expect_eq(add(page, 1), -FI_EOPNOTSUPP);
	shmdt(page);
	map_at(page, 1);
	cr_expect_not(is_known(page, 1));
	heard();
	munmap(page, PAGE);
	cr_expect_eq(heard(), 1 << 2);
}

Test(watch, more_mappings_than_can_be_remembered)
{
	enum { MANY = 300 };

	area = reserve(2 * MANY);
	for (int i = 0; i < MANY; i++)
		map_at(area + 2 * i * PAGE, 1);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(add(area + 2 * i * PAGE, 1), 0);
	cr_expect(is_known(area + 2 * (MANY - 1) * PAGE, 1));
	cr_expect_not(is_known(area, 1));
	for (int i = 0; i < MANY; i++)
		map_at(area + 2 * i * PAGE, 1);
	for (int i = 0; i < MANY; i++)
		cr_assert_not(is_known(area + 2 * i * PAGE, 1));
}

Test(watch, heap_and_stack_can_be_watched)
{
	char *brk = sbrk(3 * PAGE), *page;
	char stack[2 * PAGE] = {1};

	page = (char *)(((uintptr_t)brk + PAGE - 1) & -(uintptr_t)PAGE);
	cr_expect_eq(add(page, 1), 0);
	page = (char *)(((uintptr_t)stack + PAGE - 1) & -(uintptr_t)PAGE);
	cr_expect_eq(add(page, 1), 0);
}

/* Another mapping or descriptor can punch holes into such memory, without an event. */
Test(watch, files_and_shared_memory_cannot_be_watched)
{
	int fd = memfd_create("memory", 0), file = open("/proc/self/exe", O_RDONLY);
	int id = shmget(IPC_PRIVATE, PAGES * PAGE, IPC_CREAT | 0600);
	char *mixed = map(MAP_PRIVATE | MAP_ANONYMOUS, -1), *shm;

	cr_assert_eq(ftruncate(fd, PAGES * PAGE), 0);
	cr_expect_eq(add(map(MAP_SHARED, fd), PAGES), -FI_EOPNOTSUPP);
	cr_expect_eq(add(map(MAP_PRIVATE, fd), PAGES), -FI_EOPNOTSUPP);
	cr_expect_eq(add(map(MAP_PRIVATE, file), PAGES), -FI_EOPNOTSUPP);
	cr_expect_eq(add(map(MAP_SHARED | MAP_ANONYMOUS, -1), PAGES), -FI_EOPNOTSUPP);
	shm = shmat(id, NULL, 0);
	cr_expect_eq(add(shm, PAGES), -FI_EOPNOTSUPP);
	shmdt(shm);
	shmctl(id, IPC_RMID, NULL);
	cr_assert_neq(mmap(mixed + 3 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
		      MAP_FAILED);
	cr_expect_eq(add(mixed, PAGES), -FI_EOPNOTSUPP);
	cr_expect_eq(add(mixed, 3), 0);
}

/* Drivers reserve addresses for memory of their devices, which goes without an event. */
Test(watch, what_is_only_reserved_cannot_be_watched)
{
	area = reserve(8);
	map_at(area, 4);
	cr_expect_eq(add(area, 4), 0);
	cr_expect_eq(add(area + 3 * PAGE, 2), -FI_EOPNOTSUPP);
	cr_expect_eq(add(area + 4 * PAGE, 1), -FI_EOPNOTSUPP);
}

Test(watch, what_is_not_mapped_cannot_be_watched)
{
	munmap(memory + 2 * PAGE, PAGE);
	cr_expect_eq(heard(), 1 << 2); /* waits: the range may be known until gone was called */
	cr_expect_eq(add(memory, PAGES), -FI_EOPNOTSUPP);
	cr_expect_eq(add(memory, 2), 0);
}

/* All memory includes the stack of the watch's own thread, which goes when that thread ends. */
Test(watch, closes_with_everything_watched)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	int watched = 0;
	char line[512];

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx rw", &start, &end) == 2)
			watched += verve_net_unmaps_add(watch, start, end) == 0;
	fclose(maps);
	cr_expect_gt(watched, 3);
}

/* Opens a watch on a kernel of that release, with or without the feature of 5.18; the result. */
static int open_on(const char *its_release, bool has_exact_address)
{
	struct verve_net_unmaps *other;
	int ret;

	release = its_release;
	hidden = has_exact_address ? 0 : 1 << 11; /* UFFD_FEATURE_EXACT_ADDRESS */
	ret = verve_net_unmaps_open(on_gone, NULL, &other);
	if (!ret)
		verve_net_unmaps_close(other);
	release = NULL;
	hidden = 0;
	return ret;
}

/* Before 5.15 the kernel could say that no event was unread while one was. */
Test(kernels, kernels_without_a_count_of_events_are_not_asked)
{
	static const char *const old[] = {"5.11.0", "5.14.21-150400.22-default",
					  "5.9.1",  "4.18.0-553.el8_10.x86_64",
					  "2.6.78", "5",
					  "five",   ""};
	static const char *const new[] = {"5.15.0",	    "5.15.0-91-generic", "5.17.15",
					  "6.1.0-49-amd64", "6.18.44",		 "10.0"};

	verve_log_provider = &provider;
	if (!is_allowed())
		cr_skip_test("userfaultfd(2) is not allowed here");
	for (size_t i = 0; i < sizeof(new) / sizeof(new[0]); i++) {
		cr_expect_eq(open_on(new[i], false), 0, "%s", new[i]);
		cr_expect_eq(open_on(new[i], true), 0, "%s", new[i]);
	}
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		cr_expect_eq(open_on(old[i], false), -FI_ENOSYS, "%s", old[i]);
		/* Distributions backport features under an old number; personality(2) says 2.6. */
		cr_expect_eq(open_on(old[i], true), 0, "%s", old[i]);
	}
}

/* However many domains ask, one log line has what the kernel lacks, its cost, and the remedy. */
Test(kernels, what_is_missing_is_said_once)
{
	struct fi_param *params;
	char text[4096], *line;
	size_t len;
	int count;

	verve_log_provider = &provider;
	setenv("FI_LOG_LEVEL", "warn", 1);
	cr_assert_eq(fi_getparams(&params, &count), 0); /* libfabric reads the level */
	fi_freeparams(params);
	cr_redirect_stderr();
	for (int i = 0; i < 20; i++)
		cr_assert_eq(open_on("5.14", false), -FI_ENOSYS);
	fflush(stderr);
	len = fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr());
	text[len] = '\0';
	line = strstr(text, "no registration is kept");
	cr_assert_not_null(line, "%s", text);
	cr_expect_null(strstr(line + 1, "no registration is kept"), "%s", text);
	cr_expect(strstr(line, "userfaultfd(2)") && strstr(line, "two or three times as long") &&
		  strstr(line, "FI_VERVE_MR_CACHE_MONITOR=notify"), "%s", text);
}

/* munmap(2) returns only after its event was read, however fast the threads go. */
static void *churn(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000; i++) {
		char *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		mine[0] = 1;
		verve_net_unmaps_add(watch, (uintptr_t)mine, (uintptr_t)mine + PAGE);
		munmap(mine, PAGE);
	}
	return NULL;
}

Test(watch, threads_unmap_at_full_speed)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(heard(), 0);
}

/* Only the parent gets events and has the thread: in the child, quiet must always say no. */
Test(watch, a_child_is_never_quiet_and_its_parent_is_not_disturbed)
{
	pid_t child = fork();

	if (!child) {
		munmap(memory, PAGES * PAGE);
		_exit(verve_net_unmaps_quiet(watch));
	}
	child_expect_success(child);
	cr_expect_eq(heard(), 0);
	munmap(memory, PAGE);
	cr_expect_eq(heard(), 1);
}

static int count_userfaultfds(void)
{
	char path[64], target[64];
	int count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		memset(target, 0, sizeof(target));
		if (readlink(path, target, sizeof(target) - 1) > 0)
			count += strstr(target, "[userfaultfd]") != NULL;
	}
	return count;
}

static pid_t early_child;

static void fork_early(void)
{
	cr_assert_eq(count_userfaultfds(), 1);
	early_child = fork();
	if (!early_child)
		_exit(count_userfaultfds());
}

/* Such a child would keep the watch alive, and munmap(2) of the parent would hang. */
Test(watch, a_child_forked_while_it_opens_has_no_part_of_it)
{
	verve_net_unmaps_close(watch);
	before_watching = fork_early;
	cr_assert_eq(verve_net_unmaps_open(on_gone, NULL, &watch), 0);
	child_expect_success(early_child);
}
