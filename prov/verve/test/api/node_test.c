/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Node: which addresses names, services and hints mean. All names are numeric, so that no name
 * server is asked.
 */
#include "api/node.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "base/log.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_node node;
static struct verve_addr own, own6, out;

static struct verve_addr ip(const char *text, uint16_t port)
{
	struct verve_addr addr;

	memset(&addr, 0, sizeof(addr));
	if (inet_pton(AF_INET, text, &addr.in.sin_addr) == 1)
		addr.in.sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &addr.in6.sin6_addr) == 1)
		addr.in6.sin6_family = AF_INET6;
	else
		cr_assert_fail("%s is no address", text);
	verve_addr_set_port(&addr, port);
	return addr;
}

static void setup(void)
{
	verve_log_provider = &provider;
	own = ip("10.1.0.1", 0);
	own6 = ip("fd00::1", 0);
}

static void teardown(void)
{
	verve_node_fini(&node);
}

TestSuite(node, .init = setup, .fini = teardown);

static int init(const char *name, const char *service, uint64_t flags, const struct fi_info *hints)
{
	return verve_node_init(&node, name, service, flags | FI_NUMERICHOST, hints);
}

static void expect_source(const struct verve_addr *address, uint16_t port)
{
	struct verve_addr want = *address;

	verve_addr_set_port(&want, port);
	memset(&out, 0xff, sizeof(out));
	cr_assert(verve_node_source(&node, address, &out));
	cr_expect(verve_addr_equal(&out, &want));
}

Test(node, nothing_asked_for_is_any_source_and_no_destination)
{
	cr_assert_eq(init(NULL, NULL, 0, NULL), 0);
	expect_source(&own, 0);
	expect_source(&own6, 0);
	cr_expect_eq(verve_node_dest(&node, &own, &out), 0);
}

Test(node, source_without_node_and_service_makes_no_sense)
{
	cr_expect_eq(init(NULL, NULL, FI_SOURCE, NULL), -FI_EINVAL);
}

Test(node, source_is_one_address_and_its_port)
{
	struct verve_addr other = ip("10.1.0.2", 0);

	cr_assert_eq(init("10.1.0.1", "7000", FI_SOURCE, NULL), 0);
	expect_source(&own, 7000);
	cr_expect_not(verve_node_source(&node, &other, &out));
	cr_expect_not(verve_node_source(&node, &own6, &out));
	cr_expect_eq(verve_node_dest(&node, &own, &out), 0);
}

Test(node, source_service_alone_is_that_port_of_any_address)
{
	cr_assert_eq(init(NULL, "7000", FI_SOURCE, NULL), 0);
	expect_source(&own, 7000);
}

Test(node, any_address_is_every_source)
{
	cr_assert_eq(init("0.0.0.0", NULL, FI_SOURCE, NULL), 0);
	expect_source(&own, 0);
	cr_expect_not(verve_node_source(&node, &own6, &out)); /* the source is of another family */
}

Test(node, destination_is_an_address_and_its_port)
{
	struct verve_addr want = ip("10.1.0.9", 7000);

	cr_assert_eq(init("10.1.0.9", "7000", 0, NULL), 0);
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &want));
	/* the destination has no address of this family */
	cr_expect_eq(verve_node_dest(&node, &own6, &out), -FI_ENODATA);
	expect_source(&own, 0);
}

/* As a name has it that stands for all networks of a host. Of the fake net, own reaches itself. */
Test(node, of_several_destinations_the_one_that_own_reaches_is_chosen)
{
	static const char *const texts[] = {"10.9.9.9", "fd00::1", "10.1.0.1", "10.1.0.9"};
	struct verve_addr other = ip("10.2.0.1", 0);
	struct addrinfo **tail = &node.dest;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		cr_assert_eq(getaddrinfo(texts[i], "7000", NULL, tail), 0);
		tail = &(*tail)->ai_next;
		freeaddrinfo(*tail); /* the same of other kinds of sockets */
		*tail = NULL;
	}
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	own = ip("10.1.0.1", 7000);
	cr_expect(verve_addr_equal(&out, &own));
	/* Else the first one, as getaddrinfo(3) sorts them. */
	cr_assert_eq(verve_node_dest(&node, &other, &out), 1);
	own = ip("10.9.9.9", 7000);
	cr_expect(verve_addr_equal(&out, &own));
	cr_assert_eq(verve_node_dest(&node, &own6, &out), 1);
	own6 = ip("fd00::1", 7000);
	cr_expect(verve_addr_equal(&out, &own6));
}

