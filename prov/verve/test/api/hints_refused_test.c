/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hints that verve cannot fulfil: each is refused, and the log says which hint it was. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "../support/log_lines.h"
#include "api/attr.h"
#include "hints_fixture.h"

/* Each function sets one hint that verve cannot fulfil. */

static void ask_caps(void)
{
	hints->caps = FI_MSG | FI_TRIGGER;
}

static void ask_tx_caps(void)
{
	hints->tx_attr->caps = FI_MULTICAST;
}

static void ask_rx_caps(void)
{
	hints->rx_attr->caps = FI_MULTICAST;
}

static void ask_domain_caps(void)
{
	hints->domain_attr->caps = FI_SHARED_AV;
}

static void ask_commit_complete(void)
{
	hints->tx_attr->op_flags = FI_COMMIT_COMPLETE;
}

static void ask_rx_op_flags(void)
{
	hints->rx_attr->op_flags = FI_DELIVERY_COMPLETE;
}

static void ask_msg_order(void)
{
	hints->tx_attr->msg_order = FI_ORDER_RMA_WAR;
}

static void ask_rx_msg_order(void)
{
	hints->rx_attr->msg_order = FI_ORDER_WAS;
}

static void ask_comp_order(void)
{
	hints->tx_attr->comp_order = 1 << 16; /* FI_ORDER_DATA; libfabric 2.x deprecates the name */
}

static void ask_protocol(void)
{
	hints->ep_attr->protocol = FI_PROTO_RXM;
}

static void ask_protocol_version(void)
{
	hints->ep_attr->protocol_version = 3;
}

static void ask_max_msg_size(void)
{
	hints->ep_attr->max_msg_size = SIZE_MAX;
}

static void ask_contexts(void)
{
	hints->ep_attr->tx_ctx_cnt = 2;
}

static void ask_auth_key(void)
{
	hints->ep_attr->auth_key_size = 16;
}

static void ask_domain_auth_key(void)
{
	hints->domain_attr->auth_key_size = 16;
}

static void ask_cq_data(void)
{
	hints->domain_attr->cq_data_size = 9;
}

static void ask_mr_iov(void)
{
	hints->domain_attr->mr_iov_limit = 65;
}

static void ask_err_data(void)
{
	hints->domain_attr->max_err_data = 4096;
}

static void ask_iov(void)
{
	hints->tx_attr->iov_limit = 5;
}

static void ask_rma_iov(void)
{
	hints->tx_attr->rma_iov_limit = 5;
}

static void ask_rx_iov(void)
{
	hints->rx_attr->iov_limit = 5;
}

static void ask_prov_version(void)
{
	hints->fabric_attr->prov_version = VERVE_PROV_VERSION + 1;
}

static void ask_mr_key(void)
{
	hints->domain_attr->mr_key_size = 9;
}

static void ask_ep_tx_ctx(void)
{
	hints->domain_attr->max_ep_tx_ctx = 2;
}

static void ask_ep_rx_ctx(void)
{
	hints->domain_attr->max_ep_rx_ctx = 2;
}

static void ask_tclass(void)
{
	hints->domain_attr->tclass = FI_TC_NETWORK_CTRL + 1;
}

static void ask_dscp(void)
{
	hints->domain_attr->tclass = fi_tc_dscp_set(64);
}

static void ask_tx_tclass(void)
{
	hints->tx_attr->tclass = fi_tc_dscp_set(255);
}

static void ask_mr_cnt(void)
{
	hints->domain_attr->mr_cnt = (1 << 16) + 1;
}

static void ask_raw_size(void)
{
	hints->ep_attr->max_order_raw_size = SIZE_MAX;
}

static void ask_war_size_of_messages(void)
{
	hints->caps = FI_MSG;
	hints->ep_attr->max_order_war_size = 8;
}

static void ask_resource_mgmt(void)
{
	hints->domain_attr->resource_mgmt = (enum fi_resource_mgmt)77;
}

static void ask_war_size(void)
{
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = mr_needed;
	hints->ep_attr->max_order_war_size = 8;
}

struct refusal {
	void (*ask)(void);
	const char *reason; /* text that the log must have */
};

static const struct refusal refusals[] = {
	{ask_caps, "caps asks for FI_TRIGGER"},
	{ask_tx_caps, "tx_attr->caps asks for FI_MULTICAST"},
	{ask_rx_caps, "rx_attr->caps asks for"},
	{ask_domain_caps, "domain_attr->caps asks for FI_SHARED_AV"},
	{ask_commit_complete, "tx_attr->op_flags asks for"},
	{ask_rx_op_flags, "rx_attr->op_flags asks for FI_DELIVERY_COMPLETE"},
	{ask_msg_order, "tx_attr->msg_order asks for"},
	{ask_rx_msg_order, "rx_attr->msg_order asks for FI_ORDER_WAS"},
	{ask_comp_order, "tx_attr->comp_order asks for"},
	{ask_protocol, "ep_attr->protocol is another"},
	{ask_protocol_version, "ep_attr->protocol_version is 3"},
	{ask_max_msg_size, "ep_attr->max_msg_size is"},
	{ask_contexts, "ep_attr->tx_ctx_cnt is 2"},
	{ask_auth_key, "ep_attr->auth_key_size"},
	{ask_domain_auth_key, "domain_attr->auth_key_size"},
	{ask_cq_data, "domain_attr->cq_data_size is 9"},
	{ask_mr_iov, "domain_attr->mr_iov_limit is 65"},
	{ask_err_data, "domain_attr->max_err_data is 4096"},
	{ask_iov, "tx_attr->iov_limit is 5"},
	{ask_rma_iov, "tx_attr->rma_iov_limit is 5"},
	{ask_rx_iov, "rx_attr->iov_limit is 5"},
	{ask_prov_version, "fabric_attr->prov_version is"},
	{ask_war_size, "ep_attr->max_order_war_size is 8"},
	{ask_war_size_of_messages, "ep_attr->max_order_war_size is 8"},
	{ask_raw_size, "ep_attr->max_order_raw_size is"},
	{ask_mr_key, "domain_attr->mr_key_size is 9, the most is 8"},
	{ask_ep_tx_ctx, "domain_attr->max_ep_tx_ctx is 2, the most is 1"},
	{ask_ep_rx_ctx, "domain_attr->max_ep_rx_ctx is 2, the most is 1"},
	{ask_mr_cnt, "domain_attr->mr_cnt is 65537"},
	{ask_tclass, "domain_attr->tclass is 0x206"},
	{ask_dscp, "domain_attr->tclass is 0x140"},
	{ask_tx_tclass, "tx_attr->tclass is 0x1ff"},
	{ask_resource_mgmt, "domain_attr->resource_mgmt is unknown"},
};

enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

/*
 * The parameters are numbers, because they travel to another process, where pointers mean nothing.
 */
ParameterizedTestParameters(hints, refused)
{
	static size_t numbers[REFUSALS];

	for (size_t i = 0; i < REFUSALS; i++)
		numbers[i] = i;
	return cr_make_param_array(size_t, numbers, REFUSALS);
}

/* Exactly the one hint is wrong: without it there is an answer. */
ParameterizedTest(size_t *number, hints, refused)
{
	const struct refusal *refusal = &refusals[*number];
	const char *text;

	cr_assert_eq(hints_get(), 0);
	log_start("info", "verve");
	refusal->ask();
	cr_expect_eq(hints_get(), -FI_ENODATA);
	text = log_take();
	cr_expect_not_null(strstr(text, refusal->reason), "%s: %s", refusal->reason, text);
}
