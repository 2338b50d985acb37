/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For tests of what users are warned of. A test reads its own standard error. */
#ifndef VERVE_TEST_SUPPORT_WARNINGS_H
#define VERVE_TEST_SUPPORT_WARNINGS_H

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>

/* To be called before all else of libfabric, which reads FI_LOG_LEVEL at the first call. */
static inline void warnings_start(void)
{
	struct fi_param *params;
	int count;

	setenv("FI_LOG_LEVEL", "warn", 1);
	setenv("FI_LOG_PROV", "verve", 1);
	cr_redirect_stderr();
	cr_assert_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
}

/* What was written since the last call. Overwritten by the next one. */
static inline const char *warnings_take(void)
{
	static char text[4096];
	size_t len;

	fflush(stderr);
	len = fread(text, 1, sizeof(text) - 1, cr_get_redirected_stderr());
	text[len] = '\0';
	return text;
}

#endif
