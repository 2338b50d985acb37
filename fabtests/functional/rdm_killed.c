/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_killed: a peer whose process ends without closing, in the middle of this or that. The
 * client's operations with it end, each once, with an error that says so or with success; a third
 * endpoint does not notice; and a new process at the same address is reached under the same
 * fi_addr_t, or where nobody had been before. -v prints the errors.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/env.h"
#include "common/node.h"
#include "common/op.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

#define COUNT 48  /* operations under way; of them the peer sees some: */
#define SOME 10
#define SMALL 2000
#define LONG (2 << 20)
#define LONGS 6
#define WORD_KEY 7
#define TIMES 3

#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

static const struct node_attr attr = { .caps = CAPS, .one_cq = true, .app_keys = true,
				       .by_offset = true };

/* A case, the same on both halves. */
struct scene {
	unsigned count;	   /* operations */
	size_t len;
	/* Called by the client: begins operation i with the peer. */
	void (*begin)(struct node *node, struct op *op, unsigned i, size_t len);
	/* Called by the peer: returns when its process is to end. */
	void (*live)(struct node *node, const struct scene *scene, struct op *ops);
	bool strangers; /* no message before: they may not be connected */
	bool exits;	/* is not killed, but leaves without closing */
	bool after;	/* the client begins when it is dead */
	bool absent;	/* its process chooses a name and closes before the client knows the name */
	bool removes;	/* the client removes the dying peer's address, and inserts it again */
	unsigned least_errors;
};

/* The peer's process. */

static void never_mind(struct node *node, const struct scene *scene, struct op *ops)
{
	(void)node;
	(void)scene;
	(void)ops;
}

static void receive_some(struct node *node, const struct scene *scene, struct op *ops)
{
	unsigned some = scene->count > SOME ? SOME : 1;

	for (unsigned i = 0; i < some; i++)
		op_finish(node, &ops[i]);
}

static void send_one(struct node *node, const struct scene *scene, struct op *ops)
{
	for (unsigned i = 0; i < scene->count; i++)
		op_send(node, &ops[i], scene->len, false, node->peer);
	op_await(node, &ops[0]);
	REQUIRE_RET(ops[0].err, 0);
}

static struct region word;

static void add_some(struct node *node, const struct scene *scene, struct op *ops)
{
	uint64_t end = env_deadline(node->env);

	(void)scene;
	(void)ops;
	while (__atomic_load_n((uint64_t *)word.buf, __ATOMIC_ACQUIRE) < SOME) {
		node_progress(node);
		if (clock_now() > end)
			check_fatal("nobody adds");
	}
}

/* At the port in name, or, if name is all zeros, at any. The name is left there. */
static void open_node(struct node *node, struct env *env, char *name)
{
	struct node_attr own = attr;
	char port[NODE_PORT_MAX];

	own.src_port = node_port(name, port);
	node_open(node, env, &own);
	node->next_key = WORD_KEY - 1;
	node_enable(node);
	node_name(node, name);
}

static void open_peer(struct node *node, struct env *env, char *name)
{
	open_node(node, env, name);
	region_open(node, &word, sizeof(uint64_t), FI_REMOTE_READ | FI_REMOTE_WRITE);
	memset(word.buf, 0, sizeof(uint64_t));
	node_connect(node);
}

static void choose_name(struct env *env, char *name)
{
	struct node node;

	open_node(&node, env, name);
	node_close(&node);
	exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
}

static void live_and_die(struct env *env, const struct scene *scene, char *name)
{
	struct op ops[COUNT] = { 0 };
	struct node node;

	if (scene->absent)
		choose_name(env, name);
	open_peer(&node, env, name);
	if (scene->live == receive_some)
		for (unsigned i = 0; i < scene->count; i++)
			op_recv(&node, &ops[i], scene->len, false);
	if (!scene->strangers)
		op_hello(&node);
	scene->live(&node, scene, ops);
	if (scene->exits)
		exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
	raise(SIGKILL);
}

