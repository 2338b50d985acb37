/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints of portable applications, which ask for many things at once. consumers_test.c has the
 * hints of real applications.
 */
#include <rdma/fi_errno.h>

#include "hints_fixture.h"

Test(hints, server_of_remote_procedures)
{
	hints->mode = FI_ASYNC_IOV | FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV;
	hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = mr_needed | FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_HMEM;
	hints_expect_match();
	cr_expect_eq(info->src_addrlen, 16);
	cr_expect_eq(info->tx_attr->op_flags, FI_INJECT_COMPLETE);
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed | FI_MR_LOCAL);
	cr_expect_leq(info->domain_attr->mr_key_size, 8);
	cr_expect_geq(info->domain_attr->cq_data_size, 4);
	cr_expect_geq(info->domain_attr->mr_iov_limit, 1);
	cr_expect_not(info->caps & FI_SOURCE);
}

/*
 * First a query without hints; then hints with the capabilities of the answer, strict at first,
 * then less and less strict.
 */
Test(hints, mpich_4_2)
{
	version = FI_VERSION(0, 0);
	cr_assert_eq(hints_get_with(NULL), 0);
	cr_expect(info->caps & FI_DIRECTED_RECV);
	cr_expect(info->caps & FI_TAGGED && info->caps & FI_MULTI_RECV && info->caps & FI_RMA);
	cr_expect_not(info->caps & (FI_SOURCE | FI_RMA_EVENT));
	cr_expect_eq(info->domain_attr->max_ep_tx_ctx, 1);
	hints->caps = info->caps;

	version = FI_VERSION(1, 17);
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	hints->tx_attr->msg_order = FI_ORDER_SAS | atomic_order;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, FI_MR_ALLOCATED);
	hints->domain_attr->mr_mode = MR_BASIC;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->threading, FI_THREAD_DOMAIN);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_TABLE);
	cr_expect_eq(info->domain_attr->mr_mode, MR_BASIC);
}

Test(hints, open_mpi_4_mtl)
{
	version = FI_VERSION(1, 5);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->cq_data_size = 4;
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, 0);
	cr_expect_eq(info->domain_attr->av_type, FI_AV_MAP);
	cr_expect_not(info->caps & FI_RMA);
	cr_expect_geq(info->ep_attr->max_msg_size, (size_t)1 << 30);
}

Test(hints, open_mpi_5_mtl)
{
	version = FI_VERSION(1, 9);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->caps =
		FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV | FI_HMEM;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_ALLOCATED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	cr_expect_eq(hints_get(), -FI_ENODATA);
	hints->caps &= ~FI_HMEM;
	hints->domain_attr->mr_mode = 0;
	hints_expect_match();
}

Test(hints, open_mpi_btl_two_sided)
{
	version = FI_VERSION(1, 5);
	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->tx_attr->iov_limit = 1;
	hints->rx_attr->iov_limit = 1;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->mr_mode = mr_needed;
	hints_expect_match();
}

Test(hints, gasnet_rma_endpoint_prefers_its_own_keys)
{
	version = FI_VERSION(1, 5);
	hints->caps = FI_RMA | FI_MSG | FI_MULTI_RECV;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->mr_mode = mr_needed | FI_MR_ENDPOINT;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed);
	hints->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed & ~FI_MR_PROV_KEY);
}

Test(hints, nccl_plugin)
{
	version = FI_VERSION(1, 6);
	hints->caps = FI_TAGGED | FI_MSG;
	hints->mode = FI_CONTEXT;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | MR_BASIC;
	hints->domain_attr->mr_key_size = 2;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints_expect_match();
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed | FI_MR_LOCAL);
	hints->caps |= FI_RMA | FI_READ;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints_expect_match();
	cr_expect_eq(info->caps & rma_all, FI_RMA | FI_READ);
}

Test(hints, fabtests_and_pingpong)
{
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_RAW | mr_needed;
	hints_expect_match();
	cr_expect_eq(info->caps & rma_all, rma_all);
	cr_expect_eq(info->caps & (FI_SEND | FI_RECV), FI_SEND | FI_RECV);
}

Test(hints, fi_info_asks_for_all_modes)
{
	hints->mode = ~0;
	hints->domain_attr->mode = ~0;
	hints->domain_attr->mr_mode = ~(MR_BASIC | MR_SCALABLE);
	hints_expect_match();
	cr_expect(info->caps & FI_RMA);
	cr_expect_not(info->domain_attr->mr_mode & (FI_MR_ENDPOINT | FI_MR_RAW | FI_MR_HMEM));
}
