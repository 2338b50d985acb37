/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of peers: two nodes, a and b, that are not joined; a sends, b receives. */
#ifndef VERVE_TEST_XPORT_PEER_FIXTURE_H
#define VERVE_TEST_XPORT_PEER_FIXTURE_H

#include "../proto/fixture.h"

enum { ROOM = 3 * NODE_EAGER };

extern struct node a, b;
extern char out[ROOM], in[ROOM];

/* a sends len bytes of out to b. */
void send_len(size_t len);
/* b receives a message of any peer. */
void recv_any(void);

#endif
