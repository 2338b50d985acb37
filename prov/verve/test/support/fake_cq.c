/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake net/cq.h: rings that must never overflow, and channels on an eventfd. */
#include "net/cq.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_qp.h"
#include "fake_world.h"

struct verve_net_channel {
	struct verve_net_device *dev;
	int fd;
	uint32_t users;
};

struct entry {
	struct verve_net_wc wc;
	struct verve_net_qp *qp; /* whose send queue has room again when this is polled; or NULL */
	uint32_t number;
	bool gone;
};

struct verve_net_cq {
	struct verve_net_device *dev;
	struct verve_net_channel *channel;
	struct entry *ring;
	uint32_t depth, head, count;
	uint32_t users, vector;
	bool armed;
	bool broken;
};

static const char *const status_text[] = {
	"success",
	"local length error",
	"local queue pair operation error",
	"local EE context operation error",
	"local protection error",
	"work request flushed",
	"memory window bind error",
	"bad response",
	"local access error",
	"remote invalid request",
	"remote access error",
	"remote operation error",
	"transport retries exceeded",
	"receiver-not-ready retries exceeded",
};

const char *verve_net_wc_str(uint32_t status)
{
	return status < sizeof(status_text) / sizeof(status_text[0]) ? status_text[status]
								     : "unknown status";
}

int verve_net_wc_errno(uint32_t status)
{
	switch (status) {
	case FAKE_WC_OK:
		return 0;
	case FAKE_WC_LOCAL_LENGTH:
		return FI_EMSGSIZE;
	case FAKE_WC_LOCAL_PROTECTION:
		return FI_EFAULT;
	case FAKE_WC_FLUSHED:
		return FI_ECANCELED;
	case FAKE_WC_REMOTE_ACCESS:
		return FI_EACCES;
	case FAKE_WC_RETRY_EXCEEDED:
		return FI_EHOSTUNREACH;
	case FAKE_WC_REMOTE_INVALID:
	case FAKE_WC_REMOTE_OPERATION:
		return FI_EREMOTEIO;
	default:
		return FI_EIO;
	}
}

int verve_net_channel_open(struct verve_net_device *dev, struct verve_net_channel **channelp)
{
	struct verve_net_channel *channel;
	int ret = fake_gate(FAKE_NET_CHANNEL_OPEN);

	if (ret)
		return ret;
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return -FI_ENOMEM;
	channel->dev = dev;
	channel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (channel->fd < 0)
		fake_fatal("no descriptor");
	dev->users++;
	fake_opened(FAKE_CHANNEL);
	*channelp = channel;
	return 0;
}

void verve_net_channel_close(struct verve_net_channel *channel)
{
	if (channel->users)
		fake_fatal("a channel is closed that %u CQs use", channel->users);
	close(channel->fd);
	channel->dev->users--;
	free(channel);
	fake_closed(FAKE_CHANNEL);
}

int verve_net_channel_fd(const struct verve_net_channel *channel)
{
	return channel->fd;
}

void verve_net_channel_drain(struct verve_net_channel *channel)
{
	uint64_t count;

	/* Empty is fine. */
	(void)!read(channel->fd, &count, sizeof(count));
}

uint32_t verve_net_vector_next(void)
{
	return fake_world.vectors++;
}

uint32_t fake_net_cq_vector(const struct verve_net_cq *cq)
{
	return cq->vector;
}

int verve_net_cq_open(struct verve_net_device *dev, uint32_t depth,
		      struct verve_net_channel *channel, uint32_t vector,
		      struct verve_net_cq **cqp)
{
	struct verve_net_cq *cq;
	int ret = fake_gate(FAKE_NET_CQ_OPEN);

	if (ret)
		return ret;
	if (!depth || depth > fake_world.config.limits.cqe)
		return -FI_EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->ring = calloc(depth, sizeof(cq->ring[0]));
	if (!cq->ring)
		goto err_free;
	cq->dev = dev;
	cq->depth = depth;
	cq->channel = channel;
	cq->vector = vector;
	if (channel)
		channel->users++;
	dev->users++;
	fake_opened(FAKE_CQ);
	*cqp = cq;
	return 0;

err_free:
	free(cq);
	return -FI_ENOMEM;
}

