/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Storm: messages between many processes, each with each. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

/*
 * Each of PROCS processes sends COUNT messages of all sizes to each of them, itself too. All
 * messages are checked.
 */
enum { PROCS = 12, COUNT = 400 };

struct table {
	pthread_barrier_t barrier;
	struct name name[PROCS][PROCS];
};

/*
 * Takes the messages that came; checks that those of a sender are whole and in order. Returns
 * their number.
 */
static int take_all(struct side *s, int *got)
{
	struct ibv_wc wc;
	int count = 0;

	while (ibv_poll_cq(s->rcq, 1, &wc) > 0) {
		unsigned char *p = s->buf + wc.wr_id * 16384;
		int from = *(int *)p, k = *(int *)(p + 4);

		CHECK(!wc.status && from >= 0 && from < PROCS && k == got[from]);
		memset(p, 0, 8);
		fill(s->buf + SIZE - 8, 8, from + k);
		memcpy(p, s->buf + SIZE - 8, 8);
		CHECK(is_filled(p, wc.byte_len, from + k));
		got[from]++;
		count++;
		post_recv(s, wc.wr_id, wc.wr_id * 16384, 16384);
	}
	return count;
}

/* One process. */
struct storm {
	struct side side;
	struct ibv_qp *qps[PROCS];
	int sent[PROCS], out[PROCS], got[PROCS]; /* by the other process; out: not yet completed */
	uint32_t seed;
};

static void storm_connect(struct storm *st, struct table *t, int me)
{
	struct side *s = &st->side;
	struct ibv_qp *own;

	side_open(s, me % 2, true);
	own = s->qp;
	for (int i = 0; i < PROCS; i++) {
		s->qp = st->qps[i] = make_qp(s);
		t->name[me][i] = name_of(s);
	}
	s->qp = own;
	for (int i = 0; i < 128; i++)
		post_recv(s, i, i * 16384, 16384);
	pthread_barrier_wait(&t->barrier);
	for (int i = 0; i < PROCS; i++)
		CHECK(!to_rtr(st->qps[i], &t->name[i][me]) && !to_rts(st->qps[i]));
	/* A queue pair that is not in RTR yet is silent, however long its process waits. */
	pthread_barrier_wait(&t->barrier);
}

/* Sends a message of a random length to a random process, if the last one to it is completed. */
static void send_one(struct storm *st, int me)
{
	int to = (st->seed = st->seed * 1103515245 + 12345) >> 16;
	size_t n = 12 + (st->seed >> 8) % (st->seed % 7 ? 500 : 12000), at;
	struct ibv_qp *own = st->side.qp;
	unsigned char *p;

	to %= PROCS;
	if (st->sent[to] == COUNT || st->out[to])
		return;
	at = (2 << 20) + to * 16384;
	p = st->side.buf + at;
	fill(p, n, me + st->sent[to]);
	*(int *)p = me;
	*(int *)(p + 4) = st->sent[to];
	st->side.qp = st->qps[to];
	CHECK(!post(&st->side, IBV_WR_SEND, to, at, n, IBV_SEND_SIGNALED, 0, 0));
	st->side.qp = own;
	st->sent[to]++;
	st->out[to]++;
}

static void storm_run(struct table *t, int me)
{
	struct storm st = {.seed = me};
	int received = 0, left = PROCS * COUNT;
	struct ibv_wc wc;

	storm_connect(&st, t, me);
	while (received < PROCS * COUNT || left) {
		send_one(&st, me);
		while (ibv_poll_cq(st.side.scq, 1, &wc) > 0) {
			CHECK(!wc.status);
			st.out[wc.wr_id]--;
			left--;
		}
		received += take_all(&st.side, st.got);
		if (failed_here)
			_exit(1);
	}
	pthread_barrier_wait(&t->barrier);
	for (int i = 0; i < PROCS; i++)
		ibv_destroy_qp(st.qps[i]);
	side_close(&st.side);
	_exit(failed_here);
}

void test_storm(void)
{
	const int prot = PROT_READ | PROT_WRITE;
	struct table *t = mmap(NULL, sizeof(*t), prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t attr;
	int status;

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&t->barrier, &attr, PROCS);
	fflush(stdout);
	for (int i = 0; i < PROCS; i++)
		if (!fork())
			storm_run(t, i);
	for (int i = 0; i < PROCS; i++)
		CHECK(wait(&status) > 0 && status == 0);
}
