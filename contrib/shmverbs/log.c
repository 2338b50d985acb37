/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "lock.h"

void shmv_log(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "shmverbs[%u]: %s\n", shmv_pid, text);
}

void *shmv_fail(int error)
{
	errno = error;
	return NULL;
}
