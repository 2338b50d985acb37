/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fabric: names, references, and the operations that it does not have. */
#include <criterion/criterion.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_eq.h>

#include "api/fabric.h"
#include "api/factory.h"
#include "api/prov.h"
#include "base/log.h"

/* libfabric 2.x deprecates wait sets; applications still have them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static struct fid_fabric *fabric;
static int context;

static int open_named(char *name, struct fid_fabric **opened)
{
	struct fi_fabric_attr attr = {.name = name, .api_version = FI_VERSION(1, 17)};

	verve_log_provider = &verve_prov;
	return verve_factory_open_fabric(&attr, opened, &context);
}

static void setup(void)
{
	cr_assert_eq(open_named("verve-roce", &fabric), 0);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&fabric->fid), 0);
}

TestSuite(fabric, .init = setup, .fini = teardown);

Test(fabric, keeps_what_it_was_opened_with)
{
	cr_expect_eq(fabric->fid.fclass, FI_CLASS_FABRIC);
	cr_expect_eq(fabric->fid.context, &context);
	cr_expect_eq(fabric->api_version, FI_VERSION(1, 17));
}

Test(fabric, other_names_are_refused)
{
	struct fid_fabric *other;

	cr_expect_eq(open_named("10.0.0.0/24", &other), -FI_EINVAL);
	cr_expect_eq(open_named(NULL, &other), -FI_EINVAL);
}

Test(fabric, stays_open_while_referenced)
{
	verve_fabric_get(fabric);
	cr_expect_eq(fi_close(&fabric->fid), -FI_EBUSY);
	verve_fabric_put(fabric);
}

Test(fabric, opens_no_passive_endpoints_or_wait_sets_or_peers)
{
	struct fid_domain *domain;
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_wait *wait;
	struct fid_pep *pep;

	cr_expect_eq(fi_passive_ep(fabric, NULL, &pep, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_wait_open(fabric, &attr, &wait), -FI_ENOSYS);
	cr_expect_eq(fi_domain2(fabric, NULL, &domain, FI_PEER, NULL), -FI_EINVAL);
	cr_expect_eq(fi_domain2(fabric, NULL, &domain, FI_MORE, NULL), -FI_ENOSYS);
}
