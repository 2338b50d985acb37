/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bind: the objects that an endpoint is bound to (fi_ep_bind of fi_endpoint(3)), and the binding of
 * its engine to these objects.
 *
 * The application serializes all calls for one endpoint, except that several threads may bind
 * counters to an enabled endpoint.
 */
#ifndef VERVE_API_BIND_H
#define VERVE_API_BIND_H

#include <rdma/fabric.h>
#include <stdint.h>

struct verve_engine;
struct verve_ep;
struct verve_lock;
struct verve_sink;

/*
 * bind of struct fi_ops, for an endpoint or an alias. After the endpoint is enabled, only counters
 * and shared transmit contexts can be bound; a counter counts operations that complete from then
 * on. The endpoint holds a reference of each object until verve_bind_put_all, except of a shared
 * transmit context, which the endpoint does not need any more.
 * -FI_EOPBADSTATE: the endpoint is enabled, and the object is of another class; -FI_EDOMAIN: the
 * object belongs to another domain; -FI_EINVAL: its class cannot be bound, or the endpoint has an
 * object for this purpose already; -FI_EBADFLAGS; -FI_ENOMEM or -errno: the wait descriptor of a
 * counter that is bound late cannot watch the endpoint.
 */
int verve_bind(struct fid *ep, struct fid *object, uint64_t flags);
void verve_bind_put_all(struct verve_ep *ep);

/*
 * Whether the endpoint has the objects that it needs to be enabled. 0; -FI_ENOAV: no address
 * vector; -FI_ENOCQ: no completion queue or counter for a direction that it was opened for;
 * -FI_ENORX or -FI_EINVAL: no shared receive or transmit context, though it was opened to use one.
 */
int verve_bind_check(const struct verve_ep *ep);

/*
 * A lock for the endpoint's engine, which one of its queues lends until verve_bind_put_all: so
 * whoever reads that queue takes no other. NULL: no queue can.
 */
struct verve_lock *verve_bind_lend_lock(struct verve_ep *ep);

/* Fills sink with the queues and counters to which the endpoint's operations report. */
void verve_bind_fill_sink(const struct verve_ep *ep, struct verve_sink *sink);

/*
 * Makes room for the one entry that the event queue (the endpoint's, or else the domain's) gets if
 * the endpoint fails. Does nothing if there is no queue, or room already. -FI_ENOMEM. drop frees
 * it: no entry comes any more, but one that another thread is adding already. prepare and drop must
 * not run at the same time.
 */
int verve_bind_prepare_failure(struct verve_ep *ep);
void verve_bind_drop_failure(struct verve_ep *ep);
/* Takes the entry back, unless the application has read it. The endpoint's engine is closed. */
void verve_bind_forget_failure(struct verve_ep *ep);
/*
 * failed of struct verve_engine_attr: the endpoint, ep, has failed. Adds the entry that was
 * prepared, if there is one. Takes the queue's lock alone, and no memory. Any thread.
 */
void verve_bind_report_failure(void *ep, int error);

/*
 * From now on, reading one of the bound queues and counters makes progress on the engine, and so
 * does the domain's progress thread. -FI_ENOMEM or -errno: nothing is bound. verve_bind_engine_undo
 * does nothing for an engine that was never bound. No lock may be held.
 */
int verve_bind_engine(struct verve_ep *ep, struct verve_engine *engine);
void verve_bind_engine_undo(struct verve_ep *ep, struct verve_engine *engine);

#endif
