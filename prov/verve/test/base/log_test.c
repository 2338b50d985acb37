/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log: messages reach libfabric's log, under the provider's name, at their level. */
#include "base/log.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fi_provider provider = {.name = "verve"};
static char text[4096];

/* libfabric reads FI_LOG_LEVEL at the first call of any of its functions. */
static void start(const char *level)
{
	struct fi_param *params;
	int count;

	setenv("FI_LOG_LEVEL", level, 1);
	setenv("FI_LOG_PROV", "verve", 1);
	setenv("FI_PROVIDER", "verve", 1);
	setenv("FI_PROVIDER_PATH", "/nonexistent", 1);
	cr_assert_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
	cr_redirect_stderr(); /* from here on, without libfabric's own messages at its start */
	verve_log_provider = &provider;
}

static void write_all(void)
{
	FILE *file;
	size_t len;

	VERVE_WARN(EP_CTRL, "a warning %d\n", 1);
	VERVE_INFO(MR, "a notice %s\n", "two");
	VERVE_TRACE(EP_DATA, "a trace %#x\n", 3);
	fflush(stderr);
	file = cr_get_redirected_stderr();
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
}

Test(log, warnings_alone_by_default)
{
	start("warn");
	write_all();
	cr_expect_not_null(strstr(text, "a warning 1\n"));
	cr_expect_not_null(strstr(text, ":verve:ep_ctrl:"));
	cr_expect_null(strstr(text, "a notice"));
	cr_expect_null(strstr(text, "a trace"));
}

Test(log, notices_if_asked_for)
{
	start("info");
	write_all();
	cr_expect_not_null(strstr(text, "a warning 1\n"));
	cr_expect_not_null(strstr(text, "a notice two\n"));
	cr_expect_not_null(strstr(text, ":verve:mr:"));
}
