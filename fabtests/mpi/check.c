/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Checks of the MPI programs: see check.h. */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

int rank, ranks;
uint64_t seed = 1;
unsigned long long checks;

static const char *program, *phase = "start";

void start(const char *name, int *argc, char ***argv)
{
	program = name;
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: rank %d, %s: ", program, rank, phase);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (seed %" PRIu64 ")\n", seed);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

void check(int held, const char *what)
{
	if (!held)
		fail("%s", what);
	checks++;
}

void check_code(int code, const char *what)
{
	char text[MPI_MAX_ERROR_STRING];
	int len;

	if (code == MPI_SUCCESS)
		return;
	MPI_Error_string(code, text, &len);
	fail("%s: %s", what, text);
}

uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static uint64_t stream(int source, int tag, int size)
{
	return mix(seed * 0x9e3779b97f4a7c15ull + ((uint64_t)source << 48) +
		   ((uint64_t)(uint32_t)tag << 24) + (uint64_t)size);
}

/* One cheap step per word; the stream's start is well mixed. */
static uint64_t word_at(uint64_t start, size_t word)
{
	uint64_t x = start + word * 0x9e3779b97f4a7c15ull;

	return x ^ (x >> 29);
}

void fill(uint8_t *buf, int source, int tag, int size)
{
	uint64_t start = stream(source, tag, size);

	for (int at = 0; at < size; at += 8) {
		uint64_t word = word_at(start, (size_t)at / 8);

		memcpy(buf + at, &word, (size_t)(size - at < 8 ? size - at : 8));
	}
	memset(buf + size, GUARD_BYTE, GUARD);
}

void clear(uint8_t *buf, int size)
{
	memset(buf, 0xee, (size_t)size);
	memset(buf + size, GUARD_BYTE, GUARD);
}

void verify_prefix(const uint8_t *buf, int source, int tag, int size, int len)
{
	uint64_t start = stream(source, tag, size);

	for (int at = 0; at < len; at += 8) {
		uint64_t word = word_at(start, (size_t)at / 8);
		int part = len - at < 8 ? len - at : 8;

		if (!memcmp(buf + at, &word, (size_t)part))
			continue;
		for (int i = 0; i < part; i++)
			if (buf[at + i] != ((uint8_t *)&word)[i])
				fail("message from %d, tag %d, %d bytes: byte %d is 0x%02x, "
				     "expected 0x%02x", source, tag, size, at + i, buf[at + i],
				     ((uint8_t *)&word)[i]);
	}
	checks++;
}

void verify(const uint8_t *buf, int source, int tag, int size)
{
	verify_prefix(buf, source, tag, size, size);
	for (int i = 0; i < GUARD; i++)
		if (buf[size + i] != GUARD_BYTE)
			fail("message from %d, tag %d: written past its %d bytes", source, tag,
			     size);
}

void begin(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	phase = name;
	seed++;
}

void end(void)
{
	unsigned long long total = 0;

	MPI_Reduce(&checks, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank) {
		printf("%-16s ok (%llu checks so far)\n", phase, total);
		fflush(stdout);
	}
}

void finish(void)
{
	unsigned long long total = 0;

	MPI_Reduce(&checks, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("%s: %llu checks passed\n", program, total);
	MPI_Finalize();
}
