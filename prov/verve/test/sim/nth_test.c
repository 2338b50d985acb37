/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scenes in which every allocation of the provider, and every call of the device, the sockets and
 * the threads, fails in its turn: nth.h. VERVE_SEED and VERVE_NTH run one world, and one n of it.
 */
#include <criterion/criterion.h>

#include "fake_net.h"
#include "nth.h"

enum { SMALL = 40, EAGER = 700, LONG = 7000, ANYBODY = 9 };

static const uint64_t ms = 1000000; /* simulated ns */

/* Number, from one to another: received by name, and sent. */
static void message(struct nth *nth, int from, int to, unsigned number, size_t len)
{
	nth_recv(nth, to, from, number, len);
	nth_send(nth, from, to, number, len, 0);
}

/* Every end sends to every end, itself included. Receives take a message from any sender. */
static void everybody(struct nth *nth, unsigned number, size_t len, uint64_t flags)
{
	for (int i = 0; i < NTH_ENDS; i++) {
		for (int j = 0; j < NTH_ENDS; j++)
			if (i != j)
				nth_recv(nth, i, j, number, len);
		nth_recv(nth, i, NTH_ANY, ANYBODY + number, len);
	}
	for (int i = 0; i < NTH_ENDS; i++)
		for (int j = 0; j < NTH_ENDS; j++)
			nth_send(nth, i, j, i == j ? ANYBODY + number : number, len, flags);
}

static void eager(struct nth *nth)
{
	everybody(nth, 0, SMALL, 0);
	everybody(nth, 1, EAGER, FI_DELIVERY_COMPLETE);
}

/* Every pair of ends can talk. */
static void hello(struct nth *nth)
{
	message(nth, 0, 1, 0, SMALL);
	message(nth, 1, 2, 0, LONG);
}

Test(nth, opening)
{
	nth_run(&(struct nth_scene){
		.name = "opening",
		.play = hello,
		.opening = true,
		.allocations = 200,
		.calls = 50,
		.broken = 30,
	});
}

Test(nth, opening_shared_contexts_and_progress_threads)
{
	nth_run(&(struct nth_scene){
		.name = "opening_shared_contexts_and_progress_threads",
		.play = hello,
		.opening = true,
		.shared = true,
		.automatic = true,
		.keys = true,
		.allocations = 220,
		.calls = 60,
		.broken = 30,
	});
}

Test(nth, eager)
{
	nth_run(&(struct nth_scene){
		.name = "eager",
		.play = eager,
		.cold = true,
		.allocations = 120,
		.calls = 40,
	});
}

Test(nth, eager_by_slabs)
{
	nth_run(&(struct nth_scene){
		.name = "eager_by_slabs",
		.play = eager,
		.slabs = true,
		.allocations = 50,
		.calls = 28,
	});
}

/* Two from each, and then they are received. */
static void unexpected(struct nth *nth)
{
	for (unsigned i = 0; i < 3; i++) {
		nth_send(nth, 0, 1, i, EAGER, 0);
		nth_send(nth, 2, 1, i, i == 1 ? LONG : SMALL, 0);
	}
	nth_pass(nth, 5 * ms);
	for (unsigned i = 3; i-- > 0;) {
		nth_recv(nth, 1, 0, i, EAGER);
		nth_recv(nth, 1, NTH_ANY, i, LONG);
	}
}

Test(nth, unexpected)
{
	nth_run(&(struct nth_scene){
		.name = "unexpected",
		.play = unexpected,
		.allocations = 14,
		.calls = 8,
	});
}

Test(nth, unexpected_of_a_shared_context)
{
	nth_run(&(struct nth_scene){
		.name = "unexpected_of_a_shared_context",
		.play = unexpected,
		.shared = true,
		.allocations = 14,
		.calls = 8,
	});
}

/* Some messages find the buffer, others are there before it. */
static void multi(struct nth *nth)
{
	for (int i = 0; i < 2; i++)
		nth_send(nth, 2 * i, 1, 0, 200, FI_MULTI_RECV);
	nth_pass(nth, 5 * ms);
	nth_recv_multi(nth, 1, 800);
	for (int i = 0; i < 2; i++)
		nth_send(nth, 2 * i, 1, 1, 200, FI_MULTI_RECV);
}

Test(nth, multi_receive)
{
	nth_run(&(struct nth_scene){
		.name = "multi_receive",
		.play = multi,
		.allocations = 8,
		.calls = 4,
	});
}

/* The first message spends the buffer, the others have receives behind it. */
static void multi_and_plain(struct nth *nth)
{
	nth_recv_multi(nth, 1, 200);
	for (int i = 0; i < 3; i++)
		nth_recv_untagged(nth, 1, 200);
	for (int i = 0; i < 4; i++)
		nth_send(nth, i & 2, 1, i & 1, 200, FI_MULTI_RECV);
}

