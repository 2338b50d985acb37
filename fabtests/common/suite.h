/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * suite: the cases of a test program, and its main(). It stands above all others: nothing else in
 * this folder knows that there are cases.
 */
#ifndef FABTESTS_SUITE_H
#define FABTESTS_SUITE_H

#include <stddef.h>
#include <stdint.h>

#include "common/env.h"
#include "common/opts.h"

/* One named part of a program. It runs when getinfo offers caps on both sides. */
struct suite_case {
	const char *name;
	uint64_t caps;
	void (*run)(struct env *env);
};

struct suite {
	struct opts_usage usage;
	const struct suite_case *cases;
	size_t count;
};

/* main() of a test program: its exit status. */
int suite_main(const struct suite *suite, int argc, char **argv);

#endif
