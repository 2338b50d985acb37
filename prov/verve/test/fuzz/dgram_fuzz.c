/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target: datagrams into connection managers (conn/: hello.c, guard.c, conn.c, cm*.c).
 *
 * Three honest nodes, and a stranger that sends the input's bytes from any address. The stranger
 * hears datagrams to its own address, so it can answer, truly or almost; it may have the key. The
 * honest nodes' engines check the promises of conn/cm.h at each step (conn/cm_node.c). At the end
 * all honest nodes must be able to connect, and nothing may be left over.
 */
#include <stdlib.h>

#include "conn/cm_node.h"
#include "conn/cm_world.h"
#include "conn/guard.h"
#include "conn/hello.h"
#include "input.h"

enum {
	HONEST = 3,
	/* the stranger's own port; it pretends to be a node below HONEST */
	STRANGER = CM_WORLD_PORTS + 1,
	STEPS_MAX = 64,
};

static const uint64_t ms = 1000000;

struct stranger {
	bool insider; /* knows the key */
	struct verve_guard guard;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Signed as the sender would, if the stranger can. */
static void send_hello(struct stranger *stranger, const struct verve_hello *hello, unsigned from,
		       unsigned to)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_addr addr;

	cm_world_addr(to, &addr);
	cm_world_addr(from, &stranger->guard.addr);
	verve_guard_seal(&stranger->guard, hello, buf, &addr);
	cm_world_inject(from, to, buf, sizeof(buf));
}

static void send_bytes(struct input *input, unsigned from, unsigned to)
{
	uint8_t buf[256];
	size_t len = input_u8(input);

	input_bytes(input, buf, len);
	cm_world_inject(from, to, buf, len);
}

/* A sensible HELLO of the stranger's. */
static struct verve_hello make_hello(struct input *input)
{
	return (struct verve_hello){
		.kind = VERVE_HELLO_HELLO,
		.version_min = VERVE_HELLO_VERSION_MAX,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.sender_incarnation = 0x5151515151515100 | input_u8(input),
		.sender_id = 1u + input_u8(input) % 4,
		.serial = 1u + input_u8(input) % 4,
		.nonce = 0x7171717171717100 | input_u8(input),
		.qp = {.qp_num = 17, .psn = 5, .mtu_log2 = 10},
		.window = 8,
		.eager_size = 1024,
	};
}

/* Possible and impossible ones. */
static void change_numbers(struct input *input, struct verve_hello *hello)
{
	uint64_t numbers = input_u64(input);

	hello->qp.qp_num = (uint32_t)numbers;
	if (numbers >> 32 & 0xffff)
		hello->window = (numbers >> 32 & 0xffff) - 1;
	if (numbers >> 48)
		hello->eager_size = (uint32_t)(numbers >> 48) - 1;
}

/* Some of its fields as the input says. */
static void change(struct input *input, struct verve_hello *hello)
{
	uint8_t which = input_u8(input);

	if (which & 1)
		hello->kind = input_u8(input);
	if (which & 2)
		hello->reason = input_u8(input);
	if (which & 4)
		hello->sender_id = input_u8(input);
	if (which & 8)
		hello->recipient_id = input_u8(input);
	if (which & 16)
		hello->echo = input_u64(input);
	if (which & 32)
		hello->features = input_u8(input);
	if (which & 64)
		change_numbers(input, hello);
	if (which & 128)
		hello->version_min = hello->version_max = input_u8(input);
}

/* To the last datagram of a kind that came to the stranger from this node. */
static void answer(struct stranger *stranger, struct input *input, unsigned to)
{
	static const uint8_t kinds[] = {
		VERVE_HELLO_HELLO, VERVE_HELLO_CHALLENGE, VERVE_HELLO_READY};
	struct verve_hello heard, hello = make_hello(input);
	uint8_t buf[256], choice = input_u8(input);
	size_t len = cm_world_recorded(to, STRANGER, kinds[choice % 3], buf);

	if (!len || verve_hello_decode(buf, len, &heard))
		return;
	hello.recipient_incarnation = heard.sender_incarnation;
	hello.recipient_id = heard.sender_id;
	hello.echo = heard.nonce;
	hello.kind = choice & 4 ? VERVE_HELLO_READY : VERVE_HELLO_HELLO;
	if (choice & 8) {
		hello.kind = VERVE_HELLO_BYE;
		hello.reason = 1 + choice / 16 % 5;
	}
	if (heard.kind == VERVE_HELLO_CHALLENGE)
		hello.recipient_id = 0;
	change(input, &hello);
	send_hello(stranger, &hello, STRANGER, to);
}

