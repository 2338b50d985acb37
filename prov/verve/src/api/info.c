/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Info: reduces the attributes of verve (attr.c) to the hints (hints.c), once for all ports. Then
 * it makes one fi_info for each usable port and address family.
 */
#include "api/info.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/attr.h"
#include "api/domain.h"
#include "api/fabric.h"
#include "api/hints.h"
#include "api/name.h"
#include "api/nic.h"
#include "api/node.h"
#include "api/port_cache.h"
#include "base/config.h"
#include "base/iface.h"
#include "base/log.h"
#include "net/dgram.h"

/*
 * Bind to the oldest versions of these symbols, whatever libfabric verve is built with. The oldest
 * versions suffice: they allocate structures of the size that the libfabric in use has. Later
 * versions may be missing in the libfabric that loads the provider.
 */
__asm__(".symver fi_dupinfo,fi_dupinfo@FABRIC_1.3");
__asm__(".symver fi_freeinfo,fi_freeinfo@FABRIC_1.3");

enum { INFOS_MAX = 3 }; /* infos of one port: IPv4, global IPv6, link-local IPv6 */

/* An address of a port that becomes an fi_info, with its place in the list. */
struct candidate {
	const struct verve_net_port *port;
	const struct verve_net_portaddr *addr;
	struct verve_addr source, dest;
	bool has_dest;
	int rank; /* a smaller rank is earlier in the list */
};

struct search {
	uint32_t version;
	const struct fi_info *hints;
	struct verve_node node;
	const struct fid_domain *domain; /* the open domain that hints name; NULL: any */
	const struct fid_fabric *fabric; /* the open fabric that hints name; NULL: any */
	struct verve_addr domain_addr;	 /* address of domain; the answer must have it */
	struct candidate *found;
	size_t count;
};

static const char *netdev_of(const struct verve_net_port *port,
			     const struct verve_net_portaddr *addr)
{
	return addr->netdev[0] ? addr->netdev : port->netdev;
}

/* True if FI_VERVE_IFACE is not set, or names the port, or the address's interface or label. */
static bool is_chosen(const struct verve_net_port *port, const struct verve_net_portaddr *addr)
{
	const struct verve_iface_port of = { port->device, port->port_num };

	return verve_iface_list_has(verve_config.iface, &of, netdev_of(port, addr)) ||
	       verve_iface_list_has(verve_config.iface, &of, addr->label);
}

static bool has_iface(const struct verve_net_port *port, const struct verve_iface *iface)
{
	const struct verve_iface_port of = { port->device, port->port_num };

	for (size_t i = 0; i < port->addr_count; i++)
		if (verve_iface_is(iface, &of, netdev_of(port, &port->addrs[i])) ||
		    verve_iface_is(iface, &of, port->addrs[i].label))
			return true;
	return verve_iface_is(iface, &of, port->netdev);
}

/* Writes the names that FI_VERVE_IFACE could have, as far as there is room. */
static void list_ifaces(const struct verve_net_port *ports, size_t count, char *text, size_t size)
{
	size_t at = snprintf(text, size, "%s", count ? "there are" : "there is none");

	for (size_t i = 0; i < count && at < size; i++)
		at += snprintf(text + at, size - at, "%s %s%s%s", i ? "," : "", ports[i].device,
			       ports[i].netdev[0] ? "@" : "", ports[i].netdev);
}

/* Why this item of FI_VERVE_IFACE chooses no port, which may be in text; NULL: it chooses one. */
static const char *iface_refusal(const struct verve_net_port *ports, size_t count,
				 const struct verve_iface *iface, char *text, size_t size)
{
	const char *why = NULL;

	for (size_t i = 0; i < count; i++) {
		if (!has_iface(&ports[i], iface))
			continue;
		if (ports[i].usable)
			return NULL;
		why = ports[i].reason;
	}
	if (!why) {
		size_t at = snprintf(text, size,
				     "no RDMA device or interface of one has that name; ");

		list_ifaces(ports, count, text + at, size - at);
		why = text;
	}
	return why;
}

/* Warns of each item of FI_VERVE_IFACE that chooses no port: only the user can correct it. */
static void check_ifaces(const struct verve_net_port *ports, size_t count)
{
	const char *list = verve_config.iface;
	struct verve_iface iface;

	while (verve_iface_next(&list, &iface)) {
		const char *item = iface.device ? iface.device : iface.name;
		char text[256];
		const char *why = iface_refusal(ports, count, &iface, text, sizeof(text));

		if (why)
			VERVE_WARN(FABRIC, "FI_VERVE_IFACE is %.*s: %s\n", (int)strcspn(item, ","),
				   item, why);
	}
}

