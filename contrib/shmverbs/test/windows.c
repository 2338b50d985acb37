/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Windows: memory windows (ibv_alloc_mw(3), ibv_bind_mw(3), ibv_post_send(3)). */
#include <errno.h>
#include <string.h>

#include "side.h"
#include "tests.h"

enum { AT = 8192, LEN = 4096 }; /* the window in the target's memory */

/* Side b has windows, side a uses them. */
struct scene {
	struct side a, b;
};

static void scene_open(struct scene *s)
{
	side_open(&s->a, 0, false);
	side_open_access(&s->b, 1, false, IBV_ACCESS_MW_BIND);
	pair(&s->a, &s->b);
	fill(s->a.buf, SIZE, 1);
	memset(s->b.buf, 0, SIZE);
}

static void scene_close(struct scene *s)
{
	side_close(&s->a);
	side_close(&s->b);
}

static struct ibv_mw_bind_info info_of(struct side *b, int access)
{
	return (struct ibv_mw_bind_info){.mr = b->mr, .addr = (uintptr_t)b->buf + AT, .length = LEN,
					 .mw_access_flags = access};
}

static int bind_1(struct side *b, struct ibv_mw *mw, uint64_t id, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = {.wr_id = id, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};

	return ibv_bind_mw(b->qp, mw, &bind);
}

static int bind_2(struct side *b, struct ibv_mw *mw, uint64_t id, uint32_t rkey,
		  struct ibv_mw_bind_info info)
{
	struct ibv_send_wr wr = {.wr_id = id,
				 .opcode = IBV_WR_BIND_MW,
				 .send_flags = IBV_SEND_SIGNALED,
				 .bind_mw = {.mw = mw, .rkey = rkey, .bind_info = info}},
			   *bad;

	return ibv_post_send(b->qp, &wr, &bad);
}

/* Connects both sides anew, after an error. */
static void again(struct scene *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_wc wc;

	CHECK(!ibv_modify_qp(s->a.qp, &attr, IBV_QP_STATE) &&
	      !ibv_modify_qp(s->b.qp, &attr, IBV_QP_STATE));
	CHECK(!to_init(s->a.qp) && !to_init(s->b.qp));
	pair(&s->a, &s->b);
	while (ibv_poll_cq(s->a.scq, 1, &wc) || ibv_poll_cq(s->b.scq, 1, &wc) ||
	       ibv_poll_cq(s->b.rcq, 1, &wc))
		;
}

static bool write_is(struct scene *s, uint32_t rkey, uint64_t addr, size_t len,
		     enum ibv_wc_status status)
{
	return !post(&s->a, IBV_WR_RDMA_WRITE, 5, 0, len, IBV_SEND_SIGNALED, addr, rkey) &&
	       got(s->a.scq, 5, status);
}

void test_window_1(void)
{
	struct scene s;
	struct ibv_mw *mw;
	uint32_t first, second;
	uint64_t addr;

	scene_open(&s);
	addr = (uintptr_t)s.b.buf + AT;
	mw = ibv_alloc_mw(s.b.pd, IBV_MW_TYPE_1);
	CHECK(mw && !bind_1(&s.b, mw, 1, info_of(&s.b, IBV_ACCESS_REMOTE_WRITE)));
	first = mw->rkey;
	CHECK(got(s.b.scq, 1, IBV_WC_SUCCESS) && first != s.b.mr->rkey);
	CHECK(write_is(&s, first, addr, LEN, IBV_WC_SUCCESS) && is_filled(s.b.buf + AT, LEN, 1));
	/* The bounds and the access are those of the window, not of the region. */
	CHECK(write_is(&s, first, addr + 1, LEN, IBV_WC_REM_ACCESS_ERR));
	again(&s);
	CHECK(!post(&s.a, IBV_WR_RDMA_READ, 6, 0, 8, IBV_SEND_SIGNALED, addr, first));
	CHECK(got(s.a.scq, 6, IBV_WC_REM_ACCESS_ERR));
	again(&s);
	/* Bound anew, the old key opens nothing. */
	CHECK(!bind_1(&s.b, mw, 2,
		      info_of(&s.b, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)));
	CHECK(got(s.b.scq, 2, IBV_WC_SUCCESS));
	second = mw->rkey;
	CHECK(second != first && write_is(&s, second, addr, 8, IBV_WC_SUCCESS));
	CHECK(write_is(&s, first, addr, 8, IBV_WC_REM_ACCESS_ERR));
	again(&s);
	/* The region cannot go while the window is bound. A length of zero ends the window. */
	CHECK(ibv_dereg_mr(s.b.mr) == EINVAL);
	CHECK(!bind_1(&s.b, mw, 3, (struct ibv_mw_bind_info){0}) &&
	      got(s.b.scq, 3, IBV_WC_SUCCESS));
	CHECK(write_is(&s, second, addr, 8, IBV_WC_REM_ACCESS_ERR));
	CHECK(!ibv_dealloc_mw(mw));
	scene_close(&s);
}

