/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_stat: what do the processes of this host do with verve now? See verve_stat(1). */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"
#include "stat_print.h"

static const char help[] =
	"usage: verve_stat [OPTION]...\n"
	"Says what the processes of this host do with libfabric's provider verve, now.\n"
	"\n"
	"  -w, --watch[=SECONDS] looks again every second, or so many seconds, and prints rates\n"
	"  -n, --count=COUNT     ends after so many looks\n"
	"  -e, --events=PEER     the last events of this peer (ADDRESS[:PORT]), in all processes\n"
	"  -v, --verbose         every number of each peer that is not zero\n"
	"  -j, --json            prints JSON\n"
	"  -p, --prometheus      prints the text format of Prometheus\n"
	"  -d, --folder=FOLDER   looks there (FI_VERVE_STAT)\n"
	"  -h, --help            this\n"
	"  -V, --version         the version\n"
	"\n"
	"Exit status: 0; 1 there is no such peer; 2 wrong usage, or the folder cannot be read.\n"
	"Manual page: verve_stat(1).\n";

static const struct option longs[] = {
	{"watch", optional_argument, NULL, 'w'},  {"count", required_argument, NULL, 'n'},
	{"events", required_argument, NULL, 'e'}, {"verbose", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},	  {"prometheus", no_argument, NULL, 'p'},
	{"folder", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},	  {NULL, 0, NULL, 0},
};

struct asked {
	double seconds;	     /* 0: looks once */
	unsigned long count; /* 0: for ever */
	const char *events, *folder;
	bool named; /* the folder, by the option: it must be there */
	bool verbose, json, prometheus;
};

static bool to_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = text ? strtod(text, &end) : 1;
	return !text ||
	       (end != text && !*end && isfinite(*seconds) && *seconds > 0 && *seconds <= 86400);
}

static bool to_count(const char *text, unsigned long *count)
{
	char *end;

	*count = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *count;
}

/* False, and a line that says why. */
static bool expect(bool is_right, const char *what)
{
	if (!is_right)
		fprintf(stderr, "verve_stat: %s\n", what);
	return is_right;
}

/* False: the option ends the program. */
static bool take(int option, struct asked *asked, int *status)
{
	*status = VERVE_EXIT_USAGE;
	switch (option) {
	case 'w':
		return expect(to_seconds(optarg, &asked->seconds),
			      "--watch takes seconds, above 0 and up to 86400");
	case 'n':
		return expect(to_count(optarg, &asked->count), "--count takes a number from 1 on");
	case 'e':
		asked->events = optarg;
		return true;
	case 'd':
		asked->folder = optarg;
		return asked->named = true;
	case 'v':
		return asked->verbose = true;
	case 'j':
		return asked->json = true;
	case 'p':
		return asked->prometheus = true;
	case 'h':
	case 'V':
		*status = VERVE_EXIT_YES;
		fputs(option == 'h' ? help : "verve_stat " VERSION "\n", stdout);
		return false;
	default:
		return false;
	}
}

static bool parse(int argc, char **argv, struct asked *asked, int *status)
{
	const char *folder = getenv("FI_VERVE_STAT");
	int option;

	*asked = (struct asked){0};
	/* Of another value, processes use the default (base/config.c). */
	if (folder && *folder == '/')
		asked->folder = folder;
	while ((option = getopt_long(argc, argv, "w::n:e:vjpd:hV", longs, NULL)) != -1)
		if (!take(option, asked, status))
			return false;
	*status = VERVE_EXIT_USAGE;
	return expect(optind == argc, "an argument without an option (seconds are given as -w2, or "
		      "--watch=2)") &&
	       expect(!!asked->events + asked->json + asked->prometheus + !!asked->seconds <= 1,
		      "--events, --json, --prometheus and --watch exclude each other");
}

/*
 * Root looks at all users' pages, and any user may fill some, so each user has a bound there. An
 * entry takes up to 25 kB where every number of it is printed, and 400 bytes in the table.
 */
