/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * opts: the command line that all test programs share. Option letters are those of libfabric's own
 * test programs. Strings point into argv.
 */
#ifndef FABTESTS_OPTS_H
#define FABTESTS_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTS_MAX_SIZES 64

/* How a program waits for completions: -c. */
enum opts_method {
	OPTS_SPIN,
	OPTS_YIELD,
	OPTS_SREAD,
	OPTS_FD,
};

struct opts {
	const char *prov_name;   /* -p */
	const char *fabric_name; /* -f */
	const char *domain_name; /* -d */
	const char *src_addr;    /* -s: fabric source address */
	const char *src_port;    /* -B: fabric source port */
	const char *dst_port;    /* -P: the server's fabric port: resolve it, do not exchange it */
	const char *dst_addr;    /* positional: the server's out-of-band address; NULL: we serve */
	const char *oob_port;    /* -E, -b: TCP port of the out-of-band connection */
	const char *op;          /* -o: comma-separated names, NULL for all */
	size_t sizes[OPTS_MAX_SIZES]; /* -S: bytes */
	size_t size_count;
	size_t max_size;      /* the largest of sizes */
	unsigned iterations;  /* -I; 0: the program's own default */
	unsigned warmup;      /* -w */
	unsigned window;      /* -W: operations in flight */
	unsigned timeout;     /* -T: seconds without progress until a wait is a failure */
	enum opts_method method;
	bool delivery;        /* -U: FI_DELIVERY_COMPLETE */
	bool verify;          /* -v */
	bool require;         /* -R: a missing capability is a failure, not a skip */
	bool list;            /* -l: print the names that -o takes, then end */
};

/* A program's part of the usage text. */
struct opts_usage {
	const char *name;
	const char *about;
	bool pair; /* runs as server and client */
};

/*
 * Fills opts from the command line. Ends the program after -h (status 0) or after a mistake (status
 * 1, with a line that explains it).
 */
void opts_parse(struct opts *opts, const struct opts_usage *usage, int argc, char **argv);

/* Whether -o selects name. */
bool opts_selects(const struct opts *opts, const char *name);

#endif
