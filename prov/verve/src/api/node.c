/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Node: getaddrinfo(3) and address strings. */
#include "api/node.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "net/dgram.h"

static int family_of(const struct fi_info *hints)
{
	switch (hints ? hints->addr_format : FI_FORMAT_UNSPEC) {
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return AF_UNSPEC;
	}
}

bool verve_node_is_str(const char *text)
{
	return strstr(text, "://");
}

int verve_node_parse_str(const char *text, struct verve_node_str *str)
{
	static const struct {
		const char *name;
		int family;
	} formats[] = {
		{"fi_sockaddr://", AF_UNSPEC},
		{"fi_sockaddr_in://", AF_INET},
		{"fi_sockaddr_in6://", AF_INET6},
	};
	const size_t count = sizeof(formats) / sizeof(formats[0]);
	int host = 0, service = 0;
	bool brackets;
	size_t i = 0;

	while (i < count && strncmp(text, formats[i].name, strlen(formats[i].name)))
		i++;
	if (i == count)
		return -FI_EINVAL;
	text += strlen(formats[i].name);
	str->family = formats[i].family;
	/* An IPv6 address must have brackets, and no other address may. */
	brackets = *text == '[';
	if (str->family != AF_UNSPEC && brackets != (str->family == AF_INET6))
		return -FI_EINVAL;
	if (brackets)
		str->family = AF_INET6;
	sscanf(text, brackets ? "[%255[^]]]%n" : "%255[^]:/?[]%n", str->host, &host);
	if (!host)
		return -FI_EINVAL;
	str->service[0] = '\0';
	sscanf(text + host, ":%7[0-9]%n", str->service, &service);
	return text[host + service] ? -FI_EINVAL : 0;
}

static int resolve(const char *name, const char *service, uint64_t flags, int family,
		   struct addrinfo **list)
{
	struct addrinfo want = {
		.ai_family = family,
		.ai_socktype = SOCK_DGRAM,
		.ai_flags = (flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0) |
			    (name ? 0 : AI_PASSIVE),
	};
	int ret = getaddrinfo(name, service, &want, list);

	if (!ret)
		return 0;
	*list = NULL;
	VERVE_INFO(FABRIC, "nothing for node %s, service %s: %s\n", name ? name : "(none)",
		   service ? service : "(none)", gai_strerror(ret));
	return -FI_ENODATA;
}

static int set_hint(const char *what, struct verve_addr *addr, const void *hint, size_t len)
{
	memset(addr, 0, sizeof(*addr));
	if (!hint || !verve_addr_set(addr, hint, len))
		return 0;
	VERVE_INFO(FABRIC, "nothing for these hints: %s is not an IP address\n", what);
	return -FI_ENODATA;
}

static int resolve_str(const char *text, const char *service, uint64_t flags, int family,
		       struct addrinfo **list)
{
	struct verve_node_str str;

	if (service) {
		VERVE_INFO(FABRIC, "nothing for node %s, service %s: one or the other\n", text,
			   service);
		return -FI_EINVAL;
	}
	if (verve_node_parse_str(text, &str) ||
	    (family != AF_UNSPEC && str.family != AF_UNSPEC && str.family != family)) {
		VERVE_INFO(FABRIC,
			   "nothing for node %s: not the address string of a format that was "
			   "asked for\n",
			   text);
		return -FI_ENODATA;
	}
	return resolve(str.host, str.service[0] ? str.service : NULL, flags,
		       family == AF_UNSPEC ? str.family : family, list);
}

/*
 * Where node and service give an address, the address of hints for the same end has no meaning, and
 * is not even checked.
 */
static int set_hints(struct verve_node *node, const struct fi_info *hints, uint64_t flags,
		     bool named)
{
	int ret = 0;

	if (~flags & FI_SOURCE)
		ret = set_hint("src_addr", &node->source_hint, hints->src_addr, hints->src_addrlen);
	if (!ret && (flags & FI_SOURCE || !named))
		ret = set_hint("dest_addr", &node->dest_hint, hints->dest_addr,
			       hints->dest_addrlen);
	return ret;
}

