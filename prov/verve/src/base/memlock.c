/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Locked memory: the limit counts for users, and for root without CAP_IPC_LOCK. */
#include "base/memlock.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * True if RLIMIT_MEMLOCK does not count for this process: it has CAP_IPC_LOCK (capabilities(7)) in
 * the first user namespace, where the kernel asks for it. The inode is PROC_USER_INIT_INO of
 * Linux, include/linux/proc_ns.h.
 */
static bool has_ipc_lock(void)
{
	static const ino_t first_namespace = 0xeffffffd;
	struct stat own;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return !stat("/proc/self/ns/user", &own) && own.st_ino == first_namespace &&
	       !syscall(SYS_capget, &header, data) &&
	       data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

size_t verve_memlock_share(void)
{
	struct rlimit limit;

	if (has_ipc_lock() || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return SIZE_MAX;
	return limit.rlim_cur / 4;
}
