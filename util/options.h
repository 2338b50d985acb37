/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options: the command line of verve_info. */
#ifndef VERVE_UTIL_OPTIONS_H
#define VERVE_UTIL_OPTIONS_H

#include <stdbool.h>

struct verve_options {
	bool json, verbose, colour;
	bool sizes, tune, config;
	bool listen;
	const char *to;	  /* peer; NULL: none */
	const char *from; /* own address of both; NULL: any */
	const char *as; /* key of consumers; NULL: not asked for */
};

/* Explains the exit statuses. */
enum verve_exit { VERVE_EXIT_YES, VERVE_EXIT_NO, VERVE_EXIT_USAGE };

/* True: go on. False: end with *status; help, version, or a message about the usage is printed. */
bool verve_options_parse(int argc, char **argv, struct verve_options *options, int *status);

#endif
