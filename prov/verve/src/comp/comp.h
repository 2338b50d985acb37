/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completions: the entries that report the end of an operation. A queue of them (comp_queue.h) is
 * behind a fid_cq. Engines write, applications read; several engines may share a queue. Each queue
 * has its own lock, taken last and never held across malloc, free or libibverbs.
 */
#ifndef VERVE_COMP_COMP_H
#define VERVE_COMP_COMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Flag bits of a completion, numerically libfabric's; api/cq.c asserts it. fi_cq(3). */
enum {
	VERVE_COMP_MSG = 1 << 1,
	VERVE_COMP_RMA = 1 << 2,
	VERVE_COMP_TAGGED = 1 << 3,
	VERVE_COMP_ATOMIC = 1 << 4,
	VERVE_COMP_READ = 1 << 8,
	VERVE_COMP_WRITE = 1 << 9,
	VERVE_COMP_RECV = 1 << 10,
	VERVE_COMP_SEND = 1 << 11,
	VERVE_COMP_REMOTE_READ = 1 << 12,
	VERVE_COMP_REMOTE_WRITE = 1 << 13,
	VERVE_COMP_MULTI_RECV = 1 << 16,
	VERVE_COMP_REMOTE_CQ_DATA = 1 << 17,
};

struct verve_comp {
	void *context;
	uint64_t flags; /* VERVE_COMP_* */
	size_t len;	/* bytes that were moved */
	void *buf;	/* multi-receive: the message's place in the buffer */
	uint64_t data;	/* remote CQ data, with VERVE_COMP_REMOTE_CQ_DATA */
	uint64_t tag;
	/* fi_addr_t of the sender; in errors of transmits, of the target; UINT64_MAX: not known */
	uint64_t src;
};

enum { VERVE_COMP_REASON_MAX = 128 }; /* bytes of an error's reason, with its end */

struct verve_comp_error {
	struct verve_comp comp;
	size_t olen;	/* bytes of the message that did not fit into the buffer */
	int err;	/* positive FI errno */
	int prov_errno; /* ibv_wc_status, or 0 */
	bool uninvited; /* peers cause as many as they like: verve_comp_queue_write_uninvited */
	char reason[VERVE_COMP_REASON_MAX]; /* readable text, becomes err_data; empty: none */
};

#endif
