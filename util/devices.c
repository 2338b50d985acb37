/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Devices: findings from the list of ports and from what fi_getinfo(3) answers without hints. */
#include "devices.h"

#include <arpa/inet.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "api/info.h"
#include "api/name.h"
#include "base/addr.h"
#include "base/config.h"
#include "told.h"

const char *verve_devices_subject(const struct verve_net_port *port, char *buf)
{
	snprintf(buf, VERVE_FINDING_TEXT_MAX, "%s:%u%s%s", port->device, port->port_num,
		 port->netdev[0] ? " " : "", port->netdev);
	return buf;
}

static void gid_subject(const struct verve_net_port *port, uint32_t index,
			const struct verve_net_gid *gid, char *buf)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
	snprintf(buf, VERVE_FINDING_TEXT_MAX, "%s:%u GID %u %s", port->device, port->port_num,
		 index, text);
}

/* The address is offered to applications. */
static bool is_offered(const struct fi_info *infos, const struct verve_net_port *port,
		       const struct verve_addr *addr)
{
	char domain[VERVE_NET_NAME_MAX];

	verve_name_format_domain(port, domain);
	for (const struct fi_info *info = infos; info; info = info->next) {
		struct verve_addr have;

		if (!strcmp(info->domain_attr->name, domain) &&
		    !verve_addr_set(&have, info->src_addr, info->src_addrlen) &&
		    verve_addr_same_host(&have, addr))
			return true;
	}
	return false;
}

/* The line that the provider logged about the address when it was asked. */
static const char *why_not(const struct verve_net_port *port, const struct verve_addr *addr,
			   char *buf)
{
	char begin[VERVE_TOLD_LINE_MAX], name[VERVE_ADDR_STRLEN];

	snprintf(begin, sizeof(begin), "%s: not used: %s: ", port->device,
		 verve_addr_str(addr, name));
	if (!verve_told_last(begin, buf))
		snprintf(buf, VERVE_TOLD_LINE_MAX, "not offered to applications");
	return buf;
}

/* An address without its port number. */
static const char *host_of(const struct verve_addr *addr, char *buf)
{
	const void *raw = addr->sa.sa_family == AF_INET ? (const void *)&addr->in.sin_addr :
							  &addr->in6.sin6_addr;

	return inet_ntop(addr->sa.sa_family, raw, buf, INET6_ADDRSTRLEN) ? buf : "?";
}

static void report_gids(struct verve_report *report, const struct verve_net_port *port,
			const struct fi_info *infos)
{
	char subject[VERVE_FINDING_TEXT_MAX], text[VERVE_TOLD_LINE_MAX];

	for (size_t i = 0; i < port->addr_count; i++) {
		const struct verve_net_portaddr *addr = &port->addrs[i];
		char host[INET6_ADDRSTRLEN];
		bool used = is_offered(infos, port, &addr->addr);

		gid_subject(port, addr->gid_index, &addr->gid, subject);
		verve_report_add(report, used ? VERVE_USED : VERVE_REFUSED, subject, NULL,
				 "address %s of %s%s%s", host_of(&addr->addr, host),
				 addr->netdev[0] ? addr->netdev : port->netdev, used ? "" : ": ",
				 used ? "" : why_not(port, &addr->addr, text))->detail = true;
	}
	for (size_t i = 0; i < port->refused_count; i++) {
		const struct verve_net_gid_refusal *gid = &port->refused[i];

		gid_subject(port, gid->gid_index, &gid->gid, subject);
		verve_report_add(report, VERVE_REFUSED, subject, NULL, "%s", gid->reason)->detail =
			true;
	}
}

static void report_refused(struct verve_report *report, const struct verve_net_port *port)
{
	const char *remedy = verve_net_port_remedy(port);
	int len = remedy ? (int)(remedy - port->reason) - 2 : (int)strlen(port->reason);
	char subject[VERVE_FINDING_TEXT_MAX];

	verve_report_add(report, VERVE_REFUSED, verve_devices_subject(port, subject), remedy,
			 "%.*s", len, port->reason);
}

