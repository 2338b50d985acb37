/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device: the list of all ports, opening one, and its asynchronous events. */
#include "net/device.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "net/fork.h"
#include "net/path.h"
#include "net/port.h"
#include "net/verbs.h"

struct port_list {
	struct verve_net_port *ports;
	size_t count;
};

static struct verve_net_port *list_add(struct port_list *list)
{
	struct verve_net_port *ports;

	ports = realloc(list->ports, (list->count + 1) * sizeof(*ports));
	if (!ports)
		return NULL;
	list->ports = ports;
	return &ports[list->count];
}

static int list_unopened(struct port_list *list, struct ibv_device *device, int error)
{
	struct verve_net_port *port = list_add(list);

	if (!port)
		return -FI_ENOMEM;
	verve_port_set_unopened(port, device, error);
	list->count++;
	return 0;
}

static int list_ports(struct port_list *list, struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_device_attr device;
	int ret = ibv_query_device(ctx, &device);

	if (ret)
		return list_unopened(list, ctx->device, ret);
	for (unsigned i = 1; i <= device.phys_port_cnt; i++) {
		struct verve_net_port *port = list_add(list);
		struct verve_port_attr attr;

		if (!port)
			return -FI_ENOMEM;
		ret = verve_port_look(ctx, pd, i, port, &attr);
		list->count++;
		if (ret)
			return ret;
	}
	return 0;
}

static int list_device(struct port_list *list, struct ibv_device *device)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	int ret;

	errno = 0;
	ctx = ibv_open_device(device);
	if (!ctx)
		return list_unopened(list, device, errno);
	errno = 0;
	pd = ibv_alloc_pd(ctx);
	if (!pd) {
		ret = list_unopened(list, device, errno);
		goto out_ctx;
	}
	ret = list_ports(list, ctx, pd);
	ibv_dealloc_pd(pd);
out_ctx:
	ibv_close_device(ctx);
	return ret;
}

int verve_net_port_list(struct verve_net_port **ports, size_t *count)
{
	struct ibv_device **devices;
	struct port_list list = {0};
	int device_count, ret = 0;

	*ports = NULL;
	*count = 0;
	verve_net_fork_prepare();
	errno = 0;
	devices = ibv_get_device_list(&device_count);
	if (!devices) {
		if (errno == ENOMEM)
			return -FI_ENOMEM;
		VERVE_INFO(FABRIC,
			   "no RDMA devices: %s (are the modules ib_core and ib_uverbs loaded?)\n",
			   strerror(-verve_net_error(errno)));
		return 0;
	}
	if (!device_count)
		VERVE_INFO(FABRIC,
			   "no RDMA devices: libibverbs finds none in this network namespace (is "
			   "the NIC's RDMA driver loaded, such as mlx5_ib? without an RDMA NIC: "
			   "rdma link add rxe0 type rxe netdev INTERFACE; verve_info says more)\n");
	for (int i = 0; !ret && i < device_count; i++)
		ret = list_device(&list, devices[i]);
	ibv_free_device_list(devices);
	if (ret) {
		verve_net_port_list_free(list.ports, list.count);
		return ret;
	}
	*ports = list.ports;
	*count = list.count;
	return 0;
}

void verve_net_port_list_free(struct verve_net_port *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		verve_net_port_fini(&list[i]);
	free(list);
}

const char *verve_net_port_remedy(const struct verve_net_port *port)
{
	const char *colon = strstr(port->reason, ": ");

	return colon ? colon + 2 : NULL;
}

static int open_context(struct verve_net_device *dev, const char *name)
{
	struct ibv_device **devices;
	int ret = -FI_ENODEV;

	verve_net_fork_prepare();
	devices = ibv_get_device_list(NULL);
	for (size_t i = 0; devices && devices[i]; i++) {
		if (strcmp(ibv_get_device_name(devices[i]), name))
			continue;
		errno = 0;
		dev->ctx = ibv_open_device(devices[i]);
		ret = dev->ctx ? 0 : verve_net_error(errno);
		break;
	}
	if (devices)
		ibv_free_device_list(devices);
	if (ret)
		VERVE_WARN(DOMAIN, "%s: cannot open: %s\n", name, fi_strerror(-ret));
	return ret;
}

