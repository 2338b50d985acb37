/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Consumers: each one's own question, and the answer; doc/consumers.md is the table of both.
 * contrib/ci/consumer-table prints it.
 */
#include "consumers.h"

#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/info.h"
#include "api/ports.h"
#include "api/prov.h"
#include "base/log.h"

enum { LINE_MAX_LEN = 256, PAGE_MAX = 16384, DOMAIN_ATTR_MAX = 256 };

static struct verve_net_port *ports;
static size_t port_count;
static char refusal[LINE_MAX_LEN]; /* the last of verve's lines that begins so */

/* In place of libfabric's. */
int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	(void)prov;
	(void)level;
	(void)subsys;
	return 1;
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	static const char begin[] = "nothing for these hints: ";
	char text[LINE_MAX_LEN];
	va_list args;

	(void)prov;
	(void)level;
	(void)subsys;
	(void)func;
	(void)line;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	text[strcspn(text, "\n")] = '\0';
	if (!strncmp(text, begin, strlen(begin)))
		snprintf(refusal, sizeof(refusal), "%s", text + strlen(begin));
}

static void setup(void)
{
	verve_log_provider = &verve_prov;
	ports_make(&ports, &port_count);
}

static void teardown(void)
{
	ports_free(ports, port_count);
}

TestSuite(consumers, .init = setup, .fini = teardown);

struct answer {
	enum consumer_verdict verdict;
	bool is_asked;		/* libfabric asks verve */
	char log[LINE_MAX_LEN]; /* why not, or why not at once; empty: no reason */
};

/* libfabric asks the provider that is named last. */
static bool is_asked(const struct consumer *consumer)
{
	const char *last = consumer->prov_name ? strrchr(consumer->prov_name, ';') : NULL;

	return !consumer->prov_name || !strcmp(last ? last + 1 : consumer->prov_name, "verve");
}

static struct fi_info *get(uint32_t version, const struct fi_info *hints)
{
	struct fi_info *info = NULL;

	refusal[0] = '\0';
	if (verve_info_choose(ports, port_count, version, NULL, NULL, 0, hints, &info))
		return NULL;
	return info;
}

/* Longer than the headers' structure, as a later version's is. */
static struct fi_info *alloc_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	cr_assert_not_null(hints);
	free(hints->domain_attr);
	hints->domain_attr = calloc(1, DOMAIN_ATTR_MAX);
	cr_assert_not_null(hints->domain_attr);
	return hints;
}

static struct fi_info *first_hints(const struct consumer *consumer)
{
	struct fi_info *hints = alloc_hints(), *offered;

	if (consumer->adopts) {
		offered = get(FI_VERSION(0, 0), NULL);
		cr_assert_not_null(offered);
		hints->caps = offered->caps;
		fi_freeinfo(offered);
	}
	consumer->ask(hints);
	return hints;
}

static bool accepts(const struct consumer *consumer, const struct fi_info *info)
{
	return !consumer->accepts || consumer->accepts(info);
}

static struct answer ask(const struct consumer *consumer)
{
	struct answer answer = {.verdict = CONSUMER_RUNS, .is_asked = is_asked(consumer)};
	struct fi_info *hints = first_hints(consumer), *info;
	unsigned attempt = 0;

	for (info = get(consumer->version, hints); !info; info = get(consumer->version, hints)) {
		answer.verdict = CONSUMER_LIMITED;
		memcpy(answer.log, refusal, sizeof(answer.log));
		if (!consumer->ask_less || !consumer->ask_less(hints, ++attempt))
			break;
	}
	if (!info || !answer.is_asked)
		answer.verdict = CONSUMER_REFUSED;
	else
		cr_expect(accepts(consumer, info), "%s, %s: it does not accept the answer",
			  consumer->name, consumer->part);
	if (info && !(hints->caps & FI_RMA_EVENT))
		cr_expect_not(info->caps & FI_RMA_EVENT);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return answer;
}

