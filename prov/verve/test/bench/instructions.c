/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls whose instructions contrib/bench/instructions counts. The program runs under callgrind
 * (valgrind(1)), over a device on which a request has ended when its post returns. It makes each
 * kind of operation ROUNDS times. Callgrind collects the calls that are to be counted, and dumps
 * them under the operation's name. The periods of verve (a signaled request, a batch of receive
 * buffers, a look at the clock) divide ROUNDS, and time stands still meanwhile, so that no work
 * becomes due by the time: each run counts the same.
 *
 * One endpoint is connected to so many others, all in this process.
 *
 * usage: instructions safe|domain CONNECTIONS
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum { ROUNDS = 64, LEN = 8, TAG = 7, CONNECTIONS_MAX = 256 };

struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr; /* in av */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct end a, b[CONNECTIONS_MAX];
static struct fid_mr *mr;
static char memory[LEN];
static struct timespec stopped; /* the time that stands still; 0: it goes on */

/* The time for everybody in the process, also for the provider. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!stopped.tv_sec)
		return (int)syscall(SYS_clock_gettime, clock, time);
	*time = stopped;
	return 0;
}

static void check(ssize_t ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

#define CHECK(call) check(call, #call)

/* The result of the call, which callgrind counts. */
#define COUNTED(call)                                                                              \
	({                                                                                         \
		ssize_t counted;                                                                   \
                                                                                                   \
		CALLGRIND_TOGGLE_COLLECT;                                                          \
		counted = call;                                                                    \
		CALLGRIND_TOGGLE_COLLECT;                                                          \
		counted;                                                                           \
	})

static void open_domain(const char *threading)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr attr = {.type = FI_AV_TABLE};

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("verve");
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading =
		strcmp(threading, "domain") ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
	CHECK(fi_domain(fabric, info, &domain, NULL));
	CHECK(fi_av_open(domain, &attr, &av, NULL));
	CHECK(fi_mr_reg(domain, memory, LEN, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
}

static void open_end(struct end *end)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	char name[256];
	size_t len = sizeof(name);

	CHECK(fi_cq_open(domain, &attr, &end->cq, NULL));
	CHECK(fi_endpoint(domain, info, &end->ep, NULL));
	CHECK(fi_ep_bind(end->ep, &av->fid, 0));
	CHECK(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	CHECK(fi_enable(end->ep));
	CHECK(fi_getname(&end->ep->fid, name, &len));
	if (fi_av_insert(av, name, 1, &end->addr, 0, NULL) != 1)
		abort();
}

/* Takes one completion, if there is one. */
static ssize_t poll_once(struct end *end)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_read(end->cq, &entry, 1);

	return ret == -FI_EAGAIN ? 0 : ret;
}

/* Completions that are not counted. */
static void complete(struct end *end, int count)
{
	while (count) {
		ssize_t ret = poll_once(end);

		CHECK(ret);
		count -= (int)ret;
	}
}

static void inject(void)
{
	CHECK(COUNTED(fi_tinject(a.ep, memory, LEN, b->addr, TAG)));
	CHECK(fi_trecv(b->ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	complete(b, 1);
	poll_once(&a);
}

static void send_(void)
{
	CHECK(COUNTED(fi_tsend(a.ep, memory, LEN, NULL, b->addr, TAG, NULL)));
	CHECK(fi_trecv(b->ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	complete(b, 1);
	complete(&a, 1);
	poll_once(&a);
}

static void counted_complete(struct end *end, int count)
{
	while (count) {
		ssize_t ret = COUNTED(poll_once(end));

		CHECK(ret);
		count -= (int)ret;
	}
}

static void receive(void)
{
	CHECK(COUNTED(fi_trecv(a.ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL)));
	CHECK(fi_tinject(b->ep, memory, LEN, a.addr, TAG));
	counted_complete(&a, 1);
	poll_once(b);
}

static void write_(void)
{
	CHECK(COUNTED(fi_write(a.ep, memory, LEN, NULL, b->addr, (uintptr_t)memory, fi_mr_key(mr),
			 NULL)));
	counted_complete(&a, 1);
}

static void ping_pong(void)
{
	CHECK(COUNTED(fi_trecv(a.ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL)));
	CHECK(COUNTED(fi_tsend(a.ep, memory, LEN, NULL, b->addr, TAG, NULL)));
	CHECK(fi_trecv(b->ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	complete(b, 1);
	CHECK(fi_tsend(b->ep, memory, LEN, NULL, a.addr, TAG, NULL));
	complete(b, 1);
	counted_complete(&a, 2);
}

static void nothing(void)
{
	CHECK(COUNTED(poll_once(&a)));
}

static void measure(const char *name, void (*round)(void))
{
	for (int i = 0; i < ROUNDS; i++)
		round();
	CALLGRIND_ZERO_STATS;
	for (int i = 0; i < ROUNDS; i++)
		round();
	CALLGRIND_DUMP_STATS_AT(name);
}

/* The first message to an endpoint makes the connection. */
static void connect_end(struct end *end)
{
	int left = 2;

	CHECK(fi_trecv(end->ep, memory, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	CHECK(fi_tsend(a.ep, memory, LEN, NULL, end->addr, TAG, NULL));
	while (left) {
		for (int i = 0; i < 2; i++) {
			ssize_t ret = poll_once(i ? &a : end);

			CHECK(ret);
			left -= (int)ret;
		}
		sched_yield();
	}
}

int main(int argc, char **argv)
{
	int connections = argc == 3 ? atoi(argv[2]) : 0;

	if (connections < 1 || connections > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: instructions safe|domain CONNECTIONS\n");
		return 2;
	}
	open_domain(argv[1]);
	open_end(&a);
	for (int i = 0; i < connections; i++) {
		open_end(&b[i]);
		connect_end(&b[i]);
	}
	clock_gettime(CLOCK_MONOTONIC, &stopped);
	CALLGRIND_START_INSTRUMENTATION;
	measure("inject", inject);
	measure("send", send_);
	measure("receive", receive);
	measure("write", write_);
	measure("ping-pong", ping_pong);
	measure("nothing", nothing);
	CALLGRIND_STOP_INSTRUMENTATION;
	return 0;
}
