/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Transport: opening and closing the queues, buffers and tables. */
#include "xport/open.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "mr/cache.h"
#include "mr/monitor.h"
#include "net/cq.h"
#include "net/device.h"
#include "net/srq.h"
#include "xport/errand.h"
#include "xport/peer.h"
#include "xport/protocols.h"
#include "xport/publish.h"
#include "xport/rx_buffers.h"
#include "xport/wire.h"
#include <rdma/fi_errno.h>

/*
 * Requests of all links together, at most: this, or CONN_REQUESTS for each connection of max_conns,
 * whichever is more.
 */
enum { SEND_CQ_DEPTH = 8192, CONN_REQUESTS = 2 };

_Static_assert((int)VERVE_WIRE_ATOMIC_PREFIX <= (int)VERVE_CONFIG_BUFFER_EXTRA,
	       "the configuration fits larger buffers into RLIMIT_MEMLOCK");
_Static_assert((int)VERVE_WIRE_RTS_MAX <= VERVE_CONFIG_EAGER_MIN + (int)VERVE_CONFIG_BUFFER_EXTRA,
	       "the configuration fits larger buffers into RLIMIT_MEMLOCK");

/* Bytes of an object in each pool of operations. */
static const size_t op_sizes[VERVE_OP_SIZES] = {
	VERVE_OP_SIZE_SMALL, VERVE_OP_SIZE_MEDIUM, VERVE_OP_SIZE_MAX};

static uint32_t choose(int wanted, uint32_t other)
{
	return wanted < 0 ? other : (uint32_t)wanted;
}

/* The depth of the send CQ. Lowers attr.max_conns to what a CQ of the device can serve. */
static uint32_t send_depth(struct verve_xport *xport, const struct verve_net_limits *limits)
{
	uint32_t depth = xport->attr.max_conns * CONN_REQUESTS;

	if (depth < SEND_CQ_DEPTH)
		depth = SEND_CQ_DEPTH;
	if (depth > limits->cqe)
		depth = limits->cqe;
	if (xport->attr.max_conns > depth / CONN_REQUESTS)
		xport->attr.max_conns = depth / CONN_REQUESTS;
	return depth;
}

/* The queues do not grow: they have places for as many buffers as there may ever be. */
static void fit_buffers(struct verve_xport_attr *attr, const struct verve_net_limits *limits)
{
	size_t most = limits->srq_wr < limits->cqe ? limits->srq_wr : limits->cqe;

	if (most > VERVE_CONFIG_RX_MAX)
		most = VERVE_CONFIG_RX_MAX;
	if (attr->rx_uncredited > most)
		attr->rx_uncredited = most;
	if (attr->rx_first > attr->rx_uncredited)
		attr->rx_first = attr->rx_uncredited;
	if (attr->rx_limit > most)
		attr->rx_limit = most;
	if (attr->rx_limit < attr->rx_uncredited)
		attr->rx_limit = attr->rx_uncredited;
}

static int open_queues(struct verve_xport *xport)
{
	const struct verve_net_limits *limits = &verve_net_device_port(xport->attr.dev)->limits;
	uint32_t depth = send_depth(xport, limits);
	/* Both queues wake the same sleepers. */
	uint32_t vector = verve_net_vector_next();
	int ret;

	fit_buffers(&xport->attr, limits);
	ret = verve_net_channel_open(xport->attr.dev, &xport->channel);
	if (ret)
		return ret;
	ret = verve_net_cq_open(xport->attr.dev, depth, xport->channel,
				choose(xport->attr.send_vector, vector), &xport->send_cq);
	if (ret)
		goto err_channel;
	xport->wr_limit = depth;
	ret = verve_net_cq_open(xport->attr.dev, xport->attr.rx_limit, xport->channel,
				choose(xport->attr.recv_vector, vector), &xport->recv_cq);
	if (ret)
		goto err_send_cq;
	ret = verve_net_srq_open(xport->attr.dev, xport->attr.rx_limit, &xport->srq);
	if (ret)
		goto err_recv_cq;
	return 0;

err_recv_cq:
	verve_net_cq_close(xport->recv_cq);
err_send_cq:
	verve_net_cq_close(xport->send_cq);
err_channel:
	verve_net_channel_close(xport->channel);
	return ret;
}

static bool grow_later(struct verve_slab_pool *pool, size_t count)
{
	return verve_errand_grow(pool->owner, pool, count);
}

