/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key exchange. An rkey opens memory by itself. An exported key (the application chose the key, or
 * its region has several segments) does not: the initiator must know the rkeys of its segments. The
 * initiator's first read or write with an exported key asks the target for them over the connection
 * (KEY_QUERY, KEY_REPLY). The link remembers the answer until the connection ends or the target
 * revokes the key (KEY_REVOKE). Atomics that the target's processor executes ask nothing: the
 * target looks the key up itself.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_KEY_H
#define VERVE_RMA_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "xport/link.h"

struct verve_op;
struct verve_wire_packet;
struct verve_xport;

/* Most queries without an answer on a link, in each direction. A peer that asks more is cut off. */
enum { VERVE_KEY_QUERIES = 8 };

enum verve_key_result {
	VERVE_KEY_READY,  /* every key is known, and grants the operation's access and range */
	VERVE_KEY_WAIT,	  /* a query is under way, or has no room yet; or the link broke */
	VERVE_KEY_FAILED, /* the operation fails with FI_EACCES; *reason, a constant, says why */
};

/*
 * Whether the key may be an rkey. The lower half of such a key is the device's rkey; the upper half
 * says where in a page the region begins, so it is small.
 */
static inline bool verve_key_is_rkey(uint64_t key)
{
	return key >> 32 <= UINT16_MAX;
}

/*
 * True if the peer's device checks the key, and nothing of it is to be resolved here. Not on a link
 * to ourselves, whose ends are one queue pair: the device flushes the very request that it refuses,
 * and no completion tells why.
 */
static inline bool verve_key_is_checked_there(const struct verve_link *link, uint64_t key)
{
	return !link->is_self && verve_key_is_rkey(key) &&
	       !verve_remote_key_is_exported(&link->keys, key);
}

/*
 * Looks up all keys of op, and asks the peer for those that are unknown. op: the read, write or
 * atomic by the device at the head of its peer's queue. May break the link.
 */
enum verve_key_result verve_key_resolve(struct verve_xport *xport, struct verve_link *link,
					struct verve_op *op, const char **reason);
/* KEY_REPLY has arrived: an answer to our query, or a part of it. */
void verve_key_learn(struct verve_xport *xport, struct verve_link *link,
		     struct verve_wire_packet *packet);
/* KEY_REVOKE has arrived: the peer has closed the key's region. */
void verve_key_forget(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet);
/* KEY_QUERY has arrived: the peer asks for a key of ours. */
void verve_key_answer(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet);

/*
 * Revokes a key of ours: sends KEY_REVOKE to every peer that may remember the key. The caller has
 * taken the key out of the domain's table. If there is no memory for the packet, the link breaks,
 * which makes the peer forget the key, too.
 */
void verve_key_revoke(struct verve_xport *xport, uint64_t key, uint64_t generation);

#endif