void test_window_2b(void)
{
	struct scene s;
	struct ibv_mw *mw;
	uint32_t rkey;
	uint64_t addr;

	scene_open(&s);
	addr = (uintptr_t)s.b.buf + AT;
	mw = ibv_alloc_mw(s.b.pd, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	CHECK(!bind_2(&s.b, mw, 1, rkey, info_of(&s.b, IBV_ACCESS_REMOTE_WRITE)));
	CHECK(got(s.b.scq, 1, IBV_WC_SUCCESS) && mw->rkey == rkey);
	CHECK(write_is(&s, rkey, addr, LEN, IBV_WC_SUCCESS) && is_filled(s.b.buf + AT, LEN, 1));
	/* The owner ends the window. */
	CHECK(!post(&s.b, IBV_WR_LOCAL_INV, 2, 0, 0, IBV_SEND_SIGNALED, 0, rkey));
	CHECK(got(s.b.scq, 2, IBV_WC_SUCCESS));
	CHECK(write_is(&s, rkey, addr, 8, IBV_WC_REM_ACCESS_ERR));
	again(&s);
	/* Bound again, the window has addresses from zero. */
	rkey = ibv_inc_rkey(rkey);
	CHECK(!bind_2(&s.b, mw, 3, rkey,
		      info_of(&s.b, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)));
	CHECK(got(s.b.scq, 3, IBV_WC_SUCCESS) && write_is(&s, rkey, 100, 8, IBV_WC_SUCCESS));
	CHECK(is_filled(s.b.buf + AT + 100, 8, 1));
	/* A bind of a bound window is an error, and the end of the queue pair. */
	CHECK(!bind_2(&s.b, mw, 4, ibv_inc_rkey(rkey), info_of(&s.b, IBV_ACCESS_REMOTE_WRITE)));
	CHECK(got(s.b.scq, 4, IBV_WC_MW_BIND_ERR) && state(s.b.qp) == IBV_QPS_ERR);
	again(&s);
	/* A key with another index is refused. */
	CHECK(bind_2(&s.b, mw, 5, rkey + 256, info_of(&s.b, IBV_ACCESS_REMOTE_WRITE)) == EINVAL);
	CHECK(!ibv_dealloc_mw(mw)); /* although the window is bound */
	scene_close(&s);
}

void test_window_invalidated(void)
{
	struct scene s;
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t rkey;

	scene_open(&s);
	mw = ibv_alloc_mw(s.b.pd, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	CHECK(!bind_2(&s.b, mw, 1, rkey, info_of(&s.b, IBV_ACCESS_REMOTE_WRITE)) &&
	      got(s.b.scq, 1, 0));
	CHECK(!post_recv(&s.b, 7, 0, 64) && !post_recv(&s.b, 8, 0, 64));
	CHECK(!post(&s.a, IBV_WR_SEND_WITH_INV, 2, 0, 8, IBV_SEND_SIGNALED, 0, rkey) &&
	      got(s.a.scq, 2, 0));
	CHECK(get(s.b.rcq, &wc, 5) == 1 && !wc.status && wc.wc_flags & IBV_WC_WITH_INV &&
	      wc.invalidated_rkey == rkey && wc.byte_len == 8);
	CHECK(write_is(&s, rkey, (uintptr_t)s.b.buf + AT, 8, IBV_WC_REM_ACCESS_ERR));
	again(&s);
	/* A window that is not bound cannot be ended. */
	CHECK(!post_recv(&s.b, 9, 0, 64));
	CHECK(!post(&s.a, IBV_WR_SEND_WITH_INV, 3, 0, 8, 0, 0, rkey) &&
	      got(s.a.scq, 3, IBV_WC_REM_INV_REQ_ERR));
	CHECK(!ibv_dealloc_mw(mw));
	scene_close(&s);
}

/*
 * A window of type 2B is open to the peer of its queue pair alone, a window of type 1 to all
 * peers.
 */
void test_window_others(void)
{
	struct side a, b, c, d;
	struct ibv_mw *one, *two;
	uint32_t rkey;
	uint64_t addr;

	side_open(&a, 0, false);
	side_open_access(&b, 1, false, IBV_ACCESS_MW_BIND);
	pair(&a, &b);
	side_open(&d, 0, false);
	c = b;
	c.qp = make_qp(&b);
	pair(&d, &c);
	addr = (uintptr_t)b.buf + AT;
	one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(two->rkey);
	CHECK(!bind_1(&b, one, 1, info_of(&b, IBV_ACCESS_REMOTE_WRITE)) && got(b.scq, 1, 0));
	CHECK(!bind_2(&b, two, 2, rkey, info_of(&b, IBV_ACCESS_REMOTE_WRITE)) && got(b.scq, 2, 0));
	CHECK(!post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, IBV_SEND_SIGNALED, addr, one->rkey) &&
	      got(d.scq, 3, 0));
	CHECK(!post(&d, IBV_WR_RDMA_WRITE, 4, 0, 8, IBV_SEND_SIGNALED, addr, rkey));
	CHECK(got(d.scq, 4, IBV_WC_REM_ACCESS_ERR));
	CHECK(!post(&a, IBV_WR_RDMA_WRITE, 5, 0, 8, IBV_SEND_SIGNALED, addr, rkey) &&
	      got(a.scq, 5, 0));
	CHECK(!ibv_dealloc_mw(one) && !ibv_dealloc_mw(two));
	CHECK(!ibv_destroy_qp(c.qp));
	side_close(&d);
	side_close(&a);
	side_close(&b);
}

void test_window_refused(void)
{
	struct scene s;
	struct ibv_mr *plain;
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;

	scene_open(&s);
	plain = ibv_reg_mr(s.b.pd, s.b.buf, SIZE, ALL_ACCESS);
	mw = ibv_alloc_mw(s.b.pd, IBV_MW_TYPE_1);
	/* The region does not allow windows. */
	info = info_of(&s.b, IBV_ACCESS_REMOTE_WRITE);
	info.mr = plain;
	CHECK(!bind_1(&s.b, mw, 1, info) && got(s.b.scq, 1, IBV_WC_MW_BIND_ERR));
	again(&s);
	/* The window is longer than its region. */
	info = info_of(&s.b, IBV_ACCESS_REMOTE_WRITE);
	info.length = SIZE;
	CHECK(!bind_1(&s.b, mw, 2, info) && got(s.b.scq, 2, IBV_WC_MW_BIND_ERR));
	again(&s);
	/* The owner's own work requests cannot use the key of a window. */
	CHECK(!bind_1(&s.b, mw, 3, info_of(&s.b, IBV_ACCESS_REMOTE_WRITE)) && got(s.b.scq, 3, 0));
	s.b.mr->lkey = mw->rkey;
	CHECK(!post(&s.b, IBV_WR_SEND, 4, AT, 8, 0, 0, 0) && got(s.b.scq, 4, IBV_WC_LOC_PROT_ERR));
	s.b.mr->lkey = s.b.mr->rkey;
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(plain));
	scene_close(&s);
}
