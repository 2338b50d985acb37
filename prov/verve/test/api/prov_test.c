/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Provider: what core finds when it loads verve. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>

#include "api/attr.h"
#include "api/prov.h"
#include "base/log.h"

struct fi_provider *fi_prov_ini(void);

Test(prov, is_complete)
{
	struct fi_provider *prov = fi_prov_ini();

	cr_assert_not_null(prov);
	cr_expect_str_eq(prov->name, "verve");
	cr_expect_not_null(prov->getinfo);
	cr_expect_not_null(prov->fabric);
	cr_expect_not_null(prov->cleanup);
	cr_expect_eq(prov->version, VERVE_PROV_VERSION);
	cr_expect_eq(verve_log_provider, prov);
}

/* Core hides verve from applications that ask for a newer version than verve reports. */
Test(prov, speaks_the_interface_of_the_libfabric_in_use)
{
	struct fi_provider *prov = fi_prov_ini();

	cr_expect(FI_VERSION_GE(prov->fi_version, fi_version()));
	cr_expect(FI_VERSION_GE(prov->fi_version, FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)));
}

/* The same file may be in two folders of FI_PROVIDER_PATH. */
Test(prov, can_be_loaded_and_cleaned_up_twice)
{
	struct fi_provider *first = fi_prov_ini(), *second = fi_prov_ini();

	cr_expect_eq(first, second);
	first->cleanup();
	second->cleanup();
}
