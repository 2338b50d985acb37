/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * check: the checks of a test program. Every check is counted; a failed one prints file, line,
 * expression, expected value and actual value. Any thread.
 */
#ifndef FABTESTS_CHECK_H
#define FABTESTS_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses of every test program. */
enum check_exit {
	CHECK_PASS = 0,
	CHECK_FAIL = 1,
	CHECK_SKIP = 77,
};

/* A new case begins: failures are printed again, up to ten. */
void check_begin(void);

/* Each returns whether the check held. */
bool check_true(const char *file, int line, const char *expr, bool got);
bool check_equal(const char *file, int line, const char *expr, unsigned long long got,
		 unsigned long long want);
/* For libfabric return codes and errnos, of either sign; prints their text. */
bool check_code(const char *file, int line, const char *expr, long got, long want);
/* got is a negative error, other than -FI_EAGAIN. */
bool check_error(const char *file, int line, const char *expr, long got);

#define CHECK(expr) check_true(__FILE__, __LINE__, #expr, (expr))
#define CHECK_EQ(got, want) \
	check_equal(__FILE__, __LINE__, #got, (unsigned long long)(got), (unsigned long long)(want))
#define CHECK_RET(got, want) check_code(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_ERROR(got) check_error(__FILE__, __LINE__, #got, (got))

/* Nothing after this can work: ends the program with CHECK_FAIL when the check does not hold. */
#define REQUIRE(expr) check_require(CHECK(expr))
#define REQUIRE_RET(got, want) check_require(CHECK_RET(got, want))

void check_require(bool held);
/* Counts one failure with its text and ends the program. */
_Noreturn void check_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts one failure with its text. */
void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

unsigned long check_passed(void);
unsigned long check_failed(void);

#endif
