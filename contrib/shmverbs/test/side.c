/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

const struct knobs knobs_default = {.timeout = 14, .rnr_retry = 7, .rnr_timer = 12, .global = true};
struct knobs knobs = {.timeout = 14, .rnr_retry = 7, .rnr_timer = 12, .global = true};
int failed_here;

bool check(bool good, const char *function, int line, const char *what)
{
	if (!good) {
		failed_here++;
		printf("%s:%d: %s (errno %d)\n", function, line, what, errno);
	}
	return good;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

struct ibv_context *open_dev(int i)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[i]);

	ibv_free_device_list(list);
	return ctx;
}

int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				   .pkey_index = knobs.pkey_index, .qp_access_flags = ALL_ACCESS};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

struct ibv_qp *make_qp(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->scq, .recv_cq = s->rcq, .srq = s->srq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = s->srq ? 0 : DEPTH, .max_send_sge = 4,
			.max_recv_sge = 4, .max_inline_data = 64},
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	return qp && to_init(qp) ? NULL : qp;
}

void side_open_access(struct side *s, int dev, bool srq, int access)
{
	struct ibv_srq_init_attr sinit = {.attr = {.max_wr = 256, .max_sge = 4}};

	memset(s, 0, sizeof(*s));
	s->ctx = open_dev(dev);
	s->pd = ibv_alloc_pd(s->ctx);
	s->channel = ibv_create_comp_channel(s->ctx);
	s->scq = ibv_create_cq(s->ctx, 4096, NULL, s->channel, 0);
	s->rcq = ibv_create_cq(s->ctx, 4096, s, s->channel, 0);
	s->srq = srq ? ibv_create_srq(s->pd, &sinit) : NULL;
	s->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->mr = ibv_reg_mr(s->pd, s->buf, SIZE, ALL_ACCESS | access);
	s->qp = make_qp(s);
	if (!CHECK(s->ctx && s->pd && s->channel && s->scq && s->rcq && s->mr && s->qp))
		exit(1);
}

void side_open(struct side *s, int dev, bool srq)
{
	side_open_access(s, dev, srq, 0);
}

void side_close(struct side *s)
{
	if (s->qp)
		CHECK(!ibv_destroy_qp(s->qp));
	if (s->srq)
		CHECK(!ibv_destroy_srq(s->srq));
	CHECK(!ibv_dereg_mr(s->mr));
	CHECK(!ibv_destroy_cq(s->scq));
	CHECK(!ibv_destroy_cq(s->rcq));
	CHECK(!ibv_destroy_comp_channel(s->channel));
	CHECK(!ibv_dealloc_pd(s->pd));
	CHECK(!ibv_close_device(s->ctx));
	munmap(s->buf, SIZE);
}

struct name name_of(struct side *s)
{
	struct name n = {.qpn = s->qp->qp_num,
			 .psn = s->qp->qp_num * 7 & 0xffffff,
			 .rkey = s->mr->rkey,
			 .addr = (uintptr_t)s->buf};
	struct ibv_port_attr port;

	ibv_query_gid(s->ctx, 1, knobs.gid_index, &n.gid);
	if (!ibv_query_port(s->ctx, 1, &port))
		n.lid = port.lid;
	return n;
}

int to_rtr(struct ibv_qp *qp, const struct name *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qpn,
		.rq_psn = to->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = knobs.rnr_timer,
		.ah_attr = {.is_global = knobs.global,
			    .port_num = 1,
			    .dlid = to->lid,
			    .grh = {.dgid = to->gid,
				    .hop_limit = 4,
				    .sgid_index = knobs.gid_index}},
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = knobs.timeout,
		.retry_cnt = 7,
		.rnr_retry = knobs.rnr_retry,
		.sq_psn = qp->qp_num * 7 & 0xffffff,
		.max_rd_atomic = 4,
	};

	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void pair(struct side *a, struct side *b)
{
	struct name an = name_of(a), bn = name_of(b);

	CHECK(!to_rtr(a->qp, &bn) && !to_rtr(b->qp, &an) && !to_rts(a->qp) && !to_rts(b->qp));
}

int post(struct side *s, int op, uint64_t id, size_t off, size_t len, int flags, uint64_t raddr,
	 uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + off, len, s->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op,
				 .send_flags = flags, .imm_data = htonl(77)}, *bad;

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = raddr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = id;
		wr.wr.atomic.swap = id + 1;
	} else {
		wr.wr.rdma.remote_addr = raddr;
		wr.wr.rdma.rkey = rkey;
	}
	if (op == IBV_WR_SEND_WITH_INV || op == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = rkey;
	if (op == IBV_WR_LOCAL_INV)
		wr.num_sge = 0;
	return ibv_post_send(s->qp, &wr, &bad);
}

int post_recv(struct side *s, uint64_t id, size_t off, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + off, len, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) : ibv_post_recv(s->qp, &wr, &bad);
}

int get(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double end = now() + seconds;
	int n;

	do
		n = ibv_poll_cq(cq, 1, wc);
	while (!n && now() < end);
	return n;
}

bool got(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (get(cq, &wc, 10) != 1) {
		printf("no completion\n");
		return false;
	}
	if (wc.wr_id == id && wc.status == status)
		return true;
	printf("completion of %lu: %s\n", wc.wr_id, ibv_wc_status_str(wc.status));
	return false;
}

void fill(unsigned char *p, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = i * 31 + seed + (i >> 8);
}

bool is_filled(const unsigned char *p, size_t n, int seed)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(i * 31 + seed + (i >> 8)))
			return false;
	return true;
}

int state(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
	return attr.qp_state;
}

bool ctl(const char *arguments)
{
	const char *program = getenv("SHMV_CTL");
	char line[256];

	snprintf(line, sizeof(line), "%s %s >/dev/null", program ? program : "shmv-ctl", arguments);
	return !system(line);
}

bool event_is(struct ibv_context *ctx, enum ibv_event_type type, const void *element,
	      double seconds)
{
	struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	bool good;

	if (poll(&fd, 1, seconds * 1000) != 1) {
		printf("no event\n");
		return false;
	}
	if (ibv_get_async_event(ctx, &event))
		return false;
	good = event.event_type == type && (!element || event.element.qp == element);
	if (!good)
		printf("event: %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	return good;
}
