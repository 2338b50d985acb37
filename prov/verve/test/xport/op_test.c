/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operations: the queue's size, ids, descriptors, and the one completion of each kind. */
#include "xport/op.h"

#include <string.h>

#include "../proto/fixture.h"
#include "../support/child.h"
#include "mr/region.h"
#include "msg/recv.h"
#include "msg/recv_op.h"
#include "msg/send.h"
#include "rma/rma.h"
#include "rma/rma_op.h"
#include "xport/op_pool.h"

static struct node a;
static char buffer[4096];
static int context;

static void setup(void)
{
	node_open(&a, 0, NULL);
}

static void teardown(void)
{
	node_close(&a);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(op, .init = setup, .fini = teardown);

/* A receive that is about to take a message. */
static struct verve_op *recv_begun(uint32_t flags)
{
	struct verve_recv_op *recv = verve_recv_alloc(a.xport, flags);

	cr_assert_not_null(recv);
	verve_recv_begin(recv, 0);
	return &recv->op;
}

static struct verve_op *alloc(const struct verve_op_class *cls, uint32_t flags)
{
	struct verve_op *op = cls == &verve_recv_class ? recv_begun(flags) :
							 verve_op_alloc(a.xport, cls, flags);

	cr_assert_not_null(op);
	op->context = &context;
	return op;
}

Test(op, is_new_and_zeroed)
{
	struct verve_op *op = alloc(&verve_read_class, 0), *again;

	memset((char *)op + sizeof(*op), 0xff, op->cls->size - sizeof(*op));
	verve_op_memory(op)->slab = NULL;
	verve_op_memory(op)->owned = 0;
	op->len = 77;
	verve_op_free(a.xport, op);
	again = alloc(&verve_write_class, VERVE_OP_NOTIFY);
	cr_expect_eq(again->cls, &verve_write_class);
	cr_expect_eq(again->state, VERVE_OP_NEW);
	cr_expect_eq(again->flags, VERVE_OP_NOTIFY);
	cr_expect_eq(again->len, 0);
	cr_expect_eq(verve_rma_op_of(again)->data, 0);
	cr_expect_eq(verve_rma_op_of(again)->posted, false);
	cr_expect_eq(verve_op_memory(again)->iov_count, 0);
	cr_expect_eq(again->id, 0);
	verve_op_free(a.xport, again);
}

Test(op, only_transmits_count_against_the_queue)
{
	struct verve_op *tx[NODE_TX_SIZE], *recv;

	for (int i = 0; i < NODE_TX_SIZE; i++)
		tx[i] = alloc(&verve_send_class, VERVE_OP_TX);
	cr_expect_null(verve_op_alloc(a.xport, &verve_send_class, VERVE_OP_TX));
	recv = alloc(&verve_recv_class, 0);
	verve_op_free(a.xport, recv);
	cr_expect_null(verve_op_alloc(a.xport, &verve_send_class, VERVE_OP_TX));
	verve_op_free(a.xport, tx[0]);
	tx[0] = alloc(&verve_send_class, VERVE_OP_TX);
	for (int i = 0; i < NODE_TX_SIZE; i++)
		verve_op_free(a.xport, tx[i]);
	cr_expect_eq(a.xport->tx_used, 0);
}

Test(op, fill_copies_the_request)
{
	struct iovec iov[VERVE_IOV_LIMIT] = {{buffer, 1}, {buffer + 9, 0}, {buffer, 20},
		{buffer, 300}};
	struct verve_request request = {
		.iov = iov, .iov_count = VERVE_IOV_LIMIT, .context = buffer};
	struct verve_op *op = alloc(&verve_send_class, 0);

	verve_op_fill(op, &request);
	cr_expect_eq(op->len, 321);
	cr_expect_eq(verve_op_memory(op)->iov_count, 4);
	cr_expect_eq(memcmp(verve_op_memory(op)->iov, iov, sizeof(iov)), 0);
	cr_expect_eq(op->context, buffer);
	for (int i = 0; i < VERVE_IOV_LIMIT; i++)
		cr_expect_null(verve_op_memory(op)->region[i]);
	verve_op_free(a.xport, op);
}

Test(op, name_ends_with_the_operation)
{
	struct verve_op *op = alloc(&verve_send_class, 0);
	uint32_t id;

	cr_assert_eq(verve_op_name(a.xport, op), 0);
	id = op->id;
	cr_expect_neq(id, 0);
	cr_expect_eq(verve_idtab_get(&a.xport->op_ids, id), op);
	verve_op_free(a.xport, op);
	cr_expect_null(verve_idtab_get(&a.xport->op_ids, id));
}

Test(op, registers_each_segment_that_has_bytes)
{
	struct iovec iov[VERVE_IOV_LIMIT] = {{buffer, 1}, {buffer, 0}, {buffer, 2}, {buffer, 3}};
	struct verve_request request = {.iov = iov, .iov_count = VERVE_IOV_LIMIT};
	struct verve_op *op = alloc(&verve_send_class, 0);

	verve_op_fill(op, &request);
	cr_assert_eq(verve_memory_register(a.xport, op, VERVE_NET_REMOTE_READ), 0);
	cr_expect_eq(verve_op_memory(op)->owned, 0xd);
	cr_expect_null(verve_op_memory(op)->region[1]);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 3);
	cr_assert_eq(verve_memory_register(a.xport, op, VERVE_NET_REMOTE_READ), 0);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 3); /* registered once, not again */
	verve_op_free(a.xport, op);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
}

