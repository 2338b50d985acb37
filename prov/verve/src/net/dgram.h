/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram socket: the handshake's UDP socket, non-blocking, with IP_RECVERR. Neither a program
 * that exec(3) starts nor a child after fork(2) has it.
 * Source: udp(7), ip(7), ipv6(7). The socket has no state of its own to lock: the connection
 * manager calls it, one thread at a time.
 */
#ifndef VERVE_NET_DGRAM_H
#define VERVE_NET_DGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/addr.h"

struct verve_net_dgram;

/*
 * The UDP port of RoCE v2 (InfiniBand spec. annex A17). Devices but soft-RoCE keep what comes to
 * this port for themselves, so that a socket hears nothing.
 */
enum { VERVE_NET_ROCE_PORT = 4791 };

/*
 * Opens a socket bound to *addr. Port 0 stands for a free port of FI_VERVE_PORT_RANGE, or, without
 * a range, for one that the kernel chooses; but not for RoCE's own. *addr becomes the bound
 * address. Logs. -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EACCES, -FI_EMFILE, -FI_ENOMEM.
 */
int verve_net_dgram_open(struct verve_addr *addr, struct verve_net_dgram **dgram);
void verve_net_dgram_close(struct verve_net_dgram *dgram);
/*
 * Polls readable while a datagram or an error waits. The socket owns the descriptor. -1 in the
 * simulation.
 */
int verve_net_dgram_fd(const struct verve_net_dgram *dgram);

/*
 * Sends len bytes as one datagram, which may be lost without notice. -FI_EAGAIN: no room in the
 * host, send again later; any other error: the address cannot be reached.
 */
int verve_net_dgram_send(struct verve_net_dgram *dgram, const void *buf, size_t len,
			 const struct verve_addr *to);
/*
 * Receives one datagram: returns its bytes, and its source in *from. A datagram longer than len
 * is cut. -FI_EAGAIN: none waits. -FI_ECONNREFUSED, -FI_EHOSTUNREACH, -FI_ENETUNREACH: an ICMP
 * error for an earlier datagram *to* the address in *from. -FI_EIO: the socket fails for good, as
 * the application has closed it, or a filter forbids receiving; logs once.
 */
ssize_t verve_net_dgram_recv(struct verve_net_dgram *dgram, void *buf, size_t len,
			     struct verve_addr *from);

/*
 * True if the kernel would send to dest from the address own, were there no temporary addresses of
 * IPv6. Asks the routing tables; sends nothing. Any thread.
 */
bool verve_net_dgram_routes_from(const struct verve_addr *dest, const struct verve_addr *own);

#endif
