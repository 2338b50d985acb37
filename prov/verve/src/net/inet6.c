/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* IPv6 addresses: the kernel's table, and what its flags mean. */
#include "net/inet6.h"

#include <linux/if_addr.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Namespaces belong to threads. */
#define TABLE "/proc/thread-self/net/if_inet6"

enum { DIGITS = 2 * sizeof(struct in6_addr) };

/* "fe80000000000000505400fffe000001 02 40 20 80     eth0": the second and fifth number count. */
static bool read_line(FILE *file, struct verve_inet6_addr *addr)
{
	char digits[DIGITS + 1];

	if (fscanf(file, "%32[0-9a-f] %x %*x %*x %x %*s ", digits, &addr->ifindex,
		   &addr->flags) != 3 ||
	    strlen(digits) != DIGITS)
		return false;
	for (size_t i = 0; i < sizeof(addr->ip); i++)
		sscanf(digits + 2 * i, "%2hhx", &addr->ip.s6_addr[i]);
	return true;
}

static int list_add(struct verve_inet6_list *list, const struct verve_inet6_addr *addr)
{
	struct verve_inet6_addr *addrs = realloc(list->addrs, (list->count + 1) * sizeof(*addrs));

	if (!addrs)
		return -FI_ENOMEM;
	list->addrs = addrs;
	addrs[list->count++] = *addr;
	return 0;
}

int verve_inet6_list_init(struct verve_inet6_list *list)
{
	struct verve_inet6_addr addr;
	FILE *file;
	int ret = 0;

	*list = (struct verve_inet6_list){0};
	file = fopen(TABLE, "re");
	if (!file)
		return 0;
	while (!ret && read_line(file, &addr))
		ret = list_add(list, &addr);
	fclose(file);
	if (ret)
		verve_inet6_list_fini(list);
	return ret;
}

void verve_inet6_list_fini(struct verve_inet6_list *list)
{
	free(list->addrs);
	*list = (struct verve_inet6_list){0};
}

static enum verve_inet6_state state_of(uint32_t flags)
{
	if (flags & IFA_F_DADFAILED)
		return VERVE_INET6_DUPLICATE;
	/* An optimistic address may be used while it is tentative: RFC 4429. */
	if (flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC))
		return VERVE_INET6_TENTATIVE;
	if (flags & (IFA_F_TEMPORARY | IFA_F_DEPRECATED))
		return VERVE_INET6_PASSING;
	return VERVE_INET6_LASTING;
}

enum verve_inet6_state verve_inet6_state(const struct verve_inet6_list *list,
					 const struct verve_addr *addr, uint32_t ifindex)
{
	if (addr->sa.sa_family != AF_INET6)
		return VERVE_INET6_LASTING;
	if (!ifindex)
		ifindex = addr->in6.sin6_scope_id;
	for (size_t i = 0; i < list->count; i++)
		if (IN6_ARE_ADDR_EQUAL(&list->addrs[i].ip, &addr->in6.sin6_addr) &&
		    (!ifindex || ifindex == list->addrs[i].ifindex))
			return state_of(list->addrs[i].flags);
	return VERVE_INET6_LASTING;
}
