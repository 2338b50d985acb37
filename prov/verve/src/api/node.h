/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Node: the addresses that fi_getinfo(3)'s node and service, or its hints, mean: from and to.
 */
#ifndef VERVE_API_NODE_H
#define VERVE_API_NODE_H

#include <netdb.h>
#include <rdma/fabric.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

/* NULL lists: not asked for. */
struct verve_node {
	struct addrinfo *source; /* resolved */
	struct addrinfo *dest;
	struct verve_addr source_hint, dest_hint; /* from hints; family AF_UNSPEC: none */
	uint16_t local_port; /* of a service on this very host, which is the destination; or 0 */
};

enum {
	VERVE_NODE_HOST_MAX = 256,  /* characters of a host name, NUL included */
	VERVE_NODE_SERVICE_MAX = 8, /* of a port number */
};

/* An address as one string, FI_ADDR_STR of fi_getinfo(3), in its parts. */
struct verve_node_str {
	int family; /* AF_UNSPEC: either */
	char host[VERVE_NODE_HOST_MAX];
	char service[VERVE_NODE_SERVICE_MAX]; /* empty: none */
};

/* "..://..": not a host's name. */
bool verve_node_is_str(const char *text);
/*
 * "fi_sockaddr_in://10.0.0.1:7471", "fi_sockaddr_in6://[fe80::1]:7471", "fi_sockaddr://" and either,
 * the port optional. -FI_EINVAL: not such a string.
 */
int verve_node_parse_str(const char *text, struct verve_node_str *str);

/*
 * name may be an address string. -FI_EINVAL: FI_SOURCE with neither node nor service, or an address
 * string and a service; -FI_ENODATA: no such name, or a hint is not an IP address: logged. Free with
 * verve_node_fini, also after an error.
 */
int verve_node_init(struct verve_node *node, const char *name, const char *service, uint64_t flags,
		    const struct fi_info *hints);
void verve_node_fini(struct verve_node *node);

/*
 * True if an endpoint on the IP address own is where the application wants to send from; *source is
 * own with the UDP port that it asks for, or 0.
 */
bool verve_node_source(const struct verve_node *node, const struct verve_addr *own,
		       struct verve_addr *source);

/*
 * The destination in own's family. 1: there is one; 0: none was asked for; -FI_ENODATA: the one
 * that was asked for has no address in this family.
 */
int verve_node_dest(const struct verve_node *node, const struct verve_addr *own,
		    struct verve_addr *dest);

/* The kernel would send to dest from this address. */
bool verve_node_routes_from(const struct verve_addr *dest, const struct verve_addr *own);

#endif
