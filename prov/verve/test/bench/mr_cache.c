/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a hit in the registration cache costs, in nanoseconds, with 10, 1,000 and 100,000 entries,
 * in 1 and 8 threads: get and put where the application tells what is unmapped (notify), where the
 * kernel does (userfaultfd), and the question to the kernel alone. Beside them a miss of memory
 * that is watched already, less what the device takes to register. The buffers come at random: some
 * 64 of all, far from each other, or all, of which 100,000 are more than a processor's cache holds,
 * so that each costs its memory's latency. Medians of 5; processor time of the thread, so that
 * threads which wait for a processor do not count. Needs no device.
 *
 * With a number of rounds: an application that maps memory, registers it twice and unmaps it as
 * often: what a round costs in each tenth of them, and how much memory the process has then.
 *
 * usage: mr_cache [ROUNDS]
 */
#include <pthread.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/config.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/monitor.h"
#include "mr/region.h"
#include "mr/store.h"
#include "net/device.h"

enum {
	PAGE = 4096,
	SIZE = 16 * PAGE,
	FEW = 64,
	THREADS = 8,
	ROUNDS = 1000000,
	SLOW_ROUNDS = 20000,
	TRIES = 5
};

/* Which buffers come: so many, one each so many bytes. */
struct buffers {
	size_t count, stride;
};

struct job {
	pthread_t thread;
	void (*run)(uintptr_t addr);
	struct buffers buffers;
	size_t rounds;
	uint64_t random;
	double ns;
};

static struct fi_provider provider = {.name = "verve"};
static struct verve_mr_cache cache;
static uintptr_t memory;

/* A device that registers at once: support/plain_mr.c has the rest of it. */
int verve_net_mr_reg(struct verve_net_device *dev, void *addr, size_t len, unsigned access,
		     struct verve_net_mr *mr)
{
	(void)dev;
	(void)addr;
	(void)len;
	(void)access;
	*mr = (struct verve_net_mr){.lkey = 1, .rkey = 1};
	return 0;
}

void verve_net_mr_dereg(struct verve_net_mr *mr)
{
	(void)mr;
}

static void ask(uintptr_t addr)
{
	(void)addr;
	(void)verve_mr_monitor_quiet();
}

static void get_put(uintptr_t addr)
{
	struct verve_mr_region *region;

	if (verve_mr_cache_get(&cache, (void *)addr, PAGE, 0, &region))
		abort();
	verve_mr_cache_put(&cache, region);
}

