/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of the connection: two ends; the test carries each datagram by hand. */
#ifndef VERVE_TEST_CONN_CONN_FIXTURE_H
#define VERVE_TEST_CONN_CONN_FIXTURE_H

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <stdint.h>

#include "conn/conn.h"
#include "conn/conn_recv.h"
#include "conn/conn_send.h"

enum {
	DOWN = VERVE_CONN_DO_DOWN,
	FAIL = VERVE_CONN_DO_FAIL,
	OPEN = VERVE_CONN_DO_OPEN,
	CONNECT = VERVE_CONN_DO_CONNECT,
	REPORT_UP = VERVE_CONN_DO_UP,
	REPORT_READY = VERVE_CONN_DO_READY,
	SEND = VERVE_CONN_DO_SEND,
	/* The actions of a connection that accepts a HELLO. */
	ADOPT = CONNECT | REPORT_UP | SEND,
};

static const uint64_t ms = 1000000;

/* An endpoint and its connection to the other endpoint. */
struct end {
	struct verve_conn_self self;
	struct verve_conn conn;
	uint64_t serial;
};

extern struct end a, b;
extern uint64_t now;
extern uint64_t random_number;	  /* the last that was given out; the next is one more */
extern struct verve_conn_out out; /* of the last call of the connection */

/* Starts a and b, as before each test. */
void setup(void);
/* Makes a new endpoint: at the start of a test, and when its process is started again. */
void start_end(struct end *end, uint8_t host, uint8_t peer);
/* The manager opens a queue pair for the connection. */
void open_end(struct end *end);

/* The engine asks for the connection; returns the first HELLO. */
struct verve_hello request(struct end *end);
/* A datagram arrives; returns the actions, with their arguments in out. */
unsigned receive(struct end *end, const struct verve_hello *arrived);
/* The time of the connection's timer comes. */
void fire(struct end *end);

/* a asks, b answers, no datagram is lost. Returns the first HELLO. */
struct verve_hello establish(void);
/* Both ends are connected to each other, and know each other's sizes. */
void expect_agreement(void);

#endif
