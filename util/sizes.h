/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sizes: how a port's messages and RMA writes travel, by their length, and the limits behind it. */
#ifndef VERVE_UTIL_SIZES_H
#define VERVE_UTIL_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "mr/costs.h"
#include "net/device.h"
#include "report.h"

enum { VERVE_SIZES_MAX = 5, VERVE_SIZES_TEXT_MAX = 112 };

struct verve_size {
	uint64_t from, to;		   /* bytes of payload; UINT64_MAX: no end */
	const char *what;		   /* "inline" */
	const char *how;
	char source[VERVE_SIZES_TEXT_MAX]; /* of the bound to */
};

struct verve_sizes {
	struct verve_size row[VERVE_SIZES_MAX];
	size_t count;
};

/* The limits, in bytes. */
struct verve_sizes_limits {
	/* granted for inline data to a queue pair that asked for the configured size */
	size_t granted;
	size_t eager;	/* payload that fits a receive buffer on this device */
	size_t read;	/* payload of an RDMA read, at most */
	struct verve_mr_crossover crossover; /* of the device, as measured */
};

/* Asks the device, with a queue pair of its own. A negative errno, and the log has said why. */
int verve_sizes_measure(const struct verve_net_port *port, struct verve_sizes_limits *limits);

/* Messages as the loaded configuration and these limits make them. */
void verve_sizes_fill(struct verve_sizes *sizes, const struct verve_sizes_limits *limits);

/* Print the tables of all usable ports. A port that cannot be measured gets a finding in report. */
void verve_sizes_print(const struct verve_net_port *ports, size_t count,
		       const struct verve_style *style, struct verve_report *report);
void verve_sizes_json(const struct verve_net_port *ports, size_t count, struct verve_json *json,
		      const char *key, struct verve_report *report);

#endif
