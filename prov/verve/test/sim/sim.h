/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulation: many endpoints of the whole provider in one process, on the fake net, in random
 * traffic from a seed. Every completion is checked against its request.
 *
 * A run (struct sim) has nodes, each a domain, address vector, completion queues and an endpoint,
 * driven through libfabric's calls alone. One thread.
 */
#ifndef VERVE_TEST_SIM_SIM_H
#define VERVE_TEST_SIM_SIM_H

#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdint.h>

#include "fake_net.h"
#include "sim_op.h"

struct fi_provider;

enum {
	SIM_SEGMENTS = 8, /* of a region, at most */
	SIM_SLICES = 2, /* of a node's region for each peer */
	SIM_WORDS = 2,	/* of a node, to which all others add */
	SIM_CNTRS = 6,
	SIM_MEMBERS = 3, /* endpoints of a node, at most */
};

/* The kind of run that is wanted. Chances in 1/1000. */
struct sim_options {
	const char *name; /* suite/test, for the command that runs a seed again */
	uint32_t nodes;
	uint32_t ops;	/* that each node starts */
	size_t max_len; /* of a message, bytes */
	size_t slice;	/* bytes of an RMA slice */
	/* of each region, at most; not 0: some runs let the application choose the keys */
	uint32_t segments;
	uint32_t conns;	   /* that an endpoint keeps; 0: all */
	uint32_t members;  /* endpoints of a node, on one shared receive context; 0: one, without */
	uint32_t dgram_loss;
	uint32_t refused; /* chance of RDMA that the target's device refuses */
	uint32_t lies;    /* chance of a long read that is reported as done but is not */
	/* chance of a message whose beginning arrives some time before its end; 0: hardly any */
	uint32_t partial;
	uint32_t closing; /* chance, each turn, that a region is closed or opened again */
	bool wait;    /* nodes sleep on their wait descriptors */
	bool events;  /* endpoints hear of RMA */
	bool threads; /* domains have progress threads, and applications seldom look */
	bool late;    /* some nodes start when others send already */
	bool retire;  /* nodes close when their work is done */
	bool abandon; /* nodes close at any moment */
	bool kill;    /* a host dies in the middle */
	bool poor;    /* there is little memory to register, now and then */
	bool fickle;  /* nodes cancel many of their operations */
	bool device;  /* devices execute atomics */
	bool odp;     /* devices page on demand, all memory at once */
	bool tiny;    /* every queue of the device is as small as it can be */
};

/*
 * The effect of sums on a word: how many sums there were, and the sum of their operands. A device
 * adds to one 64-bit word at a time: there count has both, 32 bits each.
 */
struct sim_word {
	uint64_t count, sum;
};

struct sim_node {
	struct sim *sim;
	uint32_t index, host;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *tx_cq, *rx_cq;	  /* may be the same */
	int tx_fd, rx_fd;		  /* -1 without wait */
	struct fid_cntr *cntr[SIM_CNTRS]; /* send, recv, read, write, remote write, remote read */
	uint64_t counted[SIM_CNTRS];	  /* the values that the counters should have */
	uint32_t members;
	struct fid_ep *ep[SIM_MEMBERS];
	struct fid_ep *srx; /* that they share, or NULL */
	struct sockaddr_in name[SIM_MEMBERS];
	fi_addr_t *addr; /* by node and member */
	bool selective;
	size_t inject_size;
	bool started, closing, closed, retired, dead, asleep;
	/* its queues were empty when it closed: its operations must not complete any more */
	bool hushed;
	uint64_t start_at;    /* simulated ns */
	uint32_t budget;      /* operations still to start */
	uint32_t live;	      /* accepted, with a completion to come, receives not counted */
	uint32_t posted;      /* receives that wait */
	uint32_t sweeps[2];   /* receives of the sweep that wait: untagged, tagged */
	struct sim_op *claim; /* a peek whose message waits to be claimed */
	bool claiming;	      /* a peek with FI_CLAIM has not ended yet */
	struct sim_op_queue inbound;
	struct sim_op_queue strays; /* failed at their sender, and may arrive all the same */
	uint8_t *region; /* a slice for each peer and number */
	uint8_t *other_region; /* memory for the next one */
	struct fid_mr *region_mr; /* NULL: closed */
	uint64_t region_key;	  /* of the region that was opened last */
	uint8_t stamp; /* every byte of both memories that peers have not written */
	uint64_t next_key; /* of local registrations */
	/* SIM_WORDS for all peers, then one for each peer alone, for its swaps */
	struct sim_word *words;
	uint64_t added[SIM_WORDS]; /* atomics that were started on each and cannot fail */
	uint64_t *swapped;	   /* by peer: the id of the last swap in our word there */
	struct fid_mr *words_mr;
	struct sim_op **holder; /* the last to use a slice of another's region: [peer][slice] */
};

struct sim {
	const struct sim_options *options;
	uint64_t seed;
	uint64_t random;
	struct fi_provider *prov;
	struct fi_info *list;
	struct fid_fabric *fabric;
	struct sim_node *nodes;
	struct sim_op **ops; /* by id - 1 */
	size_t op_count, op_size;
	uint64_t next_order;
	uint64_t last_progress; /* simulated ns of the last completion */
	uint64_t completions;
	struct sim_node *killed;
	bool settled;		       /* no region closes any more */
	/* no operation is started any more; messages that are left are received */
	bool sweeping;
	struct sim_op_queue delivered; /* delivery complete, to be found at the receiver */
};

/* sim_run.c */

/* Runs VERVE_SEEDS (default: seeds) seeds, or the one of VERVE_SEED. */
void sim_run_seeds(const struct sim_options *options, uint32_t seeds);
/* Prints the message and the command that runs the seed again, and aborts. */
_Noreturn void sim_fail(const struct sim *sim, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t sim_random(struct sim *sim);
/* Below n. */
uint32_t sim_below(struct sim *sim, uint32_t n);
/* chance in 1/1000. */
bool sim_chance(struct sim *sim, uint32_t chance);

/* sim_log.c: the provider's warnings, which are printed only if they are not expected. */
uint32_t sim_log_warnings(void);
void sim_log_reset(bool expected);
/* A line among the events of VERVE_TRACE=1. */
void sim_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The last one, for a failure's message. */
const char *sim_log_last(void);

/* sim_node.c */

void sim_open(struct sim *sim);
void sim_close(struct sim *sim);
void sim_node_start(struct sim_node *node);
/* fi_close of the endpoint, while the others go on; then its queues are read to the end. */
void sim_node_close(struct sim_node *node);
/* The address under which a node knows a member of its peer. */
fi_addr_t sim_node_addr(const struct sim_node *node, const struct sim_node *peer, uint32_t member);
/* The endpoint, or shared receive context, to which receives are posted. */
struct fid_ep *sim_node_rx(const struct sim_node *node);
/* The present value of one of the node's words for sums. */
struct sim_word sim_word_read(const struct sim_node *node, uint32_t word);

/* sim_region.c */

void sim_region_open(struct sim_node *node);
void sim_region_close(struct sim_node *node);
void sim_region_free(struct sim_node *node);
/* Closes the region, opens it, or one after the other, with peers' operations under way. */
void sim_region_change(struct sim_node *node);
void sim_region_reopen(struct sim_node *node);

#endif