static void miss(uintptr_t addr)
{
	verve_mr_store_invalidate(cache.store, addr, addr + PAGE);
	get_put(addr);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *run(void *arg)
{
	struct job *job = arg;
	double start = now();

	for (size_t i = 0; i < job->rounds; i++) {
		job->random = job->random * 6364136223846793005u + 1442695040888963407u;
		job->run(memory + (job->random >> 33) % job->buffers.count * job->buffers.stride);
	}
	job->ns = (now() - start) / job->rounds;
	return NULL;
}

static double measure_once(void (*fn)(uintptr_t addr), struct buffers buffers, int threads,
			   size_t rounds)
{
	struct job jobs[THREADS];
	double sum = 0;

	for (int i = 0; i < threads; i++) {
		jobs[i] = (struct job){
			.run = fn, .buffers = buffers, .rounds = rounds, .random = i + 1};
		pthread_create(&jobs[i].thread, NULL, run, &jobs[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(jobs[i].thread, NULL);
		sum += jobs[i].ns;
	}
	return sum / threads;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static double measure(void (*fn)(uintptr_t addr), struct buffers buffers, int threads,
		      size_t rounds)
{
	double ns[TRIES];

	measure_once(fn, buffers, threads, rounds); /* warm */
	for (int i = 0; i < TRIES; i++)
		ns[i] = measure_once(fn, buffers, threads, rounds);
	qsort(ns, TRIES, sizeof(*ns), compare);
	return ns[TRIES / 2];
}

static void die_without_monitor(void)
{
	fprintf(stderr, "no monitor here: nothing is kept\n");
	exit(1);
}

/* Like a miss, but without the kernel: 100,000 misses would take a while. */
static void keep(uintptr_t addr)
{
	struct verve_mr_want want = {addr, addr + PAGE, 0, false};
	struct verve_mr_entry *entry = verve_mr_store_add(cache.store, &want);

	if (!entry || verve_mr_region_open(NULL, (void *)addr, PAGE, 0, &entry->region))
		abort();
	entry->region->owner = entry;
	AO_fetch_and_add1(&cache.regions);
	AO_fetch_and_add(&cache.bytes, PAGE);
	verve_mr_store_ready(cache.store, entry);
	verve_mr_store_put(entry);
}

static void fill(size_t entries, const char *monitor)
{
	verve_config.mr_cache_monitor = monitor;
	verve_config.mr_cache_count = entries + 1;
	verve_mr_cache_init(&cache, NULL);
	if (!cache.store)
		die_without_monitor();
	for (size_t i = 0; i < entries; i++)
		keep(memory + i * PAGE);
}

static void bench(size_t entries)
{
	struct buffers all = {entries, PAGE}, few = {FEW, entries / FEW * PAGE};

	if (entries <= FEW)
		few = all;
	fill(entries, "notify");
	printf("%8zu %10.1f %10.1f %10.1f %10.1f", entries, measure(get_put, few, 1, ROUNDS),
	       measure(get_put, few, THREADS, ROUNDS), measure(get_put, all, 1, ROUNDS),
	       measure(get_put, all, THREADS, ROUNDS));
	verve_mr_cache_fini(&cache);
	fill(entries, "userfaultfd");
	printf(" %12.0f %10.0f %10.0f %10.0f\n", measure(get_put, few, 1, SLOW_ROUNDS),
	       measure(get_put, few, THREADS, SLOW_ROUNDS), measure(ask, few, 1, SLOW_ROUNDS),
	       measure(miss, few, 1, 200));
	verve_mr_cache_fini(&cache);
}

/* Kilobytes, proc_pid_statm(5). */
static size_t resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (!file || fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * PAGE / 1024;
}

static void come_and_go(uintptr_t addr)
{
	char *mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct verve_mr_region *region;

	(void)addr;
	if (mine == MAP_FAILED)
		abort();
	for (int i = 0; i < 2; i++) {
		if (verve_mr_cache_get_exact(&cache, mine, SIZE, VERVE_NET_REMOTE_READ, NULL,
					     &region))
			abort();
		verve_mr_cache_put(&cache, region);
	}
	munmap(mine, SIZE);
}

static void come_and_go_often(size_t rounds)
{
	struct verve_mr_cache_stats stats;

	verve_mr_cache_init(&cache, NULL);
	if (!cache.store)
		die_without_monitor();
	printf("%10s %10s %10s\n", "rounds", "ns each", "KB");
	for (int i = 1; i <= 10; i++) {
		double ns = measure_once(come_and_go, (struct buffers){1, PAGE}, 1, rounds / 10);

		printf("%10zu %10.0f %10zu\n", rounds / 10 * i, ns, resident());
	}
	verve_mr_cache_stats_get(&cache, &stats);
	printf("hits %llu, misses %llu, invalidations %llu, kept %llu\n",
	       (unsigned long long)stats.hits, (unsigned long long)stats.misses,
	       (unsigned long long)stats.invalidations, (unsigned long long)stats.regions);
	verve_mr_cache_fini(&cache);
}

int main(int argc, char **argv)
{
	static const size_t entries[] = {10, 1000, 100000};
	void *mapped = mmap(NULL, entries[2] * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapped == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	memory = (uintptr_t)mapped;
	verve_log_provider = &provider;
	verve_config.mr_cache = "on";
	if (argc > 1) {
		come_and_go_often(strtoul(argv[1], NULL, 10));
		return 0;
	}
	printf("%8s %10s %10s %10s %10s %12s %10s %10s %10s\n", "entries", "notify", "8 threads",
	       "all", "8 threads", "userfaultfd", "8 threads", "asking", "miss");
	for (int i = 0; i < 3; i++)
		bench(entries[i]);
	return 0;
}
