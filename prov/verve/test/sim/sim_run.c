/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs: one seed from open to close, many seeds, and the report of a failure. */
#include <poll.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ep.h"
#include "engine/engine.h"
#include "sim.h"
#include "xport/peer.h"
#include "xport/xport.h"

/* AddressSanitizer's, if it is there. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

static const uint64_t stall = 120000000000; /* simulated ns without a completion: it hangs */

static struct sim *running; /* for handlers */

uint64_t sim_random(struct sim *sim)
{
	uint64_t z = sim->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t sim_below(struct sim *sim, uint32_t n)
{
	return (uint32_t)(sim_random(sim) >> 33) % n;
}

bool sim_chance(struct sim *sim, uint32_t chance)
{
	return sim_below(sim, 1000) < chance;
}

static void print_seed(void)
{
	char program[4096];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (!running)
		return;
	program[len > 0 ? len : 0] = '\0';
	fprintf(stderr,
		"seed %llu of %s failed, %.3f us into it; to run it alone (VERVE_TRACE=1 for every "
		"event):\n"
		"  VERVE_SEED=%llu %s --filter %s\n",
		(unsigned long long)running->seed, running->options->name, fake_net_time() / 1e3,
		(unsigned long long)running->seed, program, running->options->name);
	running = NULL;
}

_Noreturn void sim_fail(const struct sim *sim, const char *fmt, ...)
{
	va_list args;

	(void)sim;
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	print_seed();
	abort();
}

static struct sigaction old_action[NSIG];

static void on_signal(int signal)
{
	print_seed();
	sigaction(signal, &old_action[signal], NULL);
	raise(signal);
}

static void catch (int signal)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(signal, &action, &old_action[signal]);
}

/* A node that has nothing to do gives its wait descriptors to poll(2). */
static void fall_asleep(struct sim_node *node)
{
	struct fid *fids[2] = {&node->tx_cq->fid, &node->rx_cq->fid};
	int ret = fi_trywait(node->sim->fabric, fids, node->tx_cq == node->rx_cq ? 1 : 2);

	if (ret && ret != -FI_EAGAIN)
		sim_fail(node->sim, "fi_trywait: %s", fi_strerror(-ret));
	node->asleep = !ret;
}

/* Everything that was sent to the node, or that it sent, is over. */
static bool is_idle(struct sim_node *node)
{
	struct sim *sim = node->sim;

	if (node->budget || node->live || node->claim || !TAILQ_EMPTY(&node->inbound))
		return false;
	for (size_t i = 0; i < sim->op_count; i++) {
		struct sim_op *op = sim->ops[i];

		/*
		 * A silent send of its own may still wait for a receive, longer than a close does.
		 */
		if (op->kind != SIM_RECV && op->kind != SIM_PEEK &&
		    (op->peer == node || op->node == node) && !sim_is_over(op))
			return false;
	}
	return true;
}

/* For nodes that have no reason to go: they may go all the same. */
static bool may_close(struct sim_node *node)
{
	struct sim *sim = node->sim;

	if (sim->options->abandon)
		return sim_chance(sim, 3);
	return sim->options->retire && sim_chance(sim, 20) && is_idle(node);
}

enum {
	SWEEPS = 8,	  /* at a time */
	SETTLED_OPS = 30, /* of each node */
};

/* Messages wait, or are on their way, for which there may be no receive. */
static bool lacks_receives(const struct sim_node *node, bool tagged)
{
	const struct sim_op *op;
	uint32_t waiting = 0;

	TAILQ_FOREACH (op, &node->inbound, link)
		waiting += op->tagged == tagged;
	return node->sweeps[tagged] < waiting && node->sweeps[tagged] < SWEEPS;
}

static void sweep(struct sim_node *node)
{
	if (node->claim)
		sim_start_claim(node);
	for (int tagged = 0; tagged < 2; tagged++)
		if (lacks_receives(node, tagged))
			sim_start_sweep(node, tagged);
}

/* A node with operations to start wakes up by itself as well. */
static bool has_work(struct sim_node *node)
{
	if (node->sim->sweeping)
		return node->claim || lacks_receives(node, false) || lacks_receives(node, true);
	return node->budget && sim_chance(node->sim, 50);
}

