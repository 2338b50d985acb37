/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Lock: waiting, and waking a thread that waits. */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A thread that has waited takes the word as WAITED_FOR, because it cannot know whether others wait
 * still: at worst, its release wakes nobody.
 */
void verve_lock_wait(struct verve_lock *lock)
{
	int saved = errno;

	while (!AO_int_compare_and_swap_acquire(&lock->word, VERVE_LOCK_FREE,
						VERVE_LOCK_WAITED_FOR)) {
		AO_int_compare_and_swap(&lock->word, VERVE_LOCK_TAKEN, VERVE_LOCK_WAITED_FOR);
		/* Returns at once if the word has changed meanwhile. */
		syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, VERVE_LOCK_WAITED_FOR, NULL,
			NULL, 0);
	}
	errno = saved;
}

void verve_lock_wake(struct verve_lock *lock)
{
	int saved = errno;

	AO_int_store_release(&lock->word, VERVE_LOCK_FREE);
	syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}
