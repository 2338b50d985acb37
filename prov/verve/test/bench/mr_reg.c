/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a registration costs on a device, in microseconds, by size: ibv_reg_mr(3) and
 * ibv_dereg_mr(3) alone; get and put of a cache that keeps nothing; a hit; a miss of memory that
 * stays mapped, and one of memory that is unmapped after each use, beside that use without a cache;
 * a memory window for peers in a kept registration, opened and closed.
 *
 * usage: mr_reg [ROUNDS]
 */
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/config.h"
#include "base/log.h"
#include "mr/cache.h"
#include "mr/region.h"
#include "mr/store.h"
#include "net/device.h"

enum { ACCESS = VERVE_NET_LOCAL_WRITE };

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static struct verve_mr_cache off, on, strict;

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static char *map(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("no memory");
	memset(memory, 1, size);
	return memory;
}

static void raw(char *memory, size_t size)
{
	struct verve_net_mr mr;

	if (verve_net_mr_reg(dev, memory, size, ACCESS, &mr))
		die("cannot register");
	verve_net_mr_dereg(&mr);
}

static void get_put(struct verve_mr_cache *cache, char *memory, size_t size)
{
	struct verve_mr_region *region;

	if (verve_mr_cache_get(cache, memory, size, ACCESS, &region))
		die("cannot register");
	verve_mr_cache_put(cache, region);
}

static void uncached(char *memory, size_t size)
{
	get_put(&off, memory, size);
}

static void hit(char *memory, size_t size)
{
	get_put(&on, memory, size);
}

static void miss(char *memory, size_t size)
{
	verve_mr_store_invalidate(on.store, (uintptr_t)memory, (uintptr_t)memory + size);
	get_put(&on, memory, size);
}

static void map_off(char *memory, size_t size)
{
	char *mine = map(size);

	(void)memory;
	get_put(&off, mine, size);
	munmap(mine, size);
}

static void map_on(char *memory, size_t size)
{
	char *mine = map(size);

	(void)memory;
	get_put(&on, mine, size);
	munmap(mine, size);
}

/* On a device without windows: a registration for peers. */
static void window(char *memory, size_t size)
{
	struct verve_mr_region *region;

	if (verve_mr_cache_get_exact(&strict, memory, size, VERVE_NET_REMOTE_READ, NULL, &region))
		die("cannot register");
	verve_mr_cache_put(&strict, region);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static double measure(void (*fn)(char *memory, size_t size), char *memory, size_t size, int rounds)
{
	double start;

	fn(memory, size); /* warm */
	start = now();
	for (int i = 0; i < rounds; i++)
		fn(memory, size);
	return (now() - start) / rounds;
}

static void open_all(void)
{
	struct verve_net_port *list;
	size_t count, i = 0;

	verve_log_provider = &provider;
	if (verve_net_port_list(&list, &count))
		die("no memory");
	while (i < count && !list[i].usable)
		i++;
	if (i == count || verve_net_device_open(list[i].device, list[i].port_num, NULL, &dev))
		die("no usable device here");
	printf("%s\n", list[i].device);
	verve_net_port_list_free(list, count);
	verve_config.mr_cache = "off";
	verve_mr_cache_init(&off, dev);
	verve_config.mr_cache = "on";
	verve_mr_cache_init(&on, dev);
	verve_config.mr_cache = "strict";
	verve_mr_cache_init(&strict, dev);
	if (!on.store || !strict.store)
		die("no monitor here: nothing is kept");
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {4096, 65536, 1 << 20, 16 << 20};
	int rounds = argc > 1 ? atoi(argv[1]) : 200;

	open_all();
	printf("%10s %10s %10s %10s %10s %12s %12s %10s\n", "bytes", "raw", "off", "hit", "miss",
	       "unmap, off", "unmap, on", "window");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *memory = map(sizes[i]);

		printf("%10zu %10.1f %10.1f %10.1f %10.1f %12.1f %12.1f %10.1f\n", sizes[i],
		       measure(raw, memory, sizes[i], rounds),
		       measure(uncached, memory, sizes[i], rounds),
		       measure(hit, memory, sizes[i], rounds),
		       measure(miss, memory, sizes[i], rounds),
		       measure(map_off, NULL, sizes[i], rounds),
		       measure(map_on, NULL, sizes[i], rounds),
		       measure(window, memory, sizes[i], rounds));
		munmap(memory, sizes[i]);
	}
	verve_mr_cache_fini(&strict);
	verve_mr_cache_fini(&on);
	verve_mr_cache_fini(&off);
	verve_net_device_close(dev);
	return 0;
}
