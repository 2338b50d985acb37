/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address vector: every call of fi_av(3), synchronous and with events, right and wrong. */
#include "fixture.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "api/av.h"
#include "api/domain.h"

/* libfabric 2.x deprecates fi_av_bind; applications still call it. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct fixture fix;
static struct fid_av *av;

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);
int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list);

/* The name "two" has an address that nobody reaches, and the fixture's own one. */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		       struct addrinfo **list)
{
	char own[INET_ADDRSTRLEN];
	int ret;

	if (!node || strcmp(node, "two"))
		return __real_getaddrinfo(node, service, hints, list);
	if (hints->ai_flags & AI_NUMERICHOST)
		return EAI_NONAME;
	inet_ntop(AF_INET, &((struct sockaddr_in *)fix.info->src_addr)->sin_addr, own,
		  sizeof(own));
	ret = __real_getaddrinfo("10.77.0.1", service, hints, list);
	return ret ? ret : __real_getaddrinfo(own, service, hints, &(*list)->ai_next);
}

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
	av = NULL;
}

static void teardown(void)
{
	if (av)
		cr_expect_eq(fi_close(&av->fid), 0);
	fixture_fini(&fix);
}

TestSuite(av, .init = setup, .fini = teardown);

static int try_open(struct fi_av_attr *attr)
{
	if (!fix.domain)
		fixture_open_domain(&fix);
	return fi_av_open(fix.domain, attr, &av, &fix);
}

static void open_av(uint64_t flags)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = 8, .flags = flags};

	cr_assert_eq(try_open(&attr), 0);
}

static struct sockaddr_in in_addr_of(uint8_t host)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(5000),
		.sin_addr.s_addr = htonl(0x0a000000 + host),
	};
}

static struct sockaddr_in6 in6_addr_of(uint8_t host)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(5000)};

	in6.sin6_addr.s6_addr[0] = 0x20;
	in6.sin6_addr.s6_addr[15] = host;
	return in6;
}

