/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ask: a consumer's own question to fi_getinfo(3), and the answer. */
#ifndef VERVE_UTIL_ASK_H
#define VERVE_UTIL_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "consumers.h"
#include "net/device.h"
#include "report.h"

enum { VERVE_ANSWER_LOG_MAX = 256 };

struct verve_answer {
	enum consumer_verdict verdict;
	bool is_asked;		/* libfabric asks verve */
	/* true: the consumer takes verve's answer, or verve has none to give */
	bool is_accepted;
	bool grants_events;	/* the answer has FI_RMA_EVENT, and nobody asked for it */
	char log[VERVE_ANSWER_LOG_MAX]; /* why not, or why not at once; empty: no reason */
};

/* Hints as the consumer's first question has them, for fi_freeinfo. NULL: no memory, or no port. */
struct fi_info *verve_ask_hints(const struct consumer *consumer, const struct verve_net_port *ports,
				size_t count);

/* Asks about the given ports until the consumer has an answer or gives up. -FI_ENOMEM. */
int verve_ask(const struct consumer *consumer, const struct verve_net_port *ports, size_t count,
	      struct verve_answer *answer);

/* All consumers of that key ask verve by its own name, or any provider. */
bool verve_ask_is_direct(const char *key);

/*
 * Findings about all consumers of that key; about a port that stands in where none of ports is
 * usable. 0: no consumer has the key; else how many there are.
 */
size_t verve_ask_report(struct verve_report *report, const char *key,
			const struct verve_net_port *ports, size_t count);

#endif
