/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verify: an MPI program that checks every byte that it moves: point to point in all modes, with
 * wildcards, probes, floods, truncation and cancel, and collectives. Any number of ranks from 2 on.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

#define ALL_PAIRS_MAX (64 * KIB + 1) /* longer ones go to one partner per phase */
#define WINDOW 16
#define FLOOD 200
#define WILD 20

static const int all_sizes[] = {
	0, 1, 7, 8, 63, 64, 1023, 1024, 4095, 4096, 8191, 8192, 8193, 16383, 16384, 16385, 65535,
	65536, 65537, 1 * MIB - 1, 1 * MIB, 1 * MIB + 1, 4 * MIB, 8 * MIB - 1, 8 * MIB,
	8 * MIB + 1, 16 * MIB,
};

static int size_count, max_size, with_truncation = 1;
static uint8_t *out, *in;

static void verify_status(const MPI_Status *status, int source, int tag, int size)
{
	int count;

	MPI_Get_count(status, MPI_BYTE, &count);
	if (status->MPI_SOURCE != source || status->MPI_TAG != tag || count != size)
		fail("status says %d bytes from %d with tag %d; expected %d from %d with tag %d",
		     count, status->MPI_SOURCE, status->MPI_TAG, size, source, tag);
	checks++;
}

/* The partner of a step; it is mutual, and every pair meets once in ranks steps. */
static int partner_of(int step)
{
	return ((step - rank) % ranks + ranks) % ranks;
}

/* Long messages go to one partner only, another one for each size. */
static int in_step(int index, int step)
{
	return all_sizes[index] <= ALL_PAIRS_MAX || step == 1 + index % (ranks - 1);
}

typedef int (*send_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);

static void one_way(send_fn send, int sender, int partner, int tag, int size)
{
	MPI_Status status;

	if (sender) {
		fill(out, rank, tag, size);
		check_code(send(out, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD), "send");
		return;
	}
	clear(in, size);
	check_code(MPI_Recv(in, size, MPI_BYTE, partner, tag, MPI_COMM_WORLD, &status), "recv");
	verify_status(&status, partner, tag, size);
	verify(in, partner, tag, size);
}

static void run_blocking(const char *name, send_fn send)
{
	begin(name);
	for (int step = 0; step < ranks; step++) {
		int partner = partner_of(step);

		if (partner == rank)
			continue;
		for (int i = 0; i < size_count; i++) {
			if (!in_step(i, step))
				continue;
			one_way(send, rank < partner, partner, i, all_sizes[i]);
			one_way(send, rank > partner, partner, 1000 + i, all_sizes[i]);
		}
	}
	end();
}

/* A window each way with everybody at once. */
static void window_once(int index, MPI_Request *requests, uint8_t **bufs, int *peers)
{
	int size = all_sizes[index], depth = size > ALL_PAIRS_MAX ? 1 : WINDOW, n = 0;

	for (int receiving = 1; receiving >= 0; receiving--) {
		for (int peer = 0; peer < ranks; peer++) {
			int step = (rank + peer) % ranks;

			if (peer == rank || !in_step(index, step))
				continue;
			for (int i = 0; i < depth; i++, n++) {
				bufs[n] = malloc((size_t)size + GUARD);
				if (!bufs[n])
					fail("out of memory");
				peers[n] = peer;
				if (receiving) {
					clear(bufs[n], size);
					MPI_Irecv(bufs[n], size, MPI_BYTE, peer, i,
						  MPI_COMM_WORLD, &requests[n]);
				} else {
					fill(bufs[n], rank, i, size);
					MPI_Isend(bufs[n], size, MPI_BYTE, peer, i,
						  MPI_COMM_WORLD, &requests[n]);
				}
			}
		}
	}
	check_code(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE), "waitall");
	for (int i = 0; i < n; i++) {
		/* The first half are the receives. */
		if (i < n / 2)
			verify(bufs[i], peers[i], i % depth, size);
		free(bufs[i]);
	}
}

static void run_windows(void)
{
	size_t most = 2u * WINDOW * (size_t)ranks;
	MPI_Request *requests = calloc(most, sizeof(*requests));
	uint8_t **bufs = calloc(most, sizeof(*bufs));
	int *peers = calloc(most, sizeof(*peers));

	if (!requests || !bufs || !peers)
		fail("out of memory");
	begin("windows");
	for (int i = 0; i < size_count; i++)
		window_once(i, requests, bufs, peers);
	end();
	free(requests);
	free(bufs);
	free(peers);
}