Test(nth, multi_receive_and_others)
{
	nth_run(&(struct nth_scene){
		.name = "multi_receive_and_others",
		.play = multi_and_plain,
		.allocations = 6,
		.calls = 4,
	});
}

static void rendezvous(struct nth *nth)
{
	everybody(nth, 0, LONG, 0);
}

Test(nth, rendezvous)
{
	nth_run(&(struct nth_scene){
		.name = "rendezvous",
		.play = rendezvous,
		.cold = true,
		.allocations = 120,
		.calls = 55,
	});
}

Test(nth, rendezvous_kept)
{
	nth_run(&(struct nth_scene){
		.name = "rendezvous_kept",
		.play = rendezvous,
		.kept = true,
		.allocations = 50,
		.calls = 30,
	});
}

Test(nth, rendezvous_through_windows)
{
	nth_run(&(struct nth_scene){
		.name = "rendezvous_through_windows",
		.play = rendezvous,
		.windows = true,
		.cold = true,
		.allocations = 120,
		.calls = 55,
	});
}

Test(nth, rendezvous_through_windows_for_a_peer)
{
	nth_run(&(struct nth_scene){
		.name = "rendezvous_through_windows_for_a_peer",
		.play = rendezvous,
		.windows = true,
		.for_peer = true,
		.cold = true,
		.allocations = 120,
		.calls = 55,
	});
}

/* No more memory may be registered than there is already. */
static void pull(struct nth *nth)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	fake_net_memlock(stats.pinned);
	rendezvous(nth);
}

Test(nth, pulling)
{
	nth_run(&(struct nth_scene){
		.name = "pulling",
		.play = pull,
		.allocations = 55,
		.calls = 110,
	});
}

static void rma(struct nth *nth)
{
	for (int i = 1; i < NTH_ENDS; i++) {
		nth_write(nth, 0, i, 0, SMALL);
		nth_write(nth, 0, i, 1, LONG);
		nth_read(nth, 0, i, 2, LONG);
		nth_read(nth, i, 0, 3, SMALL);
	}
}

Test(nth, rma)
{
	nth_run(&(struct nth_scene){
		.name = "rma",
		.play = rma,
		.cold = true,
		.allocations = 55,
		.calls = 22,
	});
}

Test(nth, rma_with_events)
{
	nth_run(&(struct nth_scene){
		.name = "rma_with_events",
		.play = rma,
		.events = true,
		.allocations = 9,
		.calls = 15,
	});
}

static void rma_through_slabs(struct nth *nth)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	fake_net_memlock(stats.pinned);
	rma(nth);
}

Test(nth, rma_through_slabs)
{
	nth_run(&(struct nth_scene){
		.name = "rma_through_slabs",
		.play = rma_through_slabs,
		.allocations = 9,
		.calls = 28,
	});
}

/* A key is asked for, revoked under way, and means another region. */
static void keys(struct nth *nth)
{
	rma(nth);
	nth_settle(nth);
	nth_region_close(nth, 1);
	nth_write(nth, 0, 1, 0, LONG);
	nth_settle(nth);
	nth_region_open(nth, 1);
	rma(nth);
	nth_pass(nth, ms / 200);
	nth_region_close(nth, 1);
	nth_settle(nth);
	nth_region_open(nth, 1);
}

Test(nth, keys)
{
	nth_run(&(struct nth_scene){
		.name = "keys",
		.play = keys,
		.keys = true,
		.cold = true,
		.allocations = 110,
		.calls = 60,
	});
}

/* A region is opened and closed again and again: each time a window opens it and ends. */
static void reopened(struct nth *nth)
{
	for (int i = 0; i < 3; i++) {
		nth_write(nth, 0, 1, 0, LONG);
		nth_read(nth, 2, 1, 1, LONG);
		nth_settle(nth);
		nth_region_close(nth, 1);
		nth_write_refused(nth, 0, 1);
		nth_settle(nth);
		nth_region_open(nth, 1);
	}
}

Test(nth, windows)
{
	nth_run(&(struct nth_scene){
		.name = "windows",
		.play = reopened,
		.windows = true,
		.allocations = 20,
		.calls = 30,
	});
}

Test(nth, windows_of_chosen_keys)
{
	nth_run(&(struct nth_scene){
		.name = "windows_of_chosen_keys",
		.play = keys,
		.windows = true,
		.keys = true,
		.cold = true,
		.allocations = 110,
		.calls = 60,
	});
}

static void atomics(struct nth *nth)
{
	for (int i = 1; i < NTH_ENDS; i++) {
		nth_add(nth, 0, i);
		nth_add(nth, i, 0);
		nth_add(nth, 0, i);
	}
}

