/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opening and closing a transport: the device's queues, buffers, tables. Only proto/proto.h calls
 * it.
 */
#ifndef VERVE_XPORT_OPEN_H
#define VERVE_XPORT_OPEN_H

#include "xport/xport.h"

struct verve_lock;

/* Bytes of an eager payload at most: wanted, or less if the device's longest request is shorter. */
size_t verve_xport_eager_size(const struct verve_net_device *dev, size_t wanted);

/*
 * Opens everything but the connection manager: the engine sets xport->cm later. protocols and lock
 * outlive the transport; each packet type has a handler (asserted). No receive buffer is posted
 * yet: verve_dispatch_open does that. 0, or the device's error: nothing is open then.
 */
int verve_xport_init(struct verve_xport *xport, const struct verve_xport_attr *attr,
		     const struct verve_protocols *protocols, struct verve_lock *lock);
/* Closes the queues; frees the buffers, tables and peers. No link may be left (asserted). */
void verve_xport_fini(struct verve_xport *xport);

/*
 * Opens the transport of a shared receive context. Its pools of operations and its ids of peers
 * serve all transports that have it as attr.shared, under one lock. It has no device, and is never
 * polled. Of attr, only mr_cache, min_multi_recv, addrvec and sink count; addrvec and sink are
 * those of one of the sharing transports, and change with them. Always 0.
 */
int verve_xport_init_shared(struct verve_xport *xport, const struct verve_xport_attr *attr,
			    const struct verve_protocols *protocols, struct verve_lock *lock);
/* Frees the tables and peers. The transports that share this one must be closed before. */
void verve_xport_fini_shared(struct verve_xport *xport);

#endif
