/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_unreachable: a peer whose host is cut off, or dies, in the middle of everything. The two
 * halves have hosts of their own. Another program cuts off or kills the server's host once the
 * client has said "under way". Every operation under way ends, once; a third endpoint does not
 * notice. When the host is back, its process or a new one at the same address is reached under the
 * same fi_addr_t. Give -T more seconds than the network takes to report that a host is gone. -v
 * prints the errors.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"
#include "common/env.h"
#include "common/node.h"
#include "common/oob.h"
#include "common/op.h"
#include "common/rma.h"
#include "common/suite.h"

#define COUNT 24 /* messages from either side; of them the server receives some: */
#define SOME 6
#define SMALL 2000
#define LONG (2 << 20)
#define WRITES 4
#define KEY 7
#define REGION (64 << 10) /* a word for the client's additions, and behind it its writes */
#define PAGE 4096
#define RETRY_MS 200
#define VICTIM "peer-to-kill" /* the name of the server's process */

#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

static const struct node_attr attr = { .caps = CAPS, .one_cq = true, .app_keys = true,
				       .by_offset = true };

enum fate {
	BACK,	  /* cut off for a while */
	REBOOTED, /* the same, and VICTIM is killed meanwhile */
	GONE,	  /* for good */
};

static size_t length_of(unsigned i)
{
	return i % 4 == 3 ? LONG : SMALL;
}

/* Messages that found no receive must end with an error of departure. */
static void check_ends(struct node *node, struct op *ops)
{
	for (unsigned i = SOME; i < COUNT; i++) {
		op_await(node, &ops[i]);
		if (!op_is_departure(ops[i].err))
			check_fail("message %u has ended with %s", i, fi_strerror(ops[i].err));
		op_free(&ops[i]);
	}
}

/* The server. */

/* At the port in name, or, if name is all zeros, at any. The name is left there. */
static void open_peer(struct node *node, struct env *env, struct region *region, char *name)
{
	struct node_attr own = attr;
	char port[NODE_PORT_MAX];

	own.src_port = node_port(name, port);
	node_open(node, env, &own);
	node->next_key = KEY - 1;
	region_open(node, region, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE);
	memset(region->buf, 0, sizeof(uint64_t));
	node_enable(node);
	node_name(node, name);
}

/*
 * The peer may be dead before the client answers, so it says nothing until it has heard the client.
 */
static void await_client(struct env *env)
{
	char word[OOB_MAX];

	oob_recv(&env->oob, word, sizeof(word));
}

static void live(struct env *env, char *name)
{
	struct op ops[COUNT] = { 0 };
	struct region region;
	struct node node;

	prctl(PR_SET_NAME, VICTIM);
	open_peer(&node, env, &region, name);
	node_connect(&node);
	for (unsigned i = 0; i < SOME; i++)
		op_recv(&node, &ops[i], length_of(i), false);
	op_hello(&node);
	for (unsigned i = 0; i < SOME; i++)
		op_finish(&node, &ops[i]);
	for (unsigned i = SOME; i < COUNT; i++)
		op_send(&node, &ops[i], length_of(i), false, node.peer);
	env_sync(env, "under way");
	await_client(env);
	check_ends(&node, ops);
	op_hello(&node);
	region_close(&region);
	node_close(&node);
	exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
}

static void live_again(struct env *env, char *name)
{
	struct region region;
	struct node node;

	open_peer(&node, env, &region, name);
	await_client(env);
	node_connect(&node);
	op_hello(&node);
	region_close(&region);
	node_close(&node);
	exit(check_failed() ? CHECK_FAIL : CHECK_PASS);
}

static int serve(struct env *env, void (*life)(struct env *env, char *name), char *name)
{
	pid_t pid = fork();
	int status;

	REQUIRE(pid >= 0);
	if (!pid)
		life(env, name);
	REQUIRE(waitpid(pid, &status, 0) == pid);
	return status;
}

