/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suite: walks the cases of a program, on both sides in step, and says how they went. */
#include "common/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "common/check.h"
#include "common/node.h"

/* The capabilities of a case must be offered on both halves. */
static bool offered(struct env *env, const struct suite *suite, const struct suite_case *c)
{
	char mine = node_offered(env, c->caps), theirs = mine;

	if (suite->usage.pair)
		oob_exchange(&env->oob, &mine, 1, &theirs, 1);
	return mine && theirs;
}

/* Returns whether the case ran. */
static bool run_case(struct env *env, const struct suite *suite, const struct suite_case *c)
{
	unsigned long passed = check_passed(), failed = check_failed();

	check_begin();
	if (suite->usage.pair)
		env_sync(env, c->name);
	if (!offered(env, suite, c)) {
		char *caps = fi_tostr(&c->caps, FI_TYPE_CAPS);

		printf("%s: %s: the provider does not offer %s\n", c->name,
		       env->opts.require ? "failed" : "skipped", caps);
		if (env->opts.require)
			check_fail("%s: a capability is missing", c->name);
		return false;
	}
	c->run(env);
	if (!LIST_EMPTY(&env->members))
		check_fatal("%s left a node open", c->name);
	failed = check_failed() - failed;
	printf("%s: %s (%lu checks)\n", c->name, failed ? "FAILED" : "ok",
	       check_passed() - passed + failed);
	return true;
}

static void list_cases(const struct suite *suite)
{
	for (size_t i = 0; i < suite->count; i++)
		printf("%s\n", suite->cases[i].name);
}

static void meet(struct env *env, const struct suite *suite)
{
	env->oob = (struct oob){ .fd = -1, .timeout = env->opts.timeout };
	env->server = !env->opts.dst_addr;
	if (!suite->usage.pair)
		return;
	if (env->server)
		oob_serve(&env->oob, env->opts.oob_port);
	else
		oob_connect(&env->oob, env->opts.dst_addr, env->opts.oob_port);
	env->oob.progress = env_wait;
	env->oob.arg = env;
}

/* A provider that is not there at all is a failure, never a skip. */
static void require_provider(struct env *env)
{
	const struct opts *opts = &env->opts;

	if (!node_offered(env, FI_MSG))
		check_fatal("provider %s has no reliable-datagram endpoint%s%s: see fi_info -p",
			    opts->prov_name ? opts->prov_name : "(any)",
			    opts->src_addr ? " at " : "", opts->src_addr ? opts->src_addr : "");
}

int suite_main(const struct suite *suite, int argc, char **argv)
{
	struct env env = { .members = LIST_HEAD_INITIALIZER(env.members) };
	size_t selected = 0, ran = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	opts_parse(&env.opts, &suite->usage, argc, argv);
	if (env.opts.list) {
		list_cases(suite);
		return CHECK_PASS;
	}
	require_provider(&env);
	meet(&env, suite);
	for (size_t i = 0; i < suite->count; i++) {
		if (!opts_selects(&env.opts, suite->cases[i].name))
			continue;
		selected++;
		ran += run_case(&env, suite, &suite->cases[i]);
	}
	oob_close(&env.oob);
	if (!selected)
		check_fatal("-o %s: no such case, -l lists them", env.opts.op);
	printf("%s: %lu checks passed, %lu failed, %zu of %zu cases ran\n", suite->usage.name,
	       check_passed(), check_failed(), ran, selected);
	if (check_failed())
		return CHECK_FAIL;
	return ran ? CHECK_PASS : CHECK_SKIP;
}
