/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Consumers: what applications ask fi_getinfo(3), version by version, as read in their sources, and
 * what they look at in the answer. doc/consumers.md and verve_info --as are made of it.
 */
#ifndef VERVE_UTIL_CONSUMERS_H
#define VERVE_UTIL_CONSUMERS_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum consumer_verdict {
	CONSUMER_RUNS,
	CONSUMER_LIMITED, /* after it asked for less */
	CONSUMER_REFUSED,
};

struct consumer {
	const char *key; /* of verve_info --as: one of each application's way to use libfabric */
	const char *name;
	const char *part; /* component, build or endpoint */
	const char *source; /* a tag or commit that was read; "expected": none was */
	uint32_t version; /* that it asks for */
	const char *prov_name; /* that it insists on; NULL: none */
	bool adopts; /* asks version 0.0 without hints first, and takes the capabilities */
	void (*ask)(struct fi_info *hints);
	bool (*ask_less)(struct fi_info *hints, unsigned attempt); /* from 1 on; NULL or false: gives up */
	bool (*accepts)(const struct fi_info *info); /* NULL: whatever it is */
	enum consumer_verdict verdict; /* expected */
	const char *log; /* refused: what the line of the log has to say; NULL: verve is not asked */
};

extern const struct consumer consumers[];
extern const size_t consumer_count;

#endif