/*
 * True if a descriptor for [start, start + len) with this access can be used to write [1000, 2000).
 */
static bool serves(size_t start, size_t len, unsigned access)
{
	struct iovec iov = {buffer + 1000, 1000};
	struct verve_mr_region *region;
	void *desc[1];
	struct verve_request request = {.iov = &iov, .iov_count = 1, .desc = desc};
	struct verve_op *op = alloc(&verve_recv_class, 0);
	bool used;

	cr_assert_eq(verve_mr_region_open(a.dev, buffer + start, len, access, &region), 0);
	desc[0] = region;
	verve_op_fill(op, &request);
	cr_assert_eq(verve_memory_register(a.xport, op, VERVE_NET_LOCAL_WRITE), 0);
	used = verve_op_memory(op)->region[0] == region;
	cr_expect_eq(verve_op_memory(op)->owned, used ? 0 : 1);
	verve_op_free(a.xport, op);
	verve_mr_region_close(region);
	return used;
}

Test(op, descriptor_serves_if_it_covers_memory_and_access)
{
	cr_expect(serves(1000, 1000, VERVE_NET_LOCAL_WRITE));
	cr_expect(serves(0, 4096, VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ));
	cr_expect(serves(1000, 1000, VERVE_NET_REMOTE_WRITE)); /* implies LOCAL_WRITE */
	cr_expect_not(serves(1001, 1000, VERVE_NET_LOCAL_WRITE));
	cr_expect_not(serves(1000, 999, VERVE_NET_LOCAL_WRITE));
	cr_expect_not(serves(1000, 1000, VERVE_NET_REMOTE_READ));
	cr_expect_not(serves(0, 1000, VERVE_NET_LOCAL_WRITE));
	cr_expect_not(serves(2000, 1000, VERVE_NET_LOCAL_WRITE));
}

Test(op, failed_registration_gives_back_what_was_got)
{
	struct iovec iov[3] = {{buffer, 1}, {buffer, 2}, {buffer, 3}};
	struct verve_request request = {.iov = iov, .iov_count = 3};
	struct verve_op *op = alloc(&verve_send_class, 0);

	verve_op_fill(op, &request);
	fake_net_fail(FAKE_NET_MR_REG, 3, -FI_ENOMEM);
	cr_expect_eq(verve_memory_register(a.xport, op, 0), -FI_ENOMEM);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
	cr_expect_eq(verve_memory_register(a.xport, op, 0), -FI_ENOMEM, "it is not tried again");
	verve_op_free(a.xport, op);
	op = alloc(&verve_send_class, 0);
	verve_op_fill(op, &request);
	cr_assert_eq(verve_memory_register(a.xport, op, 0), 0);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 3);
	verve_op_free(a.xport, op);
	cr_expect_eq(AO_load(&a.mr_cache.regions), 0);
}

