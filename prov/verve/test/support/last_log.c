/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "last_log.h"

#include <stdarg.h>
#include <stdio.h>

char last_log[1024];
enum fi_log_level last_log_level = FI_LOG_INFO;

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	(void)prov, (void)subsys;
	return level <= last_log_level;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *format, ...)
{
	va_list args;

	(void)prov, (void)level, (void)subsys, (void)func, (void)line;
	va_start(args, format);
	vsnprintf(last_log, sizeof(last_log), format, args);
	va_end(args);
}