static void live_again(struct env *env, char *name)
{
	struct node node;

	open_peer(&node, env, name);
	op_hello(&node);
	region_close(&word);
	node_close(&node);
	exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
}

static void serve(struct env *env, const struct scene *scene, char *name)
{
	pid_t pid = fork();
	int status;

	REQUIRE(pid >= 0);
	if (!pid) {
		if (scene)
			live_and_die(env, scene, name);
		live_again(env, name);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (scene && !scene->exits)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHECK_PASS);
}

/*
 * The server itself has no endpoint. at_once: there is a new process before the client knows of the
 * death.
 */
static void run_server(struct env *env, const struct scene *scene, bool at_once)
{
	char *name = mmap(NULL, NODE_ADDR_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	char theirs[NODE_ADDR_MAX];

	REQUIRE(name != MAP_FAILED);
	serve(env, scene, name);
	if (scene->absent)
		oob_exchange(&env->oob, name, NODE_ADDR_MAX, theirs, sizeof(theirs));
	env_sync(env, "dead");
	if (!at_once)
		env_sync(env, "ended");
	serve(env, NULL, name);
	env_sync(env, "served");
	munmap(name, NODE_ADDR_MAX);
}

/* The client. */

static void client_sends(struct node *node, struct op *op, unsigned i, size_t len)
{
	(void)i;
	op_send(node, op, len, false, node->peer);
}

static void client_receives(struct node *node, struct op *op, unsigned i, size_t len)
{
	(void)i;
	op_recv(node, op, len, false);
}

static void client_adds(struct node *node, struct op *op, unsigned i, size_t len)
{
	(void)i;
	(void)len;
	op_add(node, op, WORD_KEY);
}

static void check_ends(const struct scene *scene, struct op *ops)
{
	unsigned errors = 0;

	for (unsigned i = 0; i < scene->count; i++) {
		errors += ops[i].err != 0;
		if (ops[i].err && !op_is_departure(ops[i].err) &&
		    !(ops[i].err == FI_ECANCELED && scene->begin == client_receives))
			check_fail("operation %u has ended with %s", i, fi_strerror(ops[i].err));
		if (!ops[i].err && scene->begin == client_adds)
			CHECK_EQ(ops[i].before, i);
		if (!ops[i].err && scene->begin == client_receives)
			pattern_check(ops[i].xfer.buf, ops[i].xfer.len, ops[i].xfer.len);
		op_free(&ops[i]);
	}
	CHECK(errors >= scene->least_errors);
}

static void connect_again(struct node *node, const char *name)
{
	char mine[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];
	size_t len = node_name(node, mine);

	REQUIRE(oob_exchange(&node->env->oob, mine, len, theirs, sizeof(theirs)) == len);
	CHECK(!memcmp(theirs, name, len));
}

/* The peer may have died before it had sent all messages. A message that is being read goes on. */
static void cancel_unmatched(struct node *node, struct op *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fi_cancel(&node->ep->fid, &ops[i]);
}

static void run_client(struct env *env, const struct scene *scene, bool at_once)
{
	struct op ops[COUNT] = { 0 };
	/* A fast device reads all before the peer dies; later receives still need the peer. */
	unsigned early = scene->begin == client_receives ? scene->count / 2 : scene->count;
	char name[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];
	struct node node, third;
	fi_addr_t to_third, to_node;
	size_t len = sizeof(theirs);
	uint64_t dead;

	node_open(&third, env, &attr);
	node_enable(&third);
	node_start(&node, env, &attr);
	REQUIRE_RET(fi_av_lookup(node.av, node.peer, theirs, &len), 0);
	node_name(&third, name);
	to_third = node_insert(&node, name);
	node_name(&node, name);
	to_node = node_insert(&third, name);
	if (!scene->strangers)
		op_hello(&node);
	if (scene->after)
		env_sync(env, "dead");
	for (unsigned i = 0; i < early; i++)
		scene->begin(&node, &ops[i], i, scene->len);
	op_talk(&node, &third, to_third, SMALL);
	if (scene->removes)
		CHECK_RET(fi_av_remove(node.av, &node.peer, 1, 0), 0);
	if (!scene->after)
		env_sync(env, "dead");
	for (unsigned i = early; i < scene->count; i++)
		scene->begin(&node, &ops[i], i, scene->len);
	dead = clock_now();
	op_talk(&third, &node, to_node, LONG);
	if (scene->begin == client_receives)
		cancel_unmatched(&node, ops, scene->count);
	for (unsigned i = 0; i < scene->count; i++)
		op_await(&node, &ops[i]);
	if (env->opts.verify)
		printf("%.1f s after the death all operations have ended\n",
		       (clock_now() - dead) / 1e9);
	check_ends(scene, ops);
	op_talk(&node, &third, to_third, LONG);
	comp_expect_none(&node, node.txcq);
	if (scene->removes)
		node.peer = node_insert(&node, theirs);
	if (!at_once)
		env_sync(env, "ended");
	connect_again(&node, theirs);
	op_hello(&node);
	env_sync(env, "served");
	node_close(&node);
	node_close(&third);
}

static void run_once(struct env *env, const struct scene *scene, bool at_once)
{
	if (env->server)
		run_server(env, scene, at_once);
	else
		run_client(env, scene, at_once);
}

static void run(struct env *env, const struct scene *scene)
{
	/*
	 * To a stranger the new process is as good as the dead one. If a request to connect died
	 * while its reader had not answered it, the next process reads it, and the messages wait
	 * there for receives.
	 */
	run_once(env, scene, false);
	for (unsigned i = 1; i < TIMES; i++)
		run_once(env, scene, !scene->strangers);
}

static void run_connecting(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .live = never_mind, .strangers = true,
					    .least_errors = COUNT };

	run(env, &scene);
}

