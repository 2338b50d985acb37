/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tune: what a port's device costs, the lengths that follow, and the variable that sets them. */
#ifndef VERVE_UTIL_TUNE_H
#define VERVE_UTIL_TUNE_H

#include <stdbool.h>
#include <stddef.h>

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

/* Measures with memory and a queue pair of its own. A negative errno, and the log has said why. */
int verve_tune_measure(const struct verve_net_port *port, struct verve_tune *tune);
/* Fills chosen and better in from the costs. */
void verve_tune_compare(struct verve_tune *tune);
/*
 * Writes "NAME=VALUE", the setting by which kept buffers are read from the better length on. False:
 * endpoints choose about that length (at most a quarter apart), or no message of the eager size or
 * less would be read.
 */
bool verve_tune_advise(const struct verve_tune *tune, char text[VERVE_TUNE_TEXT_MAX]);

/* Print all usable ports. A port that cannot be measured gets a finding in report. */
void verve_tune_print(const struct verve_net_port *ports, size_t count,
		      const struct verve_style *style, struct verve_report *report);
void verve_tune_json(const struct verve_net_port *ports, size_t count, struct verve_json *json,
		     const char *key, struct verve_report *report);

#endif
