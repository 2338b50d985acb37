/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Buffer: the memory of an operation, in pieces with guards around them, and contents that tell
 * which operation they belong to.
 */
#ifndef VERVE_TEST_SIM_BUFFER_H
#define VERVE_TEST_SIM_BUFFER_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct sim_node;

enum { SIM_IOV = 4 };

struct sim_buffer {
	uint8_t *base;
	size_t size;
	struct iovec iov[SIM_IOV];
	void *desc[SIM_IOV];
	size_t count;
	size_t len;
	struct fid_mr *mr;
};

/* len bytes in up to pieces pieces; registered by the node if chance says so. */
void sim_buffer_init(struct sim_node *node, struct sim_buffer *buf, size_t len, size_t pieces,
		     bool registered);
/* Poisons and frees. */
void sim_buffer_fini(struct sim_buffer *buf);
void sim_buffer_fill(struct sim_buffer *buf, uint64_t id);
/* Bytes [0, len) are id's, and nothing else was written. False: not so. */
bool sim_buffer_holds(const struct sim_buffer *buf, uint64_t id, size_t len);
bool sim_buffer_is_untouched(const struct sim_buffer *buf, size_t from);
/* The first bytes, up to 8, as a number. */
uint64_t sim_buffer_start(const struct sim_buffer *buf, size_t len);
bool sim_bytes_hold(const uint8_t *bytes, uint64_t id, size_t len);

#endif
