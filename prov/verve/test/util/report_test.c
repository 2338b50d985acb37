/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_info's answers: their order, JSON, sizes, consumers, and the program's exit status. */
#include "report.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ask.h"
#include "base/config.h"
#include "settings.h"
#include "sizes.h"
#include "tune.h"

enum { TEXT_MAX = 65536 };

static char *text;
static size_t text_len;
static struct verve_report report;

static void setup(void)
{
	unsetenv("FI_VERVE_INLINE_SIZE");
	unsetenv("FI_VERVE_EAGER_SIZE");
	verve_settings_load(&report);
}

static void teardown(void)
{
	verve_report_fini(&report);
	free(text);
}

TestSuite(report, .init = setup, .fini = teardown);

static const char *print(bool colour, bool verbose)
{
	struct verve_style style = {.colour = colour, .verbose = verbose};

	free(text);
	style.file = open_memstream(&text, &text_len);
	cr_assert_not_null(style.file);
	verve_report_print(&report, &style);
	fclose(style.file);
	return text;
}

static void fill(void)
{
	verve_report_add(&report, VERVE_USED, "a", NULL, "works");
	verve_report_add(&report, VERVE_WARNING, "bb", NULL, "slow");
	verve_report_add(&report, VERVE_REFUSED, "ccc", "do this", "is %d", 7);
	verve_report_add(&report, VERVE_REFUSED, "detail", NULL, "more")->detail = true;
}

Test(report, refused_comes_first)
{
	fill();
	cr_expect_str_eq(print(false, false), "- ccc  is 7: do this\n! bb   slow\n+ a    works\n");
	cr_expect_str_eq(print(false, true), "- ccc     is 7: do this\n- detail  more\n"
		"! bb      slow\n+ a       works\n");
	cr_expect_eq(verve_report_count(&report, VERVE_REFUSED), 1);
}

Test(report, colours_are_only_where_they_are_wanted)
{
	fill();
	cr_expect_null(strchr(print(false, true), '\033'));
	cr_expect_not_null(strchr(print(true, true), '\033'));
}

Test(report, json_escapes)
{
	struct verve_json json = {.file = open_memstream(&text, &text_len)};

	verve_json_begin(&json, NULL, '{');
	verve_json_text(&json, "a\"b", "c\\d\n\xff");
	verve_json_text(&json, "none", NULL);
	verve_json_begin(&json, "list", '[');
	verve_json_end(&json, ']');
	verve_json_number(&json, "n", UINT64_MAX);
	verve_json_bool(&json, "t", true);
	verve_json_end(&json, '}');
	fclose(json.file);
	cr_expect_str_eq(text, "{\n\t\"a\\\"b\": \"c\\\\d\\u000a\\u00ff\",\n\t\"none\": null,\n"
		"\t\"list\": [],\n\t\"n\": 18446744073709551615,\n\t\"t\": true\n}\n");
}

static void expect_size(const struct verve_size *row, uint64_t from, uint64_t to, const char *what,
			const char *source)
{
	cr_expect_eq(row->from, from);
	cr_expect_eq(row->to, to);
	cr_expect_str_eq(row->what, what);
	cr_expect_not_null(strstr(row->source, source), "%s", row->source);
}

Test(report, sizes_name_what_decides_them)
{
	struct verve_sizes_limits limits = {
		.granted = 1024,
		.eager = 65536,
		.read = 131072,
		.crossover = {.described = SIZE_MAX, .rendezvous = SIZE_MAX,
			      .offer_kept = SIZE_MAX},
	};
	struct verve_sizes sizes;

	verve_sizes_fill(&sizes, &limits);
	cr_assert_eq(sizes.count, 3);
	expect_size(&sizes.row[0], 0, 240, "inline", "default (256, less 16 of header)");
	expect_size(&sizes.row[1], 241, 65536, "copied", "default");
	expect_size(&sizes.row[2], 65537, UINT64_MAX, "rendezvous", "reads of 131072");
	limits.granted = 64;
	limits.eager = 1000;
	verve_sizes_fill(&sizes, &limits);
	expect_size(&sizes.row[0], 0, 48, "inline", "device limit");
	expect_size(&sizes.row[1], 49, 1000, "copied", "device limit");
}

