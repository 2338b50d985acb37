/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* opts: parsing of the shared command line; owns the default and the "all" size lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/check.h"
#include "common/opts.h"

#define KIB 1024ul
#define MIB (1024ul * KIB)

/* Sizes on both sides of every limit that a provider is likely to have. */
static const size_t default_sizes[] = {
	0, 1, 7, 8, 63, 64, 65, 255, 256, 1023, 1024, 4095, 4096, 8192, 16383, 16384, 16385, 65536,
	65537, 1 * MIB + 1,
};

static const size_t all_sizes[] = {
	0, 1, 2, 7, 8, 9, 15, 16, 31, 32, 63, 64, 65, 127, 128, 191, 192, 255, 256, 511, 512,
	1023, 1024, 2047, 2048, 4095, 4096, 4097, 8191, 8192, 8193, 16383, 16384, 16385, 32768,
	65535, 65536, 65537, 262144, 1 * MIB - 1, 1 * MIB, 1 * MIB + 1, 4 * MIB, 8 * MIB - 1,
	8 * MIB, 8 * MIB + 1, 16 * MIB,
};

static const size_t huge_sizes[] = { 1024 * MIB + 4097 };

static void usage_exit(const struct opts_usage *usage)
{
	printf("usage: %s [options]%s\n%s\n\n", usage->name, usage->pair ? " [server]" : "",
	       usage->about);
	if (usage->pair)
		printf("Start it without an address on one machine (the server), then with the\n"
		       "server's address on the other.\n\n");
	printf("  -p NAME       provider\n"
	       "  -f NAME       fabric\n"
	       "  -d NAME       domain (device)\n"
	       "  -s ADDR       source address of the endpoint\n"
	       "  -B PORT       source port of the endpoint\n"
	       "  -P PORT       the server's endpoint port: resolve it instead of exchanging it\n"
	       "  -E[=PORT]     port of the out-of-band TCP connection (default 9228); also -b\n"
	       "  -o NAME,...   only these cases (-l lists them)\n"
	       "  -l            list the cases\n"
	       "  -S SIZE,...   sizes in bytes, with k, m or g; or all; or huge (over 1 GiB)\n"
	       "  -I N          iterations\n"
	       "  -w N          warm-up iterations\n"
	       "  -W N          operations in flight\n"
	       "  -c HOW        wait for completions by: spin (default), yield, sread, fd\n"
	       "  -U            ask for FI_DELIVERY_COMPLETE\n"
	       "  -v            verify data (test programs always do)\n"
	       "  -T SECONDS    give up a wait after this long without progress (default 30)\n"
	       "  -R            a missing capability is a failure instead of a skip\n"
	       "  -h            this text\n\n"
	       "Exit status: 0 passed, 1 failed, 77 skipped.\n");
	exit(CHECK_PASS);
}

static size_t parse_size(const char *text)
{
	char *end;
	size_t size = strtoull(text, &end, 0);

	if (end == text)
		check_fatal("-S %s: a size is a number of bytes", text);
	switch (*end) {
	case 'g':
		size *= 1024;
		/* fall through */
	case 'm':
		size *= 1024;
		/* fall through */
	case 'k':
		size *= 1024;
		end++;
	}
	if (*end)
		check_fatal("-S %s: unknown unit, use k, m or g", text);
	return size;
}

static void set_sizes(struct opts *opts, const size_t *sizes, size_t count)
{
	memcpy(opts->sizes, sizes, count * sizeof(*sizes));
	opts->size_count = count;
	opts->max_size = 0;
	for (size_t i = 0; i < count; i++)
		if (sizes[i] > opts->max_size)
			opts->max_size = sizes[i];
}

static void parse_sizes(struct opts *opts, char *text)
{
	size_t sizes[OPTS_MAX_SIZES], count = 0;
	char *rest = NULL;

	if (!strcmp(text, "all")) {
		set_sizes(opts, all_sizes, sizeof(all_sizes) / sizeof(*all_sizes));
		return;
	}
	if (!strcmp(text, "huge")) {
		set_sizes(opts, huge_sizes, sizeof(huge_sizes) / sizeof(*huge_sizes));
		return;
	}
	for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (count == OPTS_MAX_SIZES)
			check_fatal("-S: at most %d sizes", OPTS_MAX_SIZES);
		sizes[count++] = parse_size(word);
	}
	if (!count)
		check_fatal("-S: no size given");
	set_sizes(opts, sizes, count);
}

