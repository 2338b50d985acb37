/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hints: what an application asks of fi_getinfo(3) against what verve has, apart from addresses. */
#ifndef VERVE_API_HINTS_H
#define VERVE_API_HINTS_H

#include <rdma/fabric.h>
#include <stdint.h>

/* Asks for another type of endpoint: to be refused before anything costs time. */
int verve_hints_check_type(const struct fi_info *hints);

/*
 * have: all that verve can do. 0, or -FI_ENODATA, with the reason in the log. hints may be NULL,
 * and any of its attributes.
 */
int verve_hints_check(uint32_t version, const struct fi_info *hints, const struct fi_info *have);

/* Cuts info, all that verve can do, down to what checked hints ask for. */
void verve_hints_apply(uint32_t version, const struct fi_info *hints, struct fi_info *info);

#endif
