/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Authentication of datagrams: making keys, computing and checking codes. */
#include "conn/auth.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "conn/hello.h"

_Static_assert(VERVE_HELLO_AUTH_SIZE == crypto_auth_hmacsha256_BYTES, "the code");
_Static_assert((int)VERVE_AUTH_KEY_SIZE == crypto_auth_hmacsha256_KEYBYTES, "the key");

/* Part of the key, so that the secret makes another key for any other purpose. */
static const char purpose[] = "verve handshake";

/* An address as both sides see it: without the scope, which differs from host to host. */
struct auth_addr {
	uint8_t family, zero;
	uint8_t port[2];
	uint8_t host[16];
};
_Static_assert(sizeof(struct auth_addr) == 20, "no padding");

void verve_auth_key_make(struct verve_auth_key *key, const void *secret, size_t len)
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, secret, len);
	crypto_auth_hmacsha256_update(&state, (const unsigned char *)purpose, sizeof(purpose));
	crypto_auth_hmacsha256_final(&state, key->bytes);
	sodium_memzero(&state, sizeof(state));
	key->is_set = true;
}

void verve_auth_key_wipe(struct verve_auth_key *key)
{
	sodium_memzero(key, sizeof(*key));
}

static void auth_addr_set(struct auth_addr *out, const struct verve_addr *addr)
{
	memset(out, 0, sizeof(*out));
	if (addr->sa.sa_family == AF_INET) {
		out->family = 4;
		memcpy(out->port, &addr->in.sin_port, sizeof(out->port));
		memcpy(out->host, &addr->in.sin_addr, sizeof(addr->in.sin_addr));
	} else {
		out->family = 6;
		memcpy(out->port, &addr->in6.sin6_port, sizeof(out->port));
		memcpy(out->host, &addr->in6.sin6_addr, sizeof(out->host));
	}
}

static void code_compute(const struct verve_auth_key *key, const uint8_t *dgram, size_t len,
			 const struct verve_addr *from, const struct verve_addr *to, uint8_t *code)
{
	static const uint8_t none[VERVE_HELLO_AUTH_SIZE];
	static const size_t behind = VERVE_HELLO_AUTH_OFFSET + VERVE_HELLO_AUTH_SIZE;
	crypto_auth_hmacsha256_state state;
	struct auth_addr addrs[2];

	assert(key->is_set && len >= behind);
	auth_addr_set(&addrs[0], from);
	auth_addr_set(&addrs[1], to);
	crypto_auth_hmacsha256_init(&state, key->bytes, sizeof(key->bytes));
	crypto_auth_hmacsha256_update(&state, (const uint8_t *)addrs, sizeof(addrs));
	crypto_auth_hmacsha256_update(&state, dgram, VERVE_HELLO_AUTH_OFFSET);
	crypto_auth_hmacsha256_update(&state, none, sizeof(none));
	crypto_auth_hmacsha256_update(&state, dgram + behind, len - behind);
	crypto_auth_hmacsha256_final(&state, code);
	sodium_memzero(&state, sizeof(state));
}

void verve_auth_sign(const struct verve_auth_key *key, void *dgram, size_t len,
		     const struct verve_addr *from, const struct verve_addr *to)
{
	code_compute(key, dgram, len, from, to, (uint8_t *)dgram + VERVE_HELLO_AUTH_OFFSET);
}

bool verve_auth_check(const struct verve_auth_key *key, const void *dgram, size_t len,
		      const struct verve_addr *from, const struct verve_addr *to)
{
	uint8_t code[VERVE_HELLO_AUTH_SIZE];

	code_compute(key, dgram, len, from, to, code);
	return !sodium_memcmp(code, (const uint8_t *)dgram + VERVE_HELLO_AUTH_OFFSET, sizeof(code));
}
