/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Out of memory: the functions that the linker puts between the objects and the allocator. Any
 * thread.
 */
#include "oom.h"

#include <atomic_ops.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
char *__real_strdup(const char *text);
int __real_vasprintf(char **text, const char *format, va_list args);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
char *__wrap_strdup(const char *text);
int __wrap_vasprintf(char **text, const char *format, va_list args);

static long row;
static volatile AO_t on, left, failed;

void oom_fail(long nth, bool forever)
{
	oom_fail_row(nth, forever ? LONG_MAX : 1);
}

void oom_fail_row(long nth, long count)
{
	row = count;
	AO_store(&failed, 0);
	AO_store(&left, (AO_t)nth);
	AO_store_release(&on, 1);
}

long oom_stop(void)
{
	AO_store(&on, 0);
	return (long)AO_load(&failed);
}

static bool fails(void)
{
	long before;

	if (!AO_load_acquire(&on))
		return false;
	before = (long)AO_fetch_and_sub1(&left);
	if (before > 0 || before <= -row)
		return false;
	AO_fetch_and_add1(&failed);
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
	return fails() ? ENOMEM : __real_posix_memalign(memory, alignment, size);
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (!fails())
		return __real_mmap(addr, length, prot, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

char *__wrap_strdup(const char *text)
{
	return fails() ? NULL : __real_strdup(text);
}

int __wrap_vasprintf(char **text, const char *format, va_list args)
{
	return fails() ? -1 : __real_vasprintf(text, format, args);
}