static bool is_awake(struct sim_node *node)
{
	struct pollfd fds[2] = {
		{.fd = node->tx_fd, .events = POLLIN},
		{.fd = node->rx_fd, .events = POLLIN},
	};

	if (!node->asleep)
		return true;
	if (poll(fds, 2, 0) > 0 || has_work(node))
		node->asleep = false;
	return !node->asleep;
}

static void act(struct sim_node *node)
{
	struct sim *sim = node->sim;

	if (sim->options->wait && sim_chance(sim, 200)) {
		fall_asleep(node);
		return;
	}
	if (sim->sweeping) {
		sweep(node);
		return;
	}
	switch (sim_below(sim, 8)) {
	case 0:
	case 1:
		if (node->budget)
			sim_start_send(node);
		break;
	case 2:
		if (node->budget && sim_chance(sim, sim->options->refused))
			sim_start_refused(node);
		else if (node->budget && sim_chance(sim, 600))
			sim_start_rma(node);
		else if (node->budget && sim_chance(sim, 700))
			sim_start_atomic(node);
		break;
	case 3:
		sim_start_recv(node);
		break;
	case 4:
		if (sim_chance(sim, 100))
			sim_start_peek(node);
		else if (sim_chance(sim, sim->options->fickle ? 900 : 60))
			sim_cancel_some(node);
		break;
	default:
		break;
	}
}

/* One turn of a node's application. Returns the number of completions. */
static uint32_t turn(struct sim_node *node)
{
	struct sim *sim = node->sim;

	if (node->closing || node->dead)
		return 0;
	if (!node->started) {
		if (fake_net_time() >= node->start_at)
			sim_node_start(node);
		return 1;
	}
	if (!is_awake(node))
		return 0;
	act(node);
	/* An application that computes leaves the rest to the progress thread. */
	if (sim->options->threads && sim_chance(sim, 900))
		return 0;
	return sim_progress(node, 1 + sim_below(sim, 8));
}

/* Everybody else goes on while one closes its endpoint. */
static void on_pause(void *arg)
{
	struct sim *sim = arg;

	for (uint32_t i = 0; i < sim->options->nodes; i++)
		turn(&sim->nodes[i]);
	sim_check_delivered(sim);
}

static bool is_finished(struct sim *sim)
{
	bool budget = false;

	for (uint32_t i = 0; i < sim->options->nodes; i++) {
		struct sim_node *node = &sim->nodes[i];

		if (!node->closing && !node->dead)
			budget |= node->budget || !node->started;
	}
	if (!sim->sweeping) {
		sim->sweeping = !budget;
		return false;
	}
	for (uint32_t i = 0; i < sim->options->nodes; i++) {
		struct sim_node *node = &sim->nodes[i];

		if (!node->closing && !node->dead && (node->live || node->claim))
			return false;
	}
	for (size_t i = 0; i < sim->op_count; i++) {
		struct sim_op *op = sim->ops[i];

		if (op->kind != SIM_RECV && op->kind != SIM_PEEK && !sim_may_be_lost(op) &&
		    !sim_is_over(op))
			return false;
	}
	return true;
}

static void kill_host(struct sim *sim)
{
	fake_net_host_kill(0);
	for (uint32_t i = 0; i < sim->options->nodes; i++)
		if (sim->nodes[i].host == 0)
			sim->nodes[i].dead = sim->nodes[i].retired = true;
}

static void dump(struct sim *sim)
{
	static const char *const kinds[] = {"send", "receive", "write",
					    "read", "peek",    "atomic"};
	int lines = 0;

	for (uint32_t i = 0; i < sim->options->nodes; i++) {
		const struct sim_node *node = &sim->nodes[i];

		if (node->live || node->budget || node->claim || !TAILQ_EMPTY(&node->inbound))
			fprintf(stderr,
				"  node %u: %u to start, %u to complete, %u receives posted%s%s\n",
				i, node->budget, node->live, node->posted,
				node->claim ? ", a claim" : "", node->asleep ? ", asleep" : "");
	}
	for (size_t i = 0; i < sim->op_count && lines < 40; i++) {
		struct sim_op *op = sim->ops[i];

		if (op->kind == SIM_RECV || op->node->dead || sim_is_over(op))
			continue;
		fprintf(stderr, "  %s %lu, node %u -> %d, %zu bytes: %s, %s\n", kinds[op->kind],
			op->id, op->node->index, op->peer ? (int)op->peer->index : -1, op->len,
			op->done    ? "completed"
			: op->entry ? "not completed"
				    : "silent",
			op->received ? "received" : "not received");
		lines++;
	}
}

