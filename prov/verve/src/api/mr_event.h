/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events as libfabric sees them: counters that are bound to memory regions (fi_mr_bind of
 * fi_mr(3)), and endpoints with FI_RMA_EVENT, whose peers say what they do to these regions. A
 * region belongs to the domain, so every such endpoint makes progress for every such counter.
 *
 * The lists and their lock are in the domain (struct verve_mr_events). The lock is taken before the
 * lock of a counter and of an engine. Any thread.
 */
#ifndef VERVE_API_MR_EVENT_H
#define VERVE_API_MR_EVENT_H

#include <stdint.h>
#include <sys/queue.h>

struct verve_cntr;
struct verve_domain;
struct verve_engine;
struct verve_ep;
struct verve_mr_key;

/*
 * The counters of one region. Embedded in the region, all zero except for key, which is in the
 * domain's table.
 */
struct verve_mr_event {
	LIST_ENTRY(verve_mr_event) link;
	struct verve_mr_key *key;
	struct verve_cntr *read, *write; /* NULL: none is bound; else this holds a reference */
};

/*
 * From now on cntr counts the operations of peers that flags name: FI_REMOTE_READ, FI_REMOTE_WRITE,
 * or both. -FI_EBADFLAGS: other flags; -FI_EINVAL: no flag, the region has a counter for a flag
 * already, or cntr belongs to another domain; or an error of verve_cntr_bind_engine.
 */
int verve_mr_event_bind(struct verve_domain *domain, struct verve_mr_event *event,
			struct verve_cntr *cntr, uint64_t flags);
/*
 * The region closes, and its key has been removed from the table: lets go of its counters. Does
 * nothing for a region without counters.
 */
void verve_mr_event_unbind(struct verve_domain *domain, struct verve_mr_event *event);

/*
 * From now on engine, of the endpoint ep with FI_RMA_EVENT, makes progress for every counter of the
 * domain's regions, also for counters that are bound later. Errors as verve_cntr_bind_engine.
 */
int verve_mr_events_add(struct verve_ep *ep, struct verve_engine *engine);
/* Undoes verve_mr_events_add. Does nothing for an engine that was never added. */
void verve_mr_events_remove(struct verve_ep *ep, struct verve_engine *engine);

#endif
