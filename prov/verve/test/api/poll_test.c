/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll set: which objects can be in it, which it names, and the progress that it makes. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "../support/oom.h"
#include "api/cntr.h"
#include "api/cq.h"
#include "api/poll.h"
#include "fake_engine.h"

/* libfabric 2.x deprecates poll sets; applications still have them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct fid_domain *domain;
static struct fid_poll *set;
static int mark[4]; /* contexts */

static void setup(void)
{
	struct fi_poll_attr attr = {0};

	domain = fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
	cr_assert_eq(fi_poll_open(domain, &attr, &set), 0);
}

static void teardown(void)
{
	oom_stop();
	cr_assert_eq(fi_close(&set->fid), 0);
	cr_expect_eq(fake_domain_references(), 0);
}

TestSuite(poll, .init = setup, .fini = teardown);

static struct fid_cq *open_cq(void *context)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fid_cq *cq;

	cr_assert_eq(fi_cq_open(domain, &attr, &cq, context), 0);
	return cq;
}

static struct fid_cntr *open_cntr(void *context)
{
	struct fid_cntr *cntr;

	cr_assert_eq(fi_cntr_open(domain, NULL, &cntr, context), 0);
	return cntr;
}

static void remove_and_close(struct fid *fid)
{
	cr_expect_eq(fi_close(fid), -FI_EBUSY);
	cr_expect_eq(fi_poll_del(set, fid, 0), 0);
	cr_expect_eq(fi_close(fid), 0);
}

static void put(void *arg, uintptr_t n)
{
	struct verve_comp comp = {.context = (void *)n};
	struct fid_cq *cq = arg;

	verve_comp_queue_write(&verve_cq_from_fid(&cq->fid)->queue, &comp);
}

Test(poll, every_operation_is_there)
{
	void *const *op = (void *const *)&set->ops->poll;
	void *const *fid_op = (void *const *)&set->fid.ops->close;

	cr_expect_eq(set->fid.fclass, FI_CLASS_POLL);
	for (size_t i = 0; i < (sizeof(*set->ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(op[i]);
	for (size_t i = 0; i < (sizeof(*set->fid.ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(fid_op[i]);
}

Test(poll, flags_are_refused)
{
	struct fi_poll_attr attr = {.flags = 1};
	struct fid_cq *cq = open_cq(NULL);
	struct fid_poll *other;

	cr_expect_eq(fi_poll_open(domain, &attr, &other), -FI_EINVAL);
	cr_expect_eq(fi_poll_add(set, &cq->fid, 1), -FI_EBADFLAGS);
	cr_expect_eq(fi_poll_del(set, &cq->fid, 1), -FI_EBADFLAGS);
	cr_expect_eq(fi_close(&cq->fid), 0);
}

Test(poll, empty_set_names_nothing)
{
	void *context;

	cr_expect_eq(fi_poll(set, &context, 1), 0);
}

Test(poll, only_queues_and_counters_once_each)
{
	struct fid_cq *cq = open_cq(NULL);

	cr_expect_eq(fi_poll_add(set, &domain->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_poll_del(set, &cq->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_poll_add(set, &cq->fid, 0), 0);
	cr_expect_eq(fi_poll_add(set, &cq->fid, 0), -FI_EALREADY);
	cr_expect_eq(fi_close(&set->fid), -FI_EBUSY);
	remove_and_close(&cq->fid);
}

Test(poll, without_memory_nothing_is_added)
{
	struct fid_cntr *cntr = open_cntr(NULL);
	struct fid_poll *other;

	oom_fail(0, true);
	cr_expect_eq(fi_poll_add(set, &cntr->fid, 0), -FI_ENOMEM);
	cr_expect_eq(fi_poll_open(domain, NULL, &other), -FI_ENOMEM);
	oom_stop();
	cr_expect_eq(fi_close(&cntr->fid), 0);
}

Test(poll, queue_is_named_as_long_as_it_is_not_empty)
{
	struct fid_cq *cq = open_cq(&mark[0]);
	struct fi_cq_entry entry;
	void *context[2];

	cr_assert_eq(fi_poll_add(set, &cq->fid, 0), 0);
	cr_expect_eq(fi_poll(set, context, 2), 0);
	put(cq, 0);
	for (int i = 0; i < 3; i++) {
		context[0] = NULL;
		cr_expect_eq(fi_poll(set, context, 2), 1);
		cr_expect_eq(context[0], &mark[0]);
	}
	cr_expect_eq(fi_cq_read(cq, &entry, 1), 1);
	cr_expect_eq(fi_poll(set, context, 2), 0);
	remove_and_close(&cq->fid);
}

Test(poll, counter_is_named_when_it_changed)
{
	struct fid_cntr *cntr = open_cntr(&mark[1]);
	void *context[2];

	cr_assert_eq(fi_poll_add(set, &cntr->fid, 0), 0);
	cr_expect_eq(fi_poll(set, context, 2), 0);
	verve_comp_counter_add(&verve_cntr_from_fid(&cntr->fid)->counter, 1);
	cr_expect_eq(fi_poll(set, context, 2), 1);
	cr_expect_eq(context[0], &mark[1]);
	cr_expect_eq(fi_poll(set, context, 2), 0);
	remove_and_close(&cntr->fid);
}

Test(poll, progress_is_made_on_all_even_without_room)
{
	struct fid_cq *cq[2] = {open_cq(&mark[0]), open_cq(&mark[1])};
	struct verve_engine *engine[2];
	void *context[2];

	for (int i = 0; i < 2; i++) {
		engine[i] = fake_engine_open(put, cq[i]);
		cr_assert_eq(verve_cq_bind_engine(verve_cq_from_fid(&cq[i]->fid), engine[i]), 0);
		cr_assert_eq(fi_poll_add(set, &cq[i]->fid, 0), 0);
		fake_engine_complete(engine[i]);
	}
	cr_expect_eq(fi_poll(set, NULL, 0), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(fake_engine_turns(engine[i]), 1);
	cr_expect_eq(fi_poll(set, context, 2), 2);
	for (int i = 0; i < 2; i++) {
		verve_cq_unbind_engine(verve_cq_from_fid(&cq[i]->fid), engine[i]);
		fake_engine_close(engine[i]);
		remove_and_close(&cq[i]->fid);
	}
}

Test(poll, little_room_is_shared_fairly)
{
	struct fid_cq *cq[3];
	int named[3] = {0};

	for (int i = 0; i < 3; i++) {
		cq[i] = open_cq(&mark[i]);
		cr_assert_eq(fi_poll_add(set, &cq[i]->fid, 0), 0);
		put(cq[i], 0);
	}
	for (int i = 0; i < 6; i++) {
		void *context;

		cr_assert_eq(fi_poll(set, &context, 1), 1);
		named[(int *)context - mark]++;
	}
	for (int i = 0; i < 3; i++) {
		cr_expect_eq(named[i], 2);
		remove_and_close(&cq[i]->fid);
	}
}
