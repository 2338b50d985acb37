/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Alias: what an alias shares with its endpoint, what is its own, and the order of closing. */
#include "fixture.h"

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <string.h>

#include "api/ep.h"

static struct fixture fix;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static fi_addr_t self;

static void setup(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	fixture_init(&fix, FI_VERSION(1, 17));
	fix.info->tx_attr->op_flags = FI_TRANSMIT_COMPLETE;
	fixture_open_domain(&fix);
	cr_assert_eq(fi_av_open(fix.domain, &av_attr, &av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix.domain, &attr, &cq, NULL), 0);
	cr_assert_eq(fi_endpoint(fix.domain, fix.info, &ep, NULL), 0);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
	fixture_fini(&fix);
}

TestSuite(alias, .init = setup, .fini = teardown);

static void enable(struct fid_ep *fid)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	cr_assert_eq(fi_ep_bind(fid, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(fid, &cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION), 0);
	cr_assert_eq(fi_enable(fid), 0);
	cr_assert_eq(fi_getname(&fid->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(av, &name, 1, &self, 0, NULL), 1);
}

static struct fid_ep *open_alias(uint64_t flags)
{
	struct fid_ep *alias = NULL;

	cr_assert_eq(fi_ep_alias(ep, &alias, flags), 0);
	cr_assert_not_null(alias);
	return alias;
}

static uint64_t op_flags(struct fid_ep *fid, uint64_t direction)
{
	uint64_t flags = direction;

	cr_assert_eq(fi_control(&fid->fid, FI_GETOPSFLAG, &flags), 0);
	return flags;
}

/* Counts completions when nothing happens any more. */
static int completions(void)
{
	struct fi_cq_tagged_entry entry;
	int count = 0;

	for (int i = 0; i < 2000; i++) {
		count += fi_cq_read(cq, &entry, 1) == 1;
		fake_net_advance(100000);
	}
	return count;
}

static void exchange(struct fid_ep *sender, struct fid_ep *receiver)
{
	static char to;

	cr_assert_eq(fi_recv(receiver, &to, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_send(sender, "x", 1, NULL, self, NULL), 0);
}

Test(alias, has_the_flags_of_its_endpoint)
{
	struct fid_ep *alias = open_alias(0);

	cr_expect_eq(op_flags(alias, FI_TRANSMIT), FI_TRANSMIT_COMPLETE);
	cr_expect_eq(op_flags(alias, FI_RECV), op_flags(ep, FI_RECV));
	cr_expect_eq(alias->fid.fclass, FI_CLASS_EP);
	cr_expect_eq(fi_close(&alias->fid), 0);
}

Test(alias, flags_replace_those_of_one_direction)
{
	struct fid_ep *tx = open_alias(FI_TRANSMIT | FI_DELIVERY_COMPLETE);
	struct fid_ep *rx = open_alias(FI_RECV | FI_COMPLETION);
	uint64_t flags = FI_TRANSMIT | FI_INJECT_COMPLETE;

	cr_expect_eq(op_flags(tx, FI_TRANSMIT), FI_DELIVERY_COMPLETE);
	cr_expect_eq(op_flags(tx, FI_RECV), 0);
	cr_expect_eq(op_flags(rx, FI_TRANSMIT), FI_TRANSMIT_COMPLETE);
	cr_expect_eq(op_flags(rx, FI_RECV), FI_COMPLETION);
	cr_expect_eq(fi_control(&rx->fid, FI_SETOPSFLAG, &flags), 0);
	cr_expect_eq(op_flags(rx, FI_TRANSMIT), FI_INJECT_COMPLETE);
	cr_expect_eq(op_flags(ep, FI_TRANSMIT), FI_TRANSMIT_COMPLETE);
	cr_expect_eq(op_flags(ep, FI_RECV), 0);
	cr_expect_eq(fi_close(&tx->fid), 0);
	cr_expect_eq(fi_close(&rx->fid), 0);
}

Test(alias, flags_name_one_direction)
{
	struct fid_ep *alias;

	cr_expect_eq(fi_ep_alias(ep, &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	cr_expect_eq(fi_ep_alias(ep, &alias, FI_COMPLETION), -FI_EINVAL);
}

Test(alias, endpoint_stays_open_until_its_aliases_are_closed)
{
	struct fid_ep *alias = open_alias(0), *of_alias = NULL;

	cr_assert_eq(fi_ep_alias(alias, &of_alias, FI_TRANSMIT), 0);
	cr_expect_eq(op_flags(of_alias, FI_TRANSMIT), 0);
	cr_expect_eq(fi_close(&ep->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&alias->fid), 0);
	cr_expect_eq(fi_close(&ep->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&of_alias->fid), 0);
}

enum { THREADS = 4, ROUNDS = 100000 };

/* Returns NULL, or the address of something if a call failed. */
static void *open_and_close(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct fid_ep *alias[2];

		if (fi_ep_alias(ep, &alias[0], 0) || fi_ep_alias(alias[0], &alias[1], 0) ||
		    fi_close(&alias[0]->fid) || fi_close(&alias[1]->fid))
			return arg;
	}
	return NULL;
}

Test(alias, threads_open_and_close_aliases_of_one_endpoint)
{
	pthread_t thread[THREADS];
	void *failed;

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, open_and_close, &fix), 0);
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(thread[i], &failed), 0);
		cr_expect_null(failed);
	}
	cr_expect(LIST_EMPTY(&verve_ep_from_fid(ep)->aliases));
}

