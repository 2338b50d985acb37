/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Buffers: pieces with guards between them, and contents that tell whose they are. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { GUARD = 16, GUARD_BYTE = 0x5a, POISON = 0xdd };

/* Byte i of operation id's data: the first 8 are the id, the rest differs from id to id. */
static inline uint8_t pattern(uint64_t id, size_t i)
{
	if (i < 8)
		return (uint8_t)(id >> 8 * i);
	return (uint8_t)(id * 37 + i * 7 + (i >> 8) * 13 + (i >> 16) * 101);
}

void sim_buffer_init(struct sim_node *node, struct sim_buffer *buf, size_t len, size_t pieces,
		     bool registered)
{
	struct sim *sim = node->sim;
	size_t left = len, offset = GUARD;

	memset(buf, 0, sizeof(*buf));
	buf->len = len;
	buf->count = pieces;
	buf->size = len + (pieces + 1) * GUARD;
	buf->base = malloc(buf->size);
	if (!buf->base)
		abort();
	memset(buf->base, GUARD_BYTE, buf->size);
	for (size_t i = 0; i < pieces; i++) {
		size_t n = i + 1 == pieces ? left : sim_below(sim, (uint32_t)left + 1);

		buf->iov[i] = (struct iovec){buf->base + offset, n};
		offset += n + GUARD;
		left -= n;
	}
	if (!registered || !len)
		return;
	if (fi_mr_reg(node->domain, buf->base, buf->size, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0,
		      ++node->next_key, 0, &buf->mr, NULL)) {
		buf->mr = NULL;
		if (sim->options->poor)
			return;
		sim_fail(sim, "node %u: fi_mr_reg fails", node->index);
	}
	for (size_t i = 0; i < pieces; i++)
		buf->desc[i] = fi_mr_desc(buf->mr);
}

void sim_buffer_fini(struct sim_buffer *buf)
{
	if (buf->mr)
		fi_close(&buf->mr->fid);
	if (buf->base)
		memset(buf->base, POISON, buf->size);
	free(buf->base);
	memset(buf, 0, sizeof(*buf));
}

void sim_buffer_fill(struct sim_buffer *buf, uint64_t id)
{
	size_t at = 0;

	for (size_t i = 0; i < buf->count; i++) {
		uint8_t *piece = buf->iov[i].iov_base;

		for (size_t j = 0; j < buf->iov[i].iov_len; j++, at++)
			piece[j] = pattern(id, at);
	}
}

static bool is_all(const uint8_t *bytes, size_t len, uint8_t value)
{
	return !len || (bytes[0] == value && !memcmp(bytes, bytes + 1, len - 1));
}

/* From byte from of the data on, and between the pieces, there are guards only. */
bool sim_buffer_is_untouched(const struct sim_buffer *buf, size_t from)
{
	const uint8_t *next = buf->base;
	size_t at = 0;

	for (size_t i = 0; i < buf->count; i++) {
		const uint8_t *piece = buf->iov[i].iov_base;
		size_t len = buf->iov[i].iov_len;
		size_t keep = from > at ? (from - at < len ? from - at : len) : 0;

		if (!is_all(next, (size_t)(piece - next), GUARD_BYTE) ||
		    !is_all(piece + keep, len - keep, GUARD_BYTE))
			return false;
		next = piece + len;
		at += len;
	}
	return is_all(next, (size_t)(buf->base + buf->size - next), GUARD_BYTE);
}

bool sim_buffer_holds(const struct sim_buffer *buf, uint64_t id, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < buf->count; i++) {
		const uint8_t *piece = buf->iov[i].iov_base;

		for (size_t j = 0; j < buf->iov[i].iov_len && at < len; j++, at++)
			if (piece[j] != pattern(id, at))
				return false;
	}
	return at == len && sim_buffer_is_untouched(buf, len);
}

uint64_t sim_buffer_start(const struct sim_buffer *buf, size_t len)
{
	uint64_t start = 0;
	size_t at = 0;

	for (size_t i = 0; i < buf->count; i++) {
		const uint8_t *piece = buf->iov[i].iov_base;

		for (size_t j = 0; j < buf->iov[i].iov_len && at < len && at < 8; j++, at++)
			start |= (uint64_t)piece[j] << 8 * at;
	}
	return start;
}

bool sim_bytes_hold(const uint8_t *bytes, uint64_t id, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != pattern(id, i))
			return false;
	return true;
}