/* Inserts one address and returns its index. */
static fi_addr_t insert(uint8_t host)
{
	struct sockaddr_in addr = in_addr_of(host);
	fi_addr_t fi_addr;

	cr_assert_eq(fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}

static bool is_at(fi_addr_t fi_addr, const char *ip, uint16_t port)
{
	struct sockaddr_in got;
	size_t len = sizeof(got);

	return !fi_av_lookup(av, fi_addr, &got, &len) && len == sizeof(got) &&
	       got.sin_family == AF_INET && got.sin_addr.s_addr == inet_addr(ip) &&
	       got.sin_port == htons(port);
}

Test(av, attributes_are_checked)
{
	struct fi_av_attr named = {.type = FI_AV_TABLE, .name = "shared"};
	struct fi_av_attr readonly = {.type = FI_AV_TABLE, .flags = FI_READ};
	struct fi_av_attr flags = {.type = FI_AV_TABLE, .flags = FI_PEEK};
	struct fi_av_attr type = {.type = 99};
	struct fi_av_attr bits = {.type = FI_AV_TABLE, .rx_ctx_bits = 33};
	struct fi_av_attr negative = {.type = FI_AV_TABLE, .rx_ctx_bits = -1};

	cr_expect_eq(try_open(&named), -FI_ENOSYS);
	cr_expect_eq(try_open(&readonly), -FI_ENOSYS);
	cr_expect_eq(try_open(&flags), -FI_EBADFLAGS);
	cr_expect_eq(try_open(&type), -FI_EINVAL);
	cr_expect_eq(try_open(&bits), -FI_EINVAL);
	cr_expect_eq(try_open(&negative), -FI_EINVAL);
	cr_expect_eq(try_open(NULL), -FI_EINVAL);
	cr_expect_null(av);
}

/* It is a hint, and asks for nothing. */
Test(av, symmetric_addresses_are_as_others)
{
	open_av(FI_SYMMETRIC);
	cr_expect_eq(insert(9), 0);
	cr_expect(is_at(0, "10.0.0.9", 5000));
}

Test(av, open_type_becomes_table)
{
	struct fi_av_attr attr = {.type = FI_AV_UNSPEC, .rx_ctx_bits = 8};

	cr_assert_eq(try_open(&attr), 0);
	cr_expect_eq(attr.type, FI_AV_TABLE);
	cr_expect_eq(av->fid.fclass, FI_CLASS_AV);
	cr_expect_eq(av->fid.context, &fix);
}

Test(av, map_is_indexed_like_table)
{
	struct fi_av_attr attr = {.type = FI_AV_MAP};

	cr_assert_eq(try_open(&attr), 0);
	cr_expect_eq(attr.type, FI_AV_MAP);
	cr_expect_eq(insert(1), 0);
	cr_expect_eq(insert(2), 1);
}

Test(av, insert_in_order_across_calls)
{
	struct sockaddr_in addr[3] = {in_addr_of(2), in_addr_of(3), in_addr_of(4)};
	fi_addr_t fi_addr[3];

	open_av(0);
	cr_expect_eq(insert(1), 0);
	cr_expect_eq(fi_av_insert(av, addr, 3, fi_addr, FI_MORE, NULL), 3);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(fi_addr[i], (fi_addr_t)i + 1);
	cr_expect(is_at(3, "10.0.0.4", 5000));
}

Test(av, insert_without_results)
{
	struct sockaddr_in addr[2] = {in_addr_of(1), in_addr_of(2)};

	open_av(0);
	cr_expect_eq(fi_av_insert(av, addr, 2, NULL, 0, NULL), 2);
	cr_expect(is_at(1, "10.0.0.2", 5000));
	cr_expect_eq(fi_av_insert(av, NULL, 0, NULL, 0, NULL), 0);
}

Test(av, insert_arguments_are_checked)
{
	struct sockaddr_in addr = in_addr_of(1);
	fi_addr_t fi_addr;

	open_av(0);
	cr_expect_eq(fi_av_insert(av, NULL, 1, &fi_addr, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, FI_PEEK, NULL), -FI_EBADFLAGS);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, FI_SYNC_ERR, NULL), -FI_EINVAL);
}

Test(av, one_bad_address_fails_alone)
{
	struct sockaddr_in addr[6];
	fi_addr_t fi_addr[6];
	int errors[6];

	open_av(0);
	for (uint8_t i = 0; i < 6; i++)
		addr[i] = in_addr_of(i + 1);
	addr[1].sin_family = AF_INET6;
	addr[2].sin_port = 0;
	addr[3].sin_addr.s_addr = htonl(INADDR_ANY);
	addr[4].sin_addr.s_addr = inet_addr("224.0.0.1");
	memset(errors, 0xff, sizeof(errors));
	cr_expect_eq(fi_av_insert(av, addr, 6, fi_addr, FI_SYNC_ERR, errors), 2);
	cr_expect_eq(fi_addr[0], 0);
	cr_expect_eq(fi_addr[1], FI_ADDR_NOTAVAIL);
	cr_expect_eq(fi_addr[2], FI_ADDR_NOTAVAIL);
	cr_expect_eq(fi_addr[3], FI_ADDR_NOTAVAIL);
	cr_expect_eq(fi_addr[4], FI_ADDR_NOTAVAIL);
	cr_expect_eq(fi_addr[5], 1);
	cr_expect_eq(errors[0], 0);
	cr_expect_eq(errors[1], FI_EINVAL);
	cr_expect_eq(errors[2], FI_EADDRNOTAVAIL);
	cr_expect_eq(errors[3], FI_EADDRNOTAVAIL);
	cr_expect_eq(errors[4], FI_EADDRNOTAVAIL);
	cr_expect_eq(errors[5], 0);
}

