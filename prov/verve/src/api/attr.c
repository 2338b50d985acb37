/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes: the part of an fi_info that is the same on every port. */
#include "api/attr.h"

#include "comp/comp.h"
#include "conn/hello.h"
#include "mr/segments.h"
#include "net/qp.h"
#include "xport/request.h"

/* fi_allocinfo calls fi_dupinfo. info.c says why the oldest version of that symbol is used. */
__asm__(".symver fi_dupinfo,fi_dupinfo@FABRIC_1.3");

/* Bit 31, FI_PROV_SPECIFIC, marks a protocol of a provider's own. */
#define PROTOCOL 0x80766572u /* "ver" */

enum {
	CQ_DATA_SIZE = 8,
	MR_KEY_SIZE = 8,
	/* endpoints, queues, counters, regions: memory alone limits their number */
	OBJECTS = 1 << 16,
	DSCP_MASK = 0x3f,
	SOCKADDR_IP = 17,   /* FI_SOCKADDR_IP of libfabric 2.3 and later */
};

static const uint64_t any_tag = 0xaaaaaaaaaaaaaaaa; /* FI_TAG_GENERIC, all 64 bits */

/*
 * All work for one peer starts in order on one queue pair, whose responder executes it in order.
 * So: sends are matched in order (SAS); a send comes after the writes before it (SAW); a write
 * comes after the writes before it (RMA_WAW); a read sees the writes before it (RMA_RAW).
 *
 * Not promised: the order of an operation behind a send (RAS, WAS), because the receiver's
 * processor places messages when it polls, and pulls long messages later; the order of an operation
 * behind a read (WAR, SAR), because a read response that is repeated may show the data of a later
 * write (InfiniBand spec. vol. 1, 10.8.3.3).
 *
 * The target's processor executes atomics in the order in which they arrive (all of ATOMIC_*),
 * before it looks at a later message (SAW). Their order with RMA is not promised, because the
 * target's device executes RMA at the same time.
 */
static const uint64_t msg_order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_RMA_WAW |
				  FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
				  FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

bool verve_attr_is_ip_format(uint32_t format)
{
	switch (format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
	case SOCKADDR_IP:
		return true;
	default:
		return false;
	}
}

static void set_tx_rx(struct fi_tx_attr *tx, struct fi_rx_attr *rx)
{
	tx->caps = VERVE_CAPS;
	tx->op_flags = VERVE_TX_OP_FLAGS;
	tx->msg_order = msg_order;
	tx->inject_size = verve_attr_inject_size();
	tx->size = verve_config.tx_size;
	tx->iov_limit = VERVE_IOV_LIMIT;
	tx->rma_iov_limit = VERVE_IOV_LIMIT;

	rx->caps = VERVE_CAPS;
	rx->op_flags = VERVE_RX_OP_FLAGS;
	rx->msg_order = msg_order;
	rx->size = VERVE_RX_SIZE;
	rx->iov_limit = VERVE_IOV_LIMIT;
}

static void set_ep(struct fi_ep_attr *ep)
{
	ep->type = FI_EP_RDM;
	ep->protocol = PROTOCOL;
	ep->protocol_version = VERVE_HELLO_VERSION_MAX;
	ep->max_msg_size = VERVE_MSG_SIZE_MAX;
	ep->max_order_raw_size = VERVE_MSG_SIZE_MAX;
	ep->max_order_war_size = verve_config.eager_size; /* of atomics; RMA has no such order */
	ep->max_order_waw_size = VERVE_MSG_SIZE_MAX;
	ep->mem_tag_format = any_tag;
	ep->tx_ctx_cnt = 1;
	ep->rx_ctx_cnt = 1;
}

static void set_domain(struct fi_domain_attr *domain)
{
	domain->threading = FI_THREAD_SAFE;
	/*
	 * The service thread answers handshakes. Data moves when the application calls libfabric,
	 * unless the application asks for a progress thread.
	 */
	domain->control_progress = FI_PROGRESS_AUTO;
	domain->data_progress = FI_PROGRESS_MANUAL;
	domain->resource_mgmt = FI_RM_ENABLED;
	domain->av_type = FI_AV_UNSPEC; /* map or table */
	domain->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	domain->mr_key_size = MR_KEY_SIZE;
	domain->cq_data_size = CQ_DATA_SIZE;
	domain->cq_cnt = OBJECTS;
	domain->ep_cnt = OBJECTS;
	domain->tx_ctx_cnt = OBJECTS;
	domain->rx_ctx_cnt = OBJECTS;
	domain->max_ep_tx_ctx = 1;
	domain->max_ep_rx_ctx = 1;
	domain->max_ep_stx_ctx = OBJECTS;
	domain->max_ep_srx_ctx = OBJECTS;
	domain->cntr_cnt = OBJECTS;
	domain->mr_iov_limit = VERVE_MR_SEGMENTS_MAX;
	domain->caps = VERVE_DOMAIN_CAPS;
	domain->max_err_data = VERVE_COMP_REASON_MAX;
	domain->mr_cnt = OBJECTS;
}

bool verve_attr_is_tclass(uint32_t tclass)
{
	return tclass == FI_TC_UNSPEC || (tclass & ~DSCP_MASK) == FI_TC_DSCP ||
	       (tclass >= FI_TC_BEST_EFFORT && tclass <= FI_TC_NETWORK_CTRL);
}

/* RFC 4594, figure 3, by the names of its service classes; RFC 8622 for scavengers. */
uint16_t verve_attr_dscp(uint32_t tclass)
{
	static const uint16_t of_label[] = {
		[FI_TC_LOW_LATENCY - FI_TC_LABEL] = VERVE_NET_DSCP | 18,      /* AF21 */
		[FI_TC_DEDICATED_ACCESS - FI_TC_LABEL] = VERVE_NET_DSCP | 46, /* EF */
		[FI_TC_BULK_DATA - FI_TC_LABEL] = VERVE_NET_DSCP | 10,	      /* AF11 */
		[FI_TC_SCAVENGER - FI_TC_LABEL] = VERVE_NET_DSCP | 1,	      /* LE */
		[FI_TC_NETWORK_CTRL - FI_TC_LABEL] = VERVE_NET_DSCP | 48,     /* CS6 */
	};

	if (!verve_attr_is_tclass(tclass))
		return 0;
	if (tclass & FI_TC_LABEL)
		return of_label[tclass - FI_TC_LABEL];
	return tclass & FI_TC_DSCP ? VERVE_NET_DSCP | (tclass & DSCP_MASK) : 0;
}

/* Sets field by field, because libfabric's structures grow. */
struct fi_info *verve_attr_alloc_info(void)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = VERVE_CAPS;
	set_tx_rx(info->tx_attr, info->rx_attr);
	set_ep(info->ep_attr);
	set_domain(info->domain_attr);
	info->fabric_attr->prov_version = VERVE_PROV_VERSION;
	return info;
}
