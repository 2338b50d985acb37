/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Library: whether libfabric finds the provider and shows it to applications.
 * Source: fabric(7) (FI_PROVIDER, FI_PROVIDER_PATH), fi_getinfo(3) (FI_PROV_ATTR_ONLY).
 */
#ifndef VERVE_UTIL_LIBRARY_H
#define VERVE_UTIL_LIBRARY_H

#include <stdbool.h>

#include "report.h"

/* One finding about libfabric. True: applications are offered verve. */
bool verve_library_report(struct verve_report *report);

#endif
