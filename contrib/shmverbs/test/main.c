/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Main: runs the named tests, or all that need no profile. The tests use the verbs API alone.
 * Usage: shmv_test [NAME...].
 */
#include <stdio.h>
#include <string.h>

#include "side.h"
#include "tests.h"

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"device", test_device},
	{"messages", test_messages},
	{"srq", test_srq},
	{"gather", test_gather},
	{"thread_domain", test_thread_domain},
	{"thread_domain_broken", test_thread_domain_broken},
	{"depth", test_depth},
	{"inline", test_inline},
	{"too_long", test_too_long},
	{"rnr", test_rnr},
	{"late_peer", test_late_peer},
	{"wire", test_wire},
	{"rdma", test_rdma},
	{"keys", test_keys},
	{"iova", test_iova},
	{"local_key", test_local_key},
	{"atomics", test_atomics},
	{"flush", test_flush},
	{"clean", test_clean},
	{"limits", test_limits},
	{"many_qps", test_many_qps},
	{"wake", test_wake},
	{"killed", test_killed},
	{"kill_storm", test_kill_storm},
	{"storm", test_storm},
	{"window_1", test_window_1},
	{"window_2b", test_window_2b},
	{"window_invalidated", test_window_invalidated},
	{"window_others", test_window_others},
	{"window_refused", test_window_refused},
	{"event_port", test_event_port},
	{"event_gid", test_event_gid},
	{"event_last_wqe", test_event_last_wqe},
	{"event_srq_limit", test_event_srq_limit},
	{"event_overrun", test_event_overrun},
	{"event_injected", test_event_injected},
	{"event_fatal", test_event_fatal},
	{"event_acknowledged", test_event_acknowledged},
	{"profile_mlx5", test_profile_mlx5},
	{"profile_bnxt", test_profile_bnxt},
	{"profile_ib", test_profile_ib},
	{"profile_subnets", test_profile_subnets},
	{"profile_vf", test_profile_vf},
	{"profile_lossy", test_profile_lossy},
	{"profile_nosrq", test_profile_nosrq},
	{"profile_no_ah", test_profile_no_ah},
	{"profile_memlock", test_profile_memlock},
	{"profile_wire", test_profile_wire},
	{"profile_reads", test_profile_reads},
	{"profile_turns", test_profile_turns},
	{"profile_shorts", test_profile_shorts},
	{"profile_times", test_profile_times},
	{"profile_populate", test_profile_populate},
	{"profile_hostile", test_profile_hostile},
};

static bool is_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1 && strncmp(name, "profile_", 8);
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "--child"))
		return child(argv[2]);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (!is_wanted(tests[i].name, argc, argv))
			continue;
		failed_here = 0;
		tests[i].run();
		printf("%s %s\n", failed_here ? "not ok" : "ok", tests[i].name);
		if (failed_here)
			failed++;
		else
			passed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed || !passed;
}
