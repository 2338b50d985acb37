/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which message a receive got. A message of 8 bytes and more has its id in them. Shorter ones may
 * look alike; then the oldest that fits is taken, and given back when that turns out wrong.
 */
#ifndef VERVE_TEST_SIM_IDENTIFY_H
#define VERVE_TEST_SIM_IDENTIFY_H

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_buffer;
struct sim_op;

/* A completion, of success or error (err not 0). */
struct sim_completion {
	const struct fi_cq_tagged_entry *entry;
	fi_addr_t src;
	bool source; /* src says something */
	int err;
	size_t olen;
};

/* True if the completion names the message's sender, or no sender. */
bool sim_is_from(const struct sim_op *send, const struct sim_completion *end);
/* True if a receive can end with this entry when it gets that message, of total bytes. */
bool sim_looks_like(const struct sim_op *send, const struct sim_op *recv,
		    const struct fi_cq_tagged_entry *entry, size_t total);
/* The message of a receive that ended so. Fails the run if there is none. */
struct sim_op *sim_identify(struct sim_op *recv, const struct sim_buffer *buf,
			    const struct sim_completion *end);
/* The receive, claim or discard has the message; offset: where in its buffer. */
void sim_take(struct sim_op *recv, struct sim_op *send, uint64_t offset);
/*
 * The message was taken by a receive that may have got another one that looks the same: by the
 * bytes that arrived, and by the sender if that was named. If there is such a one that nobody has
 * taken, the receive has that one now, and the message waits again.
 */
bool sim_give_back(struct sim_op *op);

#endif
