/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probe: one datagram of the handshake to a peer's endpoint, and its answer. They tell whether
 * datagrams pass, and whether key and version of the two sides fit. The datagram names a connection
 * that the peer does not have: so the peer keeps nothing, and says that it knows none.
 */
#ifndef VERVE_UTIL_PROBE_H
#define VERVE_UTIL_PROBE_H

#include <stdint.h>

#include "base/addr.h"
#include "conn/auth.h"
#include "report.h"

/* The remedy where nobody listens; takes the peer's address. It listens on one address alone. */
#define VERVE_PROBE_LISTEN                                                                         \
	"there: verve_info --listen, with --from=%.200s if it says another address"

enum verve_probe_step {
	VERVE_PROBE_DATAGRAM,
	VERVE_PROBE_KEY,
	VERVE_PROBE_VERSION,
	VERVE_PROBE_PASSED,
};

/* What a probe found. */
struct verve_probe {
	enum verve_probe_step failed; /* the first step that failed; PASSED: none */
	int error;		      /* why no datagram came: positive */
	bool has_key;		      /* this side has one */
	uint64_t ns;		      /* from a datagram to its answer */
	uint8_t version_min, version_max; /* that the peer speaks */
};

/*
 * Asks the endpoint with the address to from a socket with the IP address own, up to five times.
 * wait_ms: for each answer. key: this side's; not set: it has none. Returns 0, or a negative error
 * of opening the socket.
 */
int verve_probe_run(const struct verve_addr *own, const struct verve_addr *to,
		    const struct verve_auth_key *key, int wait_ms, struct verve_probe *probe);

/* A finding for each step up to the first that failed. host, port: the peer's, for remedies. */
void verve_probe_report(struct verve_report *report, const struct verve_probe *probe,
			const char *host, const char *port);

#endif
