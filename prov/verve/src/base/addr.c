/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address: canonical form, comparison, text. */
#include "base/addr.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

int verve_addr_set(struct verve_addr *addr, const void *sockaddr, size_t len)
{
	struct verve_addr in;

	if (len < sizeof(sa_family_t))
		return -FI_EINVAL;
	memcpy(&in, sockaddr, len < sizeof(in) ? len : sizeof(in));
	memset(addr, 0, sizeof(*addr));
	if (in.sa.sa_family == AF_INET && len >= sizeof(in.in)) {
		addr->in.sin_family = AF_INET;
		addr->in.sin_port = in.in.sin_port;
		addr->in.sin_addr = in.in.sin_addr;
		return 0;
	}
	if (in.sa.sa_family == AF_INET6 && len >= sizeof(in.in6)) {
		addr->in6.sin6_family = AF_INET6;
		addr->in6.sin6_port = in.in6.sin6_port;
		addr->in6.sin6_addr = in.in6.sin6_addr;
		if (IN6_IS_ADDR_LINKLOCAL(&in.in6.sin6_addr))
			addr->in6.sin6_scope_id = in.in6.sin6_scope_id;
		return 0;
	}
	return -FI_EINVAL;
}

size_t verve_addr_len(const struct verve_addr *addr)
{
	return addr->sa.sa_family == AF_INET ? sizeof(addr->in) : sizeof(addr->in6);
}

bool verve_addr_same_host(const struct verve_addr *a, const struct verve_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr) &&
	       a->in6.sin6_scope_id == b->in6.sin6_scope_id;
}

bool verve_addr_equal(const struct verve_addr *a, const struct verve_addr *b)
{
	return verve_addr_same_host(a, b) && verve_addr_port(a) == verve_addr_port(b);
}

bool verve_addr_is_link_local(const struct verve_addr *addr)
{
	return addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&addr->in6.sin6_addr);
}

void verve_addr_take_scope(struct verve_addr *addr, const struct verve_addr *own)
{
	if (verve_addr_is_link_local(addr) && verve_addr_is_link_local(own))
		addr->in6.sin6_scope_id = own->in6.sin6_scope_id;
}

bool verve_addr_is_wildcard(const struct verve_addr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr);
}

uint16_t verve_addr_port(const struct verve_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET ? addr->in.sin_port : addr->in6.sin6_port);
}

void verve_addr_set_port(struct verve_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else
		addr->in6.sin6_port = htons(port);
}

const char *verve_addr_str(const struct verve_addr *addr, char *buf)
{
	char ip[INET6_ADDRSTRLEN] = "?";

	if (addr->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &addr->in.sin_addr, ip, sizeof(ip));
		snprintf(buf, VERVE_ADDR_STRLEN, "%s:%u", ip, verve_addr_port(addr));
		return buf;
	}
	inet_ntop(AF_INET6, &addr->in6.sin6_addr, ip, sizeof(ip));
	if (addr->in6.sin6_scope_id)
		snprintf(buf, VERVE_ADDR_STRLEN, "[%s%%%u]:%u", ip, addr->in6.sin6_scope_id,
			 verve_addr_port(addr));
	else
		snprintf(buf, VERVE_ADDR_STRLEN, "[%s]:%u", ip, verve_addr_port(addr));
	return buf;
}