/* A datagram between honest nodes comes again, or back, or to somebody else, or changed. */
static void repeat(struct input *input, unsigned from, unsigned to)
{
	uint8_t buf[256], choice = input_u8(input);
	size_t len = cm_world_recorded(from, to, 1 + choice % 4, buf), at;

	if (!len)
		return;
	if (choice & 4)
		from = choice & 8 ? to : from;
	if (choice & 16)
		to = (to + 1) % HONEST;
	if (choice & 32) {
		at = input_u8(input) % len;
		buf[at] ^= input_u8(input) | 1;
	}
	if (choice & 64)
		len = input_u8(input) % (len + 1);
	cm_world_inject(from, to, buf, len);
}

static void restart(unsigned n, bool orderly)
{
	nodes_may_break = true;
	node_close(n, orderly);
	node_open(n);
	for (unsigned peer = 0; peer < HONEST; peer++)
		node_connect(n, peer);
}

static void step(struct stranger *stranger, struct input *input)
{
	uint8_t what = input_u8(input), who = input_u8(input);
	unsigned to = who % HONEST, from = who & 128 ? who / 4 % HONEST : STRANGER;
	struct verve_hello hello;
	struct verve_addr addr;

	switch (what % 8) {
	case 0:
		send_bytes(input, from, to);
		break;
	case 1:
		hello = make_hello(input);
		change(input, &hello);
		send_hello(stranger, &hello, from, to);
		break;
	case 2:
	case 3:
		answer(stranger, input, to);
		break;
	case 4:
		repeat(input, who / 4 % HONEST, to);
		break;
	case 5: /* the application asks for the stranger */
		cm_world_addr(STRANGER, &addr);
		verve_cm_connect(nodes[to].cm, &addr);
		break;
	case 6:
		if (who & 128)
			restart(to, who & 64);
		else
			node_connect(to, who / 4 % HONEST);
		break;
	default:
		break;
	}
	nodes_run(cm_world_time + (what / 8) * (what & 128 ? 100 * ms : ms / 4));
}

static bool are_connected(void)
{
	for (unsigned n = 0; n < HONEST; n++)
		for (unsigned peer = 0; peer < HONEST; peer++)
			if (!nodes[n].links[peer].may_send ||
			    !cm_world_partner(nodes[n].links[peer].qp))
				return false;
	return true;
}

/* The strangers' connections are not counted: their engines have let go of them. */
static void expect_peace(void)
{
	for (unsigned n = 0; n < HONEST; n++)
		for (unsigned peer = 0; peer < HONEST; peer++)
			nodes[n].links[peer].wanted = true;
	nodes_may_break = true;
	for (int i = 0; i < 200 && !are_connected(); i++)
		nodes_run(cm_world_time + 1000 * ms);
	for (unsigned n = 0; n < HONEST; n++)
		for (unsigned peer = 0; peer < HONEST; peer++)
			nodes_expect_connected(n, peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, data + size};
	struct stranger stranger = {0};
	struct verve_auth_key key;
	uint8_t mode = input_u8(&input);
	bool keyed = mode & 1;

	stranger.insider = mode & 2;
	verve_auth_key_make(&key, "a secret of all nodes", 21);
	nodes_set_key(keyed ? &key : NULL);
	nodes_start(mode, HONEST);
	if (keyed && stranger.insider)
		stranger.guard.key = key;
	cm_world_config.refuse = mode & 4;
	/* A stranger without the key cannot even disturb nodes that have the key. */
	nodes_may_break = !keyed || stranger.insider;
	for (int i = 0; i < STEPS_MAX && input.at < input.end; i++)
		step(&stranger, &input);
	expect_peace();
	nodes_stop();
	return 0;
}
