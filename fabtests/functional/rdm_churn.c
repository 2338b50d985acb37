/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_churn: endpoints that come and go while other threads use the same shared receive context
 * (made to run under a thread sanitizer, too), and while the process forks.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/parallel.h"
#include "common/pattern.h"
#include "common/suite.h"
#include "common/xfer.h"

#define CAPS (FI_MSG | FI_TAGGED)
#define ROUNDS 40 /* of coming and going, unless -I says otherwise */
#define SENDS 4	  /* messages to each endpoint that comes */
#define PATIENCE 50 /* looks before a receive is cancelled */
#define COMMUTERS 3
#define FORKS 2 /* a round */
#define LIFETIME 20 /* seconds that a child may take to end */

static const size_t sizes[] = { 8, 70000, 3000, 300000 };
#define LONGEST 300000

struct churn {
	struct env *env;
	struct node home; /* has the domain, the address vector and the queue of everybody else */
	struct node resident; /* with the guests on the shared context, and stays */
	struct fid_ep *srx;
	fi_addr_t resident_addr;
	struct parallel_pool pools[COMMUTERS + 1];
	unsigned rounds;
	atomic_uint taken, found; /* messages that receives and looks met */
	atomic_uint present; /* commuters */
	atomic_bool stop;
	/*
	 * No thread is in fi_getinfo while the process forks: libfabric's own destructor wants its
	 * lock.
	 */
	pthread_mutex_t core_lock;
};

static void churn_open(struct churn *churn, struct env *env, const struct node_attr *attr)
{
	*churn = (struct churn){ .env = env };
	churn->rounds = env->opts.iterations ? env->opts.iterations : ROUNDS;
	node_open(&churn->home, env, attr);
	node_enable(&churn->home);
}

static void await(struct churn *churn, const struct parallel_op *op, struct fid_cq *cq)
{
	uint64_t deadline = env_deadline(churn->env);

	while (!op->done) {
		parallel_read(churn->home.txcq);
		if (cq)
			parallel_read(cq);
		sched_yield();
		if (clock_now() > deadline)
			check_fatal("a thread got no further for %u s", churn->env->opts.timeout);
	}
}

static void post(struct churn *churn, struct node *node, const struct xfer *xfer)
{
	uint64_t deadline = env_deadline(churn->env);
	ssize_t ret;

	while ((ret = xfer_try(node, xfer)) == -FI_EAGAIN) {
		parallel_read(churn->home.txcq);
		sched_yield();
		if (clock_now() > deadline)
			check_fatal("a post says -FI_EAGAIN for %u s", churn->env->opts.timeout);
	}
	REQUIRE_RET(ret, 0);
}

/* A guest comes, and goes while messages to it and to the resident are under way. */
static void guest_round(struct churn *churn, unsigned n)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true, .share = &churn->home,
				  .share_queues = true, .srx = churn->srx };
	struct env own = { .opts = churn->env->opts,
			   .members = LIST_HEAD_INITIALIZER(own.members) };
	struct xfer sends[2 * SENDS];
	char name[NODE_ADDR_MAX];
	struct node guest;
	fi_addr_t addr;

	node_open(&guest, &own, &attr);
	node_enable(&guest);
	node_name(&guest, name);
	addr = node_insert(&guest, name);
	for (unsigned i = 0; i < 2 * SENDS; i++) {
		size_t len = sizes[(n + i / 2) % (sizeof(sizes) / sizeof(*sizes))];

		sends[i] = (struct xfer){ .op = XFER_SEND, .tagged = true, .len = len,
					  .tag = 2ull * SENDS * n + i, .buf = pattern_alloc(len),
					  .addr = i % 2 ? churn->resident_addr : addr,
					  .context = parallel_op_get(&churn->pools[0]) };
		pattern_fill(sends[i].buf, len, sends[i].tag);
		post(churn, &churn->home, &sends[i]);
	}
	/* Now and then it is connected before it goes. */
	if (n % 2)
		await(churn, sends[1].context, NULL);
	node_close(&guest);
	for (unsigned i = 0; i < 2 * SENDS; i++) {
		struct parallel_op *sent = sends[i].context;

		await(churn, sent, NULL);
		/* Messages to a guest may fail: it may be gone. */
		if (i % 2)
			CHECK_RET(sent->err, 0);
		pattern_free(sends[i].buf);
	}
	CHECK_RET(fi_av_remove(churn->home.av, &addr, 1, 0), 0);
}

/*
 * Peeks at messages that wait in the shared context, and discards the message at every other peek.
 */
static void look(struct churn *churn, unsigned n)
{
	struct parallel_op op = { .done = 0 };
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .ignore = ~0ull, .context = &op };
	ssize_t ret;

	ret = fi_trecvmsg(churn->srx, &msg, FI_PEEK | (n % 2 ? FI_DISCARD : 0));
	if (ret == -FI_EAGAIN)
		return;
	REQUIRE_RET(ret, 0);
	await(churn, &op, NULL);
	CHECK(op.err == 0 || op.err == FI_ENOMSG);
	churn->found += !op.err;
}

/* Takes whichever message comes to any endpoint of the context, or gives up. */
static void take(struct churn *churn, void *buf)
{
	struct parallel_op *op = parallel_op_get(&churn->pools[1]);
	struct node context = churn->resident;
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .ignore = ~0ull, .buf = buf,
			     .len = LONGEST, .addr = FI_ADDR_UNSPEC, .context = op };

	context.ep = churn->srx;
	post(churn, &context, &recv);
	for (unsigned i = 0; i < PATIENCE && !op->done; i++) {
		parallel_read(churn->home.txcq);
		sched_yield();
	}
	/* The cancel may be too late. */
	fi_cancel(&churn->srx->fid, op);
	await(churn, op, NULL);
	if (op->err)
		return;
	pattern_check(buf, op->len, op->tag);
	churn->taken++;
}

