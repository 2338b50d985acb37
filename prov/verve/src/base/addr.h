/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address: an endpoint's name, a sockaddr_in or sockaddr_in6 (IP address and UDP port of its
 * handshake socket). Kept canonical, so that equal names are equal bytes and can be hash keys.
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

enum { VERVE_ADDR_STRLEN = 80 };

/*
 * Copies the first len bytes of a sockaddr into canonical form: padding, flow information and, for
 * addresses that are not link-local, the scope are zero; an IPv4-mapped IPv6 address stays IPv6.
 * -FI_EINVAL: family other than AF_INET and AF_INET6, or len too short for it.
 */
int verve_addr_set(struct verve_addr *addr, const void *sockaddr, size_t len);

/* Bytes of the sockaddr inside: 16 (AF_INET), 28 (AF_INET6). */
size_t verve_addr_len(const struct verve_addr *addr);

bool verve_addr_equal(const struct verve_addr *a, const struct verve_addr *b);
/* Same IP address, whatever the port. */
bool verve_addr_same_host(const struct verve_addr *a, const struct verve_addr *b);

/* fe80::/10: means something only together with an interface. IPv4 has none that count. */
bool verve_addr_is_link_local(const struct verve_addr *addr);
/*
 * Gives a link-local address the scope of own, if that is link-local too. The scope in a name that
 * another host told is the number of *its* interface, and means nothing, or another one, here.
 */
void verve_addr_take_scope(struct verve_addr *addr, const struct verve_addr *own);

/* 0.0.0.0 or [::]: every address of the host, and no name that a peer could use. */
bool verve_addr_is_wildcard(const struct verve_addr *addr);

uint16_t verve_addr_port(const struct verve_addr *addr); /* host byte order */
void verve_addr_set_port(struct verve_addr *addr, uint16_t port);

/* "10.0.0.1:4791" or "[fe80::1%2]:4791" into buf of VERVE_ADDR_STRLEN bytes; returns buf. */
const char *verve_addr_str(const struct verve_addr *addr, char *buf);

#endif