Test(node, service_alone_is_a_destination_on_this_very_host)
{
	struct verve_addr want = own;

	cr_assert_eq(init(NULL, "7000", 0, NULL), 0);
	verve_addr_set_port(&want, 7000);
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &want));
	cr_assert_eq(verve_node_dest(&node, &own6, &out), 1);
	cr_expect(verve_addr_same_host(&out, &own6));
	cr_expect_eq(verve_addr_port(&out), 7000);
}

Test(node, port_0_is_nobodys)
{
	cr_assert_eq(init(NULL, "0", 0, NULL), 0);
	cr_expect_eq(verve_node_dest(&node, &own, &out), 0);
}

Test(node, what_does_not_resolve_is_no_data)
{
	cr_expect_eq(init("not an address", NULL, 0, NULL), -FI_ENODATA);
	verve_node_fini(&node);
	cr_expect_eq(init("not an address", NULL, FI_SOURCE, NULL), -FI_ENODATA);
	verve_node_fini(&node);
	cr_expect_eq(init("10.1.0.1", "no such service", 0, NULL), -FI_ENODATA);
}

Test(node, format_of_the_hints_decides_the_family)
{
	struct fi_info hints = {.addr_format = FI_SOCKADDR_IN6};

	cr_expect_eq(init("10.1.0.1", NULL, 0, &hints), -FI_ENODATA);
	verve_node_fini(&node);
	cr_assert_eq(init("fd00::9", "7000", 0, &hints), 0);
	cr_expect_eq(verve_node_dest(&node, &own, &out), -FI_ENODATA);
	cr_expect_eq(verve_node_dest(&node, &own6, &out), 1);
	verve_node_fini(&node);
	hints.addr_format = FI_SOCKADDR_IN;
	cr_expect_eq(init("fd00::9", NULL, 0, &hints), -FI_ENODATA);
}

Test(node, addresses_of_the_hints_serve_without_a_node)
{
	struct verve_addr source = ip("10.1.0.1", 6000), dest = ip("10.1.0.9", 7000);
	struct fi_info hints = {.src_addr = &source, .src_addrlen = sizeof(source.in),
				.dest_addr = &dest, .dest_addrlen = sizeof(dest.in)};
	struct verve_addr other = ip("10.1.0.2", 0);

	cr_assert_eq(init(NULL, NULL, 0, &hints), 0);
	expect_source(&own, 6000);
	cr_expect_not(verve_node_source(&node, &other, &out));
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &dest));
	cr_expect_eq(verve_node_dest(&node, &own6, &out), -FI_ENODATA);
}

Test(node, node_goes_before_hints)
{
	struct verve_addr source = ip("10.1.0.2", 6000), dest = ip("10.1.0.9", 7000), want;
	struct fi_info hints = {.src_addr = &source, .src_addrlen = sizeof(source.in),
				.dest_addr = &dest, .dest_addrlen = sizeof(dest.in)};

	cr_assert_eq(init("10.1.0.1", "5000", FI_SOURCE, &hints), 0);
	expect_source(&own, 5000);
	cr_expect_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &dest));
	verve_node_fini(&node);
	cr_assert_eq(init("10.1.0.8", "5000", 0, &hints), 0);
	want = ip("10.1.0.8", 5000);
	cr_expect_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &want));
}

Test(node, hints_that_are_no_ip_address_are_no_data)
{
	struct sockaddr path = {.sa_family = AF_UNIX};
	struct fi_info source = {.src_addr = &path, .src_addrlen = sizeof(path)};
	struct fi_info dest = {.dest_addr = &path, .dest_addrlen = sizeof(path)};

	cr_expect_eq(init(NULL, NULL, 0, &source), -FI_ENODATA);
	cr_expect_eq(init(NULL, NULL, 0, &dest), -FI_ENODATA);
	path.sa_family = AF_INET;
	source.src_addrlen = 3;
	cr_expect_eq(init(NULL, NULL, 0, &source), -FI_ENODATA);
}

Test(node, link_local_source_without_its_interface_is_on_any)
{
	struct verve_addr scoped = ip("fe80::1", 0), other;

	scoped.in6.sin6_scope_id = 3;
	other = scoped;
	other.in6.sin6_scope_id = 4;
	cr_assert_eq(init("fe80::1", NULL, FI_SOURCE, NULL), 0);
	expect_source(&scoped, 0);
	expect_source(&other, 0);
	verve_node_fini(&node);
	cr_assert_eq(verve_node_init(&node, NULL, NULL, 0,
				     &(struct fi_info){.src_addr = &scoped,
						       .src_addrlen = sizeof(scoped.in6)}),
		     0);
	expect_source(&scoped, 0);
	cr_expect_not(verve_node_source(&node, &other, &out));
}