static size_t entries_max(const struct asked *asked)
{
	if (asked->folder || geteuid())
		return SIZE_MAX;
	return asked->verbose || asked->json || asked->prometheus ? 2048 : 16384;
}

static int look_at(const struct asked *asked, struct verve_stat_look *look)
{
	int ret = verve_stat_host_read(&look->host, asked->folder, entries_max(asked));

	/* Processes make the variable's folder; one that is named here may have a typing error. */
	if (!ret && asked->named && access(asked->folder, F_OK))
		ret = -errno;
	if (ret)
		fprintf(stderr, "verve_stat: %s: %s\n",
			asked->folder ? asked->folder : "the folder of the pages",
			ret == -FI_EPERM ? "it must be your own, of mode 700" : fi_strerror(-ret));
	verve_stat_device_read(&look->device, "/sys");
	verve_stat_qps_read(&look->qps);
	return ret;
}

/* Once: it would come again and again with --watch. */
static void tell_foreign(const struct verve_stat_look *look)
{
	if (look->host.foreign)
		fprintf(stderr, "verve_stat: processes of another version of verve than " VERSION
			", which are not shown: %zu\n", look->host.foreign);
}

static void look_fini(struct verve_stat_look *look)
{
	verve_stat_host_fini(&look->host);
	verve_stat_device_fini(&look->device);
	verve_stat_qps_fini(&look->qps);
}

static enum verve_exit print_once(const struct asked *asked, const struct verve_stat_look *look)
{
	if (asked->events) {
		if (verve_stat_print_events(stdout, look, asked->events))
			return VERVE_EXIT_YES;
		fprintf(stderr, "verve_stat: no process here has a peer %s\n", asked->events);
		return VERVE_EXIT_NO;
	}
	if (asked->json)
		verve_stat_print_json(stdout, look);
	else if (asked->prometheus)
		verve_stat_print_prometheus(stdout, look);
	else
		verve_stat_print(stdout, look, NULL, asked->verbose);
	return VERVE_EXIT_YES;
}

static enum verve_exit look_once(const struct asked *asked)
{
	enum verve_exit status = VERVE_EXIT_USAGE;
	struct verve_stat_look look;
	bool failed = look_at(asked, &look);

	tell_foreign(&look);
	if (!failed)
		status = print_once(asked, &look);
	look_fini(&look);
	return status;
}

static void wait_for(double seconds)
{
	struct timespec left = {.tv_sec = seconds, .tv_nsec = fmod(seconds, 1) * 1e9};

	while (nanosleep(&left, &left))
		;
}

static enum verve_exit watch(const struct asked *asked)
{
	struct verve_stat_look look, before;
	bool failed = look_at(asked, &look);

	tell_foreign(&look);
	for (unsigned long i = 0; !failed && (!asked->count || i < asked->count); i++) {
		wait_for(asked->seconds);
		before = look;
		failed = look_at(asked, &look);
		/* Home, and nothing below: the terminal's lines are written over, without a
		 * flicker. */
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[J", stdout);
		if (!failed)
			verve_stat_print(stdout, &look, &before, asked->verbose);
		look_fini(&before);
		failed |= fflush(stdout) || ferror(stdout);
	}
	look_fini(&look);
	return failed ? VERVE_EXIT_USAGE : VERVE_EXIT_YES;
}

int main(int argc, char **argv)
{
	enum verve_exit result;
	struct asked asked;
	int status;

	if (!parse(argc, argv, &asked, &status)) {
		if (status == VERVE_EXIT_USAGE)
			fputs("try: verve_stat --help\n", stderr);
		return status;
	}
	result = asked.seconds ? watch(&asked) : look_once(&asked);
	if (!fflush(stdout) && !ferror(stdout))
		return result;
	fprintf(stderr, "verve_stat: cannot write: %s\n", strerror(errno));
	return VERVE_EXIT_USAGE;
}
