/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints: each check is about one thing that an application may ask for and verve may not have. The
 * first check that fails is logged. The rules are those of fi_getinfo(3), fi_domain(3),
 * fi_endpoint(3) and fi_mr(3).
 */
#include "api/hints.h"

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "api/attr.h"
#include "api/auth.h"
#include "base/log.h"

/* Of libfabric 1.21 and later. */
enum { PROGRESS_CONTROL_UNIFIED = 3 }; /* FI_PROGRESS_CONTROL_UNIFIED */

static const uint64_t msg_caps = FI_MSG | FI_TAGGED;
static const uint64_t msg_directions = FI_SEND | FI_RECV;
static const uint64_t rma_caps = FI_RMA | FI_ATOMIC;
static const uint64_t rma_directions = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

/* Order bits of version 1.8 and later. The bits of earlier versions cover both RMA and atomics. */
static const uint64_t order_1_8 = FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
				  FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
				  FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

/*
 * Capabilities that cost something: FI_SOURCE looks up the sender of each message; FI_RMA_EVENT
 * sends a packet and an answer for each RMA operation. Secondary capabilities that cost something
 * are reported only if the application asks for them (fi_getinfo(3)). So they are not reported
 * without hints either, because applications then use everything that they are offered.
 */
static const uint64_t costly = FI_SOURCE | FI_RMA_EVENT;

/*
 * Capabilities that are never added to those that hints name: they change which messages a receive
 * matches, or make completions cost more.
 */
static const uint64_t modifiers = FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT;

/*
 * The end of struct fi_domain_attr, as libfabric 2.0 has it. The header in use may be older, and so
 * may the application's structure: each member exists from its version on.
 */
struct domain_attr_end {
	size_t mr_cnt;		/* 1.5 */
	uint32_t tclass;	/* 1.9 */
	size_t max_ep_auth_key; /* 1.20 */
	uint32_t max_group_id;	/* 2.0 */
};

_Static_assert(offsetof(struct domain_attr_end, tclass) ==
		       offsetof(struct fi_domain_attr, tclass) -
			       offsetof(struct fi_domain_attr, mr_cnt),
	       "end of struct fi_domain_attr");

static int hints_refuse(const char *what)
{
	VERVE_INFO(FABRIC, "nothing for these hints: %s\n", what);
	return -FI_ENODATA;
}

/* 0 if every bit of asked is in have. */
static int check_bits(const char *what, uint64_t asked, uint64_t have, enum fi_type type)
{
	uint64_t missing = asked & ~have;
	char names[128] = "";

	if (!missing)
		return 0;
	fi_tostr_r(names, sizeof(names), &missing, type);
	VERVE_INFO(FABRIC, "nothing for these hints: %s asks for %s (%#llx)\n", what, names,
		   (unsigned long long)missing);
	return -FI_ENODATA;
}

static int check_size(const char *what, uint64_t asked, uint64_t have)
{
	if (asked <= have)
		return 0;
	VERVE_INFO(FABRIC, "nothing for these hints: %s is %llu, the most is %llu\n", what,
		   (unsigned long long)asked, (unsigned long long)have);
	return -FI_ENODATA;
}

int verve_hints_check_type(const struct fi_info *hints)
{
	if (!hints || !hints->ep_attr || hints->ep_attr->type == FI_EP_UNSPEC ||
	    hints->ep_attr->type == FI_EP_RDM)
		return 0;
	return hints_refuse("ep_attr->type is not FI_EP_RDM");
}

static int check_format(uint32_t format)
{
	if (verve_attr_is_ip_format(format))
		return 0;
	return hints_refuse("addr_format is not FI_SOCKADDR, FI_SOCKADDR_IN or FI_SOCKADDR_IN6");
}

static int check_tclass(const char *what, uint32_t tclass)
{
	if (verve_attr_is_tclass(tclass))
		return 0;
	VERVE_INFO(FABRIC,
		   "nothing for these hints: %s is 0x%x, neither a label such as "
		   "FI_TC_LOW_LATENCY nor a DSCP up to 63\n",
		   what, tclass);
	return -FI_ENODATA;
}

