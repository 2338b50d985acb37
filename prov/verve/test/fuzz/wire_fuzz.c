/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: packets into a transport (xport/wire.c, and all handlers of packets in xport, msg,
 * rma).
 *
 * Three endpoints on the fake net, opened and connected through libfabric: the victim; a hostile
 * peer, which sends any packets over its connection, and sometimes right ones; and an honest peer.
 * Messages between the victim and the honest peer must arrive as they were sent, completions at the
 * victim in the honest peer's name must be for the honest peer's messages, and no object may be
 * left over.
 *
 * If the first byte says so, the hostile peer also announces the smallest window there is, so that
 * every message to it is offered. It pulls messages that it was offered, and others; it reads the
 * victim's copies with the keys that it was told. It never receives, so it sends FIN only in
 * packets of its own making. It must never get a byte of the victim's messages to the honest peer.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdbool.h>
#include <stdlib.h>

#include "api/ep.h"
#include "base/config.h"
#include "engine/engine.h"
#include "input.h"
#include "msg/msg.h"
#include "msg/recv.h"
#include "msg/unexpected.h"
#include "rma/atomic.h"
#include "wire_world.h"
#include "xport/link.h"
#include "xport/peer.h"
#include "xport/post.h"
#include "xport/replay_state.h"
#include "xport/wire.h"
#include "xport/xport.h"

enum { STEPS_MAX = 48 };

static const uint64_t honest_tag = 0x686f6e657374;

/* bytes of the hostile peer's messages, and of the honest peer's */
static uint8_t out[BUFFER], good[BUFFER];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The steps of the victim and of the honest peer. */

static struct wire_slot *find_slot(void)
{
	for (int i = 0; i < SLOTS; i++)
		if (!world.slots[i].posted)
			return &world.slots[i];
	return NULL;
}

static void post_recv(struct input *input)
{
	struct wire_end *victim = &world.ends[VICTIM];
	struct wire_slot *slot = find_slot();
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

/* Sends from memory that is freed when the call returns. */
static void send_at_once(size_t len, uint64_t flags, int whom, uint8_t fill)
{
	struct wire_end *victim = &world.ends[VICTIM];
	uint8_t *gone = malloc(len);
	struct iovec iov = {gone, len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = victim->to[whom], .context = out};

	wire_require(gone, "memory");
	memset(gone, fill, len);
	fi_sendmsg(victim->ep, &msg, FI_INJECT | flags);
	free(gone);
}

/* Starts an operation of the victim, which a hostile packet can then answer. */
static void ask_hostile(struct input *input)
{
	struct wire_end *victim = &world.ends[VICTIM];
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
		send_at_once(how & 8 ? 500 : how & 16 ? 400 : 65,
			     how & 32 ? FI_DELIVERY_COMPLETE : 0, HOSTILE, EVIL);
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
	struct wire_end *honest = &world.ends[HONEST];
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
	struct wire_end *victim = &world.ends[VICTIM], *honest = &world.ends[HONEST];
	uint8_t how = input_u8(input);

	if (how & 1)
		fi_recv(honest->ep, world.sink, BUFFER, NULL, FI_ADDR_UNSPEC, NULL);
	if (how & 2)
		send_at_once(how & 4 ? 500 : 100, how & 8 ? FI_DELIVERY_COMPLETE : 0, HONEST, FILL);
	else
		fi_send(victim->ep, good, how & 4 ? BUFFER : how & 8 ? 300 : 65, NULL,
			victim->to[HONEST], NULL);
}

/* The steps of the hostile peer. */

static struct verve_link *link_to(struct verve_xport *xport, struct wire_end *end, int whom)
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
	/* of the exact size, so that a sanitizer sees one byte too far */
	uint8_t *exact = malloc(len ? len : 1);

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
		/* Only then it makes sense; sometimes the rest is to be offered later. */
		if (packet->type == VERVE_WIRE_RTS)
			packet->len += segment->len + (how & 16 ? input_u8(input) * 8ul : 0);
	}
}

