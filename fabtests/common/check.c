/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* check: the two counters of a test program, and the printing of failed checks. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common/check.h"

/* A limit for each case: a loop of failures must not bury the first one. */
#define PRINT_MAX 10

static atomic_ulong passed, failed, printed;

static bool count(bool held)
{
	if (held)
		passed++;
	else
		failed++;
	return held;
}

/* Whether to print one more failure. */
static bool speak(void)
{
	unsigned long number = ++printed;

	if (number == PRINT_MAX + 1)
		printf("more failures of this case are only counted\n");
	return number <= PRINT_MAX;
}

void check_begin(void)
{
	printed = 0;
}

static const char *code_text(long code)
{
	if (!code)
		return "FI_SUCCESS";
	return fi_strerror((int)(code < 0 ? -code : code));
}

bool check_true(const char *file, int line, const char *expr, bool got)
{
	if (!got && speak())
		printf("%s:%d: %s: expected true, got false\n", file, line, expr);
	return count(got);
}

bool check_equal(const char *file, int line, const char *expr, unsigned long long got,
		 unsigned long long want)
{
	if (got != want && speak())
		printf("%s:%d: %s: expected %llu (0x%llx), got %llu (0x%llx)\n", file, line, expr,
		       want, want, got, got);
	return count(got == want);
}

bool check_code(const char *file, int line, const char *expr, long got, long want)
{
	if (got != want && speak())
		printf("%s:%d: %s: expected %ld (%s), got %ld (%s)\n", file, line, expr, want,
		       code_text(want), got, code_text(got));
	return count(got == want);
}

bool check_error(const char *file, int line, const char *expr, long got)
{
	bool held = got < 0 && got != -FI_EAGAIN;

	if (!held && speak())
		printf("%s:%d: %s: expected an error, got %ld (%s)\n", file, line, expr, got,
		       code_text(got));
	return count(held);
}

static void print_failure(const char *format, va_list args)
{
	printf("failed: ");
	vprintf(format, args);
	printf("\n");
}

void check_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (speak())
		print_failure(format, args);
	va_end(args);
	count(false);
}

void check_require(bool held)
{
	if (!held)
		check_fatal("the program cannot go on after the line above");
}

void check_fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_failure(format, args);
	va_end(args);
	count(false);
	/* Objects stay open: a provider could hang while it cleans up. */
	fflush(stdout);
	_exit(CHECK_FAIL);
}

unsigned long check_passed(void)
{
	return passed;
}

unsigned long check_failed(void)
{
	return failed;
}
