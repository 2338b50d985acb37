/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tagged messages: fi_tagged(3). Any thread; the calls take the engine's lock. */
#ifndef VERVE_API_TAGGED_H
#define VERVE_API_TAGGED_H

#include <rdma/fi_tagged.h>

extern struct fi_ops_tagged verve_tagged_ops;

#endif
