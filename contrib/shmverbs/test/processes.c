/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Processes: peers that sleep, echo, are killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "side.h"
#include "tests.h"

/*
 * Starts a program with the other end of a connection to s->qp. It calls child() with the name;
 * the two ends exchange their names over *fd. It is a new program, because a child of fork(2)
 * cannot use its parent's device.
 */
static pid_t spawn(struct side *s, const char *what, struct name *peer, int *fd)
{
	struct name mine = name_of(s);
	char text[16];
	int pair[2];
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		snprintf(text, sizeof(text), "%d", pair[1]);
		setenv("SHMV_TEST_FD", text, 1);
		execl("/proc/self/exe", "test", "--child", what, NULL);
		_exit(9);
	}
	close(pair[1]);
	*fd = pair[0];
	CHECK(write(*fd, &mine, sizeof(mine)) == sizeof(mine));
	CHECK(read(*fd, peer, sizeof(*peer)) == sizeof(*peer));
	CHECK(!to_rtr(s->qp, peer) && !to_rts(s->qp));
	(void)!write(*fd, "x", 1);
	(void)!read(*fd, text, 1);
	return pid;
}

static void c_echo(struct side *s, int fd)
{
	struct ibv_wc wc;
	int n;

	(void)fd;
	for (int i = 0; i < 16; i++)
		post_recv(s, i, i * 65536, 65536);
	(void)!write(fd, "y", 1);
	for (int rest = 0;;) { /* sleeps before each message */
		struct ibv_cq *cq;
		void *context;

		ibv_req_notify_cq(s->rcq, 0);
		while ((n = ibv_poll_cq(s->rcq, 1, &wc)) > 0) {
			if (wc.status)
				_exit(3);
			memcpy(s->buf + (1 << 20) + (rest % 8 << 16), s->buf + wc.wr_id * 65536,
			       wc.byte_len);
			post(s, IBV_WR_SEND, 0, (1 << 20) + (rest % 8 << 16), wc.byte_len,
			     rest % 8 ? 0 : IBV_SEND_SIGNALED, 0, 0);
			while (ibv_poll_cq(s->scq, 1, &wc))
				;
			post_recv(s, wc.wr_id % 16, wc.wr_id % 16 * 65536, 65536);
			rest++;
		}
		if (ibv_get_cq_event(s->channel, &cq, &context) || cq != s->rcq || context != s)
			_exit(4);
		ibv_ack_cq_events(cq, 1);
	}
}

static void c_sleep(struct side *s, int fd)
{
	for (int i = 0; i < 4; i++)
		post_recv(s, i, 0, 64);
	(void)!write(fd, "y", 1);
	for (;;)
		pause();
}

void test_wake(void)
{
	struct side a;
	struct name peer;
	struct ibv_wc wc;
	int fd, status;
	pid_t pid;
	char c;

	side_open(&a, 0, true);
	pid = spawn(&a, "echo", &peer, &fd);
	(void)!read(fd, &c, 1);
	for (int i = 0; i < 200; i++) {
		size_t n = i % 4 == 3 ? 50000 : i % 200;

		fill(a.buf, n, i);
		CHECK(!post_recv(&a, 1, 2 << 20, 65536));
		CHECK(!post(&a, IBV_WR_SEND, 1, 0, n, IBV_SEND_SIGNALED, 0, 0));
		CHECK(get(a.rcq, &wc, 20) == 1 && !wc.status && wc.byte_len == n &&
		      is_filled(a.buf + (2 << 20), n, i));
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status);
		if (i % 10 == 0)
			usleep(3000); /* until the peer sleeps */
		if (failed_here)
			break;
	}
	CHECK(waitpid(pid, &status, WNOHANG) == 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	close(fd);
	side_close(&a);
}

