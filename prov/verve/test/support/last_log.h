/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Takes the place of libfabric's log, for tests of what is said. One thread. */
#ifndef VERVE_TEST_SUPPORT_LAST_LOG_H
#define VERVE_TEST_SUPPORT_LAST_LOG_H

#include <rdma/providers/fi_log.h>

extern char last_log[1024];		 /* the last line */
extern enum fi_log_level last_log_level; /* lines up to this level come: at first, FI_LOG_INFO */

#endif
