/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Profiles: the device behaves as a file of ../profiles says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

/* Sizes grow to whole requests; completions go with their queue pair. */
void test_profile_mlx5(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 63, .max_send_sge = 1, .max_inline_data = 220}};
	struct ibv_wc wc;
	struct side a, b;
	struct ibv_qp *qp;

	side_open(&a, 0, false);
	init.send_cq = init.recv_cq = a.scq;
	qp = ibv_create_qp(a.pd, &init);
	CHECK(qp && init.cap.max_inline_data == 252 && init.cap.max_send_wr == 73);
	CHECK(!ibv_destroy_qp(qp));
	init.cap.max_inline_data = 829;
	CHECK(!ibv_create_qp(a.pd, &init) && errno == EINVAL);
	knobs.gid_index = 3;
	side_open(&b, 1, true);
	pair(&a, &b);
	CHECK(!post_recv(&b, 1, 0, 64) && !post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp));
	a.qp = b.qp = NULL;
	CHECK(!ibv_poll_cq(a.scq, 1, &wc) && !ibv_poll_cq(b.rcq, 1, &wc));
	side_close(&a);
	side_close(&b);
	knobs = knobs_default;
}

/* A queue pair in error refuses work. Too much inline data is refused without errno. */
void test_profile_bnxt(void)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = 97}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct side a;

	side_open(&a, 0, false);
	init.send_cq = init.recv_cq = a.scq;
	errno = EAGAIN;
	CHECK(!ibv_create_qp(a.pd, &init) && errno == EAGAIN);
	CHECK(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE));
	CHECK(post(&a, IBV_WR_SEND, 1, 0, 8, 0, 0, 0) == EINVAL);
	side_close(&a);
}

static bool can_talk(int timeout)
{
	struct side a, b;
	struct ibv_wc wc;
	bool good;

	knobs.timeout = timeout;
	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	CHECK(!post_recv(&b, 1, 0, 64) && !post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	good = CHECK(get(a.scq, &wc, 10) == 1) && !wc.status;
	side_close(&a);
	side_close(&b);
	return good;
}

/* A port is reached by each of its LIDs, and by no other. */
static void check_lids(uint8_t lmc)
{
	for (uint16_t i = 0; i <= 1u << lmc; i++) {
		struct name an, bn;
		struct side a, b;

		side_open(&a, 0, false);
		side_open(&b, 1, false);
		an = name_of(&a);
		bn = name_of(&b);
		bn.lid += i;
		CHECK(!to_rtr(a.qp, &bn) && !to_rtr(b.qp, &an) && !to_rts(a.qp) && !to_rts(b.qp));
		CHECK(!post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
			    b.mr->rkey));
		CHECK(got(a.scq, 1, i < 1u << lmc ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR));
		side_close(&a);
		side_close(&b);
	}
}

/* Packets are routed by LID. Two members of a partition talk if one is a full member. */
void test_profile_ib(void)
{
	struct ibv_context *ctx = open_dev(0);
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	__be16 pkey;

	CHECK(!ibv_query_port(ctx, 1, &port) && port.link_layer == IBV_LINK_LAYER_INFINIBAND &&
	      port.lid && port.lmc == 2);
	CHECK(!ibv_query_gid_ex(ctx, 1, 0, &entry, 0) && entry.gid_type == IBV_GID_TYPE_IB &&
	      !entry.ndev_ifindex);
	CHECK(!ibv_query_pkey(ctx, 1, 0, &pkey) && pkey == htobe16(0x7fff));
	CHECK(ibv_get_pkey_index(ctx, 1, htobe16(0xffff)) == 1);
	knobs.global = false;
	knobs.pkey_index = 1;
	knobs.timeout = 10;
	check_lids(port.lmc);
	CHECK(can_talk(10));
	knobs.pkey_index = 0;
	CHECK(!can_talk(10));
	knobs = knobs_default;
	CHECK(!ibv_close_device(ctx));
}