/*
 * Why no domain opens over the port, in buf: an application hears that late. NULL: one would. The
 * function that refuses has written the last line of the log, with the port before the reason.
 */
static const char *why_unopened(const struct verve_net_port *port, char *buf)
{
	char line[VERVE_TOLD_LINE_MAX], begin[VERVE_NET_NAME_MAX + 16];
	struct verve_net_device *dev;
	int ret = verve_net_device_open(port->device, port->port_num, NULL, &dev);

	if (!ret) {
		verve_net_device_close(dev);
		return NULL;
	}
	verve_told_line(verve_told_count() - 1, line);
	snprintf(begin, sizeof(begin), "%s port %u: ", port->device, port->port_num);
	if (strncmp(line, begin, strlen(begin)))
		snprintf(begin, sizeof(begin), "%s: ", port->device);
	snprintf(buf, VERVE_TOLD_LINE_MAX, "%s",
		 strncmp(line, begin, strlen(begin)) ? fi_strerror(-ret) : line + strlen(begin));
	return buf;
}

/* A port that works: its addresses, or why none of them is offered, or no domain opens. */
static void report_usable(struct verve_report *report, const struct verve_net_port *port,
			  const struct fi_info *infos)
{
	char subject[VERVE_FINDING_TEXT_MAX], text[VERVE_TOLD_LINE_MAX], addrs[128] = "";
	char domain[VERVE_NET_NAME_MAX], host[INET6_ADDRSTRLEN];
	size_t len = 0;

	verve_devices_subject(port, subject);
	for (size_t i = 0; i < port->addr_count && len < sizeof(addrs); i++)
		if (is_offered(infos, port, &port->addrs[i].addr))
			len += snprintf(addrs + len, sizeof(addrs) - len, "%s%s", len ? ", " : "",
					host_of(&port->addrs[i].addr, host));
	if (!len) {
		why_not(port, &port->addrs[0].addr, text);
		verve_report_add(report, VERVE_REFUSED, subject,
				 strstr(text, "FI_VERVE_IFACE") ? "unset FI_VERVE_IFACE" : NULL,
				 "%s", text);
		return;
	}
	if (why_unopened(port, text)) {
		verve_report_add(report, VERVE_REFUSED, subject, NULL, "no domain opens: %s", text);
		return;
	}
	if (!strcmp(verve_config.atomics, "device") && !port->limits.atomics)
		verve_report_add(report, VERVE_WARNING, subject,
				 "unset FI_VERVE_ATOMICS here and at all peers",
				 "no domain with FI_ATOMIC opens, because the device has no "
				 "atomics, and FI_VERVE_ATOMICS is device");
	verve_name_format_domain(port, domain);
	verve_report_add(report, VERVE_USED, subject, NULL,
			 "domain %s, %s, %s, %.1f Gbit/s (%s), MTU %u", domain, addrs,
			 port->ethernet ? "RoCE v2" : "InfiniBand", port->speed / 1e9, port->rate,
			 port->mtu);
}

/* Names in FI_VERVE_IFACE that choose nothing: the ports say only that others are chosen. */
static void report_ifaces(struct verve_report *report)
{
	static const char begin[] = "FI_VERVE_IFACE is ";
	char line[VERVE_TOLD_LINE_MAX];

	for (size_t i = 0; i < verve_told_count(); i++)
		if (!strncmp(verve_told_line(i, line), begin, strlen(begin)))
			verve_report_add(report, VERVE_WARNING, "environment", NULL, "%s", line);
}

void verve_devices_report(struct verve_report *report, const struct verve_net_port *ports,
			  size_t count)
{
	struct fi_info *infos = NULL;

	verve_told_clear();
	/* No answer is an answer: the lines of the log say why. */
	if (verve_info_choose(ports, count, fi_version(), NULL, NULL, 0, NULL, &infos))
		infos = NULL;
	report_ifaces(report);
	for (size_t i = 0; i < count; i++) {
		if (ports[i].usable)
			report_usable(report, &ports[i], infos);
		else
			report_refused(report, &ports[i]);
		report_gids(report, &ports[i], infos);
	}
	fi_freeinfo(infos);
}
