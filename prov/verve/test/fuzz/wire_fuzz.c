/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: packets into a transport (xport/wire.c, and all handlers of packets in xport, msg, rma).
 *
 * Three endpoints on the fake net, opened and connected through libfabric: the victim; a hostile
 * peer, which sends any packets over its connection, and sometimes does what it should; and an
 * honest peer. Whatever the hostile one sends, messages between the other two arrive as they were sent, what
 * completes at the victim in the honest one's name is the honest one's, and nothing is left over.
 *
 * The hostile one also announces the smallest window there is, if the first byte says so, so that all that it is sent is offered;
 * pulls what it was not offered, or was; reads the victim's copies with the keys that it was told; and never says FIN
 * but in packets of its making, because it receives nothing. Of what the victim sends to the honest one it gets nothing.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/ep.h"
#include "base/config.h"
#include "engine/engine.h"
#include "input.h"
#include "net/sys.h"
#include "msg/msg.h"
#include "msg/unexpected.h"
#include "rma/atomic.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "msg/recv.h"
#include "xport/suspended.h"
#include "xport/wire.h"
#include "xport/xport.h"
#include "support/fake_net.h"

enum { VICTIM, HOSTILE, HONEST, ENDS };
enum {
	STEPS_MAX = 48,
	REGION = 4096,	 /* bytes that peers may access */
	BUFFER = 3000,	 /* of a message */
	LOOT = 16384,
	SLOTS = 16,	 /* receives of the victim at a time */
	FILL = 0x50,	 /* every byte that the honest peer sends */
	EVIL = 0xe7,	 /* and the hostile one */
};

static const uint64_t honest_tag = 0x686f6e657374;

struct end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to[ENDS];
};

/* A receive of the victim. */
struct slot {
	bool posted, multi;
	uint8_t buf[BUFFER];
};

struct world {
	struct fi_info *list, *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_mr *mr;
	uint8_t *region;
	struct end ends[ENDS];
	struct slot slots[SLOTS], last;
	uint8_t sink[BUFFER]; /* of the honest peer */
	bool got_honest; /* the victim has the last message of the honest peer */
	uint8_t fetched[BUFFER];
	struct fid_mr *loot_mr; /* of loot */
	uint8_t *loot;		/* LOOT bytes: what the hostile peer reads of the victim's memory */
};

struct fi_provider *fi_prov_ini(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world world;
static uint8_t out[BUFFER], good[BUFFER];

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "wire_fuzz: %s\n", what);
	abort();
}

/* Opening and closing. */

