/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake net/device.h: hosts, their ports, and open devices. */
#include "net/device.h"
#include "net/stamp.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_world.h"

static struct fake_host *host_at(uint32_t h)
{
	if (h >= fake_world.config.hosts)
		fake_fatal("there is no host %u", h);
	return &fake_world.hosts[h];
}

void fake_net_host_addr(uint32_t h, struct verve_addr *addr)
{
	*addr = host_at(h)->addrs[0].addr;
}

void fake_net_host_kill(uint32_t h)
{
	host_at(h)->dead = true;
}

void fake_net_host_pause(uint32_t h, bool paused)
{
	host_at(h)->paused = paused;
	if (!paused)
		fake_threads_wake();
}

void fake_net_link(uint32_t h, bool up)
{
	host_at(h)->down = !up;
}

void fake_net_hold(uint32_t h, bool hold)
{
	host_at(h)->holds = hold;
}

void fake_net_device_remove(uint32_t h)
{
	struct verve_net_device *dev;

	host_at(h)->removed = true;
	LIST_FOREACH (dev, &fake_world.devices, link)
		if (dev->host == host_at(h))
			fake_device_async(dev);
}

void fake_net_port_reject(uint32_t h, const char *reason)
{
	struct fake_host *host = host_at(h);

	snprintf(host->reason, sizeof(host->reason), "%s", reason ? reason : "");
}

void fake_net_stamps(void)
{
	fake_world.stamps = true;
}

void fake_net_host_addrs(uint32_t h, uint32_t addrs, uint32_t gids)
{
	host_at(h)->netdev_addrs = addrs;
	host_at(h)->addr_count = gids;
}

bool verve_net_stamp_take(struct verve_net_stamp *stamp)
{
	uint64_t digest = 0;

	for (uint32_t i = 0; i < fake_world.config.hosts; i++) {
		const struct fake_host *host = &fake_world.hosts[i];

		digest = fake_mix(digest, host->netdev_addrs ? host->netdev_addrs :
							       host->addr_count);
		digest = fake_mix(digest, host->down | host->removed << 1);
		for (const char *at = host->reason; *at; at++)
			digest = fake_mix(digest, (unsigned char)*at);
	}
	memset(stamp, 0, sizeof(*stamp));
	memcpy(stamp->bytes, &digest, sizeof(digest));
	return fake_world.stamps;
}

bool fake_is_reachable(const struct fake_host *a, const struct fake_host *b)
{
	if (a->dead || b->dead || a->removed || b->removed)
		return false;
	return a == b || (!a->down && !b->down);
}

struct fake_host *fake_host_of_addr(const struct verve_addr *addr)
{
	uint32_t index;

	if (addr->sa.sa_family == AF_INET)
		index = ntohl(addr->in.sin_addr.s_addr) - 0x0a010001;
	else
		index = ntohl(addr->in6.sin6_addr.s6_addr32[3]) - 1;
	if (index >= fake_world.config.hosts)
		return NULL;
	for (uint32_t i = 0; i < fake_world.hosts[index].addr_count; i++)
		if (verve_addr_same_host(&fake_world.hosts[index].addrs[i].addr, addr))
			return &fake_world.hosts[index];
	return NULL;
}

struct fake_host *fake_host_of_gid(const struct verve_net_gid *gid)
{
	static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct fake_host *host;
	uint32_t index;

	memcpy(&index, gid->raw + 12, sizeof(index));
	index = ntohl(index);
	index -= memcmp(gid->raw, v4_mapped, 12) ? 1 : 0x0a010001;
	if (index >= fake_world.config.hosts)
		return NULL;
	host = &fake_world.hosts[index];
	for (uint32_t i = 0; i < host->addr_count; i++)
		if (!memcmp(host->addrs[i].gid.raw, gid->raw, sizeof(gid->raw)))
			return host;
	return NULL;
}

void fake_port_fill(struct fake_host *host, struct verve_net_port *port)
{
	*port = (struct verve_net_port){
		.port_num = 1,
		.ethernet = true,
		.usable = !host->reason[0] && !host->removed,
		.mtu = host->unopened ? 0 : fake_world.config.mtu,
		.speed = 100000000000,
		.limits = fake_world.config.limits,
		.vendor_id = 0xfa,
		.vendor_part_id = 0x4e,
		.hw_version = 1,
		.on_pci = true,
		.pci_bus = (uint8_t)(host->index + 1),
		.addrs = host->addrs,
		.addr_count = host->addr_count,
	};
	snprintf(port->device, sizeof(port->device), "fake%u", host->index);
	snprintf(port->netdev, sizeof(port->netdev), "fakenet%u", host->index);
	snprintf(port->rate, sizeof(port->rate), "4X EDR");
	snprintf(port->firmware, sizeof(port->firmware), "1.0");
	snprintf(port->reason, sizeof(port->reason), "%s", host->reason);
	port->reason_may_end = host->reason_may_end;
}

