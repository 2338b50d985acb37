/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The device takes only a part of a list of buffers, or gives no queue. */
#include "net/srq.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "net/verbs.h"

enum { LIST = 40 }; /* more buffers than one doorbell posts */

static uint64_t taken[2 * LIST]; /* wr_id of each buffer that the device took */
static uint32_t count, room;
static struct fi_provider provider = {.name = "verve"};

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	for (; wr; wr = wr->next) {
		if (count == room) {
			*bad = wr;
			return ENOMEM;
		}
		taken[count++] = wr->wr_id;
	}
	return 0;
}

/* The device has room for that many buffers at a time; posting goes on until it took all. */
static void post_all(uint32_t rooms)
{
	struct ibv_context context = {.ops.post_srq_recv = post_srq_recv};
	struct ibv_srq handle = {.context = &context};
	struct verve_net_srq srq = {.srq = &handle};
	struct verve_net_recv recv[LIST];
	uint32_t done = 0;

	for (uint32_t i = 0; i < LIST; i++)
		recv[i] = (struct verve_net_recv){.wr_id = i};
	count = room = 0;
	while (done < LIST) {
		uint32_t posted = UINT32_MAX;
		int ret;

		room += rooms;
		ret = verve_net_srq_post(&srq, recv + done, LIST - done, &posted);
		cr_assert_leq(posted, LIST - done);
		done += posted;
		cr_expect_eq(ret, done < LIST ? -ENOMEM : 0);
		cr_assert_eq(count, done);
	}
	for (uint32_t i = 0; i < LIST; i++)
		cr_expect_eq(taken[i], i);
}

Test(srq, each_buffer_is_posted_once)
{
	verve_log_provider = &provider;
	for (uint32_t rooms = 1; rooms <= LIST; rooms++)
		post_all(rooms);
}

/* Takes the place of libibverbs's: a driver that does not say why it fails. */
struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	(void)pd, (void)init;
	return NULL;
}

/* What an earlier call left in errno is not the reason. */
Test(srq, driver_that_does_not_say_why)
{
	struct verve_net_device dev = {.pd = NULL};
	struct verve_net_srq *srq;

	verve_log_provider = &provider;
	errno = EAGAIN;
	cr_expect_eq(verve_net_srq_open(&dev, 1, &srq), -FI_EIO);
}
