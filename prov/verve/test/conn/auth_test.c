/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Authentication of datagrams: the code covers every byte, and is standard HMAC-SHA-256. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <string.h>

#include "conn/auth.h"
#include "conn/hello.h"

enum { LEN = VERVE_HELLO_SIZE + 24 };

static struct verve_auth_key key;
static struct verve_addr a, b;
static uint8_t dgram[LEN];

static void set_in(struct verve_addr *addr, const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	cr_assert_eq(inet_pton(AF_INET, host, &in.sin_addr), 1);
	cr_assert_eq(verve_addr_set(addr, &in, sizeof(in)), 0);
}

static void set_in6(struct verve_addr *addr, const char *host, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};

	cr_assert_eq(inet_pton(AF_INET6, host, &in6.sin6_addr), 1);
	cr_assert_eq(verve_addr_set(addr, &in6, sizeof(in6)), 0);
}

static void setup(void)
{
	for (size_t i = 0; i < LEN; i++)
		dgram[i] = (uint8_t)i;
	set_in(&a, "10.0.0.1", 1000);
	set_in(&b, "10.0.0.2", 2000);
	verve_auth_key_make(&key, "0123456789abcdef", 16);
}

TestSuite(auth, .init = setup);

/* The expected code was computed by another implementation (Python's hmac). */
Test(auth, code_is_the_standards)
{
	static const uint8_t expected[VERVE_HELLO_AUTH_SIZE] = {
		0xd3, 0xf0, 0x7e, 0xc9, 0x11, 0x95, 0x05, 0x29,
		0xca, 0x7b, 0x2b, 0xf8, 0xd0, 0x81, 0xe5, 0x10,
		0x79, 0x65, 0xb3, 0xc7, 0x20, 0x18, 0x4c, 0x3f,
		0xed, 0x69, 0xd6, 0x6d, 0x23, 0x9c, 0xfc, 0xfc,
	};

	verve_auth_sign(&key, dgram, LEN, &a, &b);
	cr_assert_arr_eq(dgram + VERVE_HELLO_AUTH_OFFSET, expected, sizeof(expected));
}

Test(auth, what_was_signed_is_accepted)
{
	for (size_t len = VERVE_HELLO_SIZE; len <= LEN; len++) {
		verve_auth_sign(&key, dgram, len, &a, &b);
		cr_assert(verve_auth_check(&key, dgram, len, &a, &b));
	}
}

Test(auth, every_bit_counts)
{
	verve_auth_sign(&key, dgram, LEN, &a, &b);
	for (size_t bit = 0; bit < 8 * LEN; bit++) {
		dgram[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_not(verve_auth_check(&key, dgram, LEN, &a, &b), "bit %zu", bit);
		dgram[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t len = VERVE_HELLO_SIZE; len < LEN; len++)
		cr_assert_not(verve_auth_check(&key, dgram, len, &a, &b), "%zu bytes", len);
}

Test(auth, both_addresses_count)
{
	struct verve_addr other;

	verve_auth_sign(&key, dgram, LEN, &a, &b);
	cr_expect_not(verve_auth_check(&key, dgram, LEN, &b, &a));
	set_in(&other, "10.0.0.3", 2000);
	cr_expect_not(verve_auth_check(&key, dgram, LEN, &a, &other));
	cr_expect_not(verve_auth_check(&key, dgram, LEN, &other, &b));
	set_in(&other, "10.0.0.2", 2001);
	cr_expect_not(verve_auth_check(&key, dgram, LEN, &a, &other));
	set_in6(&other, "::ffff:10.0.0.2", 2000, 0);
	cr_expect_not(verve_auth_check(&key, dgram, LEN, &a, &other));
}

Test(auth, scopes_are_each_hosts_own)
{
	struct verve_addr here, there;

	set_in6(&here, "fe80::1", 1000, 2);
	set_in6(&there, "fe80::1", 1000, 7);
	verve_auth_sign(&key, dgram, LEN, &here, &b);
	cr_expect(verve_auth_check(&key, dgram, LEN, &there, &b));
}

Test(auth, keys_are_as_different_as_secrets)
{
	struct verve_auth_key other;

	verve_auth_sign(&key, dgram, LEN, &a, &b);
	verve_auth_key_make(&other, "0123456789abcdef", 16);
	cr_expect(verve_auth_check(&other, dgram, LEN, &a, &b));
	verve_auth_key_make(&other, "0123456789abcdef\n", 17);
	cr_expect_not(verve_auth_check(&other, dgram, LEN, &a, &b));
	verve_auth_key_make(&other, "0123456789abcdeg", 16);
	cr_expect_not(verve_auth_check(&other, dgram, LEN, &a, &b));
}

Test(auth, wiped_keys_are_zeros)
{
	static const uint8_t zeros[sizeof(struct verve_auth_key)];

	verve_auth_key_wipe(&key);
	cr_expect_eq(memcmp(&key, zeros, sizeof(key)), 0);
}
