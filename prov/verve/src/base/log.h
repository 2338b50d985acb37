/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log: libfabric's own log (FI_LOG_LEVEL, FI_LOG_PROV, FI_LOG_SUBSYS), under the provider's name.
 *
 * Whoever first decides that something is an error logs it, once, with the object's identity.
 * warn: a user must know; info: an operator who asks wants to know; trace: protocol events.
 * Any thread, any lock.
 */
#ifndef VERVE_BASE_LOG_H
#define VERVE_BASE_LOG_H

#include <errno.h>
#include <rdma/providers/fi_log.h>

/* The provider the log speaks for; set once, in fi_prov_ini, before anything can log. */
extern const struct fi_provider *verve_log_provider;

/* subsys: CORE, FABRIC, DOMAIN, EP_CTRL, EP_DATA, AV, CQ, EQ, MR or CNTR, as in fi_log.h. */
#define VERVE_WARN(subsys, ...) FI_WARN(verve_log_provider, FI_LOG_##subsys, __VA_ARGS__)
#define VERVE_INFO(subsys, ...) FI_INFO(verve_log_provider, FI_LOG_##subsys, __VA_ARGS__)
#define VERVE_TRACE(subsys, ...) FI_TRACE(verve_log_provider, FI_LOG_##subsys, __VA_ARGS__)

#endif
