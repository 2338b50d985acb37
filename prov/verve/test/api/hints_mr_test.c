/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hints: modes of registration, and how many regions a device can have. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <rdma/fi_errno.h>

#include "hints_fixture.h"

struct mr_case {
	uint32_t version;
	uint64_t caps;
	int asked;
	int got; /* mode in the answer; negative: refused */
};

ParameterizedTestParameters(hints, mr_mode)
{
	static struct mr_case cases[] = {
		{FI_VERSION(1, 17), FI_MSG, 0, 0},
		{FI_VERSION(1, 17), 0, 0, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, 0, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_ATOMIC, 0, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 17), FI_MSG, MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 17), FI_RMA, MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 17), FI_MSG, MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 17), FI_MSG, FI_MR_LOCAL, FI_MR_LOCAL | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED,
		 FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_PROV_KEY | FI_MR_ALLOCATED,
		 FI_MR_PROV_KEY | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR,
		 FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA | FI_WRITE, FI_MR_ALLOCATED, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA | FI_REMOTE_WRITE, FI_MR_ALLOCATED, FI_MR_ALLOCATED},
		{FI_VERSION(1, 17), FI_RMA, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
		 FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY},
		/* SOS, with scalable regions. */
		{FI_VERSION(1, 5), FI_RMA | FI_ATOMIC, FI_MR_RMA_EVENT, FI_MR_ALLOCATED},
		/* MPICH 4.3 and 5.0, the first query. */
		{FI_VERSION(2, 1), FI_RMA | FI_ATOMIC | FI_MSG | FI_TAGGED, FI_MR_ENDPOINT,
		 FI_MR_ALLOCATED},
		{FI_VERSION(2, 1), FI_RMA, 0, FI_MR_ALLOCATED},
		{FI_VERSION(2, 1), FI_RMA, MR_BASIC, MR_BASIC},
		/*
		 * Since 1.22, a region without FI_MR_ALLOCATED would have to follow its memory,
		 * which verve cannot do.
		 */
		{FI_VERSION(1, 21), FI_RMA, FI_MR_PROV_KEY, FI_MR_PROV_KEY | FI_MR_ALLOCATED},
		{FI_VERSION(1, 22), FI_RMA, FI_MR_PROV_KEY, -1},
		{FI_VERSION(2, 1), FI_RMA, FI_MR_PROV_KEY | FI_MR_VIRT_ADDR, -1},
		{FI_VERSION(2, 1), FI_ATOMIC, FI_MR_VIRT_ADDR | FI_MR_LOCAL, -1},
		{FI_VERSION(2, 1), FI_RMA, MR_SCALABLE, -1},
		{FI_VERSION(2, 1), FI_MSG, FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR},
		{FI_VERSION(2, 1), 0, FI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED},
		{FI_VERSION(1, 4), FI_RMA, 0, MR_BASIC},
		{FI_VERSION(1, 4), FI_RMA, MR_BASIC, MR_BASIC},
		{FI_VERSION(1, 4), FI_RMA, MR_SCALABLE, MR_SCALABLE},
		{FI_VERSION(1, 4), FI_RMA, FI_MR_VIRT_ADDR, -1},
	};

	return cr_make_param_array(struct mr_case, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct mr_case *param, hints, mr_mode)
{
	version = param->version;
	hints->caps = param->caps;
	hints->domain_attr->mr_mode = param->asked;
	cr_assert_eq(hints_get(), param->got < 0 ? -FI_ENODATA : 0);
	if (param->got < 0)
		return;
	cr_expect_eq(info->domain_attr->mr_mode, param->got);
	/* Without hints for capabilities, RMA is offered even if no mode bit is granted. */
	if (!param->caps)
		cr_expect_eq(info->caps & rma_all, rma_all);
}

Test(hints, mr_mode_without_hints)
{
	cr_assert_eq(hints_get_with(NULL), 0);
	cr_expect_eq(info->domain_attr->mr_mode, mr_needed);
	version = FI_VERSION(1, 4);
	cr_assert_eq(hints_get_with(NULL), 0);
	cr_expect_eq(info->domain_attr->mr_mode, MR_BASIC);
}

/* The answer for each port has the number of regions that its device can have. */
Test(hints, ports_with_fewer_regions_are_left_out)
{
	ports[0].limits.mr = 1000;
	hints->domain_attr->mr_cnt = 1001;
	cr_assert_eq(hints_get(), 0);
	for (const struct fi_info *one = info; one; one = one->next) {
		cr_expect_str_neq(one->domain_attr->name, "mlx5_0");
		cr_expect_geq(one->domain_attr->mr_cnt, 1001);
	}
	hints->domain_attr->mr_cnt = 1000;
	cr_assert_eq(hints_get(), 0);
	cr_expect_str_eq(info->domain_attr->name, "mlx5_0");
	cr_expect_eq(info->domain_attr->mr_cnt, 1000);
}
