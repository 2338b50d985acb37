/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bind: what an endpoint is bound to, fi_ep_bind of fi_endpoint(3), and its engine to that.
 *
 * All calls for one endpoint are serialized by the application.
 */
#ifndef VERVE_API_BIND_H
#define VERVE_API_BIND_H

#include <rdma/fabric.h>
#include <stdint.h>

struct verve_engine;
struct verve_ep;
struct verve_sink;

/*
 * For struct fi_ops of an endpoint or an alias. Once the endpoint is enabled, counters and shared transmit contexts
 * can still be bound; a counter counts what completes from then on. Each object holds a reference until
 * verve_bind_put_all, except a shared transmit context, of which nothing is kept. -FI_EOPBADSTATE:
 * the endpoint is enabled, and the object of another class; -FI_EINVAL: of another domain, of a class that is not
 * bound, or there is one for this purpose already; -FI_EBADFLAGS; -FI_ENOMEM, -errno: a counter that is bound
 * late cannot watch the endpoint.
 */
int verve_bind(struct fid *ep, struct fid *object, uint64_t flags);
void verve_bind_put_all(struct verve_ep *ep);

/* It has what it needs to be enabled: 0, -FI_ENOAV, -FI_ENOCQ, -FI_ENORX or -FI_EINVAL. */
int verve_bind_check(const struct verve_ep *ep);

/* Where the endpoint's operations report. */
void verve_bind_fill_sink(const struct verve_ep *ep, struct verve_sink *sink);

/*
 * Who reads the bound queues and counters progresses the engine from now on, and the domain's progress thread does.
 * -FI_ENOMEM, -errno: nobody does. Undoing what was never done does nothing.
 */
int verve_bind_engine(struct verve_ep *ep, struct verve_engine *engine);
void verve_bind_engine_undo(struct verve_ep *ep, struct verve_engine *engine);

#endif