/* No socket of an endpoint can send there: they are of IPv4, or of IPv6 alone. */
Test(av, ipv4_address_in_an_ipv6_address_is_refused)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_port = htons(5000)};
	fi_addr_t fi_addr;
	int error;

	fix.info->addr_format = FI_SOCKADDR_IN6;
	open_av(0);
	cr_assert_eq(inet_pton(AF_INET6, "::ffff:10.0.0.1", &addr.sin6_addr), 1);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, FI_SYNC_ERR, &error), 0);
	cr_expect_eq(error, FI_EADDRNOTAVAIL);
	addr = in6_addr_of(1);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL), 1);
}

Test(av, duplicate_has_the_same_index_and_is_removed_as_often)
{
	fi_addr_t fi_addr;

	open_av(0);
	fi_addr = insert(1);
	cr_expect_eq(insert(1), fi_addr);
	cr_expect_eq(insert(2), fi_addr + 1);
	cr_expect_eq(fi_av_remove(av, &fi_addr, 1, 0), 0);
	cr_expect(is_at(fi_addr, "10.0.0.1", 5000));
	cr_expect_eq(fi_av_remove(av, &fi_addr, 1, 0), 0);
	cr_expect_not(is_at(fi_addr, "10.0.0.1", 5000));
}

Test(av, removed_index_is_used_again)
{
	fi_addr_t first;

	open_av(0);
	first = insert(1);
	insert(2);
	cr_expect_eq(fi_av_remove(av, &first, 1, 0), 0);
	cr_expect_eq(insert(3), first);
	cr_expect_eq(insert(1), 2, "re-insertion after removal");
}

Test(av, remove_goes_on_after_an_unknown_address)
{
	fi_addr_t fi_addr[3] = {0, 77, 1};

	open_av(0);
	insert(1);
	insert(2);
	cr_expect_eq(fi_av_remove(av, fi_addr, 3, 1), -FI_EBADFLAGS);
	cr_expect_eq(fi_av_remove(av, NULL, 1, 0), -FI_EINVAL);
	cr_expect_eq(fi_av_remove(av, fi_addr, 0, 0), 0);
	cr_expect_eq(fi_av_remove(av, fi_addr, 3, 0), -FI_EINVAL);
	cr_expect_not(is_at(0, "10.0.0.1", 5000));
	cr_expect_not(is_at(1, "10.0.0.2", 5000));
}

Test(av, lookup_cuts_and_says_the_length)
{
	struct sockaddr_in addr = in_addr_of(1), got;
	size_t len = 4;

	open_av(0);
	insert(1);
	memset(&got, 0xee, sizeof(got));
	cr_expect_eq(fi_av_lookup(av, 0, &got, &len), 0);
	cr_expect_eq(len, sizeof(addr));
	cr_expect_arr_eq(&got, &addr, 4);
	cr_expect_eq(((uint8_t *)&got)[4], 0xee);
	len = 0;
	cr_expect_eq(fi_av_lookup(av, 0, NULL, &len), 0);
	cr_expect_eq(len, sizeof(addr));
	len = sizeof(got);
	cr_expect_eq(fi_av_lookup(av, 1, &got, &len), -FI_EINVAL);
	cr_expect_eq(fi_av_lookup(av, FI_ADDR_UNSPEC, &got, &len), -FI_EINVAL);
}

Test(av, straddr_names_format_address_and_port)
{
	struct sockaddr_in in = in_addr_of(1);
	struct sockaddr_in6 in6 = in6_addr_of(9);
	struct sockaddr other = {.sa_family = AF_UNIX};
	char buf[64], small[10];
	size_t len = sizeof(buf);

	open_av(0);
	cr_expect_str_eq(fi_av_straddr(av, &in, buf, &len), "fi_sockaddr_in://10.0.0.1:5000");
	cr_expect_eq(len, sizeof("fi_sockaddr_in://10.0.0.1:5000"));
	len = sizeof(buf);
	cr_expect_str_eq(fi_av_straddr(av, &in6, buf, &len), "fi_sockaddr_in6://[2000::9]:5000");
	len = sizeof(small);
	cr_expect_str_eq(fi_av_straddr(av, &in, small, &len), "fi_sockad");
	cr_expect_eq(len, sizeof("fi_sockaddr_in://10.0.0.1:5000"));
	len = sizeof(buf);
	cr_expect_str_eq(fi_av_straddr(av, &other, buf, &len), "unknown");
}

