/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* node: opens, connects and closes an endpoint and the objects under it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/node.h"

static const struct node_attr default_attr;

static void set_string(char **field, const char *text)
{
	if (!text)
		return;
	free(*field);
	*field = strdup(text);
	if (!*field)
		check_fatal("out of memory");
}

static void set_key(uint8_t **key, size_t *size, const char *text)
{
	if (!text)
		return;
	*size = strlen(text);
	*key = (uint8_t *)strdup(text);
	if (!*key)
		check_fatal("out of memory");
}

struct fi_info *node_hints(const struct env *env, const struct node_attr *attr)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		check_fatal("fi_allocinfo: out of memory");
	set_string(&hints->fabric_attr->prov_name, env->opts.prov_name);
	set_string(&hints->fabric_attr->name, env->opts.fabric_name);
	set_string(&hints->domain_attr->name, env->opts.domain_name);
	hints->ep_attr->type = FI_EP_RDM;
	set_key(&hints->ep_attr->auth_key, &hints->ep_attr->auth_key_size, attr->auth_key);
	set_key(&hints->domain_attr->auth_key, &hints->domain_attr->auth_key_size,
		attr->domain_auth_key);
	hints->caps = attr->caps ? attr->caps : FI_MSG | FI_TAGGED;
	/*
	 * FI_MR_LOCAL is offered because callers pass descriptors where they have them. A provider
	 * that needs none clears the bit.
	 */
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_LOCAL |
				      (attr->by_offset ? 0 : FI_MR_VIRT_ADDR) |
				      (attr->app_keys ? 0 : FI_MR_PROV_KEY);
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = attr->av_type;
	hints->domain_attr->data_progress = attr->progress;
	hints->domain_attr->threading = attr->threading;
	hints->tx_attr->msg_order = attr->msg_order;
	hints->rx_attr->msg_order = attr->msg_order;
	if (env->opts.delivery)
		hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	return hints;
}

int node_getinfo(const struct env *env, const struct node_attr *attr, const struct fi_info *hints,
		 struct fi_info **info)
{
	const char *addr = env->opts.src_addr, *port = attr->src_port;

	if (!port)
		port = env->opts.src_port;
	return fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), addr, port,
			  addr || port ? FI_SOURCE : 0, hints, info);
}

bool node_offered(struct env *env, uint64_t caps)
{
	struct node_attr attr = { .caps = caps };
	struct fi_info *hints = node_hints(env, &attr), *info = NULL;
	int ret = node_getinfo(env, &attr, hints, &info);

	fi_freeinfo(hints);
	if (info)
		fi_freeinfo(info);
	if (ret && ret != -FI_ENODATA)
		check_fatal("fi_getinfo: %s", fi_strerror(-ret));
	return !ret;
}

static bool is_named(char names[][NODE_DEVICE_MAX], unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

unsigned node_devices(const struct env *env, uint64_t caps, char names[][NODE_DEVICE_MAX],
		      unsigned max)
{
	struct node_attr attr = { .caps = caps };
	struct fi_info *hints, *list = NULL;
	struct env anywhere = *env;
	unsigned count = 0;

	anywhere.opts.src_addr = NULL;
	anywhere.opts.src_port = NULL;
	hints = node_hints(&anywhere, &attr);
	hints->addr_format = FI_SOCKADDR_IN;
	REQUIRE_RET(node_getinfo(&anywhere, &attr, hints, &list), 0);
	for (struct fi_info *info = list; info && count < max; info = info->next) {
		const char *name = info->domain_attr->name;

		if (!is_named(names, count, name) && strlen(name) < NODE_DEVICE_MAX)
			strcpy(names[count++], name);
	}
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return count;
}

static void open_queues(struct node *node, const struct node_attr *attr)
{
	struct fi_cq_attr cq = {
		.size = attr->cq_size,
		.format = node->cq_format,
		.wait_obj = node->cq_wait,
	};
	struct fi_av_attr av = { .type = attr->av_type };

	if (node->shared_queues) {
		node->av = attr->share->av;
		node->txcq = attr->share->txcq;
		node->rxcq = attr->share->rxcq;
		return;
	}
	REQUIRE_RET(fi_av_open(node->domain, &av, &node->av, node), 0);
	REQUIRE_RET(fi_cq_open(node->domain, &cq, &node->txcq, node), 0);
	node->rxcq = node->txcq;
	if (!node->one_cq)
		REQUIRE_RET(fi_cq_open(node->domain, &cq, &node->rxcq, node), 0);
}

static void open_ep(struct node *node, const struct node_attr *attr)
{
	if (attr->srx)
		node->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	REQUIRE_RET(fi_endpoint(node->domain, node->info, &node->ep, node), 0);
	if (attr->srx)
		REQUIRE_RET(fi_ep_bind(node->ep, &attr->srx->fid, 0), 0);
	REQUIRE_RET(fi_ep_bind(node->ep, &node->av->fid, 0), 0);
	if (attr->cntr)
		REQUIRE_RET(fi_ep_bind(node->ep, &attr->cntr->fid, FI_SEND | FI_RECV), 0);
	if (node->one_cq) {
		REQUIRE_RET(fi_ep_bind(node->ep, &node->txcq->fid,
				       FI_TRANSMIT | FI_RECV | attr->tx_flags), 0);
		return;
	}
	REQUIRE_RET(fi_ep_bind(node->ep, &node->txcq->fid, FI_TRANSMIT | attr->tx_flags), 0);
	REQUIRE_RET(fi_ep_bind(node->ep, &node->rxcq->fid, FI_RECV | attr->rx_flags), 0);
}

static enum fi_wait_obj wait_obj(const struct env *env, const struct node_attr *attr)
{
	if (attr->cq_wait)
		return attr->cq_wait;
	if (env->opts.method == OPTS_SREAD)
		return FI_WAIT_UNSPEC;
	return env->opts.method == OPTS_FD ? FI_WAIT_FD : FI_WAIT_NONE;
}

static void progress_member(struct env_member *member)
{
	node_progress((struct node *)member);
}

void node_open(struct node *node, struct env *env, const struct node_attr *attr)
{
	struct fi_info *hints;

	if (!attr)
		attr = &default_attr;
	hints = node_hints(env, attr);
	*node = (struct node){ .env = env, .peer = FI_ADDR_UNSPEC, .one_cq = attr->one_cq };
	node->cq_format = attr->cq_format ? attr->cq_format : FI_CQ_FORMAT_TAGGED;
	node->cq_wait = wait_obj(env, attr);
	node->shared = attr->share;
	node->shared_queues = attr->share_queues;
	REQUIRE_RET(node_getinfo(env, attr, hints, &node->info), 0);
	fi_freeinfo(hints);
	if (node->shared) {
		node->fabric = attr->share->fabric;
		node->domain = attr->share->domain;
		node->next_key = 1000;
	} else {
		REQUIRE_RET(fi_fabric(node->info->fabric_attr, &node->fabric, node), 0);
		REQUIRE_RET(fi_domain(node->fabric, node->info, &node->domain, node), 0);
	}
	open_queues(node, attr);
	open_ep(node, attr);
	node->member.progress = progress_member;
	LIST_INSERT_HEAD(&env->members, &node->member, entry);
}

void node_enable(struct node *node)
{
	REQUIRE_RET(fi_enable(node->ep), 0);
}

/* -P: the client finds the server as an application without an out-of-band channel would. */
static void resolve_peer(struct node *node)
{
	const struct opts *opts = &node->env->opts;
	struct fi_info *hints = fi_dupinfo(node->info), *info = NULL;

	REQUIRE(hints != NULL);
	/* Our own port is taken by now. */
	free(hints->src_addr);
	hints->src_addr = NULL;
	hints->src_addrlen = 0;
	REQUIRE_RET(fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), opts->dst_addr,
			       opts->dst_port, 0, hints, &info), 0);
	REQUIRE(info->dest_addr != NULL);
	node->peer = node_insert(node, info->dest_addr);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

