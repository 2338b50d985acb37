/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider for tests that start it again and again. Whenever a provider is loaded, libfabric
 * defines its variables once more, and looks through all definitions for each.
 */
#ifndef VERVE_TEST_SUPPORT_PROV_ONCE_H
#define VERVE_TEST_SUPPORT_PROV_ONCE_H

struct fi_provider *fi_prov_ini(void);

/* The provider, loaded at the first call. */
static inline struct fi_provider *prov_once(void)
{
	static struct fi_provider *prov;

	if (!prov)
		prov = fi_prov_ini();
	return prov;
}

#endif
