/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long fi_tsend and fi_cq_read take on a connection that is up, while many peers connect to the
 * same endpoint (contrib/bench/connecting). First nobody connects, then all peers do. Beside them
 * stands a wait of about a send's length that calls nothing: what interrupts, and the hypervisor,
 * take from it is the noise of the machine, while other processes connect as well.
 *
 * A call during which the kernel gave the processor to somebody else (an involuntary switch) says
 * nothing of verve: such calls are counted apart. Where a call waits for a lock or a device, it
 * gives the processor away by itself, and counts.
 *
 * usage: connecting PEERS
 * Prints for both: the call, how many, how many apart, and nanoseconds: median, 99 %, 99.9 %, most.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric.h"

enum {
	TAG = 7,
	NEW_TAG = 8,
	LEN = 8,
	SAMPLES_MAX = 1 << 22,
	SLOW = 2000, /* ns */
	NOTHING = 300, /* ns */
	WARM_MS = 500,
	QUIET_MS = 1000
};

struct board {
	char name[BENCH_NAME_MAX];   /* of the measured endpoint */
	char friend[BENCH_NAME_MAX]; /* of the peer that is connected */
	uint32_t ready, go, finished; /* the names that are there; peers connect; all ends */
};

struct samples {
	const char *call;
	uint32_t *ns;
	unsigned count, apart;
};

static struct board *board;
static struct bench_fabric bench;
static struct samples sends = {.call = "fi_tsend"}, reads = {.call = "fi_cq_read"},
		      nothing = {.call = "nothing"};
static char memory[LEN];

static void await(uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value)
		usleep(1000);
}

static void tell(uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
}

