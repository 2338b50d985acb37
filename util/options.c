/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options: getopt_long(3), the help, and whether there are colours. */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumers.h"

static const char help[] =
	"usage: verve_info [OPTION]...\n"
	"Says which RDMA ports libfabric's provider verve uses on this host, and why not "
	"the others.\n"
	"\n"
	"  -a, --as=APPLICATION  asks with that application's hints; --as=list names them\n"
	"  -s, --sizes           what is done with messages of which size\n"
	"  -T, --tune            what each device costs, measured, and what follows\n"
	"  -c, --config          the configuration in use, and where each value comes from\n"
	"  -l, --listen          serves verve_info --to of other hosts (UDP port 7471), "
	"until interrupted\n"
	"  -t, --to=HOST[:PORT]  tests the way to verve_info --listen there, step by step\n"
	"  -f, --from=ADDRESS    own address of --to and --listen\n"
	"  -v, --verbose         each GID, and the lines of the provider's log\n"
	"  -j, --json            prints JSON\n"
	"      --color=WHEN      always, never or auto (the default; NO_COLOR is heeded)\n"
	"  -h, --help            this\n"
	"  -V, --version         the version\n"
	"\n"
	"Marks: - refused (cause: remedy), ! warning, + used.\n"
	"Exit status: 0 verve is used, or what was asked for works; 1 it is not; 2 wrong usage.\n"
	"Manual page: verve_info(1).\n";

enum { OPTION_COLOR = 256 };

static const struct option longs[] = {
	{"as", required_argument, NULL, 'a'},	 {"sizes", no_argument, NULL, 's'},
	{"tune", no_argument, NULL, 'T'},
	{"config", no_argument, NULL, 'c'},	 {"listen", no_argument, NULL, 'l'},
	{"to", required_argument, NULL, 't'},	 {"from", required_argument, NULL, 'f'},
	{"verbose", no_argument, NULL, 'v'},	 {"json", no_argument, NULL, 'j'},
	{"color", required_argument, NULL, OPTION_COLOR}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},	 {NULL, 0, NULL, 0},
};

static bool is_new(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(consumers[i].key, consumers[index].key))
			return false;
	return true;
}

static void print_keys(FILE *file)
{
	for (size_t i = 0; i < consumer_count; i++)
		if (is_new(i))
			fprintf(file, "%s\n", consumers[i].key);
}

static bool is_key(const char *text)
{
	for (size_t i = 0; i < consumer_count; i++)
		if (!strcmp(consumers[i].key, text))
			return true;
	return false;
}

/* NO_COLOR: no-color.org. */
static bool colour_by_default(void)
{
	const char *off = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(off && *off) && term && strcmp(term, "dumb");
}

static bool set_colour(const char *when, struct verve_options *options)
{
	if (!strcmp(when, "always"))
		options->colour = true;
	else if (!strcmp(when, "never"))
		options->colour = false;
	else if (strcmp(when, "auto")) {
		fprintf(stderr, "verve_info: --color takes always, never or auto, not %s\n", when);
		return false;
	}
	return true;
}

/* False: the option ends the program. */
static bool take(int option, struct verve_options *options, int *status)
{
	*status = VERVE_EXIT_YES;
	switch (option) {
	case 'a':
		options->as = optarg;
		return true;
	case 's':
		return options->sizes = true;
	case 'T':
		return options->tune = true;
	case 'c':
		return options->config = true;
	case 'l':
		return options->listen = true;
	case 't':
		options->to = optarg;
		return true;
	case 'f':
		options->from = optarg;
		return true;
	case 'v':
		return options->verbose = true;
	case 'j':
		return options->json = true;
	case OPTION_COLOR:
		*status = VERVE_EXIT_USAGE;
		return set_colour(optarg, options);
	case 'h':
		fputs(help, stdout);
		return false;
	case 'V':
		puts("verve_info " VERSION);
		return false;
	default:
		*status = VERVE_EXIT_USAGE;
		return false;
	}
}

bool verve_options_parse(int argc, char **argv, struct verve_options *options, int *status)
{
	int option;

	*options = (struct verve_options){.colour = colour_by_default()};
	while ((option = getopt_long(argc, argv, "a:sTclt:f:vjhV", longs, NULL)) != -1)
		if (!take(option, options, status))
			goto usage;
	*status = VERVE_EXIT_USAGE;
	if (optind < argc) {
		fprintf(stderr, "verve_info: %s belongs to no option\n", argv[optind]);
		goto usage;
	}
	if (options->to && options->listen) {
		fputs("verve_info: --to and --listen are two commands, for two hosts\n", stderr);
		goto usage;
	}
	if (options->as && !strcmp(options->as, "list")) {
		print_keys(stdout);
		*status = VERVE_EXIT_YES;
		return false;
	}
	if (!options->as || is_key(options->as))
		return true;
	fprintf(stderr, "verve_info: no application is called %s; these are:\n", options->as);
	print_keys(stderr);
	return false;
usage:
	if (*status == VERVE_EXIT_USAGE)
		fputs("try: verve_info --help\n", stderr);
	return false;
}