static void close_queues(struct verve_xport *xport)
{
	verve_net_srq_close(xport->srq);
	verve_net_cq_close(xport->recv_cq);
	verve_net_cq_close(xport->send_cq);
	verve_net_channel_close(xport->channel);
}

size_t verve_xport_eager_size(const struct verve_net_device *dev, size_t wanted)
{
	size_t most = verve_net_device_port(dev)->limits.msg_size - VERVE_WIRE_ATOMIC_PREFIX;

	return wanted < most ? wanted : most;
}

/* Also opens the part that a transport has in common with a shared receive context. */
int verve_xport_init_shared(struct verve_xport *xport, const struct verve_xport_attr *attr,
			    const struct verve_protocols *protocols, struct verve_lock *lock)
{
	/* A forgotten line in the table would let a peer's packet call NULL. */
	for (int type = 1; type < VERVE_WIRE_TYPES; type++)
		assert(protocols->handlers[type]);
	memset(xport, 0, sizeof(*xport));
	xport->lock = lock;
	xport->attr = *attr;
	xport->protocols = protocols;
	xport->home = attr->shared ? attr->shared : xport;
	for (int i = 0; i < VERVE_OP_SIZES; i++)
		verve_pool_init(&xport->ops[i], op_sizes[i], SIZE_MAX);
	verve_idtab_init(&xport->op_ids);
	verve_errands_init(&xport->errands);
	verve_idtab_init(&xport->peer_ids);
	verve_idtab_init(&xport->link_ids);
	TAILQ_INIT(&xport->waiting);
	TAILQ_INIT(&xport->wanting);
	TAILQ_INIT(&xport->denied);
	xport->scarce_limit = UINT32_MAX;
	TAILQ_INIT(&xport->links);
	TAILQ_INIT(&xport->broken_links);
	TAILQ_INIT(&xport->owing);
	TAILQ_INIT(&xport->half_open);
	return 0;
}

void verve_xport_fini_shared(struct verve_xport *xport)
{
	verve_peer_free_all(xport);
	verve_pointers_fini(&xport->link_of_conn);
	verve_idtab_fini(&xport->link_ids);
	verve_idtab_fini(&xport->peer_ids);
	verve_idtab_fini(&xport->op_ids);
	for (int i = 0; i < VERVE_OP_SIZES; i++)
		verve_pool_fini(&xport->ops[i]);
}

int verve_xport_init(struct verve_xport *xport, const struct verve_xport_attr *attr,
		     const struct verve_protocols *protocols, struct verve_lock *lock)
{
	size_t slab_size;
	int ret;

	ret = verve_xport_init_shared(xport, attr, protocols, lock);
	if (ret)
		return ret;
	xport->attr.eager_size = verve_xport_eager_size(attr->dev, attr->eager_size);
	slab_size = VERVE_WIRE_ATOMIC_PREFIX + xport->attr.eager_size;
	if (slab_size < VERVE_WIRE_RTS_MAX)
		slab_size = VERVE_WIRE_RTS_MAX;
	ret = open_queues(xport);
	/* Some drivers pin their memory: registrations that nobody uses give way. */
	if (ret == -FI_ENOMEM && verve_mr_monitor_spare(NULL))
		ret = open_queues(xport);
	if (ret)
		goto err_tables;
	verve_slab_pool_init(&xport->rx_slabs, attr->dev, slab_size, VERVE_RX_STEP,
			     xport->attr.rx_limit);
	verve_slab_pool_init(&xport->tx_slabs, attr->dev, slab_size, VERVE_SLAB_BATCH,
			     VERVE_TX_SLABS);
	xport->rx_slabs.later = xport->tx_slabs.later = grow_later;
	xport->rx_slabs.owner = xport->tx_slabs.owner = xport;
	xport->tx_slabs.ahead = true;
	verve_mailbox_init(&xport->events);
	/* Now, because no lock is held yet. */
	if (attr->mr_cache)
		verve_mr_cache_prepare(attr->mr_cache);
	verve_publish_open(xport);
	return 0;

err_tables:
	verve_xport_fini_shared(xport);
	return ret;
}

void verve_xport_fini(struct verve_xport *xport)
{
	assert(TAILQ_EMPTY(&xport->links) && TAILQ_EMPTY(&xport->broken_links));
	close_queues(xport);
	free(xport->lost.buffers);
	free(xport->batch.wc);
	verve_slab_pool_fini(&xport->rx_slabs);
	verve_slab_pool_fini(&xport->tx_slabs);
	verve_xport_fini_shared(xport);
	verve_publish_close(xport);
}
