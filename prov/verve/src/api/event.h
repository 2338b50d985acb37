/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events as libfabric sees them: counters bound to memory regions (fi_mr_bind), and the
 * endpoints with FI_RMA_EVENT that hear of what peers do to these regions. A region is the domain's:
 * every such endpoint progresses every such counter.
 *
 * The lists and their lock are the domain's (struct verve_events). The lock is taken before a counter's and an
 * engine's. Any thread.
 */
#ifndef VERVE_API_EVENT_H
#define VERVE_API_EVENT_H

#include <stdint.h>
#include <sys/queue.h>

struct verve_cntr;
struct verve_domain;
struct verve_engine;
struct verve_ep;
struct verve_mr_key;

/* Embedded in a region of the application, zeroed but for key, which is in the domain's table. */
struct verve_mr_event {
	LIST_ENTRY(verve_mr_event) link;
	struct verve_mr_key *key;
	struct verve_cntr *read, *write; /* NULL: none bound. Each holds a reference */
};

/*
 * From now on cntr counts what flags, FI_REMOTE_READ and FI_REMOTE_WRITE, name. -FI_EBADFLAGS; -FI_EINVAL:
 * no flag, one that has a counter already, or a counter of another domain; or as verve_cntr_bind_engine.
 */
int verve_event_bind(struct verve_domain *domain, struct verve_mr_event *event,
		     struct verve_cntr *cntr, uint64_t flags);
/* The region closes; its key is out of the table. Does nothing to one without counters. */
void verve_event_unbind(struct verve_domain *domain, struct verve_mr_event *event);

/* An endpoint's engine starts to hear of RMA; ends. Errors as verve_cntr_bind_engine. */
int verve_events_add(struct verve_ep *ep, struct verve_engine *engine);
/* One that was never added: does nothing. */
void verve_events_remove(struct verve_ep *ep, struct verve_engine *engine);

#endif