void verve_net_cq_close(struct verve_net_cq *cq)
{
	if (cq->users)
		fake_fatal("a CQ is closed that %u queue pairs use", cq->users);
	if (cq->channel)
		cq->channel->users--;
	cq->dev->users--;
	free(cq->ring);
	free(cq);
	fake_closed(FAKE_CQ);
}

void fake_cq_use(struct verve_net_cq *cq, int users)
{
	cq->users += (uint32_t)users;
}

static struct entry *entry_at(struct verve_net_cq *cq, uint32_t index)
{
	uint32_t pos = cq->head + index;

	return &cq->ring[pos < cq->depth ? pos : pos - cq->depth];
}

static void notify(struct verve_net_cq *cq)
{
	uint64_t one = 1;

	if (!cq->armed)
		return;
	cq->armed = false;
	if (cq->channel && write(cq->channel->fd, &one, sizeof(one)) != sizeof(one))
		fake_fatal("eventfd is full");
}

void fake_cq_push(struct verve_net_cq *cq, const struct verve_net_wc *wc, struct verve_net_qp *qp,
		  uint32_t number)
{
	if (cq->count == cq->depth)
		fake_fatal("CQ overrun: %u entries wait and one more comes (%s, status %u)",
			   cq->depth, wc->opcode == VERVE_NET_WC_SEND ? "send" : "receive",
			   wc->status);
	*entry_at(cq, cq->count++) = (struct entry){.wc = *wc, .qp = qp, .number = number};
	if (cq->count > fake_world.stats.max_cq)
		fake_world.stats.max_cq = cq->count;
	notify(cq);
}

uint32_t fake_net_cq_count(const struct verve_net_cq *cq)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < cq->count; i++)
		count += !entry_at((struct verve_net_cq *)cq, i)->gone;
	return count;
}

uint64_t fake_cq_digest(const struct verve_net_cq *cq, uint64_t digest)
{
	for (uint32_t i = 0; i < cq->count; i++) {
		const struct entry *entry = entry_at((struct verve_net_cq *)cq, i);
		uint32_t head = entry->wc.opcode == VERVE_NET_WC_SEND ? 0 : entry->number;

		digest = fake_mix(digest, (uint64_t)entry->wc.opcode << 32 | entry->wc.status);
		digest = fake_mix(digest, (uint64_t)head << 32 | entry->wc.byte_len);
	}
	return fake_mix(digest, cq->count);
}

void fake_cq_forget(struct verve_net_cq *cq, struct verve_net_qp *qp, uint32_t qp_num)
{
	for (uint32_t i = 0; i < cq->count; i++) {
		struct entry *entry = entry_at(cq, i);

		if (entry->wc.qp_num != qp_num)
			continue;
		if (entry->qp == qp)
			entry->qp = NULL;
		if (fake_world.config.close_cleans_cq && !entry->gone) {
			entry->gone = true;
			fake_world.stats.lost_recvs += entry->wc.opcode != VERVE_NET_WC_SEND;
		}
	}
}

void fake_net_cq_break(struct verve_net_cq *cq)
{
	cq->broken = true;
}

int verve_net_cq_poll(struct verve_net_cq *cq, int max, struct verve_net_wc *wc)
{
	int count = 0;

	if (cq->broken)
		return -FI_EIO;
	if (cq->dev->host->removed)
		return -FI_ENODEV;
	while (cq->count && count < max) {
		struct entry *entry = entry_at(cq, 0);

		cq->head = cq->head + 1 < cq->depth ? cq->head + 1 : 0;
		cq->count--;
		if (entry->qp)
			fake_qp_polled(entry->qp, entry->number);
		if (!entry->gone)
			wc[count++] = entry->wc;
	}
	return count;
}

int verve_net_cq_arm(struct verve_net_cq *cq)
{
	cq->armed = true;
	return 0;
}
