/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Consumers: the hints that each application gives, and the answer it gets. doc/consumers.md is the
 * table of both; contrib/ci/consumer-table prints it.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ports.h"
#include "api/prov.h"
#include "ask.h"
#include "base/log.h"
#include "consumers.h"

enum { LINE_MAX_LEN = 256, PAGE_MAX = 16384 };

static struct verve_net_port *ports;
static size_t port_count;

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

static struct verve_answer ask(const struct consumer *consumer)
{
	struct verve_answer answer;

	cr_assert_eq(verve_ask(consumer, ports, port_count, &answer), 0);
	cr_expect(answer.is_accepted, "%s, %s: it does not accept the answer", consumer->name,
		  consumer->part);
	cr_expect_not(answer.grants_events);
	return answer;
}

Test(consumers, get_what_is_expected)
{
	for (size_t i = 0; i < consumer_count; i++) {
		const struct consumer *consumer = &consumers[i];
		struct verve_answer answer = ask(consumer);

		cr_expect_eq(answer.verdict, consumer->verdict, "%s, %s: %s", consumer->name,
			     consumer->part, answer.log);
		cr_expect_eq(!consumer->log, !answer.log[0], "%s, %s: %s", consumer->name,
			     consumer->part, answer.log);
		if (consumer->log)
			cr_expect_not_null(strstr(answer.log, consumer->log), "%s, %s: %s",
					   consumer->name, consumer->part, answer.log);
	}
}

/*
 * MPICH uses everything that it is offered. So it must not be offered a capability that makes a put
 * wait for the target.
 */
Test(consumers, mpich_adopts_nothing_that_costs)
{
	for (size_t i = 0; i < consumer_count; i++) {
		struct fi_info *hints = verve_ask_hints(&consumers[i], ports, port_count);

		cr_assert_not_null(hints);
		if (consumers[i].adopts)
			cr_expect_not(hints->caps & (FI_RMA_EVENT | FI_SOURCE));
		fi_freeinfo(hints);
	}
}

static const char head[] = "<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n"
			   "# Consumers\n\n"
			   "What applications ask *fi_getinfo*, as read in their sources (the tag "
			   "or commit that was read stands beside;\n"
			   "*expected*: there is no such source), and what verve answers. That is "
			   "all that the table shows: whether an application finds\n"
			   "verve. What it does then, the tests of the lab show, or nothing does. "
			   "A line of the log is one at `FI_LOG_LEVEL=info`.\n"
			   "`make check` asks each question again and compares; "
			   "`contrib/ci/consumer-table` prints this page.\n\n"
			   "| application | part | read | version | answer |\n"
			   "|---|---|---|---|---|\n";

static void print_answer(char *text, size_t room, const struct consumer *consumer)
{
	struct verve_answer answer = ask(consumer);

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

/*
 * Compares the table with doc/consumers.md. If VERVE_CONSUMERS is set, writes the table to the file
 * that it names instead.
 */
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
		cr_expect_str_eq(text, page,
				 "doc/consumers.md: contrib/ci/consumer-table BUILD >it");
}
