/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watched links: the links that need looking after, in two lists, so that an engine that arms its
 * wait descriptor need not examine all of its links.
 *
 *   xport->owing      the peer owes an answer, or may soon owe one (verve_watched_may_owe). A link
 *                     enters when an operation is queued to its peer, when it is suspended or
 *                     quiesces, and when its requests stand still (keepalive.c). A link leaves
 *                     when a later look finds that nothing is owed: so operations that end cost
 *                     nothing here.
 *   xport->half_open  exactly the half-open links (verve_link_is_half_open)
 *
 * The engine's lock protects everything here.
 */
#ifndef VERVE_XPORT_WATCHED_H
#define VERVE_XPORT_WATCHED_H

#include <stdbool.h>

#include "xport/link.h"

struct verve_xport;

/* Puts the link, which is not broken, at the end of xport->owing, unless it is in there. */
void verve_watched_insert(struct verve_xport *xport, struct verve_link *link);
/* As verve_watched_insert, for a link that is in use. */
static inline void verve_watched_owe(struct verve_xport *xport, struct verve_link *link)
{
	if (!link->is_owing)
		verve_watched_insert(xport, link);
}

/* True if the peer owes an answer, or work waits that will make it owe one. */
bool verve_watched_may_owe(const struct verve_link *link);
/*
 * True if a peer of xport->owing may owe an answer. Examines 16 links at most, and takes those
 * whose peers owe nothing out of the list; true also if links are left that were not examined.
 */
bool verve_watched_is_any_owing(struct verve_xport *xport);

/* To be called when link->listen or link->may_send has changed: enters or leaves half_open. */
void verve_watched_update(struct verve_xport *xport, struct verve_link *link);

/* Takes the link out of xport->owing. Harmless if it is not in there. */
void verve_watched_forgive(struct verve_xport *xport, struct verve_link *link);
/* Takes the link out of both lists: it breaks, or is closed. */
void verve_watched_remove(struct verve_xport *xport, struct verve_link *link);

#endif
