/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests: one function for each test. A test test_profile_... needs a profile, and runs only if it
 * is named.
 */
#ifndef SHMV_TEST_TESTS_H
#define SHMV_TEST_TESTS_H

void test_device(void);
void test_messages(void);
void test_srq(void);
void test_gather(void);
void test_thread_domain(void);
void test_thread_domain_broken(void);
void test_depth(void);
void test_inline(void);
void test_too_long(void);
void test_rnr(void);
void test_late_peer(void);
void test_wire(void);
void test_rdma(void);
void test_keys(void);
void test_iova(void);
void test_local_key(void);
void test_atomics(void);
void test_flush(void);
void test_clean(void);
void test_limits(void);
void test_many_qps(void);
void test_wake(void);
void test_killed(void);
void test_kill_storm(void);
void test_storm(void);
void test_window_1(void);
void test_window_2b(void);
void test_window_invalidated(void);
void test_window_others(void);
void test_window_refused(void);
void test_event_port(void);
void test_event_gid(void);
void test_event_last_wqe(void);
void test_event_srq_limit(void);
void test_event_overrun(void);
void test_event_injected(void);
void test_event_fatal(void);
void test_event_acknowledged(void);
void test_profile_mlx5(void);
void test_profile_bnxt(void);
void test_profile_ib(void);
void test_profile_subnets(void);
void test_profile_vf(void);
void test_profile_lossy(void);
void test_profile_nosrq(void);
void test_profile_no_ah(void);
void test_profile_memlock(void);
void test_profile_wire(void);
void test_profile_reads(void);
void test_profile_turns(void);
void test_profile_shorts(void);
void test_profile_times(void);
void test_profile_populate(void);
void test_profile_hostile(void);

/* Does, in a process that a test started, the work of the other end of a connection. */
int child(const char *what);

#endif
