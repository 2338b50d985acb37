/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connection ids: which link a packet's destination, or the manager's event, names. The engine's lock protects it. */
#ifndef VERVE_XPORT_CONN_ID_H
#define VERVE_XPORT_CONN_ID_H

#include <stdint.h>

#include "base/idtab.h"
#include "xport/xport.h"

/* The id names this link from here on; the link that had its place is named no more. -FI_ENOMEM. */
static inline int verve_conn_id_map(struct verve_xport *xport, uint32_t conn_id, struct verve_link *link)
{
	return verve_pointers_set(&xport->link_of_conn, verve_idtab_index(conn_id), link);
}

/* A link at the place of the id, whose own id may be another: an older one, or the connection's that continues it. */
static inline struct verve_link *verve_conn_id_find(struct verve_xport *xport, uint32_t conn_id)
{
	return verve_pointers_get(&xport->link_of_conn, verve_idtab_index(conn_id));
}

/* Not this link's any more. Harmless if it is another's already. */
static inline void verve_conn_id_unmap(struct verve_xport *xport, uint32_t conn_id,
				       const struct verve_link *link)
{
	if (verve_conn_id_find(xport, conn_id) == link)
		verve_pointers_set(&xport->link_of_conn, verve_idtab_index(conn_id), NULL);
}

#endif
