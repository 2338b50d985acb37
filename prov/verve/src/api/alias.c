/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Alias: a copy of the fields of an endpoint that data transfer calls read. So these calls need not
 * know whether they have an alias. Control calls go to the owner (ep_open.c, bind.c).
 */
#include "api/alias.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/ep.h"

int verve_alias_open(struct verve_ep *ep, struct fi_alias *attr)
{
	struct verve_ep *alias = calloc(1, sizeof(*alias));
	int ret;

	if (!alias)
		return -FI_ENOMEM;
	alias->fid = ep->fid;
	alias->owner = ep->owner;
	alias->domain = ep->domain;
	alias->engine = ep->engine;
	alias->caps = ep->caps;
	alias->directed = ep->directed;
	alias->tagged_directed = ep->tagged_directed;
	alias->tx_selective = ep->tx_selective;
	alias->rx_selective = ep->rx_selective;
	alias->tx_op_flags = ep->tx_op_flags;
	alias->rx_op_flags = ep->rx_op_flags;
	verve_ep_update_flags(alias);
	ret = attr->flags ? verve_ep_set_op_flags(alias, attr->flags) : 0;
	if (ret) {
		free(alias);
		return ret;
	}
	LIST_INSERT_HEAD(&alias->owner->aliases, alias, alias);
	*attr->fid = &alias->fid.fid;
	return 0;
}

void verve_alias_close(struct verve_ep *alias)
{
	LIST_REMOVE(alias, alias);
	free(alias);
}

void verve_alias_enable_all(struct verve_ep *owner)
{
	struct verve_ep *alias;

	LIST_FOREACH(alias, &owner->aliases, alias) {
		alias->engine = owner->engine;
		/* Queues may have been bound after the alias was opened. */
		alias->tx_selective = owner->tx_selective;
		alias->rx_selective = owner->rx_selective;
		verve_ep_update_flags(alias);
	}
}
