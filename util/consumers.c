/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Consumers: one function for each question, and the table. */
#include "consumers.h"

/* Deprecated in 2.x, where naming them breaks the build. */
enum { MR_BASIC = 1 << 0, MR_SCALABLE = 1 << 1 };

/* FI_PROTO_RXM, and verve's own. */
enum { PROTO_RXM = FI_PROTO_RXM };
static const uint32_t proto_verve = 0x80766572u;

static const int mr_basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
static const uint64_t atomic_order = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
				     FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

static bool without_hmem(struct fi_info *hints, unsigned attempt)
{
	if (attempt > 1 || ~hints->caps & FI_HMEM)
		return false;
	hints->caps &= ~FI_HMEM;
	hints->domain_attr->mr_mode &= ~FI_MR_HMEM;
	return true;
}

/* Open MPI. */

static void ask_ompi_mtl_4(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->op_flags = hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->cq_data_size = sizeof(int);
	hints->domain_attr->av_type = FI_AV_MAP;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
}

static void ask_ompi_mtl_5(struct fi_info *hints)
{
	ask_ompi_mtl_4(hints);
	hints->caps |= FI_MSG | FI_HMEM;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_ALLOCATED;
}

static void ask_ompi_btl_4(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_RMA | FI_ATOMIC;
	hints->tx_attr->iov_limit = hints->rx_attr->iov_limit = 1;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->mr_mode = mr_basic;
}

static void ask_ompi_btl_4_both(struct fi_info *hints)
{
	ask_ompi_btl_4(hints);
	hints->caps |= FI_MSG;
}

static void ask_ompi_btl_5(struct fi_info *hints)
{
	ask_ompi_btl_4(hints);
	hints->caps |= FI_HMEM;
	hints->tx_attr->op_flags |= FI_COMPLETION;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode |= FI_MR_ENDPOINT | FI_MR_HMEM;
}

static bool ompi_btl_accepts(const struct fi_info *info)
{
	int mode = info->domain_attr->mr_mode;

	return info->ep_attr->type == FI_EP_RDM && info->domain_attr->max_ep_tx_ctx <= 1 &&
	       (mode == MR_BASIC || mode == MR_SCALABLE || !(mode & ~mr_basic));
}

/* MPICH. */

static void ask_mpich(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->mem_tag_format = 0x00e000007fffffffull;
	hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->tx_attr->msg_order = FI_ORDER_SAS | atomic_order;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mode = 1ull << 53; /* FI_RESTRICTED_COMP of libfabric 1.x */
	hints->domain_attr->cq_data_size = 4;
}

static void ask_mpich_3_4(struct fi_info *hints)
{
	ask_mpich(hints);
	hints->caps |= FI_DIRECTED_RECV;
	hints->domain_attr->mr_mode = mr_basic;
}

static void ask_mpich_4_0(struct fi_info *hints)
{
	ask_mpich(hints);
	hints->caps |= FI_DIRECTED_RECV;
}

static void ask_mpich_4_3(struct fi_info *hints)
{
	ask_mpich(hints);
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_ENDPOINT;
}

static bool mpich_accepts(const struct fi_info *info)
{
	uint64_t caps = FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV;

	return !(caps & ~info->caps) && !(atomic_order & ~info->tx_attr->msg_order) &&
	       info->domain_attr->threading == FI_THREAD_DOMAIN &&
	       info->domain_attr->cq_data_size >= 4 && info->domain_attr->max_ep_tx_ctx == 1;
}

/* Sandia OpenSHMEM. */

static void ask_sos(struct fi_info *hints)
{
	hints->caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->tx_attr->inject_size = sizeof(long double);
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_key_size = 1;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
}

static void ask_sos_basic(struct fi_info *hints)
{
	ask_sos(hints);
	hints->domain_attr->mr_mode = mr_basic;
}

static void ask_sos_rma_event(struct fi_info *hints)
{
	ask_sos(hints);
	hints->domain_attr->mr_mode = FI_MR_RMA_EVENT;
}

