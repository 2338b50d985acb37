/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Alias: another fid of an endpoint, with default operation flags of its own: fi_ep_alias of
 * fi_endpoint(3). All else is the endpoint's: name, options, bindings, completions and cancelling.
 *
 * Any thread may open and close aliases. Those of one endpoint are in its list, under its
 * alias_lock: no other lock is taken under it.
 */
#ifndef VERVE_API_ALIAS_H
#define VERVE_API_ALIAS_H

#include <rdma/fabric.h>
#include <stdbool.h>

struct verve_ep;

/*
 * For fi_control with FI_ALIAS: opens an alias of ep, before or after ep is enabled. ep may be an
 * alias itself; the new alias then belongs to the same endpoint. attr->flags: FI_TRANSMIT or
 * FI_RECV, and the default flags of that direction; 0: all default flags are those of ep.
 * *attr->fid is the new alias; the application closes it before the endpoint.
 * -FI_EINVAL: attr->flags is not 0, and names neither direction or both; -FI_EBADFLAGS: flags that
 * the direction does not have; -FI_ENOMEM.
 */
int verve_alias_open(struct verve_ep *ep, struct fi_alias *attr);
void verve_alias_close(struct verve_ep *alias);
/* The endpoint owner must not be closed yet. */
bool verve_alias_is_any_open(struct verve_ep *owner);

/*
 * The endpoint owner has been enabled: gives its engine and its selective completion to its
 * aliases.
 */
void verve_alias_enable_all(struct verve_ep *owner);

#endif
