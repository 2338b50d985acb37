/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Storm: all to all, between many processes. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdio.h>

#include "side.h"
#include "tests.h"

/* PROCS processes, each sends COUNT messages of all sizes to each; all are checked. */
enum { PROCS = 12, COUNT = 400 };

struct table {
	pthread_barrier_t barrier;
	struct name name[PROCS][PROCS];
};

/* Takes what has come, checks that each sender's messages come in order, whole; returns how many. */
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

static void storm_run(struct table *t, int me)
{
	struct side s;
	struct ibv_qp *qps[PROCS], *own;
	struct ibv_wc wc;
	int sent[PROCS] = {0}, out[PROCS] = {0}, got[PROCS] = {0}, total = 0, left = PROCS * COUNT;
	uint32_t seed = me;

	side_open(&s, me % 2, true);
	own = s.qp;
	for (int i = 0; i < PROCS; i++) {
		s.qp = qps[i] = make_qp(&s);
		t->name[me][i] = name_of(&s);
	}
	for (int i = 0; i < 128; i++)
		post_recv(&s, i, i * 16384, 16384);
	pthread_barrier_wait(&t->barrier);
	for (int i = 0; i < PROCS; i++)
		CHECK(!to_rtr(qps[i], &t->name[i][me]) && !to_rts(qps[i]));
	while (total < PROCS * COUNT || left) {
		int to = (seed = seed * 1103515245 + 12345) >> 16;
		size_t n;

		to %= PROCS;
		n = 12 + (seed >> 8) % (seed % 7 ? 500 : 12000);
		if (sent[to] < COUNT && out[to] < 1) {
			unsigned char *p = s.buf + (2 << 20) + to * 16384;

			fill(p, n, me + sent[to]);
			*(int *)p = me;
			*(int *)(p + 4) = sent[to];
			s.qp = qps[to];
			CHECK(!post(&s, IBV_WR_SEND, to, (2 << 20) + to * 16384, n,
				    IBV_SEND_SIGNALED, 0, 0));
			sent[to]++;
			out[to]++;
		}
		while (ibv_poll_cq(s.scq, 1, &wc) > 0) {
			CHECK(!wc.status);
			out[wc.wr_id]--;
			left--;
		}
		total += take_all(&s, got);
		if (failed_here)
			_exit(1);
	}
	pthread_barrier_wait(&t->barrier);
	for (int i = 0; i < PROCS; i++)
		ibv_destroy_qp(qps[i]);
	s.qp = own;
	side_close(&s);
	_exit(failed_here);
}

void test_storm(void)
{
	struct table *t =
	    mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