static bool is_format(const struct fi_info *hints, const struct verve_addr *addr)
{
	switch (hints ? hints->addr_format : FI_FORMAT_UNSPEC) {
	case FI_SOCKADDR_IN:
		return addr->sa.sa_family == AF_INET;
	case FI_SOCKADDR_IN6:
		return addr->sa.sa_family == AF_INET6;
	default:
		return true;
	}
}

/*
 * A candidate of the same port for the same purpose: one of the same address family, or, if this
 * candidate is a link-local address, any.
 */
static struct candidate *find_rival(struct search *search, const struct candidate *candidate)
{
	for (size_t i = 0; i < search->count; i++) {
		struct candidate *other = &search->found[i];

		if (other->port == candidate->port &&
		    (other->source.sa.sa_family == candidate->source.sa.sa_family ||
		     verve_addr_is_link_local(&candidate->addr->addr)))
			return other;
	}
	return NULL;
}

static int candidate_rank(const struct candidate *candidate)
{
	int rank = verve_addr_is_link_local(&candidate->addr->addr) ?
			   2 : candidate->source.sa.sa_family != AF_INET;

	/*
	 * An address from which the kernel reaches the destination comes first. Other addresses may
	 * reach the destination, too, so they stay in the list.
	 */
	if (candidate->has_dest &&
	    !verve_net_dgram_routes_from(&candidate->dest, &candidate->addr->addr))
		rank += INFOS_MAX;
	return rank;
}

static void candidate_insert(struct search *search, const struct candidate *candidate)
{
	size_t at = search->count++;

	for (; at && search->found[at - 1].rank > candidate->rank; at--)
		search->found[at] = search->found[at - 1];
	search->found[at] = *candidate;
}

static void candidate_remove(struct search *search, struct candidate *candidate)
{
	size_t behind = &search->found[search->count--] - (candidate + 1);

	memmove(candidate, candidate + 1, behind * sizeof(*candidate));
}

/* NULL: the address is what was asked for, and *candidate is filled in. Else the reason why not. */
static const char *candidate_init(const struct search *search, const struct verve_net_port *port,
				  const struct verve_net_portaddr *addr,
				  struct candidate *candidate)
{
	int dest = verve_node_dest(&search->node, &addr->addr, &candidate->dest);

	candidate->port = port;
	candidate->addr = addr;
	candidate->has_dest = dest > 0;
	if (!is_chosen(port, addr))
		return "FI_VERVE_IFACE names another interface";
	if (!is_format(search->hints, &addr->addr))
		return "hints->addr_format is another";
	if (!verve_node_source(&search->node, &addr->addr, &candidate->source))
		return "the source address asked for is another";
	if (dest < 0)
		return "the destination has no address of this family";
	if (search->domain && !verve_addr_same_host(&addr->addr, &search->domain_addr))
		return "hints->domain_attr->domain was opened on another";
	candidate->rank = candidate_rank(candidate);
	return NULL;
}

static void consider_addr(struct search *search, const struct verve_net_port *port,
			  const struct verve_net_portaddr *addr)
{
	struct candidate candidate = {0}, *rival = NULL;
	char name[VERVE_ADDR_STRLEN];
	const char *why = candidate_init(search, port, addr, &candidate);

	if (!why) {
		rival = find_rival(search, &candidate);
		if (rival && rival->rank <= candidate.rank)
			why = "the port has a better address";
	}
	if (why) {
		VERVE_INFO(FABRIC, "%s: not used: %s: %s\n", port->device,
			   verve_addr_str(&addr->addr, name), why);
		return;
	}
	if (rival)
		candidate_remove(search, rival);
	candidate_insert(search, &candidate);
}

/* True if the device can have as many regions as hints ask for. */
static bool has_regions(const struct search *search, const struct verve_net_port *port)
{
	const struct fi_info *hints = search->hints;
	size_t have = port->limits.mr;

	/* Before version 1.5, the attribute did not exist. */
	if (!hints || !hints->domain_attr || FI_VERSION_LT(search->version, FI_VERSION(1, 5)) ||
	    !have || hints->domain_attr->mr_cnt <= have)
		return true;
	VERVE_INFO(FABRIC,
		   "%s port %u: not used: hints->domain_attr->mr_cnt is %zu, the device has %zu\n",
		   port->device, port->port_num, hints->domain_attr->mr_cnt, have);
	return false;
}

