/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Printing: what was read of a host, for people and for programs. */
#ifndef VERVE_UTIL_STAT_PRINT_H
#define VERVE_UTIL_STAT_PRINT_H

#include <stdbool.h>
#include <stdio.h>

#include "stat_device.h"
#include "stat_qp.h"
#include "stat_read.h"

/* One look at everything. */
struct verve_stat_look {
	struct verve_stat_host host;
	struct verve_stat_device device;
	struct verve_stat_qps qps;
};

/*
 * Tables: each process with its domains, endpoints and peers; counters of devices and of queue
 * pairs that are not zero. before, if not NULL: an earlier look; then messages, requests and bytes
 * of peers are printed per second since that look, and counters of devices and of queue pairs as
 * what they grew since then. Other numbers stay sums. verbose: also each peer's numbers that are
 * not zero.
 */
void verve_stat_print(FILE *file, const struct verve_stat_look *look,
		      const struct verve_stat_look *before, bool verbose);
/* One JSON object. */
void verve_stat_print_json(FILE *file, const struct verve_stat_look *look);
/* Prometheus's text format (version 0.0.4): each metric once, with all its samples behind it. */
void verve_stat_print_prometheus(FILE *file, const struct verve_stat_look *look);
/*
 * The last events of each peer that has this address, or this host. Returns how many peers there
 * are.
 */
size_t verve_stat_print_events(FILE *file, const struct verve_stat_look *look, const char *peer);

#endif
