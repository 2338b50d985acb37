/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Alias: another fid of an endpoint, with default flags of its own: fi_ep_alias, fi_endpoint(3).
 * Everything else is the endpoint's: names, options, bindings, completions, and cancelling.
 *
 * Opening and closing are serialized by the application, as all of an endpoint's control calls are.
 */
#ifndef VERVE_API_ALIAS_H
#define VERVE_API_ALIAS_H

#include <rdma/fabric.h>

struct verve_ep;

/*
 * FI_ALIAS: an alias of ep, which may be one itself, before or after enabling. Flags with FI_TRANSMIT
 * or FI_RECV replace those of that direction; 0: all are as ep's. -FI_EINVAL: other flags without
 * one of the two, or both; -FI_ENOMEM.
 */
int verve_alias_open(struct verve_ep *ep, struct fi_alias *attr);
void verve_alias_close(struct verve_ep *alias);

/* The endpoint has been enabled: so are its aliases. */
void verve_alias_enable_all(struct verve_ep *owner);

#endif
