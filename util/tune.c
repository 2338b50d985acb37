/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tune: measures what endpoints do not at their start, as it takes a queue pair. */
#include "tune.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "devices.h"
#include "mr/cache.h"
#include "net/mr.h"
#include "net/mw.h"
#include "net/sys.h"
#include "xport/open.h"

enum {
	PAGE = 4096,
	TRIES = 16,
	WIRE = 1000, /* nanoseconds: both ways; the device reads its own memory, without a wire */
};

void verve_tune_start(struct verve_net_device *dev, struct verve_mr_costs *costs)
{
	struct verve_mr_cache cache;

	verve_mr_cache_init(&cache, dev);
	verve_mr_costs_measure(dev, costs);
	verve_mr_cache_fini(&cache);
}

static uint32_t shorter(uint32_t best, uint64_t start)
{
	uint64_t took = verve_net_now() - start;

	return took && took < best ? took : best;
}

/* The binder's queue pair is connected to itself. */
static void measure_read(struct verve_net_binder *binder, char *memory,
			 const struct verve_net_mr *mr, struct verve_tune *tune)
{
	uint32_t best = UINT32_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now();

		if (verve_net_binder_read(binder, memory, mr->lkey, memory + PAGE, mr->rkey, 8))
			return;
		best = shorter(best, start);
	}
	tune->read = best < UINT32_MAX - WIRE;
	if (tune->read)
		tune->costs.round = best + WIRE;
}

static void measure_window(struct verve_net_binder *binder, char *memory,
			   const struct verve_net_mr *mr, struct verve_net_mw *mw,
			   struct verve_tune *tune)
{
	uint32_t best = UINT32_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t start = verve_net_now();

		if (verve_net_mw_bind(binder, mw, mr, memory, PAGE, VERVE_NET_REMOTE_READ) ||
		    verve_net_mw_unbind(binder, mw, mr, memory))
			return;
		best = shorter(best, start);
	}
	tune->window = best < UINT32_MAX;
	if (tune->window)
		tune->costs.window = best;
}

static void measure_offer(struct verve_net_device *dev, char *memory, struct verve_tune *tune)
{
	struct verve_net_binder *binder;
	struct verve_net_mr mr;
	struct verve_net_mw mw;
	bool windows;

	if (verve_net_mr_reg(dev, memory, 2 * PAGE, VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ |
			     VERVE_NET_WINDOWS, &mr))
		return;
	if (verve_net_binder_open(dev, &binder))
		goto out_mr;
	measure_read(binder, memory, &mr, tune);
	windows = !verve_net_mw_alloc(dev, false, &mw);
	if (windows)
		measure_window(binder, memory, &mr, &mw, tune);
	verve_net_binder_close(binder);
	if (windows)
		verve_net_mw_free(&mw);
out_mr:
	verve_net_mr_dereg(&mr);
}

void verve_tune_compare(struct verve_tune *tune)
{
	size_t set = verve_config.rendezvous_size;

	/* A variable that is set would hide what the costs say. */
	verve_config.rendezvous_size = SIZE_MAX;
	verve_mr_costs_compare(&tune->start, &tune->chosen);
	verve_mr_costs_compare(&tune->costs, &tune->better);
	verve_config.rendezvous_size = set;
}

/* With memory and a queue pair of its own. A negative errno, and the log has said why. */
static int measure_port(const struct verve_net_port *port, struct verve_tune *tune)
{
	struct verve_net_device *dev;
	void *memory;
	int ret = verve_net_device_open(port->device, port->port_num, NULL, &dev);

	if (ret)
		return ret;
	*tune = (struct verve_tune){
		.eager = verve_xport_eager_size(dev, verve_config.eager_size)};
	verve_tune_start(dev, &tune->start);
	tune->costs = tune->start;
	if (port->limits.mw && !posix_memalign(&memory, PAGE, 2 * PAGE)) {
		memset(memory, 1, 2 * PAGE);
		measure_offer(dev, memory, tune);
		free(memory);
	}
	verve_tune_compare(tune);
	verve_net_device_close(dev);
	return 0;
}

bool verve_tune_advise(const struct verve_tune *tune, char text[VERVE_TUNE_TEXT_MAX])
{
	size_t better = tune->better.offer_kept, chosen = tune->chosen.offer_kept;
	size_t apart = better < chosen ? chosen - better : better - chosen;

	/* Two measurements of one device differ by some per cent. */
	if (apart <= chosen / 4 || better > tune->eager)
		return false;
	snprintf(text, VERVE_TUNE_TEXT_MAX, "FI_VERVE_RENDEZVOUS_SIZE=%zu", better - 1);
	return true;
}

/* A row of the tables: a cost in ns, or a length. */
struct row {
	const char *key, *what;
	bool measured; /* or, a length: follows from costs that were */
	uint64_t start, value; /* a length of SIZE_MAX: never */
};

enum { COSTS = 6, LENGTHS = 6 };

static void fill_costs(const struct verve_tune *tune, struct row row[COSTS])
{
	const struct verve_mr_costs *start = &tune->start, *now = &tune->costs;
	const struct row rows[COSTS] = {
		{"copy_page", "copying a page", true, start->copy_page, now->copy_page},
		{"reg", "registering a page", true, start->reg, now->reg},
		{"reg_page", "each further page", true, start->reg_page, now->reg_page},
		{"hit", "finding a kept registration", true, start->hit, now->hit},
		{"round", "reading, without the bytes", tune->read, start->round, now->round},
		{"window", "opening and ending a window", tune->window, start->window,
		 now->window},
	};

	memcpy(row, rows, sizeof(rows));
}

