/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints: compares the hints of fi_getinfo(3), except for addresses, with what verve has. No state;
 * any thread.
 */
#ifndef VERVE_API_HINTS_H
#define VERVE_API_HINTS_H

#include <rdma/fabric.h>
#include <stdint.h>

/*
 * 0 if hints, which may be NULL, ask for FI_EP_RDM or for no type; else -FI_ENODATA. It is cheap:
 * callers use it before they look at devices.
 */
int verve_hints_check_type(const struct fi_info *hints);

/*
 * 0 if verve can do everything that hints ask for, else -FI_ENODATA, and the log has the reason.
 * have: everything that verve can do (verve_attr_alloc_info). hints, and each of its attributes,
 * may be NULL. version: the application's, as FI_VERSION makes it; attributes that are newer are
 * not read.
 */
int verve_hints_check(uint32_t version, const struct fi_info *hints, const struct fi_info *have);

/*
 * Reduces info, which has everything that verve can do, to what hints ask for. hints have passed
 * verve_hints_check, and may be NULL.
 */
void verve_hints_apply(uint32_t version, const struct fi_info *hints, struct fi_info *info);

#endif
