/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Costs: the shortest of a few tries, as other work of the machine only makes a try longer. */
#include "mr/costs.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "mr/monitor.h"
#include "net/device.h"
#include "net/mr.h"
#include "net/sys.h"

enum {
	PAGE = 4096,
	PAGES = 64,	   /* of the longer region that is measured */
	COPY = 2 * 1024 * 1024, /* more than a processor core's own caches hold */
	TRIES = 4,
	LOOKS = 16, /* questions to the monitor that are measured together */
	DEVICES = 16,

	STEP = 1024,	   /* bytes between two lengths that are compared */
	LONGEST = 1 << 20, /* the largest eager size */
	USES = 8,	   /* of memory that is used again, until keeping it must have paid */
	OPERATION = 500,   /* nanoseconds: an operation, and its completion by the device */
	/*
	 * An eager message costs the sender one copy. It costs the receiver three: the device fills
	 * a receive buffer that no cache of the processor's holds, and the processor reads that.
	 * Over shared memory the receiver's part of 64 KiB took three times the sender's.
	 */
	COPIES = 4,
};

/*
 * round and window are never measured: there is no peer yet, and they are the shortest times of
 * present networks.
 */
const struct verve_mr_costs verve_mr_costs_default = {
	.reg = 15000, .reg_page = 60, .hit = 500, .copy_page = 300, .round = 2000, .window = 1500};

/* The measured costs of each device. A device beyond the last place is measured each time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char device[VERVE_NET_NAME_MAX];
	struct verve_mr_costs costs;
} known[DEVICES];
static size_t known_count;

/* The thread that held the lock is not in the child: a half noted device is measured again. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static bool known_find(const char *device, struct verve_mr_costs *costs)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known_count && !found; i++) {
		found = !strcmp(known[i].device, device);
		if (found)
			*costs = known[i].costs;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void known_add(const char *device, const struct verve_mr_costs *costs)
{
	pthread_mutex_lock(&lock);
	if (known_count < DEVICES) {
		memcpy(known[known_count].device, device, VERVE_NET_NAME_MAX);
		known[known_count++].costs = *costs;
	}
	pthread_mutex_unlock(&lock);
}

static uint32_t fit(uint64_t nanoseconds)
{
	return nanoseconds < UINT32_MAX ? nanoseconds : UINT32_MAX;
}

/* The shortest time in which memory is registered and deregistered. 0: it cannot be. */
static uint64_t measure_reg(struct verve_net_device *dev, char *memory, size_t len)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES && best; i++) {
		uint64_t start = verve_net_now(), took;
		struct verve_net_mr mr;

		if (verve_net_mr_reg(dev, memory, len, VERVE_NET_LOCAL_WRITE, &mr))
			return 0;
		verve_net_mr_dereg(&mr);
		took = verve_net_now() - start;
		best = took < best ? took : best;
	}
	return best;
}

static uint64_t measure_copy(char *to, const char *from)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now(), took;

		memcpy(to, from, COPY);
		took = verve_net_now() - start;
		best = took < best ? took : best;
	}
	return best / (COPY / PAGE);
}

/* A hit asks the monitor; the rest of it is a few accesses to memory. */
static uint64_t measure_hit(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now(), took;

		for (int look = 0; look < LOOKS; look++)
			(void)verve_mr_monitor_quiet();
		took = verve_net_now() - start;
		best = took < best ? took : best;
	}
	return best / LOOKS + 100;
}

/* Costs stay as they are where they cannot be measured. */
static void measure(struct verve_net_device *dev, char *memory, struct verve_mr_costs *costs)
{
	uint64_t one = measure_reg(dev, memory, PAGE), many, copy;

	if (!one)
		return;
	many = measure_reg(dev, memory, PAGES * PAGE);
	copy = measure_copy(memory + COPY, memory);
	if (!many || !copy)
		return;
	costs->reg = fit(one);
	costs->reg_page = many > one ? fit((many - one) / (PAGES - 1)) : 0;
	costs->hit = fit(measure_hit());
	costs->copy_page = fit(copy);
}

void verve_mr_costs_measure(struct verve_net_device *dev, struct verve_mr_costs *costs)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *device = verve_net_device_port(dev)->device;
	void *memory;

	pthread_once(&once, register_fork);
	if (known_find(device, costs))
		return;
	*costs = verve_mr_costs_default;
	if (posix_memalign(&memory, PAGE, 2 * (size_t)COPY))
		return;
	memset(memory, 1, 2 * (size_t)COPY);
	measure(dev, memory, costs);
	known_add(device, costs);
	free(memory);
	VERVE_INFO(MR,
		   "%s: registering takes %u ns and %u ns for each further page, copying a "
		   "page %u ns, finding a registration %u ns\n",
		   device, costs->reg, costs->reg_page, costs->copy_page, costs->hit);
}

static uint64_t cost_of_copy(const struct verve_mr_costs *costs, size_t len)
{
	return (uint64_t)costs->copy_page * len / PAGE;
}

static uint64_t cost_of_reg(const struct verve_mr_costs *costs, size_t len)
{
	return costs->reg + (uint64_t)costs->reg_page * ((len - 1) / PAGE);
}

/* Notes the length if it is the first one at which this costs no more than that. */
static void note(size_t *bound, size_t len, uint64_t this, uint64_t that)
{
	if (*bound == SIZE_MAX && this <= that)
		*bound = len;
}

void verve_mr_costs_compare(const struct verve_mr_costs *costs,
			    struct verve_mr_crossover *crossover)
{
	uint64_t offer = costs->round + costs->window + 2 * costs->hit;

	*crossover = (struct verve_mr_crossover){SIZE_MAX, SIZE_MAX, SIZE_MAX,
						 SIZE_MAX, SIZE_MAX, SIZE_MAX};
	for (size_t len = STEP; len <= LONGEST; len += STEP) {
		uint64_t copy = cost_of_copy(costs, len), reg = cost_of_reg(costs, len);
		uint64_t hit = OPERATION + costs->hit;

		note(&crossover->described, len, OPERATION, copy);
		note(&crossover->kept, len, hit, copy);
		note(&crossover->keep, len, reg + USES * hit, USES * copy);
		note(&crossover->fresh, len, hit + reg, copy);
		/* The peer's memory is not registered either, or it copies what it has read. */
		note(&crossover->rendezvous, len,
		     costs->round + hit + reg + (reg < copy ? reg : copy), COPIES * copy);
		/* A peer that takes such messages again and again keeps its side, too. */
		note(&crossover->offer_kept, len, reg + USES * offer, USES * COPIES * copy);
	}
	if (!verve_config_is_auto(verve_config.rendezvous_size))
		crossover->rendezvous = crossover->offer_kept = verve_config.rendezvous_size + 1;
}