static void use_context(void *arg, unsigned thread)
{
	struct churn *churn = arg;
	void *buf = pattern_alloc(LONGEST);

	if (!thread)
		for (unsigned n = 0; n < churn->rounds; n++)
			guest_round(churn, n);
	for (unsigned n = 0; thread && !churn->stop; n++) {
		if (thread == 1)
			take(churn, buf);
		else
			look(churn, n);
		/* Without a pause, peeks would discard all messages for the receives. */
		usleep(100);
	}
	pattern_free(buf);
	churn->stop = true;
}

/* One thread opens and closes an endpoint, one posts receives for others' messages, one peeks. */
static void run_shared_context(struct env *env)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true };
	struct parallel threads;
	char name[NODE_ADDR_MAX];
	struct churn churn;

	churn_open(&churn, env, &attr);
	REQUIRE_RET(fi_srx_context(churn.home.domain, churn.home.info->rx_attr, &churn.srx, NULL),
		    0);
	attr.share = &churn.home;
	attr.share_queues = true;
	attr.srx = churn.srx;
	node_open(&churn.resident, env, &attr);
	node_enable(&churn.resident);
	node_name(&churn.resident, name);
	churn.resident_addr = node_insert(&churn.home, name);
	parallel_start(&threads, 3, use_context, &churn);
	parallel_join(&threads);
	CHECK(churn.taken + churn.found > 0);
	node_close(&churn.resident);
	CHECK_RET(fi_close(&churn.srx->fid), 0);
	for (unsigned i = 0; i <= COMMUTERS; i++)
		parallel_pool_close(&churn.pools[i]);
	node_close(&churn.home);
}

/* A domain and an endpoint, which says one thing to home and goes. */
static void commute(struct churn *churn, unsigned thread, unsigned n)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true,
				  .progress = n % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL };
	struct env own = { .opts = churn->env->opts,
			   .members = LIST_HEAD_INITIALIZER(own.members) };
	char name[NODE_ADDR_MAX], out[8] = "going", in[8];
	uint64_t tag = (uint64_t)thread << 32 | n;
	struct xfer send = { .op = XFER_SEND,
			     .tagged = true,
			     .tag = tag,
			     .buf = out,
			     .len = sizeof(out),
			     .context = parallel_op_get(&churn->pools[thread]) };
	struct xfer recv = { .op = XFER_RECV, .tagged = true, .tag = tag, .buf = in,
			     .len = sizeof(in), .addr = FI_ADDR_UNSPEC,
			     .context = parallel_op_get(&churn->pools[thread]) };
	struct node node;

	post(churn, &churn->home, &recv);
	pthread_mutex_lock(&churn->core_lock);
	node_open(&node, &own, &attr);
	pthread_mutex_unlock(&churn->core_lock);
	node_enable(&node);
	node_name(&churn->home, name);
	send.addr = node_insert(&node, name);
	post(churn, &node, &send);
	await(churn, send.context, node.txcq);
	await(churn, recv.context, node.txcq);
	CHECK(!memcmp(in, out, sizeof(out)));
	node_close(&node);
}

static void commute_until(void *arg, unsigned thread)
{
	struct churn *churn = arg;

	for (unsigned n = 0; !churn->stop; n++)
		commute(churn, thread, n);
	churn->present--;
}

static bool is_child;

/*
 * For the leak sanitizer: true, it looks for no leaks at the end. What only the stack of another
 * thread of the parent pointed to at the fork seems leaked in a child, which has no such thread.
 */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return is_child;
}

/*
 * The child runs the destructors of libraries, and must end, wherever its parent's threads were at
 * the fork.
 */
static void fork_one(struct churn *churn)
{
	int status;
	pid_t pid;

	pthread_mutex_lock(&churn->core_lock);
	pid = fork();
	pthread_mutex_unlock(&churn->core_lock);
	REQUIRE(pid >= 0);
	if (!pid) {
		is_child = true;
		alarm(LIFETIME);
		exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		check_fatal("a child ends with status %#x", status);
}

static void run_fork(struct env *env)
{
	struct node_attr attr = { .caps = CAPS, .one_cq = true };
	struct parallel commuters;
	struct churn churn;

	churn_open(&churn, env, &attr);
	churn.present = COMMUTERS;
	pthread_mutex_init(&churn.core_lock, NULL);
	parallel_start(&commuters, COMMUTERS, commute_until, &churn);
	for (unsigned n = 0; n < FORKS * churn.rounds; n++)
		fork_one(&churn);
	churn.stop = true;
	while (churn.present) {
		parallel_read(churn.home.txcq);
		sched_yield();
	}
	parallel_join(&commuters);
	pthread_mutex_destroy(&churn.core_lock);
	for (unsigned i = 0; i <= COMMUTERS; i++)
		parallel_pool_close(&churn.pools[i]);
	node_close(&churn.home);
}

static const struct suite_case cases[] = {
	{ "shared_context", CAPS, run_shared_context },
	{ "fork", CAPS, run_fork },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_churn",
			   "Endpoints that come and go beside threads that work, and forks.",
			   false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
