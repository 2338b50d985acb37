/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rpc: remote procedure calls over na, as Mercury makes them: a request as an unexpected message, a
 * bulk transfer that the server makes, a response by tag. Every byte is checked. One half is the
 * server, the other a few clients.
 */
#ifndef FABTESTS_RPC_H
#define FABTESTS_RPC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/env.h"
#include "common/na.h"

#define RPC_TASKS 64
#define RPC_PEERS 64
#define RPC_CLIENTS 4
#define RPC_WINDOW 8 /* calls of a client in flight */
#define RPC_BODY_MAX (NA_MESSAGE - sizeof(struct rpc_request))

enum rpc_kind {
	RPC_ECHO,   /* an answer of the same size */
	RPC_PULL,   /* the server reads the bulk first */
	RPC_PUSH,   /* it writes the bulk */
	RPC_FORGET, /* it answers and removes the client's address */
	RPC_BYE,    /* the same, and the client ends */
	RPC_IGNORE, /* no answer */
	RPC_HOLD,   /* an answer when the client is gone */
};

/* The head of a request. As with Mercury, the sender says who it is. */
struct rpc_request {
	struct sockaddr_in from;
	uint32_t kind;
	uint32_t size; /* of the body behind it, and of the answer */
	uint64_t addr, key, len; /* of the bulk */
	uint64_t seed; /* of body and pulled bulk; + 1: of the pushed one; + 2: of the answer */
};

/* The server's side of a call. */
struct rpc_task {
	enum { RPC_FREE, RPC_NEW, RPC_TRANSFER, RPC_HELD, RPC_ANSWER } stage;
	struct na_op op;
	struct rpc_request request;
	uint32_t tag;
	fi_addr_t client;
	struct na_mem bulk;
};

struct rpc_peer {
	struct sockaddr_in name;
	fi_addr_t addr;
	bool used;
};

struct rpc_server {
	struct na na;
	struct rpc_task tasks[RPC_TASKS];
	struct na_mem answers;
	struct rpc_peer peers[RPC_PEERS];
	unsigned byes, held;
	uint64_t calls;
	int epoll;
};

/* The client's side of a call. */
struct rpc {
	struct na_op sent, received;
	struct rpc_request request;
	struct na_mem bulk;
	uint8_t *out, *in;
	uint32_t tag;
};

struct rpc_client {
	struct na na;
	fi_addr_t server;
	struct na_mem messages;
	struct rpc calls[RPC_WINDOW];
	uint32_t next_tag;
	uint64_t next_seed;
};

/* The clients of this process, and the descriptor on which all of them sleep. */
struct rpc_crowd {
	struct env *env;
	struct rpc_client clients[RPC_CLIENTS];
	struct na *nas[RPC_CLIENTS];
	unsigned count;
	char uri[NA_URI]; /* the server's */
	int epoll;
};

/* Opens a server and tells the other half its address (rpc_crowd_open hears it). */
struct rpc_server *rpc_server_open(struct env *env);
void rpc_server_close(struct rpc_server *s);
/* Serves until so many clients have taken their leave, and so many calls are held. */
void rpc_serve(struct rpc_server *s, unsigned byes, unsigned held);
/*
 * Answers the held calls, whose client is gone: each must end with an error that Mercury takes for
 * that.
 */
void rpc_answer_held(struct rpc_server *s);

/* count: at most RPC_CLIENTS. Closing says goodbye for each. */
struct rpc_crowd *rpc_crowd_open(struct env *env, unsigned count);
void rpc_crowd_close(struct rpc_crowd *crowd);
/* Until op is done, asleep when there is nothing to do. */
void rpc_crowd_wait(struct rpc_crowd *crowd, const struct na_op *op);
/* Client i again, after its close. */
void rpc_client_open(struct rpc_crowd *crowd, unsigned i);
/* Says nothing to the server. */
void rpc_client_close(struct rpc_client *c);

/* size: bytes of the body, at most RPC_BODY_MAX, or of the bulk. */
void rpc_start(struct rpc_client *c, struct rpc *call, enum rpc_kind kind, size_t size);
/* Waits for request and response, and checks response and bulk. */
void rpc_finish(struct rpc_crowd *crowd, struct rpc *call);
void rpc_check_answer(const struct rpc *call);
/* Both. */
void rpc_call(struct rpc_crowd *crowd, struct rpc_client *c, enum rpc_kind kind, size_t size);
/* RPC_WINDOW calls of each client at a time. */
void rpc_call_all(struct rpc_crowd *crowd, enum rpc_kind kind, size_t size);

#endif
