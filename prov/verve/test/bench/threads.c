/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What threads of one process cost each other (contrib/bench/threads). Each thread is both sides of
 * its messages: it posts receives to an endpoint of its own, sends to it, and reads both queues
 * until all of a window has arrived. So no thread waits for another one's processor, and what
 * threads lose to each other is what they share in the provider and in the device. Processes share
 * nothing but the machine: they show what it gives at most.
 *
 * Shapes:
 *   processes  each thread is a process of its own
 *   domains    each thread has a domain, and two endpoints there
 *   endpoints  each thread has two endpoints in one domain
 *   shared     all threads send from one endpoint, and read its one queue of sends
 *   polled     the first thread alone sends, from an endpoint whose queue all others poll, too
 *
 * usage: threads SHAPE THREADS BYTES MESSAGES ROUNDS
 * Prints for each round, for a message of all threads: nanoseconds of time, and of processors.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fabric.h"

enum { TAG = 7, WINDOW = 64, ENTRIES = 16, CONNECTING = 1000 };

struct worker {
	pthread_t thread;
	unsigned index;
	struct bench_fabric out; /* what it sends from: perhaps the first thread's */
	struct bench_fabric in;
	struct fid_ep *from, *to;
	fi_addr_t addr; /* of to, for from */
	char *memory;
	uint64_t sent, received; /* completions; any thread counts those of sends */
	uint64_t start, end; /* of its messages of the round, nanoseconds */
	uint64_t processor; /* processor time of these messages, nanoseconds */
};

/* What processes share. */
struct board {
	pthread_barrier_t barrier;
	bool over; /* the sender of "polled" has done the round's messages */
	struct worker workers[];
};

static struct board *board;
static struct worker *workers;
static unsigned count, bytes, messages, rounds;
static bool processes, one_domain, one_endpoint, one_sender;

static uint64_t processor_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The context of each operation is the counter of its completions. */
static void poll_queue(struct fid_cq *cq)
{
	struct fi_cq_entry entry[ENTRIES];
	ssize_t ret = fi_cq_read(cq, entry, ENTRIES);

	if (ret == -FI_EAGAIN)
		return;
	CHECK(ret);
	for (ssize_t i = 0; i < ret; i++)
		__atomic_add_fetch((uint64_t *)entry[i].op_context, 1, __ATOMIC_RELAXED);
}

static void poll_both(struct worker *worker)
{
	poll_queue(worker->out.cq);
	poll_queue(worker->in.cq);
}

/* Sends a window of messages to itself. */
static void send_window(struct worker *worker, unsigned window)
{
	uint64_t sent = __atomic_load_n(&worker->sent, __ATOMIC_RELAXED) + window;
	uint64_t received = worker->received + window;
	ssize_t ret;

	for (unsigned i = 0; i < window; i++)
		CHECK(fi_trecv(worker->to, worker->memory + (size_t)i * bytes, bytes, NULL,
			       FI_ADDR_UNSPEC, TAG, 0, &worker->received));
	for (unsigned i = 0; i < window; i++) {
		while ((ret = fi_tsend(worker->from, worker->memory + (size_t)WINDOW * bytes, bytes,
				       NULL, worker->addr, TAG, &worker->sent)) == -FI_EAGAIN)
			poll_both(worker);
		CHECK(ret);
	}
	while (worker->received < received ||
	       __atomic_load_n(&worker->sent, __ATOMIC_RELAXED) < sent)
		poll_both(worker);
}

/* The messages of one round; round 0 connects. */
static void run_round(struct worker *worker, unsigned round)
{
	unsigned want = round ? messages : CONNECTING;
	uint64_t processor;

	pthread_barrier_wait(&board->barrier);
	worker->start = bench_now();
	processor = processor_now();
	if (one_sender && worker->index)
		while (!__atomic_load_n(&board->over, __ATOMIC_RELAXED))
			poll_queue(worker->out.cq);
	else
		for (unsigned done = 0; done < want; done += WINDOW)
			send_window(worker, want - done < WINDOW ? want - done : WINDOW);
	if (one_sender)
		__atomic_store_n(&board->over, true, __ATOMIC_RELAXED);
	worker->processor = processor_now() - processor;
	worker->end = bench_now();
	pthread_barrier_wait(&board->barrier);
}