static void fill_lengths(const struct verve_tune *tune, struct row row[LENGTHS])
{
	const struct verve_mr_crossover *start = &tune->chosen, *now = &tune->better;
	const struct row rows[LENGTHS] = {
		{"described", "a descriptor instead of a copy", true, start->described,
		 now->described},
		{"kept", "a kept registration instead of a copy", true, start->kept, now->kept},
		{"keep", "a registration is kept", true, start->keep, now->keep},
		{"fresh", "a registration for one use", true, start->fresh, now->fresh},
		{"offer_kept", "kept buffers are read by the peer", tune->read && tune->window,
		 start->offer_kept, now->offer_kept},
		{"rendezvous", "all buffers are read by the peer", tune->read, start->rendezvous,
		 now->rendezvous},
	};

	memcpy(row, rows, sizeof(rows));
}

static const char *length_text(uint64_t value, char text[24])
{
	if (value == SIZE_MAX)
		return "never";
	snprintf(text, 24, "%" PRIu64, value);
	return text;
}

void verve_tune_print_port(const struct verve_tune *tune, const char *subject, FILE *file)
{
	struct row cost[COSTS], length[LENGTHS];
	char advice[VERVE_TUNE_TEXT_MAX], start[24], value[24];

	fill_costs(tune, cost);
	fill_lengths(tune, length);
	fprintf(file, "%s: costs, ns\n", subject);
	for (int i = 0; i < COSTS; i++)
		fprintf(file, "  %-40s %8" PRIu64 "%s\n", cost[i].what, cost[i].value,
			cost[i].measured ? "" : "  not measured: the default");
	fprintf(file, "  %-40s %8s %8s\n", "from this length on, bytes", "costs", "start");
	for (int i = 0; i < LENGTHS; i++)
		fprintf(file, "  %-40s %8s %8s%s\n", length[i].what,
			length_text(length[i].value, value),
			length_text(length[i].start, start),
			length[i].measured ? "" : "  from a default cost");
	fprintf(file, "  %s\n", verve_tune_advise(tune, advice) ? advice :
		"nothing to set: endpoints choose about the same");
}

/*
 * Measures the first usable port from place on that can be measured; the others get a finding.
 * Returns the place behind it, or 0: there is none.
 */
static size_t measure_next(const struct verve_net_port *ports, size_t count, size_t place,
			   struct verve_tune *tune, char subject[VERVE_FINDING_TEXT_MAX],
			   struct verve_report *report)
{
	for (; place < count; place++) {
		int ret;

		if (!ports[place].usable)
			continue;
		verve_devices_subject(&ports[place], subject);
		ret = measure_port(&ports[place], tune);
		if (!ret)
			return place + 1;
		verve_report_add(report, VERVE_WARNING, subject, NULL,
				 "its costs cannot be measured: %s", fi_strerror(-ret));
	}
	return 0;
}

void verve_tune_print(const struct verve_net_port *ports, size_t count,
		      const struct verve_style *style, struct verve_report *report)
{
	char subject[VERVE_FINDING_TEXT_MAX];
	struct verve_tune tune;
	size_t place = 0;

	while ((place = measure_next(ports, count, place, &tune, subject, report)))
		verve_tune_print_port(&tune, subject, style->file);
}

static void json_rows(struct verve_json *json, const char *key, const struct row *row, int count,
		      bool lengths)
{
	verve_json_begin(json, key, '[');
	for (int i = 0; i < count; i++) {
		verve_json_begin(json, NULL, '{');
		verve_json_text(json, "name", row[i].key);
		if (lengths && row[i].value == SIZE_MAX)
			verve_json_text(json, "value", NULL);
		else
			verve_json_number(json, "value", row[i].value);
		if (lengths && row[i].start == SIZE_MAX)
			verve_json_text(json, "start", NULL);
		else
			verve_json_number(json, "start", row[i].start);
		verve_json_bool(json, "measured", row[i].measured);
		verve_json_end(json, '}');
	}
	verve_json_end(json, ']');
}

void verve_tune_json_port(const struct verve_tune *tune, const char *subject,
			  struct verve_json *json)
{
	struct row cost[COSTS], length[LENGTHS];
	char advice[VERVE_TUNE_TEXT_MAX];

	fill_costs(tune, cost);
	fill_lengths(tune, length);
	verve_json_begin(json, NULL, '{');
	verve_json_text(json, "port", subject);
	json_rows(json, "costs", cost, COSTS, false);
	json_rows(json, "lengths", length, LENGTHS, true);
	verve_json_text(json, "set", verve_tune_advise(tune, advice) ? advice : NULL);
	verve_json_end(json, '}');
}

void verve_tune_json(const struct verve_net_port *ports, size_t count, struct verve_json *json,
		     const char *key, struct verve_report *report)
{
	char subject[VERVE_FINDING_TEXT_MAX];
	struct verve_tune tune;
	size_t place = 0;

	verve_json_begin(json, key, '[');
	while ((place = measure_next(ports, count, place, &tune, subject, report)))
		verve_tune_json_port(&tune, subject, json);
	verve_json_end(json, ']');
}
