/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Told: a ring of lines, and the functions of libfabric's log that fill it. */
#include "told.h"

#include <pthread.h>
#include <rdma/providers/fi_log.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A large host has some hundred ports, each with lines about several addresses. */
enum { LINES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES][VERVE_TOLD_LINE_MAX];
static size_t first, count; /* of the ring */

/* Debug lines come all the time: only warnings and information are kept. */
int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	(void)prov;
	(void)subsys;
	return level <= FI_LOG_INFO;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	char *text;
	va_list args;

	(void)prov;
	(void)level;
	(void)subsys;
	(void)func;
	(void)line;
	pthread_mutex_lock(&lock);
	text = lines[(first + count) % LINES];
	if (count < LINES)
		count++;
	else
		first = (first + 1) % LINES;
	va_start(args, fmt);
	vsnprintf(text, VERVE_TOLD_LINE_MAX, fmt, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	pthread_mutex_unlock(&lock);
}

void verve_told_clear(void)
{
	pthread_mutex_lock(&lock);
	first = count = 0;
	pthread_mutex_unlock(&lock);
}

size_t verve_told_count(void)
{
	size_t now;

	pthread_mutex_lock(&lock);
	now = count;
	pthread_mutex_unlock(&lock);
	return now;
}

const char *verve_told_line(size_t index, char *buf)
{
	pthread_mutex_lock(&lock);
	snprintf(buf, VERVE_TOLD_LINE_MAX, "%s",
		 index < count ? lines[(first + index) % LINES] : "");
	pthread_mutex_unlock(&lock);
	return buf;
}

const char *verve_told_last(const char *begin, char *buf)
{
	char line[VERVE_TOLD_LINE_MAX];
	size_t len = strlen(begin);

	for (size_t i = verve_told_count(); i--;) {
		verve_told_line(i, line);
		if (strncmp(line, begin, len))
			continue;
		snprintf(buf, VERVE_TOLD_LINE_MAX, "%s", line + len);
		return buf;
	}
	return NULL;
}
