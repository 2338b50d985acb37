/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Protocols: what the transport knows of them. proto/proto.c has the only one there is, but for
 * tests. The engine's lock is held in every call.
 */
#ifndef VERVE_XPORT_PROTOCOLS_H
#define VERVE_XPORT_PROTOCOLS_H

struct verve_link;
struct verve_wire_packet;
struct verve_xport;

/*
 * Handles a packet that has arrived over the link. packet is valid until the handler returns. The
 * handler may break the link; the link's memory stays until a later step of the turn.
 */
typedef void verve_packet_handler(struct verve_xport *xport, struct verve_link *link,
				  struct verve_wire_packet *packet);

/* The transport's calls to the protocols. A constant of the composition. */
struct verve_protocols {
	verve_packet_handler *const *handlers; /* by enum verve_wire_type; only entry 0 is NULL */
	/* The link breaks: forgets the messages that can only be fetched over this link. */
	void (*forget)(struct verve_xport *xport, struct verve_link *link);
	/* Calls verve_peer_need for each peer that a receive or a message names. */
	void (*need_peers)(struct verve_xport *xport);
};

#endif
