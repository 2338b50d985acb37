/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory windows: what libibverbs is asked to bind, and the wait for the completion. The program is
 * linked with --wrap for each __wrap_ function; others take the place of libibverbs's.
 */
#include "net/mw.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "fake_verbs.h"
#include "net/cq.h"
#include "net/device.h"
#include "net/mr.h"
#include "net/qp.h"
#include "net/srq.h"
#include "net/sys.h"
#include "net/verbs.h"

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev;
static struct ibv_mw handle;
static struct ibv_mr region = {.lkey = 3, .rkey = 0};
static const struct verve_net_mr mr = {.lkey = 3, .handle = &region};
static char memory[64];
static struct ibv_mw_bind asked; /* of the last bind */
static struct ibv_send_wr sent;	 /* the last request for a window for a peer */
static uint32_t sent_by;	 /* the number of its queue pair */
static int posts, refusal;	 /* positive errno of the next bind; 0: it is posted */
static int late;		 /* polls until a completion comes; -1: it never comes */
static int waiting;		 /* polls until the present one comes */
static bool pending;		 /* a completion is to come */
static enum ibv_wc_status status; /* of the completion */
static uint64_t now;
static bool stops; /* the process stands still for 2 s before the poll that finds a completion */
static int open_objects; /* queues and windows */
static bool silent; /* the driver gives no window, and does not say why */

uint64_t __wrap_verve_net_now(void);
void __wrap_verve_net_pause(void);

/* Each look at the clock takes 10 ms. */
uint64_t __wrap_verve_net_now(void)
{
	return now += stops && pending && waiting <= 0 ? 2000000000 : 10000000;
}

void __wrap_verve_net_pause(void)
{
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	static struct ibv_cq cq;

	(void)cqe, (void)channel, (void)vector;
	cq.context = ctx;
	cq.cq_context = context;
	fake_verbs.failed_cq = &cq;
	open_objects++;
	return &cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	open_objects--;
	return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	static struct ibv_srq srq;

	(void)pd;
	srq.srq_context = init->srq_context;
	fake_verbs.failed_srq = &srq;
	open_objects++;
	return &srq;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	(void)srq;
	open_objects--;
	return 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	if (silent)
		return NULL;
	handle = (struct ibv_mw){.context = pd->context, .pd = pd, .rkey = 0x100, .type = type};
	open_objects++;
	return &handle;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	open_objects--;
	return 0;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp;
	if (refusal)
		return refusal;
	asked = *bind;
	mw->rkey = ibv_inc_rkey(mw->rkey);
	posts++;
	pending = late >= 0;
	waiting = late;
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	sent = *wr;
	sent_by = qp->qp_num;
	posts++;
	pending = late >= 0;
	waiting = late;
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	(void)cq, (void)count;
	if (!pending || waiting-- > 0)
		return 0;
	pending = false;
	*wc = (struct ibv_wc){.status = status};
	return 1;
}

static void setup(void)
{
	struct ibv_context *ctx = fake_verbs_context();

	verve_log_provider = &provider;
	fake_verbs_reset();
	fake_verbs.listed = true;
	fake_verbs_add_gid(1, 0, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1", 2);
	fake_verbs_add_addr("eth0", 2, true, "10.0.0.1");
	ctx->ops.alloc_mw = alloc_mw;
	ctx->ops.bind_mw = bind_mw;
	ctx->ops.dealloc_mw = dealloc_mw;
	ctx->ops.poll_cq = poll_cq;
	ctx->ops.post_send = post_send;
	cr_assert_eq(verve_net_device_open("none0", 1, NULL, &dev), 0);
	region.pd = dev->pd;
}

static void teardown(void)
{
	verve_net_device_close(dev);
	fake_verbs_reset();
	cr_expect_eq(open_objects, 0);
}

TestSuite(mw, .init = setup, .fini = teardown);

static struct verve_net_binder *open_all(struct verve_net_mw *mw)
{
	struct verve_net_binder *binder;

	cr_assert_eq(verve_net_binder_open(dev, VERVE_NET_BINDER_PATIENCE, false, &binder), 0);
	cr_assert_eq(verve_net_mw_alloc(dev, false, mw), 0);
	return binder;
}

static void close_all(struct verve_net_binder *binder, struct verve_net_mw *mw)
{
	verve_net_binder_close(binder);
	verve_net_mw_free(mw);
}

/* It connects to its own address and number. */
Test(mw, binder_is_connected_to_itself)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	cr_expect_eq(fake_verbs.rtr.dest_qp_num, 0x123);
	cr_expect_eq(fake_verbs.rtr.rq_psn, fake_verbs.rts.sq_psn);
	cr_expect_eq(fake_verbs.rtr.ah_attr.grh.dgid.raw[15], 1);
	close_all(binder, &mw);
}

