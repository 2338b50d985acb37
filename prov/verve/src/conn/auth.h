/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authentication of datagrams. An endpoint and its peers share a key. Each datagram carries a code
 * at VERVE_HELLO_AUTH_OFFSET: HMAC-SHA-256 (libsodium) of the sender's address, the recipient's
 * address, and the whole datagram with zeros in place of the code.
 *
 * The code covers the addresses, so that an attacker cannot replay an authentic datagram to another
 * endpoint, nor reflect it to its sender. Plain functions; no lock; any thread.
 */
#ifndef VERVE_CONN_AUTH_H
#define VERVE_CONN_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

enum {
	VERVE_AUTH_SECRET_MIN = 16, /* bytes of a secret; a shorter one can be guessed */
	VERVE_AUTH_SECRET_MAX = 4096,
	VERVE_AUTH_KEY_SIZE = 32,
};

/* A key made from the secret, used for datagrams alone. All zeros: no key. */
struct verve_auth_key {
	bool is_set;
	uint8_t bytes[VERVE_AUTH_KEY_SIZE];
};

/* secret: len bytes of any content; equal secrets make equal keys. The caller wipes both. */
void verve_auth_key_make(struct verve_auth_key *key, const void *secret, size_t len);
void verve_auth_key_wipe(struct verve_auth_key *key);

/*
 * Writes the code into a datagram of len bytes, at least VERVE_HELLO_SIZE. *key must be set. from:
 * the sender's address; to: the recipient's.
 */
void verve_auth_sign(const struct verve_auth_key *key, void *dgram, size_t len,
		     const struct verve_addr *from, const struct verve_addr *to);
/*
 * True: the datagram was signed with this key and these addresses, and not changed since. len as
 * above. Takes the same time for each wrong code, so that a code cannot be guessed byte by byte.
 */
bool verve_auth_check(const struct verve_auth_key *key, const void *dgram, size_t len,
		      const struct verve_addr *from, const struct verve_addr *to);

#endif
