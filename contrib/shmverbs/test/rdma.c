/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RDMA: writes, reads, atomics, and keys that open nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

static struct side *counter_at;

void test_rdma(void)
{
	static const size_t sizes[] = {0, 1, 8, 100, 4096, 100000, 1 << 20};
	struct side a, b;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t n = sizes[i];

		fill(a.buf, n, i);
		memset(b.buf, 0xee, n + 16);
		CHECK(!post(&a, IBV_WR_RDMA_WRITE, 1, 0, n, IBV_SEND_SIGNALED, (uintptr_t)b.buf + 8,
			    b.mr->rkey));
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status && wc.opcode == IBV_WC_RDMA_WRITE);
		CHECK(is_filled(b.buf + 8, n, i) && b.buf[7] == 0xee && b.buf[8 + n] == 0xee);
		CHECK(!post(&a, IBV_WR_RDMA_READ, 2, 2 << 20, n, IBV_SEND_SIGNALED,
			    (uintptr_t)b.buf + 8, b.mr->rkey));
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status && wc.opcode == IBV_WC_RDMA_READ &&
		      wc.byte_len == n);
		CHECK(is_filled(a.buf + (2 << 20), n, i));
		CHECK(!post_recv(&b, 5, 0, 0));
		CHECK(!post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, n, IBV_SEND_SIGNALED,
			    (uintptr_t)b.buf, b.mr->rkey));
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status);
		CHECK(get(b.rcq, &wc, 20) == 1 && !wc.status &&
		      wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == n && wc.wr_id == 5 &&
		      wc.imm_data == htonl(77));
		CHECK(is_filled(b.buf, n, i));
	}
	side_close(&a);
	side_close(&b);
}

static void denied(int op, int64_t off, size_t len, int access, int stale)
{
	struct side a, b;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	uint32_t rkey;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	mr = ibv_reg_mr(b.pd, b.buf + 4096, 4096, access);
	rkey = mr->rkey;
	fill(b.buf, SIZE, 3);
	memset(a.buf, 1, 8192);
	CHECK(!post_recv(&b, 1, 0, 64));
	if (stale) {
		CHECK(!ibv_dereg_mr(mr));
		mr = stale == 2 ? ibv_reg_mr(b.pd, b.buf + 4096, 4096, access) : NULL;
	}
	CHECK(!post(&a, op, 1, 0, len, 0, (uintptr_t)b.buf + 4096 + off, rkey));
	CHECK(!post(&a, IBV_WR_SEND, 2, 0, 8, 0, 0, 0));
	CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_REM_ACCESS_ERR && wc.wr_id == 1);
	CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 2);
	CHECK(get(b.rcq, &wc, 20) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 1);
	CHECK(state(a.qp) == IBV_QPS_ERR && state(b.qp) == IBV_QPS_ERR &&
	      is_filled(b.buf, SIZE, 3));
	CHECK(!post_recv(&b, 9, 0, 64) && get(b.rcq, &wc, 20) == 1 && wc.wr_id == 9 &&
	      wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(!post(&b, IBV_WR_SEND, 3, 0, 8, 0, 0, 0) && get(b.scq, &wc, 20) == 1 &&
	      wc.status == IBV_WC_WR_FLUSH_ERR);
	if (mr)
		CHECK(!ibv_dereg_mr(mr));
	side_close(&a);
	side_close(&b);
}

void test_keys(void)
{
	denied(IBV_WR_RDMA_WRITE, 1, 4096, ALL_ACCESS, 0);
	denied(IBV_WR_RDMA_WRITE, -1, 8, ALL_ACCESS, 0);
	denied(IBV_WR_RDMA_READ, 4096, 1, ALL_ACCESS, 0);
	denied(IBV_WR_RDMA_READ, 0, 8, ALL_ACCESS & ~IBV_ACCESS_REMOTE_READ, 0);
	denied(IBV_WR_RDMA_WRITE, 0, 8, ALL_ACCESS & ~IBV_ACCESS_REMOTE_WRITE, 0);
	denied(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, ALL_ACCESS & ~IBV_ACCESS_REMOTE_ATOMIC, 0);
	denied(IBV_WR_RDMA_WRITE, 0, 8, ALL_ACCESS, 1);
	denied(IBV_WR_RDMA_WRITE, 0, 8, ALL_ACCESS, 2);
}