/* Leaves in the port only the address that the device is opened for. want NULL: the best. */
static int choose_addr(struct verve_net_device *dev, const struct verve_addr *want)
{
	struct verve_net_port *port = &dev->port;
	char name[VERVE_ADDR_STRLEN];
	size_t i = 0;

	if (!port->usable) {
		VERVE_WARN(DOMAIN, "%s port %u: %s\n", port->device, port->port_num, port->reason);
		return -FI_ENODEV;
	}
	while (want && i < port->addr_count && !verve_addr_same_host(&port->addrs[i].addr, want))
		i++;
	if (i == port->addr_count) {
		VERVE_WARN(DOMAIN, "%s port %u: has no GID for %s\n", port->device, port->port_num,
			   verve_addr_str(want, name));
		return -FI_ENODEV;
	}
	dev->addr = port->addrs[i];
	verve_net_port_fini(port);
	port->addrs = &dev->addr;
	port->addr_count = 1;
	VERVE_INFO(DOMAIN, "%s port %u: address %s, GID index %u\n", port->device, port->port_num,
		   verve_addr_str(&dev->addr.addr, name), dev->addr.gid_index);
	return 0;
}

static int open_port(struct verve_net_device *dev, uint8_t port_num, const struct verve_addr *addr)
{
	struct verve_port_attr attr;
	int flags, ret;

	ret = verve_port_look(dev->ctx, dev->pd, port_num, &dev->port, &attr);
	if (!ret)
		ret = choose_addr(dev, addr);
	if (ret) {
		verve_net_port_fini(&dev->port);
		return ret;
	}
	ret = verve_path_fill(dev, &attr, &dev->addr, &dev->path);
	if (ret)
		return ret;
	AO_store(&dev->inline_max, UINT32_MAX);
	flags = fcntl(dev->ctx->async_fd, F_GETFL);
	if (flags < 0 || fcntl(dev->ctx->async_fd, F_SETFL, flags | O_NONBLOCK))
		return verve_net_error(errno);
	return 0;
}

int verve_net_device_open(const char *device, uint8_t port_num, const struct verve_addr *addr,
			  struct verve_net_device **devp)
{
	struct verve_net_device *dev = calloc(1, sizeof(*dev));
	int ret;

	if (!dev)
		return -FI_ENOMEM;
	ret = open_context(dev, device);
	if (ret)
		goto err_free;
	errno = 0;
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd) {
		ret = verve_net_error(errno);
		VERVE_WARN(DOMAIN, "%s: cannot allocate a protection domain: %s\n", device,
			   fi_strerror(-ret));
		goto err_ctx;
	}
	verve_lock_init(&dev->look_lock, false);
	verve_lock_init(&dev->path_lock, false);
	ret = open_port(dev, port_num, addr);
	if (ret)
		goto err_lock;
	*devp = dev;
	return 0;

err_lock:
	verve_lock_fini(&dev->path_lock);
	verve_lock_fini(&dev->look_lock);
	ibv_dealloc_pd(dev->pd);
err_ctx:
	ibv_close_device(dev->ctx);
err_free:
	free(dev);
	return ret;
}

void verve_net_device_close(struct verve_net_device *dev)
{
	int ret = ibv_dealloc_pd(dev->pd);

	if (ret)
		VERVE_WARN(DOMAIN, "%s: cannot free the protection domain: %s\n", dev->port.device,
			   strerror(ret));
	ibv_close_device(dev->ctx);
	verve_lock_fini(&dev->path_lock);
	verve_lock_fini(&dev->look_lock);
	free(dev);
}