/*
 * As if many other peers had come and gone: each peer that is not needed is freed, and looked up
 * again.
 */
static void forget_peers(struct sim_node *node)
{
	for (uint32_t i = 0; i < SIM_MEMBERS; i++) {
		struct verve_engine *engine;
		struct verve_xport *xport;

		if (!node->ep[i])
			continue;
		engine = verve_ep_from_fid(node->ep[i])->engine;
		xport = verve_engine_lock(engine);
		verve_peer_forget_all(xport);
		verve_peer_forget_all(xport->home);
		xport->peers_limit = xport->home->peers_limit = 0;
		verve_engine_unlock(engine);
	}
}

static void change_memlock(struct sim *sim)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	fake_net_memlock(sim_chance(sim, 300) ? UINT64_MAX : stats.pinned + sim_below(sim, 20000));
}

/* From here on regions stay, and every node has heard which were closed; operations go on. */
static void settle(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->options->nodes; i++) {
		sim_region_reopen(&sim->nodes[i]);
		sim->nodes[i].budget = SETTLED_OPS;
	}
	for (int i = 0; i < 2000; i++) {
		fake_net_advance(5000000);
		for (uint32_t j = 0; j < sim->options->nodes; j++)
			sim_progress(&sim->nodes[j], 16);
	}
	sim->sweeping = false;
	sim->settled = true;
}

static void traffic(struct sim *sim)
{
	uint32_t nodes = sim->options->nodes, idle = 0, turns = 0;
	uint64_t kill_at = sim->options->kill ? 1000 + sim_below(sim, 500) * nodes : 0;

	while (!is_finished(sim)) {
		for (uint32_t i = 0; i < nodes; i++) {
			struct sim_node *node = &sim->nodes[sim_below(sim, nodes)];
			uint32_t count = turn(node);

			sim_check_delivered(sim);
			if (node->started && !node->closing && !node->dead && may_close(node)) {
				node->retired = true;
				sim_node_close(node);
			}
			if (!sim->settled && !sim->sweeping &&
			    sim_chance(sim, sim->options->closing))
				sim_region_change(node);
			idle = count ? 0 : idle + 1;
			fake_net_advance(sim_below(sim, 2000));
			if (sim_chance(sim, 20) && node->started && !node->closing && !node->dead)
				forget_peers(node);
			if (sim->options->poor && sim_chance(sim, 20))
				change_memlock(sim);
			if (++turns == kill_at)
				kill_host(sim);
		}
		if (sim->options->closing && sim->sweeping && !sim->settled)
			settle(sim);
		/* No node has anything to do: time moves on to the next event. */
		if (idle > 4 * nodes)
			fake_net_advance(fake_net_next() == UINT64_MAX
						 ? 1000000
						 : fake_net_next() - fake_net_time());
		if (fake_net_time() - sim->last_progress > stall) {
			dump(sim);
			sim_fail(sim, "it hangs: no completion for %.0f s", stall / 1e9);
		}
	}
}

/* Receive buffers that neither the device nor the provider has. */
static uint32_t lost_receives(struct fid_ep *ep)
{
	struct verve_engine *engine = verve_ep_from_fid(ep)->engine;
	struct verve_xport *xport = verve_engine_lock(engine);
	uint32_t found = xport->rx_free_count + xport->rx_load.aside_count +
			 (uint32_t)(xport->batch.count - xport->batch.at) +
			 fake_net_srq_count(xport->srq) + fake_net_cq_count(xport->recv_cq);
	uint32_t lost = xport->rx_count - found;

	/* A few may stay in question while connections that may have them say nothing. */
	if (lost <= xport->rx_count / 8)
		lost = 0;
	verve_engine_unlock(engine);
	return lost;
}