/*
 * The modes that the application grants, with FI_MR_BASIC replaced by have, the bits that it stands
 * for. Of these bits, verve needs FI_MR_ALLOCATED alone. fi_mr(3).
 */
static int granted_mr_mode(int mode, int have)
{
	return mode & VERVE_MR_BASIC ? (mode & ~VERVE_MR_BASIC) | have : mode;
}

/*
 * verve needs FI_MR_ALLOCATED, because a region keeps the pages that it had when it was registered.
 * Since version 1.22, an application that does not grant the bit may change these pages. If the
 * application grants other modes of regions, it left out this bit on purpose, and is refused. If it
 * grants no modes, as MPICH and SOS do, the answer says that the bit is needed.
 */
static int check_mr_mode(uint32_t version, uint64_t caps, int mode)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) &&
	    mode & ~(VERVE_MR_BASIC | VERVE_MR_SCALABLE))
		return hints_refuse("domain_attr->mr_mode is not FI_MR_BASIC or FI_MR_SCALABLE");
	if (FI_VERSION_GE(version, FI_VERSION(1, 22)) && caps & rma_caps &&
	    mode & (VERVE_MR_SCALABLE | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY) &&
	    !(mode & (VERVE_MR_BASIC | FI_MR_ALLOCATED)))
		return hints_refuse("domain_attr->mr_mode lacks FI_MR_ALLOCATED: regions do not "
				    "follow memory that is mapped anew, and must be mapped when "
				    "they are registered");
	return 0;
}

static int check_progress(const struct fi_domain_attr *domain)
{
	if ((int)domain->data_progress > PROGRESS_CONTROL_UNIFIED ||
	    (int)domain->control_progress > PROGRESS_CONTROL_UNIFIED)
		return hints_refuse("domain_attr->data_progress or control_progress is unknown");
	return 0;
}

static int check_auth_key(const char *what, const void *auth_key, size_t size)
{
	const char *error = size ? verve_auth_attr_error(auth_key, size) : NULL;

	if (!error)
		return 0;
	VERVE_INFO(FABRIC, "nothing for these hints: %s->auth_key_size is %zu: %s\n", what, size,
		   error);
	return -FI_ENODATA;
}

/* Attributes that have a meaning since version 1.5. */
static int check_domain_1_5(const struct fi_domain_attr *asked, const struct fi_domain_attr *have)
{
	int ret;

	ret = check_size("domain_attr->mr_iov_limit", asked->mr_iov_limit, have->mr_iov_limit);
	if (!ret)
		ret = check_size("domain_attr->max_err_data", asked->max_err_data,
				 have->max_err_data);
	if (!ret)
		ret = check_size("domain_attr->mr_cnt", asked->mr_cnt, have->mr_cnt);
	if (!ret)
		ret = check_bits("domain_attr->caps", asked->caps, have->caps, FI_TYPE_CAPS);
	if (!ret)
		ret = check_auth_key("domain_attr", asked->auth_key, asked->auth_key_size);
	return ret;
}

/* Attributes that later versions added. */
static int check_domain_end(uint32_t version, const struct fi_domain_attr *asked)
{
	const struct domain_attr_end *end =
		(const void *)((const char *)asked + offsetof(struct fi_domain_attr, mr_cnt));
	int ret = 0;

	if (FI_VERSION_GE(version, FI_VERSION(1, 9)))
		ret = check_tclass("domain_attr->tclass", end->tclass);
	/* An endpoint has one key, and not one from its address vector: fi_domain(3). */
	if (!ret && FI_VERSION_GE(version, FI_VERSION(1, 20)))
		ret = check_size("domain_attr->max_ep_auth_key", end->max_ep_auth_key, 0);
	if (!ret && FI_VERSION_GE(version, FI_VERSION(2, 0)))
		ret = check_size("domain_attr->max_group_id", end->max_group_id, 0);
	return ret;
}

