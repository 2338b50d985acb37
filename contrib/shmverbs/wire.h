/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wire: the time at which a message arrives. A port sends, and receives, at the wire's bandwidth,
 * one message after the other; but a short one waits only for a packet of those that other queue
 * pairs send, or that answer reads, because a port serves them all in turn. Each message arrives
 * a latency later, and in order with its queue pair's others. A completion carries its time, and no
 * poll sees it before. Memory that RDMA wrote does not wait: it has the data early.
 *
 * A queue pair has so many reads and atomics under way as its attribute max_rd_atomic says
 * (ibv_modify_qp(3)). One more waits for the end of the first of them, and all requests behind it
 * wait, too, because a send queue starts them in order.
 */
#ifndef SHMV_WIRE_H
#define SHMV_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct shmv_qp;

/*
 * Time at which the last byte of the queue pair's message arrives at its peer, in ns of
 * CLOCK_MONOTONIC; 0: there is no model of time. Under the queue pair's lock, as the next one.
 */
uint64_t shmv_wire_send(struct shmv_qp *qp, uint64_t len);
/*
 * The same for the answer to a read or an atomic, but a latency too early, so that shmv_wire_ack
 * gives the time of its arrival here: the way there takes as long as that of an acknowledgement.
 */
uint64_t shmv_wire_read(struct shmv_qp *qp, uint64_t len);

/* Time at which the sender gets the acknowledgement of a message that arrives at this time. */
uint64_t shmv_wire_ack(uint64_t arrival);

/* True if this message, and all after it, is lost (property lose_one_in). */
bool shmv_wire_loses(void);
/* True or false, at random. */
bool shmv_wire_coin(void);

#endif