/* An address is inserted, and sent to, before anybody is there. */
static void run_absent(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .strangers = true, .after = true, .absent = true,
					    .exits = true, .least_errors = COUNT };

	run(env, &scene);
}

static void run_idle(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .live = never_mind, .after = true,
					    .least_errors = COUNT };

	run(env, &scene);
}

static void run_idle_long(struct env *env)
{
	static const struct scene scene = { .count = LONGS, .len = LONG, .begin = client_sends,
					    .live = never_mind, .after = true,
					    .least_errors = LONGS };

	run(env, &scene);
}

static void run_eager(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .live = receive_some };

	run(env, &scene);
}

static void run_unexpected(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .live = never_mind, .least_errors = COUNT };

	run(env, &scene);
}

/* The peer dies while it reads our messages. */
static void run_read_by(struct env *env)
{
	static const struct scene scene = { .count = LONGS, .len = LONG, .begin = client_sends,
					    .live = receive_some };

	run(env, &scene);
}

/* The peer dies while we read its messages. */
static void run_read_from(struct env *env)
{
	static const struct scene scene = { .count = LONGS, .len = LONG, .begin = client_receives,
					    .live = send_one, .least_errors = 1 };

	run(env, &scene);
}

static void run_atomic(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .begin = client_adds,
					    .live = add_some };

	run(env, &scene);
}

static void run_exits(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .live = receive_some, .exits = true };

	run(env, &scene);
}

static void run_removed(struct env *env)
{
	static const struct scene scene = { .count = COUNT, .len = SMALL, .begin = client_sends,
					    .live = receive_some, .removes = true };

	run(env, &scene);
}

static const struct suite_case cases[] = {
	{ "absent", CAPS, run_absent },
	{ "connecting", CAPS, run_connecting },
	{ "idle", CAPS, run_idle },
	{ "idle_long", CAPS, run_idle_long },
	{ "eager", CAPS, run_eager },
	{ "unexpected", CAPS, run_unexpected },
	{ "read_by", CAPS, run_read_by },
	{ "read_from", CAPS, run_read_from },
	{ "atomic", CAPS, run_atomic },
	{ "exits", CAPS, run_exits },
	{ "removed", CAPS, run_removed },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_killed", "A peer whose process ends without closing.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
