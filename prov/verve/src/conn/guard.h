/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Guard: protects the connection manager from unknown senders. A sender without the endpoint's key
 * is refused. A sender that has not proved its address makes the manager allocate nothing. No
 * sender can make the manager answer or log without limit.
 *
 * Cookies: a peer that asks for a connection may have to ask again and echo a cookie, which is a
 * hash of its request and of a secret. The manager stores nothing meanwhile. The echo proves that
 * the peer receives datagrams at its address.
 *
 * Service thread.
 */
#ifndef VERVE_CONN_GUARD_H
#define VERVE_CONN_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "conn/auth.h"
#include "conn/hello.h"

/* Refusals that any sender can cause. Each kind has a limit per second of its own. */
enum verve_guard_answer {
	VERVE_GUARD_ANSWER_KEY,
	VERVE_GUARD_ANSWER_ELSEWHERE,
	VERVE_GUARD_ANSWERS,
};

/* With so many strangers at work here, a request without a cookie is refused. */
enum { VERVE_GUARD_UNPROVEN = 1024 };

struct verve_guard {
	struct verve_auth_key key;
	struct verve_addr addr; /* the endpoint's own address */
	uint8_t secret[16];	/* random: the key of the cookies' hash */
	struct { /* time of each kind's last warning, nanoseconds; 0: never */
		uint64_t version, refused, rejected, elsewhere, again;
	} warned;
	struct {
		uint64_t since; /* nanoseconds: begin of the second that count belongs to */
		unsigned count; /* refusals sent in this second */
	} answered[VERVE_GUARD_ANSWERS];
};

enum verve_guard_verdict {
	VERVE_GUARD_PASS,
	VERVE_GUARD_NO_KEY,   /* the datagram is signed, but we have no key */
	VERVE_GUARD_UNSIGNED, /* the datagram is not signed, but we have a key */
	VERVE_GUARD_FORGED,   /* the datagram was signed with another key, or changed since */
};

/* key: copied; NULL: no key. addr: the bound address; not a wildcard if there is a key. */
void verve_guard_init(struct verve_guard *guard, const struct verve_auth_key *key,
		      const struct verve_addr *addr);
/* Wipes the key. */
void verve_guard_fini(struct verve_guard *guard);

/* Encodes *hello into buf of VERVE_HELLO_SIZE bytes, and signs it if there is a key. */
void verve_guard_seal(const struct verve_guard *guard, const struct verve_hello *hello, void *buf,
		      const struct verve_addr *to);
/*
 * Checks whether a datagram is signed as it must be. buf, len: the datagram's bytes; hello: its
 * fields, from verve_hello_decode, also if that returned -FI_ENOPROTOOPT.
 */
enum verve_guard_verdict verve_guard_check(const struct verve_guard *guard,
					   const struct verve_hello *hello, const void *buf,
					   size_t len, const struct verve_addr *from);
/* The GID of an IP address on RoCE: the IPv6 address, or the IPv4 address mapped into IPv6. */
void verve_guard_gid(const struct verve_addr *addr, struct verve_net_gid *gid);
/*
 * RoCE: true if the sender of this HELLO may name the queue pair's GID: with a key, any; without
 * one, only the address that the datagram came from. A stranger could name an address that nobody
 * has, and the kernel would look for that a second long. On InfiniBand a GID tells nothing about
 * the sender's IP address.
 */
bool verve_guard_vouches(const struct verve_guard *guard, const struct verve_hello *hello,
			 const struct verve_addr *from);
/* The cookie that the sender of this HELLO must echo; never 0. now: nanoseconds. */
uint64_t verve_guard_cookie(const struct verve_guard *guard, const struct verve_hello *hello,
			    const struct verve_addr *from, uint64_t now);
/*
 * True: the datagram asks for a connection, but must echo a cookie first. A cookie is valid for one
 * to two minutes. With a key, every request needs one, because the datagram may be a recording;
 * but for those that a connection judges (conn/conn_recv.h), and the caller knows which.
 * Without a key, requests need one only while strangers is at least VERVE_GUARD_UNPROVEN, so that
 * the normal handshake stays short. strangers: connections that wait for READY, and jobs for
 * strangers (conn/cm_dgram.c).
 */
bool verve_guard_doubts(const struct verve_guard *guard, const struct verve_hello *hello,
			const struct verve_addr *from, uint64_t now, size_t strangers);

/*
 * Each warns in the log, at most once a minute, because any sender can cause it. now: nanoseconds.
 */
/* The peer's protocol versions do not fit ours. */
void verve_guard_warn_version(struct verve_guard *guard, const struct verve_hello *hello,
			      const struct verve_addr *from, uint64_t now);
/* A peer has no key, or another one. verdict: not PASS. */
void verve_guard_warn_refused(struct verve_guard *guard, enum verve_guard_verdict verdict,
			      const struct verve_addr *from, uint64_t now);
/* A HELLO names the GID of another address than its sender's. */
void verve_guard_warn_elsewhere(struct verve_guard *guard, const struct verve_hello *hello,
				const struct verve_addr *from, uint64_t now);
/* A peer refused us: it has another key. */
void verve_guard_warn_rejected(struct verve_guard *guard, const struct verve_addr *from,
			       uint64_t now);
/* A connection that only the peer had asked for cannot be continued. error: positive FI errno. */
void verve_guard_warn_again(struct verve_guard *guard, const struct verve_addr *peer, int error,
			    uint64_t now);
/*
 * False: enough refusals of this kind were sent in this second. Counts the refusal that the caller
 * sends. now: nanoseconds.
 */
bool verve_guard_may_answer(struct verve_guard *guard, enum verve_guard_answer kind, uint64_t now);

#endif
