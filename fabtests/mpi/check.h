/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the MPI programs: payloads that name their message, and checks. A payload follows from
 * (seed, source, tag, size, offset), so a wrong byte, a stale byte or another message's byte is
 * seen. The first mismatch ends the job.
 */
#ifndef FABTESTS_MPI_CHECK_H
#define FABTESTS_MPI_CHECK_H

#include <stdint.h>

#define KIB 1024
#define MIB (1024 * KIB)
#define GUARD 8 /* bytes of GUARD_BYTE behind every payload, that nobody may touch */
#define GUARD_BYTE 0xa5

extern int rank, ranks;
extern uint64_t seed; /* another one for each phase */
extern unsigned long long checks;

/* First and last calls: MPI_Init, and rank and size; the sum of all checks, and MPI_Finalize. */
void start(const char *name, int *argc, char ***argv);
void finish(void);

/* A phase, together: begin is a barrier, end prints how many checks passed so far. */
void begin(const char *name);
void end(void);

void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void check(int held, const char *what);
void check_code(int code, const char *what);

/* A permutation of the 64-bit numbers in which neighbours are far apart. */
uint64_t mix(uint64_t x);

/* Buffers have GUARD bytes more than size. */
void fill(uint8_t *buf, int source, int tag, int size);
void clear(uint8_t *buf, int size);
void verify_prefix(const uint8_t *buf, int source, int tag, int size, int len);
void verify(const uint8_t *buf, int source, int tag, int size);

#endif