const struct verve_net_port *verve_net_device_port(const struct verve_net_device *dev)
{
	return &dev->port;
}

int verve_net_device_async_fd(const struct verve_net_device *dev)
{
	return dev->ctx->async_fd;
}

/* True if the event says that something of the port's address may be another. */
static bool event_moves_port(const struct verve_net_device *dev,
			     const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_PORT_ACTIVE:
		return event->element.port_num == dev->port.port_num;
	default:
		return false;
	}
}

/* True if the event is about a binder of memory windows. */
static bool event_is_of_binder(const struct ibv_async_event *event)
{
	const struct verve_net_cq *cq;
	const struct verve_net_srq *srq = NULL;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		cq = event->element.cq->cq_context;
		return cq->binds;
	case IBV_EVENT_SRQ_ERR:
		srq = event->element.srq->srq_context;
		return srq->binds;
	case IBV_EVENT_QP_FATAL:
		srq = event->element.qp->srq ? event->element.qp->srq->srq_context : NULL;
		return srq && srq->binds;
	default:
		return false;
	}
}

/* What the event says has failed, and in *remedy, a constant, what that means to the user. */
static struct verve_net_fault fault_of(const struct ibv_async_event *event, const char **remedy)
{
	static const char of_queue[] = ": the endpoint of that queue has failed; close it and "
				       "open another (dmesg may say why)";

	*remedy = "";
	if (event_is_of_binder(event)) {
		*remedy = ": no endpoint fails; a domain binds its memory windows over another "
			  "queue pair";
		return (struct verve_net_fault){0};
	}
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		*remedy = of_queue;
		return (struct verve_net_fault){
			.kind = VERVE_NET_FAULT_CQ,
			.queue = event->element.cq->cq_context,
		};
	case IBV_EVENT_SRQ_ERR:
		*remedy = of_queue;
		return (struct verve_net_fault){
			.kind = VERVE_NET_FAULT_SRQ,
			.queue = event->element.srq->srq_context,
		};
	case IBV_EVENT_QP_FATAL:
		*remedy = ": one connection goes on over another queue pair";
		return (struct verve_net_fault){
			.kind = VERVE_NET_FAULT_QP,
			.qp_num = event->element.qp->qp_num,
		};
	case IBV_EVENT_DEVICE_FATAL:
		*remedy = ": all endpoints on the device have failed; close them (dmesg may say "
			  "why)";
		/* fall through */
	default:
		return (struct verve_net_fault){0};
	}
}

int verve_net_device_async_next(struct verve_net_device *dev, struct verve_net_fault *fault)
{
	struct ibv_async_event event;
	const char *remedy;

	*fault = (struct verve_net_fault){0};
	if (ibv_get_async_event(dev->ctx, &event)) {
		if (errno == EAGAIN || errno == EINTR)
			return dev->lost ? -FI_ENODEV : -FI_EAGAIN;
		/* The driver has gone: each further read of the descriptor fails the same way. */
		if (!dev->lost)
			VERVE_WARN(DOMAIN, "%s: the device was removed: %s\n", dev->port.device,
				   strerror(errno));
		dev->lost = true;
		return -FI_ENODEV;
	}
	/* After this event all objects of the device can only be closed: ibv_get_async_event(3). */
	if (event.event_type == IBV_EVENT_DEVICE_FATAL)
		dev->lost = true;
	if (event_moves_port(dev, &event))
		verve_path_expire(dev);
	*fault = fault_of(&event, &remedy);
	if (*remedy || event.event_type == IBV_EVENT_PORT_ERR)
		VERVE_WARN(DOMAIN, "%s: %s%s\n", dev->port.device,
			   ibv_event_type_str(event.event_type), remedy);
	else
		VERVE_INFO(DOMAIN, "%s: %s\n", dev->port.device,
			   ibv_event_type_str(event.event_type));
	/* Closing the queue or queue pair of the event waits until the event is acknowledged. */
	ibv_ack_async_event(&event);
	return 0;
}
