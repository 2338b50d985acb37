/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Watched links: the two lists. */
#include "xport/watched.h"

#include "xport/owed.h"
#include "xport/peer.h"
#include "xport/xport.h"

enum { LOOKS = 16 }; /* links examined before the wait descriptor is armed, at most */

void verve_watched_insert(struct verve_xport *xport, struct verve_link *link)
{
	if (link->is_owing)
		return;
	link->is_owing = true;
	TAILQ_INSERT_TAIL(&xport->owing, link, owing);
}

bool verve_watched_may_owe(const struct verve_link *link)
{
	return !TAILQ_EMPTY(&link->peer->active) || verve_peer_has_work(link->peer) ||
	       verve_link_awaits(link) || verve_link_has_asked(link);
}

bool verve_watched_is_any_owing(struct verve_xport *xport)
{
	struct verve_link *link;

	for (int i = 0; i < LOOKS; i++) {
		link = TAILQ_FIRST(&xport->owing);
		if (!link)
			return false;
		xport->count.looks++;
		if (verve_watched_may_owe(link))
			return true;
		verve_watched_forgive(xport, link);
	}
	return !TAILQ_EMPTY(&xport->owing);
}

void verve_watched_update(struct verve_xport *xport, struct verve_link *link)
{
	bool is_half_open = !link->broken && verve_link_is_half_open(link);

	if (is_half_open == link->is_half_open)
		return;
	link->is_half_open = is_half_open;
	link->overdue = false;
	if (is_half_open)
		TAILQ_INSERT_TAIL(&xport->half_open, link, half_open);
	else
		TAILQ_REMOVE(&xport->half_open, link, half_open);
}

void verve_watched_forgive(struct verve_xport *xport, struct verve_link *link)
{
	if (!link->is_owing)
		return;
	link->is_owing = false;
	TAILQ_REMOVE(&xport->owing, link, owing);
}

void verve_watched_remove(struct verve_xport *xport, struct verve_link *link)
{
	verve_watched_forgive(xport, link);
	if (link->is_half_open)
		TAILQ_REMOVE(&xport->half_open, link, half_open);
	link->is_half_open = false;
}
