/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fixture of the API tests: the provider on the fake net, entered as libfabric's core does. It uses
 * the first port with an IPv4 address. A test may edit info before it opens the domain.
 */
#ifndef VERVE_TEST_API_FIXTURE_H
#define VERVE_TEST_API_FIXTURE_H

#include <criterion/criterion.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "../support/fake_net.h"

struct fi_provider *fi_prov_ini(void);

struct fixture {
	struct fi_info *list; /* the answer of getinfo */
	struct fi_info *info; /* the entry of list that the test uses */
	struct fid_fabric *fabric;
	struct fid_domain *domain; /* NULL: not open */
};

static inline void fixture_init(struct fixture *fix, uint32_t api_version)
{
	struct fi_provider *prov = fi_prov_ini();

	*fix = (struct fixture){0};
	cr_assert_not_null(prov);
	cr_assert_eq(prov->getinfo(api_version, NULL, NULL, 0, NULL, &fix->list), 0);
	for (fix->info = fix->list; fix->info; fix->info = fix->info->next)
		if (fix->info->addr_format == FI_SOCKADDR_IN)
			break;
	cr_assert_not_null(fix->info);
	fix->info->fabric_attr->api_version = api_version;
	cr_assert_eq(prov->fabric(fix->info->fabric_attr, &fix->fabric, NULL), 0);
	fix->fabric->api_version = api_version; /* core sets it after the open, too */
}

static inline void fixture_open_domain(struct fixture *fix)
{
	cr_assert_eq(fi_domain(fix->fabric, fix->info, &fix->domain, NULL), 0);
}

static inline struct fid_eq *fixture_open_eq(struct fixture *fix)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_eq *eq;

	cr_assert_eq(fi_eq_open(fix->fabric, &attr, &eq, NULL), 0);
	return eq;
}

/* The test has closed all its objects before: otherwise the closes here fail. */
static inline void fixture_fini(struct fixture *fix)
{
	if (fix->domain)
		cr_expect_eq(fi_close(&fix->domain->fid), 0);
	cr_expect_eq(fi_close(&fix->fabric->fid), 0);
	fi_freeinfo(fix->list);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

#endif