Test(av, insertsvc_resolves_node_and_service)
{
	fi_addr_t fi_addr;
	int error = -1;

	open_av(0);
	cr_expect_eq(fi_av_insertsvc(av, "10.0.0.5", "6000", &fi_addr, 0, NULL), 1);
	cr_expect(is_at(fi_addr, "10.0.0.5", 6000));
	cr_expect_eq(fi_av_insertsvc(av, "fi_sockaddr_in://10.0.0.6:6001", NULL, &fi_addr, 0, NULL),
		     1);
	cr_expect(is_at(fi_addr, "10.0.0.6", 6001));
	cr_expect_eq(fi_av_insertsvc(av, NULL, "6000", &fi_addr, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_insertsvc(av, "10.0.0.5", NULL, &fi_addr, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_insertsvc(av, "fi_sockaddr_in://10.0.0.6:60x", NULL, &fi_addr, 0, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_av_insertsvc(av, "2000::9", "6000", &fi_addr, FI_SYNC_ERR, &error), 0,
		     "IPv6 in an IPv4 domain");
	cr_expect_eq(fi_addr, FI_ADDR_NOTAVAIL);
	cr_expect_eq(error, FI_EADDRNOTAVAIL);
}

Test(av, of_a_names_addresses_the_one_that_the_domain_reaches_is_inserted)
{
	struct sockaddr_in *own = fix.info->src_addr, addr;
	size_t len = sizeof(addr);
	fi_addr_t fi_addr;

	open_av(0);
	cr_assert_eq(fi_av_insertsvc(av, "two", "6000", &fi_addr, 0, NULL), 1);
	cr_assert_eq(fi_av_lookup(av, fi_addr, &addr, &len), 0);
	cr_expect_eq(addr.sin_addr.s_addr, own->sin_addr.s_addr);
	cr_expect_eq(addr.sin_port, htons(6000));
	cr_assert_eq(fi_av_insertsym(av, "two", 1, "6001", 1, &fi_addr, 0, NULL), 1);
	cr_assert_eq(fi_av_lookup(av, fi_addr, &addr, &len), 0);
	cr_expect_eq(addr.sin_addr.s_addr, own->sin_addr.s_addr);
}

Test(av, insertsvc_takes_every_string_for_an_ip_address)
{
	static const char *const strings[] = {"fi_sockaddr_in://10.0.0.6:6001",
					      "fi_sockaddr://10.0.0.6:6001"};
	static const char *const others[] = {"fi_sockaddr://10.0.0.6", "fi_sockaddr_ib://[::]:1",
					     "fi_sockaddr://10.0.0.6:6001?qos=3"};
	fi_addr_t fi_addr;

	open_av(0);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		struct sockaddr_in got;
		size_t len = sizeof(got);

		cr_assert_eq(fi_av_insertsvc(av, strings[i], NULL, &fi_addr, 0, NULL), 1);
		cr_assert_eq(fi_av_lookup(av, fi_addr, &got, &len), 0);
		cr_expect_eq(got.sin_addr.s_addr, htonl(0x0a000006));
		cr_expect_eq(got.sin_port, htons(6001));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_neq(fi_av_insertsvc(av, others[i], NULL, &fi_addr, 0, NULL), 1, "%s",
			      others[i]);
}

Test(av, insertsym_counts_ports_within_nodes)
{
	fi_addr_t fi_addr[4];

	open_av(0);
	cr_expect_eq(fi_av_insertsym(av, "10.1.1.255", 2, "5000", 2, fi_addr, 0, NULL), 4);
	cr_expect(is_at(0, "10.1.1.255", 5000));
	cr_expect(is_at(1, "10.1.1.255", 5001));
	cr_expect(is_at(2, "10.1.2.0", 5000));
	cr_expect(is_at(3, "10.1.2.0", 5001));
	cr_expect_eq(fi_addr[3], 3);
}

Test(av, insertsym_arguments_are_checked)
{
	fi_addr_t fi_addr[2];

	open_av(0);
	cr_expect_eq(fi_av_insertsym(av, NULL, 1, "5000", 1, fi_addr, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_insertsym(av, "10.0.0.1", 1, NULL, 1, fi_addr, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_insertsym(av, "10.0.0.1", 1, "65535", 2, fi_addr, 0, NULL), -FI_EINVAL);
	cr_expect_eq(fi_av_insertsym(av, "10.0.0.1", SIZE_MAX, "1", 2, fi_addr, 0, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_av_insertsym(av, "10.0.0.1", 1, "1", SIZE_MAX, fi_addr, 0, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_av_insertsym(av, "10.0.0.1", 0, "5000", 1, fi_addr, 0, NULL), 0);
	cr_expect_eq(fi_av_insertsym(av, "10.0.0.1", 1, "5000", 0, fi_addr, 0, NULL), 0);
}

Test(av, insertsym_past_the_last_address_fails_there)
{
	fi_addr_t fi_addr[2];

	open_av(0);
	cr_expect_eq(fi_av_insertsym(av, "localhost", 2, "5000", 1, fi_addr, 0, NULL), 1,
		     "a name without a number has no successor");
	cr_expect(is_at(fi_addr[0], "127.0.0.1", 5000));
	cr_expect_eq(fi_addr[1], FI_ADDR_NOTAVAIL);
}

Test(av, ipv6_domain_takes_ipv6)
{
	struct sockaddr_in6 addr[2] = {in6_addr_of(1), in6_addr_of(2)}, got;
	size_t len = sizeof(got);
	fi_addr_t fi_addr[2];

	fixture_open_domain(&fix);
	verve_domain_from_fid(&fix.domain->fid)->addr_format = FI_SOCKADDR_IN6;
	open_av(0);
	cr_expect_eq(fi_av_insert(av, addr, 2, fi_addr, 0, NULL), 2);
	cr_expect_eq(fi_av_lookup(av, fi_addr[1], &got, &len), 0);
	cr_expect_eq(len, sizeof(got));
	cr_expect_arr_eq(&got, &addr[1], sizeof(got));
}

/* The interface in a peer's name is a number of the peer's own host, and means nothing here. */
Test(av, link_local_peer_is_on_the_link_of_the_domain)
{
	struct sockaddr_in6 addr = in6_addr_of(1), got;
	struct verve_domain *domain;
	struct verve_addr *own;
	size_t len = sizeof(got);
	fi_addr_t fi_addr;

	fixture_open_domain(&fix);
	domain = verve_domain_from_fid(&fix.domain->fid);
	domain->addr_format = FI_SOCKADDR_IN6;
	own = &verve_net_device_port(domain->dev)->addrs[0].addr;
	addr.sin6_addr.s6_addr[0] = 0xfe;
	addr.sin6_addr.s6_addr[1] = 0x80;
	addr.sin6_scope_id = 3;
	cr_assert_eq(verve_addr_set(own, &addr, sizeof(addr)), 0);
	addr.sin6_addr.s6_addr[15] = 2;
	addr.sin6_scope_id = 9;
	open_av(0);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL), 1);
	cr_expect_eq(fi_av_lookup(av, fi_addr, &got, &len), 0);
	cr_expect_eq(got.sin6_scope_id, 3);
	cr_expect_arr_eq(&got.sin6_addr, &addr.sin6_addr, sizeof(addr.sin6_addr));
	cr_expect_eq(got.sin6_port, addr.sin6_port);
}

Test(av, open_format_goes_by_the_first_address)
{
	struct sockaddr_in in[2] = {in_addr_of(1), in_addr_of(2)};
	struct sockaddr_in6 in6[2] = {in6_addr_of(1), in6_addr_of(2)};
	struct sockaddr other = {.sa_family = AF_UNIX};
	fi_addr_t fi_addr[2];

	fixture_open_domain(&fix);
	verve_domain_from_fid(&fix.domain->fid)->addr_format = FI_SOCKADDR;
	open_av(0);
	cr_expect_eq(fi_av_insert(av, in, 2, fi_addr, 0, NULL), 2);
	cr_expect_eq(fi_av_insert(av, in6, 2, fi_addr, 0, NULL), 2);
	cr_expect_eq(fi_addr[1], 3);
	cr_expect_eq(fi_av_insert(av, &other, 1, fi_addr, 0, NULL), 0);
	cr_expect_eq(fi_addr[0], FI_ADDR_NOTAVAIL);
}

Test(av, events_need_a_queue)
{
	struct sockaddr_in addr = in_addr_of(1);
	struct fid_eq *eq = fixture_open_eq(&fix);
	fi_addr_t fi_addr;
	int error;

	open_av(FI_EVENT);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, 0, NULL), -FI_ENOEQ);
	cr_expect_eq(fi_av_bind(av, &eq->fid, 1), -FI_EBADFLAGS);
	cr_expect_eq(fi_av_bind(av, &fix.domain->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_av_bind(av, &eq->fid, 0), 0);
	cr_expect_eq(fi_av_bind(av, &eq->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_av_insert(av, &addr, 1, &fi_addr, FI_SYNC_ERR, &error), -FI_EBADFLAGS);
	cr_expect_eq(fi_close(&eq->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&av->fid), 0);
	av = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(av, events_report_each_failure_and_then_the_count)
{
	struct sockaddr_in addr[3] = {in_addr_of(1), in_addr_of(2), in_addr_of(3)};
	struct fid_eq *eq = fixture_open_eq(&fix);
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	fi_addr_t fi_addr[3];
	uint32_t event;
	int context;

	addr[1].sin_family = AF_UNIX;
	open_av(FI_EVENT);
	cr_assert_eq(fi_av_bind(av, &eq->fid, 0), 0);
	cr_expect_eq(fi_av_insert(av, addr, 3, fi_addr, 0, &context), 0);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	cr_expect_gt(fi_eq_readerr(eq, &err, 0), 0);
	cr_expect_eq(err.fid, &av->fid);
	cr_expect_eq(err.context, &context);
	cr_expect_eq(err.data, 1);
	cr_expect_eq(err.err, FI_EINVAL);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	cr_expect_eq(event, FI_AV_COMPLETE);
	cr_expect_eq(entry.fid, &av->fid);
	cr_expect_eq(entry.context, &context);
	cr_expect_eq(entry.data, 2);
	cr_expect_eq(fi_addr[1], FI_ADDR_NOTAVAIL);
	cr_expect_eq(fi_addr[2], 1);
	cr_expect_eq(fi_close(&av->fid), 0);
	av = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(av, stays_open_while_endpoints_are_bound)
{
	open_av(0);
	verve_av_get(verve_av_from_fid(&av->fid));
	cr_expect_eq(fi_close(&av->fid), -FI_EBUSY);
	verve_av_put(verve_av_from_fid(&av->fid));
	cr_expect_eq(fi_close(&av->fid), 0);
	av = NULL;
}

/*
 * An engine hears of removals only while it is bound. This pointer is no engine, so a call would
 * crash.
 */
Test(av, unbound_engine_is_not_told)
{
	struct verve_engine *none = (struct verve_engine *)&fix;
	fi_addr_t fi_addr;

	open_av(0);
	cr_assert_eq(verve_av_bind_engine(verve_av_from_fid(&av->fid), none), 0);
	verve_av_unbind_engine(verve_av_from_fid(&av->fid), none);
	verve_av_unbind_engine(verve_av_from_fid(&av->fid), none);
	fi_addr = insert(1);
	cr_expect_eq(fi_av_remove(av, &fi_addr, 1, 0), 0);
}
