/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credits: when they are returned in a packet of their own. */
#include "xport/credit.h"

#include "xport/lifetime.h"
#include "xport/link.h"
#include "xport/post.h"
#include "xport/xport.h"

/*
 * In a packet of their own. Without room, the next packet carries the credits, or the next consumed
 * message does. Not inlined: only one message of many gets here.
 */
static __attribute__((noinline)) void send_credits(struct verve_xport *xport,
						   struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT};

	if (verve_link_has_room(xport, link, true))
		verve_link_send(xport, link, &packet, NULL);
}

void verve_credit_give_back(struct verve_xport *xport, uint32_t link_id)
{
	struct verve_link *link = verve_link_live(xport, link_id);

	if (!link)
		return;
	link->held--;
	if (++link->owed >= xport->attr.window / 2 && verve_link_is_open(link))
		send_credits(xport, link);
}

void verve_credit_return_small(struct verve_xport *xport, uint32_t link_id, uint32_t waited)
{
	struct verve_link *link = verve_link_live(xport, link_id);
	uint64_t due;

	if (!link)
		return;
	link->small_kept -= waited;
	due = (link->small_arrived - link->small_kept) / VERVE_WIRE_SMALL_GROUP;
	/* Messages that waited may have held back several groups. */
	while (link->small_returned < due) {
		link->small_returned++;
		verve_credit_give_back(xport, link_id);
	}
}

void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	(void)xport, (void)link, (void)packet;
}
