/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guard: what a connection manager does not let strangers do: speak without the endpoint's key,
 * make it allocate before they have shown that they hear it, make it answer or log without end.
 *
 * Cookies: who asks for a connection may be told to ask again with a number that is made of what
 * it said and of a secret. Nothing is kept meanwhile; who returns the number lives, and at its
 * address.
 * Belongs to the service thread.
 */
#ifndef VERVE_CONN_GUARD_H
#define VERVE_CONN_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "conn/auth.h"
#include "conn/hello.h"

enum { VERVE_GUARD_UNPROVEN = 1024 };

struct verve_guard {
	struct verve_auth_key key;
	struct verve_addr addr; /* ours */
	uint8_t secret[16];	/* of cookies */
	struct { /* when each was logged; 0: never */
		uint64_t version, refused, rejected;
	} warned;
	uint64_t answering_since;
	unsigned answers;
};

enum verve_guard_verdict {
	VERVE_GUARD_PASS,
	VERVE_GUARD_NO_KEY,  /* it is authenticated, and we have no key to check it with */
	VERVE_GUARD_UNSIGNED, /* it is not, and we have a key */
	VERVE_GUARD_FORGED,  /* not with our key, or not what was signed */
};

/* key NULL: none. addr: the bound one; with a key not a wildcard. */
void verve_guard_init(struct verve_guard *guard, const struct verve_auth_key *key,
		      const struct verve_addr *addr);
/* Wipes the key. */
void verve_guard_fini(struct verve_guard *guard);

/* Encodes, and authenticates if there is a key, into buf of VERVE_HELLO_SIZE bytes. */
void verve_guard_seal(const struct verve_guard *guard, const struct verve_hello *hello, void *buf,
		      const struct verve_addr *to);
/* buf: what was decoded into hello, also if that said -FI_ENOPROTOOPT. */
enum verve_guard_verdict verve_guard_check(const struct verve_guard *guard,
					   const struct verve_hello *hello, const void *buf,
					   size_t len, const struct verve_addr *from);
/* What to give the sender of this HELLO to echo. Not 0. now: nanoseconds. */
uint64_t verve_guard_cookie(const struct verve_guard *guard, const struct verve_hello *hello,
			    const struct verve_addr *from, uint64_t now);
/*
 * The datagram asks for a connection, does not echo such a cookie of the last one or two minutes,
 * and is not believed without: with a key nobody is, for it may be a recording; without one the
 * first VERVE_GUARD_UNPROVEN of the connections that wait for the peer's READY are, so that
 * handshakes stay short. half_open: how many wait.
 */
bool verve_guard_doubts(const struct verve_guard *guard, const struct verve_hello *hello,
			const struct verve_addr *from, uint64_t now, size_t half_open);

/* Each says it in the log, once a minute: it is strangers who provoke it. */
void verve_guard_warn_version(struct verve_guard *guard, const struct verve_hello *hello,
			      const struct verve_addr *from, uint64_t now);
/* A peer without the key; verdict: other than PASS. */
void verve_guard_warn_refused(struct verve_guard *guard, enum verve_guard_verdict verdict,
			      const struct verve_addr *from, uint64_t now);
/* A peer says that we do not have its key. */
void verve_guard_warn_rejected(struct verve_guard *guard, const struct verve_addr *from,
			       uint64_t now);
/* False: strangers have been told often enough this second that they are not let in. */
bool verve_guard_may_answer(struct verve_guard *guard, uint64_t now);

#endif
