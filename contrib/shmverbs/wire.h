/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wire: the time at which a message arrives. A port sends, and receives, one message after the
 * other at the wire's bandwidth; each message arrives a latency later. A completion carries its
 * time, and no poll sees it before. Memory that RDMA wrote does not wait: it has the data early.
 */
#ifndef SHMV_WIRE_H
#define SHMV_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct shmv_port;

/*
 * Time at which the last byte of a message arrives, in ns of CLOCK_MONOTONIC; 0: there is no
 * model of time.
 */
uint64_t shmv_wire_send(struct shmv_port *from, struct shmv_port *to, uint64_t len);

/* Time at which the sender gets the acknowledgement of a message that arrives at this time. */
uint64_t shmv_wire_ack(uint64_t arrival);

/* True if this message, and all after it, is lost (property lose_one_in). */
bool shmv_wire_loses(void);
/* True or false, at random. */
bool shmv_wire_coin(void);

#endif
