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
 *  64 GID (16)  80 QPN  84 PSN  88 LID  90 MTU, reads  92 window  94 partition key
 *  96 eager size      100 resumes   104 authentication (32)
 *
 * Bytes 0 to 63 and the authentication (conn/auth.h) mean the same in every version, so that an
 * endpoint can tell one of another version why they do not fit. An endpoint ignores feature bits
 * that it does not know, and skips bytes behind the fields that it knows. What an older endpoint
 * would misunderstand, such as a new packet type, needs a feature bit that the peer has announced,
 * or a larger version (NEWS.md says when). Plain functions; any thread.
 */
#ifndef VERVE_CONN_HELLO_H
#define VERVE_CONN_HELLO_H

#include <stddef.h>
#include <stdint.h>

#include "net/qp.h"

enum {
	VERVE_HELLO_SIZE = 136,	     /* bytes of a datagram of this version */
	VERVE_HELLO_SIZE_MAX = 1024, /* bytes of a datagram of any version */
	VERVE_HELLO_VERSION_MIN = 2, /* we speak these versions of handshake and packets */
	VERVE_HELLO_VERSION_MAX = 2,
	VERVE_HELLO_AUTH_OFFSET = 104,
	VERVE_HELLO_AUTH_SIZE = 32,
};

enum verve_hello_kind {
	VERVE_HELLO_HELLO = 1,	   /* the sender's queue pair: a request, or the answer to one */
	VERVE_HELLO_READY = 2,	   /* the sender's queue pair is connected to the recipient's */
	VERVE_HELLO_BYE = 3,	   /* the recipient's connection is over, for the reason given */
	VERVE_HELLO_CHALLENGE = 4, /* the recipient must repeat its HELLO and echo this nonce */
	VERVE_HELLO_KINDS,
};

enum verve_hello_reason {
	VERVE_HELLO_CLOSED = 1,	   /* the sender ended the connection */
	VERVE_HELLO_UNKNOWN = 2,   /* the sender has no such connection with the recipient */
	VERVE_HELLO_VERSION = 3,   /* no version in common */
	VERVE_HELLO_RESOURCE = 4,  /* the sender could not open a queue pair */
	VERVE_HELLO_AUTH = 5,	   /* the two keys differ; this BYE is never signed */
	VERVE_HELLO_SUSPENDED = 6, /* the sender continues the connection with a new queue pair */
	VERVE_HELLO_FAILED = 7,	   /* the sender's device, or a queue of its endpoint, failed */
	VERVE_HELLO_NO_WAY = 8,	   /* the sender cannot connect to this address: its log says why */
};

/* Feature bits. A receiver ignores bits that it does not know. */
enum {
	VERVE_HELLO_AUTHENTICATED = 1 << 0,  /* the datagram is signed: conn/auth.h */
	VERVE_HELLO_RMA_EVENT = 1 << 1,	     /* peers must report their RMA: FI_RMA_EVENT */
	VERVE_HELLO_APP_KEYS = 1 << 2,	     /* none of the sender's keys is an rkey */
	VERVE_HELLO_DEVICE_ATOMICS = 1 << 3, /* the sender's device executes atomics */
	/* an answer: the recipient's first packet over the queue pair takes the place of READY */
	VERVE_HELLO_LISTENS = 1 << 4,
	/* an answer that is sent once for each request: it wants READY, and a packet */
	VERVE_HELLO_ONCE = 1 << 5,
	/* packets to the sender's queue pair need a global route header; hello.c alone uses it */
	VERVE_HELLO_GRH = 1 << 6,
	VERVE_HELLO_BIG_ENDIAN = 1 << 7, /* byte order of the numbers in the sender's memory */
	VERVE_HELLO_BATCHES = 1 << 8,	 /* the sender takes several messages in a packet */
	VERVE_HELLO_IMMEDIATES = 1 << 9, /* the sender takes CQ data as the immediate of a write */
	VERVE_HELLO_BOUND_KEYS = 1 << 10, /* the sender takes keys that end with the queue pair */
	VERVE_HELLO_OWN_ORDER =
		__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? VERVE_HELLO_BIG_ENDIAN : 0,
};

struct verve_hello {
	uint8_t kind, reason;
	uint8_t version_min, version_max;
	uint32_t features;
	uint64_t sender_incarnation;	/* the sending endpoint's random number; never 0 */
	uint64_t recipient_incarnation; /* 0: unknown */
	uint32_t sender_id;    /* the sender's connection id (base/idtab.h) */
	uint32_t recipient_id; /* the recipient's connection id; 0: unknown */
	uint64_t serial; /* number of the sender's connection; grows during one incarnation */
	uint64_t nonce;	 /* random number of the sender's connection, or of a CHALLENGE */
	uint64_t echo;	 /* the recipient's nonce; 0: unknown */
	struct verve_net_qp_addr qp; /* the sender's queue pair; HELLO, READY */
	/* credits that the recipient has at the sender at first (xport/credit.h); 16 bits */
	uint32_t window;
	uint32_t eager_size; /* bytes of payload that the sender's receive buffers take */
	/*
	 * the sender's id of the suspended connection to continue; 0: none. A request to continue
	 * one echoes the recipient's nonce of it, until the recipient wants another number.
	 */
	uint32_t resumes;
	uint8_t auth[VERVE_HELLO_AUTH_SIZE]; /* the code of conn/auth.h; zeros: not signed */
};

/* Writes VERVE_HELLO_SIZE bytes to buf. */
void verve_hello_encode(const struct verve_hello *hello, void *buf);

/*
 * Reads len bytes of any content. -FI_EINVAL: not a datagram of this protocol, or its fields make
 * no sense. -FI_ENOPROTOOPT: no version in common; the fields of bytes 0 to 63 are valid. A BYE is
 * read whatever its version, because a BYE tells a peer that no version is in common.
 */
int verve_hello_decode(const void *buf, size_t len, struct verve_hello *hello);

#endif
