/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's log, caught: these take the place of libfabric's functions in the test program, so
 * that a warning where nothing is wrong is a failure, and one that is expected does not disturb.
 */
#include <rdma/providers/fi_log.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static uint32_t warnings;
static bool are_expected;
static char last[1024];

uint32_t sim_log_warnings(void)
{
	return warnings;
}

void sim_log_reset(bool expected)
{
	warnings = 0;
	are_expected = expected;
	last[0] = '\0';
}

const char *sim_log_last(void)
{
	return last;
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	(void)prov;
	(void)subsys;
	return level == FI_LOG_WARN || getenv("VERVE_TRACE");
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	bool trace = getenv("VERVE_TRACE"), warning = level == FI_LOG_WARN;
	char text[sizeof(last)];
	va_list args;

	(void)prov;
	(void)subsys;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (trace || (warning && !are_expected))
		fprintf(stderr, "[%12.3f] %s: %s:%d: %s", fake_net_time() / 1e3,
			warning ? "warning" : "log", func, line, text);
	if (warning) {
		warnings++;
		memcpy(last, text, sizeof(last));
	}
}

void sim_trace(const char *fmt, ...)
{
	va_list args;

	if (!getenv("VERVE_TRACE"))
		return;
	fprintf(stderr, "[%12.3f] ", fake_net_time() / 1e3);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}