/* With selective completion, only an operation with FI_COMPLETION gets a completion. */
Test(alias, messages_complete_by_the_flags_of_the_endpoint_that_posted)
{
	struct fid_ep *before = open_alias(FI_TRANSMIT | FI_COMPLETION), *after;

	enable(ep);
	after = open_alias(FI_RECV | FI_COMPLETION);
	exchange(ep, ep);
	cr_expect_eq(completions(), 0);
	exchange(before, ep);
	cr_expect_eq(completions(), 1);
	exchange(ep, after);
	cr_expect_eq(completions(), 1);
	exchange(before, after);
	cr_expect_eq(completions(), 2);
	cr_expect_eq(fi_close(&before->fid), 0);
	cr_expect_eq(fi_close(&after->fid), 0);
}

/* Receives and messages of the two are one sequence each. */
Test(alias, keeps_one_order_with_its_endpoint)
{
	enum { COUNT = 40 };
	struct fid_ep *either[2] = {ep, open_alias(0)};
	char to[COUNT] = {0};

	enable(ep);
	for (int i = 0; i < COUNT; i++)
		cr_assert_eq(fi_recv(either[i / 2 % 2], &to[i], 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	for (int i = 0; i < COUNT; i++) {
		char text = (char)(1 + i);

		cr_assert_eq(fi_inject(either[i % 2], &text, 1, self), 0);
	}
	cr_expect_eq(completions(), 0);
	for (int i = 0; i < COUNT; i++)
		cr_expect_eq(to[i], 1 + i);
	cr_expect_eq(fi_close(&either[1]->fid), 0);
}

Test(alias, controls_its_endpoint)
{
	struct fid_ep *alias = open_alias(0);
	struct sockaddr_in name, alias_name;
	size_t len = sizeof(name), value = 77, value_len = sizeof(value);

	cr_expect_eq(fi_send(alias, "x", 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	enable(alias);
	cr_expect_eq(fi_enable(ep), -FI_EOPBADSTATE);
	cr_expect_eq(fi_ep_bind(alias, &cq->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
	cr_expect_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_expect_eq(fi_getname(&alias->fid, &alias_name, &len), 0);
	cr_expect_eq(memcmp(&name, &alias_name, sizeof(name)), 0);
	cr_expect_eq(fi_setopt(&alias->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value,
			       sizeof(value)), 0);
	value = 0;
	cr_expect_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value,
			       &value_len), 0);
	cr_expect_eq(value, 77);
	cr_expect_eq(fi_close(&alias->fid), 0);
}

Test(alias, cancels_what_its_endpoint_posted)
{
	struct fid_ep *alias;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	char to;

	enable(ep);
	alias = open_alias(0);
	cr_assert_eq(fi_recv(ep, &to, 1, NULL, FI_ADDR_UNSPEC, &to), 0);
	cr_expect_eq(fi_cancel(&alias->fid, &to), 0);
	cr_expect_eq(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
	cr_expect_eq(fi_cq_readerr(cq, &error, 0), 1);
	cr_expect_eq(error.op_context, &to);
	cr_expect_eq(fi_close(&alias->fid), 0);
}
