/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tune: measures as a domain does when it is opened, and prints a table, or JSON. */
#include "tune.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "devices.h"
#include "mr/cache.h"
#include "mr/costs_measure.h"

void verve_tune_measure(struct verve_net_device *dev, struct verve_mr_costs *costs)
{
	struct verve_mr_cache cache;

	verve_mr_cache_init(&cache, dev);
	verve_mr_costs_measure(dev, costs);
	verve_mr_cache_fini(&cache);
}

void verve_tune_compare(struct verve_tune *tune)
{
	size_t set = verve_config.rendezvous_size;

	/* A variable that is set would hide what the costs say. */
	verve_config.rendezvous_size = SIZE_MAX;
	verve_mr_costs_compare(&tune->costs, &tune->crossover);
	verve_config.rendezvous_size = set;
}

/* A negative errno, and the log has said why. */
static int measure_port(const struct verve_net_port *port, struct verve_tune *tune)
{
	struct verve_net_device *dev;
	int ret = verve_net_device_open(port->device, port->port_num, NULL, &dev);

	if (ret)
		return ret;
	verve_tune_measure(dev, &tune->costs);
	verve_tune_compare(tune);
	verve_net_device_close(dev);
	return 0;
}

/* A row of the tables: a cost in ns, or a length. */
struct row {
	const char *key, *what;
	bool measured; /* or, a length: follows from costs that were */
	uint64_t value; /* a length of SIZE_MAX: never */
};

enum { COSTS = 6, LENGTHS = 7 };

static void fill_costs(const struct verve_tune *tune, struct row row[COSTS])
{
	const struct verve_mr_costs *costs = &tune->costs;
	const bool reg = costs->reg_known, round = costs->round_known;
	const struct row rows[COSTS] = {
		{"copy_page", "copying a page", reg, costs->copy_page},
		{"reg", "registering a page", reg, costs->reg},
		{"reg_page", "each further page", reg, costs->reg_page},
		{"hit", "finding a kept registration", reg, costs->hit},
		{"round", "reading, without the bytes", round, costs->round},
		{"window", "opening and ending a window", costs->window_known, costs->window},
	};

	memcpy(row, rows, sizeof(rows));
}

static void fill_lengths(const struct verve_tune *tune, struct row row[LENGTHS])
{
	const struct verve_mr_crossover *length = &tune->crossover;
	const bool reg = tune->costs.reg_known, read = reg && tune->costs.round_known;
	const bool offer = read && tune->costs.window_known;
	const struct row rows[LENGTHS] = {
		{"described", "a descriptor instead of a copy", reg, length->described},
		{"kept", "a kept registration instead of a copy", reg, length->kept},
		{"keep", "a registration is kept", reg, length->keep},
		{"fresh", "a registration for one use", reg, length->fresh},
		{"offer_kept", "kept buffers are read by the peer", offer, length->offer_kept},
		{"rendezvous", "all buffers are read by the peer", read, length->rendezvous},
		{"stage", "bytes of a stage of a registration", reg, length->stage},
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
	char text[24];

	fill_costs(tune, cost);
	fill_lengths(tune, length);
	fprintf(file, "%s: costs, ns\n", subject);
	for (int i = 0; i < COSTS; i++)
		fprintf(file, "  %-40s %8" PRIu64 "%s\n", cost[i].what, cost[i].value,
			cost[i].measured ? "" : "  not measured: the default");
	fprintf(file, "  from this length on, bytes\n");
	for (int i = 0; i < LENGTHS; i++)
		fprintf(file, "  %-40s %8s%s\n", length[i].what,
			length_text(length[i].value, text),
			length[i].measured ? "" : "  from a default cost");
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
		verve_json_bool(json, "measured", row[i].measured);
		verve_json_end(json, '}');
	}
	verve_json_end(json, ']');
}

void verve_tune_json_port(const struct verve_tune *tune, const char *subject,
			  struct verve_json *json)
{
	struct row cost[COSTS], length[LENGTHS];

	fill_costs(tune, cost);
	fill_lengths(tune, length);
	verve_json_begin(json, NULL, '{');
	verve_json_text(json, "port", subject);
	json_rows(json, "costs", cost, COSTS, false);
	json_rows(json, "lengths", length, LENGTHS, true);
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
