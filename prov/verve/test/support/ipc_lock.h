/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests of RLIMIT_MEMLOCK, which does not count for root: capabilities(7). */
#ifndef VERVE_TEST_SUPPORT_IPC_LOCK_H
#define VERVE_TEST_SUPPORT_IPC_LOCK_H

#include <criterion/criterion.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From now on the limit counts for this thread, as for root of a container without CAP_IPC_LOCK. */
static inline void ipc_lock_drop(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	cr_assert_eq(syscall(SYS_capget, &header, data), 0);
	data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
	cr_assert_eq(syscall(SYS_capset, &header, data), 0);
}

#endif