/* True if the names of a domain and a fabric in hints are those of the port. */
static bool is_hinted(const struct fi_info *hints, const struct verve_net_port *port)
{
	char domain[VERVE_NET_NAME_MAX], fabric[VERVE_FABRIC_NAME_MAX];

	verve_name_format_domain(port, domain);
	verve_name_format_fabric(port, fabric);
	if (hints && hints->domain_attr && hints->domain_attr->name &&
	    strcmp(hints->domain_attr->name, domain)) {
		VERVE_INFO(FABRIC, "%s: not used: hints->domain_attr->name is %s\n", domain,
			   hints->domain_attr->name);
		return false;
	}
	if (hints && hints->fabric_attr && hints->fabric_attr->name &&
	    strcmp(hints->fabric_attr->name, fabric)) {
		VERVE_INFO(FABRIC, "%s: not used: hints->fabric_attr->name is %s, not %s\n", domain,
			   hints->fabric_attr->name, fabric);
		return false;
	}
	return true;
}

static int find_candidates(struct search *search, const struct verve_net_port *ports, size_t count)
{
	search->found = calloc(count * INFOS_MAX + 1, sizeof(*search->found));
	if (!search->found)
		return -FI_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct verve_net_port *port = &ports[i];

		if (!port->usable) {
			VERVE_INFO(FABRIC, "%s port %u: not used: %s\n", port->device,
				   port->port_num, port->reason);
			continue;
		}
		if (!is_hinted(search->hints, port) || !has_regions(search, port))
			continue;
		/* The addresses of a port are in order of preference. */
		for (size_t j = 0; j < port->addr_count; j++)
			consider_addr(search, port, &port->addrs[j]);
	}
	check_ifaces(ports, count);
	return search->count ? 0 : -FI_ENODATA;
}

static void *copy_addr(const struct verve_addr *addr, size_t *len)
{
	void *copy;

	*len = verve_addr_len(addr);
	copy = malloc(*len);
	if (copy)
		memcpy(copy, &addr->sa, *len);
	return copy;
}

/* Adds the attributes of the port to info, which is a copy of those that all ports have. */
static int fill_port(struct fi_info *info, const struct candidate *candidate)
{
	const struct verve_net_port *port = candidate->port;
	char domain[VERVE_NET_NAME_MAX], fabric[VERVE_FABRIC_NAME_MAX];
	size_t mr = port->limits.mr;

	verve_name_format_domain(port, domain);
	verve_name_format_fabric(port, fabric);
	info->domain_attr->name = strdup(domain);
	info->fabric_attr->name = strdup(fabric);
	info->addr_format = candidate->source.sa.sa_family == AF_INET ? FI_SOCKADDR_IN :
									FI_SOCKADDR_IN6;
	info->src_addr = copy_addr(&candidate->source, &info->src_addrlen);
	if (!info->domain_attr->name || !info->fabric_attr->name || !info->src_addr)
		return -FI_ENOMEM;
	if (candidate->has_dest) {
		info->dest_addr = copy_addr(&candidate->dest, &info->dest_addrlen);
		if (!info->dest_addr)
			return -FI_ENOMEM;
	}
	if (mr && mr < info->domain_attr->mr_cnt)
		info->domain_attr->mr_cnt = mr;
	return verve_nic_open(port, &info->nic);
}

static int copy_key(const uint8_t *key, size_t size, uint8_t **copy, size_t *copy_size)
{
	if (!size)
		return 0;
	*copy = malloc(size);
	if (!*copy)
		return -FI_ENOMEM;
	memcpy(*copy, key, size);
	*copy_size = size;
	return 0;
}

/*
 * Copies the authorization keys of hints, which exist since version 1.5, to info. Objects that are
 * opened with info then have these keys.
 */
static int copy_keys(const struct search *search, struct fi_info *info)
{
	const struct fi_info *hints = search->hints;
	int ret = 0;

	if (!hints || FI_VERSION_LT(search->version, FI_VERSION(1, 5)))
		return 0;
	if (hints->domain_attr)
		ret = copy_key(hints->domain_attr->auth_key, hints->domain_attr->auth_key_size,
			       &info->domain_attr->auth_key, &info->domain_attr->auth_key_size);
	if (!ret && hints->ep_attr)
		ret = copy_key(hints->ep_attr->auth_key, hints->ep_attr->auth_key_size,
			       &info->ep_attr->auth_key, &info->ep_attr->auth_key_size);
	return ret;
}

