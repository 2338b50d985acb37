/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * node: one endpoint with everything under it, opened by the options and the attributes, and the
 * address of the node on the other side. A failed open ends the program.
 */
#ifndef FABTESTS_NODE_H
#define FABTESTS_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "common/env.h"

#define NODE_ADDR_MAX 128
#define NODE_PORT_MAX 8

/* A field that is 0: the options' value, else the provider's default. */
struct node_attr {
	uint64_t caps;        /* zero: FI_MSG | FI_TAGGED */
	enum fi_av_type av_type;
	enum fi_cq_format cq_format; /* unspecified: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj cq_wait;    /* zero: none, or as -c needs */
	size_t cq_size;
	uint64_t msg_order;
	enum fi_progress progress; /* of data */
	enum fi_threading threading;
	uint64_t tx_flags;    /* beside FI_TRANSMIT when binding the CQ: FI_SELECTIVE_COMPLETION */
	uint64_t rx_flags;
	const struct node *share; /* use this node's fabric and domain */
	bool share_queues;    /* and its address vector and completion queues */
	struct fid_cntr *cntr; /* counts sends and receives, too */
	struct fid_ep *srx;   /* has the receives */
	const char *src_port;
	bool one_cq;          /* one queue for both directions */
	bool app_keys;        /* without FI_MR_PROV_KEY */
	bool by_offset;       /* without FI_MR_VIRT_ADDR */
	const char *auth_key, *domain_auth_key; /* authorization keys; NULL: none */
};

struct node {
	struct env_member member; /* first; of env */
	struct env *env;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *txcq, *rxcq;
	enum fi_cq_format cq_format;
	enum fi_wait_obj cq_wait;
	struct fid_ep *ep;
	fi_addr_t peer;
	uint64_t next_key; /* of the regions registered here */
	bool shared, shared_queues, one_cq;
};

/* The hints that the options and attr amount to; free with fi_freeinfo. */
struct fi_info *node_hints(const struct env *env, const struct node_attr *attr);
/* fi_getinfo with the options' addresses; a libfabric code. */
int node_getinfo(const struct env *env, const struct node_attr *attr, const struct fi_info *hints,
		 struct fi_info **info);
/* Whether getinfo offers caps. */
bool node_offered(struct env *env, uint64_t caps);

#define NODE_DEVICE_MAX 128 /* bytes of a device's name */

/* The names of the domains that have an IPv4 address, at most max, wherever -s points. */
unsigned node_devices(const struct env *env, uint64_t caps, char names[][NODE_DEVICE_MAX],
		      unsigned max);

/* Opens up to, but without, fi_enable, so that more can be bound. attr may be NULL. */
void node_open(struct node *node, struct env *env, const struct node_attr *attr);
void node_enable(struct node *node);
/* Exchanges addresses with the other half and inserts it as node->peer. */
void node_connect(struct node *node);
/* All three. */
void node_start(struct node *node, struct env *env, const struct node_attr *attr);
/* A check that every close returns 0. */
void node_close(struct node *node);
/* Closes the endpoint alone, first; node_close() does the rest later. */
void node_close_ep(struct node *node);

/* A counter of completions, whose context is the node. */
struct fid_cntr *node_open_cntr(struct node *node, enum fi_wait_obj wait_obj);

/* Makes progress without reading a completion. */
void node_progress(struct node *node);
/* fi_getname, at most NODE_ADDR_MAX bytes; returns the length. */
size_t node_name(const struct node *node, void *addr);
/* The port of a name, written to port, as attr.src_port wants it. NULL if the name is all zeros. */
const char *node_port(const char *name, char port[NODE_PORT_MAX]);
/* Inserts one address that must be accepted. */
fi_addr_t node_insert(struct node *node, const void *addr);
/* Returns when both halves are here, driving progress meanwhile. */
void node_sync(struct node *node);

#endif