void test_killed(void)
{
	for (int sleeping = 0; sleeping < 2; sleeping++) {
		struct side a;
		struct name peer;
		struct ibv_wc wc;
		struct ibv_cq *cq;
		void *context;
		int fd;
		pid_t pid;
		double t;
		char c;

		side_open(&a, 0, true);
		knobs.timeout = 20; /* retries for 34 s, if the peer were alive */
		pid = spawn(&a, "sleep", &peer, &fd);
		knobs.timeout = 14;
		(void)!read(fd, &c, 1);
		CHECK(!post(&a, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, 0, 0));
		CHECK(get(a.scq, &wc, 20) == 1 && !wc.status);
		ibv_req_notify_cq(a.scq, 0);
		kill(pid, SIGKILL); /* no wait for it: it is a zombie now */
		usleep(20000);
		t = now();
		CHECK(!post(&a, IBV_WR_RDMA_WRITE, 2, 0, 8, IBV_SEND_SIGNALED, peer.addr,
			    peer.rkey));
		CHECK(!post(&a, IBV_WR_SEND, 3, 0, 8, IBV_SEND_SIGNALED, 0, 0));
		if (sleeping) {
			struct pollfd p = {.fd = a.channel->fd, .events = POLLIN};

			CHECK(poll(&p, 1, 30000) == 1);
			CHECK(!ibv_get_cq_event(a.channel, &cq, &context) && cq == a.scq);
			ibv_ack_cq_events(cq, 1);
		}
		CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_RETRY_EXC_ERR &&
		      wc.wr_id == 2);
		CHECK(now() - t < 15);
		CHECK(get(a.scq, &wc, 20) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR &&
		      wc.wr_id == 3);
		waitpid(pid, NULL, 0);
		close(fd);
		side_close(&a);
	}
}

static void c_flood(struct side *s)
{
	struct ibv_wc wc;

	for (int i = 0, out = 0;; i++) {
		if (out < 32 &&
		    !post(s, IBV_WR_SEND, i, 0, i % 5 ? 100 : 6000, IBV_SEND_SIGNALED, 0, 0))
			out++;
		while (ibv_poll_cq(s->scq, 1, &wc) > 0)
			out--;
	}
}

/* Processes are killed while they send; the other users of their queue go on. */
void test_kill_storm(void)
{
	struct side b;
	struct ibv_wc wc;
	int good = 0;

	side_open(&b, 1, true);
	for (int i = 0; i < 128; i++)
		post_recv(&b, i, i * 8192, 8192);
	for (int round = 0; round < 12; round++) {
		struct side s = b;
		struct name peer;
		double end;
		pid_t pid;
		int fd;

		s.qp = make_qp(&b);
		pid = spawn(&s, "flood", &peer, &fd);
		for (end = now() + 0.02 + round * 0.002; now() < end;)
			if (ibv_poll_cq(b.rcq, 1, &wc) > 0) {
				good += !wc.status;
				post_recv(&b, wc.wr_id, wc.wr_id * 8192, 8192);
			}
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		while (ibv_poll_cq(b.rcq, 1, &wc) > 0)
			post_recv(&b, wc.wr_id, wc.wr_id * 8192, 8192);
		CHECK(!ibv_destroy_qp(s.qp));
		close(fd);
	}
	printf("  %d messages came\n", good);
	CHECK(good > 0);
	side_close(&b);
}

int child(const char *what)
{
	int fd = atoi(getenv("SHMV_TEST_FD"));
	struct name mine, peer;
	struct side s;
	char c;

	side_open(&s, 1, true);
	mine = name_of(&s);
	(void)!write(fd, &mine, sizeof(mine));
	(void)!read(fd, &peer, sizeof(peer));
	if (to_rtr(s.qp, &peer) || to_rts(s.qp))
		return 2;
	(void)!read(fd, &c, 1);
	(void)!write(fd, "x", 1);
	if (!strcmp(what, "echo"))
		c_echo(&s, fd);
	else if (!strcmp(what, "flood"))
		c_flood(&s);
	else
		c_sleep(&s, fd);
	return 0;
}
