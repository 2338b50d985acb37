/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * NIC: what fi_nic(3) tells about the port behind an fi_info. Constant once it is open; any thread.
 */
#ifndef VERVE_API_NIC_H
#define VERVE_API_NIC_H

#include <rdma/fabric.h>

struct verve_net_port;

/*
 * Describes port, which is not kept. The fi_info that *nic is put into owns it and closes it
 * (fi_freeinfo); fi_control with FI_DUP makes a deep copy. -FI_ENOMEM.
 */
int verve_nic_open(const struct verve_net_port *port, struct fid_nic **nic);

#endif