int verve_net_port_list(struct verve_net_port **list, size_t *count)
{
	uint32_t hosts = fake_world.config.hosts, n = 0;
	int ret = fake_gate(FAKE_NET_PORT_LIST);

	if (ret)
		return ret;
	*list = calloc(hosts, sizeof(**list));
	if (!*list)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < hosts; i++) {
		struct verve_net_port *port = &(*list)[n];

		if (fake_world.hosts[i].removed)
			continue;
		fake_port_fill(&fake_world.hosts[i], port);
		port->addrs = malloc(sizeof(fake_world.hosts[i].addrs));
		if (!port->addrs)
			fake_fatal("no memory");
		memcpy(port->addrs, fake_world.hosts[i].addrs, sizeof(fake_world.hosts[i].addrs));
		n++;
	}
	*count = n;
	fake_world.stats.port_lists++;
	fake_opened(FAKE_PORT_LIST);
	return 0;
}

void verve_net_port_list_free(struct verve_net_port *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(list[i].addrs);
	free(list);
	fake_closed(FAKE_PORT_LIST);
}

static const struct verve_net_portaddr *choose_addr(const struct fake_host *host,
						    const struct verve_addr *addr)
{
	if (!addr)
		return &host->addrs[0];
	for (uint32_t i = 0; i < host->addr_count; i++)
		if (verve_addr_same_host(&host->addrs[i].addr, addr))
			return &host->addrs[i];
	return NULL;
}

int verve_net_device_open(const char *device, uint8_t port_num, const struct verve_addr *addr,
			  struct verve_net_device **devp)
{
	const struct verve_net_portaddr *chosen;
	struct verve_net_device *dev;
	unsigned index;
	int end = 0, ret = fake_gate(FAKE_NET_DEVICE_OPEN);

	if (ret)
		return ret;
	if (sscanf(device, "fake%u%n", &index, &end) != 1 || device[end] || port_num != 1 ||
	    index >= fake_world.config.hosts)
		return -FI_ENODEV;
	chosen = choose_addr(&fake_world.hosts[index], addr);
	if (!chosen || fake_world.hosts[index].removed || fake_world.hosts[index].reason[0])
		return -FI_ENODEV;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -FI_ENOMEM;
	dev->host = &fake_world.hosts[index];
	dev->addr = *chosen;
	fake_port_fill(dev->host, &dev->port);
	dev->port.addrs = &dev->addr;
	dev->port.addr_count = 1;
	dev->async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->async_fd < 0)
		fake_fatal("no descriptor");
	LIST_INSERT_HEAD(&fake_world.devices, dev, link);
	fake_opened(FAKE_DEVICE);
	*devp = dev;
	return 0;
}

void verve_net_device_close(struct verve_net_device *dev)
{
	if (dev->users || dev->mr_count)
		fake_fatal("%s is closed with %u queues and %u regions open on it",
			   dev->port.device, dev->users, dev->mr_count);
	LIST_REMOVE(dev, link);
	fake_world.eventful -= dev->async_events > 0;
	close(dev->async_fd);
	free(dev);
	fake_closed(FAKE_DEVICE);
}

const struct verve_net_port *verve_net_device_port(const struct verve_net_device *dev)
{
	return &dev->port;
}

void fake_device_async(struct verve_net_device *dev)
{
	uint64_t one = 1;

	fake_world.eventful += !dev->async_events++;
	if (write(dev->async_fd, &one, sizeof(one)) != sizeof(one))
		fake_fatal("eventfd is full");
	fake_threads_wake();
}

bool fake_device_has_fd(int fd)
{
	struct verve_net_device *dev;

	LIST_FOREACH (dev, &fake_world.devices, link)
		if (dev->async_fd == fd)
			return true;
	return false;
}

int verve_net_device_async_fd(const struct verve_net_device *dev)
{
	return dev->async_fd;
}

void fake_net_fault(uint32_t h, const struct verve_net_fault *fault)
{
	struct verve_net_device *dev;

	LIST_FOREACH (dev, &fake_world.devices, link) {
		if (dev->host != host_at(h))
			continue;
		dev->fault = *fault;
		fake_device_async(dev);
	}
}

int verve_net_device_async_next(struct verve_net_device *dev, struct verve_net_fault *fault)
{
	uint64_t count;

	*fault = (struct verve_net_fault){0};
	if (dev->host->removed)
		return -FI_ENODEV;
	if (!dev->async_events)
		return -FI_EAGAIN;
	if (!--dev->async_events) {
		fake_world.eventful--;
		if (read(dev->async_fd, &count, sizeof(count)) < 0)
			fake_fatal("eventfd is empty");
	}
	*fault = dev->fault;
	dev->fault = (struct verve_net_fault){0};
	return 0;
}
