/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Node: the source and destination addresses that node and service of fi_getinfo(3), or its hints,
 * mean. Any thread.
 */
#ifndef VERVE_API_NODE_H
#define VERVE_API_NODE_H

#include <netdb.h>
#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* A list or address that was not asked for is NULL or of family AF_UNSPEC. */
struct verve_node {
	struct addrinfo *source; /* resolved addresses to send from */
	struct addrinfo *dest; /* resolved addresses to send to */
	struct verve_addr source_hint, dest_hint; /* from the hints */
	/* UDP port of a service on this host, which is the destination; 0: none */
	uint16_t local_port;
};

enum {
	VERVE_NODE_HOST_MAX = 256,  /* bytes of a host name, NUL included */
	VERVE_NODE_SERVICE_MAX = 8, /* bytes of a port number, NUL included */
};

/* The parts of an address string, FI_ADDR_STR of fi_getinfo(3). */
struct verve_node_str {
	int family; /* AF_UNSPEC: IPv4 or IPv6 */
	char host[VERVE_NODE_HOST_MAX];
	char service[VERVE_NODE_SERVICE_MAX]; /* empty: the string has no port */
};

/* True if text has "://", so that it is an address string and not the name of a host. */
bool verve_node_is_str(const char *text);
/*
 * Parses "fi_sockaddr_in://10.0.0.1:7471", "fi_sockaddr_in6://[fe80::1]:7471", or either address
 * behind "fi_sockaddr://". The port is optional. -FI_EINVAL: text is no such string.
 */
int verve_node_parse_str(const char *text, struct verve_node_str *str);

/*
 * Resolves name and service, with flags of fi_getinfo(3), or else takes the addresses of hints.
 * name may be an address string. The caller frees node with verve_node_fini, also after an error.
 * -FI_EINVAL: FI_SOURCE without name and service, or an address string with a service; -FI_ENODATA:
 * the name does not resolve, or an address of hints is not an IP address. Logs -FI_ENODATA.
 */
int verve_node_init(struct verve_node *node, const char *name, const char *service, uint64_t flags,
		    const struct fi_info *hints);
void verve_node_fini(struct verve_node *node);

/*
 * True if the application may want to send from an endpoint on the IP address own. *source is then
 * own with the UDP port that the application asked for, or with port 0.
 */
bool verve_node_source(const struct verve_node *node, const struct verve_addr *own,
		       struct verve_addr *source);

/*
 * Of a list of getaddrinfo(3), sets *dest to an address of the family of own: to the first that the
 * kernel's routes reach from own, as a name may have one in each network of its host; or else to
 * the first. 1: done; -FI_ENODATA: there is none.
 */
int verve_node_choose(const struct addrinfo *list, const struct verve_addr *own,
		      struct verve_addr *dest);

/*
 * Sets *dest to the destination in the address family of own (verve_node_choose). 1: done; 0: the
 * application asked for no destination; -FI_ENODATA: the destination has no address of this family.
 */
int verve_node_dest(const struct verve_node *node, const struct verve_addr *own,
		    struct verve_addr *dest);

#endif
