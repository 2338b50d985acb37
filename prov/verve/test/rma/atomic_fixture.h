/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the tests of atomics by the processor: two endpoints on the fake net, through
 * libfabric's calls. The endpoint "us" sends atomics to the endpoint "them", the target. The
 * target's memory is the array words.
 */
#ifndef VERVE_TEST_RMA_ATOMIC_FIXTURE_H
#define VERVE_TEST_RMA_ATOMIC_FIXTURE_H

#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "api/fixture.h"

enum { WORDS = 16384, CNTR_WRITE = 0, CNTR_READ, CNTR_REMOTE_WRITE, CNTR_REMOTE_READ, CNTRS };

struct end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr[CNTRS];
	struct fid_ep *ep;
	fi_addr_t peer;
	int completions;
	struct fi_cq_tagged_entry last;
	int error; /* errno of the last completion, if it was an error; or 0 */
	char reason[128];
};

extern struct fixture fix;
extern struct end ends[2], *const us, *const them;
extern uint64_t words[WORDS];
extern struct fid_mr *mr; /* all words */
extern uint64_t key;	  /* of mr */

/* Registers words, and puts the region into mr and key. */
void atomic_reg(uint64_t access);
/* Closes the endpoint of end, if it is open. The other one is polled meanwhile. */
void atomic_end_close(struct end *end);

/* Reads one completion of end, if there is one. */
void atomic_progress(struct end *end);
/* Reads one completion of each end, then takes a step of the fake net. */
void atomic_run(void);
/* Runs for so many steps that nothing is under way any more. */
void atomic_settle(void);
/*
 * Runs until our endpoint has completed count operations since it opened; the last must have ended
 * with error: positive FI errno, or 0.
 */
void atomic_expect(int count, int error);
/* The same for an operation that the target refuses, for a reason that contains this text. */
void atomic_expect_refusal(int count, const char *reason);
/* Expects the counters of both ends to have these values. */
void atomic_expect_counts(uint64_t write, uint64_t read);

/* The address of a word. */
uint64_t at(size_t word);
/* Add value to a word, or fetch the word and change it by op. Return 0 or a negative FI errno. */
ssize_t atomic_add(size_t word, const uint64_t *value, void *context);
ssize_t atomic_fetch(size_t word, const uint64_t *value, uint64_t *result, enum fi_op op);

#endif