static const struct {
	const struct verve_op_class *cls;
	uint32_t flags;
	uint64_t comp_flags;
} kinds[] = {
	{&verve_send_class, 0, VERVE_COMP_SEND | VERVE_COMP_MSG},
	{&verve_send_class, VERVE_OP_TAGGED, VERVE_COMP_SEND | VERVE_COMP_TAGGED},
	{&verve_send_class, VERVE_OP_DATA, VERVE_COMP_SEND | VERVE_COMP_MSG},
	{&verve_recv_class, 0, VERVE_COMP_RECV | VERVE_COMP_MSG},
	{&verve_recv_class, VERVE_OP_TAGGED, VERVE_COMP_RECV | VERVE_COMP_TAGGED},
	{&verve_recv_class, VERVE_OP_DATA,
		VERVE_COMP_RECV | VERVE_COMP_MSG | VERVE_COMP_REMOTE_CQ_DATA},
	{&verve_write_class, 0, VERVE_COMP_RMA | VERVE_COMP_WRITE},
	{&verve_read_class, 0, VERVE_COMP_RMA | VERVE_COMP_READ},
};

static struct verve_comp_queue *queue_of(const struct verve_op_class *cls)
{
	return cls == &verve_recv_class ? &a.rx_queue : &a.tx_queue;
}

static struct verve_comp_counter *counter_of(const struct verve_op_class *cls)
{
	if (cls == &verve_send_class)
		return &a.send;
	if (cls == &verve_recv_class)
		return &a.recv;
	return cls == &verve_write_class ? &a.write : &a.read;
}

Test(op, each_kind_completes_in_its_queue_and_counter)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct verve_op *op = alloc(kinds[i].cls, kinds[i].flags | VERVE_OP_NOTIFY);
		struct verve_comp_counter *counter = counter_of(kinds[i].cls);
		uint64_t before = AO_load(&counter->value);
		struct verve_comp comp;

		if (op->cls == &verve_recv_class)
			verve_recv_op_of(op)->src = UINT64_MAX;
		verve_op_report(a.xport, op);
		comp = expect_comp(queue_of(kinds[i].cls));
		cr_expect_eq(comp.flags, kinds[i].comp_flags);
		cr_expect_eq(comp.context, &context);
		cr_expect_eq(comp.src, UINT64_MAX);
		cr_expect_eq(AO_load(&counter->value), before + 1);
		cr_expect_eq(AO_load(&counter->errors), 0);
		verve_op_free(a.xport, op);
	}
	expect_none(&a.tx_queue);
	expect_none(&a.rx_queue);
	cr_expect_eq(AO_load(&a.remote_write.value), 0);
}

Test(op, errors_are_told_even_without_notify)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct verve_op *op = alloc(kinds[i].cls, kinds[i].flags);
		struct verve_comp_counter *counter = counter_of(kinds[i].cls);
		uint64_t before = AO_load(&counter->errors);
		struct verve_comp_error error;

		verve_op_report_error(a.xport, op, FI_EIO, 9, "a reason");
		error = expect_error(queue_of(kinds[i].cls), FI_EIO);
		cr_expect_eq(error.comp.flags, kinds[i].comp_flags);
		cr_expect_eq(error.comp.context, &context);
		cr_expect_eq(error.prov_errno, 9);
		cr_expect_str_eq(error.reason, "a reason");
		cr_expect_eq(AO_load(&counter->errors), before + 1);
		cr_expect_eq(AO_load(&counter->value), 0);
		verve_op_free(a.xport, op);
	}
}

Test(op, reason_names_the_peer)
{
	struct verve_op *op = alloc(&verve_send_class, 0);
	char name[VERVE_ADDR_STRLEN];
	struct verve_comp_error error;

	op->peer = node_peer(&a, &a);
	verve_op_report_error(a.xport, op, FI_EIO, 0, "a reason");
	error = expect_error(&a.tx_queue, FI_EIO);
	cr_expect_not_null(strstr(error.reason, "a reason"));
	cr_expect_not_null(strstr(error.reason, verve_addr_str(&a.addr, name)));
	verve_op_free(a.xport, op);
}

