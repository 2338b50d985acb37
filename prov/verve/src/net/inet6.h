/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * IPv6 addresses of this host: what the kernel thinks of each, which getifaddrs(3) does not tell.
 * Logs nothing. Any thread.
 *
 * Source: /proc/net/if_inet6, the IFA_F_ flags of rtnetlink(7), RFC 4862 and RFC 8981.
 */
#ifndef VERVE_NET_INET6_H
#define VERVE_NET_INET6_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* Without padding: hashed as bytes. */
struct verve_inet6_addr {
	struct in6_addr ip;
	uint32_t ifindex; /* the number of its interface */
	uint32_t flags; /* IFA_F_ of linux/if_addr.h */
};

struct verve_inet6_list {
	struct verve_inet6_addr *addrs;
	size_t count;
};

enum verve_inet6_state {
	VERVE_INET6_LASTING,
	/* usable, but the kernel makes others in its place: temporary, or deprecated */
	VERVE_INET6_PASSING,
	/* no socket can have it: the kernel still asks whether another host has it */
	VERVE_INET6_TENTATIVE,
	/* no socket can have it: another host has it */
	VERVE_INET6_DUPLICATE,
};

/*
 * The addresses of the calling thread's network namespace. The list is empty where the kernel does
 * not tell. The caller frees it with verve_inet6_list_fini. -FI_ENOMEM.
 */
int verve_inet6_list_init(struct verve_inet6_list *list);
void verve_inet6_list_fini(struct verve_inet6_list *list);

/*
 * The state of an address. ifindex: of its interface; 0: the address's scope, or any. LASTING: also
 * for an IPv4 address, and for one that is not in the list.
 */
enum verve_inet6_state verve_inet6_state(const struct verve_inet6_list *list,
					 const struct verve_addr *addr, uint32_t ifindex);

#endif
