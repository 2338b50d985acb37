/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wire: when what was sent is there. A port sends, and receives, one message after the other at the wire's
 * bandwidth; each arrives a latency later. Completions carry their time and are not seen before; memory that
 * RDMA wrote is there early.
 */
#ifndef SHMV_WIRE_H
#define SHMV_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct shmv_port;

/* When the last byte of a message arrives, in nanoseconds of CLOCK_MONOTONIC; 0: there is no model of time. */
uint64_t shmv_wire_send(struct shmv_port *from, struct shmv_port *to, uint64_t len);

/* When the sender hears of what arrives at that time. */
uint64_t shmv_wire_ack(uint64_t arrival);

/* Whether this message is one that is lost for good. */
bool shmv_wire_loses(void);
/* One of two, at random. */
bool shmv_wire_coin(void);

#endif