Test(consumers, get_what_is_expected)
{
	for (size_t i = 0; i < consumer_count; i++) {
		const struct consumer *consumer = &consumers[i];
		struct answer answer = ask(consumer);

		cr_expect_eq(answer.verdict, consumer->verdict, "%s, %s: %s", consumer->name,
			     consumer->part, answer.log);
		cr_expect_eq(!consumer->log, !answer.log[0], "%s, %s: %s", consumer->name,
			     consumer->part, answer.log);
		if (consumer->log)
			cr_expect_not_null(strstr(answer.log, consumer->log), "%s, %s: %s",
					   consumer->name, consumer->part, answer.log);
	}
}

/* MPICH takes whatever it is offered: nothing that makes a put wait for the target. */
Test(consumers, mpich_adopts_nothing_that_costs)
{
	for (size_t i = 0; i < consumer_count; i++) {
		struct fi_info *hints = first_hints(&consumers[i]);

		if (consumers[i].adopts)
			cr_expect_not(hints->caps & (FI_RMA_EVENT | FI_SOURCE));
		fi_freeinfo(hints);
	}
}

static const char head[] =
	"<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n"
	"# Consumers\n\n"
	"What applications ask *fi_getinfo*, as read in their sources (the tag or commit that was read stands beside;\n"
	"*expected*: there is no such source), and what verve answers. That is all that the table shows: whether an application finds\n"
	"verve. What it does then, the tests of the lab show, or nothing does. A line of the log is one at `FI_LOG_LEVEL=info`.\n"
	"`make check` asks each question again and compares; `contrib/ci/consumer-table` prints this page.\n\n"
	"| application | part | read | version | answer |\n"
	"|---|---|---|---|---|\n";

static void print_answer(char *text, size_t room, const struct consumer *consumer)
{
	struct answer answer = ask(consumer);

	if (answer.verdict == CONSUMER_RUNS)
		snprintf(text, room, "would run");
	else if (answer.verdict == CONSUMER_LIMITED)
		snprintf(text, room, "runs with limits, after `%s`", answer.log);
	else if (answer.is_asked)
		snprintf(text, room, "refused: `%s`", answer.log);
	else
		snprintf(text, room, "refused: libfabric asks `%s`, not verve%s%s%s",
			 consumer->prov_name, answer.log[0] ? "; verve would say `" : "",
			 answer.log, answer.log[0] ? "`" : "");
}

static void print_version(char *text, size_t room, const struct consumer *consumer)
{
	if (consumer->adopts)
		snprintf(text, room, "none, then libfabric's");
	else
		snprintf(text, room, "%u.%u", FI_MAJOR(consumer->version),
			 FI_MINOR(consumer->version));
}

static void print_page(char *page)
{
	size_t len = snprintf(page, PAGE_MAX, "%s", head);

	for (size_t i = 0; i < consumer_count; i++) {
		const struct consumer *consumer = &consumers[i];
		char text[2 * LINE_MAX_LEN], version[32];

		print_answer(text, sizeof(text), consumer);
		print_version(version, sizeof(version), consumer);
		len += snprintf(page + len, PAGE_MAX - len, "| %s | %s | %s | %s | %s |\n",
				consumer->name, consumer->part, consumer->source, version, text);
		cr_assert_lt(len, PAGE_MAX);
	}
}

/* To the file that VERVE_CONSUMERS names instead, if it is set. */
Test(consumers, page_is_what_they_get)
{
	static char page[PAGE_MAX], text[PAGE_MAX + 1];
	const char *out = getenv("VERVE_CONSUMERS");
	FILE *file = fopen(out ? out : TOP "/doc/consumers.md", out ? "w" : "r");

	cr_assert_not_null(file);
	print_page(page);
	if (out)
		cr_assert_geq(fputs(page, file), 0);
	else
		text[fread(text, 1, PAGE_MAX, file)] = '\0';
	cr_assert_eq(fclose(file), 0);
	if (!out)
		cr_expect_str_eq(text, page, "doc/consumers.md: contrib/ci/consumer-table BUILD >it");
}
