/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Alias: a copy of the fields of an endpoint that data transfer calls read. So these calls need not
 * know whether they have an alias. Control calls go to the owner (ep_open.c, bind.c).
 */
#include "api/alias.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/ep.h"

/* The lock of the owner's aliases is held. */
static int alias_fill(struct verve_ep *alias, const struct verve_ep *ep, uint64_t flags)
{
	alias->fid = ep->fid;
	alias->owner = ep->owner;
	alias->domain = ep->domain;
	/* Before that, enabling may still fail, and close the engine. */
	alias->engine = ep->owner->aliases_enabled ? ep->owner->engine : NULL;
	alias->caps = ep->caps;
	alias->directed = ep->directed;
	alias->tagged_directed = ep->tagged_directed;
	alias->tx_selective = ep->tx_selective;
	alias->rx_selective = ep->rx_selective;
	alias->tx_op_flags = ep->tx_op_flags;
	alias->rx_op_flags = ep->rx_op_flags;
	verve_ep_update_flags(alias);
	return flags ? verve_ep_set_op_flags(alias, flags) : 0;
}

/*
 * An alias is filled and listed in one step: if the endpoint is enabled meanwhile, the alias has
 * its engine either from here or from verve_alias_enable_all.
 */
int verve_alias_open(struct verve_ep *ep, struct fi_alias *attr)
{
	struct verve_ep *alias = calloc(1, sizeof(*alias));
	int ret;

	if (!alias)
		return -FI_ENOMEM;
	pthread_mutex_lock(&ep->owner->alias_lock);
	ret = alias_fill(alias, ep, attr->flags);
	if (!ret)
		LIST_INSERT_HEAD(&alias->owner->aliases, alias, alias);
	pthread_mutex_unlock(&ep->owner->alias_lock);
	if (ret) {
		free(alias);
		return ret;
	}
	*attr->fid = &alias->fid.fid;
	return 0;
}

void verve_alias_close(struct verve_ep *alias)
{
	struct verve_ep *owner = alias->owner;

	pthread_mutex_lock(&owner->alias_lock);
	LIST_REMOVE(alias, alias);
	pthread_mutex_unlock(&owner->alias_lock);
	free(alias);
}

bool verve_alias_is_any_open(struct verve_ep *owner)
{
	bool any;

	pthread_mutex_lock(&owner->alias_lock);
	any = !LIST_EMPTY(&owner->aliases);
	pthread_mutex_unlock(&owner->alias_lock);
	return any;
}

void verve_alias_enable_all(struct verve_ep *owner)
{
	struct verve_ep *alias;

	pthread_mutex_lock(&owner->alias_lock);
	owner->aliases_enabled = true;
	LIST_FOREACH(alias, &owner->aliases, alias) {
		alias->engine = owner->engine;
		/* Queues may have been bound after the alias was opened. */
		alias->tx_selective = owner->tx_selective;
		alias->rx_selective = owner->rx_selective;
		verve_ep_update_flags(alias);
	}
	pthread_mutex_unlock(&owner->alias_lock);
}