/* Between subnets packets go through the router, and need a global route (with SHMV_SUBNETS). */
void test_profile_subnets(void)
{
	struct side a, b;
	struct name an, bn;

	knobs.pkey_index = 1;
	knobs.timeout = 10;
	CHECK(!can_talk(10));
	side_open(&a, 0, false);
	side_open(&b, 1, false);
	an = name_of(&a);
	bn = name_of(&b);
	an.lid = bn.lid = 0xff;
	CHECK(!to_rtr(a.qp, &bn) && !to_rtr(b.qp, &an) && !to_rts(a.qp) && !to_rts(b.qp));
	CHECK(!post_recv(&b, 1, 0, 64) && !post(&a, IBV_WR_SEND, 2, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(got(a.scq, 2, IBV_WC_SUCCESS));
	side_close(&a);
	side_close(&b);
	knobs = knobs_default;
}

/* Without a global route no packet leaves. */
void test_profile_vf(void)
{
	struct ibv_port_attr port;
	struct side a;
	struct name an;

	side_open(&a, 0, false);
	CHECK(!ibv_query_port(a.ctx, 1, &port) && port.flags & IBV_QPF_GRH_REQUIRED);
	an = name_of(&a);
	knobs.global = false;
	CHECK(to_rtr(a.qp, &an) == EINVAL);
	knobs.global = true;
	CHECK(!to_rtr(a.qp, &an));
	side_close(&a);
	CHECK(can_talk(14));
	knobs = knobs_default;
}

/* A queue pair breaks now and then. Of the sends that it reports as failed, some were executed. */
void test_profile_lossy(void)
{
	int executed = 0, lost = 0;
	struct side a, b;
	struct ibv_wc wc;

	knobs.timeout = 5; /* 1 ms */
	for (int round = 0; round < 40; round++) {
		side_open(&a, 0, false);
		side_open(&b, 1, false);
		pair(&a, &b);
		*(uint64_t *)b.buf = 0;
		for (int i = 1;; i++) {
			*(int *)a.buf = i;
			CHECK(!post(&a, IBV_WR_RDMA_WRITE, i, 0, 4, IBV_SEND_SIGNALED,
				    (uintptr_t)b.buf, b.mr->rkey));
			if (!CHECK(get(a.scq, &wc, 5) == 1))
				return;
			if (!wc.status)
				continue;
			CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
			if (*(int *)b.buf == i)
				executed++;
			else
				lost++;
			break;
		}
		side_close(&a);
		side_close(&b);
	}
	CHECK(executed > 3 && lost > 3);
	knobs = knobs_default;
}

void test_profile_nosrq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 256, .max_sge = 4}};
	struct ibv_device_attr attr;
	struct side a;

	side_open(&a, 0, false);
	CHECK(!ibv_query_device(a.ctx, &attr) && !attr.max_srq);
	CHECK(!ibv_create_srq(a.pd, &init) && errno == EOPNOTSUPP);
	side_close(&a);
}

/* With SHMV_AH=0 there are no address handles; queue pairs do without. */
void test_profile_no_ah(void)
{
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
	struct side a;

	side_open(&a, 0, false);
	CHECK(!ibv_query_gid(a.ctx, 1, 0, &attr.grh.dgid));
	CHECK(!ibv_create_ah(a.pd, &attr) && errno == EOPNOTSUPP);
	side_close(&a);
	CHECK(can_talk(14));
	knobs = knobs_default;
}

/* Rings and memory are charged to RLIMIT_MEMLOCK. */
void test_profile_memlock(void)
{
	struct rlimit limit = {8 << 20, 8 << 20};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	struct side a;
	struct ibv_cq *cq;

	side_open(&a, 0, false);
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	syscall(SYS_capget, &header, data);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	CHECK(!syscall(SYS_capset, &header, data));
	CHECK(!ibv_reg_mr(a.pd, a.buf, SIZE, ALL_ACCESS) &&
	      errno == ENOMEM); /* 4 MiB, and 4 MiB are pinned already */
	cq = ibv_create_cq(a.ctx, 8191, NULL, NULL, 0);
	CHECK(cq != NULL); /* 512 KiB */
	CHECK(!ibv_create_cq(a.ctx, 65535, NULL, NULL, 0) && errno == ENOMEM); /* 4 MiB */
	CHECK(!ibv_destroy_cq(cq));
	side_close(&a);
}

/*
 * With SHMV_WIRE_NS=20000 and SHMV_WIRE_MBPS=1000, 1 MB takes 8 ms one way, and the next one
 * waits behind it.
 */
void test_profile_wire(void)
{
	struct side a, b;
	struct ibv_wc wc;
	double t;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	t = now();
	CHECK(!post(&a, IBV_WR_RDMA_WRITE, 1, 0, 1000000, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
		    b.mr->rkey));
	CHECK(!post(&a, IBV_WR_RDMA_READ, 2, 0, 1000000, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
		    b.mr->rkey));
	CHECK(!post(&a, IBV_WR_RDMA_WRITE, 3, 0, 1000000, IBV_SEND_SIGNALED, (uintptr_t)b.buf,
		    b.mr->rkey));
	CHECK(get(a.scq, &wc, 5) == 1 && !wc.status && now() - t >= 0.008040);
	CHECK(get(a.scq, &wc, 5) == 1 && !wc.status && wc.opcode == IBV_WC_RDMA_READ);
	CHECK(get(a.scq, &wc, 5) == 1 && !wc.status && now() - t >= 0.016040);
	side_close(&a);
	side_close(&b);
}

/* Posts so many reads of 64 KiB. */
static void post_reads(struct side *a, struct side *b, int reads)
{
	for (int i = 0; i < reads; i++)
		CHECK(!post(a, IBV_WR_RDMA_READ, 1, 0, 65536, IBV_SEND_SIGNALED, (uintptr_t)b->buf,
			    b->mr->rkey));
}

/*
 * With SHMV_WIRE_MBPS=1000, a read of 64 KiB takes 0.5 ms. Four may be under way (side.c): a
 * message behind the fourth does not wait, behind the eighth it waits for the end of the fourth.
 */
