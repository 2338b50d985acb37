/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#ifndef VERVE_XPORT_LINK_PARTS_H
#define VERVE_XPORT_LINK_PARTS_H

#include <stdint.h>

#include "xport/packet.h"

/*
 * What PARTs of the peer have said of its message id, and no receive has taken yet (msg/parts.h).
 * A sender offers no other message in parts before this one has ended.
 */
struct verve_link_parts {
	uint32_t id;	 /* the peer's; 0: none */
	uint32_t recv;	 /* id of the receive that waits for parts; 0: none yet */
	uint32_t room;	 /* segments that may come */
	uint32_t count;	 /* segments not taken yet */
	uint32_t status; /* positive FI errno of the peer: no segments come any more; or 0 */
	uint64_t left;	 /* bytes of the message whose segments have not come */
	struct verve_wire_segment segment[VERVE_WIRE_SEGMENTS];
};

#endif
