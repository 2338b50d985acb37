/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Publishing: writes the present values of a transport (states, credits, queues, registrations) to
 * its entries in the page of the process, every 100 ms. See xport/stat.h. The engine's lock is
 * held, except while the engine opens.
 */
#ifndef VERVE_XPORT_PUBLISH_H
#define VERVE_XPORT_PUBLISH_H

#include <stdint.h>

struct verve_mr_cache;
struct verve_page_entry;
struct verve_xport;

/*
 * Opens and closes xport->stat. Never fails: without a page, or a place in it, peers count in
 * xport->stat.spare. When it opens, attr of the transport is set, and there is no peer; when it
 * closes, there is none any more.
 */
void verve_publish_open(struct verve_xport *xport);
void verve_publish_close(struct verve_xport *xport);

/* Writes all values of the endpoint and of its domain, and those of 64 peers, who take turns. */
void verve_publish(struct verve_xport *xport);
/* Writes the values of the endpoint to an entry, which need not be in the page. */
void verve_publish_endpoint(struct verve_xport *xport, struct verve_page_entry *entry);
/*
 * Writes those of a domain. Needs no lock: others may write the same entry at the same time. Any
 * thread.
 */
void verve_publish_domain(const struct verve_mr_cache *cache, struct verve_page_entry *entry);
/* Does what verve_publish does, if the last time is 100 ms ago. now: verve_net_now(). */
void verve_publish_step(struct verve_xport *xport, uint64_t now);

#endif
