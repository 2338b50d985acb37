/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Torture of the registration cache on the real kernel. The device is made of pipes: vmsplice(2)
 * holds the pages that a range had when it was registered, whatever is mapped there later; tee(2)
 * reads them again and again, as a device does. Threads map memory, fill it with a pattern that no
 * other thread writes, let the device read it through the cache, and unmap it in every possible
 * way, while other threads are given the same addresses. One stale byte ends the test.
 *
 * Then the same with a monitor that watches nothing: the test must find a stale byte then, or it
 * proves nothing.
 *
 * usage: torture [SECONDS of each part, instead of a number of rounds]
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/monitor.h"
#include "mr/region.h"
#include "net/device.h"
#include "net/unmaps.h"

enum { THREADS = 4, PAGE = 4096, PAGES = 12, SIZE = PAGES * PAGE, ROUNDS = 3000 };

enum { SPARE = 32 }; /* in one round of so many, the process lacks memory */

enum { OK = 0, STALE = 3 }; /* exit status of a part */
enum { SKIPPED = 77 };	    /* exit status of the program: automake's number for a skip */

struct pinned {
	int pipe[2];
	uintptr_t start;
};

struct worker {
	pthread_t thread;
	uint64_t id, fill, random;
	int tee[2];
	uint64_t reads, split; /* reads of the device; mappings that could not be moved */
};

static struct fi_provider provider = {.name = "verve"};
static struct verve_mr_cache cache;
static bool blind;
static time_t until; /* end of the part; 0: after ROUNDS */
static int stale;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* The device; support/plain_mr.c has its other functions. */
int verve_net_mr_reg(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
		     struct verve_net_mr *mr)
{
	struct pinned *pinned = malloc(sizeof(*pinned));
	struct iovec iov = {addr, len};

	(void)dev;
	(void)access;
	if (!pinned || pipe2(pinned->pipe, O_CLOEXEC | O_NONBLOCK))
		die("pipe");
	/* vmsplice stops at a hole: the range is not all mapped. */
	if (vmsplice(pinned->pipe[1], &iov, 1, 0) != (ssize_t)len) {
		close(pinned->pipe[0]);
		close(pinned->pipe[1]);
		free(pinned);
		return -FI_EFAULT;
	}
	pinned->start = (uintptr_t)addr;
	*mr = (struct verve_net_mr){.handle = pinned};
	return 0;
}

void verve_net_mr_dereg(struct verve_net_mr *mr)
{
	struct pinned *pinned = mr->handle;

	close(pinned->pipe[0]);
	close(pinned->pipe[1]);
	free(pinned);
}

int __real_verve_net_unmaps_add(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end);

int __wrap_verve_net_unmaps_add(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	return blind ? 0 : __real_verve_net_unmaps_add(watch, start, end);
}

static uint64_t next(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random >> 16;
}

