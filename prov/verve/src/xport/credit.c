/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Credits: when they are returned in a packet of their own. */
#include "xport/credit.h"

#include "xport/link.h"
#include "xport/post.h"
#include "xport/xport.h"

/*
 * In a packet of their own. Without room, the next packet carries the credits, or the next credit
 * that becomes owed does. Not inlined: only one message of many gets here.
 */
static __attribute__((noinline)) void send_credits(struct verve_xport *xport,
						   struct verve_link *link)
{
	struct verve_wire_packet packet = {.type = VERVE_WIRE_CREDIT};

	if (verve_link_has_room(xport, link, true))
		verve_link_send(xport, link, &packet, NULL);
}

void verve_credit_give_back(struct verve_xport *xport, struct verve_link *link)
{
	if (link->broken)
		return;
	link->returned++;
	link->held--;
	if (++link->owed >= xport->attr.window / 2 && verve_link_is_open(link))
		send_credits(xport, link);
}

void verve_credit_receive(struct verve_xport *xport, struct verve_link *link,
			  struct verve_wire_packet *packet)
{
	(void)xport, (void)link, (void)packet;
}