/* Attributes that every version has. */
static int check_domain_sizes(const struct fi_domain_attr *asked, const struct fi_domain_attr *have)
{
	int ret;

	ret = check_size("domain_attr->mr_key_size", asked->mr_key_size, have->mr_key_size);
	if (!ret)
		ret = check_size("domain_attr->cq_data_size", asked->cq_data_size,
				 have->cq_data_size);
	if (!ret)
		ret = check_size("domain_attr->max_ep_tx_ctx", asked->max_ep_tx_ctx,
				 have->max_ep_tx_ctx);
	if (!ret)
		ret = check_size("domain_attr->max_ep_rx_ctx", asked->max_ep_rx_ctx,
				 have->max_ep_rx_ctx);
	return ret;
}

static int check_domain(uint32_t version, const struct fi_info *hints,
			const struct fi_domain_attr *have)
{
	const struct fi_domain_attr *asked = hints->domain_attr;
	int ret;

	if ((int)asked->threading > FI_THREAD_ENDPOINT)
		return hints_refuse("domain_attr->threading is unknown");
	if (asked->av_type != FI_AV_UNSPEC && asked->av_type != FI_AV_MAP &&
	    asked->av_type != FI_AV_TABLE)
		return hints_refuse("domain_attr->av_type is unknown");
	if ((int)asked->resource_mgmt > FI_RM_ENABLED)
		return hints_refuse("domain_attr->resource_mgmt is unknown");
	ret = check_progress(asked);
	if (!ret)
		ret = check_domain_sizes(asked, have);
	if (!ret)
		ret = check_mr_mode(version, hints->caps, asked->mr_mode);
	if (!ret && FI_VERSION_GE(version, FI_VERSION(1, 5)))
		ret = check_domain_1_5(asked, have);
	if (!ret)
		ret = check_domain_end(version, asked);
	return ret;
}

static int check_max_order(const struct fi_ep_attr *asked, const struct fi_ep_attr *have,
			   uint64_t caps)
{
	int ret;

	ret = check_size("ep_attr->max_order_raw_size", asked->max_order_raw_size,
			 have->max_order_raw_size);
	if (!ret)
		ret = check_size("ep_attr->max_order_war_size", asked->max_order_war_size,
				 caps && ~caps & FI_ATOMIC ? 0 : have->max_order_war_size);
	if (!ret)
		ret = check_size("ep_attr->max_order_waw_size", asked->max_order_waw_size,
				 have->max_order_waw_size);
	return ret;
}

static int check_ep(uint32_t version, const struct fi_info *hints, const struct fi_ep_attr *have)
{
	const struct fi_ep_attr *asked = hints->ep_attr;
	int ret;

	if (asked->protocol && asked->protocol != have->protocol)
		return hints_refuse("ep_attr->protocol is another");
	ret = check_size("ep_attr->protocol_version", asked->protocol_version,
			 have->protocol_version);
	if (!ret)
		ret = check_size("ep_attr->max_msg_size", asked->max_msg_size, have->max_msg_size);
	if (!ret && asked->tx_ctx_cnt != FI_SHARED_CONTEXT)
		ret = check_size("ep_attr->tx_ctx_cnt", asked->tx_ctx_cnt, have->tx_ctx_cnt);
	if (!ret && asked->rx_ctx_cnt != FI_SHARED_CONTEXT)
		ret = check_size("ep_attr->rx_ctx_cnt", asked->rx_ctx_cnt, have->rx_ctx_cnt);
	if (!ret && FI_VERSION_GE(version, FI_VERSION(1, 5)))
		ret = check_auth_key("ep_attr", asked->auth_key, asked->auth_key_size);
	return ret ? ret : check_max_order(asked, have, hints->caps);
}