int verve_node_init(struct verve_node *node, const char *name, const char *service, uint64_t flags,
		    const struct fi_info *hints)
{
	bool named = name || service;
	struct addrinfo *list;
	int ret;

	memset(node, 0, sizeof(*node));
	if (flags & FI_SOURCE && !named)
		return -FI_EINVAL;
	ret = hints ? set_hints(node, hints, flags, named) : 0;
	if (ret || !named)
		return ret;
	ret = name && verve_node_is_str(name) ?
		      resolve_str(name, service, flags, family_of(hints), &list) :
		      resolve(name, service, flags, family_of(hints), &list);
	if (ret)
		return ret;
	if (flags & FI_SOURCE) {
		node->source = list;
	} else if (name) {
		node->dest = list;
	} else {
		/* Port 0 belongs to no service, and means that there is no destination. */
		node->local_port = ntohs(list->ai_family == AF_INET ?
			((struct sockaddr_in *)list->ai_addr)->sin_port :
			((struct sockaddr_in6 *)list->ai_addr)->sin6_port);
		freeaddrinfo(list);
	}
	return 0;
}

void verve_node_fini(struct verve_node *node)
{
	if (node->source)
		freeaddrinfo(node->source);
	if (node->dest)
		freeaddrinfo(node->dest);
}

/*
 * True if own is the address want. A link-local address that names no interface means every
 * interface.
 */
static bool is_host(const struct verve_addr *own, const struct verve_addr *want)
{
	struct verve_addr scoped = *want;

	if (verve_addr_is_link_local(want) && !want->in6.sin6_scope_id)
		scoped.in6.sin6_scope_id = own->in6.sin6_scope_id;
	return verve_addr_same_host(own, &scoped);
}

static bool take_source(const struct verve_addr *own, const struct verve_addr *want,
			struct verve_addr *source)
{
	if (want->sa.sa_family != own->sa.sa_family ||
	    (!verve_addr_is_wildcard(want) && !is_host(own, want)))
		return false;
	*source = *own;
	verve_addr_set_port(source, verve_addr_port(want));
	return true;
}

bool verve_node_source(const struct verve_node *node, const struct verve_addr *own,
		       struct verve_addr *source)
{
	const struct addrinfo *info;
	struct verve_addr want;

	if (node->source) {
		for (info = node->source; info; info = info->ai_next)
			if (!verve_addr_set(&want, info->ai_addr, info->ai_addrlen) &&
			    take_source(own, &want, source))
				return true;
		return false;
	}
	if (node->source_hint.sa.sa_family != AF_UNSPEC)
		return take_source(own, &node->source_hint, source);
	*source = *own;
	verve_addr_set_port(source, 0);
	return true;
}

int verve_node_choose(const struct addrinfo *list, const struct verve_addr *own,
		      struct verve_addr *dest)
{
	struct verve_addr addr;
	bool any = false;

	for (const struct addrinfo *info = list; info; info = info->ai_next) {
		if (info->ai_family != own->sa.sa_family ||
		    verve_addr_set(&addr, info->ai_addr, info->ai_addrlen))
			continue;
		if (!any)
			*dest = addr;
		any = true;
		/* A list of one address needs no look at the routes. */
		if (list->ai_next && verve_net_dgram_routes_from(&addr, own)) {
			*dest = addr;
			break;
		}
	}
	return any ? 1 : -FI_ENODATA;
}

int verve_node_dest(const struct verve_node *node, const struct verve_addr *own,
		    struct verve_addr *dest)
{
	if (node->dest)
		return verve_node_choose(node->dest, own, dest);
	if (node->local_port) {
		*dest = *own;
		verve_addr_set_port(dest, node->local_port);
		return 1;
	}
	if (node->dest_hint.sa.sa_family == AF_UNSPEC)
		return 0;
	*dest = node->dest_hint;
	return dest->sa.sa_family == own->sa.sa_family ? 1 : -FI_ENODATA;
}
