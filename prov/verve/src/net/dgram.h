/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram socket: the handshake's UDP socket, non-blocking, close-on-exec, with IP_RECVERR.
 * Source: udp(7), ip(7), ipv6(7).
 */
#ifndef VERVE_NET_DGRAM_H
#define VERVE_NET_DGRAM_H

#include <stddef.h>
#include <sys/types.h>

#include "base/addr.h"

struct verve_net_dgram;

/*
 * Binds to *addr; port 0 lets the kernel choose. *addr becomes the bound address.
 * -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EACCES, -FI_EMFILE, -FI_ENOMEM.
 */
int verve_net_dgram_open(struct verve_addr *addr, struct verve_net_dgram **dgram);
void verve_net_dgram_close(struct verve_net_dgram *dgram);
/* Polls readable when there is something to receive, an error included; -1 in the simulation. */
int verve_net_dgram_fd(const struct verve_net_dgram *dgram);

/* May be lost, like any datagram. -FI_EAGAIN: no room; other errors: it cannot be sent there. */
int verve_net_dgram_send(struct verve_net_dgram *dgram, const void *buf, size_t len,
			 const struct verve_addr *to);
/*
 * Bytes received and their source; a datagram longer than len is cut. -FI_EAGAIN: none.
 * -FI_ECONNREFUSED, -FI_EHOSTUNREACH, -FI_ENETUNREACH: ICMP said so of datagrams to *from.
 */
ssize_t verve_net_dgram_recv(struct verve_net_dgram *dgram, void *buf, size_t len,
			     struct verve_addr *from);

#endif