static int check_tx(uint32_t version, const struct fi_tx_attr *asked, const struct fi_tx_attr *have,
		    uint64_t caps)
{
	int ret;

	/* Applications put the capabilities of both directions into each direction's attributes. */
	ret = check_bits("tx_attr->caps", asked->caps, caps, FI_TYPE_CAPS);
	if (!ret)
		ret = check_bits("tx_attr->op_flags", asked->op_flags, have->op_flags,
				 FI_TYPE_OP_FLAGS);
	if (!ret)
		ret = check_bits("tx_attr->msg_order", asked->msg_order, have->msg_order,
				 FI_TYPE_MSG_ORDER);
	if (!ret)
		ret = check_bits("tx_attr->comp_order", asked->comp_order, have->comp_order,
				 FI_TYPE_MSG_ORDER);
	if (!ret)
		ret = check_size("tx_attr->inject_size", asked->inject_size, have->inject_size);
	if (!ret)
		ret = check_size("tx_attr->size", asked->size, VERVE_TX_SIZE_MAX);
	if (!ret)
		ret = check_size("tx_attr->iov_limit", asked->iov_limit, have->iov_limit);
	if (!ret)
		ret = check_size("tx_attr->rma_iov_limit", asked->rma_iov_limit,
				 have->rma_iov_limit);
	if (!ret && FI_VERSION_GE(version, FI_VERSION(1, 9)))
		ret = check_tclass("tx_attr->tclass", asked->tclass);
	return ret;
}

static int check_rx(const struct fi_rx_attr *asked, const struct fi_rx_attr *have, uint64_t caps)
{
	int ret;

	ret = check_bits("rx_attr->caps", asked->caps, caps, FI_TYPE_CAPS);
	if (!ret)
		ret = check_bits("rx_attr->op_flags", asked->op_flags, have->op_flags,
				 FI_TYPE_OP_FLAGS);
	if (!ret)
		ret = check_bits("rx_attr->msg_order", asked->msg_order, have->msg_order,
				 FI_TYPE_MSG_ORDER);
	if (!ret)
		ret = check_bits("rx_attr->comp_order", asked->comp_order, have->comp_order,
				 FI_TYPE_MSG_ORDER);
	if (!ret)
		ret = check_size("rx_attr->size", asked->size, VERVE_RX_SIZE_MAX);
	if (!ret)
		ret = check_size("rx_attr->iov_limit", asked->iov_limit, have->iov_limit);
	return ret;
}

/* Capabilities that an application may ask for. Some of them are not offered otherwise. */
static uint64_t askable_caps(uint32_t version, uint64_t have)
{
	return FI_VERSION_GE(version, FI_VERSION(2, 0)) ? have | VERVE_TAGGED_DIRECTED_RECV : have;
}

int verve_hints_check(uint32_t version, const struct fi_info *hints, const struct fi_info *have)
{
	uint64_t caps = askable_caps(version, have->caps);
	int ret;

	if (!hints)
		return 0;
	ret = check_bits("caps", hints->caps, caps, FI_TYPE_CAPS);
	if (!ret)
		ret = check_format(hints->addr_format);
	if (!ret && hints->fabric_attr)
		ret = check_size("fabric_attr->prov_version", hints->fabric_attr->prov_version,
				 have->fabric_attr->prov_version);
	if (!ret && hints->domain_attr)
		ret = check_domain(version, hints, have->domain_attr);
	if (!ret && hints->ep_attr)
		ret = check_ep(version, hints, have->ep_attr);
	if (!ret && hints->tx_attr)
		ret = check_tx(version, hints->tx_attr, have->tx_attr, caps);
	if (!ret && hints->rx_attr)
		ret = check_rx(hints->rx_attr, have->rx_attr, caps);
	return ret;
}

/* The capabilities to report. If there are no hints, or hints name none: all that cost nothing. */
static uint64_t choose_caps(const struct fi_info *hints, uint64_t have)
{
	uint64_t caps = hints ? hints->caps : 0;

	if (!caps)
		return have & ~costly;
	if (caps & msg_caps && !(caps & msg_directions))
		caps |= msg_directions;
	if (caps & rma_caps && !(caps & rma_directions))
		caps |= rma_directions;
	return caps | (have & ~(msg_caps | msg_directions | rma_caps | rma_directions | modifiers));
}

static int choose_mr_mode(uint32_t version, const struct fi_info *hints, uint64_t caps, int have)
{
	int mode = hints && hints->domain_attr ? hints->domain_attr->mr_mode : have;

	if (mode == VERVE_MR_SCALABLE)
		return VERVE_MR_SCALABLE;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)) || mode == VERVE_MR_BASIC)
		return VERVE_MR_BASIC;
	mode = granted_mr_mode(mode, have) & (have | FI_MR_LOCAL);
	/* Regions need FI_MR_ALLOCATED, whether or not the application grants it. */
	return caps & rma_caps || mode & FI_MR_LOCAL ? mode | FI_MR_ALLOCATED : mode;
}

