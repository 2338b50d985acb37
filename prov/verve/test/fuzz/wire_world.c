/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire_world.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/domain.h"
#include "api/ep.h"
#include "base/config.h"
#include "engine/engine.h"
#include "net/sys.h"
#include "support/fake_net.h"
#include "xport/xport.h"

struct fi_provider *fi_prov_ini(void);

struct wire_world world;

void wire_require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wire_fuzz: %s\n", what);
	abort();
}

/* Opening and closing. */

static void open_end(struct wire_end *end)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	wire_require(!fi_cq_open(world.domain, &cq_attr, &end->cq, NULL), "fi_cq_open");
	wire_require(!fi_av_open(world.domain, &av_attr, &end->av, NULL), "fi_av_open");
	wire_require(!fi_endpoint(world.domain, world.info, &end->ep, NULL), "fi_endpoint");
	wire_require(!fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind");
	wire_require(!fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	wire_require(!fi_enable(end->ep), "fi_enable");
}

static void close_end(struct wire_end *end)
{
	wire_require(!fi_close(&end->ep->fid), "fi_close of an endpoint");
	wire_require(!fi_close(&end->av->fid), "fi_close of an address vector");
	wire_require(!fi_close(&end->cq->fid), "fi_close of a queue");
}

static void introduce(void)
{
	for (int i = 0; i < ENDS; i++) {
		for (int j = 0; j < ENDS; j++) {
			struct sockaddr_storage name;
			size_t len = sizeof(name);

			wire_require(!fi_getname(&world.ends[j].ep->fid, &name, &len),
				     "fi_getname");
			wire_require(fi_av_insert(world.ends[i].av, &name, 1, &world.ends[i].to[j],
						  0, NULL) == 1,
				     "fi_av_insert");
		}
	}
}

static void open_info(bool app_keys)
{
	static const uint32_t version = FI_VERSION(1, 17);
	static struct fi_provider *prov;
	struct fi_info *hints, *info;

	if (!prov)
		prov = fi_prov_ini();
	/*
	 * All capabilities: without hints, completions do not name the sender, and no endpoint
	 * hears of RMA.
	 */
	hints = fi_allocinfo();
	wire_require(hints, "fi_allocinfo");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV |
		      FI_SOURCE | FI_RMA_EVENT;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	wire_require(!prov->getinfo(version, NULL, NULL, 0, hints, &world.list), "getinfo");
	fi_freeinfo(hints);
	for (info = world.list; info->addr_format != FI_SOCKADDR_IN; info = info->next)
		;
	world.info = info;
	if (app_keys)
		info->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	info->fabric_attr->api_version = version;
	wire_require(!prov->fabric(info->fabric_attr, &world.fabric, NULL), "fabric");
	world.fabric->api_version = version;
}

static void open_ends(bool least_window)
{
	for (int i = 0; i < ENDS; i++) {
		verve_config.window = i == HOSTILE && least_window ? VERVE_CONFIG_WINDOW_MIN : 4;
		open_end(&world.ends[i]);
	}
	introduce();
}

void wire_world_open(bool app_keys, bool least_window)
{
	struct fake_net_config config;

	memset(&world, 0, sizeof(world));
	fake_net_config_default(&config);
	config.seed = 1;
	fake_net_start(&config);
	verve_config.eager_size = 512;
	verve_config.inline_size = 64;
	verve_config.rx_buffers = 16;
	verve_config.rx_limit = 1024;
	verve_config.tx_size = 256; /* more than all steps can start */
	verve_config.connect_timeout = 200;
	verve_config.transport_timeout = 50;
	open_info(app_keys);
	wire_require(!fi_domain(world.fabric, world.info, &world.domain, NULL), "fi_domain");
	/* Long messages are offered and read in parts. */
	verve_domain_from_fid(&world.domain->fid)->mr_cache.crossover.stage = BUFFER / 3;
	world.region = calloc(1, REGION);
	wire_require(world.region, "memory");
	wire_require(!fi_mr_reg(world.domain, world.region, REGION,
			   FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE, 0, 77, 0,
			   &world.mr, NULL), "fi_mr_reg");
	world.loot = calloc(1, LOOT);
	wire_require(world.loot, "memory");
	wire_require(
		!fi_mr_reg(world.domain, world.loot, LOOT, FI_READ, 0, 78, 0, &world.loot_mr, NULL),
		"fi_mr_reg");
	open_ends(least_window);
}

void wire_world_close(void)
{
	for (int i = 0; i < ENDS; i++)
		close_end(&world.ends[i]);
	wire_require(!fi_close(&world.mr->fid), "fi_close of a region");
	wire_require(!fi_close(&world.loot_mr->fid), "fi_close of a region");
	wire_require(!fi_close(&world.domain->fid), "fi_close of a domain");
	wire_require(!fi_close(&world.fabric->fid), "fi_close of a fabric");
	fi_freeinfo(world.list);
	free(world.region);
	free(world.loot);
	wire_require(!fake_net_leaks(NULL, 0), "objects of the device are left");
}

/* Completions. */

/* A receive of the victim has ended, with error or not. */
static void take_recv(const struct fi_cq_tagged_entry *entry, bool error, bool from_honest)
{
	struct wire_slot *slot = entry->op_context;
	const uint8_t *at = slot->multi ? entry->buf : slot->buf;

	wire_require(slot->posted, "a receive ends twice");
	if (!slot->multi || entry->flags & FI_MULTI_RECV)
		slot->posted = false;
	if (error || !from_honest)
		return;
	for (size_t i = 0; i < entry->len; i++)
		wire_require(at[i] == FILL, "the hostile peer speaks for the honest one");
	world.got_honest |= slot == &world.last;
}

struct verve_xport *wire_end_lock(int which)
{
	return verve_engine_lock(verve_ep_from_fid(world.ends[which].ep)->engine);
}

void wire_end_unlock(int which)
{
	verve_engine_unlock(verve_ep_from_fid(world.ends[which].ep)->engine);
}

void wire_require_no_loot(const uint8_t *bytes, size_t len)
{
	size_t run = 0;

	for (size_t i = 0; i < len; i++) {
		run = bytes[i] == FILL ? run + 1 : 0;
		wire_require(run < 16, "the hostile peer gets what the honest one is sent");
	}
}

/* The packets that its last turn has taken. */
static void look_at_arrived(void)
{
	struct verve_xport *xport = wire_end_lock(HOSTILE);

	for (int i = 0; i < xport->batch.count; i++) {
		const struct verve_net_wc *wc = &xport->batch.wc[i];

		if (!wc->status)
			wire_require_no_loot(((struct verve_slab *)(uintptr_t)wc->wr_id)->data,
					     wc->byte_len);
	}
	wire_end_unlock(HOSTILE);
}

/* Whether there was one. */
static bool read_end(int which)
{
	struct wire_end *end = &world.ends[which];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	fi_addr_t from = FI_ADDR_NOTAVAIL;
	ssize_t ret = fi_cq_readfrom(end->cq, &entry, 1, &from);

	if (which == HOSTILE)
		look_at_arrived();
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		wire_require(fi_cq_readerr(end->cq, &error, 0) == 1, "fi_cq_readerr");
		wire_require(error.op_context != &world.last,
			     "what is between the others fails");
		entry.flags = error.flags;
		entry.op_context = error.op_context;
	} else {
		wire_require(ret == 1, "fi_cq_readfrom");
	}
	if (which == VICTIM && entry.flags & FI_RECV)
		take_recv(&entry, ret < 0, from == end->to[HONEST]);
	return true;
}

/* Turns for so many simulated microseconds; the hostile peer's own only if it is in the mood. */
void wire_run(unsigned us, bool with_hostile)
{
	uint64_t end = fake_net_time() + us * 1000ull;

	do {
		for (int i = 0; i < ENDS; i++)
			if (i != HOSTILE || with_hostile)
				while (read_end(i))
					;
		verve_net_pause();
	} while (fake_net_time() < end);
}