static void run_server(struct env *env, enum fate fate)
{
	char *name = mmap(NULL, NODE_ADDR_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	int status;

	REQUIRE(name != MAP_FAILED);
	status = serve(env, live, name);
	if (fate == REBOOTED) {
		REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		status = serve(env, live_again, name);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHECK_PASS);
	munmap(name, NODE_ADDR_MAX);
}

/* The client. */

struct client {
	struct node node, third;
	fi_addr_t to_third, to_node;
	struct region from; /* of writes */
	struct op ops[COUNT];
	uint64_t added, tried;	/* additions that succeeded; all since the peer's word was 0 */
	uint64_t success;	/* when all was well last */
};

static void meet(struct client *client, struct env *env)
{
	char name[NODE_ADDR_MAX];

	node_open(&client->third, env, &attr);
	node_enable(&client->third);
	node_start(&client->node, env, &attr);
	node_name(&client->third, name);
	client->to_third = node_insert(&client->node, name);
	node_name(&client->node, name);
	client->to_node = node_insert(&client->third, name);
	region_open(&client->node, &client->from, REGION - PAGE, 0);
}

/* An addition; 0, or how it failed. */
static int add(struct client *client, uint64_t *before)
{
	struct op op = { 0 };

	op_add(&client->node, &op, KEY);
	client->tried++;
	op_await(&client->node, &op);
	*before = op.before;
	if (op.err)
		CHECK(op_is_departure(op.err));
	else
		client->added++;
	return op.err;
}

/* Some of everything, with the peer and between this process's own. False: some of it failed. */
static bool talk(struct client *client)
{
	struct op writes[WRITES] = { 0 };
	uint64_t before;
	int err;

	for (unsigned i = 0; i < WRITES; i++)
		op_write(&client->node, &writes[i], &client->from, KEY, PAGE);
	err = add(client, &before);
	for (unsigned i = 0; i < WRITES; i++) {
		op_await(&client->node, &writes[i]);
		CHECK(!writes[i].err || op_is_departure(writes[i].err));
		err = err ? err : writes[i].err;
	}
	op_talk(&client->node, &client->third, client->to_third, SMALL);
	op_talk(&client->third, &client->node, client->to_node, LONG);
	return !err;
}

static bool all_done(const struct client *client)
{
	for (unsigned i = SOME; i < COUNT; i++)
		if (!client->ops[i].done)
			return false;
	return true;
}

static double since(uint64_t when)
{
	return (double)(clock_now() - when) / 1e9;
}

/* Until the peer's host has gone, and everything has ended. */
static void lose(struct client *client, struct env *env)
{
	uint64_t end = env_deadline(env);

	printf("under way\n");
	do {
		client->success = clock_now();
		REQUIRE(clock_now() < end);
	} while (talk(client));
	while (!all_done(client))
		op_talk(&client->third, &client->node, client->to_node, SMALL);
	printf("%.0f s after the last success all operations have ended\n",
	       since(client->success));
	check_ends(&client->node, client->ops);
	comp_expect_none(&client->node, client->node.txcq);
}

/* Until the same address is reached again. */
static void find(struct client *client, struct env *env, enum fate fate)
{
	char mine[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];
	uint64_t end = env_deadline(env), before;
	size_t len;

	if (fate == REBOOTED)
		client->added = client->tried = 0;
	while (add(client, &before)) {
		REQUIRE(clock_now() < end);
		env_settle(env, RETRY_MS);
	}
	printf("%.0f s after the last success the peer is back\n", since(client->success));
	/* Additions that failed may have been executed. */
	CHECK(before + 1 >= client->added && before < client->tried);
	oob_send(&env->oob, "back", 4);
	if (fate == REBOOTED) {
		len = node_name(&client->node, mine);
		oob_exchange(&env->oob, mine, len, theirs, sizeof(theirs));
	}
	op_hello(&client->node);
}

static void run_client(struct env *env, enum fate fate)
{
	static struct client client;

	memset(&client, 0, sizeof(client));
	meet(&client, env);
	for (unsigned i = 0; i < COUNT; i++)
		op_send(&client.node, &client.ops[i], length_of(i), false, client.node.peer);
	op_hello(&client.node);
	for (unsigned i = 0; i < SOME; i++)
		op_finish(&client.node, &client.ops[i]);
	env_sync(env, "under way");
	lose(&client, env);
	if (fate != GONE)
		find(&client, env, fate);
	region_close(&client.from);
	node_close(&client.node);
	node_close(&client.third);
}

static void run(struct env *env, enum fate fate)
{
	if (env->server)
		run_server(env, fate);
	else
		run_client(env, fate);
}

static void run_back(struct env *env)
{
	run(env, BACK);
}

static void run_rebooted(struct env *env)
{
	run(env, REBOOTED);
}

static void run_gone(struct env *env)
{
	run(env, GONE);
}

static const struct suite_case cases[] = {
	{ "back", CAPS, run_back },
	{ "rebooted", CAPS, run_rebooted },
	{ "gone", CAPS, run_gone },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_unreachable", "A peer whose host is cut off, or dies.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
