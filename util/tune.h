/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tune: what a port's device costs, the lengths that follow, and the variable that sets them. */
#ifndef VERVE_UTIL_TUNE_H
#define VERVE_UTIL_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "json.h"
#include "mr/costs.h"
#include "net/device.h"
#include "report.h"

enum { VERVE_TUNE_TEXT_MAX = 48 };

struct verve_tune {
	struct verve_mr_costs start; /* as an application's first endpoint takes them */
	struct verve_mr_costs costs; /* the same, but reads and windows as measured */
	bool read, window;	     /* these were measured */
	struct verve_mr_crossover chosen; /* of start, whatever the variables say */
	struct verve_mr_crossover better; /* of costs */
	size_t eager;			  /* payload that fits a receive buffer on this device */
};

/* Measures what an application's first endpoint would: with a cache of registrations open. */
void verve_tune_start(struct verve_net_device *dev, struct verve_mr_costs *costs);
/* Fills chosen and better in from start and costs. */
void verve_tune_compare(struct verve_tune *tune);
/*
 * Writes "NAME=VALUE" into text: the setting by which the peer reads all buffers, kept or not, from
 * better.offer_kept on. False, and text stays as it is: endpoints choose about that length by
 * themselves (at most a quarter apart), or it is beyond the eager size, where all are read anyway.
 */
bool verve_tune_advise(const struct verve_tune *tune, char text[VERVE_TUNE_TEXT_MAX]);

/* Print one port's costs, lengths and setting. subject: its name. */
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
