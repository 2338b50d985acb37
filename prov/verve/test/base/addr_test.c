/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address: equality, refused input, and the text. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/addr.h"

static struct sockaddr_in in4(const char *ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	cr_assert_eq(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	return in;
}

static struct sockaddr_in6 in6(const char *ip, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 in = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_scope_id = scope,
	};

	cr_assert_eq(inet_pton(AF_INET6, ip, &in.sin6_addr), 1);
	return in;
}

static struct verve_addr set(const void *sockaddr, size_t len)
{
	struct verve_addr addr;

	memset(&addr, 0x5a, sizeof(addr));
	cr_assert_eq(verve_addr_set(&addr, sockaddr, len), 0);
	return addr;
}

Test(addr, equal_names_are_equal_bytes)
{
	struct sockaddr_in clean = in4("10.0.0.1", 4791), dirty = clean;
	struct verve_addr a, b;

	memset(dirty.sin_zero, 0xff, sizeof(dirty.sin_zero));
	a = set(&clean, sizeof(clean));
	b = set(&dirty, sizeof(dirty));
	cr_expect(verve_addr_equal(&a, &b));
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	cr_expect_eq(verve_addr_len(&a), 16);
	cr_expect_eq(verve_addr_port(&a), 4791);
}

Test(addr, flow_and_needless_scope_are_dropped)
{
	struct sockaddr_in6 clean = in6("fd00::1", 1, 0), dirty = in6("fd00::1", 1, 7);
	struct verve_addr a, b;

	dirty.sin6_flowinfo = 99;
	a = set(&clean, sizeof(clean));
	b = set(&dirty, sizeof(dirty));
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	cr_expect_eq(verve_addr_len(&a), 28);
}

Test(addr, link_local_keeps_its_scope)
{
	struct sockaddr_in6 two = in6("fe80::1", 1, 2), three = in6("fe80::1", 1, 3);
	struct verve_addr a = set(&two, sizeof(two)), b = set(&three, sizeof(three));

	cr_expect_not(verve_addr_equal(&a, &b));
	cr_expect_not(verve_addr_same_host(&a, &b));
}

Test(addr, mapped_address_stays_ipv6)
{
	struct sockaddr_in6 mapped = in6("::ffff:10.0.0.1", 5, 0);
	struct sockaddr_in plain = in4("10.0.0.1", 5);
	struct verve_addr a = set(&mapped, sizeof(mapped)), b = set(&plain, sizeof(plain));

	cr_expect_eq(a.sa.sa_family, AF_INET6);
	cr_expect_not(verve_addr_equal(&a, &b));
}

Test(addr, same_host_on_another_port)
{
	struct sockaddr_in one = in4("10.0.0.1", 1), two = in4("10.0.0.1", 2);
	struct verve_addr a = set(&one, sizeof(one)), b = set(&two, sizeof(two));

	cr_expect(verve_addr_same_host(&a, &b));
	cr_expect_not(verve_addr_equal(&a, &b));
	verve_addr_set_port(&b, 1);
	cr_expect(verve_addr_equal(&a, &b));
}

static bool is_wildcard(const void *sockaddr, size_t len)
{
	struct verve_addr addr = set(sockaddr, len);

	return verve_addr_is_wildcard(&addr);
}

Test(addr, wildcards)
{
	struct sockaddr_in any = in4("0.0.0.0", 1000), one = in4("0.0.0.1", 0);
	struct sockaddr_in6 any6 = in6("::", 1000, 0), one6 = in6("::1", 0, 0);

	cr_expect(is_wildcard(&any, sizeof(any)));
	cr_expect(is_wildcard(&any6, sizeof(any6)));
	cr_expect_not(is_wildcard(&one, sizeof(one)));
	cr_expect_not(is_wildcard(&one6, sizeof(one6)));
}

Test(addr, a_longer_buffer_is_fine)
{
	struct sockaddr_storage storage = {0};
	struct sockaddr_in in = in4("10.0.0.1", 1);
	struct verve_addr a, b = set(&in, sizeof(in));

	memcpy(&storage, &in, sizeof(in));
	a = set(&storage, sizeof(storage));
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
}

Test(addr, what_is_no_address_is_refused)
{
	struct sockaddr_in in = in4("10.0.0.1", 1);
	struct sockaddr_in6 six = in6("fd00::1", 1, 0);
	struct sockaddr other = {.sa_family = AF_UNIX};
	struct verve_addr addr;

	cr_expect_eq(verve_addr_set(&addr, &in, sizeof(in) - 1), -FI_EINVAL);
	cr_expect_eq(verve_addr_set(&addr, &six, sizeof(six) - 1), -FI_EINVAL);
	cr_expect_eq(verve_addr_set(&addr, &in, 1), -FI_EINVAL);
	cr_expect_eq(verve_addr_set(&addr, &in, 0), -FI_EINVAL);
	cr_expect_eq(verve_addr_set(&addr, &other, sizeof(other)), -FI_EINVAL);
}

Test(addr, reads_as_users_write_it)
{
	struct sockaddr_in in = in4("10.0.0.1", 4791);
	struct sockaddr_in6 global = in6("fd00::1", 1, 0), local = in6("fe80::1", 65535, 2);
	char text[VERVE_ADDR_STRLEN];
	struct verve_addr addr;

	addr = set(&in, sizeof(in));
	cr_expect_str_eq(verve_addr_str(&addr, text), "10.0.0.1:4791");
	addr = set(&global, sizeof(global));
	cr_expect_str_eq(verve_addr_str(&addr, text), "[fd00::1]:1");
	addr = set(&local, sizeof(local));
	cr_expect_str_eq(verve_addr_str(&addr, text), "[fe80::1%2]:65535");
}

static uint32_t scope_taken(const struct sockaddr_in6 *theirs, const void *own, size_t own_len)
{
	struct verve_addr addr = set(theirs, sizeof(*theirs)), ours = set(own, own_len);

	verve_addr_take_scope(&addr, &ours);
	cr_expect_eq(addr.in6.sin6_port, theirs->sin6_port);
	return addr.in6.sin6_scope_id;
}

Test(addr, a_link_local_name_is_where_we_are)
{
	struct sockaddr_in6 theirs = in6("fe80::1", 1, 9), global = in6("fd00::1", 1, 0);
	struct sockaddr_in6 own = in6("fe80::2", 2, 3);
	struct sockaddr_in in = in4("10.0.0.1", 2);

	cr_expect_eq(scope_taken(&theirs, &own, sizeof(own)), 3);
	cr_expect_eq(scope_taken(&global, &own, sizeof(own)), 0);
	/* Our own address is not link-local: the scope of the peer's address stays. */
	cr_expect_eq(scope_taken(&theirs, &global, sizeof(global)), 9);
	cr_expect_eq(scope_taken(&theirs, &in, sizeof(in)), 9);
}