Test(mw, bind_asks_for_these_bytes_and_this_access)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	cr_expect_eq(mw.rkey, 0x100);
	cr_assert_eq(verve_net_mw_bind(binder, &mw, &mr, memory + 8, 16,
				       VERVE_NET_REMOTE_READ | VERVE_NET_LOCAL_WRITE), 0);
	cr_expect_eq(mw.rkey, 0x101);
	cr_expect_eq(asked.bind_info.mr, &region);
	cr_expect_eq(asked.bind_info.addr, (uintptr_t)memory + 8);
	cr_expect_eq(asked.bind_info.length, 16);
	cr_expect_eq(asked.bind_info.mw_access_flags, IBV_ACCESS_REMOTE_READ);
	cr_expect(asked.send_flags & IBV_SEND_SIGNALED);
	cr_assert_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 64,
				       VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC), 0);
	cr_expect_eq(asked.bind_info.mw_access_flags,
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	close_all(binder, &mw);
}

/* soft-RoCE's part of libibverbs reads the region, and mlx5's compares the address with it. */
Test(mw, unbind_names_the_region)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	cr_assert_eq(verve_net_mw_bind(binder, &mw, &mr, memory + 8, 16, VERVE_NET_REMOTE_READ), 0);
	cr_assert_eq(verve_net_mw_unbind(binder, &mw, &mr, memory + 8), 0);
	cr_expect_eq(mw.rkey, 0x102);
	cr_expect_eq(asked.bind_info.mr, &region);
	cr_expect_eq(asked.bind_info.addr, (uintptr_t)memory + 8);
	cr_expect_eq(asked.bind_info.length, 0);
	cr_expect_eq(asked.bind_info.mw_access_flags, 0);
	close_all(binder, &mw);
}

/* Type 2B: the program chooses the key, and drivers find the window by its present one. */
Test(mw, window_for_a_peer_is_bound_and_ended_by_requests)
{
	struct verve_net_binder *binder;
	struct verve_net_mw mw;

	cr_assert_eq(verve_net_binder_open(dev, VERVE_NET_BINDER_PATIENCE, false, &binder), 0);
	cr_assert_eq(verve_net_mw_alloc(dev, true, &mw), 0);
	cr_expect_eq(handle.type, IBV_MW_TYPE_2);
	cr_expect_eq(verve_net_mw_next_key(&mw), 0x101);
	cr_assert_eq(verve_net_mw_bind(binder, &mw, &mr, memory + 8, 16, VERVE_NET_REMOTE_READ), 0);
	cr_expect_eq(sent.opcode, IBV_WR_BIND_MW);
	cr_expect_eq(sent.send_flags, IBV_SEND_SIGNALED);
	cr_expect_eq(sent.bind_mw.mw, &handle);
	cr_expect_eq(sent.bind_mw.rkey, 0x101);
	cr_expect_eq(sent.bind_mw.bind_info.mr, &region);
	cr_expect_eq(sent.bind_mw.bind_info.addr, (uintptr_t)memory + 8);
	cr_expect_eq(sent.bind_mw.bind_info.length, 16);
	cr_expect_eq(sent.bind_mw.bind_info.mw_access_flags, IBV_ACCESS_REMOTE_READ);
	cr_expect_eq(mw.rkey, 0x101);
	cr_expect_eq(handle.rkey, 0x101);
	cr_assert_eq(verve_net_mw_unbind(binder, &mw, &mr, memory + 8), 0);
	cr_expect_eq(sent.opcode, IBV_WR_LOCAL_INV);
	cr_expect_eq(sent.invalidate_rkey, 0x101);
	cr_expect_eq(mw.rkey, 0x101);
	cr_expect_eq(verve_net_mw_next_key(&mw), 0x102);
	/* soft-RoCE's error for a window that it cannot end. */
	status = IBV_WC_LOC_QP_OP_ERR;
	cr_expect_eq(verve_net_mw_unbind(binder, &mw, &mr, memory + 8), -FI_EIO);
	cr_assert_eq(verve_net_mw_free(&mw), 0);
	verve_net_binder_close(binder);
}

/* The queue pair that refuses a read fails, and may flush what it has posted itself. */
Test(mw, reads_come_over_another_queue_pair)
{
	struct verve_net_binder *binder;

	cr_assert_eq(verve_net_binder_open(dev, VERVE_NET_BINDER_PATIENCE, true, &binder), 0);
	cr_expect_eq(fake_verbs.rtr.dest_qp_num, 0x123, "the reader is connected to the binder");
	cr_expect_eq(verve_net_binder_read(binder, memory, 1, memory + 8, 2, 8), 0);
	cr_expect_eq(sent.opcode, IBV_WR_RDMA_READ);
	cr_expect_eq(sent.wr.rdma.rkey, 2);
	cr_expect_eq(sent_by, 0x124);
	status = IBV_WC_REM_ACCESS_ERR;
	cr_expect_eq(verve_net_binder_read(binder, memory, 1, memory + 8, 2, 8), -FI_EACCES);
	status = IBV_WC_WR_FLUSH_ERR;
	cr_expect_eq(verve_net_binder_read(binder, memory, 1, memory + 8, 2, 8), -FI_ECONNABORTED);
	verve_net_binder_close(binder);
}

