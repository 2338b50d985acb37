/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Simulation: many endpoints of the whole provider in one process, on the fake net, in random
 * traffic from a seed; every completion is checked against what was asked for.
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

/* What a run is to be like. Chances in 1/1000. */
struct sim_options {
	const char *name; /* suite/test, for the command that runs a seed again */
	uint32_t nodes;
	uint32_t ops;	/* that each node starts */
	size_t max_len; /* of a message, bytes */
	size_t slice;	/* bytes of an RMA slice */
	uint32_t segments; /* of each region, at most; then the application chooses keys, or not */
	uint32_t conns;	   /* that an endpoint keeps; 0: all */
	uint32_t members;  /* endpoints of a node, on one shared receive context; 0: one, without */
	uint32_t dgram_loss;
	uint32_t refused; /* of what is started: RDMA that the target's device refuses */
	uint32_t lies;    /* of long reads: reported as done, but are not */
	uint32_t partial; /* of messages: have begun to arrive some time before they do; 0: few or none */
	uint32_t closing; /* of turns: a region is closed, or opened again */
	bool wait;    /* nodes sleep on their wait descriptors */
	bool events;  /* endpoints hear of RMA */
	bool threads; /* domains have progress threads, and applications seldom look */
	bool late;    /* some nodes start when others send already */
	bool retire;  /* nodes close when their work is done */
	bool abandon; /* nodes close at any moment */
	bool kill;    /* a host dies in the middle */
	bool poor;    /* there is little memory to register, now and then */
	bool fickle;  /* nodes cancel much of what they start */
	bool device;  /* devices execute atomics */
	bool odp;     /* and page on demand, all memory at once */
	bool tiny;    /* every queue of the device is as small as it can be */
};

/*
 * What atomics did: how many there were, and the sum of what they brought. A device adds to one word at a
 * time: there count has both, 32 bits each.
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
	struct fid_cntr *cntr[SIM_CNTRS]; /* send, recv, read, write, remote write and read; or NULL */
	uint64_t counted[SIM_CNTRS];	  /* what they should say */
	uint32_t members;
	struct fid_ep *ep[SIM_MEMBERS];
	struct fid_ep *srx; /* that they share, or NULL */
	struct sockaddr_in name[SIM_MEMBERS];
	fi_addr_t *addr; /* by node and member */
	bool selective;
	size_t inject_size;
	bool started, closing, closed, retired, dead, asleep;
	bool hushed; /* its queues were empty when it closed: nothing that it posted may complete any more */
	uint64_t start_at;    /* simulated ns */
	uint32_t budget;      /* operations still to start */
	uint32_t live;	      /* accepted, with a completion to come, receives not counted */
	uint32_t posted;      /* receives that wait */
	uint32_t sweeps[2];   /* receives of the sweep that wait: untagged, tagged */
	struct sim_op *claim; /* a peek whose message waits to be claimed */
	bool claiming;	      /* one that is to claim has not ended yet */
	struct sim_op_queue inbound;
	struct sim_op_queue strays; /* failed at their sender, and may arrive all the same */
	uint8_t *region; /* a slice for each peer and number */
	uint8_t *other_region; /* memory for the next one */
	struct fid_mr *region_mr; /* NULL: closed */
	uint64_t region_key;	  /* of the last one */
	uint8_t stamp; /* what is in both memories, but for what peers wrote since */
	uint64_t next_key; /* of local registrations */
	struct sim_word *words; /* SIM_WORDS for all, then one for each peer alone to swap its ids in */
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
	bool sweeping;		       /* nothing new is started; what is left is received */
	struct sim_op_queue delivered; /* delivery complete, to be found at the receiver */
};

/* sim_run.c */

/* Runs VERVE_SEEDS (default: seeds) seeds, or the one of VERVE_SEED. */
void sim_run_seeds(const struct sim_options *options, uint32_t seeds);
/* Prints what is wrong and how to run the seed again, and aborts. */
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
/* By what a node knows a member of its peer. */
fi_addr_t sim_node_addr(const struct sim_node *node, const struct sim_node *peer, uint32_t member);
/* Where receives are posted. */
struct fid_ep *sim_node_rx(const struct sim_node *node);
/* What sums made of one of its words. */
struct sim_word sim_word_read(const struct sim_node *node, uint32_t word);

/* sim_region.c */

void sim_region_open(struct sim_node *node);
void sim_region_close(struct sim_node *node);
void sim_region_free(struct sim_node *node);
/* Closes it, opens it, or one after the other, whatever peers do. */
void sim_region_change(struct sim_node *node);
void sim_region_reopen(struct sim_node *node);

#endif
