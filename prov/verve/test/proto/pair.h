/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of tests with two nodes: a, on host 0, sends to b, on host 1. The buffers are the test's
 * own, so that a sanitizer sees each access beyond them.
 */
#ifndef VERVE_TEST_PROTO_PAIR_H
#define VERVE_TEST_PROTO_PAIR_H

#include <stddef.h>
#include <stdint.h>

#include "fixture.h"

extern struct node a, b;

/*
 * Opens both nodes. a sends from out, and b receives into in; each has len bytes. out gets the
 * pattern of seed 1.
 */
void pair_open_apart(void *out, void *in, size_t len);
/* As pair_open_apart, and joins the nodes. */
void pair_open(void *out, void *in, size_t len);
/* Closes both nodes. Expects that nothing is left on the fake net. */
void pair_close(void);

/* a sends the first len bytes of out. flags: VERVE_OP_* */
void pair_send(size_t len, uint32_t flags, void *context);
/* b posts a receive for the first len bytes of in. */
void pair_recv(size_t len, uint32_t flags, void *context);

#endif
