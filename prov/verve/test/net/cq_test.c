/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion vectors: how they spread over endpoints and processes, and which one the device gets.
 * Then a driver that gives no queue.
 * The program is linked with --wrap for each __wrap_ function.
 */
#include "net/cq.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/fi_errno.h>

#include "../support/child.h"
#include "base/log.h"
#include "net/verbs.h"

enum { VECTORS = 4 };

int __wrap_sched_getcpu(void);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
				    struct ibv_comp_channel *channel, int vector);
int __wrap_ibv_destroy_cq(struct ibv_cq *cq);

static int cpu, vector_used;
static bool refused; /* the driver fails, and does not say why */

int __wrap_sched_getcpu(void)
{
	return cpu;
}

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *ctx, int cqe, void *context,
				    struct ibv_comp_channel *channel, int vector)
{
	static struct ibv_cq cq;

	(void)ctx, (void)cqe, (void)context, (void)channel;
	vector_used = vector;
	return refused ? NULL : &cq;
}

int __wrap_ibv_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	return 0;
}

static int open_with(int vectors, uint32_t vector)
{
	struct ibv_context ctx = {.num_comp_vectors = vectors};
	struct verve_net_device dev = {.ctx = &ctx};
	struct verve_net_cq *cq;

	cr_assert_eq(verve_net_cq_open(&dev, 16, NULL, vector, &cq), 0);
	verve_net_cq_close(cq);
	return vector_used;
}

Test(cq, is_opened_on_its_vector)
{
	for (uint32_t i = 0; i < VECTORS; i++)
		cr_expect_eq(open_with(VECTORS, i), (int)i);
}

Test(cq, has_a_vector_that_the_device_has)
{
	cr_expect_eq(open_with(VECTORS, VECTORS + 1), 1);
	cr_expect_eq(open_with(VECTORS, UINT32_MAX), VECTORS - 1);
	cr_expect_eq(open_with(1, 3), 0);
	cr_expect_eq(open_with(0, 3), 0, "a device that says nothing");
}

Test(cq, vectors_of_endpoints_follow_each_other)
{
	cpu = 5;
	for (uint32_t i = 0; i < 2 * VECTORS; i++) {
		cr_expect_eq(verve_net_vector_next(), 5 + i);
		cpu = 0; /* the thread has moved: the process goes on as it began */
	}
}

Test(cq, vectors_of_a_forked_process_begin_where_it_runs)
{
	pid_t pid;

	cpu = 5;
	cr_expect_eq(verve_net_vector_next(), 5);
	cpu = 9;
	pid = fork();
	if (!pid)
		_exit(verve_net_vector_next() == 9 && verve_net_vector_next() == 10 ? 0 : 1);
	child_expect_success(pid);
	cr_expect_eq(verve_net_vector_next(), 6);
}

/* Takes the place of libibverbs's. */
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	(void)ctx;
	return NULL;
}

/* What an earlier call left in errno is not the reason. */
Test(cq, driver_that_does_not_say_why)
{
	static struct fi_provider provider = {.name = "verve"};
	struct ibv_context ctx = {.num_comp_vectors = 1};
	struct verve_net_device dev = {.ctx = &ctx};
	struct verve_net_channel *channel;
	struct verve_net_cq *cq;

	verve_log_provider = &provider;
	refused = true;
	errno = EAGAIN;
	cr_expect_eq(verve_net_cq_open(&dev, 16, NULL, 0, &cq), -FI_EIO);
	errno = EAGAIN;
	cr_expect_eq(verve_net_channel_open(&dev, &channel), -FI_EIO);
}
