/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Cache of the list of ports, one for the process: fi_getinfo opens devices only if the host may
 * have changed since the list was made. Any thread; also in a child after fork(2).
 */
#ifndef VERVE_API_PORT_CACHE_H
#define VERVE_API_PORT_CACHE_H

#include <stddef.h>

#include "net/device.h"

/* A list that was lent; constant. */
struct verve_port_list {
	struct verve_net_port *ports;
	size_t count;
};

/*
 * The list of ports as verve_net_port_list returns it, or a kept one that is still true. The caller
 * gives it back with verve_port_cache_put. Errors as verve_net_port_list.
 */
int verve_port_cache_get(struct verve_port_list **list);
void verve_port_cache_put(struct verve_port_list *list);
/*
 * Forgets the kept list: when the last borrower gives it back, it is freed. Also for who finds that
 * a port of it is not as the list says.
 */
void verve_port_cache_clear(void);

#endif