void test_profile_reads(void)
{
	struct side a, b;
	struct ibv_wc wc;
	double t;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	CHECK(!post_recv(&b, 1, 0, 64) && !post_recv(&b, 2, 0, 64));
	post_reads(&a, &b, 4);
	CHECK(!post(&a, IBV_WR_SEND, 2, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(get(b.rcq, &wc, 5) == 1 && !wc.status);
	for (int i = 0; i < 5; i++)
		CHECK(get(a.scq, &wc, 5) == 1 && !wc.status);
	t = now();
	post_reads(&a, &b, 8);
	CHECK(!post(&a, IBV_WR_SEND, 2, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(get(b.rcq, &wc, 5) == 1 && !wc.status && now() - t >= 4 * 0.000524);
	side_close(&a);
	side_close(&b);
}

/*
 * Answers to reads and a message the other way share the wire, a packet each: the message does not
 * wait for the reads. It is looked for after a read that has ended, so that a pause of this process
 * in between does not count.
 */
void test_profile_turns(void)
{
	struct side a, b;
	struct ibv_wc wc, read;
	int reads = 0, found = 0;
	double t;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	CHECK(!post_recv(&a, 1, 0, 64));
	post_reads(&a, &b, 4);
	CHECK(!post(&b, IBV_WR_SEND, 2, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	for (t = now(); !found && !reads && now() - t < 5;) {
		reads = ibv_poll_cq(a.scq, 1, &read);
		found = ibv_poll_cq(a.rcq, 1, &wc);
	}
	CHECK(found == 1 && !wc.status);
	side_close(&a);
	side_close(&b);
}

/* With SHMV_WIRE_MBPS=1000, 40 messages of 4000 bytes take 1.28 ms, short as they are. */
void test_profile_shorts(void)
{
	struct side a, b;
	struct ibv_wc wc;
	double t;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	pair(&a, &b);
	for (int i = 0; i < 40; i++)
		CHECK(!post_recv(&b, 1, 0, 4096));
	t = now();
	for (int i = 0; i < 40; i++)
		CHECK(!post(&a, IBV_WR_SEND, 1, 0, 4000, 0, 0, 0));
	for (int i = 0; i < 40; i++)
		CHECK(get(b.rcq, &wc, 5) == 1 && !wc.status);
	CHECK(now() - t >= 40 * 0.000032);
	side_close(&a);
	side_close(&b);
}

/* The time of a registration of so many pages; 0: it failed. */
static double time_reg(struct side *s, int pages)
{
	double t = now();
	struct ibv_mr *mr = ibv_reg_mr(s->pd, s->buf, pages * 4096, ALL_ACCESS);

	t = now() - t;
	return CHECK(mr != NULL) && CHECK(!ibv_dereg_mr(mr)) ? t : 0;
}

/*
 * With SHMV_QP_US=3000, SHMV_REG_US=2000, SHMV_REG_NS_PER_PAGE=10000 and SHMV_RESOLVE_MS=50: what
 * firmware and the kernel do takes at least so long.
 */
void test_profile_times(void)
{
	struct side a, b;
	struct name bn;
	double t;

	side_open(&a, 0, false);
	side_open(&b, 1, false);
	bn = name_of(&b);
	t = now();
	CHECK(!to_init(a.qp) && now() - t >= 0.003);
	bn.gid.raw[15] = 77; /* nobody's */
	t = now();
	CHECK(to_rtr(a.qp, &bn) == ETIMEDOUT && now() - t >= 0.050);
	bn = name_of(&b);
	t = now();
	CHECK(!to_rtr(a.qp, &bn) && now() - t >= 0.003);
	CHECK(time_reg(&a, 1) >= 0.002);
	CHECK(time_reg(&a, 512) >= 0.007);
	side_close(&a);
	side_close(&b);
}

/* With SHMV_POPULATE=0 nobody looks whether there is memory; otherwise there must be. */
void test_profile_populate(void)
{
	const char *populate = getenv("SHMV_POPULATE");
	char *hole = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	struct side a;

	if (!CHECK(hole != MAP_FAILED))
		return;
	side_open(&a, 0, false);
	mr = ibv_reg_mr(a.pd, hole, SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (populate && !strcmp(populate, "0"))
		CHECK(mr && !ibv_dereg_mr(mr) && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1);
	else
		CHECK(!mr && errno == EFAULT);
	munmap(hole, SIZE);
	side_close(&a);
}

/* Events and wake-ups come late, but they come. */
void test_profile_hostile(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct side a, b;
	struct ibv_cq *cq;
	void *context;
	double t;

	side_open(&a, 0, true);
	side_open(&b, 1, true);
	pair(&a, &b);
	CHECK(!post_recv(&b, 1, 0, 64) && !ibv_req_notify_cq(b.rcq, 0));
	t = now();
	CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
	CHECK(!ibv_get_cq_event(b.channel, &cq, &context) && cq == b.rcq && now() - t >= 0.001);
	ibv_ack_cq_events(cq, 1);
	CHECK(got(b.rcq, 1, IBV_WC_SUCCESS));
	t = now();
	CHECK(!ibv_modify_qp(b.qp, &attr, IBV_QP_STATE));
	CHECK(event_is(b.ctx, IBV_EVENT_QP_LAST_WQE_REACHED, b.qp, 5) && now() - t >= 0.010);
	side_close(&a);
	side_close(&b);
}
