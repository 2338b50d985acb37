/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How fast an endpoint takes what many others have sent meanwhile (contrib/bench/incast). In each
 * round every sender has so many messages for one receiver, which computes until all are sent. Then
 * the receiver takes them all: that time is measured. It is what its processor needs, unless the
 * receive buffers ran out and senders wait for their next try.
 *
 * The senders are endpoints of some processes, which share one processor; the receiver has another.
 *
 * usage: incast PROCESSES SENDERS MESSAGES BYTES ROUNDS
 * Prints for each round the messages and the nanoseconds for each of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric.h"

enum { TAG = 7, COMPUTE_US = 5000 };

/* What the processes share. */
struct board {
	char name[BENCH_NAME_MAX]; /* of the receiver */
	uint32_t ready;		 /* 1: the name is there */
	uint32_t round;		 /* senders may send those up to this one */
	uint32_t sent;		 /* processes whose sends were accepted, of all rounds */
	uint32_t finished;	 /* processes that need the receiver's polls no more */
	uint32_t over;		 /* 1: the receiver needs the senders no more */
};

static struct board *board;
static struct bench_fabric bench;
static unsigned processes, senders, messages, bytes, rounds;

/* Sends one message of each endpoint; done counts what completes meanwhile. */
static void send_from_all(struct fid_ep **ep, unsigned count, fi_addr_t to, const char *memory,
			  unsigned *done)
{
	for (unsigned i = 0; i < count; i++) {
		ssize_t ret;

		while ((ret = fi_tsend(ep[i], memory, bytes, NULL, to, TAG, NULL)) == -FI_EAGAIN)
			*done += bench_poll(&bench);
		CHECK(ret);
	}
}

static void run_senders(unsigned count)
{
	struct fid_ep **ep = calloc(count, sizeof(struct fid_ep *));
	char *memory = calloc(1, bytes + 1);
	fi_addr_t to;

	bench_pin(1);
	while (!__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	bench_open(&bench, true, FI_THREAD_UNSPEC);
	for (unsigned i = 0; i < count; i++)
		ep[i] = bench_endpoint(&bench);
	to = bench_insert(&bench, board->name);
	for (unsigned round = 0; round <= rounds; round++) {
		unsigned done = 0;

		while (__atomic_load_n(&board->round, __ATOMIC_ACQUIRE) < round)
			bench_poll(&bench);
		for (unsigned i = 0; i < messages; i++)
			send_from_all(ep, count, to, memory, &done);
		__atomic_add_fetch(&board->sent, 1, __ATOMIC_RELEASE);
		while (done < count * messages)
			done += bench_poll(&bench);
	}
	__atomic_add_fetch(&board->finished, 1, __ATOMIC_RELEASE);
	/* A message that is sent may still wait for a receive buffer: it goes with its sender. */
	while (!__atomic_load_n(&board->over, __ATOMIC_ACQUIRE))
		bench_poll(&bench);
	_exit(0);
}

/* One round; returns its nanoseconds. Round 0 connects all. */
static uint64_t take_all(struct fid_ep *ep, char *memory, unsigned round)
{
	unsigned count = senders * messages, done = 0;
	uint64_t start;

	for (unsigned i = 0; i < count; i++)
		CHECK(fi_trecv(ep, memory + (size_t)i * bytes, bytes, NULL, FI_ADDR_UNSPEC, TAG, 0,
			       NULL));
	__atomic_store_n(&board->round, round, __ATOMIC_RELEASE);
	while (round && __atomic_load_n(&board->sent, __ATOMIC_ACQUIRE) < processes * (round + 1))
		usleep(COMPUTE_US);
	start = bench_now();
	while (done < count)
		done += bench_poll(&bench);
	start = bench_now() - start;
	/* Senders may wait for credits, or their last completions. */
	for (int i = 0; i < 1000; i++)
		bench_poll(&bench);
	return start;
}

static void run_receiver(void)
{
	size_t len = BENCH_NAME_MAX, room = (size_t)senders * messages * bytes;
	char *memory = malloc(room + 1);
	struct fid_ep *ep;

	bench_pin(0);
	memset(memory, 1, room + 1);
	bench_open(&bench, false, FI_THREAD_UNSPEC);
	ep = bench_endpoint(&bench);
	CHECK(fi_getname(&ep->fid, board->name, &len));
	__atomic_store_n(&board->ready, 1, __ATOMIC_RELEASE);
	for (unsigned round = 0; round <= rounds; round++) {
		uint64_t time = take_all(ep, memory, round);

		if (round)
			printf("%u %.1f\n", senders * messages,
			       (double)time / (senders * messages));
		fflush(stdout);
	}
	while (__atomic_load_n(&board->finished, __ATOMIC_ACQUIRE) < processes)
		bench_poll(&bench);
	__atomic_store_n(&board->over, 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	unsigned *numbers[] = {&processes, &senders, &messages, &bytes, &rounds};
	int status, failed = 0;
	pid_t *pids;

	for (int i = 0; i < 5; i++)
		*numbers[i] = i + 1 < argc ? (unsigned)strtoul(argv[i + 1], NULL, 0) : 0;
	if (!processes || senders < processes || !messages || !rounds) {
		fprintf(stderr, "usage: incast PROCESSES SENDERS MESSAGES BYTES ROUNDS\n");
		return 2;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		abort();
	pids = calloc(processes, sizeof(*pids));
	if (!pids)
		abort();
	for (unsigned i = 0; i < processes; i++) {
		pids[i] = fork();
		if (!pids[i])
			run_senders(senders / processes + (i < senders % processes));
	}
	run_receiver();
	/* The program that started this one may have left it children of its own. */
	for (unsigned i = 0; i < processes; i++)
		failed |= waitpid(pids[i], &status, 0) < 0 || status;
	free(pids);
	return failed ? 1 : 0;
}