Test(report, measured_costs_name_themselves)
{
	struct verve_sizes_limits limits = {
		.granted = 1024,
		.eager = 65536,
		.read = 131072,
		.crossover = {.described = 4096, .rendezvous = 32768, .offer_kept = SIZE_MAX},
	};
	struct verve_sizes sizes;

	verve_sizes_fill(&sizes, &limits);
	cr_assert_eq(sizes.count, 4);
	expect_size(&sizes.row[1], 241, 4095, "copied", "measured");
	expect_size(&sizes.row[2], 4096, 32767, "direct", "measured");
	expect_size(&sizes.row[3], 32768, UINT64_MAX, "rendezvous", "reads of 131072");
	limits.crossover.rendezvous = 65537;
	verve_sizes_fill(&sizes, &limits);
	expect_size(&sizes.row[2], 4096, 65536, "direct", "default");
	limits.crossover.offer_kept = 20000;
	verve_sizes_fill(&sizes, &limits);
	cr_assert_eq(sizes.count, 5);
	expect_size(&sizes.row[2], 4096, 19999, "direct", "measured");
	expect_size(&sizes.row[3], 20000, 65536, "offered", "default");
	limits.crossover.described = limits.crossover.rendezvous = 2049;
	limits.crossover.offer_kept = 2049;
	verve_config.rendezvous_size = 2048;
	verve_sizes_fill(&sizes, &limits);
	cr_assert_eq(sizes.count, 3);
	expect_size(&sizes.row[1], 241, 2048, "copied", "");
	expect_size(&sizes.row[2], 2049, UINT64_MAX, "rendezvous", "");
	verve_config.rendezvous_size = SIZE_MAX;
}

Test(report, thresholds_may_cross)
{
	struct verve_sizes_limits limits = {
		.granted = 1024,
		.eager = 256,
		.crossover = {.described = SIZE_MAX, .rendezvous = SIZE_MAX,
			      .offer_kept = SIZE_MAX},
	};
	struct verve_sizes sizes;

	verve_config.inline_size = 1024;
	verve_config.eager_size = 256;
	verve_sizes_fill(&sizes, &limits);
	cr_assert_eq(sizes.count, 2);
	expect_size(&sizes.row[0], 0, 256, "inline", "");
	expect_size(&sizes.row[1], 257, UINT64_MAX, "rendezvous", "");
	limits.granted = 0;
	verve_sizes_fill(&sizes, &limits);
	cr_assert_eq(sizes.count, 2);
	expect_size(&sizes.row[0], 0, 256, "copied", "");
}

static const struct verve_finding *find(const char *subject)
{
	for (size_t i = 0; i < report.count; i++)
		if (strstr(report.list[i].subject, subject))
			return &report.list[i];
	cr_assert_fail("no finding about %s", subject);
	return NULL;
}

Test(report, every_consumer_has_a_key_and_the_refusing_hint_is_named)
{
	for (size_t i = 0; i < consumer_count; i++)
		cr_expect_gt(verve_ask_report(&report, consumers[i].key, NULL, 0), 0);
	cr_expect_eq(verve_ask_report(&report, "nobody", NULL, 0), 0);
	cr_expect_eq(find("Open MPI 4.1 mtl")->verdict, VERVE_USED);
	cr_expect_eq(find("Open MPI 5.0 mtl")->verdict, VERVE_WARNING);
	cr_expect_not_null(strstr(find("Open MPI 5.0 mtl")->cause, "caps asks for FI_HMEM"));
	cr_expect_eq(find("aws-ofi-nccl 1.19 rdma")->verdict, VERVE_REFUSED);
	cr_expect_not_null(strstr(find("aws-ofi-nccl 1.19 rdma")->cause, "caps asks for FI_HMEM"));
	cr_expect_not_null(strstr(find("Mercury 2.4 verbs")->cause,
				  "libfabric asks verbs;ofi_rxm, not verve"));
	cr_expect_not_null(strstr(find("Mercury 2.4 verbs")->remedy, "/libfabric-verve-as-rxm:/"));
}

