/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_soak: processes of both halves talk to each other, all to all and in all ways: daemons live
 * through everything; mayflies die in the middle of it and come back at the same address. -W sets
 * the processes of a half, every second of them a mayfly. The soak ends when each daemon has done
 * -I operations, or by SIGINT. Its caller may hurt it meanwhile (contrib/soak does): kill
 * soak-mayfly, stop any process, cut the cable; with -o torn, break connections, too.
 *
 * This file is the keeper: it starts the members of its half, and dead members again, and prints
 * every five seconds how much memory the daemons use. It never calls libfabric.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/oob.h"
#include "common/usage.h"
#include "soak/member.h"

#define DEFAULT_MEMBERS 4
#define SAMPLE_SECONDS 5
#define TICK_US 10000
#define SECOND 1000000000ull
#define PATIENCE 4 /* times -T, for phases of several waits */

struct keeper {
	struct env env;
	struct soak_board *board;
	unsigned half, members;
	pid_t pids[SOAK_MEMBERS];
	uint64_t begin, next_sample;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Members. */

static const char *kind_of(unsigned index)
{
	return soak_is_mayfly(index) ? "mayfly" : "daemon";
}

static void start_member(struct keeper *k, unsigned index)
{
	bool mayfly = soak_is_mayfly(index);
	pid_t keeper = getpid();

	fflush(stdout);
	k->pids[index] = fork();
	REQUIRE(k->pids[index] >= 0);
	if (k->pids[index])
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(CHECK_FAIL);
	prctl(PR_SET_NAME, mayfly ? "soak-mayfly" : "soak-daemon");
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	oob_close(&k->env.oob);
	exit(soak_member_run(&k->env.opts, k->board, k->half, index, k->members));
}

static bool was_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* again: a dead member is started again. A mayfly may also leave by itself, in phase SOAK_PART. */
static void reap(struct keeper *k, bool again)
{
	for (unsigned i = 0; i < k->members; i++) {
		int status;

		if (!k->pids[i] || waitpid(k->pids[i], &status, WNOHANG) <= 0)
			continue;
		k->pids[i] = 0;
		if (soak_is_mayfly(i) && was_killed(status)) {
			k->board->entries[i].life++;
			if (again)
				start_member(k, i);
			continue;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status) || k->board->phase < SOAK_PART)
			check_fatal("%s %u of half %u has ended (%s %d)", kind_of(i), i, k->half,
				    WIFSIGNALED(status) ? "signal" : "status",
				    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	}
}

static bool have_reached(const struct keeper *k, int phase)
{
	for (unsigned i = 0; i < k->members; i++)
		if (k->board->entries[i].reached < phase &&
		    (phase == SOAK_RUN || !soak_is_mayfly(i)))
			return false;
	return true;
}

static bool have_enough(const struct keeper *k)
{
	for (unsigned i = 0; i < k->members; i++)
		if (!soak_is_mayfly(i) && !k->board->entries[i].enough)
			return false;
	return true;
}

static bool have_left(const struct keeper *k, bool daemons)
{
	for (unsigned i = 0; i < k->members; i++)
		if (k->pids[i] && (daemons || soak_is_mayfly(i)))
			return false;
	return true;
}

/* Samples. */

static unsigned count_fds(pid_t pid)
{
	unsigned count = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count > 2 ? count - 2 : 0; /* "." and ".." */
}

static unsigned long errors_of(const struct soak_entry *entry)
{
	unsigned long errors = 0;

	for (unsigned i = 0; i < SOAK_CODES; i++)
		errors += entry->errors[i];
	return errors;
}

static void sample(struct keeper *k)
{
	uint64_t now = clock_now();

	if (now < k->next_sample)
		return;
	k->next_sample = now + SAMPLE_SECONDS * SECOND;
	for (unsigned i = 0; i < k->members; i++) {
		struct soak_entry *entry = &k->board->entries[i];
		pid_t pid = k->pids[i];

		if (!soak_is_mayfly(i))
			printf("sample,%llu,%u,%u,%ld,%ld,%ld,%ld,%u,%ld,%lu,%lu\n",
			       (unsigned long long)((now - k->begin) / SECOND), k->half, i,
			       usage_status_kb(pid, "VmRSS:"), usage_status_kb(pid, "VmPin:"),
			       usage_status_kb(pid, "VmLck:"), entry->heap / 1024, count_fds(pid),
			       usage_status_kb(pid, "Threads:"), entry->operations,
			       errors_of(entry));
	}
}

/* The course of it. */

static void tick(struct keeper *k, bool again)
{
	usleep(TICK_US);
	reap(k, again);
}

static void await(struct keeper *k, bool (*is_over)(const struct keeper *), const char *what)
{
	uint64_t end = clock_now() + PATIENCE * k->env.opts.timeout * SECOND;

	while (!is_over(k)) {
		tick(k, false);
		if (clock_now() > end)
			check_fatal("half %u waited %u s %s", k->half,
				    PATIENCE * k->env.opts.timeout, what);
	}
}

static bool all_ready(const struct keeper *k)
{
	return have_reached(k, SOAK_RUN);
}

static bool mayflies_left(const struct keeper *k)
{
	return have_left(k, false);
}

static bool daemons_done(const struct keeper *k)
{
	return have_reached(k, SOAK_PART);
}

static bool daemons_drained(const struct keeper *k)
{
	return have_reached(k, SOAK_DRAIN);
}

static bool all_left(const struct keeper *k)
{
	return have_left(k, true);
}

/* The other half wants to end, or is gone; which of them, the next exchange shows. */
static bool is_called(const struct keeper *k)
{
	struct pollfd pfd = { .fd = k->env.oob.fd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

static void meet_others(struct keeper *k)
{
	struct soak_board *board = k->board;
	size_t len = sizeof(board->names[0]);
	char (*ours)[NODE_ADDR_MAX] = board->names[k->half];

	await(k, all_ready, "for its members to open");
	REQUIRE(oob_exchange(&k->env.oob, ours, len, board->names[!k->half], len) == len);
	env_sync(&k->env, "names");
	for (unsigned i = 0; i < k->members; i++)
		printf("%s %u of half %u is process %d\n", kind_of(i), i, k->half, k->pids[i]);
	printf("sample,seconds,half,member,rss_kb,pinned_kb,locked_kb,heap_kb,descriptors,threads,"
	       "operations,errors\n");
	k->begin = clock_now();
	board->phase = SOAK_RUN;
}

static void keep(struct keeper *k)
{
	while (!interrupted && !is_called(k) &&
	       !(k->env.opts.iterations && have_enough(k))) {
		tick(k, true);
		sample(k);
	}
	env_sync(&k->env, "end");
	printf("the end begins\n");
}

static void end(struct keeper *k)
{
	k->board->phase = SOAK_PART;
	await(k, mayflies_left, "for its mayflies to leave");
	await(k, daemons_done, "for its daemons to finish what they began");
	env_sync(&k->env, "parted");
	k->board->phase = SOAK_DRAIN;
	await(k, daemons_drained, "for its daemons' last messages");
	env_sync(&k->env, "drained");
	k->board->phase = SOAK_END;
	await(k, all_left, "for its daemons to close");
}

/*
 * Of messages between daemons: each that completed has come, if success says that it did, and none
 * that was not sent.
 */
static void compare(const struct soak_count *from, unsigned sender, const struct soak_count *to,
		    unsigned receiver, bool says)
{
	if (to->received < (says ? from->sent : 0) || to->received > from->sent + from->failed)
		check_fail("daemon %u sent %llu messages to daemon %u and failed with %llu, "
			   "but %llu came", sender, (unsigned long long)from->sent, receiver,
			   (unsigned long long)from->failed, (unsigned long long)to->received);
	else
		CHECK(to->received <= from->sent + from->failed);
}

static void compare_pair(const struct soak_tally *tallies, unsigned i, unsigned j, bool torn)
{
	compare(&tallies[i].acked[j], i, &tallies[j].acked[i], j, true);
	compare(&tallies[i].plain[j], i, &tallies[j].plain[i], j, !torn);
}

static void compare_all(struct keeper *k)
{
	bool torn = k->env.opts.op && opts_selects(&k->env.opts, "torn");
	static struct soak_tally tallies[SOAK_ALL];

	for (unsigned i = 0; i < k->members; i++) {
		struct soak_tally *ours = &tallies[k->half * SOAK_MEMBERS + i];

		*ours = k->board->entries[i].tally;
		REQUIRE(oob_exchange(&k->env.oob, ours, sizeof(*ours),
				     &tallies[!k->half * SOAK_MEMBERS + i],
				     sizeof(*ours)) == sizeof(*ours));
	}
	for (unsigned i = 0; i < SOAK_ALL; i++)
		for (unsigned j = 0; j < SOAK_ALL; j++)
			if (i != j && !soak_is_mayfly(i) && !soak_is_mayfly(j))
				compare_pair(tallies, i, j, torn);
}

static void report(const struct keeper *k)
{
	static const char *const names[SOAK_CODES] = { "EHOSTUNREACH", "ENOTCONN", "ECONNREFUSED",
						       "ETIMEDOUT", "EIO", "EACCES", "others" };
	unsigned long operations = 0, errors[SOAK_CODES] = { 0 };
	uint64_t received = 0;
	unsigned lives = 0;

	for (unsigned i = 0; i < k->members; i++) {
		struct soak_entry *entry = &k->board->entries[i];

		operations += entry->operations;
		lives += entry->life;
		for (unsigned j = 0; j < SOAK_CODES; j++)
			errors[j] += entry->errors[j];
		for (unsigned j = 0; j < SOAK_ALL; j++)
			received += entry->tally.plain[j].received +
				    entry->tally.acked[j].received;
	}
	printf("half %u: %lu operations in %.0f s, %llu messages received, %u mayflies killed; "
	       "errors:", k->half, operations, (clock_now() - k->begin) / 1e9,
	       (unsigned long long)received, lives);
	for (unsigned j = 0; j < SOAK_CODES; j++)
		printf(" %lu %s%s", errors[j], names[j], j + 1 < SOAK_CODES ? "," : "\n");
}

static void keeper_init(struct keeper *k)
{
	struct sigaction action = { .sa_handler = on_interrupt };

	k->env.server = !k->env.opts.dst_addr;
	k->env.oob = (struct oob){ .fd = -1, .timeout = PATIENCE * k->env.opts.timeout };
	LIST_INIT(&k->env.members);
	k->half = !k->env.server;
	k->members = k->env.opts.window;
	if (k->members > SOAK_MEMBERS) /* as the default of -W is */
		k->members = DEFAULT_MEMBERS;
	k->board = mmap(NULL, sizeof(*k->board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	REQUIRE(k->board != MAP_FAILED);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
	static const struct opts_usage usage = {
		"rdm_soak", "Processes talk in all ways; half of them die and come back.", true };
	static struct keeper keeper;

	setvbuf(stdout, NULL, _IOLBF, 0);
	opts_parse(&keeper.env.opts, &usage, argc, argv);
	if (keeper.env.opts.list) {
		puts("torn");
		return CHECK_PASS;
	}
	keeper_init(&keeper);
	for (unsigned i = 0; i < keeper.members; i++)
		start_member(&keeper, i);
	if (keeper.env.server)
		oob_serve(&keeper.env.oob, keeper.env.opts.oob_port);
	else
		oob_connect(&keeper.env.oob, keeper.env.opts.dst_addr, keeper.env.opts.oob_port);
	meet_others(&keeper);
	keep(&keeper);
	end(&keeper);
	compare_all(&keeper);
	report(&keeper);
	oob_close(&keeper.env.oob);
	printf("rdm_soak: %s\n", check_failed() ? "FAILED" : "ok");
	return check_failed() ? CHECK_FAIL : CHECK_PASS;
}
