/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_stat: what it believes of a page, what it prints, and for whom. */
#include "stat_print.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <ctype.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"

static char folder[] = "/dev/shm/verve-test-XXXXXX";
static struct verve_stat_look look;
static char *text;
static size_t text_len;

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void)
{
	verve_stat_host_fini(&look.host);
	free(text);
	cr_expect_eq(rmdir(folder), 0, "a page was left behind");
}

TestSuite(stat, .init = setup, .fini = teardown);

/* Runs write in a child, which then lives until stop. Returns when write has. */
static pid_t start(void (*write_page)(void))
{
	int pipes[2];
	char done;
	pid_t pid;

	cr_assert_eq(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		verve_config.stat = folder;
		write_page();
		(void)!write(pipes[1], "", 1);
		for (;;)
			pause();
	}
	cr_assert_gt(pid, 0);
	cr_assert_eq(read(pipes[0], &done, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void look_at_some(size_t entries)
{
	verve_stat_host_fini(&look.host);
	cr_assert_eq(verve_stat_host_read(&look.host, folder, entries), 0);
}

static void look_again(void)
{
	look_at_some(SIZE_MAX);
}

static void event(struct verve_page_entry *peer, enum verve_stat_event what, int error)
{
	verve_page_add_event(peer,
			     &(struct verve_page_event){.what = what, .id = 0x11, .error = error});
}

/* A page as the provider writes it. */
static void write_honest(void)
{
	struct verve_page_entry *domain, *endpoint, *peer;

	if (!verve_page_open())
		_exit(1);
	domain = verve_page_get(VERVE_STAT_KIND_DOMAIN, 0, "mlx5_0", NULL);
	domain->values[VERVE_STAT_DOMAIN_HITS] = 41;
	endpoint = verve_page_get(VERVE_STAT_KIND_ENDPOINT, domain->id, "10.0.0.1:4791", NULL);
	verve_page_set_text(endpoint, "mlx5_0:1");
	peer = verve_page_get(VERVE_STAT_KIND_PEER, endpoint->id, "10.0.0.2:4791", NULL);
	peer->values[VERVE_STAT_PEER_STATE] = VERVE_STAT_STATE_UP;
	peer->values[VERVE_STAT_PEER_CREDITS] = 63;
	peer->values[VERVE_STAT_PEER_SENT + VERVE_WIRE_EAGER] = 1000;
	peer->values[VERVE_STAT_PEER_SENT_BYTES] = 70000;
	peer->values[VERVE_STAT_PEER_ERROR] = FI_EIO;
	verve_page_set_text(peer, "the device \"failed\\");
	event(peer, VERVE_STAT_EVENT_CAME_UP, 0);
	event(peer, VERVE_STAT_EVENT_BROKE, FI_EIO);
}

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_len);
}

static void has(const char *part)
{
	cr_expect_not_null(strstr(text, part), "%s is not in:\n%s", part, text);
}

static void print_table(const struct verve_stat_look *before, bool verbose)
{
	FILE *file = begin();

	verve_stat_print(file, &look, before, verbose);
	fclose(file);
}

Test(stat, a_table_tells_of_a_live_process)
{
	pid_t child = start(write_honest);
	char line[64];

	look_again();
	cr_assert_eq(look.host.count, 1);
	cr_expect_eq(look.host.processes[0].pid, child);
	print_table(NULL, true);
	snprintf(line, sizeof(line), "process %d ", child);
	has(line);
	has("domain mlx5_0\n    cache_hits 41\n");
	has("endpoint 10.0.0.1:4791 on mlx5_0:1\n");
	has("    10.0.0.2:4791            up              63 ");
	has("sent.eager 1000");
	has("the device \"failed\\ (");
	stop(child);
	look_again();
	cr_expect_eq(look.host.count, 0);
	cr_expect_eq(look.host.reaped, 1);
}

Test(stat, rates_are_what_was_added_in_a_second)
{
	pid_t child = start(write_honest);
	struct verve_stat_look before = {0};

	look_again();
	cr_assert_eq(verve_stat_host_read(&before.host, folder, SIZE_MAX), 0);
	before.host.when = look.host.when - 2000000000;
	cr_assert_eq(before.host.processes[0].entries[2].page.kind, VERVE_STAT_KIND_PEER);
	before.host.processes[0].entries[2].page.values[VERVE_STAT_PEER_SENT + VERVE_WIRE_EAGER] =
		900;
	before.host.processes[0].entries[2].page.values[VERVE_STAT_PEER_SENT_BYTES] = 0;
	print_table(&before, false);
	has("          50           0           0       35000 ");
	verve_stat_host_fini(&before.host);
	stop(child);
	look_again();
}

Test(stat, a_rate_beyond_its_type_is_the_largest)
{
	pid_t child = start(write_honest);
	struct verve_stat_look before = {0};
	AO_t *values;

	look_again();
	cr_assert_eq(verve_stat_host_read(&before.host, folder, SIZE_MAX), 0);
	before.host.when = look.host.when - 1;
	values = look.host.processes[0].entries[2].page.values;
	values[VERVE_STAT_PEER_ARRIVED_BYTES] = UINT64_MAX / 2;
	print_table(&before, false);
	has(" 18446744073709551615 ");
	verve_stat_host_fini(&before.host);
	stop(child);
	look_again();
}

Test(stat, events_of_a_peer_by_address_or_host)
{
	pid_t child = start(write_honest);
	FILE *file;

	look_again();
	file = begin();
	cr_expect_eq(verve_stat_print_events(file, &look, "10.0.0.2"), 1);
	fclose(file);
	has("endpoint 10.0.0.1:4791, peer 10.0.0.2:4791, up\n");
	has("connection 0x11 is up\n");
	has("connection 0x11 ends: ");
	has("last error: the device \"failed\\ (");
	cr_expect_lt(strstr(text, "is up"), strstr(text, "ends:"));
	file = begin();
	cr_expect_eq(verve_stat_print_events(file, &look, "10.0.0.2:4791"), 1);
	cr_expect_eq(verve_stat_print_events(file, &look, "10.0.0.1:4791"), 0);
	cr_expect_eq(verve_stat_print_events(file, &look, "10.0.0"), 0);
	fclose(file);
	stop(child);
	look_again();
}

static void write_ipv6(void)
{
	if (!verve_page_open())
		_exit(1);
	event(verve_page_get(VERVE_STAT_KIND_PEER, 1, "[fd00::2]:4791", NULL),
	      VERVE_STAT_EVENT_CAME_UP, 0);
}

Test(stat, events_of_a_peer_with_an_ipv6_address)
{
	pid_t child = start(write_ipv6);
	FILE *file;

	look_again();
	file = begin();
	cr_expect_eq(verve_stat_print_events(file, &look, "fd00::2"), 1);
	cr_expect_eq(verve_stat_print_events(file, &look, "[fd00::2]"), 1);
	cr_expect_eq(verve_stat_print_events(file, &look, "[fd00::2]:4791"), 1);
	cr_expect_eq(verve_stat_print_events(file, &look, "fd00::2:4791"), 0);
	cr_expect_eq(verve_stat_print_events(file, &look, "fd00:"), 0);
	cr_expect_eq(verve_stat_print_events(file, &look, ""), 0);
	fclose(file);
	stop(child);
	look_again();
}

/* The line of the text format without its end, or false. Source: Prometheus, exposition formats. */
static bool is_sample(const char *line, const char *metric)
{
	size_t len = strlen(metric);

	if (strncmp(line, metric, len) || line[len] != '{')
		return false;
	line += len;
	do {
		line++;
		if (!islower((unsigned char)*line))
			return false;
		line += strspn(line, "abcdefghijklmnopqrstuvwxyz_");
		if (*line++ != '=' || *line++ != '"')
			return false;
		for (; *line && *line != '"'; line++)
			if (*line == '\\' && !*++line)
				return false;
		if (*line++ != '"')
			return false;
	} while (*line == ',');
	return *line++ == '}' && *line++ == ' ' && isdigit((unsigned char)*line) &&
	       !line[strspn(line, "0123456789")];
}

/* Each metric has one HELP and one TYPE, then its samples; no sample is there twice. */
static size_t check_prometheus(void)
{
	char metric[128] = "", type[16], known[16384] = " ", *copy = strdup(text), *next, *line;
	size_t samples = 0;

	for (line = strtok_r(copy, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		if (sscanf(line, "# HELP %126s", metric) == 1) {
			strcat(metric, " ");
			cr_expect_null(strstr(known, metric), "twice: %s", line);
			strcat(known, metric);
			metric[strlen(metric) - 1] = '\0';
			line = strtok_r(NULL, "\n", &next);
			cr_assert_eq(sscanf(line, "# TYPE %*s %15s", type), 1, "%s", line);
			cr_expect_eq(!strcmp(type, "counter"),
				     !strcmp(metric + strlen(metric) - 6, "_total"), "%s", line);
			continue;
		}
		cr_expect(is_sample(line, metric), "%s", line);
		samples++;
		/* The rest begins behind this line: it has no sample with the same labels. */
		*strrchr(line, ' ') = '\0';
		cr_expect_null(strstr(strstr(text, line) + 1, line), "twice: %s", line);
	}
	free(copy);
	return samples;
}

Test(stat, prometheus_reads_it)
{
	pid_t first = start(write_honest), second = start(write_honest);
	FILE *file;

	look_again();
	cr_assert_eq(look.host.count, 2);
	file = begin();
	verve_stat_print_prometheus(file, &look);
	fclose(file);
	has("# TYPE verve_peer_sent_total counter\n");
	has(",place=\"2\",peer=\"10.0.0.2:4791\",endpoint=\"10.0.0.1:4791\",type=\"eager\"} "
	    "1000\n");
	cr_expect_gt(check_prometheus(), 2 * VERVE_STAT_PEER_VALUES);
	stop(first);
	stop(second);
	look_again();
	cr_expect_eq(look.host.reaped, 2);
}

Test(stat, json_has_the_same)
{
	pid_t child = start(write_honest);
	FILE *file;

	look_again();
	file = begin();
	verve_stat_print_json(file, &look);
	fclose(file);
	has("\"state_name\": \"up\"");
	has("\"eager\": 1000");
	has("\"last_error\": \"the device \\\"failed\\\\\"");
	has("\"event\": \"ends\"");
	stop(child);
	look_again();
}

/* A domain, an endpoint and nine peers, each of which has sent one message. */
static void write_many(void)
{
	struct verve_page_entry *domain, *endpoint, *peer;

	if (!verve_page_open())
		_exit(1);
	domain = verve_page_get(VERVE_STAT_KIND_DOMAIN, 0, "mlx5_0", NULL);
	endpoint = verve_page_get(VERVE_STAT_KIND_ENDPOINT, domain->id, "10.0.0.1:4791", NULL);
	for (int i = 0; i < 9; i++) {
		peer = verve_page_get(VERVE_STAT_KIND_PEER, endpoint->id, "10.0.0.3:4791", NULL);
		peer->values[VERVE_STAT_PEER_SENT + VERVE_WIRE_EAGER] = 1000;
	}
}

static size_t count_of(pid_t pid)
{
	for (size_t i = 0; i < look.host.count; i++)
		if (look.host.processes[i].pid == pid)
			return look.host.processes[i].count;
	return SIZE_MAX;
}

Test(stat, processes_share_the_bound_of_their_user)
{
	pid_t many = start(write_many), few = start(write_honest);

	cr_redirect_stderr();
	look_at_some(14);
	cr_expect_eq(count_of(many), 11);
	cr_expect_eq(count_of(few), 3);
	look_at_some(13);
	cr_expect_eq(count_of(many), 8);
	look_at_some(10);
	cr_expect_eq(count_of(many), 4);
	cr_expect_eq(count_of(few), 3);
	look_at_some(1);
	cr_expect_eq(count_of(many) + count_of(few), 1);
	stop(many);
	stop(few);
	look_at_some(1);
	cr_expect_eq(look.host.reaped, 2);
}

Test(stat, a_bound_is_said)
{
	pid_t child = start(write_many);
	char said[256];
	FILE *file;

	cr_redirect_stderr();
	look_at_some(10);
	cr_expect_eq(look.host.processes[0].unread, 3);
	print_table(NULL, false);
	has(", 3 entries are not read\n");
	file = begin();
	verve_stat_print_json(file, &look);
	fclose(file);
	has("\"unread\": 3");
	file = begin();
	verve_stat_print_prometheus(file, &look);
	fclose(file);
	has("verve_process_unread{");
	check_prometheus();
	snprintf(said, sizeof(said),
		 "verve_stat: %s: at most 10 entries are read: --folder=%s reads all\n", folder,
		 folder);
	fflush(stderr);
	cr_expect_stderr_eq_str(said);
	stop(child);
	look_again();
}

Test(stat, what_was_not_read_before_has_no_rate)
{
	pid_t child = start(write_many);
	struct verve_stat_look before = {0};

	look_again();
	cr_redirect_stderr();
	cr_assert_eq(verve_stat_host_read(&before.host, folder, 10), 0);
	before.host.when = look.host.when - 2000000000;
	print_table(&before, false);
	cr_expect_null(strstr(text, " 500 "), "%s", text);
	verve_stat_host_fini(&before.host);
	stop(child);
	look_again();
}

/* Three endpoints of one id. */
static void write_same(void)
{
	struct verve_page_entry *endpoint, *first = NULL;

	if (!verve_page_open())
		_exit(1);
	for (int i = 0; i < 3; i++) {
		endpoint = verve_page_get(VERVE_STAT_KIND_ENDPOINT, 0, "10.0.0.1:4791", NULL);
		first = first ? first : endpoint;
		endpoint->id = first->id;
	}
	verve_page_get(VERVE_STAT_KIND_PEER, first->id, "10.0.0.3:4791", NULL);
	verve_page_get(VERVE_STAT_KIND_PEER, first->id, "10.0.0.2:4791", NULL);
}

Test(stat, a_peer_is_printed_once)
{
	pid_t child = start(write_same);
	const char *first;

	look_again();
	cr_assert_eq(look.host.processes[0].count, 5);
	print_table(NULL, false);
	first = strstr(text, "    10.0.0.3:4791 ");
	cr_assert_not_null(first, "%s", text);
	cr_expect_not_null(strstr(first, "    10.0.0.2:4791 "), "the order of their places");
	cr_expect_null(strstr(first + 1, "    10.0.0.3:4791 "), "twice:\n%s", text);
	stop(child);
	look_again();
}

/* A page of which nothing is as it should be, but that the tool must read. */
static void write_hostile(void)
{
	struct verve_page_entry *entry, *first;
	struct verve_page_head *head;

	if (!verve_page_open())
		_exit(1);
	first = verve_page_get(VERVE_STAT_KIND_PEER, 1, "", NULL);
	for (int i = 0; i < 10; i++)
		verve_page_get(VERVE_STAT_KIND_PEER, 1, "", NULL);
	head = (struct verve_page_head *)(first - 1);
	memset(head->command, 0x1b, sizeof(head->command));
	head->pid = 1;
	head->count = (AO_t)-1;
	for (entry = first; entry < first + 10; entry++) {
		AO_t changes = entry->changes;
		uint32_t kind = entry->kind;

		memset(entry, 0xff, sizeof(*entry));
		entry->changes = changes;
		entry->kind = kind;
	}
	first[0].kind = 77;
	first[1].changes = 1;
	snprintf(first[2].name, sizeof(first[2].name), "\033]0;title\a\n\x80");
}

static void print_all(const char *where)
{
	FILE *file = begin();

	verve_stat_print(file, &look, NULL, true);
	verve_stat_print(file, &look, &look, true);
	verve_stat_print_json(file, &look);
	verve_stat_print_events(file, &look, "?]0;title???");
	fclose(file);
	for (size_t i = 0; i < text_len; i++)
		cr_assert(text[i] == '\n' || text[i] == '\t' || isprint((unsigned char)text[i]),
			  "%s: %zu: %#x", where, i, text[i]);
	file = begin();
	verve_stat_print_prometheus(file, &look);
	fclose(file);
	check_prometheus();
}

Test(stat, a_hostile_page_is_bytes)
{
	pid_t child = start(write_hostile);

	look_again();
	cr_assert_eq(look.host.count, 1);
	cr_expect_eq(look.host.processes[0].pid, child, "the kernel says who it is");
	cr_expect_eq(look.host.processes[0].count, 10);
	print_all("hostile");
	stop(child);
	look_again();
}

/* Random bytes behind a good head, from a generator with a fixed seed. */
static void write_noise(void)
{
	struct verve_page_entry *first;
	unsigned seed = 1;

	if (!verve_page_open())
		_exit(1);
	first = verve_page_get(VERVE_STAT_KIND_PEER, 1, "", NULL);
	for (int i = 1; i < 16; i++)
		verve_page_get(VERVE_STAT_KIND_PEER, 1, "", NULL);
	for (unsigned char *byte = (unsigned char *)first; byte < (unsigned char *)(first + 16);
	     byte++)
		*byte = rand_r(&seed) >> 4;
	for (int i = 0; i < 16; i++)
		first[i].kind = i % VERVE_STAT_KINDS;
}

Test(stat, noise_is_bytes)
{
	pid_t child = start(write_noise);

	look_again();
	cr_expect_eq(look.host.processes[0].count, 12);
	print_all("noise");
	stop(child);
	look_again();
}

static void write_other_layout(void)
{
	struct verve_page_entry *entry;

	if (!verve_page_open())
		_exit(1);
	entry = verve_page_get(VERVE_STAT_KIND_PEER, 1, "", NULL);
	((struct verve_page_head *)(entry - 1))->layout++;
}

Test(stat, a_page_of_another_version_is_left_alone)
{
	pid_t child = start(write_other_layout);

	look_again();
	cr_expect_eq(look.host.count, 0);
	cr_expect_eq(look.host.foreign, 1);
	cr_expect_eq(look.host.reaped, 0);
	stop(child);
	look_again();
	cr_expect_eq(look.host.foreign, 0);
	cr_expect_eq(look.host.reaped, 1);
}

Test(stat, no_folder_is_no_process)
{
	cr_expect_eq(verve_stat_host_read(&look.host, "/dev/shm/verve-none", SIZE_MAX), 0);
	cr_expect_eq(look.host.count, 0);
	cr_assert_eq(chmod(folder, 0755), 0);
	cr_expect_eq(verve_stat_host_read(&look.host, folder, SIZE_MAX), -FI_EPERM);
}
