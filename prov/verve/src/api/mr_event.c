/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA events: each counter of a region is bound to the engine of each endpoint with FI_RMA_EVENT.
 */
#include "api/mr_event.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "api/cntr.h"
#include "api/domain.h"
#include "api/ep.h"
#include "base/log.h"

static const uint64_t kinds = FI_REMOTE_READ | FI_REMOTE_WRITE;

static bool is_counted(const struct verve_mr_events *events, const struct verve_cntr *cntr)
{
	const struct verve_mr_event *event;

	LIST_FOREACH(event, &events->regions, link)
		if (event->read == cntr || event->write == cntr)
			return true;
	return false;
}

static bool is_bound(const struct verve_ep *ep, const struct verve_cntr *cntr)
{
	for (int i = 0; i < VERVE_EP_CNTRS; i++)
		if (ep->cntr[i] == cntr)
			return true;
	return false;
}

/*
 * If no region uses the counter any more, unbinds it from all engines, except where the application
 * has bound the counter to the endpoint itself.
 */
static void unbind_unused(struct verve_mr_events *events, struct verve_cntr *cntr)
{
	struct verve_ep *ep;

	if (is_counted(events, cntr))
		return;
	LIST_FOREACH(ep, &events->eps, event)
		if (!is_bound(ep, cntr))
			verve_cntr_unbind_engine(cntr, ep->engine);
}

static int bind_to_all(struct verve_mr_events *events, struct verve_cntr *cntr)
{
	struct verve_ep *ep;

	LIST_FOREACH(ep, &events->eps, event) {
		int ret = verve_cntr_bind_engine(cntr, ep->engine);

		if (ret) {
			unbind_unused(events, cntr);
			return ret;
		}
	}
	return 0;
}

static void event_set(struct verve_domain *domain, struct verve_mr_event *event,
		      struct verve_cntr *cntr, uint64_t flags)
{
	if (!event->read && !event->write)
		LIST_INSERT_HEAD(&domain->events.regions, event, link);
	if (flags & FI_REMOTE_READ) {
		verve_cntr_get(cntr);
		event->read = cntr;
	}
	if (flags & FI_REMOTE_WRITE) {
		verve_cntr_get(cntr);
		event->write = cntr;
	}
	verve_mr_keytab_count(&domain->mr_keytab, event->key,
			      flags & FI_REMOTE_READ ? &cntr->counter : NULL,
			      flags & FI_REMOTE_WRITE ? &cntr->counter : NULL);
}

int verve_mr_event_bind(struct verve_domain *domain, struct verve_mr_event *event,
			struct verve_cntr *cntr, uint64_t flags)
{
	struct verve_mr_events *events = &domain->events;
	int ret;

	if (flags & ~kinds)
		return -FI_EBADFLAGS;
	if (!flags || cntr->domain != domain)
		return -FI_EINVAL;
	pthread_mutex_lock(&events->lock);
	if ((flags & FI_REMOTE_READ && event->read) || (flags & FI_REMOTE_WRITE && event->write)) {
		VERVE_WARN(MR, "region %#" PRIx64 " has such a counter already\n", event->key->key);
		ret = -FI_EINVAL;
	} else {
		ret = bind_to_all(events, cntr);
	}
	if (!ret)
		event_set(domain, event, cntr, flags);
	pthread_mutex_unlock(&events->lock);
	return ret;
}

void verve_mr_event_unbind(struct verve_domain *domain, struct verve_mr_event *event)
{
	struct verve_mr_events *events = &domain->events;
	struct verve_cntr *cntrs[] = {event->read, event->write};

	if (!event->read && !event->write)
		return;
	pthread_mutex_lock(&events->lock);
	LIST_REMOVE(event, link);
	for (int i = 0; i < 2; i++)
		if (cntrs[i]) {
			unbind_unused(events, cntrs[i]);
			verve_cntr_put(cntrs[i]);
		}
	pthread_mutex_unlock(&events->lock);
}

static struct verve_ep *event_find(struct verve_mr_events *events, const struct verve_ep *wanted)
{
	struct verve_ep *ep;

	LIST_FOREACH(ep, &events->eps, event)
		if (ep == wanted)
			return ep;
	return NULL;
}

void verve_mr_events_remove(struct verve_ep *ep, struct verve_engine *engine)
{
	struct verve_mr_events *events = &ep->domain->events;
	struct verve_mr_event *event;

	pthread_mutex_lock(&events->lock);
	LIST_FOREACH(event, &events->regions, link) {
		if (event->read)
			verve_cntr_unbind_engine(event->read, engine);
		if (event->write)
			verve_cntr_unbind_engine(event->write, engine);
	}
	if (event_find(events, ep))
		LIST_REMOVE(ep, event);
	pthread_mutex_unlock(&events->lock);
}

int verve_mr_events_add(struct verve_ep *ep, struct verve_engine *engine)
{
	struct verve_mr_events *events = &ep->domain->events;
	struct verve_mr_event *event;
	int ret = 0;

	pthread_mutex_lock(&events->lock);
	LIST_FOREACH(event, &events->regions, link) {
		if (!ret && event->read)
			ret = verve_cntr_bind_engine(event->read, engine);
		if (!ret && event->write)
			ret = verve_cntr_bind_engine(event->write, engine);
	}
	if (!ret)
		LIST_INSERT_HEAD(&events->eps, ep, event);
	pthread_mutex_unlock(&events->lock);
	return ret;
}
