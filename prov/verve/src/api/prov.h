/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Provider: the part of verve that libfabric's core sees (fi_provider(7)). */
#ifndef VERVE_API_PROV_H
#define VERVE_API_PROV_H

#include <rdma/providers/fi_prov.h>

/* Constant once the provider is loaded, except for context, which core writes. */
extern struct fi_provider verve_prov;

/* Reads the configuration, completes verve_prov and returns it. fi_prov_ini calls it once. */
struct fi_provider *verve_prov_load(void);

#endif
