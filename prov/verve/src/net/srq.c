/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Shared receive queues: opening, posting, and the queue pairs that take their buffers. */
#include "net/srq.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "net/td.h"
#include "net/verbs.h"

enum {
	BATCH = 32, /* receive buffers per doorbell */
};

int verve_net_srq_open(struct verve_net_device *dev, uint32_t depth, struct verve_net_srq **srqp)
{
	struct verve_net_srq *srq = calloc(1, sizeof(*srq));
	struct ibv_srq_init_attr init = {
		.srq_context = srq,
		.attr = {.max_wr = depth, .max_sge = 1},
	};
	int ret;

	if (!srq)
		return -FI_ENOMEM;
	errno = 0;
	srq->srq = ibv_create_srq(dev->pd, &init);
	if (!srq->srq) {
		ret = verve_net_error(errno);
		VERVE_WARN(EP_CTRL, "%s: cannot open a shared receive queue of %u (the device has "
			   "%u): %s%s\n", dev->port.device, depth, dev->port.limits.srq_wr,
			   fi_strerror(-ret), verve_net_queue_remedy(ret));
		free(srq);
		return ret;
	}
	verve_td_open(dev, &srq->td);
	verve_lock_init(&srq->lock, false);
	LIST_INIT(&srq->users);
	*srqp = srq;
	return 0;
}

void verve_net_srq_close(struct verve_net_srq *srq)
{
	int ret = ibv_destroy_srq(srq->srq);

	verve_td_close(&srq->td);
	if (ret)
		VERVE_WARN(EP_CTRL, "cannot close a shared receive queue: %s\n", strerror(ret));
	verve_lock_fini(&srq->lock);
	free(srq);
}

void verve_srq_join(struct verve_net_srq *srq, struct verve_srq_user *user)
{
	verve_lock_acquire(&srq->lock);
	user->serial = srq->opened++;
	LIST_INSERT_HEAD(&srq->users, user, link);
	verve_lock_release(&srq->lock);
}

void verve_srq_leave(struct verve_net_srq *srq, struct verve_srq_user *user)
{
	verve_lock_acquire(&srq->lock);
	srq->closed++;
	LIST_REMOVE(user, link);
	verve_lock_release(&srq->lock);
}

uint32_t verve_net_srq_opened(struct verve_net_srq *srq)
{
	uint32_t count;

	verve_lock_acquire(&srq->lock);
	count = srq->opened;
	verve_lock_release(&srq->lock);
	return count;
}

uint32_t verve_net_srq_closed(struct verve_net_srq *srq)
{
	uint32_t count;

	verve_lock_acquire(&srq->lock);
	count = srq->closed;
	verve_lock_release(&srq->lock);
	return count;
}

uint32_t verve_net_srq_older(struct verve_net_srq *srq, uint32_t serial)
{
	const struct verve_srq_user *user;
	uint32_t count = 0;

	verve_lock_acquire(&srq->lock);
	LIST_FOREACH(user, &srq->users, link)
		count += (int32_t)(user->serial - serial) < 0;
	verve_lock_release(&srq->lock);
	return count;
}

int verve_net_srq_post(struct verve_net_srq *srq, const struct verve_net_recv *recv, uint32_t count,
		       uint32_t *posted)
{
	struct ibv_recv_wr chain[BATCH], *bad;

	*posted = 0;
	while (*posted < count) {
		uint32_t batch = count - *posted < BATCH ? count - *posted : BATCH;
		const struct verve_net_recv *first = &recv[*posted];
		int ret;

		for (uint32_t i = 0; i < batch; i++) {
			chain[i].wr_id = first[i].wr_id;
			chain[i].sg_list = (struct ibv_sge *)(uintptr_t)&first[i].sge;
			chain[i].num_sge = 1;
			chain[i].next = &chain[i + 1];
		}
		chain[batch - 1].next = NULL;
		bad = chain;
		ret = ibv_post_srq_recv(srq->srq, chain, &bad);
		if (__builtin_expect(ret, 0)) {
			/* The device took every buffer before *bad, and none from there on. */
			for (struct ibv_recv_wr *wr = chain; wr && wr != bad; wr = wr->next)
				++*posted;
			return verve_net_error(ret);
		}
		*posted += batch;
	}
	return 0;
}
