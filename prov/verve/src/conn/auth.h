/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authentication of datagrams: the key that an endpoint and its peers share, and the code that it
 * puts at VERVE_HELLO_AUTH_OFFSET of each: HMAC-SHA-256 (libsodium) of the sender's address, the
 * recipient's address, and the whole datagram with zeros where the code goes.
 *
 * The addresses are in it because they say who is who: an authentic datagram that is sent on to
 * somebody else, or back, is not authentic there. Plain functions; any thread.
 */
#ifndef VERVE_CONN_AUTH_H
#define VERVE_CONN_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

enum {
	VERVE_AUTH_SECRET_MIN = 16, /* bytes of an attribute or a file; fewer can be guessed */
	VERVE_AUTH_SECRET_MAX = 4096,
	VERVE_AUTH_KEY_SIZE = 32,
};

/* Made from the secret, for datagrams alone. All zeros: there is none. */
struct verve_auth_key {
	bool is_set;
	uint8_t bytes[VERVE_AUTH_KEY_SIZE];
};

/* secret: any len bytes; equal ones make equal keys. The caller wipes it, and the key. */
void verve_auth_key_make(struct verve_auth_key *key, const void *secret, size_t len);
void verve_auth_key_wipe(struct verve_auth_key *key);

/* dgram: a datagram of len bytes, VERVE_HELLO_SIZE at least; *key is set. Writes the code. */
void verve_auth_sign(const struct verve_auth_key *key, void *dgram, size_t len,
		     const struct verve_addr *from, const struct verve_addr *to);
/* In constant time: it was signed with this key, from there, to there, and not changed since. */
bool verve_auth_check(const struct verve_auth_key *key, const void *dgram, size_t len,
		      const struct verve_addr *from, const struct verve_addr *to);

#endif