static void *map(void *at)
{
	void *mapped = mmap(at, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (mapped == MAP_FAILED)
		die("mmap");
	return mapped;
}

static void fill(struct worker *worker, uint64_t *memory)
{
	worker->fill++;
	for (size_t i = 0; i < SIZE / 8; i++)
		memory[i] = worker->id << 56 | worker->fill << 16 | i;
}

/* Compares the bytes that the device reads with the bytes in memory. */
static void check_read(struct worker *worker, char *memory, size_t len)
{
	char seen[PAGES * PAGE];
	struct verve_mr_region *region;
	const struct pinned *pinned;
	size_t offset;

	if (verve_mr_cache_get(&cache, memory, len, 0, &region))
		die("get");
	pinned = region->net.handle;
	offset = (uintptr_t)memory - pinned->start;
	if (tee(pinned->pipe[0], worker->tee[1], SIZE, 0) < (ssize_t)(offset + len))
		die("tee");
	if (offset && read(worker->tee[0], seen, offset) != (ssize_t)offset)
		die("read");
	if (read(worker->tee[0], seen, len) != (ssize_t)len)
		die("read");
	if (memcmp(seen, memory, len))
		__atomic_add_fetch(&stale, 1, __ATOMIC_SEQ_CST);
	while (read(worker->tee[0], seen, sizeof(seen)) > 0)
		;
	verve_mr_cache_put(&cache, region);
	worker->reads++;
}

static void check_part(struct worker *worker, char *memory)
{
	size_t from = next(worker) % (SIZE / 2), len = 1 + next(worker) % (SIZE / 2);

	check_read(worker, memory + from, len);
}

/* Reads a part of a kept range; or overlapping parts, which the cache joins. */
static void check_twice(struct worker *worker, char *memory)
{
	if (next(worker) % 2)
		check_part(worker, memory);
	else
		check_read(worker, memory, SIZE);
	check_part(worker, memory);
}

/* One round; the thread has no memory mapped afterwards. */
static void one_round(struct worker *worker)
{
	char *memory = map(NULL), *moved;

	fill(worker, (uint64_t *)memory);
	check_twice(worker, memory);
	if (!(next(worker) % SPARE))
		verve_mr_monitor_spare(NULL);
	switch (next(worker) % 5) {
	case 0:
		madvise(memory + PAGE, (PAGES - 2) * PAGE, MADV_DONTNEED);
		break;
	case 1:
		map(memory);
		break;
	case 2:
		munmap(memory + 2 * PAGE, PAGE);
		if (mmap(memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED)
			break;
		/* Another thread has mapped the page meanwhile: leave that page alone. */
		munmap(memory, 2 * PAGE);
		munmap(memory + 3 * PAGE, (PAGES - 3) * PAGE);
		return;
	case 3:
		moved = map(NULL);
		if (mremap(memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, moved) ==
		    MAP_FAILED) {
			/*
			 * A neighbour's watch split the mapping (doc/registration.md); moved may be
			 * gone.
			 */
			if (errno != EFAULT)
				die("mremap");
			worker->split++;
			munmap(memory, SIZE);
			return;
		}
		check_twice(worker, moved);
		memory = moved;
		break;
	default:
		break;
	}
	fill(worker, (uint64_t *)memory);
	check_twice(worker, memory);
	munmap(memory, SIZE);
}

static void *run(void *arg)
{
	struct worker *worker = arg;

	for (int i = 0; until ? time(NULL) < until : i < ROUNDS; i++) {
		if (__atomic_load_n(&stale, __ATOMIC_SEQ_CST))
			break;
		one_round(worker);
	}
	return NULL;
}

static int torture(bool is_blind, int seconds)
{
	struct worker workers[THREADS] = {0};
	struct verve_mr_cache_stats stats;
	uint64_t reads = 0, split = 0;

	blind = is_blind;
	until = seconds ? time(NULL) + seconds : 0;
	verve_log_provider = &provider;
	verve_config.mr_cache = "on";
	verve_config.mr_cache_count = 64;
	verve_mr_cache_init(&cache, NULL);
	if (!cache.store)
		die("no monitor here");
	for (int i = 0; i < THREADS; i++) {
		workers[i].id = i + 1;
		workers[i].random = 0x9e3779b97f4a7c15u * (i + 1);
		if (pipe2(workers[i].tee, O_CLOEXEC | O_NONBLOCK) ||
		    pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			die("thread");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		reads += workers[i].reads;
		split += workers[i].split;
	}
	verve_mr_cache_stats_get(&cache, &stats);
	verve_mr_cache_fini(&cache);
	printf("%s: %llu reads, %llu hits, %llu misses, %llu not kept, %llu evictions, "
	       "%llu invalidations, %llu mremap failed, %d stale\n", is_blind ? "blind" : "watched",
	       (unsigned long long)reads, (unsigned long long)stats.hits,
	       (unsigned long long)stats.misses, (unsigned long long)stats.unkept,
	       (unsigned long long)stats.evictions, (unsigned long long)stats.invalidations,
	       (unsigned long long)split, stale);
	if (!stats.hits || (!is_blind && !stats.invalidations))
		return 2;
	return stale ? STALE : OK;
}

/* Runs a part in a process of its own, so that its mappings do not disturb the next part. */
static int torture_apart(bool is_blind, int seconds)
{
	pid_t child = fork();
	int status = 0;

	if (!child) {
		int ret = torture(is_blind, seconds);

		fflush(stdout);
		_exit(ret);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		die("fork");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

/* Some containers forbid userfaultfd(2): only then the test is skipped. */
static bool is_allowed(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		return errno != EPERM && errno != ENOSYS;
	close(fd);
	return true;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 0;

	if (!is_allowed()) {
		fprintf(stderr, "skipped: userfaultfd(2) is not allowed here\n");
		return SKIPPED;
	}
	if (torture_apart(false, seconds) != OK) {
		fprintf(stderr, "the cache let the device see what is gone\n");
		return 1;
	}
	if (torture_apart(true, seconds) != STALE) {
		fprintf(stderr, "a blind monitor was not caught: this test cannot fail\n");
		return 1;
	}
	return 0;
}
