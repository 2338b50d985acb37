/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probes: places at which a tracer, such as bpftrace(8), sees what happens, with no change to the
 * program. A probe is one instruction that does nothing until a tracer turns it on, and a note in
 * the object file that says where its arguments are (sys/sdt.h). Built without that header, there
 * are no probes. The manual page of verve_stat names each probe and its arguments; they keep their
 * order, and new ones come last. Any thread; no lock.
 */
#ifndef VERVE_BASE_PROBE_H
#define VERVE_BASE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#else
#define DTRACE_PROBE2(provider, probe, a, b) ((void)(a), (void)(b))
#define DTRACE_PROBE3(provider, probe, a, b, c) ((void)(a), (void)(b), (void)(c))
#define DTRACE_PROBE5(provider, probe, a, b, c, d, e) \
	((void)(a), (void)(b), (void)(c), (void)(d), (void)(e))
#endif

/*
 * Something became of a connection, as in verve_stat --events. error: positive FI errno, or 0;
 * status: ibv_wc_status, or 0. In all probes, peer is its address, and empty where the process has
 * no page (base/page.h).
 */
static inline void verve_probe_event(const char *peer, const char *event, uint32_t conn_id,
				     int error, uint32_t status)
{
	DTRACE_PROBE5(verve, event, peer, event, conn_id, error, status);
}

/* A packet was posted. type: enum verve_wire_type. */
static inline void verve_probe_sent(const char *peer, unsigned type, size_t bytes)
{
	DTRACE_PROBE3(verve, sent, peer, type, bytes);
}

/* A packet arrived. */
static inline void verve_probe_arrived(const char *peer, unsigned type, size_t bytes)
{
	DTRACE_PROBE3(verve, arrived, peer, type, bytes);
}

/* A request on memory was posted. kind: 0 read, 1 write, 2 atomic. */
static inline void verve_probe_request(const char *peer, int kind, size_t bytes)
{
	DTRACE_PROBE3(verve, request, peer, kind, bytes);
}

/* An operation ended with an error; reason: in words. */
static inline void verve_probe_failed(const char *peer, const char *operation, int error,
				      uint32_t status, const char *reason)
{
	DTRACE_PROBE5(verve, failed, peer, operation, error, status, reason);
}

/* Memory is about to be registered with a device. access: VERVE_NET_* (net/mr.h). */
static inline void verve_probe_registering(const void *address, size_t bytes, unsigned access)
{
	DTRACE_PROBE3(verve, registering, address, bytes, access);
}

/* It was registered, or not: error is a positive FI errno, or 0. The same thread. */
static inline void verve_probe_registered(const void *address, size_t bytes, int error)
{
	DTRACE_PROBE3(verve, registered, address, bytes, error);
}

/* Memory was deregistered. */
static inline void verve_probe_deregistered(const void *address, size_t bytes)
{
	DTRACE_PROBE2(verve, deregistered, address, bytes);
}

#endif
