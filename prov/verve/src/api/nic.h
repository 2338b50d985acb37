/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* NIC: what fi_nic(3) tells about the port behind a fi_info. Constant. */
#ifndef VERVE_API_NIC_H
#define VERVE_API_NIC_H

#include <rdma/fabric.h>

struct verve_net_port;

/* The fi_info that it is put into owns it; fi_control FI_DUP makes a deep copy. -FI_ENOMEM. */
int verve_nic_open(const struct verve_net_port *port, struct fid_nic **nic);

#endif
