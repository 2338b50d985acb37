/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Crowd: many endpoints of the whole provider on the fake net that send messages by a plan. Each
 * message is checked: once, whole, and in its sender's order. A crowd is for numbers, sim.h for
 * variety.
 *
 * Driven through libfabric's calls alone. One thread. A failed check prints the seed and aborts.
 */
#ifndef VERVE_TEST_SIM_CROWD_H
#define VERVE_TEST_SIM_CROWD_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fake_net.h"

struct crowd;

/* The receiver of the nth message (from 0) of a member. False: the member sends no more. */
typedef bool crowd_plan(const struct crowd *crowd, uint32_t from, uint64_t n, uint32_t *to);

struct crowd_options {
	const char *name; /* suite/test, for the command that runs a seed again */
	uint32_t members, hosts;
	crowd_plan *plan;
	uint32_t rounds;     /* for the plan: messages from one to another, at most */
	size_t max_len;	     /* of a message, bytes; 16 at least. Shorter ones are as frequent */
	bool equal;	     /* every message has max_len bytes */
	uint32_t receives;   /* that a member keeps posted */
	uint32_t dgram_loss; /* 1/1000 */
	uint64_t tick;	     /* simulated ns between turns of a member, on average */
	uint32_t qp;	     /* queue pairs of a device; 0: plenty */
	uint32_t cqe;	     /* of a device's completion queue, at most; 0: as soft-RoCE has it */
	uint32_t cq_size;    /* of the application's */
	/* the member whose messages complete before they are received; 0: none */
	uint32_t eager;
	bool acknowledged;   /* half of the messages are to be delivered before they complete */
};

struct crowd_member {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t *addr;	/* of members; shared by those of a host */
	uint32_t *sent;		/* messages, to a member */
	uint64_t places;	/* receives that were posted */
	/* the receive that took each message: by sender and number; 0: none yet */
	uint64_t *place_of;
	uint64_t started;	/* messages of the plan */
	uint64_t completed;	/* of them */
	uint64_t received;
	uint32_t posted, receives; /* to keep posted */
	bool planned;		/* the plan has no more for it */
	bool closed;
	bool away;		/* its application does not call libfabric */
	struct crowd_send *unused, *delayed;
	LIST_HEAD(, receive) receives_posted;
};

struct crowd {
	const struct crowd_options *options;
	uint64_t seed, random;
	struct fi_info *list;
	struct fid_fabric *fabric;
	struct crowd_host *hosts;
	struct crowd_member *members;
	uint64_t received;	/* by all */
	uint64_t due;		/* of all: started and not received */
	uint64_t last_progress; /* simulated ns */
	uint32_t turns;		/* of members, while another closes */
};

/*
 * A member sends to each other member, rounds times, from the next on round the circle, or the
 * other way.
 */
crowd_plan crowd_all_to_all;
/* A message to everybody behind. */
crowd_plan crowd_upwards;
/* rounds messages of everybody to member 0. */
crowd_plan crowd_to_one;

/* verve_config is as the test wants it; the world begins anew. */
void crowd_open(struct crowd *crowd, const struct crowd_options *options, uint64_t seed);
void crowd_close(struct crowd *crowd);
/* One turn of each member, then a tick. */
void crowd_turn(struct crowd *crowd);
/* Until everything of the plan is sent, complete and received. */
void crowd_run(struct crowd *crowd);
/* Member to receives this one message of member from, and nothing else by it. */
void crowd_recv_from(struct crowd *crowd, uint32_t to, uint32_t from, uint32_t number);
uint64_t crowd_random(struct crowd *crowd);
_Noreturn void crowd_fail(const struct crowd *crowd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Bytes on the heap of the process; 0: unknown. */
size_t crowd_heap(void);
/* VERVE_SEED alone, or so many (VERVE_SEEDS) from 1 on. */
void crowd_seeds(uint32_t seeds, void (*run)(uint64_t seed));
/* A number from the environment. */
uint32_t crowd_number(const char *variable, uint32_t otherwise);

#endif
