/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tune: what a port's device costs, and the lengths that follow. */
#ifndef VERVE_UTIL_TUNE_H
#define VERVE_UTIL_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "json.h"
#include "mr/costs.h"
#include "net/device.h"
#include "report.h"

struct verve_tune {
	struct verve_mr_costs costs;
	struct verve_mr_crossover crossover; /* that follows, whatever the variables say */
};

/* Measures what an application's first domain would: with a cache of registrations open. */
void verve_tune_measure(struct verve_net_device *dev, struct verve_mr_costs *costs);
/* Fills crossover in from costs. */
void verve_tune_compare(struct verve_tune *tune);

/* Print one port's costs and lengths. subject: its name. */
void verve_tune_print_port(const struct verve_tune *tune, const char *subject, FILE *file);
/* An object, within an array. */
void verve_tune_json_port(const struct verve_tune *tune, const char *subject,
			  struct verve_json *json);

/* Measure and print all usable ports. A port that cannot be measured gets a finding in report. */
void verve_tune_print(const struct verve_net_port *ports, size_t count,
		      const struct verve_style *style, struct verve_report *report);
void verve_tune_json(const struct verve_net_port *ports, size_t count, struct verve_json *json,
		     const char *key, struct verve_report *report);

#endif