static int wild_size(int i)
{
	static const int sizes[] = { 0, 8, 100, 4096, 20000, 70000 };

	return sizes[i % 6];
}

/* Everybody sends to everybody; receives name nobody. Per source the order is the sender's. */
static void run_wildcards(void)
{
	int total = WILD * (ranks - 1), *next = calloc((size_t)ranks, sizeof(*next));
	MPI_Request *requests = calloc((size_t)total, sizeof(*requests));
	uint8_t *bufs[WILD];

	if (!next || !requests)
		fail("out of memory");
	begin("wildcards");
	for (int i = 0, n = 0; i < WILD; i++) {
		bufs[i] = malloc((size_t)wild_size(i) + GUARD);
		if (!bufs[i])
			fail("out of memory");
		fill(bufs[i], rank, i, wild_size(i));
		for (int peer = 0; peer < ranks; peer++)
			if (peer != rank)
				MPI_Isend(bufs[i], wild_size(i), MPI_BYTE, peer, i,
					  MPI_COMM_WORLD, &requests[n++]);
	}
	for (int n = 0; n < total; n++) {
		MPI_Status status;

		clear(in, 70000);
		check_code(MPI_Recv(in, 70000, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
				    MPI_COMM_WORLD, &status), "recv from any");
		verify_status(&status, status.MPI_SOURCE, next[status.MPI_SOURCE],
			      wild_size(status.MPI_TAG));
		verify_prefix(in, status.MPI_SOURCE, status.MPI_TAG, wild_size(status.MPI_TAG),
			      wild_size(status.MPI_TAG));
		next[status.MPI_SOURCE]++;
	}
	check_code(MPI_Waitall(total, requests, MPI_STATUSES_IGNORE), "waitall");
	for (int i = 0; i < WILD; i++)
		free(bufs[i]);
	free(next);
	free(requests);
	end();
}

/* Learns the size by a probe of one of three kinds, then receives exactly that. */
static void probe_one(int from, int tag, int size, int kind)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Status status;
	int found = 0;

	switch (kind) {
	case 0:
		check_code(MPI_Probe(from, tag, MPI_COMM_WORLD, &status), "probe");
		break;
	case 1:
		while (!found)
			check_code(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found,
					      &status), "iprobe");
		break;
	default:
		check_code(MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status),
			   "mprobe");
	}
	verify_status(&status, from, tag, size);
	clear(in, size);
	if (kind == 2)
		check_code(MPI_Mrecv(in, size, MPI_BYTE, &message, &status), "mrecv");
	else
		check_code(MPI_Recv(in, size, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status),
			   "recv");
	verify_status(&status, from, tag, size);
	verify(in, from, tag, size);
}

static void run_probes(void)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	begin("probes");
	for (int i = 0; i < size_count; i++) {
		for (int kind = 0; kind < (all_sizes[i] > ALL_PAIRS_MAX ? 1 : 3); kind++) {
			MPI_Request request;

			fill(out, rank, 3 * i + kind, all_sizes[i]);
			MPI_Isend(out, all_sizes[i], MPI_BYTE, to, 3 * i + kind, MPI_COMM_WORLD,
				  &request);
			probe_one(from, 3 * i + kind, all_sizes[i], kind);
			check_code(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
		}
	}
	end();
}

static void run_sendrecv(void)
{
	begin("sendrecv");
	for (int shift = 1; shift < ranks; shift++) {
		int to = (rank + shift) % ranks, from = (rank + ranks - shift) % ranks;

		for (int i = 0; i < size_count; i++) {
			int size = all_sizes[i];
			MPI_Status status;

			if (!in_step(i, shift))
				continue;
			fill(out, rank, i, size);
			clear(in, size);
			check_code(MPI_Sendrecv(out, size, MPI_BYTE, to, i, in, size, MPI_BYTE,
						from, i, MPI_COMM_WORLD, &status), "sendrecv");
			verify_status(&status, from, i, size);
			verify(in, from, i, size);
		}
	}
	end();
}

