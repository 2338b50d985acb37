/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages: fi_msg(3). Any thread; the calls take the engine's lock. */
#ifndef VERVE_API_MSG_H
#define VERVE_API_MSG_H

#include <rdma/fi_endpoint.h>

extern struct fi_ops_msg verve_msg_ops;

#endif
