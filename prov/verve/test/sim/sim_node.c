/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Nodes: opening everything through libfabric's calls, and closing it. */
#include <arpa/inet.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdlib.h>
#include <string.h>

#include "../support/fake_memory.h"
#include "../support/prov_once.h"
#include "api/domain.h"
#include "base/addr.h"
#include "base/config.h"
#include "net/sys.h"
#include "sim.h"

enum { FIRST_PORT = 5000, HOSTS_MAX = 16 };

static void check(struct sim *sim, long ret, const char *what)
{
	if (ret < 0)
		sim_fail(sim, "%s: %s", what, fi_strerror((int)-ret));
}

/* Chooses the provider's configuration from the seed. */
static void configure(struct sim *sim)
{
	static const size_t inlines[] = {0, 16, 64, 128, 256},
			    eagers[] = {256, 300, 512, 1024, 8192};
	static const size_t windows[] = {2, 3, 4, 8, 64}, buffers[] = {16, 32, SIZE_MAX, 256};
	static const size_t txs[] = {16, 32, 256};

	verve_config.inline_size = inlines[sim_below(sim, 5)];
	verve_config.eager_size = eagers[sim_below(sim, 5)];
	verve_config.window = windows[sim_below(sim, 5)];
	verve_config.rx_buffers = buffers[sim_below(sim, sim->options->nodes > 8 ? 3 : 4)];
	verve_config.tx_size = txs[sim_below(sim, 3)];
	verve_config.max_conns = sim->options->conns;
	verve_config.connect_timeout = 5000;
	verve_config.transport_timeout = 500;
	verve_config.atomics = sim->options->device ? "device" : "target";
	verve_config.odp = sim->options->odp ? "on" : "off";
	if (sim->options->dgram_loss)
		verve_config.connect_timeout = 30000;
}

static struct fi_info *find_info(struct sim *sim, uint32_t host)
{
	struct fi_info *info;
	struct verve_addr addr;

	fake_net_host_addr(host, &addr);
	for (info = sim->list; info; info = info->next) {
		const struct sockaddr_in *in = info->src_addr;

		if (info->addr_format == FI_SOCKADDR_IN && in &&
		    in->sin_addr.s_addr == addr.in.sin_addr.s_addr)
			return info;
	}
	sim_fail(sim, "getinfo says nothing of host %u", host);
}

static void open_cqs(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct fi_cq_attr attr = {
		.size = 1u << sim_below(sim, 8),
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = sim->options->wait ? FI_WAIT_FD : FI_WAIT_NONE,
	};

	check(sim, fi_cq_open(node->domain, &attr, &node->tx_cq, NULL), "fi_cq_open");
	node->rx_cq = node->tx_cq;
	if (sim_chance(sim, 500))
		check(sim, fi_cq_open(node->domain, &attr, &node->rx_cq, NULL), "fi_cq_open");
	node->tx_fd = node->rx_fd = -1;
	if (!sim->options->wait)
		return;
	check(sim, fi_control(&node->tx_cq->fid, FI_GETWAIT, &node->tx_fd), "FI_GETWAIT");
	check(sim, fi_control(&node->rx_cq->fid, FI_GETWAIT, &node->rx_fd), "FI_GETWAIT");
}

static void open_cntrs(struct sim_node *node)
{
	static const uint64_t events[SIM_CNTRS] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE,
						   FI_REMOTE_WRITE, FI_REMOTE_READ};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct sim *sim = node->sim;

	for (int i = 0; i < SIM_CNTRS; i++) {
		/* With FI_RMA_EVENT every write and read counts, not only data and atomics. */
		if (sim_chance(sim, 500) ||
		    (sim->options->events && events[i] & (FI_REMOTE_WRITE | FI_REMOTE_READ)))
			continue;
		check(sim, fi_cntr_open(node->domain, &attr, &node->cntr[i], NULL), "fi_cntr_open");
		for (uint32_t m = 0; m < node->members; m++)
			check(sim, fi_ep_bind(node->ep[m], &node->cntr[i]->fid, events[i]),
			      "bind counter");
	}
}