/* FI_VERVE_IFACE names ports of the host, not the one that stands in. */
Test(report, application_is_asked_about_ports_that_are_chosen)
{
	struct verve_net_portaddr addr = {.netdev = "eth0", .addr.in.sin_family = AF_INET};
	struct verve_net_port port = {.device = "mlx5_0", .netdev = "eth0", .port_num = 1,
				      .usable = true, .addrs = &addr, .addr_count = 1};

	verve_config.iface = "mlx5_9";
	verve_ask_report(&report, "gasnet", NULL, 0);
	cr_expect_eq(find("GASNet-EX first query")->verdict, VERVE_USED);
	cr_expect_str_eq(verve_config.iface, "mlx5_9");
	verve_report_fini(&report);
	verve_ask_report(&report, "gasnet", &port, 1);
	cr_expect_str_eq(find("GASNet-EX first query")->cause,
			 "refused, because no port is used (verve_info)");
}

/* Runs the program with these variables, its output into text. Returns its exit status. */
static int run_in(const char *variables, const char *args)
{
	char command[512];
	FILE *pipe;
	int status;

	/* libfabric does not free all of its memory: that is no leak of the program. */
	snprintf(command, sizeof(command), "ASAN_OPTIONS=detect_leaks=0 FI_PROVIDER_PATH=%s "
		 "FI_PROVIDER=verve %s %s/verve_info %s 2>&1", PROVIDER, variables, TOOLS, args);
	pipe = popen(command, "r");
	cr_assert_not_null(pipe);
	text = realloc(text, TEXT_MAX);
	cr_assert_not_null(text);
	text[fread(text, 1, TEXT_MAX - 1, pipe)] = '\0';
	status = pclose(pipe);
	cr_assert(WIFEXITED(status), "%s", text);
	return WEXITSTATUS(status);
}

static int run(const char *args)
{
	return run_in("", args);
}

Test(report, exit_status_is_for_scripts)
{
	cr_expect_eq(run("--help"), 0);
	cr_expect_not_null(strstr(text, "usage: verve_info"));
	cr_expect_eq(run("--nonsense"), 2);
	cr_expect_eq(run("stray"), 2);
	cr_expect_not_null(strstr(text, "stray belongs to no option"), "%s", text);
	cr_expect_eq(run("--color=pink"), 2);
	cr_expect_not_null(strstr(text, "not pink"), "%s", text);
	cr_expect_eq(run(">/dev/full"), 2);
	cr_expect_eq(run("--as=nobody"), 2);
	cr_expect_not_null(strstr(text, "mercury"));
	cr_expect_eq(run("--as=list"), 0);
	cr_expect_eq(run("--as=gasnet"), 0, "%s", text);
	cr_expect_eq(run("--as=mercury"), 1);
	cr_expect_eq(run("--to=192.0.2.1 --listen"), 2);
	cr_expect_eq(run("--to=192.0.2.1:99999"), 2);
	cr_expect_not_null(strstr(text, "a port from 1 to 65535"), "%s", text);
	cr_expect_eq(run("--to=192.0.2.1:"), 2);
	cr_expect_eq(run("--to=[2001:db8::1]:0"), 2);
	cr_expect_eq(run("--to="), 2);
	cr_expect_eq(run("--to=nowhere.invalid"), 1);
	cr_expect_not_null(strstr(text, "- address  no usable port here leads to nowhere.invalid"));
	cr_expect_not_null(strstr(text, "): getent ahosts nowhere.invalid"), "%s", text);
	cr_expect_eq(run("--to=192.0.2.1 --from=192.0.2.9"), 1);
	cr_expect_not_null(strstr(text, "no usable port here has the address 192.0.2.9"), "%s",
			   text);
}