Test(nth, atomics)
{
	nth_run(&(struct nth_scene){
		.name = "atomics",
		.play = atomics,
		.cold = true,
		.allocations = 60,
		.calls = 20,
	});
}

Test(nth, atomics_of_the_device)
{
	nth_run(&(struct nth_scene){
		.name = "atomics_of_the_device",
		.play = atomics,
		.device = true,
		.allocations = 5,
		.calls = 5,
	});
}

/* With one connection each, every message needs another's place. */
static void quiesce(struct nth *nth)
{
	for (unsigned i = 0; i < 2; i++) {
		message(nth, 0, 1, i, EAGER);
		nth_settle(nth);
		message(nth, 0, 2, i, EAGER);
		nth_settle(nth);
		message(nth, 1, 2, i, LONG);
		nth_settle(nth);
	}
}

Test(nth, quiescing)
{
	nth_run(&(struct nth_scene){
		.name = "quiescing",
		.play = quiesce,
		.conns = 1,
		.cold = true,
		.allocations = 100,
		.calls = 60,
	});
}

/* A request is refused while others are under way, and while others wait. */
static void replay(struct nth *nth)
{
	message(nth, 0, 1, 0, LONG);
	message(nth, 1, 0, 0, EAGER);
	nth_write_refused(nth, 0, 1);
	message(nth, 0, 1, 1, EAGER);
	message(nth, 0, 1, 2, SMALL);
	nth_write(nth, 0, 1, 1, LONG);
	nth_read(nth, 0, 1, 2, LONG);
	message(nth, 0, 2, 0, EAGER);
	message(nth, 1, 0, 1, LONG);
}

Test(nth, replay)
{
	nth_run(&(struct nth_scene){
		.name = "replay",
		.play = replay,
		.allocations = 28,
		.calls = 32,
	});
}

Test(nth, replay_by_slabs)
{
	nth_run(&(struct nth_scene){
		.name = "replay_by_slabs",
		.play = replay,
		.slabs = true,
		.allocations = 28,
		.calls = 32,
	});
}

static void peek(struct nth *nth)
{
	struct nth_request *claimed;

	nth_send(nth, 0, 1, 0, EAGER, 0);
	nth_send(nth, 0, 1, 1, LONG, 0);
	nth_send(nth, 2, 1, 2, LONG, 0);
	nth_send(nth, 2, 1, 3, EAGER, FI_DELIVERY_COMPLETE);
	nth_pass(nth, 5 * ms);
	if (nth_peek(nth, 1, 0, 0, FI_CLAIM, &claimed))
		nth_claim(nth, claimed, EAGER);
	if (nth_peek(nth, 1, 0, 1, FI_CLAIM, &claimed))
		nth_claim(nth, claimed, LONG);
	nth_peek(nth, 1, 2, 2, FI_DISCARD, NULL);
	if (nth_peek(nth, 1, 2, 3, 0, NULL))
		nth_recv(nth, 1, 2, 3, EAGER);
}

Test(nth, peeking)
{
	nth_run(&(struct nth_scene){
		.name = "peeking",
		.play = peek,
		.allocations = 12,
		.calls = 8,
	});
}

/*
 * A receive, a message that has not left, a message that waits at its target, and a received one.
 */
static void cancel(struct nth *nth)
{
	struct nth_request *request = nth_recv(nth, 1, 2, 3, SMALL);

	nth_cancel(nth, request);
	request = nth_send(nth, 0, 1, 0, LONG, 0);
	nth_cancel(nth, request);
	request = nth_send(nth, 2, 1, 0, LONG, 0);
	nth_pass(nth, 5 * ms);
	nth_cancel(nth, request);
	message(nth, 0, 1, 1, LONG);
}

Test(nth, cancelling)
{
	nth_run(&(struct nth_scene){
		.name = "cancelling",
		.play = cancel,
		.cold = true,
		.allocations = 60,
		.calls = 20,
	});
}

/* An end leaves while others send to it, and comes back under another name. */
static void leave(struct nth *nth)
{
	nth_send(nth, 0, 1, 0, LONG, 0);
	nth_send(nth, 2, 1, 0, EAGER, 0);
	nth_write(nth, 0, 1, 0, LONG);
	nth_pass(nth, ms / 20);
	nth_end_close(nth, 1);
	message(nth, 0, 2, 0, EAGER);
	nth_settle(nth);
	nth_end_open(nth, 1);
	message(nth, 0, 1, 1, LONG);
	message(nth, 1, 2, 1, EAGER);
}

Test(nth, leaving)
{
	nth_run(&(struct nth_scene){
		.name = "leaving",
		.play = leave,
		.allocations = 55,
		.calls = 33,
	});
}
