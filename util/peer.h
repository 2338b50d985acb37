/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Peer: tests the way to another host step by step, through libfabric and the provider. */
#ifndef VERVE_UTIL_PEER_H
#define VERVE_UTIL_PEER_H

#include <stdbool.h>
#include <stdio.h>

#include "report.h"

/* True: to is "HOST" or "HOST:PORT", with a port from 1 to 65535. The host may be unknown. */
bool verve_peer_is_address(const char *to);

/*
 * Adds a finding for each step up to the first that fails. to: "HOST" or "HOST:PORT"; from: an own
 * address, or NULL. True: all steps passed. libfabric's answer counts, so FI_PROVIDER_PATH must
 * lead to the provider.
 */
bool verve_peer_test(struct verve_report *report, const char *to, const char *from);

/*
 * Serves such tests one after the other until SIGINT or SIGTERM; file gets a line with the address.
 * False, and a finding: it cannot.
 */
bool verve_peer_listen(struct verve_report *report, const char *from, FILE *file);

#endif