/* A flood that nobody waits for, received in an order that has nothing to do with the sender's. */
static void run_flood(void)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, order[FLOOD];
	MPI_Request requests[FLOOD];
	uint8_t *bufs[FLOOD];

	begin("flood");
	for (int i = 0; i < FLOOD; i++) {
		bufs[i] = malloc((size_t)wild_size(i) + GUARD);
		if (!bufs[i])
			fail("out of memory");
		fill(bufs[i], rank, i, wild_size(i));
		MPI_Isend(bufs[i], wild_size(i), MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]);
		order[i] = i;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = FLOOD - 1; i > 0; i--) {
		int j = (int)(mix(seed + (uint64_t)i) % (uint64_t)(i + 1)), swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
	for (int i = 0; i < FLOOD; i++) {
		int tag = order[i], size = wild_size(tag);
		MPI_Status status;

		clear(in, size);
		check_code(MPI_Recv(in, size, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status),
			   "recv");
		verify_status(&status, from, tag, size);
		verify(in, from, tag, size);
	}
	check_code(MPI_Waitall(FLOOD, requests, MPI_STATUSES_IGNORE), "waitall");
	for (int i = 0; i < FLOOD; i++)
		free(bufs[i]);
	end();
}

/* Too long for its receive: the right error class, and the next message is not hurt. */
static void run_truncation(void)
{
	static const int sizes[] = { 100, 20000, 200000 };
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;

	begin("truncation");
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		MPI_Request request;
		int code, class = MPI_SUCCESS;

		fill(out, rank, i, sizes[i]);
		clear(in, 50);
		MPI_Isend(out, sizes[i], MPI_BYTE, to, i, MPI_COMM_WORLD, &request);
		code = MPI_Recv(in, 50, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Error_class(code, &class);
		check(class == MPI_ERR_TRUNCATE, "the error class is not MPI_ERR_TRUNCATE");
		for (int j = 0; j < GUARD; j++)
			check(in[50 + j] == GUARD_BYTE, "written past a short receive");
		check_code(MPI_Wait(&request, MPI_STATUS_IGNORE), "wait");
		check_code(MPI_Sendrecv(out, 50, MPI_BYTE, to, 9, in, 50, MPI_BYTE, from, 9,
					MPI_COMM_WORLD, MPI_STATUS_IGNORE), "sendrecv");
		verify_prefix(in, from, i, sizes[i], 50);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	end();
}

static void run_cancel(void)
{
	int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;
	MPI_Request request;
	MPI_Status status;
	int cancelled = 0;

	begin("cancel");
	clear(in, 64);
	for (int i = 0; i < 10; i++) {
		MPI_Irecv(in, 64, MPI_BYTE, i % 2 ? from : MPI_ANY_SOURCE, 77, MPI_COMM_WORLD,
			  &request);
		check_code(MPI_Cancel(&request), "cancel");
		check_code(MPI_Wait(&request, &status), "wait");
		MPI_Test_cancelled(&status, &cancelled);
		check(cancelled, "a receive that nothing matched was not cancelled");
	}
	/*
	 * The next messages are sent when every rank has cancelled its receives, so that none of
	 * those takes one.
	 */
	MPI_Barrier(MPI_COMM_WORLD);
	fill(out, rank, 77, 64);
	check_code(MPI_Sendrecv(out, 64, MPI_BYTE, to, 77, in, 64, MPI_BYTE, from, 77,
				MPI_COMM_WORLD, &status), "sendrecv");
	verify(in, from, 77, 64);
	end();
}

static void run_bcast(void)
{
	begin("bcast");
	for (int i = 0; i < size_count; i++) {
		int root = i % ranks, size = all_sizes[i];

		clear(in, size);
		if (rank == root)
			fill(in, root, i, size);
		check_code(MPI_Bcast(in, size, MPI_BYTE, root, MPI_COMM_WORLD), "bcast");
		verify(in, root, i, size);
	}
	end();
}

static void run_allreduce(void)
{
	begin("allreduce");
	for (int count = 1; count <= 65536; count *= 16) {
		int64_t *mine = (int64_t *)out, *sum = (int64_t *)in;

		for (int i = 0; i < count; i++)
			mine[i] = (int64_t)(rank + 1) * (i + 3);
		check_code(MPI_Allreduce(mine, sum, count, MPI_INT64_T, MPI_SUM,
					 MPI_COMM_WORLD), "allreduce");
		for (int i = 0; i < count; i++)
			if (sum[i] != (int64_t)ranks * (ranks + 1) / 2 * (i + 3))
				fail("element %d of %d is %" PRId64, i, count, sum[i]);
		checks++;
	}
	end();
}

/* The block from i to j has its own size: (i + 1) * (j + 2) * unit. */
static int block(int from, int to, int unit)
{
	return (from + 1) * (to + 2) * unit;
}

static void run_alltoallv(void)
{
	int *counts = calloc(4 * (size_t)ranks, sizeof(*counts));
	int *scounts = counts, *sdispls = counts + ranks;
	int *rcounts = counts + 2 * ranks, *rdispls = counts + 3 * ranks;

	if (!counts)
		fail("out of memory");
	begin("alltoallv");
	for (int unit = 1; unit <= 20000; unit *= 27) {
		int sent = 0, received = 0;

		for (int peer = 0; peer < ranks; peer++) {
			scounts[peer] = block(rank, peer, unit);
			rcounts[peer] = block(peer, rank, unit);
			sdispls[peer] = sent;
			rdispls[peer] = received;
			sent += scounts[peer] + GUARD;
			received += rcounts[peer] + GUARD;
		}
		if (sent > max_size || received > max_size)
			break;
		for (int peer = 0; peer < ranks; peer++) {
			fill(out + sdispls[peer], rank, peer, scounts[peer]);
			clear(in + rdispls[peer], rcounts[peer]);
		}
		check_code(MPI_Alltoallv(out, scounts, sdispls, MPI_BYTE, in, rcounts, rdispls,
					 MPI_BYTE, MPI_COMM_WORLD), "alltoallv");
		for (int peer = 0; peer < ranks; peer++)
			verify(in + rdispls[peer], peer, rank, rcounts[peer]);
	}
	free(counts);
	end();
}

static void run_alltoall(void)
{
	begin("alltoall");
	for (int i = 0; i < size_count; i++) {
		int size = all_sizes[i];

		if (size * ranks > max_size || size > 4 * MIB)
			continue;
		/* The guard that fill() writes is overwritten by the next block. */
		for (int peer = 0; peer < ranks; peer++)
			fill(out + peer * size, rank, peer, size);
		clear(in, size * ranks);
		check_code(MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD),
			   "alltoall");
		for (int peer = 0; peer < ranks; peer++)
			verify_prefix(in + peer * size, peer, rank, size, size);
	}
	end();
}