/* A batch's messages; one of them may lie about its length or its type. Returns their bytes. */
static size_t put_records(struct input *input, uint8_t *at)
{
	uint8_t how = input_u8(input), *begin = at;

	for (unsigned i = 0; i < how % 4u; i++) {
		size_t len = VERVE_WIRE_HEADER + input_u8(input) % 64u;
		struct verve_wire_packet packet = {
			.flags = how & 8 ? input_u8(input) & VERVE_WIRE_FLAGS : VERVE_WIRE_TAGGED,
			.dest = how & 16 ? input_u8(input) : len,
			.tag = how / 32,
		};

		verve_wire_encode_eager(&packet, at);
		if (how & 4)
			*at = input_u8(input); /* the type */
		at += len;
	}
	return at - begin;
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
	if (packet.type == VERVE_WIRE_BATCH)
		len += put_records(input, buf + len);
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

/* Sends PULL or FIN, for a message that was offered or sent whole, or for any id. */
static void answer(struct input *input)
{
	uint8_t how = input_u8(input), buf[VERVE_WIRE_RTS_MAX];
	struct verve_wire_packet packet = {
		.type = how & 1 ? VERVE_WIRE_PULL : VERVE_WIRE_FIN,
		.dest = conn_of(VICTIM, HOSTILE),
	};
	const struct verve_wire_packet *offer = find_offer(wire_end_lock(HOSTILE), how / 64);

	packet.op_id = choose_op(input);
	packet.len = how & 2 ? input_u64(input) : input_u8(input) * 4u;
	packet.status = how & 4 ? (uint32_t)input_u64(input) : 0;
	if (offer && how & 8) {
		packet.op_id = offer->op_id;
		if (how & 16)
			packet.len = offer->len;
	}
	wire_end_unlock(HOSTILE);
	send_raw(buf, verve_wire_encode(&packet, buf));
}

/*
 * Reads memory of the victim around an offered message, or around a buffer, with a key from the
 * offer.
 */
static void steal(struct input *input)
{
	uint8_t how = input_u8(input);
	struct verve_xport *xport = wire_end_lock(VICTIM);
	uint64_t addr = xport->tx_slabs.free ? (uintptr_t)xport->tx_slabs.free->data : 0, key = 1;
	const struct verve_wire_packet *offer;
	size_t len = how & 2 ? LOOT : 512;

	wire_end_unlock(VICTIM);
	offer = find_offer(wire_end_lock(HOSTILE), how / 64);
	if (offer && offer->segment_count) {
		key = offer->segment[0].key;
		if (how & 1)
			addr = offer->segment[0].addr;
	}
	wire_end_unlock(HOSTILE);
	addr += (int64_t)(int8_t)input_u8(input) * 64;
	fi_read(world.ends[HOSTILE].ep, world.loot, len, fi_mr_desc(world.loot_mr),
		world.ends[HOSTILE].to[VICTIM], addr, key, NULL);
	wire_run(200, true);
	wire_require_no_loot(world.loot, LOOT);
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

/* The victim never keeps more than an honest peer could make it keep. */
static void expect_bounds(void)
{
	struct verve_engine *engine = verve_ep_from_fid(world.ends[VICTIM].ep)->engine;
	struct verve_xport *xport = verve_engine_lock(engine);
	struct verve_link *link;

	TAILQ_FOREACH(link, &xport->links, all) {
		wire_require(link->held + link->owed <= xport->attr.window,
			     "a peer ignores its window");
		wire_require(link->weight_kept <
				     (uint64_t)(xport->attr.window + 1) * VERVE_WIRE_WEIGHT,
			     "a peer has more kept than its window");
		wire_require(link->replies <= VERVE_ATOMIC_UNANSWERED,
			     "a peer ignores its answers");
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
	struct wire_end *hostile = &world.ends[HOSTILE];
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
	wire_run(what & 32 ? 2000 : 50, what & 64);
	expect_bounds();
}

/* Everybody has a connection with the victim. */
static void warm_up(void)
{
	fi_inject(world.ends[HOSTILE].ep, out, 1, world.ends[HOSTILE].to[VICTIM]);
	fi_inject(world.ends[HONEST].ep, good, 1, world.ends[HONEST].to[VICTIM]);
	wire_run(2000, true);
	wire_require(conn_of(VICTIM, HOSTILE) && conn_of(VICTIM, HONEST), "no connection");
}

static void expect_honest(void)
{
	struct wire_end *victim = &world.ends[VICTIM], *honest = &world.ends[HONEST];
	ssize_t ret;

	wire_require(conn_of(VICTIM, HONEST), "the honest peer's connection is gone");
	world.last.posted = true;
	wire_require(!fi_trecv(victim->ep, world.last.buf, BUFFER, NULL, victim->to[HONEST],
			       honest_tag, 0, &world.last),
		     "fi_trecv");
	ret = fi_tsend(honest->ep, good, BUFFER, NULL, honest->to[VICTIM], honest_tag, &world.last);
	wire_require(!ret, "fi_tsend");
	for (int i = 0; i < 1000 && !world.got_honest; i++)
		wire_run(100, true);
	wire_require(world.got_honest, "the honest peer is not heard");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	uint8_t how;

	memset(out, EVIL, sizeof(out));
	memset(good, FILL, sizeof(good));
	how = input_u8(&input);
	wire_world_open(how & 1, how & 2);
	warm_up();
	for (int i = 0; i < STEPS_MAX && input.at < input.end; i++)
		step(&input);
	expect_honest();
	wire_world_close();
	return 0;
}