static void open_av(struct sim_node *node)
{
	struct sim *sim = node->sim;
	struct fi_av_attr attr = {.type = sim_chance(sim, 500) ? FI_AV_MAP : FI_AV_TABLE};
	uint32_t count = sim->options->nodes, first = sim_below(sim, count);

	check(sim, fi_av_open(node->domain, &attr, &node->av, NULL), "fi_av_open");
	node->addr = calloc(count, sizeof(node->addr[0]) * SIM_MEMBERS);
	if (!node->addr)
		abort();
	/* The same peer has another fi_addr_t at every node. */
	for (uint32_t i = 0; i < count; i++) {
		uint32_t peer = (first + i) % count;

		if (fi_av_insert(node->av, sim->nodes[peer].name, node->members,
				 &node->addr[peer * SIM_MEMBERS], 0, NULL) != (int)node->members)
			sim_fail(sim, "node %u: fi_av_insert", node->index);
	}
}

fi_addr_t sim_node_addr(const struct sim_node *node, const struct sim_node *peer, uint32_t member)
{
	return node->addr[peer->index * SIM_MEMBERS + member];
}

struct fid_ep *sim_node_rx(const struct sim_node *node)
{
	return node->srx ? node->srx : node->ep[0];
}

struct sim_word sim_word_read(const struct sim_node *node, uint32_t word)
{
	struct sim_word got = node->words[word];

	if (!node->sim->options->device)
		return got;
	return (struct sim_word){(uint32_t)got.count, got.count >> 32};
}

static void open_endpoint(struct sim_node *node, uint32_t member)
{
	struct sim *sim = node->sim;
	struct fid_ep **ep = &node->ep[member];

	memcpy(node->info->src_addr, &node->name[member], sizeof(node->name[member]));
	check(sim, fi_endpoint(node->domain, node->info, ep, NULL), "fi_endpoint");
	check(sim, fi_ep_bind(*ep, &node->av->fid, 0), "bind av");
	check(sim,
	      fi_ep_bind(*ep, &node->tx_cq->fid,
			 FI_TRANSMIT | (node->selective ? FI_SELECTIVE_COMPLETION : 0)),
	      "bind cq");
	check(sim, fi_ep_bind(*ep, &node->rx_cq->fid, FI_RECV), "bind cq");
	if (node->srx)
		check(sim, fi_ep_bind(*ep, &node->srx->fid, 0), "bind srx");
}

static void open_endpoints(struct sim_node *node)
{
	static const size_t min_multi[] = {1, 32, 200};
	struct sim *sim = node->sim;
	size_t min = min_multi[sim_below(sim, 3)];

	/* A silent operation that fails is known to by its node alone, and by no name. */
	node->selective = sim_chance(sim, 300) && !sim->options->closing;
	if (sim->options->members) {
		node->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		check(sim, fi_srx_context(node->domain, node->info->rx_attr, &node->srx, NULL),
		      "fi_srx_context");
	}
	for (uint32_t i = 0; i < node->members; i++)
		open_endpoint(node, i);
	check(sim,
	      fi_setopt(&sim_node_rx(node)->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			sizeof(min)),
	      "fi_setopt");
}

/*
 * By the costs of the simulated device all messages as short as these would be copied. So the
 * bounds come from the seed.
 */
static void set_crossover(struct sim_node *node)
{
	static const size_t bounds[] = {64, 200, 400, 4096, SIZE_MAX};
	static const size_t stages[] = {500, 2000, SIZE_MAX};
	struct verve_mr_cache *cache = &verve_domain_from_fid(&node->domain->fid)->mr_cache;

	cache->crossover = (struct verve_mr_crossover) {
		.described = bounds[sim_below(node->sim, 5)],
		.kept = bounds[sim_below(node->sim, 5)],
		.keep = bounds[sim_below(node->sim, 5)],
		.fresh = bounds[sim_below(node->sim, 5)],
		.rendezvous = bounds[sim_below(node->sim, 5)],
		.offer_kept = bounds[sim_below(node->sim, 5)],
		.stage = stages[sim_below(node->sim, 3)],
	};
}

static void node_open(struct sim_node *node)
{
	struct sim *sim = node->sim;

	node->info = fi_dupinfo(find_info(sim, node->host));
	node->info->src_addrlen = sizeof(node->name[0]);
	node->info->tx_attr->size = verve_config.tx_size;
	node->info->caps |= FI_SOURCE | FI_DIRECTED_RECV;
	node->info->rx_attr->caps |= FI_DIRECTED_RECV;
	if (sim->options->segments && sim_chance(sim, 700))
		node->info->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	node->inject_size = node->info->tx_attr->inject_size;
	check(sim, fi_domain(sim->fabric, node->info, &node->domain, NULL), "fi_domain");
	set_crossover(node);
	open_av(node);
	open_cqs(node);
	open_endpoints(node);
	open_cntrs(node);
	sim_region_open(node);
}

