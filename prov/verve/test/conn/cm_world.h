/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * World: a fake of net/{dgram,qp,sys}.h for many connection managers in one process: a clock,
 * seeded randomness, a network that loses, copies, delays, reorders, refuses and replays datagrams,
 * and queue pairs that know the queue pair they are connected to.
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
	uint32_t loss, copy, slow;	/* slow: chance of a delay up to slow_max */
	uint64_t delay_min, delay_max, slow_max;
	bool refuse;			/* ICMP answers for a closed port */
	uint64_t work_max;		/* most from a job's begin to its end */
	bool no_threads;		/* none can be started */
};
extern struct cm_world_config cm_world_config; /* may change at any time */

void cm_world_start(uint64_t seed);
/* Drops packets under way. Returns the number of sockets and queue pairs that were left open. */
size_t cm_world_stop(void);

void cm_world_addr(unsigned port, struct verve_addr *addr);

extern uint64_t cm_world_time;
/* Time when the next datagram arrives; UINT64_MAX: none is under way. */
uint64_t cm_world_next(void);
/* Time of the next step of a thread; UINT64_MAX: all sleep. */
uint64_t cm_world_next_thread(void);
/* Moves the clock to that time, and runs the step. */
void cm_world_run_thread(void);
/* Moves the clock to that time and delivers the datagram; returns the port that gets it. */
unsigned cm_world_deliver(void);

uint64_t cm_world_random(void);
/* A random datagram of all so far is sent once more. */
void cm_world_replay(void);
/* All datagrams from this port are lost until it is opened again, as of a killed process. */
void cm_world_mute(unsigned port);
/* Copies the last datagram of this kind (conn/hello.h), lost or not; its length, 0: none. */
size_t cm_world_recorded(unsigned from, unsigned to, uint8_t kind, void *buf);
/* Sends any bytes in the name of port from; above CM_WORLD_PORTS the answer is lost. */
void cm_world_inject(unsigned from, unsigned to, const void *buf, size_t len);

/* The nth queue pair from now on cannot be opened, or connected; 0: none. */
void cm_world_fail_open(unsigned nth);
void cm_world_fail_connect(unsigned nth);

/* Number of open queue pairs. */
size_t cm_world_qps(void);
/* The queue pair at the other end, if the two are connected to each other; else NULL. */
struct verve_net_qp *cm_world_partner(const struct verve_net_qp *qp);

#endif