static uint32_t all_lost_receives(struct sim *sim)
{
	uint32_t lost = 0;

	for (uint32_t i = 0; i < sim->options->nodes; i++)
		for (uint32_t j = 0; j < sim->nodes[i].members; j++)
			if (sim->nodes[i].started && !sim->nodes[i].closing && !sim->nodes[i].dead)
				lost += lost_receives(sim->nodes[i].ep[j]);
	return lost;
}

/*
 * Queue pairs have come and gone: all their receives must be back, at once or when nothing else
 * happens.
 */
static void check_receives(struct sim *sim)
{
	for (int i = 0; i < 20000 && all_lost_receives(sim); i++) {
		fake_net_advance(1000000);
		for (uint32_t j = 0; j < sim->options->nodes; j++)
			if (sim->nodes[j].started && !sim->nodes[j].closing && !sim->nodes[j].dead)
				sim_progress(&sim->nodes[j], 16);
	}
	if (all_lost_receives(sim))
		sim_fail(sim, "%u receive buffers are lost", all_lost_receives(sim));
}

static bool is_connecting(const struct sim_node *node)
{
	bool any = false;

	for (uint32_t i = 0; i < SIM_MEMBERS; i++) {
		struct verve_engine *engine;
		struct verve_xport *xport;

		if (!node->ep[i])
			continue;
		engine = verve_ep_from_fid(node->ep[i])->engine;
		xport = verve_engine_lock(engine);
		any |= xport->connecting_count || !TAILQ_EMPTY(&xport->wanting) ||
		       !TAILQ_EMPTY(&xport->denied);
		verve_engine_unlock(engine);
	}
	return any;
}

/*
 * A call that was refused, and not made again, still has its peer connected. The peer must not be
 * closed then: a warning would follow.
 */
static void connect_all(struct sim *sim)
{
	bool any = true;

	for (int i = 0; any && i < 2000; i++) {
		any = false;
		fake_net_advance(5000000);
		for (uint32_t j = 0; j < sim->options->nodes; j++) {
			struct sim_node *node = &sim->nodes[j];

			if (!node->started || node->closing || node->dead)
				continue;
			sim_progress(node, 16);
			any |= is_connecting(node);
		}
	}
}

static void close_all(struct sim *sim)
{
	uint32_t nodes = sim->options->nodes, first = sim_below(sim, nodes);

	for (uint32_t i = 0; i < nodes; i++) {
		struct sim_node *node = &sim->nodes[(first + i) % nodes];

		if (!node->closing)
			sim_node_close(node);
	}
}

static void run_seed(const struct sim_options *options, uint64_t seed)
{
	struct sim sim = {.options = options, .seed = seed, .random = seed * 0x9e3779b97f4a7c15};

	running = &sim;
	TAILQ_INIT(&sim.delivered);
	sim_log_reset(options->late || options->abandon || options->kill || options->tiny ||
		      options->poor || options->refused || options->closing);
	sim_open(&sim);
	fake_net_on_pause(on_pause, &sim);
	traffic(&sim);
	check_receives(&sim);
	connect_all(&sim);
	close_all(&sim);
	sim_check_end(&sim);
	fake_net_on_pause(NULL, NULL);
	sim_close(&sim);
	if (__lsan_do_recoverable_leak_check && getenv("VERVE_SEED") &&
	    __lsan_do_recoverable_leak_check())
		sim_fail(&sim, "memory leaks");
	running = NULL;
}

void sim_run_seeds(const struct sim_options *options, uint32_t seeds)
{
	const char *one = getenv("VERVE_SEED"), *many = getenv("VERVE_SEEDS");

	catch (SIGABRT);
	catch (SIGSEGV);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(print_seed);
	if (one) {
		run_seed(options, strtoull(one, NULL, 0));
		return;
	}
	if (many)
		seeds = (uint32_t)strtoul(many, NULL, 0);
	for (uint64_t seed = 1; seed <= seeds; seed++)
		run_seed(options, seed);
	if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()) {
		fprintf(stderr, "memory leaks in %s: find the seed with VERVE_SEED\n",
			options->name);
		abort();
	}
}