static void open_end(struct end *end)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	require(!fi_cq_open(world.domain, &cq_attr, &end->cq, NULL), "fi_cq_open");
	require(!fi_av_open(world.domain, &av_attr, &end->av, NULL), "fi_av_open");
	require(!fi_endpoint(world.domain, world.info, &end->ep, NULL), "fi_endpoint");
	require(!fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind");
	require(!fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	require(!fi_enable(end->ep), "fi_enable");
}

static void close_end(struct end *end)
{
	require(!fi_close(&end->ep->fid), "fi_close of an endpoint");
	require(!fi_close(&end->av->fid), "fi_close of an address vector");
	require(!fi_close(&end->cq->fid), "fi_close of a queue");
}

static void introduce(void)
{
	for (int i = 0; i < ENDS; i++) {
		for (int j = 0; j < ENDS; j++) {
			struct sockaddr_storage name;
			size_t len = sizeof(name);

			require(!fi_getname(&world.ends[j].ep->fid, &name, &len), "fi_getname");
			require(fi_av_insert(world.ends[i].av, &name, 1, &world.ends[i].to[j], 0,
					     NULL) == 1, "fi_av_insert");
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
	/* Everything: without hints, completions do not name the sender, and nobody hears of RMA. */
	hints = fi_allocinfo();
	require(hints, "fi_allocinfo");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV |
		      FI_SOURCE | FI_RMA_EVENT;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	require(!prov->getinfo(version, NULL, NULL, 0, hints, &world.list), "getinfo");
	fi_freeinfo(hints);
	for (info = world.list; info->addr_format != FI_SOCKADDR_IN; info = info->next)
		;
	world.info = info;
	if (app_keys)
		info->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	info->fabric_attr->api_version = version;
	require(!prov->fabric(info->fabric_attr, &world.fabric, NULL), "fabric");
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

static void open_world(bool app_keys, bool least_window)
{
	struct fake_net_config config;

	memset(&world, 0, sizeof(world));
	fake_net_config_default(&config);
	config.seed = 1;
	fake_net_start(&config);
	verve_config.eager_size = 512;
	verve_config.inline_size = 64;
	verve_config.rx_buffers = 16;
	verve_config.tx_size = 256; /* more than all steps can start */
	verve_config.connect_timeout = 200;
	verve_config.transport_timeout = 50;
	open_info(app_keys);
	require(!fi_domain(world.fabric, world.info, &world.domain, NULL), "fi_domain");
	world.region = calloc(1, REGION);
	require(world.region, "memory");
	require(!fi_mr_reg(world.domain, world.region, REGION,
			   FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE, 0, 77, 0,
			   &world.mr, NULL), "fi_mr_reg");
	world.loot = calloc(1, LOOT);
	require(world.loot, "memory");
	require(!fi_mr_reg(world.domain, world.loot, LOOT, FI_READ, 0, 78, 0, &world.loot_mr, NULL),
		"fi_mr_reg");
	open_ends(least_window);
}

static void close_world(void)
{
	for (int i = 0; i < ENDS; i++)
		close_end(&world.ends[i]);
	require(!fi_close(&world.mr->fid), "fi_close of a region");
	require(!fi_close(&world.loot_mr->fid), "fi_close of a region");
	require(!fi_close(&world.domain->fid), "fi_close of a domain");
	require(!fi_close(&world.fabric->fid), "fi_close of a fabric");
	fi_freeinfo(world.list);
	free(world.region);
	free(world.loot);
	require(!fake_net_leaks(NULL, 0), "objects of the device are left");
}

/* Completions. */

/* One of the victim's receives has ended; error: not well. */
static void take_recv(const struct fi_cq_tagged_entry *entry, bool error, bool from_honest)
{
	struct slot *slot = entry->op_context;
	const uint8_t *at = slot->multi ? entry->buf : slot->buf;

	require(slot->posted, "a receive ends twice");
	if (!slot->multi || entry->flags & FI_MULTI_RECV)
		slot->posted = false;
	if (error || !from_honest)
		return;
	for (size_t i = 0; i < entry->len; i++)
		require(at[i] == FILL, "the hostile peer speaks for the honest one");
	world.got_honest |= slot == &world.last;
}

static struct verve_xport *lock_end(int which)
{
	return verve_engine_lock(verve_ep_from_fid(world.ends[which].ep)->engine);
}

static void unlock_end(int which)
{
	verve_engine_unlock(verve_ep_from_fid(world.ends[which].ep)->engine);
}

static void require_no_loot(const uint8_t *bytes, size_t len)
{
	size_t run = 0;

	for (size_t i = 0; i < len; i++) {
		run = bytes[i] == FILL ? run + 1 : 0;
		require(run < 16, "the hostile peer gets what the honest one is sent");
	}
}

/* The packets that its last turn has taken. */
static void look_at_arrived(void)
{
	struct verve_xport *xport = lock_end(HOSTILE);

	for (int i = 0; i < xport->batch.count; i++) {
		const struct verve_net_wc *wc = &xport->batch.wc[i];

		if (!wc->status)
			require_no_loot(((struct verve_slab *)(uintptr_t)wc->wr_id)->data, wc->byte_len);
	}
	unlock_end(HOSTILE);
}

/* Whether there was one. */
static bool read_end(int which)
{
	struct end *end = &world.ends[which];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	fi_addr_t from = FI_ADDR_NOTAVAIL;
	ssize_t ret = fi_cq_readfrom(end->cq, &entry, 1, &from);

	if (which == HOSTILE)
		look_at_arrived();
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		require(fi_cq_readerr(end->cq, &error, 0) == 1, "fi_cq_readerr");
		require(error.op_context != &world.last && error.op_context != good,
			"what is between the others fails");
		entry.flags = error.flags;
		entry.op_context = error.op_context;
	} else {
		require(ret == 1, "fi_cq_readfrom");
	}
	if (which == VICTIM && entry.flags & FI_RECV)
		take_recv(&entry, ret < 0, from == end->to[HONEST]);
	return true;
}

/* Turns for so many simulated microseconds; the hostile peer's own only if it is in the mood. */
static void run(unsigned us, bool with_hostile)
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

/* What the honest do. */

static struct slot *find_slot(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (!world.slots[i].posted)
			return &world.slots[i];
	return NULL;
}

static void post_recv(struct input *input)
{
	struct end *victim = &world.ends[VICTIM];
	struct slot *slot = find_slot();
	uint8_t how = input_u8(input);
	size_t len = how & 1 ? BUFFER : 100;
	fi_addr_t from = how & 2 ? victim->to[HOSTILE] : FI_ADDR_UNSPEC;
	struct iovec iov;
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = from, .context = slot};
	ssize_t ret;

	if (!slot)
		return;
	iov = (struct iovec){slot->buf, len};
	slot->multi = !(how & 4) && how & 16;
	slot->posted = true; /* it may end at once */
	if (how & 4)
		ret = fi_trecv(victim->ep, slot->buf, len, NULL, from, how / 32, how & 8 ? 7 : 0,
			       slot);
	else if (slot->multi)
		ret = fi_recvmsg(victim->ep, &msg, FI_MULTI_RECV);
	else
		ret = fi_recv(victim->ep, slot->buf, len, NULL, from, slot);
	slot->posted = !ret;
}

/* From memory that is gone when the call returns, or when the message ended that was sent before. */
static void send_at_once(size_t len, uint64_t flags, int whom, uint8_t fill)
{
	struct end *victim = &world.ends[VICTIM];
	uint8_t *gone = malloc(len);
	struct iovec iov = {gone, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = victim->to[whom], .context = out};

	require(gone, "memory");
	memset(gone, fill, len);
	fi_sendmsg(victim->ep, &msg, FI_INJECT | flags);
	free(gone);
}

/* So that there are operations that a hostile packet can be the answer to. */
static void ask_hostile(struct input *input)
{
	struct end *victim = &world.ends[VICTIM];
	uint8_t how = input_u8(input);
	uint64_t addr = (uintptr_t)world.region + input_u8(input) * 8u, key = input_u8(input) + 70u;
	size_t len = how & 8 ? BUFFER : how & 16 ? 400 : 8;

	switch (how % 8) {
	case 0:
	case 1:
		fi_send(victim->ep, out, len, NULL, victim->to[HOSTILE], out);
		break;
	case 2:
		fi_tsend(victim->ep, out, len, NULL, victim->to[HOSTILE], how, out);
		break;
	case 3:
		fi_write(victim->ep, out, len, NULL, victim->to[HOSTILE], addr, key, out);
		break;
	case 4:
		fi_read(victim->ep, world.fetched, len, NULL, victim->to[HOSTILE], addr, key, out);
		break;
	case 7:
		send_at_once(how & 8 ? 500 : how & 16 ? 400 : 65, how & 32 ? FI_DELIVERY_COMPLETE : 0,
			     HOSTILE, EVIL);
		break;
	case 5:
		fi_fetch_atomic(victim->ep, out, 1, NULL, world.fetched, NULL,
				victim->to[HOSTILE], addr, key, FI_UINT64, FI_SUM, out);
		break;
	default:
		fi_atomic(victim->ep, out, len / 8 < 40 ? len / 8 : 40, NULL, victim->to[HOSTILE],
			  addr, key, FI_UINT64, FI_SUM, out);
	}
}

static void send_honest(struct input *input)
{
	struct end *honest = &world.ends[HONEST];
	uint8_t how = input_u8(input);
	size_t len = how & 1 ? BUFFER : how & 2 ? 300 : 20;

	if (how & 4)
		fi_tsend(honest->ep, good, len, NULL, honest->to[VICTIM], how / 32, NULL);
	else
		fi_send(honest->ep, good, len, NULL, honest->to[VICTIM], NULL);
}

/* The honest peer takes it, or not yet; it is in the victim's memory for a while. */
static void send_to_honest(struct input *input)
{
	struct end *victim = &world.ends[VICTIM], *honest = &world.ends[HONEST];
	uint8_t how = input_u8(input);

	if (how & 1)
		fi_recv(honest->ep, world.sink, BUFFER, NULL, FI_ADDR_UNSPEC, NULL);
	if (how & 2)
		send_at_once(how & 4 ? 500 : 100, how & 8 ? FI_DELIVERY_COMPLETE : 0, HONEST, FILL);
	else
		fi_send(victim->ep, good, how & 4 ? BUFFER : how & 8 ? 300 : 65, NULL,
			victim->to[HONEST], NULL);
}

/* What the hostile does. */

static struct verve_link *link_to(struct verve_xport *xport, struct end *end, int whom)
{
	struct verve_peer *peer;

	if (verve_peer_find(xport, end->to[whom], &peer))
		return NULL;
	return peer->link;
}

static uint32_t conn_of(int of, int with)
{
	struct verve_engine *engine = verve_ep_from_fid(world.ends[of].ep)->engine;
	struct verve_link *link = link_to(verve_engine_lock(engine), &world.ends[of], with);
	uint32_t id = link ? link->conn_id : 0;

	verve_engine_unlock(engine);
	return id;
}

static void send_raw(const void *bytes, size_t len)
{
	struct verve_engine *engine = verve_ep_from_fid(world.ends[HOSTILE].ep)->engine;
	struct verve_xport *xport = verve_engine_lock(engine);
	struct verve_link *link = link_to(xport, &world.ends[HOSTILE], VICTIM);
	struct verve_wire_packet packet;
	struct verve_outgoing out;
	uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees one byte too far */

	memcpy(exact, bytes, len);
	verve_wire_decode(exact, len, &packet);
	free(exact);
	if (link && link->qp && !verve_replay_is_stopped(link) &&
	    verve_link_has_room(xport, link, false) &&
	    verve_link_reserve(xport, link, len, &out)) {
		memcpy(out.data, bytes, len);
		verve_link_post_packet(xport, link, &out, len, false, NULL);
	}
	verve_engine_unlock(engine);
}

static uint32_t choose_conn(struct input *input)
{
	uint8_t which = input_u8(input);

	switch (which % 8) {
	case 0:
		return conn_of(VICTIM, HONEST);
	case 1:
		return (uint32_t)input_u64(input);
	default:
		return conn_of(VICTIM, HOSTILE);
	}
}

/* Ids of operations are small: the index, and how often it was used. */
static uint32_t choose_op(struct input *input)
{
	uint8_t byte = input_u8(input);

	return (byte & 15) | (uint32_t)(byte >> 4) << VERVE_IDTAB_INDEX_BITS;
}

static void choose_segments(struct input *input, struct verve_wire_packet *packet)
{
	packet->segment_count = input_u8(input) % (VERVE_WIRE_SEGMENTS + 1);
	for (uint32_t i = 0; i < packet->segment_count; i++) {
		struct verve_wire_segment *segment = &packet->segment[i];
		uint8_t how = input_u8(input);

		segment->addr = (uintptr_t)world.region + (how & 1 ? 0 : input_u8(input) * 16ul);
		segment->len = how & 2 ? input_u64(input) : input_u8(input) * 8ul;
		segment->key = how & 4 ? input_u8(input) + 70u : fi_mr_key(world.mr);
		if (how & 8)
			segment->addr = input_u64(input);
		/* Only then it makes sense. */
		if (packet->type == VERVE_WIRE_RTS)
			packet->len += segment->len;
	}
}

static void send_packet(struct input *input)
{
	struct verve_wire_packet packet = {.type = input_u8(input) % (VERVE_WIRE_TYPES + 1)};
	uint8_t buf[VERVE_WIRE_RTS_MAX + 256 * 4], how;
	size_t len, more;

	packet.flags = input_u8(input) & VERVE_WIRE_FLAGS;
	packet.dest = choose_conn(input);
	packet.op_id = choose_op(input);
	how = input_u8(input);
	packet.credits = how & 1 ? (uint16_t)input_u64(input) : how & 2;
	packet.tag = how & 4 ? input_u8(input) + 70u : how & 8 ? input_u64(input) : how / 32;
	packet.status = how & 16 ? input_u8(input) : 0;
	packet.amo_op = input_u8(input) % 32;
	packet.amo_type = input_u8(input) % 32;
	packet.key = (struct verve_wire_key){
		.generation = input_u8(input), .access = input_u8(input) % 16,
		.total = input_u8(input), .first = input_u8(input)};
	choose_segments(input, &packet);
	packet.data = 1;
	memset(buf, EVIL, sizeof(buf));
	len = verve_wire_encode(&packet, buf);
	more = input_u8(input) * 4u;
	if (packet.type != VERVE_WIRE_EAGER && packet.type != VERVE_WIRE_ATOMIC &&
	    packet.type != VERVE_WIRE_ATOMIC_REPLY)
		more = more > 1000 ? 1 : 0;
	len += more;
	send_raw(buf, len < verve_config.eager_size ? len : verve_config.eager_size);
}

/* An offer that waits at the hostile end: its nth, or the last. NULL: there is none. */
static const struct verve_wire_packet *find_offer(struct verve_xport *xport, unsigned nth)
{
	const struct verve_wire_packet *found = NULL;
	struct verve_match_msg *msg;

	TAILQ_FOREACH(msg, &verve_msg_of(xport)->match[0].unexpected, order) {
		const struct verve_wire_packet *packet = &verve_unexpected_of(msg)->packet;

		if (packet->type == VERVE_WIRE_RTS || packet->flags & VERVE_WIRE_ACK)
			found = packet;
		if (found && !nth--)
			break;
	}
	return found;
}

/* PULL, or FIN, for what it was offered, for what it was sent whole, or for any id. */
static void answer(struct input *input)
{
	uint8_t how = input_u8(input), buf[VERVE_WIRE_RTS_MAX];
	struct verve_wire_packet packet = {
		.type = how & 1 ? VERVE_WIRE_PULL : VERVE_WIRE_FIN,
		.dest = conn_of(VICTIM, HOSTILE),
	};
	const struct verve_wire_packet *offer = find_offer(lock_end(HOSTILE), how / 64);

	packet.op_id = choose_op(input);
	packet.len = how & 2 ? input_u64(input) : input_u8(input) * 4u;
	packet.status = how & 4 ? (uint32_t)input_u64(input) : 0;
	if (offer && how & 8) {
		packet.op_id = offer->op_id;
		if (how & 16)
			packet.len = offer->len;
	}
	unlock_end(HOSTILE);
	send_raw(buf, verve_wire_encode(&packet, buf));
}

/* Reads memory of the victim's around what it was offered, or any of its buffers, with a key that it was told. */
static void steal(struct input *input)
{
	uint8_t how = input_u8(input);
	struct verve_xport *xport = lock_end(VICTIM);
	uint64_t addr = xport->tx_slabs.free ? (uintptr_t)xport->tx_slabs.free->data : 0, key = 1;
	const struct verve_wire_packet *offer;
	size_t len = how & 2 ? LOOT : 512;

	unlock_end(VICTIM);
	offer = find_offer(lock_end(HOSTILE), how / 64);
	if (offer && offer->segment_count) {
		key = offer->segment[0].key;
		if (how & 1)
			addr = offer->segment[0].addr;
	}
	unlock_end(HOSTILE);
	addr += (int64_t)(int8_t)input_u8(input) * 64;
	fi_read(world.ends[HOSTILE].ep, world.loot, len, fi_mr_desc(world.loot_mr),
		world.ends[HOSTILE].to[VICTIM], addr, key, NULL);
	run(200, true);
	require_no_loot(world.loot, LOOT);
}

/* Eager messages and atomics as if there were no window. */
static void send_flood(struct input *input)
{
	uint8_t buf[VERVE_WIRE_HEADER + 100], how = input_u8(input);
	struct verve_wire_packet packet = {
		.type = how & 1 ? VERVE_WIRE_ATOMIC : VERVE_WIRE_EAGER,
		.flags = how & 1 ? VERVE_WIRE_FETCH : 0,
		.tag = how & 2 ? honest_tag : 0,
		.dest = conn_of(VICTIM, HOSTILE),
	};

	memset(buf, EVIL, sizeof(buf));
	verve_wire_encode(&packet, buf);
	for (int i = how / 4; i >= 0; i--)
		send_raw(buf, sizeof(buf));
}

/* Whatever comes, no more is kept than an honest peer could make the victim keep. */
static void expect_bounds(void)
{
	struct verve_engine *engine = verve_ep_from_fid(world.ends[VICTIM].ep)->engine;
	struct verve_xport *xport = verve_engine_lock(engine);
	struct verve_link *link;

	TAILQ_FOREACH(link, &xport->links, all) {
		require(link->held + link->owed <= xport->attr.window, "a peer ignores its window");
		require(link->replies <= VERVE_ATOMIC_UNANSWERED, "a peer ignores its answers");
	}
	verve_engine_unlock(engine);
}

static void send_bytes(struct input *input)
{
	uint8_t buf[256];
	size_t len = input_u8(input);

	input_bytes(input, buf, len);
	send_raw(buf, len);
}

static void step(struct input *input)
{
	struct end *hostile = &world.ends[HOSTILE];
	uint8_t what = input_u8(input);

	switch (what % 8) {
	case 0:
		send_bytes(input);
		break;
	case 1:
	case 2:
	case 3:
		send_packet(input);
		break;
	case 4:
		post_recv(input);
		break;
	case 5:
		ask_hostile(input);
		break;
	case 6:
		send_honest(input);
		break;
	default:
		if (what & 8)
			answer(input);
		else if (what & 16 && what & 128)
			steal(input);
		else if (what & 16)
			send_to_honest(input);
		else if (what & 128)
			send_flood(input);
		else /* makes a new connection, too */
			fi_send(hostile->ep, out, 30, NULL, hostile->to[VICTIM], NULL);
	}
	run(what & 32 ? 2000 : 50, what & 64);
	expect_bounds();
}

/* Everybody has a connection with the victim. */
static void warm_up(void)
{
	fi_inject(world.ends[HOSTILE].ep, out, 1, world.ends[HOSTILE].to[VICTIM]);
	fi_inject(world.ends[HONEST].ep, good, 1, world.ends[HONEST].to[VICTIM]);
	run(2000, true);
	require(conn_of(VICTIM, HOSTILE) && conn_of(VICTIM, HONEST), "no connection");
}

static void expect_honest(void)
{
	struct end *victim = &world.ends[VICTIM], *honest = &world.ends[HONEST];
	ssize_t ret;

	require(conn_of(VICTIM, HONEST), "the honest peer's connection is gone");
	world.last.posted = true;
	require(!fi_trecv(victim->ep, world.last.buf, BUFFER, NULL, victim->to[HONEST], honest_tag, 0,
			  &world.last), "fi_trecv");
	ret = fi_tsend(honest->ep, good, BUFFER, NULL, honest->to[VICTIM], honest_tag, good);
	require(!ret, "fi_tsend");
	for (int i = 0; i < 1000 && !world.got_honest; i++)
		run(100, true);
	require(world.got_honest, "the honest peer is not heard");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	uint8_t how;

	memset(out, EVIL, sizeof(out));
	memset(good, FILL, sizeof(good));
	how = input_u8(&input);
	open_world(how & 1, how & 2);
	warm_up();
	for (int i = 0; i < STEPS_MAX && input.at < input.end; i++)
		step(&input);
	expect_honest();
	close_world();
	return 0;
}
