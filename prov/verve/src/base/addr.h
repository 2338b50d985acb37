/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address: an endpoint's name, which is a sockaddr_in or sockaddr_in6 with the IP address and UDP
 * port of its handshake socket. Addresses are canonical: equal addresses have equal bytes, so that
 * they can be hash keys. Plain values; no lock; any thread.
 */
#ifndef VERVE_BASE_ADDR_H
#define VERVE_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verve_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
};

enum { VERVE_ADDR_STRLEN = 80 }; /* bytes of a buffer for verve_addr_str */

/*
 * Sets *addr to a sockaddr of len bytes, in canonical form: padding and flow information are zero,
 * and so is the scope unless the address is link-local. An IPv4-mapped IPv6 address stays IPv6.
 * sockaddr need not be aligned. -FI_EINVAL: the family is not AF_INET or AF_INET6, or len is too
 * short for it.
 */
int verve_addr_set(struct verve_addr *addr, const void *sockaddr, size_t len);

/* Bytes of the sockaddr in *addr: 16 (AF_INET), 28 (AF_INET6). */
size_t verve_addr_len(const struct verve_addr *addr);

/* True: the same IP address, scope and port. */
bool verve_addr_equal(const struct verve_addr *a, const struct verve_addr *b);
/* True: the same IP address and scope; the port does not matter. */
bool verve_addr_same_host(const struct verve_addr *a, const struct verve_addr *b);

/* True for fe80::/10, which is unique only on one interface. False for every IPv4 address. */
bool verve_addr_is_link_local(const struct verve_addr *addr);
/*
 * Sets the scope of a link-local address to that of own, if own is link-local, too. To be called
 * for a peer's address: its scope is the number of an interface on the peer's host, and may be no
 * interface, or another one, here.
 */
void verve_addr_take_scope(struct verve_addr *addr, const struct verve_addr *own);

/* True for 0.0.0.0 and [::], which mean every address of the host; no peer can send there. */
bool verve_addr_is_wildcard(const struct verve_addr *addr);

uint16_t verve_addr_port(const struct verve_addr *addr); /* host byte order */
void verve_addr_set_port(struct verve_addr *addr, uint16_t port);

/* Writes "10.0.0.1:4791" or "[fe80::1%2]:4791" to buf of VERVE_ADDR_STRLEN bytes; returns buf. */
const char *verve_addr_str(const struct verve_addr *addr, char *buf);

#endif