/* Adds the open fabric and the open domain to info. -FI_ENODATA: hints name others. */
static int fill_open(const struct search *search, struct fi_info *info)
{
	int mr_mode = info->domain_attr->mr_mode;

	info->fabric_attr->fabric =
		verve_fabric_find(info->fabric_attr->name, search->version, search->fabric);
	info->domain_attr->domain =
		verve_domain_find(search->version, search->domain, info, &mr_mode);
	if (search->fabric && !info->fabric_attr->fabric) {
		VERVE_INFO(FABRIC,
			   "%s: not used: hints->fabric_attr->fabric is not %s, opened for this "
			   "version\n",
			   info->domain_attr->name, info->fabric_attr->name);
		return -FI_ENODATA;
	}
	if (search->domain && !info->domain_attr->domain) {
		VERVE_INFO(FABRIC,
			   "%s: not used: hints->domain_attr->domain was opened for another "
			   "version, mr_mode, threading, progress, key or for less\n",
			   info->domain_attr->name);
		return -FI_ENODATA;
	}
	info->domain_attr->mr_mode = mr_mode;
	return 0;
}

static int make_info(const struct search *search, const struct fi_info *common,
		     const struct candidate *candidate, struct fi_info **made)
{
	struct fi_info *info = fi_dupinfo(common);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	ret = fill_port(info, candidate);
	if (!ret)
		ret = copy_keys(search, info);
	if (!ret)
		ret = fill_open(search, info);
	if (ret)
		fi_freeinfo(info);
	else
		*made = info;
	return ret;
}

static int build_list(const struct search *search, const struct fi_info *common,
		      struct fi_info **list)
{
	struct fi_info *head = NULL, **tail = &head;

	for (size_t i = 0; i < search->count; i++) {
		int ret = make_info(search, common, &search->found[i], tail);

		if (!ret) {
			tail = &(*tail)->next;
		} else if (ret != -FI_ENODATA) {
			fi_freeinfo(head);
			return ret;
		}
	}
	*list = head;
	return head ? 0 : -FI_ENODATA;
}

/* Finds the open objects that hints name. -FI_ENODATA: the domain of hints is not open. */
static int find_open(struct search *search)
{
	const struct fi_info *hints = search->hints;

	if (hints && hints->fabric_attr)
		search->fabric = hints->fabric_attr->fabric;
	if (!hints || !hints->domain_attr || !hints->domain_attr->domain)
		return 0;
	search->domain = hints->domain_attr->domain;
	if (verve_domain_find_addr(search->domain, &search->domain_addr))
		return 0;
	VERVE_INFO(FABRIC, "nothing for these hints: domain_attr->domain is not open, or another "
		   "provider's\n");
	return -FI_ENODATA;
}

static int search_ports(struct search *search, const struct verve_net_port *ports, size_t count,
			const struct fi_info *common, struct fi_info **list)
{
	int ret = find_open(search);

	if (!ret)
		ret = find_candidates(search, ports, count);
	if (!ret)
		ret = build_list(search, common, list);
	free(search->found);
	return ret;
}

int verve_info_choose(const struct verve_net_port *ports, size_t count, uint32_t version,
		      const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **list)
{
	struct search search = {.version = version, .hints = hints};
	struct fi_info *common = verve_attr_alloc_info();
	int ret;

	if (!common)
		return -FI_ENOMEM;
	ret = verve_hints_check(version, hints, common);
	if (ret)
		goto out;
	verve_hints_apply(version, hints, common);
	ret = verve_node_init(&search.node, node, service, flags, hints);
	if (!ret)
		ret = search_ports(&search, ports, count, common, list);
	verve_node_fini(&search.node);
out:
	fi_freeinfo(common);
	return ret;
}

int verve_info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **list)
{
	struct verve_port_list *ports;
	int ret;

	/*
	 * Layered providers ask for other endpoint types at every fi_getinfo. They get their answer
	 * before verve looks at devices, which takes time.
	 */
	ret = verve_hints_check_type(hints);
	if (ret)
		return ret;
	ret = verve_port_cache_get(&ports);
	if (ret)
		return ret;
	ret = verve_info_choose(ports->ports, ports->count, version, node, service, flags, hints,
				list);
	verve_port_cache_put(ports);
	return ret;
}
