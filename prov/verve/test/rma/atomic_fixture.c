/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics by the processor: two endpoints, their completions and counters. */
#include "atomic_fixture.h"

#include <string.h>

static const uint64_t patience = 60000000000; /* simulated ns */

struct fixture fix;
struct end ends[2], *const us = &ends[0], *const them = &ends[1];
uint64_t words[WORDS];
struct fid_mr *mr;
uint64_t key;

static void open_end(struct end *end)
{
	static const uint64_t events[CNTRS] = {FI_WRITE, FI_READ, FI_REMOTE_WRITE, FI_REMOTE_READ};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};

	memset(end, 0, sizeof(*end));
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &end->av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &cq_attr, &end->cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &end->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	for (int i = 0; i < CNTRS; i++) {
		cr_assert_eq(fi_cntr_open(fix.domain, &cntr_attr, &end->cntr[i], NULL), 0);
		cr_assert_eq(fi_ep_bind(end->ep, &end->cntr[i]->fid, events[i]), 0);
	}
	cr_assert_eq(fi_enable(end->ep), 0);
}

static void connect_ends(void)
{
	char name[64];

	for (int i = 0; i < 2; i++) {
		size_t len = sizeof(name);

		cr_assert_eq(fi_getname(&ends[1 - i].ep->fid, name, &len), 0);
		cr_assert_eq(fi_av_insert(ends[i].av, name, 1, &ends[i].peer, 0, NULL), 1);
	}
}

void atomic_reg(uint64_t access)
{
	cr_assert_eq(fi_mr_reg(fix.domain, words, sizeof(words), access, 0, 0, 0, &mr, NULL), 0);
	key = fi_mr_key(mr);
}

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
	fixture_open_domain(&fix);
	open_end(us);
	open_end(them);
	connect_ends();
	memset(words, 0, sizeof(words));
	atomic_reg(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

void atomic_progress(struct end *end)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_read(end->cq, &end->last, 1);

	if (ret == 1) {
		end->completions++;
		end->error = 0;
	} else if (ret == -FI_EAVAIL) {
		error.err_data = end->reason;
		error.err_data_size = sizeof(end->reason);
		cr_assert_eq(fi_cq_readerr(end->cq, &error, 0), 1);
		end->last = (struct fi_cq_tagged_entry){.op_context = error.op_context,
							.flags = error.flags};
		end->error = error.err;
		end->completions++;
	} else {
		cr_assert_eq(ret, -FI_EAGAIN);
	}
}

static void turn(void *arg)
{
	(void)arg;
	if (us->ep)
		atomic_progress(us);
	if (them->ep)
		atomic_progress(them);
}

void atomic_run(void)
{
	turn(NULL);
	fake_net_advance(fake_net_next() == UINT64_MAX ? 1000000
						       : fake_net_next() - fake_net_time());
}

void atomic_expect(int count, int error)
{
	uint64_t end = fake_net_time() + patience;

	while (us->completions < count) {
		cr_assert_lt(fake_net_time(), end, "an operation never completes");
		atomic_run();
	}
	cr_assert_eq(us->completions, count);
	cr_assert_eq(us->error, error, "error %d (%s)", us->error, us->reason);
}

void atomic_settle(void)
{
	for (int i = 0; i < 200; i++)
		atomic_run();
}

void atomic_end_close(struct end *end)
{
	struct fid_ep *ep = end->ep;

	if (!ep)
		return;
	end->ep = NULL;
	fake_net_on_pause(turn, NULL);
	cr_assert_eq(fi_close(&ep->fid), 0);
	fake_net_on_pause(NULL, NULL);
}

static void teardown(void)
{
	atomic_end_close(us);
	atomic_end_close(them);
	for (int i = 0; i < 2; i++) {
		for (int j = 0; j < CNTRS; j++)
			cr_expect_eq(fi_close(&ends[i].cntr[j]->fid), 0);
		cr_expect_eq(fi_close(&ends[i].cq->fid), 0);
		cr_expect_eq(fi_close(&ends[i].av->fid), 0);
	}
	if (mr)
		cr_expect_eq(fi_close(&mr->fid), 0);
	fixture_fini(&fix);
}

TestSuite(atomic, .init = setup, .fini = teardown);

uint64_t at(size_t word)
{
	return (uintptr_t)&words[word];
}

ssize_t atomic_add(size_t word, const uint64_t *value, void *context)
{
	return fi_atomic(us->ep, value, 1, NULL, us->peer, at(word), key, FI_UINT64, FI_SUM,
			 context);
}

ssize_t atomic_fetch(size_t word, const uint64_t *value, uint64_t *result, enum fi_op op)
{
	return fi_fetch_atomic(us->ep, value, 1, NULL, result, NULL, us->peer, at(word), key,
			       FI_UINT64, op, result);
}

void atomic_expect_counts(uint64_t write, uint64_t read)
{
	cr_expect_eq(fi_cntr_read(us->cntr[CNTR_WRITE]), write);
	cr_expect_eq(fi_cntr_read(us->cntr[CNTR_READ]), read);
	cr_expect_eq(fi_cntr_read(them->cntr[CNTR_REMOTE_WRITE]), write);
	cr_expect_eq(fi_cntr_read(them->cntr[CNTR_REMOTE_READ]), read);
}

void atomic_expect_refusal(int count, const char *reason)
{
	atomic_expect(count, FI_EACCES);
	cr_expect_not_null(strstr(us->reason, reason), "%s", us->reason);
}