Test(mw, late_completion_is_waited_for)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	late = 4096 + 50;
	cr_expect_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 8, VERVE_NET_REMOTE_READ), 0);
	cr_expect_not(pending);
	close_all(binder, &mw);
}

Test(mw, completion_that_never_comes_is_not_waited_for_for_ever)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	late = -1;
	cr_expect_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 8, VERVE_NET_REMOTE_READ),
		     -FI_ETIMEDOUT);
	cr_expect_lt(now, 2000000000u);
	close_all(binder, &mw);
}

/* The deadline passes while the process is stopped: the device has done the bind long since. */
Test(mw, process_that_stood_still_looks_once_more)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	late = 4096 + 4;
	stops = true;
	cr_expect_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 8, VERVE_NET_REMOTE_READ), 0);
	close_all(binder, &mw);
}

static enum verve_net_fault_kind fault_of(enum ibv_event_type event)
{
	struct verve_net_fault fault;

	fake_verbs.events[fake_verbs.event_count++] = event;
	cr_assert_eq(verve_net_device_async_next(dev, &fault), 0);
	return fault.kind;
}

/* The log must not say that an endpoint has failed, nor that a connection goes on. */
Test(mw, failed_queue_of_a_binder_is_no_endpoints)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);
	struct verve_net_cq *cq;
	struct verve_net_srq *srq;

	cr_expect_eq(fault_of(IBV_EVENT_CQ_ERR), VERVE_NET_FAULT_NONE);
	cr_expect_eq(fault_of(IBV_EVENT_SRQ_ERR), VERVE_NET_FAULT_NONE);
	cr_expect_eq(fault_of(IBV_EVENT_QP_FATAL), VERVE_NET_FAULT_NONE);
	close_all(binder, &mw);
	cr_assert_eq(verve_net_cq_open(dev, 1, NULL, 0, &cq), 0);
	cr_assert_eq(verve_net_srq_open(dev, 1, &srq), 0);
	cr_expect_eq(fault_of(IBV_EVENT_CQ_ERR), VERVE_NET_FAULT_CQ);
	cr_expect_eq(fault_of(IBV_EVENT_SRQ_ERR), VERVE_NET_FAULT_SRQ);
	verve_net_srq_close(srq);
	verve_net_cq_close(cq);
}

/* A window is refused, or its queue pair has failed for another reason. */
Test(mw, answer_differs_from_what_may_pass)
{
	static const enum ibv_wc_status passing[] = {
		IBV_WC_WR_FLUSH_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_RETRY_EXC_ERR};
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		status = passing[i];
		cr_expect_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 8, VERVE_NET_REMOTE_READ),
			     -FI_ECONNABORTED);
	}
	cr_expect_not(verve_net_mw_is_answer(-FI_ECONNABORTED));
	cr_expect_not(verve_net_mw_is_answer(-FI_ETIMEDOUT));
	cr_expect_not(verve_net_mw_is_answer(-FI_ENOMEM));
	cr_expect(verve_net_mw_is_answer(-FI_EIO));
	cr_expect(verve_net_mw_is_answer(-FI_EOPNOTSUPP));
	close_all(binder, &mw);
}

Test(mw, errors_are_told)
{
	struct verve_net_mw mw;
	struct verve_net_binder *binder = open_all(&mw);

	status = IBV_WC_MW_BIND_ERR;
	cr_expect_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 8, VERVE_NET_REMOTE_READ),
		     -FI_EIO);
	refusal = EOPNOTSUPP;
	cr_expect_eq(verve_net_mw_bind(binder, &mw, &mr, memory, 8, VERVE_NET_REMOTE_READ),
		     -FI_EOPNOTSUPP);
	cr_expect_eq(posts, 1);
	close_all(binder, &mw);
}

Test(mw, driver_without_windows_is_not_called)
{
	struct ibv_context *ctx = fake_verbs_context();
	struct verve_net_binder *binder;

	ctx->ops.bind_mw = NULL;
	cr_expect_eq(verve_net_binder_open(dev, VERVE_NET_BINDER_PATIENCE, false, &binder),
		     -FI_EOPNOTSUPP);
	ctx->ops.bind_mw = bind_mw;
	ctx->ops.dealloc_mw = NULL;
	cr_expect_eq(verve_net_binder_open(dev, VERVE_NET_BINDER_PATIENCE, false, &binder),
		     -FI_EOPNOTSUPP);
}

/* What an earlier call left in errno is not the reason. */
Test(mw, driver_that_does_not_say_why)
{
	struct verve_net_mw mw;

	silent = true;
	errno = EAGAIN;
	cr_expect_eq(verve_net_mw_alloc(dev, false, &mw), -FI_EIO);
}
