/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Log: messages to libfabric's log (FI_LOG_LEVEL, FI_LOG_PROV, FI_LOG_SUBSYS), with the provider's
 * name. Source: rdma/providers/fi_log.h.
 *
 * The code that decides that something is an error logs it once, with the object's identity and the
 * remedy. Levels: warn for messages that a user must read; info for an operator who looks for a
 * cause; trace for events of the protocol. Any thread, under any lock.
 */
#ifndef VERVE_BASE_LOG_H
#define VERVE_BASE_LOG_H

#include <errno.h>
#include <rdma/providers/fi_log.h>
#include <stdbool.h>

/* The provider in each message. */
extern const struct fi_provider *verve_log_provider;
/* Some subsystem is traced (FI_LOG_LEVEL). To ask libfabric costs more than a step itself. */
extern bool verve_log_traces;

/* Sets both. Called once, in fi_prov_ini, before the first message. */
void verve_log_load(const struct fi_provider *provider);

/*
 * The format must end with a newline. subsys: CORE, FABRIC, DOMAIN, EP_CTRL, EP_DATA, AV, CQ, EQ,
 * MR or CNTR, as in fi_log.h.
 */
#define VERVE_WARN(subsys, ...) FI_WARN(verve_log_provider, FI_LOG_##subsys, __VA_ARGS__)
#define VERVE_INFO(subsys, ...) FI_INFO(verve_log_provider, FI_LOG_##subsys, __VA_ARGS__)
#define VERVE_TRACE(subsys, ...)                                                                   \
	do {                                                                                       \
		if (__builtin_expect(verve_log_traces, 0))                                         \
			FI_TRACE(verve_log_provider, FI_LOG_##subsys, __VA_ARGS__);                \
	} while (0)

#endif