/* Memory alone limits the number of these objects, so verve offers as many as were asked for. */
static void raise_to(size_t *count, size_t asked)
{
	if (asked > *count)
		*count = asked;
}

static void apply_counts(uint32_t version, const struct fi_domain_attr *asked,
			 struct fi_domain_attr *attr)
{
	raise_to(&attr->cq_cnt, asked->cq_cnt);
	raise_to(&attr->ep_cnt, asked->ep_cnt);
	raise_to(&attr->tx_ctx_cnt, asked->tx_ctx_cnt);
	raise_to(&attr->rx_ctx_cnt, asked->rx_ctx_cnt);
	raise_to(&attr->max_ep_stx_ctx, asked->max_ep_stx_ctx);
	raise_to(&attr->max_ep_srx_ctx, asked->max_ep_srx_ctx);
	if (FI_VERSION_GE(version, FI_VERSION(1, 5)))
		raise_to(&attr->cntr_cnt, asked->cntr_cnt);
}

static void apply_domain(uint32_t version, const struct fi_domain_attr *asked,
			 struct fi_domain_attr *attr)
{
	apply_counts(version, asked, attr);
	if (FI_VERSION_GE(version, FI_VERSION(1, 9)))
		attr->tclass = asked->tclass;
	if (asked->threading != FI_THREAD_UNSPEC)
		attr->threading = asked->threading;
	if (asked->control_progress != FI_PROGRESS_UNSPEC)
		attr->control_progress = asked->control_progress;
	if (asked->data_progress != FI_PROGRESS_UNSPEC)
		attr->data_progress = asked->data_progress;
	if (asked->av_type != FI_AV_UNSPEC)
		attr->av_type = asked->av_type;
}

/*
 * Removes bits that are newer than the application's version. The application may give such a bit
 * another meaning.
 */
static void drop_newer(uint32_t version, struct fi_info *info)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		info->caps &= ~VERVE_DOMAIN_CAPS;
	if (FI_VERSION_LT(version, FI_VERSION(1, 8))) {
		info->tx_attr->msg_order &= ~order_1_8;
		info->rx_attr->msg_order &= ~order_1_8;
	}
}

void verve_hints_apply(uint32_t version, const struct fi_info *hints, struct fi_info *info)
{
	int have = info->domain_attr->mr_mode;

	drop_newer(version, info);
	info->caps = choose_caps(hints, info->caps);
	/* Only atomics keep a write in order behind a read. */
	if (!(info->caps & FI_ATOMIC))
		info->ep_attr->max_order_war_size = 0;
	info->tx_attr->caps = info->caps &
			      ~(VERVE_RX_CAPS | VERVE_DOMAIN_CAPS | VERVE_TAGGED_DIRECTED_RECV);
	info->rx_attr->caps = info->caps & ~(VERVE_TX_CAPS | VERVE_DOMAIN_CAPS);
	info->domain_attr->mr_mode = choose_mr_mode(version, hints, info->caps, have);
	info->tx_attr->op_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0;
	info->rx_attr->op_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0;
	if (!hints)
		return;
	info->handle = hints->handle;
	if (hints->domain_attr)
		apply_domain(version, hints->domain_attr, info->domain_attr);
	if (hints->ep_attr && hints->ep_attr->mem_tag_format)
		info->ep_attr->mem_tag_format = hints->ep_attr->mem_tag_format;
	if (hints->ep_attr && hints->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT)
		info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	if (hints->ep_attr && hints->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
		info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (hints->tx_attr && FI_VERSION_GE(version, FI_VERSION(1, 9)))
		info->tx_attr->tclass = hints->tx_attr->tclass;
	if (hints->tx_attr && hints->tx_attr->size)
		info->tx_attr->size = hints->tx_attr->size;
	if (hints->rx_attr && hints->rx_attr->size)
		info->rx_attr->size = hints->rx_attr->size;
}