void node_connect(struct node *node)
{
	char mine[NODE_ADDR_MAX], theirs[NODE_ADDR_MAX];
	size_t len = node_name(node, mine);

	oob_exchange(&node->env->oob, mine, len, theirs, sizeof(theirs));
	if (node->env->opts.dst_port && !node->env->server)
		resolve_peer(node);
	else
		node->peer = node_insert(node, theirs);
}

void node_start(struct node *node, struct env *env, const struct node_attr *attr)
{
	node_open(node, env, attr);
	node_enable(node);
	node_connect(node);
}

void node_close_ep(struct node *node)
{
	if (node->ep)
		CHECK_RET(fi_close(&node->ep->fid), 0);
	node->ep = NULL;
}

void node_close(struct node *node)
{
	LIST_REMOVE(&node->member, entry);
	node_close_ep(node);
	if (!node->shared_queues) {
		CHECK_RET(fi_close(&node->av->fid), 0);
		CHECK_RET(fi_close(&node->txcq->fid), 0);
		if (node->rxcq != node->txcq)
			CHECK_RET(fi_close(&node->rxcq->fid), 0);
	}
	if (!node->shared) {
		CHECK_RET(fi_close(&node->domain->fid), 0);
		CHECK_RET(fi_close(&node->fabric->fid), 0);
	}
	fi_freeinfo(node->info);
}

struct fid_cntr *node_open_cntr(struct node *node, enum fi_wait_obj wait_obj)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait_obj };
	struct fid_cntr *cntr = NULL;

	REQUIRE_RET(fi_cntr_open(node->domain, &attr, &cntr, node), 0);
	return cntr;
}

void node_progress(struct node *node)
{
	fi_cq_read(node->txcq, NULL, 0);
	if (node->rxcq != node->txcq)
		fi_cq_read(node->rxcq, NULL, 0);
}

size_t node_name(const struct node *node, void *addr)
{
	size_t len = NODE_ADDR_MAX;

	memset(addr, 0, NODE_ADDR_MAX);
	REQUIRE_RET(fi_getname(&node->ep->fid, addr, &len), 0);
	return len;
}

/* The port stands in the same place in both families' addresses. */
const char *node_port(const char *name, char port[NODE_PORT_MAX])
{
	const struct sockaddr_in *addr = (const void *)name;

	if (!addr->sin_family)
		return NULL;
	snprintf(port, NODE_PORT_MAX, "%u", ntohs(addr->sin_port));
	return port;
}

fi_addr_t node_insert(struct node *node, const void *addr)
{
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;

	REQUIRE_RET(fi_av_insert(node->av, addr, 1, &fi_addr, 0, NULL), 1);
	CHECK(fi_addr != FI_ADDR_NOTAVAIL);
	return fi_addr;
}

void node_sync(struct node *node)
{
	env_sync(node->env, "sync");
}
