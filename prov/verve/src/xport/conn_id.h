/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection ids: find the link of a packet's destination, or of an event of the manager. The
 * engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_CONN_ID_H
#define VERVE_XPORT_CONN_ID_H

#include <stdint.h>

#include "base/idtab.h"
#include "xport/xport.h"

/*
 * Puts the link at the id's place (verve_idtab_index). A link that was there is not found any more.
 * -FI_ENOMEM.
 */
static inline int verve_conn_id_map(struct verve_xport *xport, uint32_t conn_id,
				    struct verve_link *link)
{
	return verve_pointers_set(&xport->link_of_conn, verve_idtab_index(conn_id), link);
}

/*
 * The link at the id's place; NULL: none. Its conn_id may be another: an older id of the same
 * place, or the id belongs to the connection that continues the link. verve_link_of checks.
 */
static inline struct verve_link *verve_conn_id_find(struct verve_xport *xport, uint32_t conn_id)
{
	return verve_pointers_get(&xport->link_of_conn, verve_idtab_index(conn_id));
}

/* Removes the link from the id's place. Harmless if another link is there already. */
static inline void verve_conn_id_unmap(struct verve_xport *xport, uint32_t conn_id,
				       const struct verve_link *link)
{
	if (verve_conn_id_find(xport, conn_id) == link)
		verve_pointers_set(&xport->link_of_conn, verve_idtab_index(conn_id), NULL);
}

#endif
