/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hints: asking, and asking again with the answer. */
#include "hints_fixture.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/ports.h"
#include "api/prov.h"
#include "base/log.h"

const int mr_needed = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
const uint64_t rma_all = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
const uint64_t atomic_order = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
			      FI_ORDER_ATOMIC_WAW;

uint32_t version = FI_VERSION(1, 17);
struct verve_net_port *ports;
struct fi_info *hints;
struct fi_info *info;
static size_t port_count;

void hints_lengthen(struct fi_info *of)
{
	struct newer_domain_attr *attr = calloc(1, sizeof(*attr));

	cr_assert_not_null(attr);
	memcpy(attr, of->domain_attr, sizeof(*of->domain_attr));
	free(of->domain_attr);
	of->domain_attr = (struct fi_domain_attr *)attr;
}

static void setup(void)
{
	verve_log_provider = &verve_prov;
	ports_make(&ports, &port_count);
	hints = fi_allocinfo();
	cr_assert_not_null(hints);
	hints_lengthen(hints);
}

static void teardown(void)
{
	fi_freeinfo(info);
	fi_freeinfo(hints);
	ports_free(ports, port_count);
}

TestSuite(hints, .init = setup, .fini = teardown);

int hints_get_with(const struct fi_info *with)
{
	fi_freeinfo(info);
	info = NULL;
	return verve_info_choose(ports, port_count, version, NULL, NULL, 0, with, &info);
}

int hints_get(void)
{
	return hints_get_with(hints);
}

void hints_expect_match(void)
{
	struct fi_info *again = NULL;

	cr_assert_eq(hints_get(), 0);
	hints_lengthen(info);
	cr_expect_eq(hints->caps & ~info->caps, 0);
	cr_expect_eq(info->mode, 0);
	cr_expect_eq(info->tx_attr->caps & ~info->caps, 0);
	cr_expect_eq(info->rx_attr->caps & ~info->caps, 0);
	cr_expect_eq((info->tx_attr->caps | info->rx_attr->caps),
		     info->caps & ~(FI_LOCAL_COMM | FI_REMOTE_COMM));
	if (hints->domain_attr->mr_mode)
		cr_expect_eq(verve_info_choose(ports, port_count, version, NULL, NULL, 0, info,
					       &again), 0);
	if (again)
		cr_expect_eq(again->caps, info->caps);
	fi_freeinfo(again);
}
