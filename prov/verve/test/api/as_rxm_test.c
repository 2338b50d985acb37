/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* As ofi_rxm: which hints get an answer, and that a domain can be opened with the answer. */
#include "api/as_rxm.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fixture.h"

enum { NAME_MAX_LEN = 32 };

static const uint32_t version = FI_VERSION(1, 17);
static struct fi_provider *prov;
static struct fi_info *hints;
static struct fi_info *list;

static void setup(void)
{
	prov = fi_prov_ini();
	hints = fi_allocinfo();
	cr_assert_not_null(hints);
}

static void teardown(void)
{
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

TestSuite(as_rxm, .init = setup, .fini = teardown);

static int get(const char *name)
{
	hints->fabric_attr->prov_name = name ? strdup(name) : NULL;
	return prov->getinfo(version, NULL, NULL, 0, hints, &list);
}

/*
 * Core prefers the highest version of a provider's name. The configuration variables go by the name
 * of the provider that the log uses, which stays verve.
 */
Test(as_rxm, goes_by_another_name_and_hides_the_others)
{
	cr_expect_str_eq(prov->name, "ofi_rxm");
	cr_expect(FI_VERSION_GE(prov->version, FI_VERSION(FI_MAJOR(fi_version()) * 1000, 0)));
	cr_expect(FI_VERSION_GE(prov->fi_version, fi_version()));
	cr_expect_str_eq(verve_log_provider->name, "verve");
	cr_expect_eq(fi_prov_ini(), prov);
}

struct name_case {
	char name[NAME_MAX_LEN];
	bool answered;
};

ParameterizedTestParameters(as_rxm, names)
{
	static struct name_case cases[] = {
		{"verbs;ofi_rxm", true},
		{"ofi_rxm;verbs", true},
		{"VERBS;OFI_RXM", true},
		{"ofi_rxm", true},
		{"verbs", false},
		{"verve", false},
		{"tcp;ofi_rxm", false},
		{"ofi_rxm;tcp", false},
		{"verbs;ofi_rxd", false},
		{"verbs;ofi_rxm;ofi_mrail", false},
		{"verbs;ofi_rxm;^verbs", false},
		{"verbs;", false},
		{"", false},
	};

	return cr_make_param_array(struct name_case, cases, sizeof(cases) / sizeof(cases[0]));
}

ParameterizedTest(struct name_case *param, as_rxm, names)
{
	cr_expect_eq(get(param->name), param->answered ? 0 : -FI_ENODATA);
	cr_expect_eq(list != NULL, param->answered);
}

Test(as_rxm, answers_nobody_without_a_name)
{
	cr_expect_eq(get(NULL), -FI_ENODATA);
	cr_expect_eq(prov->getinfo(version, NULL, NULL, 0, NULL, &list), -FI_ENODATA);
	free(hints->fabric_attr);
	hints->fabric_attr = NULL;
	cr_expect_eq(prov->getinfo(version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
}

/* Core appends ";ofi_rxm" to the name. Applications compare the protocol, too. */
Test(as_rxm, answers_with_its_name_and_protocol)
{
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->protocol = FI_PROTO_RXM;
	hints->ep_attr->protocol_version = 1;
	cr_assert_eq(get("verbs;ofi_rxm"), 0);
	for (const struct fi_info *info = list; info; info = info->next) {
		cr_expect_str_eq(info->fabric_attr->prov_name, "verbs");
		cr_expect_eq(info->ep_attr->protocol, FI_PROTO_RXM);
		cr_expect_eq(info->ep_attr->type, FI_EP_RDM);
	}
	cr_expect_eq(hints->ep_attr->protocol, FI_PROTO_RXM);
	cr_expect_eq(hints->ep_attr->protocol_version, 1);
}

Test(as_rxm, what_verve_refuses_is_refused)
{
	hints->ep_attr->type = FI_EP_RDM;
	hints->ep_attr->protocol = FI_PROTO_EFA;
	cr_expect_eq(get("verbs;ofi_rxm"), -FI_ENODATA);
	cr_expect_null(list);
}

Test(as_rxm, its_answer_opens_an_endpoint)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;

	hints->ep_attr->protocol = FI_PROTO_RXM;
	cr_assert_eq(get("verbs;ofi_rxm"), 0);
	list->fabric_attr->api_version = version;
	cr_assert_eq(prov->fabric(list->fabric_attr, &fabric, NULL), 0);
	fabric->api_version = version;
	cr_assert_eq(fi_domain(fabric, list, &domain, NULL), 0);
	cr_assert_eq(fi_endpoint(domain, list, &ep, NULL), 0);
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&domain->fid), 0);
	cr_expect_eq(fi_close(&fabric->fid), 0);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}