static void parse(int argc, char **argv)
{
	int letter, quick = 0;

	while ((letter = getopt(argc, argv, "qts:h")) != -1) {
		switch (letter) {
		case 'q':
			quick++;
			break;
		case 't':
			with_truncation = 0;
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		default:
			if (!rank)
				printf("usage: verify [-q[q]] [-t] [-s SEED]\n"
				       "  -q       quick: sizes up to 64 KiB + 1\n"
			       "  -qq      quicker: up to 1 KiB\n"
				       "  -t       without truncation, which not every transport "
				       "survives\n"
				       "  -s SEED  another payload and another order\n");
			MPI_Finalize();
			exit(letter == 'h' ? 0 : 1);
		}
	}
	for (size_t i = 0; i < sizeof(all_sizes) / sizeof(*all_sizes); i++)
		if (!quick || all_sizes[i] <= (quick == 1 ? ALL_PAIRS_MAX : KIB))
			size_count++;
	max_size = quick ? 2 * MIB : 16 * MIB;
}

int main(int argc, char **argv)
{
	start("verify", &argc, &argv);
	parse(argc, argv);
	if (ranks < 2)
		fail("at least two ranks are needed");
	out = malloc((size_t)max_size + GUARD);
	in = malloc((size_t)max_size + GUARD);
	if (!out || !in)
		fail("out of memory");
	run_blocking("send", MPI_Send);
	run_blocking("ssend", MPI_Ssend);
	run_windows();
	run_wildcards();
	run_probes();
	run_sendrecv();
	run_flood();
	if (with_truncation)
		run_truncation();
	run_cancel();
	run_bcast();
	run_allreduce();
	run_alltoall();
	run_alltoallv();
	free(out);
	free(in);
	finish();
	return 0;
}
