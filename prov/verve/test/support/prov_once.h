/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider for tests that start it again and again. Whenever a provider is loaded, libfabric
 * defines its variables once more, and looks through all definitions for each.
 */
#ifndef VERVE_TEST_SUPPORT_PROV_ONCE_H
#define VERVE_TEST_SUPPORT_PROV_ONCE_H

#include "base/config.h"

struct fi_provider *fi_prov_ini(void);

/* The provider, loaded at the first call. What it does then does not depend on this machine. */
static inline struct fi_provider *prov_once(void)
{
	static struct fi_provider *prov;

	if (!prov) {
		prov = fi_prov_ini();
		if (verve_config_is_auto(verve_config.rx_limit))
			verve_config.rx_limit = 1024;
	}
	return prov;
}

#endif