/* Programs tell by it which of their peers is gone. */
Test(op, error_of_a_transmit_has_the_address_of_its_target)
{
	const struct verve_addr other = {.in = {.sin_family = AF_INET, .sin_port = htons(9)}};
	struct verve_op *op = alloc(&verve_write_class, 0);
	uint64_t fi_addr;

	cr_assert_eq(verve_addrvec_insert(&a.addrvec, &other, &fi_addr), 0);
	/* node_peer inserts a's address next, behind the other one. */
	op->peer = node_peer(&a, &a);
	verve_op_report_error(a.xport, op, FI_EIO, 0, "a reason");
	cr_expect_eq(expect_error(&a.tx_queue, FI_EIO).comp.src, fi_addr + 1);
	verve_op_free(a.xport, op);
	op = alloc(&verve_send_class, 0);
	op->peer = node_peer(&a, &a);
	cr_assert_eq(verve_addrvec_remove(&a.addrvec, fi_addr + 1), 1);
	verve_peer_forget(a.xport, fi_addr + 1);
	verve_op_report_error(a.xport, op, FI_EIO, 0, "a reason");
	cr_expect_eq(expect_error(&a.tx_queue, FI_EIO).comp.src, UINT64_MAX);
	verve_op_free(a.xport, op);
}

Test(op, no_listener_is_fine)
{
	memset(&a.xport->attr.sink, 0, sizeof(a.xport->attr.sink));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct verve_op *op = alloc(kinds[i].cls, VERVE_OP_NOTIFY);

		verve_op_report(a.xport, op);
		cr_expect(op->flags & VERVE_OP_REPORTED);
		verve_op_free(a.xport, op);
		op = alloc(kinds[i].cls, VERVE_OP_NOTIFY);
		verve_op_report_error(a.xport, op, FI_EIO, 0, "a reason");
		cr_expect(op->flags & VERVE_OP_REPORTED);
		verve_op_free(a.xport, op);
	}
	expect_none(&a.tx_queue);
	expect_none(&a.rx_queue);
}

#ifndef NDEBUG
static void complete_twice(struct verve_op *op)
{
	verve_op_report(a.xport, op);
	verve_op_report(a.xport, op);
}

static void complete_and_fail(struct verve_op *op)
{
	verve_op_report(a.xport, op);
	verve_op_report_error(a.xport, op, FI_EIO, 0, "a reason");
}

static void fail_without_an_error(struct verve_op *op)
{
	verve_op_report_error(a.xport, op, 0, 0, "a reason");
}

static void step_back(struct verve_op *op)
{
	verve_op_set_state(op, VERVE_OP_QUEUED);
	verve_op_set_state(op, VERVE_OP_DOOMED);
	verve_op_set_state(op, VERVE_OP_QUEUED);
}

static void step_nowhere(struct verve_op *op)
{
	verve_op_set_state(op, VERVE_OP_AWAIT);
}

static void alloc_beyond_the_pools(struct verve_op *op)
{
	struct verve_op_class large = *op->cls;

	large.size = VERVE_OP_SIZE_MAX + 1;
	verve_op_alloc(a.xport, &large, 0);
}

static bool aborts(void (*misuse)(struct verve_op *op))
{
	struct verve_op *op = alloc(&verve_send_class, VERVE_OP_NOTIFY);
	pid_t child = child_fork_to_abort();

	if (!child) {
		misuse(op);
		_exit(0);
	}
	verve_op_free(a.xport, op);
	return child_has_aborted(child);
}

Test(op, misuse_is_found_out)
{
	cr_expect(aborts(complete_twice));
	cr_expect(aborts(complete_and_fail));
	cr_expect(aborts(fail_without_an_error));
	cr_expect(aborts(step_back));
	cr_expect(aborts(step_nowhere));
	cr_expect(aborts(alloc_beyond_the_pools));
}
#endif