/* FI_ADDR_STR of fi_getinfo(3): node is a whole address. */

Test(node, an_address_string_is_a_destination)
{
	struct verve_addr want = ip("10.1.0.9", 7000), want6 = ip("fd00::9", 7000);

	cr_assert_eq(init("fi_sockaddr_in://10.1.0.9:7000", NULL, 0, NULL), 0);
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &want));
	verve_node_fini(&node);
	cr_assert_eq(init("fi_sockaddr://10.1.0.9:7000", NULL, 0, NULL), 0);
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &want));
	verve_node_fini(&node);
	cr_assert_eq(init("fi_sockaddr_in6://[fd00::9]:7000", NULL, 0, NULL), 0);
	cr_assert_eq(verve_node_dest(&node, &own6, &out), 1);
	cr_expect(verve_addr_equal(&out, &want6));
	verve_node_fini(&node);
	cr_assert_eq(init("fi_sockaddr://[fd00::9]:7000", NULL, 0, NULL), 0);
	cr_assert_eq(verve_node_dest(&node, &own6, &out), 1);
	cr_expect(verve_addr_equal(&out, &want6));
}

Test(node, an_address_string_is_a_source)
{
	struct verve_addr other = ip("10.1.0.2", 0);

	cr_assert_eq(init("fi_sockaddr_in://10.1.0.1:7000", NULL, FI_SOURCE, NULL), 0);
	expect_source(&own, 7000);
	cr_expect_not(verve_node_source(&node, &other, &out));
	verve_node_fini(&node);
	cr_assert_eq(init("fi_sockaddr_in://10.1.0.1", NULL, FI_SOURCE, NULL), 0);
	expect_source(&own, 0);
}

Test(node, address_strings_that_are_none)
{
	struct fi_info in6 = {.addr_format = FI_SOCKADDR_IN6};

	cr_expect_eq(init("fi_sockaddr_in://10.1.0.9:7000", "7000", 0, NULL), -FI_EINVAL);
	verve_node_fini(&node);
	cr_expect_eq(init("fi_sockaddr_ib://[::]:0", NULL, 0, NULL), -FI_ENODATA);
	verve_node_fini(&node);
	cr_expect_eq(init("fi_sockaddr_in://10.1.0.9:7000?qos=3", NULL, 0, NULL), -FI_ENODATA);
	verve_node_fini(&node);
	cr_expect_eq(init("fi_sockaddr_in://[fd00::9]:7000", NULL, 0, NULL), -FI_ENODATA);
	verve_node_fini(&node);
	cr_expect_eq(init("fi_sockaddr_in6://[10.1.0.9]:7000", NULL, 0, NULL), -FI_ENODATA);
	verve_node_fini(&node);
	cr_expect_eq(init("fi_sockaddr_in://10.1.0.9:7000", NULL, 0, &in6), -FI_ENODATA);
}

/* fi_getinfo(3): where node and service give an address, the address of hints is ignored. */

Test(node, source_hint_counts_for_nothing_with_FI_SOURCE)
{
	char text[] = "a provider's own";
	struct fi_info hints = {.src_addr = text, .src_addrlen = sizeof(text)};

	cr_expect_eq(init(NULL, NULL, 0, &hints), -FI_ENODATA);
	verve_node_fini(&node);
	cr_assert_eq(init("10.1.0.1", "7000", FI_SOURCE, &hints), 0);
	expect_source(&own, 7000);
}

Test(node, destination_hint_counts_without_node_or_with_FI_SOURCE)
{
	struct verve_addr hinted = ip("10.1.0.9", 7000), want = ip("10.1.0.8", 0);
	struct fi_info hints = {.dest_addr = &hinted.in, .dest_addrlen = sizeof(hinted.in)};
	char text[] = "a provider's own";

	cr_assert_eq(init("10.1.0.1", "7000", FI_SOURCE, &hints), 0);
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &hinted));
	verve_node_fini(&node);
	cr_assert_eq(init(NULL, "0", 0, &hints), 0);
	cr_expect_eq(verve_node_dest(&node, &own, &out), 0);
	verve_node_fini(&node);
	hints.dest_addr = text;
	hints.dest_addrlen = sizeof(text);
	cr_assert_eq(init("10.1.0.8", NULL, 0, &hints), 0);
	cr_assert_eq(verve_node_dest(&node, &own, &out), 1);
	cr_expect(verve_addr_equal(&out, &want));
}
