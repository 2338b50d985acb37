/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hello: the handshake's datagrams. One layout for all kinds, little-endian, one encoder and one
 * bounds-checked decoder; nothing else reads or writes a datagram.
 *
 *   0 magic            4 length  6 kind  7 reason
 *   8 version min, max, 2 zero   12 features
 *  16 sender's incarnation      24 recipient's incarnation, 0: unknown
 *  32 sender's connection       36 recipient's connection, 0: unknown
 *  40 serial                    48 nonce                  56 echo
 *  64 GID (16)  80 QPN  84 PSN  88 LID  90 MTU, reads  92 window
 *  96 eager size      100 resumes   104 authentication (32)
 *
 * Bytes 0 to 63 and the authentication (conn/auth.h) mean the same in every version, so that one
 * version can tell another why they do not fit. A later minor version appends; who does not know the
 * appended fields skips them by the length.
 */
#ifndef VERVE_CONN_HELLO_H
#define VERVE_CONN_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "net/qp.h"

enum {
	VERVE_HELLO_SIZE = 136,	     /* bytes of this version */
	VERVE_HELLO_SIZE_MAX = 1024, /* of any version: what a receiver makes room for */
	VERVE_HELLO_VERSION_MIN = 2, /* the versions of handshake and packets that we speak */
	VERVE_HELLO_VERSION_MAX = 2,
	VERVE_HELLO_AUTH_OFFSET = 104,
	VERVE_HELLO_AUTH_SIZE = 32,
};

enum verve_hello_kind {
	VERVE_HELLO_HELLO = 1,	   /* here is my queue pair; repeated until answered */
	VERVE_HELLO_READY = 2,	   /* my queue pair is connected to yours */
	VERVE_HELLO_BYE = 3,	   /* the recipient's connection is over, for the reason given */
	VERVE_HELLO_CHALLENGE = 4, /* echo this nonce to replace the connection that I have */
	VERVE_HELLO_KINDS,
};

enum verve_hello_reason {
	VERVE_HELLO_CLOSED = 1,	  /* the sender ended it */
	VERVE_HELLO_UNKNOWN = 2,  /* the sender does not have it, or with someone else */
	VERVE_HELLO_VERSION = 3,  /* no version in common */
	VERVE_HELLO_RESOURCE = 4, /* the sender has no queue pair for it */
	VERVE_HELLO_AUTH = 5,	  /* the recipient's key is not the sender's; never authenticated itself */
	VERVE_HELLO_SUSPENDED = 6, /* the sender's queue pair is over, and it wants another for the same */
};

/* Feature bits. Unknown ones mean nothing. */
enum {
	VERVE_HELLO_AUTHENTICATED = 1 << 0, /* the datagram is: the sender has a key */
	VERVE_HELLO_RMA_EVENT = 1 << 1,	    /* the sender wants to hear of what RMA does to its memory */
	VERVE_HELLO_APP_KEYS = 1 << 2,	    /* none of the sender's keys is an rkey */
	VERVE_HELLO_DEVICE_ATOMICS = 1 << 3, /* the sender's device executes atomics, not its processor */
	VERVE_HELLO_LISTENS = 1 << 4, /* an answer whose READY may be any packet over the queue pair */
	VERVE_HELLO_ONCE = 1 << 5, /* an answer that comes once for each request: READY is to come, and a packet */
};

struct verve_hello {
	uint8_t kind, reason;
	uint8_t version_min, version_max;
	uint32_t features;
	uint64_t sender_incarnation; /* random, of the endpoint; never 0 */
	uint64_t recipient_incarnation;
	uint32_t sender_id; /* connection ids (base/idtab.h) */
	uint32_t recipient_id;
	uint64_t serial; /* of the sender's connection: later ones of one incarnation are larger */
	uint64_t nonce;	 /* random, of the sender's connection */
	uint64_t echo;	 /* the recipient's nonce; 0: unknown */
	struct verve_net_qp_addr qp;
	uint32_t window;     /* eager messages the recipient may have unconsumed at the sender */
	uint32_t eager_size; /* bytes of payload that the sender's receive buffers take */
	uint32_t resumes;    /* the sender's suspended connection, which this one continues; 0: none */
	uint8_t auth[VERVE_HELLO_AUTH_SIZE];
};

/* buf: VERVE_HELLO_SIZE bytes. */
void verve_hello_encode(const struct verve_hello *hello, void *buf);

/*
 * Reads any bytes. -FI_EINVAL: not a datagram of ours, or one that makes no sense.
 * -FI_ENOPROTOOPT: no version in common; what bytes 8 to 63 carry is valid.
 * BYE has no version: it is what tells a peer that there is none in common.
 */
int verve_hello_decode(const void *buf, size_t len, struct verve_hello *hello);

#endif