void test_iova(void)
{
	struct side a, b;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	mr = ibv_reg_mr_iova(b.pd, b.buf + 4096, 4096, 0, ALL_ACCESS);
	fill(a.buf, 100, 9);
	CHECK(mr && !post(&a, IBV_WR_RDMA_WRITE, 1, 0, 100, IBV_SEND_SIGNALED, 50, mr->rkey));
	CHECK(get(a.scq, &wc, 20) == 1 && !wc.status && is_filled(b.buf + 4096 + 50, 100, 9));
	ibv_dereg_mr(mr);
	CHECK(!ibv_reg_mr(b.pd, (void *)4096, 4096, ALL_ACCESS) && errno == EFAULT);
	CHECK(!ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	side_close(&a);
	side_close(&b);
}

void test_local_key(void)
{
	struct side a, b;
	struct ibv_wc wc;

	side_open(&a, 0, false);
	side_open(&b, 1, true);
	pair(&a, &b);
	a.mr->lkey ^= 1;
	CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, 0, 0, 0));
	a.mr->lkey ^= 1;
	CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_LOC_PROT_ERR &&
	      state(a.qp) == IBV_QPS_ERR);
	CHECK(state(b.qp) == IBV_QPS_RTS);
	side_close(&a);
	side_close(&b);
}

static void *add_many(void *arg)
{
	struct side *s = arg;
	struct ibv_wc wc;

	for (int i = 0; i < 5000; i++)
		if (post(s, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 8, IBV_SEND_SIGNALED,
			 (uintptr_t)counter_at->buf, counter_at->mr->rkey) ||
		    get(s->scq, &wc, 1) != 1 || wc.status)
			return "failed";
	return NULL;
}

void test_atomics(void)
{
	struct side a[2], b, c;
	struct ibv_wc wc;
	pthread_t threads[2];
	void *ret;

	side_open(&b, 1, true);
	side_open(&a[0], 0, false);
	pair(&a[0], &b);
	c = b;
	c.qp = make_qp(&b);
	side_open(&a[1], 0, false);
	pair(&a[1], &c);
	counter_at = &b;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, add_many, &a[i]);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], &ret);
		CHECK(!ret);
	}
	CHECK(*(uint64_t *)b.buf == 30000);
	CHECK(!post(&a[0], IBV_WR_ATOMIC_CMP_AND_SWP, 30000, 8, 8, IBV_SEND_SIGNALED,
		    (uintptr_t)b.buf, b.mr->rkey));
	CHECK(get(a[0].scq, &wc, 20) == 1 && !wc.status && *(uint64_t *)b.buf == 30001 &&
	      *(uint64_t *)(a[0].buf + 8) == 30000);
	CHECK(!post(&a[0], IBV_WR_ATOMIC_CMP_AND_SWP, 30000, 8, 8, IBV_SEND_SIGNALED,
		    (uintptr_t)b.buf, b.mr->rkey));
	CHECK(get(a[0].scq, &wc, 20) == 1 && !wc.status && *(uint64_t *)b.buf == 30001 &&
	      *(uint64_t *)(a[0].buf + 8) == 30001);
	CHECK(!post(&a[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 8, 8, 0, (uintptr_t)b.buf + 4,
		    b.mr->rkey));
	CHECK(get(a[0].scq, &wc, 20) == 1 && wc.status == IBV_WC_REM_INV_REQ_ERR);
	CHECK(!ibv_destroy_qp(c.qp));
	side_close(&a[0]);
	side_close(&a[1]);
	side_close(&b);
}
