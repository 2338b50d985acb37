/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake net/unmaps.h: the test is the kernel. */
#include "net/unmaps.h"

#include <rdma/fi_errno.h>
#include <stddef.h>

#include "fake_memory.h"
#include "fake_net.h"

struct verve_net_unmaps {
	void (*gone)(void *arg, uintptr_t start, uintptr_t end);
	void *arg;
	bool opened;
};

static struct verve_net_unmaps only;
static bool allowed, pending, refusing;
static uintptr_t forgotten;

void fake_net_watch_allow(bool allow)
{
	allowed = allow;
	pending = refusing = false;
}

void fake_net_watch_refuse(bool refuse)
{
	refusing = refuse;
}

void fake_net_watch_pending(bool is_pending)
{
	pending = is_pending;
}

void fake_net_watch_gone(const void *start, size_t len)
{
	if (only.opened)
		only.gone(only.arg, (uintptr_t)start, (uintptr_t)start + len);
}

int verve_net_unmaps_open(void (*gone)(void *arg, uintptr_t start, uintptr_t end), void *arg,
			  struct verve_net_unmaps **watch)
{
	if (!allowed || only.opened)
		return -FI_ENOSYS;
	only = (struct verve_net_unmaps){gone, arg, true};
	*watch = &only;
	return 0;
}

void verve_net_unmaps_close(struct verve_net_unmaps *watch)
{
	watch->opened = false;
}

void verve_net_unmaps_forget(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	(void)watch;
	(void)end;
	forgotten = start;
}

bool fake_net_watch_forgot(const void *start)
{
	return forgotten == (uintptr_t)start;
}

int verve_net_unmaps_add(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	(void)watch;
	return refusing || start >= end ? -FI_EOPNOTSUPP : 0;
}

bool verve_net_unmaps_quiet(struct verve_net_unmaps *watch)
{
	return watch->opened && !pending;
}