/* What verve would answer to an application that never hears it is no help. */
Test(report, application_is_refused_where_verve_is_hidden)
{
	cr_expect_eq(run_in("FI_PROVIDER=tcp", "--as=gasnet"), 1);
	cr_expect_not_null(strstr(text, "FI_PROVIDER=tcp hides verve"), "%s", text);
	cr_expect_eq(run_in("FI_PROVIDER_PATH=/nowhere", "--as=mpich"), 1);
	cr_expect_not_null(strstr(text, "is not where libfabric looks"), "%s", text);
	cr_expect_eq(run_in("FI_VERVE_AUTH_KEY_FILE=/nowhere", "--as=mpich"), 1);
	cr_expect_not_null(strstr(text, "- FI_VERVE_AUTH_KEY_FILE"), "%s", text);
	cr_expect_eq(run_in("FI_PROVIDER=tcp", "--to=192.0.2.1"), 1);
	cr_expect_not_null(strstr(text, "FI_PROVIDER=tcp hides verve"), "%s", text);
	run_in("FI_PROVIDER=tcp", "--as=mercury");
	cr_expect_null(strstr(text, "hides verve"), "%s", text);
}

Test(report, program_says_where_a_value_comes_from)
{
	setenv("FI_VERVE_WINDOW", "7", 1);
	run("--config");
	cr_expect_not_null(strstr(text, "7 messages       FI_VERVE_WINDOW\n"), "%s", text);
}

/* With any devices: output and exit status agree. */
Test(report, program_agrees_with_itself)
{
	int status = run("");

	cr_expect_eq(!status, !!strstr(text, "verve is used\n"), "%s", text);
	cr_expect_not_null(strstr(text, "offers verve"));
	cr_expect_null(strchr(text, '\033'));
	cr_expect_eq(run("--json --sizes --config"), status);
	cr_expect_eq(*text, '{');
	cr_expect_not_null(strstr(text, "\"name\": \"FI_VERVE_IFACE\""));
	cr_expect_not_null(strstr(text, status ? "\"used\": false" : "\"used\": true"));
	cr_expect_eq(run("--color=always"), status);
	cr_expect_not_null(strchr(text, '\033'));
}

/* Cheap reads make kept buffers be read from a shorter length on; a set variable hides nothing. */
Test(report, tuning_shows_what_follows_from_the_costs)
{
	struct verve_tune tune = {.costs = verve_mr_costs_default};
	size_t before;

	verve_config.rendezvous_size = 1000;
	verve_tune_compare(&tune);
	cr_expect_eq(verve_config.rendezvous_size, 1000);
	before = tune.crossover.offer_kept;
	cr_expect_gt(before, 1001);
	tune.costs.round = tune.costs.window = 100;
	verve_tune_compare(&tune);
	cr_expect_lt(tune.crossover.offer_kept, before);
	verve_config.rendezvous_size = SIZE_MAX;
}

/* What JSON says of one length. */
static bool length_measured(struct verve_tune tune, const char *name)
{
	struct verve_json json = {0};
	char key[64];
	const char *row;

	free(text);
	json.file = open_memstream(&text, &text_len);
	verve_tune_json_port(&tune, "a:1", &json);
	fclose(json.file);
	snprintf(key, sizeof(key), "\"name\": \"%s\"", name);
	row = strstr(text, key);
	cr_assert_not_null(row, "%s", text);
	return !strncmp(strchr(strstr(row, "\"measured\""), ':'), ": true", 6);
}

Test(report, length_is_measured_if_all_its_costs_are)
{
	struct verve_tune tune = {.costs = verve_mr_costs_default};
	FILE *file;

	cr_expect_not(length_measured(tune, "fresh"));
	tune.costs.reg_known = true;
	cr_expect(length_measured(tune, "fresh"));
	cr_expect_not(length_measured(tune, "rendezvous"));
	tune.costs.round_known = true;
	cr_expect(length_measured(tune, "rendezvous"));
	cr_expect_not(length_measured(tune, "offer_kept"));
	free(text);
	file = open_memstream(&text, &text_len);
	verve_tune_print_port(&tune, "a:1", file);
	fclose(file);
	cr_expect_not_null(strstr(text, "from a default cost\n  all buffers"), "%s", text);
	tune.costs.window_known = true;
	cr_expect(length_measured(tune, "offer_kept"));
}
