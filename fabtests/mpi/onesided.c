/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * onesided: an MPI program that checks one-sided communication: puts and gets under fences, locks
 * and post/start/complete/wait, derived types, dynamic windows, accumulates, and atomics that all
 * ranks aim at one word. Any number of ranks from 2 on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "check.h"

#define SLOT (64 * KIB) /* of each rank in each window */
#define PASSIVE_TAG 1000

static int rounds = 20, with_dynamic = 1;
static const int sizes[] = {1, 8, 63, 4096, 8193, SLOT - GUARD};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static uint8_t *window_open(size_t size, MPI_Win *win)
{
	uint8_t *memory;

	check_code(MPI_Win_allocate((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, win),
		   "MPI_Win_allocate");
	memset(memory, 0, size);
	MPI_Barrier(MPI_COMM_WORLD);
	return memory;
}

static uint8_t *buffer(void)
{
	uint8_t *buf = malloc(SLOT);

	if (!buf)
		fail("out of memory");
	return buf;
}

static MPI_Aint slot_of(int who)
{
	return (MPI_Aint)who * SLOT;
}

/* Everybody puts into its slot at everybody; then gets everybody's slot of the next rank. */
static void run_fence(void)
{
	MPI_Win win;
	uint8_t *memory = window_open((size_t)slot_of(ranks), &win), *buf = buffer();

	begin("fence");
	for (int i = 0; i < SIZES; i++) {
		fill(buf, rank, i, sizes[i]);
		MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
		for (int to = 0; to < ranks; to++)
			check_code(MPI_Put(buf, sizes[i] + GUARD, MPI_BYTE, to, slot_of(rank),
					   sizes[i] + GUARD, MPI_BYTE, win), "MPI_Put");
		MPI_Win_fence(0, win);
		for (int from = 0; from < ranks; from++)
			verify(memory + slot_of(from), from, i, sizes[i]);
		for (int from = 0; from < ranks; from++) {
			clear(buf, sizes[i]);
			check_code(MPI_Get(buf, sizes[i], MPI_BYTE, (rank + 1) % ranks,
					   slot_of(from), sizes[i], MPI_BYTE, win), "MPI_Get");
			MPI_Win_fence(0, win);
			verify(buf, from, i, sizes[i]);
		}
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	}
	end();
	free(buf);
	MPI_Win_free(&win);
}

/* Nobody takes part at the target. */
static void run_passive(void)
{
	MPI_Win win;
	uint8_t *memory = window_open((size_t)slot_of(ranks), &win), *buf = buffer();

	begin("lock_all");
	check_code(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
	for (int i = 0; i < SIZES; i++)
		for (int to = 0; to < ranks; to++) {
			MPI_Request request;

			fill(buf, rank, PASSIVE_TAG + i, sizes[i]);
			check_code(MPI_Rput(buf, sizes[i], MPI_BYTE, to, slot_of(rank), sizes[i],
					    MPI_BYTE, win, &request), "MPI_Rput");
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			check_code(MPI_Win_flush(to, win), "MPI_Win_flush");
			clear(buf, sizes[i]);
			check_code(MPI_Rget(buf, sizes[i], MPI_BYTE, to, slot_of(rank), sizes[i],
					    MPI_BYTE, win, &request), "MPI_Rget");
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			verify(buf, rank, PASSIVE_TAG + i, sizes[i]);
		}
	check_code(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	for (int from = 0; from < ranks; from++)
		verify_prefix(memory + slot_of(from), from, PASSIVE_TAG + SIZES - 1,
			      sizes[SIZES - 1], sizes[SIZES - 1]);
	MPI_Win_unlock(rank, win);
	end();
	free(buf);
	MPI_Win_free(&win);
}

/* An exclusive lock makes read, add, write one step. */
static void run_lock(void)
{
	MPI_Win win;
	long *memory = (long *)(void *)window_open(sizeof(*memory), &win), value;

	begin("lock");
	for (int i = 0; i < rounds; i++)
		for (int at = 0; at < ranks; at++) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, at, 0, win);
			MPI_Get(&value, 1, MPI_LONG, at, 0, 1, MPI_LONG, win);
			MPI_Win_flush(at, win);
			value += rank + 1;
			MPI_Put(&value, 1, MPI_LONG, at, 0, 1, MPI_LONG, win);
			MPI_Win_unlock(at, win);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	check(*memory == (long)rounds * ranks * (ranks + 1) / 2,
	      "no update may be lost under a lock");
	MPI_Win_unlock(rank, win);
	end();
	MPI_Win_free(&win);
}

/* Exposure to the left neighbour, access to the right one. */
static void run_pscw(void)
{
	int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
	MPI_Group world, from, to;
	MPI_Win win;
	uint8_t *memory = window_open(SLOT, &win), *buf = buffer();

	begin("post-start");
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &left, &from);
	MPI_Group_incl(world, 1, &right, &to);
	for (int i = 0; i < SIZES; i++) {
		fill(buf, rank, i, sizes[i]);
		check_code(MPI_Win_post(from, 0, win), "MPI_Win_post");
		check_code(MPI_Win_start(to, 0, win), "MPI_Win_start");
		MPI_Put(buf, sizes[i] + GUARD, MPI_BYTE, right, 0, sizes[i] + GUARD, MPI_BYTE, win);
		check_code(MPI_Win_complete(win), "MPI_Win_complete");
		check_code(MPI_Win_wait(win), "MPI_Win_wait");
		verify(memory, left, i, sizes[i]);
	}
	MPI_Group_free(&from);
	MPI_Group_free(&to);
	MPI_Group_free(&world);
	end();
	free(buf);
	MPI_Win_free(&win);
}

/* Every third word of the target, every second of the origin. */
static void run_types(void)
{
	enum { WORDS = 300 };
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	MPI_Datatype second, third;
	MPI_Win win;
	int *memory = (int *)(void *)window_open(WORDS * 3 * sizeof(int), &win), origin[WORDS * 2];

	begin("types");
	MPI_Type_vector(WORDS, 1, 2, MPI_INT, &second);
	MPI_Type_vector(WORDS, 1, 3, MPI_INT, &third);
	MPI_Type_commit(&second);
	MPI_Type_commit(&third);
	for (int i = 0; i < WORDS * 2; i++)
		origin[i] = rank * 100000 + i;
	MPI_Win_fence(0, win);
	MPI_Put(origin, 1, second, right, 0, 1, third, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < WORDS; i++)
		check(memory[3 * i] == left * 100000 + 2 * i && !memory[3 * i + 1] &&
		      !memory[3 * i + 2], "a vector must land in its places only");
	MPI_Type_free(&second);
	MPI_Type_free(&third);
	end();
	MPI_Win_free(&win);
}

static void run_dynamic(void)
{
	int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
	MPI_Aint here, there;
	MPI_Win win;
	uint8_t *memory = buffer(), *buf = buffer();

	begin("dynamic");
	check_code(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win),
		   "MPI_Win_create_dynamic");
	for (int i = 0; i < rounds; i++) {
		int size = sizes[i % SIZES];

		check_code(MPI_Win_attach(win, memory, SLOT), "MPI_Win_attach");
		MPI_Get_address(memory, &here);
		MPI_Sendrecv(&here, 1, MPI_AINT, left, 0, &there, 1, MPI_AINT, right, 0,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		fill(buf, rank, i, size);
		MPI_Win_fence(0, win);
		MPI_Put(buf, size + GUARD, MPI_BYTE, right, there, size + GUARD, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		verify(memory, left, i, size);
		check_code(MPI_Win_detach(win, memory), "MPI_Win_detach");
		MPI_Barrier(MPI_COMM_WORLD);
	}
	end();
	MPI_Win_free(&win);
	free(memory);
	free(buf);
}

/* All ranks accumulate at all ranks, many words at once. */
static void run_accumulate(void)
{
	enum { WORDS = 1000 };
	MPI_Win win;
	double *memory = (double *)(void *)window_open(WORDS * sizeof(double), &win);
	double origin[WORDS], before[WORDS];
	double sum = (double)rounds * ranks * (ranks + 1) / 2;

	begin("accumulate");
	for (int i = 0; i < WORDS; i++)
		origin[i] = rank + 1;
	MPI_Win_fence(0, win);
	for (int i = 0; i < rounds; i++)
		for (int to = 0; to < ranks; to++)
			check_code(MPI_Accumulate(origin, WORDS, MPI_DOUBLE, to, 0, WORDS,
						  MPI_DOUBLE, MPI_SUM, win),
				   "MPI_Accumulate");
	MPI_Win_fence(0, win);
	for (int i = 0; i < WORDS; i++)
		check(memory[i] == sum, "every accumulate must count once");
	for (int i = 0; i < WORDS; i++)
		origin[i] = i % 2 ? 1e9 : 0;
	MPI_Win_fence(0, win);
	check_code(MPI_Get_accumulate(origin, WORDS, MPI_DOUBLE, before, WORDS, MPI_DOUBLE,
				      (rank + 1) % ranks, 0, WORDS, MPI_DOUBLE, MPI_MAX, win),
		   "MPI_Get_accumulate");
	MPI_Win_fence(0, win);
	for (int i = 0; i < WORDS; i++)
		check(before[i] == sum && memory[i] == (i % 2 ? 1e9 : sum), "the larger one stays");
	end();
	MPI_Win_free(&win);
}

/* Tickets from one word: each is given once. */
static void run_tickets(void)
{
	int count = rounds * 10, total = count * ranks;
	MPI_Win win;
	char *seen = calloc((size_t)total, 1), *all = malloc((size_t)total);
	long one = 1, ticket, last = -1;

	if (!seen || !all)
		fail("out of memory");
	begin("fetch_and_op");
	window_open(sizeof(long), &win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < count; i++) {
		check_code(MPI_Fetch_and_op(&one, &ticket, MPI_LONG, 0, 0, MPI_SUM, win),
			   "MPI_Fetch_and_op");
		MPI_Win_flush(0, win);
		check(ticket > last && ticket < total, "tickets must count up");
		seen[last = ticket] = 1;
	}
	MPI_Win_unlock_all(win);
	MPI_Allreduce(seen, all, total, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < total; i++)
		check(all[i] == 1, "each ticket must be given once");
	end();
	MPI_Win_free(&win);
	free(seen);
	free(all);
}

/* A counter in the last rank's memory that only compare-and-swap changes. */
static void run_swap(void)
{
	int at = ranks - 1;
	MPI_Win win;
	int *memory = (int *)(void *)window_open(sizeof(*memory), &win);

	begin("compare_swap");
	MPI_Win_lock_all(0, win);
	for (int i = 0, expected = 0, seen, wanted; i < rounds; i++, expected++)
		for (;; expected = seen) {
			wanted = expected + 1;
			check_code(MPI_Compare_and_swap(&wanted, &expected, &seen, MPI_INT, at, 0,
							win),
				   "MPI_Compare_and_swap");
			MPI_Win_flush(at, win);
			if (seen == expected)
				break;
			check(seen > expected, "the counter must only grow");
		}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	check(rank != at || *memory == rounds * ranks, "no swap may be lost");
	MPI_Win_unlock(rank, win);
	end();
	MPI_Win_free(&win);
}

static void parse(int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "dI:h")) != -1) {
		if (letter == 'd') {
			with_dynamic = 0;
			continue;
		}
		if (letter == 'I' && atoi(optarg) > 0) {
			rounds = atoi(optarg);
			continue;
		}
		if (!rank)
			printf("usage: onesided [-d] [-I ROUNDS]\n"
			       "  -d  without dynamic windows: Open MPI 4.1 takes the lock of a "
			       "remote one twice and waits for itself\n");
		MPI_Finalize();
		exit(letter == 'h' ? 0 : 1);
	}
	if (ranks < 2)
		fail("at least two ranks are needed");
}

int main(int argc, char **argv)
{
	start("onesided", &argc, &argv);
	parse(argc, argv);
	run_fence();
	run_passive();
	run_lock();
	run_pscw();
	run_types();
	if (with_dynamic)
		run_dynamic();
	run_accumulate();
	run_tickets();
	run_swap();
	finish();
	return 0;
}
