/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening a transport: its table of handlers is complete. */
#include "xport/open.h"

#include <string.h>

#include "../proto/fixture.h"
#include "../support/child.h"
#include "xport/protocols.h"
#include "xport/wire.h"

static struct node a;

Test(open, has_a_handler_for_each_packet_type)
{
	node_open(&a, 0, NULL);
	cr_expect_null(a.xport->protocols->handlers[0]);
	for (int type = 1; type < VERVE_WIRE_TYPES; type++)
		cr_expect(a.xport->protocols->handlers[type], "type %d", type);
	node_close(&a);
}

#ifndef NDEBUG
/* Opens a transport like that of a, but without the handler of this packet type. */
static void open_without(int type)
{
	verve_packet_handler *handlers[VERVE_WIRE_TYPES];
	struct verve_protocols protocols = *a.xport->protocols;
	struct verve_xport_attr attr = a.xport->attr;
	static struct verve_xport xport;

	memcpy(handlers, protocols.handlers, sizeof(handlers));
	handlers[type] = NULL;
	protocols.handlers = handlers;
	verve_xport_init(&xport, &attr, &protocols, &a.lock);
}

/* A packet of that type would make the peer call NULL. */
Test(open, is_not_opened_without_a_handler_for_each_packet_type)
{
	node_open(&a, 0, NULL);
	for (int type = 1; type < VERVE_WIRE_TYPES; type++) {
		pid_t child = child_fork_to_abort();

		if (!child) {
			open_without(type);
			_exit(0);
		}
		cr_expect(child_has_aborted(child), "type %d", type);
	}
	node_close(&a);
}
#endif
