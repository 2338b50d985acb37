/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Keys: exporting regions of a node, and operations of another one with them. */
#include "key_fixture.h"

#include <string.h>

struct verve_mr_keytab keytab;
unsigned char local[MEMORY], memory[MEMORY];
const unsigned both = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE;
struct exported x;
static int context;

static void setup(void)
{
	struct verve_xport_attr attr;
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.limits.msg_size = LONGEST + VERVE_WIRE_ATOMIC_PREFIX;
	config.rc_slow = 0; /* refusals and acknowledgements come in a known order */
	fake_net_start(&config);
	verve_mr_keytab_init(&keytab);
	node_attr(&attr);
	node_open(&a, 0, &attr);
	attr.mr_keytab = &keytab;
	attr.app_keys = true;
	node_open(&b, 1, &attr);
	node_join(&a, &b, NODE_WINDOW);
	memset(memory, 0, sizeof(memory));
}

static void teardown(void)
{
	node_close(&a);
	node_close(&b);
	verve_mr_keytab_fini(&keytab);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(key, .init = setup, .fini = teardown);

void key_export(struct exported *of, uint64_t key, uint32_t count, const size_t *lens, bool virt,
		unsigned access)
{
	unsigned char *at = memory + MEMORY;

	*of = (struct exported){.key = {.key = key, .access = access}};
	for (uint32_t i = 0; i < count; i++) {
		at -= lens[i] + GAP;
		of->len += lens[i];
		cr_assert_eq(verve_mr_region_open(b.dev, at, lens[i], access, &of->regions[i]), 0);
		of->segments[i] = (struct verve_mr_segment){
			(uintptr_t)at, lens[i], of->regions[i]->rkey};
	}
	of->key.segments = (struct verve_mr_segments){of->segments, count, virt};
	cr_assert_eq(verve_mr_keytab_add(&keytab, &of->key), 0);
}

void key_export_one(struct exported *of, uint64_t key, size_t len)
{
	key_export(of, key, 1, &len, false, both);
}

void key_unexport(struct exported *of)
{
	verve_mr_keytab_remove(&keytab, &of->key);
	if (AO_load(&of->key.told))
		verve_key_revoke(b.xport, of->key.key, of->key.generation);
	for (uint32_t i = 0; i < of->key.segments.count; i++)
		verve_mr_region_close(of->regions[i]);
}

unsigned char *key_byte(const struct exported *of, size_t position)
{
	struct verve_mr_segment rest;

	cr_assert(verve_mr_segments_rest(&of->key.segments, position, &rest));
	return (unsigned char *)(uintptr_t)rest.addr;
}

uint64_t key_addr(const struct exported *of, size_t position)
{
	return of->key.segments.virt ? (uintptr_t)key_byte(of, position) : position;
}

int key_start(enum verve_rma_kind kind, void *buf, const struct verve_wire_segment *to,
	      size_t count, uint32_t flags)
{
	struct iovec iov = {buf, 0};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = node_addr(&a, &b), .context = &context,
		.data = 77, .flags = flags | VERVE_OP_NOTIFY, .remote = to, .remote_count = count,
	};

	for (size_t i = 0; i < count; i++)
		iov.iov_len += to[i].len;
	return verve_rma(a.xport, kind, &request);
}

void key_begin(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len)
{
	struct verve_wire_segment to = {addr, len, key};

	cr_assert_eq(key_start(kind, local, &to, 1, 0), 0);
}

void key_finish(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len)
{
	key_begin(kind, key, addr, len);
	nodes_settle();
	expect_comp(&a.tx_queue);
}

void key_expect_refused(enum verve_rma_kind kind, uint64_t key, uint64_t addr, size_t len,
			const char *why)
{
	struct verve_link *link = node_link(&a, &b);
	struct verve_comp_error error;

	key_begin(kind, key, addr, len);
	nodes_settle();
	error = expect_error(&a.tx_queue, FI_EACCES);
	cr_expect_not_null(strstr(error.reason, why), "%s", error.reason);
	cr_expect_eq(error.comp.context, &context);
	cr_expect_eq(node_link(&a, &b), link);
	cr_expect_eq(link->keys.asked, 0);
}
