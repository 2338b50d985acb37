/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Thread domains: which device gives one, and what the others have in its place. */
#include "net/td.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../support/last_log.h"
#include "base/log.h"

static struct fi_provider provider = {.name = "verve"};
static struct ibv_td thread_domain;
static struct ibv_pd parent_domain, whole;
static struct verbs_context context;
static struct verve_net_device dev = {.ctx = &context.context, .pd = &whole};
/* Positive errno; 0: the device has them; negative: they fail, and leave errno alone. */
static int td_error, parent_error;
static int tds, parents;	   /* open ones */

static struct ibv_td *alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
	thread_domain.context = ctx;
	cr_expect_eq(attr->comp_mask, 0);
	if (td_error > 0)
		errno = td_error;
	tds += !td_error;
	return td_error ? NULL : &thread_domain;
}

static int dealloc_td(struct ibv_td *td)
{
	cr_expect_eq(td, &thread_domain);
	cr_expect_eq(parents, 0);
	tds--;
	return 0;
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *ctx,
					  struct ibv_parent_domain_init_attr *attr)
{
	(void)ctx;
	cr_expect_eq(attr->pd, &whole);
	cr_expect_eq(attr->td, &thread_domain);
	cr_expect_eq(attr->comp_mask, 0);
	if (parent_error > 0)
		errno = parent_error;
	parents += !parent_error;
	return parent_error ? NULL : &parent_domain;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	cr_expect_eq(pd, &parent_domain);
	parents--;
	return 0;
}

static void setup(void)
{
	verve_log_provider = &provider;
	td_error = parent_error = 0;
	context.sz = sizeof(context);
	context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context.alloc_td = alloc_td;
	context.dealloc_td = dealloc_td;
	context.alloc_parent_domain = alloc_parent_domain;
}

TestSuite(td, .init = setup);

static void expect_pd(const struct ibv_pd *pd, int parent_count)
{
	struct verve_td td;

	verve_td_open(&dev, &td);
	cr_expect_eq(td.pd, pd);
	cr_expect_eq(tds, parent_count);
	cr_expect_eq(parents, parent_count);
	verve_td_close(&td);
	cr_expect_eq(tds, 0);
	cr_expect_eq(parents, 0);
}

Test(td, queue_pairs_are_in_a_parent_domain)
{
	expect_pd(&parent_domain, 1);
}

Test(td, device_without_thread_domains)
{
	context.alloc_td = NULL;
	expect_pd(&whole, 0);
}

Test(td, no_thread_domain_left)
{
	td_error = ENOMEM;
	expect_pd(&whole, 0);
}

Test(td, no_parent_domain)
{
	parent_error = ENOMEM;
	expect_pd(&whole, 0);
	context.alloc_parent_domain = NULL;
	expect_pd(&whole, 0);
}

static void expect_io_error(void)
{
	last_log[0] = '\0';
	errno = EOPNOTSUPP; /* of an earlier call */
	expect_pd(&whole, 0);
	cr_expect_not_null(strstr(last_log, strerror(EIO)), "\"%s\"", last_log);
}

Test(td, driver_that_does_not_say_why)
{
	td_error = -1;
	expect_io_error();
	td_error = 0;
	parent_error = -1;
	expect_io_error();
}
