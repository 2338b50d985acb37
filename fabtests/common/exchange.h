/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * exchange: transfers between the two halves that message and tagged programs share. Both halves
 * call each function; each opens its own node unless it takes one.
 */
#ifndef FABTESTS_EXCHANGE_H
#define FABTESTS_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/env.h"
#include "common/node.h"
#include "common/pattern.h"
#include "common/xfer.h"

struct exchange {
	enum xfer_op send;
	enum xfer_op recv;
	bool tagged;
	bool registered; /* buffers registered, descriptors passed; else NULL descriptors */
	bool unexpected; /* the messages are there before the receives */
	uint64_t send_flags; /* of sendmsg */
};

/* Each size of -S once from client to server and once back, -I times. */
void exchange_sizes(struct env *env, const struct exchange *exchange);
/* Every send call with every receive call, in the sizes up to 64 KiB. */
void exchange_mix(struct env *env, bool tagged);
/* Windows of -W messages of mixed sizes: the n-th receive gets the n-th message. */
void exchange_order(struct env *env, const struct exchange *exchange);

/* One small verified message each way: the endpoint works. */
void exchange_hello(struct node *node);
/* One message from this half to the other, on the open node. */
void exchange_one(struct node *node, const struct exchange *exchange, bool sender, size_t size,
		  uint64_t seed);
/* A check that more segments than iov_limit are refused. */
void exchange_refuses_iov(struct node *node, bool tagged);

#endif
