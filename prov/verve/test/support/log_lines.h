/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests of what the log says. A test reads its own standard error. */
#ifndef VERVE_TEST_SUPPORT_LOG_LINES_H
#define VERVE_TEST_SUPPORT_LOG_LINES_H

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Call before all else of libfabric, which reads its variables at the first call. level: as
 * FI_LOG_LEVEL; provider: whose lines, NULL: all.
 */
static inline void log_start(const char *level, const char *provider)
{
	struct fi_param *params;
	int count;

	setenv("FI_LOG_LEVEL", level, 1);
	if (provider)
		setenv("FI_LOG_PROV", provider, 1);
	cr_redirect_stderr();
	cr_assert_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
}

/* The log's lines since the last call. The next call overwrites the returned text. */
static inline const char *log_take(void)
{
	static char text[65536];
	size_t len;

	fflush(stderr);
	len = fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr());
	text[len] = '\0';
	return text;
}

#endif
