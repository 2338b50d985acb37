/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Domains: thread domains, and protection domains with one (ibv_alloc_td(3)). */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side.h"
#include "tests.h"

enum { LEN = 65536 };

/* Side a's queue pair is in a parent domain of its protection domain. */
struct scene {
	struct side a, b;
	struct ibv_td *td;
	struct ibv_pd *parent;
};

static void scene_open(struct scene *s)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {0};
	struct ibv_pd *pd;

	side_open(&s->a, 0, false);
	side_open(&s->b, 1, true);
	CHECK(!ibv_destroy_qp(s->a.qp));
	s->td = ibv_alloc_td(s->a.ctx, &td);
	parent.pd = pd = s->a.pd;
	parent.td = s->td;
	s->parent = ibv_alloc_parent_domain(s->a.ctx, &parent);
	if (!CHECK(s->td && s->parent))
		exit(1);
	s->a.pd = s->parent;
	s->a.qp = make_qp(&s->a);
	s->a.pd = pd;
	pair(&s->a, &s->b);
}

/* A region of the protection domain serves queue pairs of the parent domain. */
void test_thread_domain(void)
{
	struct scene s;

	scene_open(&s);
	fill(s.a.buf, LEN, 1);
	CHECK(!post_recv(&s.b, 2, 0, LEN));
	CHECK(!post(&s.a, IBV_WR_SEND, 1, 0, LEN, IBV_SEND_SIGNALED, 0, 0));
	CHECK(got(s.a.scq, 1, IBV_WC_SUCCESS) && got(s.b.rcq, 2, IBV_WC_SUCCESS));
	CHECK(is_filled(s.b.buf, LEN, 1));
	CHECK(!post_recv(&s.a, 4, LEN, LEN));
	CHECK(!post(&s.b, IBV_WR_SEND, 3, 0, LEN, IBV_SEND_SIGNALED, 0, 0));
	CHECK(got(s.b.scq, 3, IBV_WC_SUCCESS) && got(s.a.rcq, 4, IBV_WC_SUCCESS));
	CHECK(is_filled(s.a.buf + LEN, LEN, 1));
	CHECK(ibv_dealloc_td(s.td) == EBUSY && ibv_dealloc_pd(s.parent) == EBUSY);
	CHECK(!ibv_destroy_qp(s.a.qp) && ibv_dealloc_pd(s.a.pd) == EBUSY);
	s.a.qp = NULL;
	CHECK(!ibv_dealloc_pd(s.parent) && !ibv_dealloc_td(s.td));
	side_close(&s.a);
	side_close(&s.b);
}

static void *write_on(void *arg)
{
	struct scene *s = arg;

	for (;;)
		post(&s->a, IBV_WR_RDMA_WRITE, 1, 0, LEN, 0, (uintptr_t)s->b.buf, s->b.mr->rkey);
	return NULL;
}

/* Two threads post until they meet. */
void test_thread_domain_broken(void)
{
	pid_t pid = fork();
	pthread_t thread;
	struct scene s;
	int status;

	if (!pid) {
		scene_open(&s);
		CHECK(!pthread_create(&thread, NULL, write_on, &s));
		write_on(&s);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
	      WTERMSIG(status) == SIGABRT);
}
