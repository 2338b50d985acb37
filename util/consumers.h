/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Consumers: the questions that applications ask fi_getinfo(3), version by version, as read in
 * their sources, and the fields of the answer that they look at. Source of doc/consumers.md and of
 * verve_info --as.
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
	/* for verve_info --as: one name for each application's way to use libfabric */
	const char *key;
	const char *name;
	const char *part; /* component, build or endpoint */
	const char *source; /* a tag or commit that was read; "expected": none was */
	uint32_t version; /* that it asks for */
	const char *prov_name; /* that it insists on; NULL: none */
	bool adopts; /* asks version 0.0 without hints first, and takes the capabilities */
	void (*ask)(struct fi_info *hints);
	/* attempt from 1 on; NULL or false: the consumer gives up */
	bool (*ask_less)(struct fi_info *hints, unsigned attempt);
	bool (*accepts)(const struct fi_info *info); /* NULL: any answer */
	enum consumer_verdict verdict; /* expected */
	/* a refusal: the text that the log's line must have; NULL: verve is not asked */
	const char *log;
};

extern const struct consumer consumers[];
extern const size_t consumer_count;

#endif
