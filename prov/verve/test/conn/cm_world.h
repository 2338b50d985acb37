/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What connection managers need of net, faked for many of them in one process: a clock, seeded
 * randomness, a network that loses, copies, delays, overtakes, refuses and replays datagrams, and
 * queue pairs that know whom they are connected to. Stands in for net/{dgram,qp,sys}.h.
 */
#ifndef VERVE_TEST_CONN_CM_WORLD_H
#define VERVE_TEST_CONN_CM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

struct verve_net_qp;

enum {
	CM_WORLD_PORTS = 128,	/* sockets bind to ports of one host, from CM_WORLD_PORT on */
	CM_WORLD_PORT = 1000,
};

/* Chances in 1/1000, times in nanoseconds. */
struct cm_world_config {
	uint32_t loss, copy, slow;	/* slow: how many take up to slow_max instead */
	uint64_t delay_min, delay_max, slow_max;
	bool refuse;			/* ICMP answers for a closed port */
};
extern struct cm_world_config cm_world_config; /* may change at any time */

void cm_world_start(uint64_t seed);
/* Forgets what is under way. Sockets and queue pairs must be closed: says what is not. */
size_t cm_world_stop(void);

void cm_world_addr(unsigned port, struct verve_addr *addr);

extern uint64_t cm_world_time;
/* When the next datagram arrives; UINT64_MAX: none is under way. */
uint64_t cm_world_next(void);
/* Moves the clock there and delivers it; returns to which port. */
unsigned cm_world_deliver(void);

uint64_t cm_world_random(void);
/* A random one of all datagrams so far arrives once more, some time. */
void cm_world_replay(void);
/* What this port sends is lost, until it is opened again: a process that was killed. */
void cm_world_mute(unsigned port);
/* The last datagram of this kind (conn/hello.h), lost or not, into buf; its length, 0: none. */
size_t cm_world_recorded(unsigned from, unsigned to, uint8_t kind, void *buf);
/* Any bytes, from one port to another; above CM_WORLD_PORTS nobody hears the answer. */
void cm_world_inject(unsigned from, unsigned to, const void *buf, size_t len);

/* The nth queue pair from now on cannot be opened, or connected; 0: none. */
void cm_world_fail_open(unsigned nth);
void cm_world_fail_connect(unsigned nth);

size_t cm_world_qps(void); /* open */
/* The queue pair that this one is connected to, if that is connected to this one; else NULL. */
struct verve_net_qp *cm_world_partner(const struct verve_net_qp *qp);

#endif
