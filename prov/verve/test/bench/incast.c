/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How fast an endpoint takes what many others have sent meanwhile (contrib/bench/incast). In each
 * round every sender has so many messages for one receiver, which computes until all have had the
 * time to send. Then the receiver takes them all: that time is measured. It is what its processor
 * needs, unless the receive buffers ran out and senders wait for their next try.
 *
 * The senders are endpoints of some processes, which share one processor; the receiver has another.
 *
 * usage: incast PROCESSES SENDERS MESSAGES BYTES ROUNDS
 * Prints for each round the messages and the nanoseconds for each of them.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAME_MAX_LEN = 256, TAG = 7, COMPUTE_MS = 30, ENTRIES = 16 };

/* What the processes share. */
struct board {
	char name[NAME_MAX_LEN]; /* of the receiver */
	uint32_t ready;		 /* 1: the name is there */
	uint32_t round;		 /* senders may send those up to this one */
	uint32_t finished;	 /* processes that need the receiver's polls no more */
};

static struct board *board;
static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static unsigned processes, senders, messages, bytes, rounds;

static void check(ssize_t ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

#define CHECK(call) check(call, #call)

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void open_domain(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .size = 65536};

	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("verve");
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
	CHECK(fi_domain(fabric, info, &domain, NULL));
	CHECK(fi_av_open(domain, &av_attr, &av, NULL));
	CHECK(fi_cq_open(domain, &cq_attr, &cq, NULL));
}

static struct fid_ep *open_ep(void)
{
	struct fid_ep *ep;

	CHECK(fi_endpoint(domain, info, &ep, NULL));
	CHECK(fi_ep_bind(ep, &av->fid, 0));
	CHECK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(ep));
	return ep;
}

/* Returns how many operations have completed. */
static unsigned poll_cq(void)
{
	struct fi_cq_entry entry[ENTRIES];
	ssize_t ret = fi_cq_read(cq, entry, ENTRIES);

	if (ret == -FI_EAGAIN)
		return 0;
	CHECK(ret);
	return (unsigned)ret;
}

/* Sends one message of each endpoint; done counts what completes meanwhile. */
static void send_from_all(struct fid_ep **ep, unsigned count, fi_addr_t to, const char *memory,
			  unsigned *done)
{
	for (unsigned i = 0; i < count; i++) {
		ssize_t ret;

		while ((ret = fi_tsend(ep[i], memory, bytes, NULL, to, TAG, NULL)) == -FI_EAGAIN)
			*done += poll_cq();
		CHECK(ret);
	}
}

static void run_senders(unsigned count)
{
	struct fid_ep **ep = calloc(count, sizeof(struct fid_ep *));
	char *memory = calloc(1, bytes + 1);
	fi_addr_t to;

	pin(1);
	while (!__atomic_load_n(&board->ready, __ATOMIC_ACQUIRE))
		usleep(1000);
	open_domain();
	for (unsigned i = 0; i < count; i++)
		ep[i] = open_ep();
	if (fi_av_insert(av, board->name, 1, &to, 0, NULL) != 1)
		abort();
	for (unsigned round = 0; round <= rounds; round++) {
		unsigned done = 0;

		while (__atomic_load_n(&board->round, __ATOMIC_ACQUIRE) < round) {
			poll_cq();
			sched_yield();
		}
		for (unsigned i = 0; i < messages; i++)
			send_from_all(ep, count, to, memory, &done);
		while (done < count * messages)
			done += poll_cq();
	}
	__atomic_add_fetch(&board->finished, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&board->finished, __ATOMIC_ACQUIRE) < processes)
		poll_cq();
	_exit(0);
}

/* One round; returns its nanoseconds. Round 0 connects all. */
static uint64_t take_all(struct fid_ep *ep, char *memory, unsigned round)
{
	struct timespec compute = {.tv_nsec = COMPUTE_MS * 1000000};
	unsigned count = senders * messages, done = 0;
	uint64_t start;

	for (unsigned i = 0; i < count; i++)
		CHECK(fi_trecv(ep, memory + (size_t)i * bytes, bytes, NULL, FI_ADDR_UNSPEC, TAG, 0,
			       NULL));
	__atomic_store_n(&board->round, round, __ATOMIC_RELEASE);
	if (round)
		nanosleep(&compute, NULL);
	start = now();
	while (done < count)
		done += poll_cq();
	start = now() - start;
	/* Senders may wait for credits, or their last completions. */
	for (int i = 0; i < 1000; i++)
		poll_cq();
	return start;
}

static void run_receiver(void)
{
	size_t len = NAME_MAX_LEN, room = (size_t)senders * messages * bytes;
	char *memory = malloc(room + 1);
	struct fid_ep *ep;

	pin(0);
	memset(memory, 1, room + 1);
	open_domain();
	ep = open_ep();
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
		poll_cq();
}

int main(int argc, char **argv)
{
	unsigned *numbers[] = {&processes, &senders, &messages, &bytes, &rounds};
	int status, failed = 0;

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
	for (unsigned i = 0; i < processes; i++)
		if (!fork())
			run_senders(senders / processes + (i < senders % processes));
	run_receiver();
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}
