/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queue: polling, arming, the wake-up channel, and the meaning of each status. */
#include "net/cq.h"

#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "net/verbs.h"

_Static_assert((int)VERVE_NET_WC_OK == IBV_WC_SUCCESS, "status");
_Static_assert((int)VERVE_NET_WC_LOCAL_LENGTH == IBV_WC_LOC_LEN_ERR, "status");
_Static_assert((int)VERVE_NET_WC_LOCAL_OPERATION == IBV_WC_LOC_QP_OP_ERR, "status");
_Static_assert((int)VERVE_NET_WC_LOCAL_PROTECTION == IBV_WC_LOC_PROT_ERR, "status");
_Static_assert((int)VERVE_NET_WC_BIND == IBV_WC_MW_BIND_ERR, "status");
_Static_assert((int)VERVE_NET_WC_FLUSHED == IBV_WC_WR_FLUSH_ERR, "status");
_Static_assert((int)VERVE_NET_WC_REMOTE_ACCESS == IBV_WC_REM_ACCESS_ERR, "status");
_Static_assert((int)VERVE_NET_WC_RETRY_EXCEEDED == IBV_WC_RETRY_EXC_ERR, "status");
_Static_assert((int)VERVE_NET_WC_SEND == IBV_WC_SEND, "opcode");
_Static_assert((int)VERVE_NET_WC_RECV == IBV_WC_RECV, "opcode");
_Static_assert((int)VERVE_NET_WC_RECV_IMM == IBV_WC_RECV_RDMA_WITH_IMM, "opcode");

#define SAME_PLACE(field, other)                                                                   \
	_Static_assert(offsetof(struct verve_net_wc, field) == offsetof(struct ibv_wc, other) &&   \
		       sizeof(((struct verve_net_wc *)0)->field) ==                                \
		       sizeof(((struct ibv_wc *)0)->other), "cast in poll")

_Static_assert(sizeof(struct verve_net_wc) == sizeof(struct ibv_wc), "cast in poll");
SAME_PLACE(wr_id, wr_id);
SAME_PLACE(status, status);
SAME_PLACE(opcode, opcode);
SAME_PLACE(vendor_err, vendor_err);
SAME_PLACE(byte_len, byte_len);
SAME_PLACE(imm, imm_data);
SAME_PLACE(qp_num, qp_num);

const char *verve_net_wc_str(uint32_t status)
{
	/* soft-RoCE reports this status when the port is down and no packet can leave. */
	if (status == IBV_WC_LOC_QP_OP_ERR)
		return "local QP operation error (is the port of this endpoint up?)";
	return ibv_wc_status_str(status);
}

int verve_net_wc_errno(uint32_t status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_LOC_LEN_ERR:
		return FI_EMSGSIZE;
	case IBV_WC_LOC_PROT_ERR:
		return FI_EFAULT;
	case IBV_WC_WR_FLUSH_ERR:
		return FI_ECANCELED;
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_REM_ACCESS_ERR:
		return FI_EACCES;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return FI_EREMOTEIO;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return FI_EHOSTUNREACH;
	default:
		return FI_EIO;
	}
}

int verve_net_channel_open(struct verve_net_device *dev, struct verve_net_channel **channelp)
{
	struct verve_net_channel *channel = malloc(sizeof(*channel));
	int flags, ret;

	if (!channel)
		return -FI_ENOMEM;
	errno = 0;
	channel->channel = ibv_create_comp_channel(dev->ctx);
	if (!channel->channel) {
		ret = verve_net_error(errno);
		goto err_channel;
	}
	flags = fcntl(channel->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(channel->channel->fd, F_SETFL, flags | O_NONBLOCK)) {
		ret = verve_net_error(errno);
		goto err_comp_channel;
	}
	*channelp = channel;
	return 0;

err_comp_channel:
	ibv_destroy_comp_channel(channel->channel);
err_channel:
	free(channel);
	VERVE_WARN(CQ, "%s: cannot open a completion channel: %s\n", dev->port.device,
		   fi_strerror(-ret));
	return ret;
}

void verve_net_channel_close(struct verve_net_channel *channel)
{
	int ret = ibv_destroy_comp_channel(channel->channel);

	if (ret)
		VERVE_WARN(CQ, "cannot close a completion channel: %s\n", strerror(ret));
	free(channel);
}

int verve_net_channel_fd(const struct verve_net_channel *channel)
{
	return channel->channel->fd;
}

void verve_net_channel_drain(struct verve_net_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	/* ibv_destroy_cq(3) waits for ever while an event of the queue is not acknowledged. */
	while (!ibv_get_cq_event(channel->channel, &cq, &context))
		ibv_ack_cq_events(cq, 1);
}

uint32_t verve_net_vector_next(void)
{
	static volatile AO_t owner, next;
	AO_t pid = getpid();
	int cpu;

	/* If two threads come here first, both may get the same vector, which does no harm. */
	if (AO_load(&owner) != pid) {
		cpu = sched_getcpu();
		AO_store(&next, cpu < 0 ? pid : (AO_t)cpu);
		AO_store_release(&owner, pid);
	}
	return AO_fetch_and_add1(&next);
}

int verve_net_cq_open(struct verve_net_device *dev, uint32_t depth,
		      struct verve_net_channel *channel, uint32_t vector,
		      struct verve_net_cq **cqp)
{
	struct verve_net_cq *cq = calloc(1, sizeof(*cq));
	uint32_t vectors = dev->ctx->num_comp_vectors > 0 ? dev->ctx->num_comp_vectors : 1;
	int ret;

	if (!cq)
		return -FI_ENOMEM;
	errno = 0;
	cq->cq = ibv_create_cq(dev->ctx, depth, cq, channel ? channel->channel : NULL,
			       vector % vectors);
	if (!cq->cq) {
		ret = verve_net_error(errno);
		VERVE_WARN(CQ,
			   "%s: cannot open a completion queue of %u entries (the device has %u): "
			   "%s%s\n",
			   dev->port.device, depth, dev->port.limits.cqe, fi_strerror(-ret),
			   verve_net_queue_remedy(ret));
		free(cq);
		return ret;
	}
	*cqp = cq;
	return 0;
}

void verve_net_cq_close(struct verve_net_cq *cq)
{
	int ret = ibv_destroy_cq(cq->cq);

	if (ret)
		VERVE_WARN(CQ, "cannot close a completion queue: %s\n", strerror(ret));
	free(cq);
}

static __attribute__((noinline, cold)) int poll_failed(struct verve_net_cq *cq)
{
	if (!cq->lost)
		VERVE_WARN(CQ, "%s: cannot poll a completion queue: %s (dmesg may say why)\n",
			   ibv_get_device_name(cq->cq->context->device),
			   cq->binds ? "a domain opens another one for its memory windows" :
				       "close its endpoint, which has failed, and open another");
	cq->lost = true;
	return -FI_EIO;
}

int verve_net_cq_poll(struct verve_net_cq *cq, int max, struct verve_net_wc *wc)
{
	int count = ibv_poll_cq(cq->cq, max, (struct ibv_wc *)wc);

	return __builtin_expect(count < 0, 0) ? poll_failed(cq) : count;
}

int verve_net_cq_arm(struct verve_net_cq *cq)
{
	int ret = ibv_req_notify_cq(cq->cq, 0);

	return ret ? verve_net_error(ret) : 0;
}
