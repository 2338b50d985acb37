/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* NIC: filled in from the port, copied, printed. */
#include "api/nic.h"

#include <rdma/fi_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/stubs.h"
#include "net/device.h"

static int nic_close(struct fid *fid);
static int nic_control(struct fid *fid, int command, void *arg);
static int nic_tostr(const struct fid *fid, char *buf, size_t len);

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.bind = verve_stub_bind,
	.control = nic_control,
	.ops_open = verve_stub_ops_open,
	.tostr = nic_tostr,
	.ops_set = verve_stub_ops_set,
};

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = (struct fid_nic *)fid;

	if (nic->device_attr) {
		free(nic->device_attr->name);
		free(nic->device_attr->device_id);
		free(nic->device_attr->device_version);
		free(nic->device_attr->vendor_id);
		free(nic->device_attr->driver);
		free(nic->device_attr->firmware);
	}
	if (nic->link_attr) {
		free(nic->link_attr->address);
		free(nic->link_attr->network_type);
	}
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

/* Allocates a NIC with all its parts, which are empty. */
static struct fid_nic *alloc_nic(void)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (nic->device_attr && nic->bus_attr && nic->link_attr)
		return nic;
	nic_close(&nic->fid);
	return NULL;
}

__attribute__((format(printf, 1, 2)))
static char *format_text(const char *format, ...)
{
	va_list args;
	char *copy;
	int len;

	va_start(args, format);
	len = vasprintf(&copy, format, args);
	va_end(args);
	return len < 0 ? NULL : copy;
}

/* Copies a text. A NULL stays NULL. False: no memory. */
static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static int dup_nic(const struct fid_nic *from, struct fid_nic **to)
{
	struct fid_nic *nic = alloc_nic();

	if (!nic)
		return -FI_ENOMEM;
	*nic->bus_attr = *from->bus_attr;
	nic->link_attr->mtu = from->link_attr->mtu;
	nic->link_attr->speed = from->link_attr->speed;
	nic->link_attr->state = from->link_attr->state;
	if (copy_text(&nic->device_attr->name, from->device_attr->name) &&
	    copy_text(&nic->device_attr->device_id, from->device_attr->device_id) &&
	    copy_text(&nic->device_attr->device_version, from->device_attr->device_version) &&
	    copy_text(&nic->device_attr->vendor_id, from->device_attr->vendor_id) &&
	    copy_text(&nic->device_attr->driver, from->device_attr->driver) &&
	    copy_text(&nic->device_attr->firmware, from->device_attr->firmware) &&
	    copy_text(&nic->link_attr->address, from->link_attr->address) &&
	    copy_text(&nic->link_attr->network_type, from->link_attr->network_type)) {
		*to = nic;
		return 0;
	}
	nic_close(&nic->fid);
	return -FI_ENOMEM;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_DUP)
		return -FI_ENOSYS;
	return dup_nic((const struct fid_nic *)fid, arg);
}

__attribute__((format(printf, 3, 4)))
static void append(char *buf, size_t len, const char *format, ...)
{
	size_t used = strnlen(buf, len);
	va_list args;

	if (used >= len)
		return;
	va_start(args, format);
	vsnprintf(buf + used, len - used, format, args);
	va_end(args);
}

static const char *state_str(enum fi_link_state state)
{
	switch (state) {
	case FI_LINK_DOWN:
		return "FI_LINK_DOWN";
	case FI_LINK_UP:
		return "FI_LINK_UP";
	default:
		return "FI_LINK_UNKNOWN";
	}
}

/* Appends to the text in buf, in the format of fi_tostr(3). */
static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = (const struct fid_nic *)fid;
	const struct fi_device_attr *device = nic->device_attr;
	const struct fi_bus_attr *bus = nic->bus_attr;
	const struct fi_link_attr *link = nic->link_attr;

	append(buf, len, "nic:\n    fi_device_attr:\n        name: %s\n        device_id: %s\n",
	       device->name, device->device_id);
	append(buf, len, "        device_version: %s\n        vendor_id: %s\n",
	       device->device_version, device->vendor_id);
	append(buf, len, "        driver: %s\n        firmware: %s\n", device->driver,
	       device->firmware);
	if (bus->bus_type == FI_BUS_PCI)
		append(buf, len, "    fi_bus_attr:\n        bus_type: FI_BUS_PCI\n"
		       "        fi_pci_attr:\n            domain_id: %u\n            bus_id: %u\n"
		       "            device_id: %u\n            function_id: %u\n",
		       bus->attr.pci.domain_id, bus->attr.pci.bus_id, bus->attr.pci.device_id,
		       bus->attr.pci.function_id);
	else
		append(buf, len, "    fi_bus_attr:\n        bus_type: FI_BUS_UNKNOWN\n");
	append(buf, len,
	       "    fi_link_attr:\n        address: %s\n        mtu: %zu\n        speed: %zu\n",
	       link->address, link->mtu, link->speed);
	append(buf, len, "        state: %s\n        network_type: %s\n", state_str(link->state),
	       link->network_type);
	return 0;
}

int verve_nic_open(const struct verve_net_port *port, struct fid_nic **nicp)
{
	struct fid_nic *nic = alloc_nic();

	if (!nic)
		return -FI_ENOMEM;
	nic->device_attr->name = format_text("%s", port->device);
	nic->device_attr->device_id = format_text("0x%04x", port->vendor_part_id);
	nic->device_attr->device_version = format_text("%u", port->hw_version);
	nic->device_attr->vendor_id = format_text("0x%04x", port->vendor_id);
	nic->device_attr->driver = format_text("%s", port->driver);
	nic->device_attr->firmware = format_text("%s", port->firmware);
	nic->link_attr->address = format_text("%s", port->link_addr);
	nic->link_attr->mtu = port->mtu;
	nic->link_attr->speed = port->speed;
	nic->link_attr->state = port->usable ? FI_LINK_UP : FI_LINK_DOWN;
	nic->link_attr->network_type =
		format_text("%s", port->ethernet ? "Ethernet" : "InfiniBand");
	if (port->on_pci) {
		nic->bus_attr->bus_type = FI_BUS_PCI;
		nic->bus_attr->attr.pci.domain_id = port->pci_domain;
		nic->bus_attr->attr.pci.bus_id = port->pci_bus;
		nic->bus_attr->attr.pci.device_id = port->pci_device;
		nic->bus_attr->attr.pci.function_id = port->pci_function;
	}
	if (nic->device_attr->name && nic->device_attr->device_id &&
	    nic->device_attr->device_version && nic->device_attr->vendor_id &&
	    nic->device_attr->driver && nic->device_attr->firmware && nic->link_attr->address &&
	    nic->link_attr->network_type) {
		*nicp = nic;
		return 0;
	}
	nic_close(&nic->fid);
	return -FI_ENOMEM;
}
