/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Told: the lines that the provider's code writes into its log while the tool runs it. The lines
 * are kept instead of printed: they give the reasons. Source: fi_log of rdma/providers/fi_log.h.
 * told.c defines fi_log for the whole process, the loaded provider included. Any thread.
 */
#ifndef VERVE_UTIL_TOLD_H
#define VERVE_UTIL_TOLD_H

#include <stddef.h>

enum { VERVE_TOLD_LINE_MAX = 256 };

/* Forgets all lines. */
void verve_told_clear(void);

/* How many lines there are; the oldest are forgotten when they are too many. */
size_t verve_told_count(void);

/* Copies line index, without its newline, into buf of VERVE_TOLD_LINE_MAX bytes. */
const char *verve_told_line(size_t index, char *buf);

/* The same of the last line that begins with begin, without begin. NULL: there is none. */
const char *verve_told_last(const char *begin, char *buf);

#endif