static void *run_worker(void *arg)
{
	struct worker *worker = arg;

	bench_pin((int)(worker->index % (unsigned)sysconf(_SC_NPROCESSORS_ONLN)));
	for (unsigned round = 0; round <= rounds; round++)
		run_round(worker, round);
	return NULL;
}

static void open_worker(struct worker *worker, enum fi_threading threading)
{
	char name[BENCH_NAME_MAX];
	size_t len = sizeof(name);

	if (!worker->index || !one_domain)
		bench_open(&worker->out, false, threading);
	else if (one_endpoint)
		worker->out = workers[0].out;
	else
		bench_open_beside(&workers[0].out, &worker->out);
	bench_open_beside(&worker->out, &worker->in);
	worker->from = worker->index && one_endpoint ? workers[0].from :
						       bench_endpoint(&worker->out);
	worker->to = bench_endpoint(&worker->in);
	CHECK(fi_getname(&worker->to->fid, name, &len));
	worker->addr = bench_insert(&worker->out, name);
	worker->memory = calloc(WINDOW + 1, bytes);
	if (!worker->memory)
		abort();
}

static void print_round(void)
{
	uint64_t all = (uint64_t)messages * (one_sender ? 1 : count);
	uint64_t start = UINT64_MAX, end = 0, processor = 0;

	for (unsigned i = 0; i < count; i++) {
		if (workers[i].start < start)
			start = workers[i].start;
		if (workers[i].end > end)
			end = workers[i].end;
		if (!i || !one_sender)
			processor += workers[i].processor;
	}
	printf("%.1f %.1f\n", (double)(end - start) / all, (double)processor / all);
	fflush(stdout);
}

static void board_make(void)
{
	size_t len = sizeof(*board) + count * sizeof(struct worker);
	pthread_barrierattr_t attr;

	board = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		abort();
	workers = board->workers;
	for (unsigned i = 0; i < count; i++)
		workers[i].index = i;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&board->barrier, &attr, count + 1);
}

/* The others wait for a process that has failed, and would for ever. */
static void process_ended(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_code != CLD_EXITED || info->si_status)
		_exit(1);
}

static void start_processes(void)
{
	struct sigaction action = {.sa_sigaction = process_ended,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGCHLD, &action, NULL);
	for (unsigned i = 0; i < count; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_worker(&workers[i], FI_THREAD_DOMAIN);
		run_worker(&workers[i]);
		_exit(0);
	}
}

static void start_threads(void)
{
	enum fi_threading threading = FI_THREAD_SAFE;

	if (!one_domain)
		threading = FI_THREAD_DOMAIN;
	else if (!one_endpoint)
		threading = FI_THREAD_COMPLETION;
	for (unsigned i = 0; i < count; i++)
		open_worker(&workers[i], threading);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]))
			abort();
}

static void run_rounds(void)
{
	for (unsigned round = 0; round <= rounds; round++) {
		board->over = false;
		pthread_barrier_wait(&board->barrier);
		pthread_barrier_wait(&board->barrier);
		if (round)
			print_round();
	}
	for (unsigned i = 0; i < count; i++)
		if (processes)
			wait(NULL);
		else
			pthread_join(workers[i].thread, NULL);
}

int main(int argc, char **argv)
{
	unsigned *numbers[] = {&count, &bytes, &messages, &rounds};
	const char *shape = argc > 1 ? argv[1] : "";

	for (int i = 0; i < 4; i++)
		*numbers[i] = i + 2 < argc ? (unsigned)strtoul(argv[i + 2], NULL, 0) : 0;
	processes = !strcmp(shape, "processes");
	one_sender = !strcmp(shape, "polled");
	one_endpoint = one_sender || !strcmp(shape, "shared");
	one_domain = one_endpoint || !strcmp(shape, "endpoints");
	if (!count || !bytes || !messages || !rounds ||
	    (!processes && !one_domain && strcmp(shape, "domains"))) {
		fprintf(stderr, "usage: threads processes|domains|endpoints|shared|polled THREADS "
				"BYTES MESSAGES ROUNDS\n");
		return 2;
	}
	board_make();
	if (processes)
		start_processes();
	else
		start_threads();
	run_rounds();
	return 0;
}
