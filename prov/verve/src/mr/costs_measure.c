/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Measuring: the shortest of a few tries, as other work of the machine only makes a try longer. */
#include "mr/costs_measure.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mr/costs.h"
#include "mr/monitor.h"
#include "net/device.h"
#include "net/mr.h"
#include "net/mw.h"
#include "net/sys.h"

enum {
	PAGE = 4096,
	PAGES = 64,	   /* of the longer region that is measured */
	COPY = 2 * 1024 * 1024, /* more than a processor core's own caches hold */
	READ = 8,	   /* bytes of a read */
	TRIES = 4,
	REQUESTS = 8, /* tries of reads, and of windows: the first ones are slow */
	LOOKS = 16, /* questions to the monitor that are measured together */
	PORTS = 16,
	/* Nanoseconds, both ways. The device reads its own memory, without a wire. */
	WIRE = 1000,
};

/*
 * Nanoseconds. A port may not loop packets back, and the device then never answers: costs are not
 * worth the time of a binder that must know.
 */
static const uint64_t patience = 20000000;

/* The measured costs of each port. A port beyond the last place is measured each time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char device[VERVE_NET_NAME_MAX];
	uint8_t port_num;
	struct verve_mr_costs costs;
} known[PORTS];
static size_t known_count;

/* The thread that held the lock is not in the child: a half noted port is measured again. */
static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static bool known_find(const struct verve_net_port *port, struct verve_mr_costs *costs)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known_count && !found; i++) {
		found = known[i].port_num == port->port_num &&
			!strcmp(known[i].device, port->device);
		if (found)
			*costs = known[i].costs;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void known_add(const struct verve_net_port *port, const struct verve_mr_costs *costs)
{
	pthread_mutex_lock(&lock);
	if (known_count < PORTS) {
		memcpy(known[known_count].device, port->device, VERVE_NET_NAME_MAX);
		known[known_count].port_num = port->port_num;
		known[known_count++].costs = *costs;
	}
	pthread_mutex_unlock(&lock);
}

static uint32_t fit(uint64_t nanoseconds)
{
	return nanoseconds < UINT32_MAX ? nanoseconds : UINT32_MAX;
}

/* Notes the time since start if it is the shortest. */
static void note(uint64_t *best, uint64_t start)
{
	uint64_t took = verve_net_now() - start;

	*best = took < *best ? took : *best;
}

/* Registering memory and deregistering it. 0: it cannot be. */
static uint64_t measure_reg(struct verve_net_device *dev, char *memory, size_t len)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now();
		struct verve_net_mr mr;

		if (verve_net_mr_reg(dev, memory, len, VERVE_NET_LOCAL_WRITE, &mr))
			return 0;
		verve_net_mr_dereg(&mr);
		note(&best, start);
	}
	return best;
}

static uint64_t measure_copy(char *to, const char *from)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now();

		memcpy(to, from, COPY);
		note(&best, start);
	}
	return best / (COPY / PAGE);
}

/* A hit asks the monitor; the rest of it is a few accesses to memory. */
static uint64_t measure_hit(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now();

		for (int look = 0; look < LOOKS; look++)
			(void)verve_mr_monitor_quiet();
		note(&best, start);
	}
	return best / LOOKS + 100;
}

/* memory: twice COPY bytes. */
static void measure_memory(struct verve_net_device *dev, char *memory, struct verve_mr_costs *costs)
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
	costs->reg_known = true;
}

/*
 * Reads within the device: both queue pairs of the binder are its own. The wire is added (WIRE).
 * mr: two pages at memory.
 */
static bool measure_read(struct verve_net_binder *binder, char *memory,
			 const struct verve_net_mr *mr, struct verve_mr_costs *costs)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < REQUESTS; i++) {
		uint64_t start = verve_net_now();

		if (verve_net_binder_read(binder, memory, mr->lkey, memory + PAGE, mr->rkey, READ))
			return false;
		note(&best, start);
	}
	costs->round = fit(best + WIRE);
	costs->round_known = true;
	return true;
}

static void measure_window(struct verve_net_binder *binder, char *memory,
			   const struct verve_net_mr *mr, struct verve_net_mw *mw,
			   struct verve_mr_costs *costs)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < REQUESTS; i++) {
		uint64_t start = verve_net_now();

		if (verve_net_mw_bind(binder, mw, mr, memory, PAGE, VERVE_NET_REMOTE_READ) ||
		    verve_net_mw_unbind(binder, mw, mr, memory))
			return;
		note(&best, start);
	}
	costs->window = best ? fit(best) : 1;
	costs->window_known = true;
}

/*
 * The window goes after the binder, a request of which might bind it again. False: it may still
 * open the memory.
 */
static bool measure_binder(struct verve_net_device *dev, char *memory,
			   const struct verve_net_mr *mr, struct verve_mr_costs *costs)
{
	struct verve_net_binder *binder;
	struct verve_net_mw mw;
	bool windows;

	if (verve_net_binder_open(dev, patience, true, &binder))
		return true;
	windows = measure_read(binder, memory, mr, costs) && !verve_net_mw_alloc(dev, false, &mw);
	if (windows)
		measure_window(binder, memory, mr, &mw, costs);
	verve_net_binder_close(binder);
	return !windows || !verve_net_mw_free(&mw);
}

/* In memory of its own: it is not used again if a window may still open it. */
static void measure_requests(struct verve_net_device *dev, struct verve_mr_costs *costs)
{
	const unsigned access = VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ | VERVE_NET_WINDOWS;
	struct verve_net_mr mr;
	bool closed = true;
	void *memory;

	if (!verve_net_device_port(dev)->limits.mw || posix_memalign(&memory, PAGE, 2 * PAGE))
		return;
	memset(memory, 0, 2 * PAGE);
	if (!verve_net_mr_reg(dev, memory, 2 * PAGE, access, &mr)) {
		closed = measure_binder(dev, memory, &mr, costs);
		verve_net_mr_dereg(&mr);
	}
	if (closed)
		free(memory);
}

void verve_mr_costs_measure(struct verve_net_device *dev, struct verve_mr_costs *costs)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct verve_net_port *port = verve_net_device_port(dev);
	void *memory;

	pthread_once(&once, register_fork);
	if (known_find(port, costs))
		return;
	*costs = verve_mr_costs_default;
	if (posix_memalign(&memory, PAGE, 2 * (size_t)COPY))
		return;
	memset(memory, 1, 2 * (size_t)COPY);
	measure_memory(dev, memory, costs);
	free(memory);
	if (costs->reg_known && port->usable)
		measure_requests(dev, costs);
	/* A port that is down now may be up when the next domain is opened. */
	if (port->usable)
		known_add(port, costs);
	VERVE_INFO(MR,
		   "%s: registering takes %u ns and %u ns for each further page, copying a "
		   "page %u ns, finding a registration %u ns, a read %u ns, a window %u ns\n",
		   port->device, costs->reg, costs->reg_page, costs->copy_page, costs->hit,
		   costs->round, costs->window);
}
