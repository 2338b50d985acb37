/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A watch that closes while another thread is in fork(2). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/child.h"
#include "base/log.h"
#include "net/unmaps.h"

enum { SIZE = 1 << 20, SETTLE = 100000 /* microseconds */ };

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_unmaps *watch;
static void *memory;
static pthread_t closer;
static void (*in_fork)(void);

static void before_fork(void)
{
	if (in_fork)
		in_fork();
}

/* Handlers that were registered first are called last: the watch's has taken its lock by then. */
__attribute__((constructor)) static void register_first(void)
{
	pthread_atfork(before_fork, NULL, NULL);
}

static void on_gone(void *arg, uintptr_t start, uintptr_t end)
{
	(void)arg, (void)start, (void)end;
}

static void *close_watch(void *arg)
{
	verve_net_unmaps_close(watch);
	return arg;
}

/*
 * As fork(2) itself does when it waits for malloc's lock, and the thread that holds that lock gives
 * memory back. The pause lets the watch's thread hear that it is to end: with less, the test sees
 * less.
 */
static void unmap_while_it_closes(void)
{
	in_fork = NULL;
	cr_assert_eq(pthread_create(&closer, NULL, close_watch, NULL), 0);
	usleep(SETTLE);
	cr_assert_eq(munmap(memory, SIZE), 0);
}

Test(unmaps_fork, memory_goes_while_the_watch_closes, .timeout = 60)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	pid_t child;

	if (fd < 0 && (errno == EPERM || errno == ENOSYS))
		cr_skip_test("userfaultfd(2) is not allowed here");
	close(fd);
	verve_log_provider = &provider;
	cr_assert_eq(verve_net_unmaps_open(on_gone, NULL, &watch), 0);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(memory, MAP_FAILED);
	memset(memory, 1, SIZE);
	cr_assert_eq(verve_net_unmaps_add(watch, (uintptr_t)memory, (uintptr_t)memory + SIZE), 0);
	in_fork = unmap_while_it_closes;
	child = fork();
	if (!child)
		_exit(0);
	child_expect_success(child);
	pthread_join(closer, NULL);
}
