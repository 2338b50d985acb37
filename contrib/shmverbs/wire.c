/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire.h"

#include "atomic.h"
#include "conf.h"
#include "lock.h"
#include "ports.h"
#include "qp.h"

enum { PACKET = 4096 }; /* bytes of a packet, at most */

/*
 * A random number. Each thread has a SplitMix64 generator; property seed makes its numbers
 * repeatable.
 */
static uint64_t draw(void)
{
	static _Thread_local uint64_t state;
	uint64_t z;

	if (!state)
		state = shmv_conf.seed ? shmv_conf.seed : shmv_now() ^ (uint64_t)shmv_pid << 32;
	z = state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Takes a clock for ns nanoseconds, at the earliest from a time on; returns the end. */
static uint64_t occupy(uint64_t *free_at, uint64_t from, uint64_t ns)
{
	uint64_t free, end;

	do {
		free = shmv_load64(free_at);
		end = (free > from ? free : from) + ns;
	} while (!shmv_replace64(free_at, free, end));
	return end;
}

/* Time that len bytes take on the wire. */
static uint64_t time_of(uint64_t len)
{
	return len * 8000 / shmv_conf.wire_mbps;
}

/* The end of a message that begins at a time at the earliest. */
static uint64_t pass(struct shmv_lane *lane, uint64_t from, uint64_t len)
{
	uint64_t end = occupy(&lane->free, from, time_of(len)), turn;

	if (len > PACKET)
		return end;
	turn = occupy(&lane->short_free, from, time_of(len)) + time_of(PACKET);
	return end < turn ? end : turn;
}

/* Sends len bytes from one port to the other, at the earliest at a time; returns their arrival. */
static uint64_t carry(struct shmv_port *from, struct shmv_port *to, uint64_t len, uint64_t at)
{
	if (shmv_conf.wire_mbps) {
		at = pass(&from->tx, at, len);
		/* The receiver's wire takes the message while the sender's gives it, or later. */
		at = pass(&to->rx, at - time_of(len), len);
	}
	at += shmv_conf.wire_ns;
	return shmv_conf.jitter_ns ? at + draw() % shmv_conf.jitter_ns : at;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t shmv_wire_send(struct shmv_qp *qp, uint64_t len)
{
	uint64_t at;

	if (!shmv_conf.timed)
		return 0;
	at = carry(qp->ctx->port, qp->peer_port, len, later(shmv_now(), qp->wire.start));
	return qp->wire.sent = later(at, qp->wire.sent);
}

uint64_t shmv_wire_read(struct shmv_qp *qp, uint64_t len)
{
	struct shmv_qp_wire *wire = &qp->wire;
	uint64_t at, *end;

	if (!shmv_conf.timed)
		return 0;
	end = &wire->ends[wire->reads++ % (qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1)];
	wire->start = later(wire->start, *end);
	at = carry(qp->peer_port, qp->ctx->port, len, later(shmv_now(), wire->start));
	wire->answered = later(at, wire->answered);
	*end = shmv_wire_ack(wire->answered);
	return wire->answered;
}

uint64_t shmv_wire_ack(uint64_t arrival)
{
	return arrival ? arrival + shmv_conf.wire_ns : 0;
}

bool shmv_wire_loses(void)
{
	return draw() % shmv_conf.lose_one_in == 0;
}

bool shmv_wire_coin(void)
{
	return draw() >> 63;
}
