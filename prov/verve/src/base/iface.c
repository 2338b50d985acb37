/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_VERVE_IFACE: its items, and whether an item names a port or an interface. */
#include "base/iface.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LEN = 80 }; /* a device's name and a port's number */

bool verve_iface_next(const char **list, struct verve_iface *iface)
{
	const char *item = *list, *at;
	size_t len;

	if (!item)
		return false;
	len = strcspn(item, ",");
	*list = item[len] ? item + len + 1 : NULL;
	for (; len && *item == ' '; len--)
		item++;
	while (len && item[len - 1] == ' ')
		len--;
	at = memchr(item, '@', len);
	*iface = (struct verve_iface){ .name = item, .name_len = len };
	if (at) {
		iface->device = item;
		iface->device_len = at - item;
		iface->name = at + 1;
		iface->name_len = len - iface->device_len - 1;
	}
	return true;
}

static bool text_is(const char *text, size_t len, const char *name)
{
	return len && len == strlen(name) && !memcmp(text, name, len);
}

/* A device's name stands for all of its ports. The first port has no number. */
static bool text_is_port(const char *text, size_t len, const struct verve_iface_port *port)
{
	char name[NAME_MAX_LEN];

	snprintf(name, sizeof(name), "%s:%u", port->device, port->port_num);
	return text_is(text, len, port->device) || text_is(text, len, name);
}

bool verve_iface_is_port(const struct verve_iface *iface, const struct verve_iface_port *port)
{
	return !iface->device && text_is_port(iface->name, iface->name_len, port);
}

bool verve_iface_is_of_port(const struct verve_iface *iface, const struct verve_iface_port *port)
{
	return iface->device && text_is_port(iface->device, iface->device_len, port);
}

bool verve_iface_is(const struct verve_iface *iface, const struct verve_iface_port *port,
		    const char *netdev)
{
	bool is_netdev = text_is(iface->name, iface->name_len, netdev);

	if (iface->device)
		return is_netdev && verve_iface_is_of_port(iface, port);
	return is_netdev || verve_iface_is_port(iface, port);
}

bool verve_iface_list_has(const char *list, const struct verve_iface_port *port, const char *netdev)
{
	struct verve_iface iface;

	if (!list)
		return true;
	while (verve_iface_next(&list, &iface))
		if (verve_iface_is(&iface, port, netdev))
			return true;
	return false;
}
