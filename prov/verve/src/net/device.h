/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device: the list of this host's RDMA ports, usable or not and why; an open device on one port.
 *
 * Source: ibv_get_device_list(3), ibv_query_device_ex(3), ibv_query_port(3), ibv_query_gid_ex(3).
 */
#ifndef VERVE_NET_DEVICE_H
#define VERVE_NET_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "net/port_info.h"

struct verve_net_device; /* an open device: context, protection domain, one port */

enum verve_net_fault_kind {
	VERVE_NET_FAULT_NONE,
	VERVE_NET_FAULT_CQ,  /* IBV_EVENT_CQ_ERR */
	VERVE_NET_FAULT_SRQ, /* IBV_EVENT_SRQ_ERR */
	VERVE_NET_FAULT_QP,  /* IBV_EVENT_QP_FATAL */
};

/* An object of the device that has failed. It may be closed by now. */
struct verve_net_fault {
	enum verve_net_fault_kind kind;
	/* CQ, SRQ: the struct verve_net_cq or verve_net_srq; to be compared only */
	const void *queue;
	uint32_t qp_num; /* QP */
};

/*
 * Every port of every device, usable or not. No device is not an error: *count is 0, the return
 * value 0, and the log says at level info what was looked for and what to do. Queries the devices
 * anew at each call. The caller frees the list with verve_net_port_list_free. -FI_ENOMEM. Any
 * thread.
 */
int verve_net_port_list(struct verve_net_port **list, size_t *count);
void verve_net_port_list_free(struct verve_net_port *list, size_t count);

/*
 * Opens a device by its name ("mlx5_0") and one of its ports (from 1), and chooses the port's GID
 * for addr, the endpoint's own IP address (NULL: the best address). An address handle was created
 * for that GID as a proof, if the device has any. Logs the reason of a failure.
 * -FI_ENODEV: no such device, port or address; -FI_ENOMEM, or the error of libibverbs.
 */
int verve_net_device_open(const char *device, uint8_t port_num, const struct verve_addr *addr,
			  struct verve_net_device **dev);
/* Every object opened on the device must be closed. */
void verve_net_device_close(struct verve_net_device *dev);

/* Owned by the device, constant while the device is open. addrs holds the one chosen address. */
const struct verve_net_port *verve_net_device_port(const struct verve_net_device *dev);

/*
 * Asynchronous events (ibv_get_async_event(3)). The descriptor polls readable while an event
 * waits; the device owns it. verve_net_device_async_next takes one event without blocking and
 * logs it; *fault: what the event says has failed. Service thread only. 0: an event was taken, call
 * again. -FI_EAGAIN: no event waits. -FI_ENODEV: no event waits, and the device is lost (removed,
 * or a fatal error).
 */
int verve_net_device_async_fd(const struct verve_net_device *dev);
int verve_net_device_async_next(struct verve_net_device *dev, struct verve_net_fault *fault);

#endif
