/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Key exchange. An rkey opens memory by itself; an exported key (one that the application chose, or
 * of several segments) means what its owner says it means. Who reads or writes with one for the
 * first time asks the owner over the connection, and remembers the answer for as long as the
 * connection lasts, or until the owner revokes it. Atomics that the owner's processor executes need no
 * answer: it looks the key up itself.
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_RMA_KEY_H
#define VERVE_RMA_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct verve_link;
struct verve_op;
struct verve_wire_packet;
struct verve_xport;

enum { VERVE_KEY_QUERIES = 8 }; /* unanswered; the link of a peer that asks more breaks */

enum verve_key_result {
	VERVE_KEY_READY,
	VERVE_KEY_WAIT,	  /* for an answer, or for room to ask; or the link broke */
	VERVE_KEY_FAILED, /* FI_EACCES: *reason, a constant string, says why */
};

/*
 * Whether all keys of op are known, and open what op wants; asks the peer for unknown keys. op: the
 * read, write or atomic by the device at the head of its peer's queue. May break the link.
 */
enum verve_key_result verve_key_resolve(struct verve_xport *xport, struct verve_link *link,
					struct verve_op *op, const char **reason);
/* KEY_REPLY, KEY_REVOKE and KEY_QUERY have arrived. */
void verve_key_learn(struct verve_xport *xport, struct verve_link *link,
		     struct verve_wire_packet *packet);
void verve_key_forget(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet);
void verve_key_answer(struct verve_xport *xport, struct verve_link *link,
		      struct verve_wire_packet *packet);

/*
 * The key is out of the domain's table: tells every peer that may know it. A link for which there
 * is no memory breaks.
 */
void verve_key_revoke(struct verve_xport *xport, uint64_t key, uint64_t generation);

#endif