void sim_node_start(struct sim_node *node)
{
	size_t eager_size = verve_config.eager_size;

	/* Hosts may be configured differently. */
	verve_config.eager_size <<= sim_below(node->sim, 3);
	for (uint32_t i = 0; i < node->members; i++) {
		struct sockaddr_in name;
		size_t len = sizeof(name);

		check(node->sim, fi_enable(node->ep[i]), "fi_enable");
		check(node->sim, fi_getname(&node->ep[i]->fid, &name, &len), "fi_getname");
		if (len != sizeof(name) || memcmp(&name, &node->name[i], len))
			sim_fail(node->sim, "node %u has another name than it asked for",
				 node->index);
	}
	verve_config.eager_size = eager_size;
	node->started = true;
}

/*
 * In half of the runs, kept registrations are opened to peers by windows, in half of these also by
 * windows for a peer. No random number decides, so that the other half stays as it was before there
 * were windows.
 */
static void set_windows(struct fake_net_config *config)
{
	uint64_t kind = config->seed >> 60;
	bool windows = kind & 1;

	config->limits.mw = windows ? kind & 2 ? 1000 : 3 : 0;
	config->limits.mw_bounds = kind & 4;
	config->limits.mw_peer = config->seed >> 59 & 1;
	verve_config.mr_cache = windows && kind & 8 ? "strict" : "auto";
	fake_net_watch_allow(windows);
}

static void start_world(struct sim *sim, uint32_t hosts)
{
	const struct sim_options *options = sim->options;
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.seed = sim_random(sim);
	config.hosts = hosts;
	config.dgram_loss = options->dgram_loss;
	config.dgram_dup = options->dgram_loss / 2;
	config.rc_slow = sim_below(sim, 20);
	config.reuse_qp_num = sim_chance(sim, 500);
	config.close_cleans_cq = sim_chance(sim, 500);
	config.error_takes_no_post = sim_chance(sim, 300);
	config.error_keeps_recv = sim_chance(sim, 500);
	config.partial = options->partial ? options->partial : sim_chance(sim, 500) ? 50 : 0;
	config.limits.rd_atomic = 1u << sim_below(sim, 5);
	config.limits.rd_atomic_target = 1u << sim_below(sim, 5);
	/* The largest eager message, with its header, is one work request; longer ones are cut. */
	config.limits.msg_size = sim_chance(sim, 500) ? 8192 + 128 : 1 << 20;
	config.inline_size = sim_chance(sim, 500) ? 256 : 60;
	config.limits.doubtful_reads = options->lies || sim_chance(sim, 500);
	config.lies = options->lies;
	config.limits.odp_rc = config.limits.odp_atomic = config.limits.odp_implicit = options->odp;
	if (options->tiny) {
		config.limits.cqe = 64;
		config.limits.srq_wr = 16;
		config.limits.qp_wr = 64;
	}
	set_windows(&config);
	fake_net_start(&config);
}

static void open_fabric(struct sim *sim)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_SOURCE |
		      FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	/* FI_MR_LOCAL: the buffers that have descriptors use them. */
	hints->domain_attr->mr_mode =
		FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_LOCAL;
	hints->domain_attr->threading = sim_chance(sim, 500) ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	if (sim->options->events)
		hints->caps |= FI_RMA_EVENT;
	if (sim->options->threads)
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	check(sim, sim->prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &sim->list),
	      "getinfo");
	fi_freeinfo(hints);
	sim->list->fabric_attr->api_version = FI_VERSION(1, 17);
	check(sim, sim->prov->fabric(sim->list->fabric_attr, &sim->fabric, NULL), "fabric");
	sim->fabric->api_version = FI_VERSION(1, 17);
}