static void ask_sos_polling(struct fi_info *hints)
{
	ask_sos(hints);
	hints->caps &= ~FI_RMA_EVENT;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

static bool sos_accepts(const struct fi_info *info)
{
	return info->ep_attr->max_msg_size && info->tx_attr->inject_size >= sizeof(long double) &&
	       info->nic && !info->mode;
}

/* Mercury: each row of its table has a provider's name, protocol and format of addresses. */

static void ask_mercury(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = mr_basic | FI_MR_LOCAL;
}

static void ask_mercury_2_0(struct fi_info *hints)
{
	ask_mercury(hints);
	hints->caps = FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->op_flags |= FI_COMPLETION;
	hints->rx_attr->op_flags = FI_COMPLETION;
	hints->domain_attr->av_type = FI_AV_MAP;
}

static void ask_mercury_2_2(struct fi_info *hints)
{
	ask_mercury_2_0(hints);
	hints->ep_attr->protocol = PROTO_RXM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
}

static void ask_mercury_2_4(struct fi_info *hints)
{
	ask_mercury(hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV;
	hints->ep_attr->protocol = PROTO_RXM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
}

static void ask_mercury_2_3(struct fi_info *hints)
{
	ask_mercury_2_4(hints);
	hints->domain_attr->av_type = FI_AV_MAP;
}

static void ask_mercury_row(struct fi_info *hints)
{
	ask_mercury_2_4(hints);
	hints->ep_attr->protocol = proto_verve;
}

static bool mercury_accepts(const struct fi_info *info)
{
	return info->addr_format == FI_SOCKADDR_IN && info->src_addrlen == 16 &&
	       info->domain_attr->mr_key_size <= 8 && info->domain_attr->cq_data_size >= 4;
}

/* aws-ofi-nccl. */

static void ask_nccl(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_HMEM;
	hints->domain_attr->mr_mode = mr_basic | FI_MR_LOCAL | FI_MR_HMEM;
	hints->domain_attr->mr_key_size = 2;
}

static void ask_nccl_sendrecv(struct fi_info *hints)
{
	ask_nccl(hints);
	hints->caps |= FI_TAGGED | FI_RMA | FI_READ;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	hints->domain_attr->threading = FI_THREAD_SAFE;
}

static bool ask_nccl_without_gpu(struct fi_info *hints, unsigned attempt)
{
	hints->caps &= ~(FI_RMA | FI_READ);
	return without_hmem(hints, attempt);
}

static void ask_nccl_rdma(struct fi_info *hints)
{
	ask_nccl(hints);
	hints->caps |= FI_RMA;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	hints->domain_attr->cq_data_size = 4;
}

static void ask_nccl_rdma_1_21(struct fi_info *hints)
{
	ask_nccl_rdma(hints);
	hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
}

/* GASNet-EX. */

static void ask_gasnet(struct fi_info *hints)
{
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_RMA | FI_MSG | FI_MULTI_RECV;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mr_mode = mr_basic | FI_MR_ENDPOINT;
}

static void ask_gasnet_rma(struct fi_info *hints)
{
	ask_gasnet(hints);
	hints->caps = FI_RMA;
	hints->mode = 0;
}

static void ask_gasnet_am(struct fi_info *hints)
{
	ask_gasnet(hints);
	hints->caps = FI_MSG | FI_MULTI_RECV;
}

/* The three bits as one: it knows nothing between. */
static bool gasnet_accepts(const struct fi_info *info)
{
	int mode = info->domain_attr->mr_mode & mr_basic;

	return (mode == mr_basic || !mode) && !info->mode;
}

#define V(major, minor) FI_VERSION(major, minor)

static const char rxm[] = "verbs;ofi_rxm";
static const char no_hmem[] = "caps asks for FI_HMEM";
static const char rxm_proto[] = "ep_attr->protocol";

const struct consumer consumers[] = {
	{"ompi-mtl", "Open MPI 4.1", "mtl/ofi", "v4.1.8", V(1, 5), NULL, false, ask_ompi_mtl_4,
	 NULL, NULL, CONSUMER_RUNS, NULL},
	{"ompi-btl", "Open MPI 4.1", "btl/ofi, one-sided", "v4.1.8", V(1, 5), NULL, false,
	 ask_ompi_btl_4, NULL, ompi_btl_accepts, CONSUMER_RUNS, NULL},
	{"ompi-btl", "Open MPI 4.1", "btl/ofi, both", "v4.1.8", V(1, 5), NULL, false,
	 ask_ompi_btl_4_both, NULL, ompi_btl_accepts, CONSUMER_RUNS, NULL},
	{"ompi-mtl", "Open MPI 5.0", "mtl/ofi", "v5.0.9", V(1, 18), NULL, false, ask_ompi_mtl_5,
	 without_hmem, NULL, CONSUMER_LIMITED, no_hmem},
	{"ompi-btl", "Open MPI 5.0", "btl/ofi, one-sided", "v5.0.9", V(1, 18), NULL, false,
	 ask_ompi_btl_5, without_hmem, ompi_btl_accepts, CONSUMER_LIMITED, no_hmem},
	{"ompi-mtl", "Open MPI main", "mtl/ofi", "8efebee745", V(1, 18), NULL, false,
	 ask_ompi_mtl_5, without_hmem, NULL, CONSUMER_LIMITED, no_hmem},
	{"ompi-btl", "Open MPI main", "btl/ofi, one-sided", "8efebee745", V(1, 18), NULL, false,
	 ask_ompi_btl_5, without_hmem, ompi_btl_accepts, CONSUMER_LIMITED, no_hmem},
	{"mpich", "MPICH 3.4", "ch4:ofi", "v3.4.3", V(1, 17), NULL, true, ask_mpich_3_4, NULL,
	 mpich_accepts, CONSUMER_RUNS, NULL},
	{"mpich", "MPICH 4.0", "ch4:ofi", "v4.0.3", V(1, 17), NULL, true, ask_mpich_4_0, NULL,
	 mpich_accepts, CONSUMER_RUNS, NULL},
	{"mpich", "MPICH 4.3", "ch4:ofi", "v4.3.2", V(1, 17), NULL, true, ask_mpich_4_3, NULL,
	 mpich_accepts, CONSUMER_RUNS, NULL},
	{"mpich", "MPICH 5.0", "ch4:ofi", "v5.0.1", V(1, 17), NULL, true, ask_mpich_4_3, NULL,
	 mpich_accepts, CONSUMER_RUNS, NULL},
	{"sos", "SOS 1.5", "as configured by default", "v1.5.3", V(1, 5), NULL, false, ask_sos,
	 NULL, sos_accepts, CONSUMER_RUNS, NULL},
	{"sos", "SOS 1.5", "--enable-ofi-mr=basic", "v1.5.3", V(1, 5), NULL, false, ask_sos_basic,
	 NULL, sos_accepts, CONSUMER_RUNS, NULL},
	{"sos", "SOS 1.5", "--enable-ofi-mr=rma-event", "v1.5.3", V(1, 5), NULL, false,
	 ask_sos_rma_event, NULL, sos_accepts, CONSUMER_RUNS, NULL},
	{"sos", "SOS main", "as configured by default", "d5b0de34", V(1, 5), NULL, false, ask_sos,
	 NULL, sos_accepts, CONSUMER_RUNS, NULL},
	{"sos", "SOS main", "--enable-ofi-mr=basic", "d5b0de34", V(1, 5), NULL, false,
	 ask_sos_basic, NULL, sos_accepts, CONSUMER_RUNS, NULL},
	{"sos", "SOS main", "--enable-hard-polling --enable-ofi-manual-progress", "d5b0de34",
	 V(1, 5), NULL, false, ask_sos_polling, NULL, sos_accepts, CONSUMER_RUNS, NULL},
	{"mercury", "Mercury 2.0", rxm, "v2.0.1", V(1, 5), rxm, false, ask_mercury_2_0, NULL, NULL,
	 CONSUMER_REFUSED, NULL},
	{"mercury", "Mercury 2.1", rxm, "v2.1.0", V(1, 7), rxm, false, ask_mercury_2_0, NULL, NULL,
	 CONSUMER_REFUSED, NULL},
	{"mercury", "Mercury 2.2", rxm, "v2.2.0", V(1, 9), rxm, false, ask_mercury_2_2, NULL,
	 mercury_accepts, CONSUMER_REFUSED, rxm_proto},
	{"mercury", "Mercury 2.3", rxm, "v2.3.1", V(1, 13), rxm, false, ask_mercury_2_3, NULL,
	 mercury_accepts, CONSUMER_REFUSED, rxm_proto},
	{"mercury", "Mercury 2.4", rxm, "v2.4.1", V(1, 13), rxm, false, ask_mercury_2_4, NULL,
	 mercury_accepts, CONSUMER_REFUSED, rxm_proto},
	{"mercury", "Mercury 2.4", "if it had a row for verve", "expected", V(1, 13), "verve",
	 false, ask_mercury_row, NULL, mercury_accepts, CONSUMER_RUNS, NULL},
	{"nccl", "aws-ofi-nccl 1.19", "sendrecv", "v1.19.2", V(1, 6), NULL, false,
	 ask_nccl_sendrecv, ask_nccl_without_gpu, NULL, CONSUMER_LIMITED, no_hmem},
	{"nccl", "aws-ofi-nccl 1.19", "rdma", "v1.19.2", V(1, 18), NULL, false, ask_nccl_rdma, NULL,
	 NULL, CONSUMER_REFUSED, no_hmem},
	{"nccl", "aws-ofi-nccl 1.21", "rdma", "v1.21.1", V(1, 18), NULL, false, ask_nccl_rdma_1_21,
	 NULL, NULL, CONSUMER_REFUSED, no_hmem},
	{"gasnet", "GASNet-EX", "first query", "0125e268", V(1, 5), NULL, false, ask_gasnet, NULL,
	 gasnet_accepts, CONSUMER_RUNS, NULL},
	{"gasnet", "GASNet-EX", "endpoint for RMA", "0125e268", V(1, 5), "verve", false,
	 ask_gasnet_rma, NULL, gasnet_accepts, CONSUMER_RUNS, NULL},
	{"gasnet", "GASNet-EX", "endpoints for messages", "0125e268", V(1, 5), "verve", false,
	 ask_gasnet_am, NULL, gasnet_accepts, CONSUMER_RUNS, NULL},
};

const size_t consumer_count = sizeof(consumers) / sizeof(consumers[0]);
