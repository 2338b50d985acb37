/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Provider: what libfabric's core sees of verve (fi_provider(7)). */
#ifndef VERVE_API_PROV_H
#define VERVE_API_PROV_H

#include <rdma/providers/fi_prov.h>

/* Core writes to its context; all else is constant once the provider is loaded. */
extern struct fi_provider verve_prov;

/* Reads the configuration and completes verve_prov, which it returns. Called once, by fi_prov_ini. */
struct fi_provider *verve_prov_load(void);

#endif
