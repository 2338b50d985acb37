/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Publishing: where the present values come from, and which peers are written when. */
#include "xport/publish.h"

#include <stdio.h>

#include "conn/cm.h"
#include "mr/cache.h"
#include "net/device.h"
#include "net/sys.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/xport.h"

enum { PEERS = 64 }; /* peers that are written at a time */

static const uint64_t interval = 100000000;

void verve_publish_open(struct verve_xport *xport)
{
	const struct verve_net_port *port = verve_net_device_port(xport->attr.dev);
	struct verve_stat *stat = &xport->stat;
	char text[VERVE_PAGE_TEXT];

	stat->open = verve_page_open();
	if (!stat->open)
		return;
	/* Endpoints of a domain share its cache, which stands for the domain. */
	stat->domain = verve_page_get(VERVE_STAT_KIND_DOMAIN, 0, port->device,
				      xport->attr.mr_cache);
	stat->endpoint = verve_page_get(VERVE_STAT_KIND_ENDPOINT,
					stat->domain ? stat->domain->id : 0, "", NULL);
	snprintf(text, sizeof(text), "%s:%u", port->device, port->port_num);
	if (stat->endpoint)
		verve_page_set_text(stat->endpoint, text);
}

void verve_publish_close(struct verve_xport *xport)
{
	if (!xport->stat.open)
		return;
	verve_page_put(xport->stat.endpoint);
	verve_page_put(xport->stat.domain);
	verve_page_close();
	xport->stat.open = false;
}

static enum verve_stat_state state_of(const struct verve_peer *peer)
{
	const struct verve_link *link = peer->link;

	if (!link)
		return peer->connecting ? VERVE_STAT_STATE_CONNECTING :
		       peer->is_wanting ? VERVE_STAT_STATE_WANTING :
					  VERVE_STAT_STATE_IDLE;
	if (link->replay)
		return VERVE_STAT_STATE_SUSPENDED;
	if (link->leaving)
		return VERVE_STAT_STATE_LEAVING;
	if (link->quiesce.state != VERVE_QUIESCE_OPEN)
		return VERVE_STAT_STATE_QUIESCING;
	return link->may_send ? VERVE_STAT_STATE_UP : VERVE_STAT_STATE_HALF_OPEN;
}

static size_t count_ops(const struct verve_op_queue *queue)
{
	const struct verve_op *op;
	size_t count = 0;

	TAILQ_FOREACH(op, queue, link)
		if (++count == VERVE_STAT_OPS_MAX)
			break;
	return count;
}

static void write_peer(const struct verve_peer *peer)
{
	const struct verve_link *link = peer->link;
	struct verve_page_entry *entry = peer->stat;

	verve_page_set(entry, VERVE_STAT_PEER_STATE, state_of(peer));
	verve_page_set(entry, VERVE_STAT_PEER_CREDITS, link ? link->credits : 0);
	verve_page_set(entry, VERVE_STAT_PEER_OUTSTANDING,
		       link ? link->produced - link->retired : 0);
	verve_page_set(entry, VERVE_STAT_PEER_PENDING,
		       count_ops(&peer->pending) + count_ops(&peer->reads) +
			       count_ops(&peer->aside) +
			       count_ops(&peer->control));
	verve_page_set(entry, VERVE_STAT_PEER_ACTIVE, count_ops(&peer->active));
	if (!link)
		return;
	verve_page_set(entry, VERVE_STAT_PEER_CONN_ID, link->conn_id);
	verve_page_set(entry, VERVE_STAT_PEER_QP_NUM, link->qp_num);
}

void verve_publish_endpoint(struct verve_xport *xport, struct verve_page_entry *entry)
{
	char name[VERVE_ADDR_STRLEN];

	if (!entry->name[0] && xport->cm)
		verve_page_set_name(entry, verve_addr_str(verve_cm_addr(xport->cm), name));
	verve_page_set(entry, VERVE_STAT_EP_PEERS, HASH_COUNT(xport->peers));
	verve_page_set(entry, VERVE_STAT_EP_LINKS, xport->link_count);
	verve_page_set(entry, VERVE_STAT_EP_TX_USED, xport->tx_used);
	verve_page_set(entry, VERVE_STAT_EP_TX_SIZE, xport->attr.tx_size);
	verve_page_set(entry, VERVE_STAT_EP_WR_USED, xport->wr_used);
	verve_page_set(entry, VERVE_STAT_EP_WR_LIMIT, xport->wr_limit);
	verve_page_set(entry, VERVE_STAT_EP_SLABS_USED, xport->tx_slabs.used);
	verve_page_set(entry, VERVE_STAT_EP_SLABS_LIMIT, xport->tx_slabs.limit);
	verve_page_set(entry, VERVE_STAT_EP_SLAB_FAILURES, xport->tx_slabs.failures);
	verve_page_set(entry, VERVE_STAT_EP_RX_BUFFERS, xport->rx_count);
	verve_page_set(entry, VERVE_STAT_EP_RX_FREE, xport->rx_free_count);
	verve_page_set(entry, VERVE_STAT_EP_RX_REFUSED, xport->rx_refused);
	verve_page_set(entry, VERVE_STAT_EP_STALE, xport->count.stale);
	verve_page_set(entry, VERVE_STAT_EP_MALFORMED, xport->count.malformed);
}

void verve_publish_domain(const struct verve_mr_cache *cache, struct verve_page_entry *entry)
{
	struct verve_mr_cache_stats stats;

	verve_mr_cache_stats_get(cache, &stats);
	verve_page_set(entry, VERVE_STAT_DOMAIN_REGIONS, stats.regions);
	verve_page_set(entry, VERVE_STAT_DOMAIN_REGION_BYTES, stats.bytes);
	verve_page_set(entry, VERVE_STAT_DOMAIN_HITS, stats.hits);
	verve_page_set(entry, VERVE_STAT_DOMAIN_MISSES, stats.misses);
	verve_page_set(entry, VERVE_STAT_DOMAIN_FAILURES, stats.failures);
	verve_page_set(entry, VERVE_STAT_DOMAIN_UNKEPT, stats.unkept);
	verve_page_set(entry, VERVE_STAT_DOMAIN_EVICTIONS, stats.evictions);
	verve_page_set(entry, VERVE_STAT_DOMAIN_INVALIDATIONS, stats.invalidations);
}

void verve_publish(struct verve_xport *xport)
{
	struct verve_stat *stat = &xport->stat;
	struct verve_peer *peer = stat->next ? stat->next : xport->peers;

	if (!stat->open)
		return;
	if (stat->endpoint)
		verve_publish_endpoint(xport, stat->endpoint);
	if (stat->domain && xport->attr.mr_cache)
		verve_publish_domain(xport->attr.mr_cache, stat->domain);
	for (int i = 0; peer && i < PEERS; peer = peer->hh.next, i++)
		write_peer(peer);
	stat->next = peer;
}

void verve_publish_step(struct verve_xport *xport, uint64_t now)
{
	if (now - xport->stat.when < interval)
		return;
	xport->stat.when = now;
	verve_publish(xport);
}