/* Names are known before the first endpoint is enabled: late ones must have them too. */
static void name_node(struct sim *sim, uint32_t index, uint32_t hosts)
{
	struct sim_node *node = &sim->nodes[index];
	struct verve_addr addr;

	node->sim = sim;
	node->index = index;
	node->host = index % hosts;
	node->budget = sim->options->ops;
	TAILQ_INIT(&node->inbound);
	TAILQ_INIT(&node->strays);
	node->members = sim->options->members ? sim->options->members : 1;
	fake_net_host_addr(node->host, &addr);
	for (uint32_t i = 0; i < node->members; i++) {
		node->name[i] = addr.in;
		node->name[i].sin_port = htons((uint16_t)(FIRST_PORT + index * SIM_MEMBERS + i));
	}
}

void sim_open(struct sim *sim)
{
	const struct sim_options *options = sim->options;
	uint32_t hosts = 1 +
			 sim_below(sim, options->nodes < HOSTS_MAX ? options->nodes : HOSTS_MAX);

	if (options->kill && hosts < 2)
		hosts = 2;
	start_world(sim, hosts);
	sim->prov = prov_once();
	configure(sim);
	open_fabric(sim);
	sim->nodes = calloc(options->nodes, sizeof(sim->nodes[0]));
	if (!sim->nodes)
		abort();
	for (uint32_t i = 0; i < options->nodes; i++)
		name_node(sim, i, hosts);
	for (uint32_t i = 0; i < options->nodes; i++)
		node_open(&sim->nodes[i]);
	for (uint32_t i = 0; i < options->nodes; i++) {
		if (options->late && sim_chance(sim, 400))
			sim->nodes[i].start_at = 1 + sim_below(sim, 3000000);
		else
			sim_node_start(&sim->nodes[i]);
	}
}

/* After the close they are not counted. */
static void await_silent(struct sim_node *node)
{
	uint64_t end = fake_net_time() + 60000000000;

	while (!sim_is_counted(node) && fake_net_time() < end) {
		sim_progress(node, 16);
		verve_net_pause();
	}
}

void sim_node_close(struct sim_node *node)
{
	struct sim *sim = node->sim;

	node->closing = true;
	await_silent(node);
	if (sim_chance(sim, 500)) {
		/*
		 * The turn that a look at one queue takes may write a completion into the other, or
		 * leave work to the next turn: so four looks in a row are to find nothing.
		 */
		for (int empty = 0; empty < 4;)
			empty = sim_progress(node, 16) ? 0 : empty + 1;
		node->hushed = true;
	}
	for (uint32_t i = 0; i < node->members; i++)
		check(sim, fi_close(&node->ep[i]->fid), "fi_close of an endpoint");
	node->closed = true;
	while (sim_progress(node, 16))
		;
	sim_drop_all(node);
	if (!node->srx)
		return;
	/*
	 * Receives of a shared context that is closed end without a completion: no queue is bound
	 * to it.
	 */
	check(sim, fi_close(&node->srx->fid), "fi_close of a shared receive context");
	sim_forget_receives(node);
}

static void node_fini(struct sim_node *node)
{
	struct sim *sim = node->sim;

	for (int i = 0; i < SIM_CNTRS; i++)
		if (node->cntr[i])
			check(sim, fi_close(&node->cntr[i]->fid), "fi_close of a counter");
	if (node->rx_cq != node->tx_cq)
		check(sim, fi_close(&node->rx_cq->fid), "fi_close of a CQ");
	check(sim, fi_close(&node->tx_cq->fid), "fi_close of a CQ");
	check(sim, fi_close(&node->av->fid), "fi_close of an AV");
	sim_region_close(node);
}

void sim_close(struct sim *sim)
{
	char open[256];

	for (uint32_t i = 0; i < sim->options->nodes; i++)
		node_fini(&sim->nodes[i]);
	for (size_t i = 0; i < sim->op_count; i++)
		sim_op_free(sim->ops[i]);
	for (uint32_t i = 0; i < sim->options->nodes; i++) {
		struct sim_node *node = &sim->nodes[i];

		check(sim, fi_close(&node->domain->fid), "fi_close of a domain");
		fi_freeinfo(node->info);
		free(node->addr);
		sim_region_free(node);
	}
	check(sim, fi_close(&sim->fabric->fid), "fi_close of a fabric");
	fi_freeinfo(sim->list);
	free(sim->nodes);
	free(sim->ops);
	if (fake_net_leaks(open, sizeof(open)))
		sim_fail(sim, "left open: %s", open);
}