static unsigned parse_number(int letter, const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (end == text || *end || value > 1000000000ul)
		check_fatal("-%c %s: a number from 0 to 1000000000", letter, text);
	return (unsigned)value;
}

static enum opts_method parse_method(const char *text)
{
	static const char *const names[] = {
		[OPTS_SPIN] = "spin", [OPTS_YIELD] = "yield",
		[OPTS_SREAD] = "sread", [OPTS_FD] = "fd",
	};

	for (int i = 0; i <= OPTS_FD; i++)
		if (!strcmp(text, names[i]))
			return (enum opts_method)i;
	check_fatal("-c %s: use spin, yield, sread or fd", text);
}

static const char *parse_port(const char *text)
{
	if (!text)
		return "9228";
	return *text == '=' ? text + 1 : text;
}

static bool parse_flag(struct opts *opts, int letter)
{
	switch (letter) {
	case 'U':
		opts->delivery = true;
		return true;
	case 'v':
		opts->verify = true;
		return true;
	case 'R':
		opts->require = true;
		return true;
	case 'l':
		opts->list = true;
		return true;
	}
	return false;
}

static bool parse_string(struct opts *opts, int letter, char *text)
{
	switch (letter) {
	case 'p':
		opts->prov_name = text;
		return true;
	case 'f':
		opts->fabric_name = text;
		return true;
	case 'd':
		opts->domain_name = text;
		return true;
	case 's':
		opts->src_addr = text;
		return true;
	case 'B':
		opts->src_port = text;
		return true;
	case 'P':
		opts->dst_port = text;
		return true;
	case 'o':
		opts->op = text;
		return true;
	case 'b':
	case 'E':
		opts->oob_port = parse_port(text);
		return true;
	}
	return false;
}

static bool parse_value(struct opts *opts, int letter, char *text)
{
	switch (letter) {
	case 'S':
		parse_sizes(opts, text);
		return true;
	case 'I':
		opts->iterations = parse_number(letter, text);
		return true;
	case 'w':
		opts->warmup = parse_number(letter, text);
		return true;
	case 'W':
		opts->window = parse_number(letter, text);
		return true;
	case 'T':
		opts->timeout = parse_number(letter, text);
		return true;
	case 'c':
		opts->method = parse_method(text);
		return true;
	}
	return false;
}

void opts_parse(struct opts *opts, const struct opts_usage *usage, int argc, char **argv)
{
	int letter;

	*opts = (struct opts){ .oob_port = "9228", .warmup = 10, .window = 64, .timeout = 30 };
	set_sizes(opts, default_sizes, sizeof(default_sizes) / sizeof(*default_sizes));
	while ((letter = getopt(argc, argv, "p:f:d:s:B:P:o:b::E::S:I:w:W:T:c:UvRlh")) != -1) {
		if (letter == 'h')
			usage_exit(usage);
		if (letter == '?')
			check_fatal("%s: see %s -h", usage->name, usage->name);
		if (!parse_flag(opts, letter) && !parse_string(opts, letter, optarg))
			parse_value(opts, letter, optarg);
	}
	if (optind < argc && usage->pair)
		opts->dst_addr = argv[optind++];
	if (optind < argc)
		check_fatal("%s: unexpected argument %s", usage->name, argv[optind]);
	if (!opts->window)
		check_fatal("-W: at least one operation in flight");
}

bool opts_selects(const struct opts *opts, const char *name)
{
	size_t len = strlen(name);
	const char *at = opts->op;

	if (!at || !strcmp(at, "all"))
		return true;
	while ((at = strstr(at, name))) {
		bool starts = at == opts->op || at[-1] == ',';

		if (starts && (at[len] == ',' || !at[len]))
			return true;
		at += len;
	}
	return false;
}