/* Takes what comes, until the end. */
static void run_friend(void)
{
	size_t len = BENCH_NAME_MAX;
	unsigned posted = 0, done = 0;
	struct fid_ep *ep;

	bench_pin(1);
	bench_open(&bench, false, FI_THREAD_UNSPEC);
	ep = bench_endpoint(&bench);
	CHECK(fi_getname(&ep->fid, board->friend, &len));
	tell(&board->ready);
	while (!__atomic_load_n(&board->finished, __ATOMIC_ACQUIRE)) {
		for (; posted - done < 256; posted++)
			CHECK(fi_trecv(ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
		done += bench_poll(&bench);
	}
	_exit(0);
}

/* The peers that connect: each sends one message. */
static void run_peers(unsigned count)
{
	struct fid_ep **ep = calloc(count, sizeof(struct fid_ep *));
	fi_addr_t to;

	bench_pin(1);
	await(&board->ready, 2);
	bench_open(&bench, true, FI_THREAD_UNSPEC);
	to = bench_insert(&bench, board->name);
	for (unsigned i = 0; i < count; i++)
		ep[i] = bench_endpoint(&bench);
	tell(&board->ready);
	await(&board->go, 1);
	for (unsigned i = 0; i < count; i++)
		CHECK(fi_tsend(ep[i], memory, LEN, NULL, to, NEW_TAG, NULL));
	while (!__atomic_load_n(&board->finished, __ATOMIC_ACQUIRE))
		bench_poll(&bench);
	_exit(0);
}

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nivcsw;
}

static void add(struct samples *samples, uint64_t ns, long before)
{
	if (ns > SLOW && switches() != before)
		samples->apart++;
	else if (samples->count < SAMPLES_MAX)
		samples->ns[samples->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void wait_for_nothing(void)
{
	long before = switches();
	uint64_t start = bench_now(), end;

	do
		end = bench_now();
	while (end - start < NOTHING);
	add(&nothing, end - start, before);
}

/* One send and one poll. Returns how many messages of new peers have come. */
static unsigned step(struct fid_ep *ep, fi_addr_t to)
{
	struct fi_cq_entry entry[16];
	long before = switches();
	uint64_t start = bench_now();
	ssize_t ret = fi_tsend(ep, memory, LEN, NULL, to, TAG, NULL);
	uint64_t end = bench_now();
	unsigned news = 0;

	/* A call that is refused takes no time worth counting: the other side is busy. */
	if (ret != -FI_EAGAIN) {
		CHECK(ret);
		add(&sends, end - start, before);
	}
	before = switches();
	start = bench_now();
	ret = fi_cq_read(bench.cq, entry, 16);
	add(&reads, bench_now() - start, before);
	wait_for_nothing();
	if (ret == -FI_EAGAIN)
		return 0;
	CHECK(ret);
	for (ssize_t i = 0; i < ret; i++)
		news += entry[i].op_context == memory;
	return news;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print(const char *phase, struct samples *samples)
{
	unsigned count = samples->count;

	qsort(samples->ns, count, sizeof(samples->ns[0]), compare);
	printf("%s %s %u %u %u %u %u %u\n", phase, samples->call, count, samples->apart,
	       samples->ns[count / 2], samples->ns[count / 100 * 99],
	       samples->ns[(uint64_t)count * 999 / 1000], samples->ns[count - 1]);
	samples->count = samples->apart = 0;
}

static void step_for(unsigned ms, struct fid_ep *ep, fi_addr_t to)
{
	uint64_t end = bench_now() + ms * 1000000ull;

	while (bench_now() < end)
		step(ep, to);
}

static void measure(struct fid_ep *ep, fi_addr_t to, unsigned peers)
{
	unsigned arrived = 0;
	uint64_t end;

	/* Operations and completions use memory for the first time, which costs page faults. */
	step_for(WARM_MS, ep, to);
	sends.count = reads.count = nothing.count = 0;
	sends.apart = reads.apart = nothing.apart = 0;
	step_for(QUIET_MS, ep, to);
	print("quiet", &sends);
	print("quiet", &reads);
	print("quiet", &nothing);
	tell(&board->go);
	end = bench_now();
	while (arrived < peers)
		arrived += step(ep, to);
	end = bench_now() - end;
	print("connecting", &sends);
	print("connecting", &reads);
	print("connecting", &nothing);
	printf("# %u peers in %.1f ms\n", peers, (double)end / 1e6);
}

static void run_measured(unsigned peers)
{
	size_t len = BENCH_NAME_MAX;
	struct fid_ep *ep;
	fi_addr_t to;

	sends.ns = calloc(SAMPLES_MAX, sizeof(sends.ns[0]));
	reads.ns = calloc(SAMPLES_MAX, sizeof(reads.ns[0]));
	nothing.ns = calloc(SAMPLES_MAX, sizeof(nothing.ns[0]));
	await(&board->ready, 1);
	bench_open(&bench, false, FI_THREAD_UNSPEC);
	ep = bench_endpoint(&bench);
	CHECK(fi_getname(&ep->fid, board->name, &len));
	to = bench_insert(&bench, board->friend);
	for (unsigned i = 0; i < peers; i++)
		CHECK(fi_trecv(ep, memory, LEN, NULL, FI_ADDR_UNSPEC, NEW_TAG, 0, memory));
	CHECK(fi_tsend(ep, memory, LEN, NULL, to, TAG, NULL));
	while (!bench_poll(&bench))
		;
	tell(&board->ready);
	await(&board->ready, 3);
	bench_pin(0);
	measure(ep, to, peers);
	tell(&board->finished);
}

int main(int argc, char **argv)
{
	unsigned peers = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 0) : 0;
	int status, failed = 0;
	pid_t pids[2];

	if (!peers) {
		fprintf(stderr, "usage: connecting PEERS\n");
		return 2;
	}
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		abort();
	pids[0] = fork();
	if (!pids[0])
		run_friend();
	pids[1] = fork();
	if (!pids[1])
		run_peers(peers);
	run_measured(peers);
	/* The program that started this one may have left it children of its own. */
	for (int i = 0; i < 2; i++)
		failed |= waitpid(pids[i], &status, 0) < 0 || status;
	return failed ? 1 : 0;
}
