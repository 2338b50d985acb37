/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the engine's tests: two ends, a and b, each an engine with all it needs on a host of
 * the fake net. The handshake in between is the real one.
 */
#ifndef VERVE_TEST_ENGINE_ENDS_H
#define VERVE_TEST_ENGINE_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comp/comp_queue.h"
#include "conn/addrvec.h"
#include "engine/engine.h"
#include "mr/cache.h"
#include "xport/xport.h"

enum { ROOM = 4096, EAGER = 1024, CONNECT_MS = 2000, TRANSPORT_MS = 500 };

static const uint64_t ms = 1000000;

struct end {
	struct verve_net_device *dev;
	struct verve_addrvec addrvec;
	struct verve_mr_cache mr_cache;
	struct verve_comp_queue tx_queue, rx_queue;
	struct verve_xport_attr xport;
	struct verve_engine_attr attr;
	struct verve_engine *engine; /* NULL: closed */
};

extern struct end a, b;

/* Prepares a on host 0 and b on host 1; nothing is open yet. .init and .fini of test suites. */
void ends_setup(void);
void ends_teardown(void);
/* A third end: a test's own, on host 0 or 1. */
void end_prepare(struct end *end, uint32_t host);
void end_release(struct end *end);

void open_end(struct end *end);
void close_end(struct end *end);
void open_both(void);
/* Nobody has the lock of the engine. */
bool end_is_free(struct end *end);
/* The applications of both ends poll while the clock of an end waits; arg is not used. */
void progress(void *arg);
/* Nanoseconds pass. */
void run(uint64_t time);

/* The fi_addr_t of to in from's address vector. Inserts to if it is not there. */
uint64_t addr_of(struct end *from, const struct end *to);
uint64_t b_addr(void);
/* Sends len bytes; send_to: from a. Flags: VERVE_OP_*; NOTIFY is added. */
int send_from(struct end *from, uint64_t addr, size_t len, uint32_t flags);
int send_to(uint64_t addr, size_t len, uint32_t flags);
/* Posts a receive from any peer. */
int try_recv(struct end *end);
void recv_any(struct end *end);
/* Takes the next completion. There must be one. */
void expect_len(struct verve_comp_queue *queue, size_t len);
/* Takes the next completion, which must be an error, with this text in its reason. */
void expect_failure(struct verve_comp_queue *queue, int err, const char *text);
void expect_error(struct verve_comp_queue *queue, int err);

#endif
