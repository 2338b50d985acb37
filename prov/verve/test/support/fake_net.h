/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake net: stands in for src/net at link time. Here are the calls with which a test shapes it.
 *
 * One simulated world a process: hosts with one RDMA port each ("fake0" at 10.1.0.1 and fd00:1::1,
 * "fake1" at 10.1.0.2 ...), a network between them, and a clock that only the test moves.
 * The seed decides all chances: the same calls in the same order give the same world. One thread.
 * A world with the default configuration exists from the start of the process.
 */
#ifndef VERVE_TEST_SUPPORT_FAKE_NET_H
#define VERVE_TEST_SUPPORT_FAKE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/device.h"

struct verve_addr;
/* Times in nanoseconds, chances in 1/1000. */
struct fake_net_config {
	uint64_t seed;
	uint32_t hosts;			/* 1 to 4096 */
	struct verve_net_limits limits; /* of every device */
	uint32_t inline_size, mtu;	/* bytes; inline_size: most that a queue pair grants */
	uint32_t dgram_loss, dgram_dup; /* chance of each datagram (and ICMP error) */
	uint64_t dgram_delay_min, dgram_delay_max;
	uint64_t rc_delay_min, rc_delay_max; /* of a request, its execution, its acknowledgement */
	uint32_t rc_slow, lies; /* chances: of 50 times the delay; that a failed read is "done" */
	uint64_t look_time, binder_time; /* of a look at the clock; of a binder's request */
	bool mw_stale, mw_late, mw_stays, mw_no_atomics, mw_for_all, mw_refused; /* fake_mw.c */
	uint64_t thread_delay; /* most from a thread's wake-up to its step */
	const char *starved;   /* the thread of this name never runs; NULL: all run */
	bool reuse_qp_num;		     /* a closed queue pair's number comes back at once */
	bool close_cleans_cq; /* closing a queue pair takes its completions out of the CQs (mlx5) */
	bool error_takes_no_post; /* posting to a queue pair in error is refused (bnxt_re, ionic) */
	/* A refusal names the oldest request not told of (bnxt_re); posts in error never end. */
	bool error_names_oldest, error_forgets_posts;
	uint32_t partial; /* chance that a message's beginning arrives some time before its end */
	bool error_keeps_recv; /* its receive is never flushed (newer soft-RoCE), or late */
};

/* Two hosts, no loss, limits as soft-RoCE has them, but no memory windows (limits.mw 0). */
void fake_net_config_default(struct fake_net_config *config);
/* Begins a new world at time 0. Aborts unless everything opened in the old one is closed. */
void fake_net_start(const struct fake_net_config *config);

/* The clock. Events that become due run in order; so do the steps of threads. */
uint64_t fake_net_time(void);
void fake_net_advance(uint64_t ns);
void fake_net_run_until(uint64_t time);
/* Time of the next event; UINT64_MAX: nothing will ever happen by itself. */
uint64_t fake_net_next(void);
/* Moves to the next event and runs it. False: there is none. */
bool fake_net_run_next(void);

/* The legs of a request: to its target, the response back, the completion. */
enum fake_net_leg { FAKE_NET_ARRIVE, FAKE_NET_RESPOND, FAKE_NET_COMPLETE, FAKE_NET_LEGS };
/* Runs the next such event on the host's one queue pair, before all others. False: none. */
bool fake_net_run_leg(uint32_t h, enum fake_net_leg leg);
/*
 * A digest of the host's queue pair, SRQ and CQs. Two worlds with the same digest go on alike,
 * whatever happened before. Of packets, the length and the first four bytes count.
 */
uint64_t fake_net_digest(uint32_t h);

/* Calls the step of every thread once, now. They also run by themselves when woken or due. */
void fake_net_step_threads(void);
/* fn is called by verve_net_pause before time passes, unless it is running. NULL: none. */
void fake_net_on_pause(void (*fn)(void *arg), void *arg);

/* fn is called each time an object has been closed, as if by another thread. NULL: none. */
void fake_net_on_close(void (*fn)(void *arg), void *arg);

/* The world's random numbers, for a test that wants no generator of its own. */
uint64_t fake_net_random(void);

/* The calls that can fail. One bit each. */
enum {
	FAKE_NET_PORT_LIST = 1 << 0,
	FAKE_NET_DEVICE_OPEN = 1 << 1,
	FAKE_NET_MR_REG = 1 << 2,
	FAKE_NET_CHANNEL_OPEN = 1 << 3,
	FAKE_NET_CQ_OPEN = 1 << 4,
	FAKE_NET_SRQ_OPEN = 1 << 5,
	FAKE_NET_QP_OPEN = 1 << 6,
	FAKE_NET_QP_CONNECT = 1 << 7,
	FAKE_NET_DGRAM_OPEN = 1 << 8,
	FAKE_NET_DGRAM_SEND = 1 << 9,
	FAKE_NET_THREAD_START = 1 << 10,
	FAKE_NET_THREAD_WATCH = 1 << 11,
	FAKE_NET_QP_POST = 1 << 12,
	FAKE_NET_SRQ_POST = 1 << 13,
	FAKE_NET_BINDER_OPEN = 1 << 14,
	FAKE_NET_MW_ALLOC = 1 << 15,
	FAKE_NET_MW_BIND = 1 << 16, /* unbind, and read by a binder */
	FAKE_NET_CALL_ALL = (1 << 17) - 1,
	FAKE_NET_CALL_OPENS = FAKE_NET_CALL_ALL & ~(FAKE_NET_DGRAM_SEND | FAKE_NET_QP_POST),
};

/* From now on the nth call (from 1) of these kinds fails with error (negative), once. 0: none. */
void fake_net_fail(uint32_t kinds, uint64_t nth, int error);
/* The same for calls of every kind. */
void fake_net_fail_nth(uint64_t nth, int error);
/* True once the failure that was asked for has happened. */
bool fake_net_has_failed(void);

/* Host h, from 0. */
void fake_net_host_addr(uint32_t h, struct verve_addr *addr); /* IPv4, port 0 */
/* For ever: nothing that it sends or is sent arrives. Its objects stay to be closed. */
void fake_net_host_kill(uint32_t h);
/* The host's processes stand still: no datagram is received or sent. The NIC goes on by itself. */
void fake_net_host_pause(uint32_t h, bool paused);
void fake_net_link(uint32_t h, bool up);
/*
 * While the host holds, the messages from it that begin (config.partial) do not end: the receiving
 * queue pairs keep their receives. Everything else goes on.
 */
void fake_net_hold(uint32_t h, bool hold);
/* The device is gone: polls and asynchronous events say -FI_ENODEV. */
void fake_net_device_remove(uint32_t h);
/* An asynchronous event of host h's device says this; the object works on. */
void fake_net_fault(uint32_t h, const struct verve_net_fault *fault);
/*
 * From now on verve_net_stamp_take sees changes of the hosts; until then it can tell nothing, so
 * that no list of ports is kept.
 */
void fake_net_stamps(void);
/* Host h's interface has the first addrs of its two addresses, its GID table the first gids. */
void fake_net_host_addrs(uint32_t h, uint32_t addrs, uint32_t gids);
/* verve_net_port_list calls the port unusable for this reason; NULL: usable. */
void fake_net_port_reject(uint32_t h, const char *reason);

/* Limits registered memory from here on, as RLIMIT_MEMLOCK does. At the start there is no limit. */
void fake_net_memlock(uint64_t bytes);

/*
 * Objects that are open: their number, and a list ("2 qp, 1 cq") into text of size bytes, which may
 * be NULL.
 */
size_t fake_net_leaks(char *text, size_t size);

/* Since fake_net_start. */
struct fake_net_stats {
	uint64_t dgrams, dgrams_lost, dgrams_duplicated, dgrams_refused;
	uint64_t requests;	/* work requests executed */
	uint64_t bytes;		/* that they moved */
	uint64_t rnr;		/* no receive was posted */
	uint64_t unanswered;	/* transmissions that nobody acknowledged */
	uint64_t full;		/* posts refused: more than the queue holds */
	uint64_t access_errors; /* protection and length errors, local and remote */
	uint64_t regs, max_mr;	/* registrations; most regions open at a time */
	uint64_t binds, peer_binds; /* of windows; of these, by the program's queue pairs */
	uint64_t pinned;	/* bytes that are registered now */
	uint64_t qps, max_qps, qps_opened; /* queue pairs: now, at most at a time, ever */
	uint16_t dscp;		/* of struct verve_net_qp_attr, of the queue pair opened last */
	uint64_t max_cq;	/* most entries that any CQ held */
	uint64_t calls;		/* of the kinds above */
	uint64_t port_lists;	/* lists of ports that were made */
	uint64_t begun;		/* messages that had begun before they came */
	uint64_t lost_recvs;	/* receives that a queue pair took along when it was closed */
	uint64_t slow;		/* slow calls about queue pairs that no worker made */
};
void fake_net_stats(struct fake_net_stats *stats);

/* Receives in the queue, and those that living queue pairs have begun to fill. */
struct verve_net_srq;
uint32_t fake_net_srq_count(const struct verve_net_srq *srq);
/* Completions that wait to be polled. */
struct verve_net_cq;
uint32_t fake_net_cq_count(const struct verve_net_cq *cq);
/* From now on polls of the queue fail with -FI_EIO. */
void fake_net_cq_break(struct verve_net_cq *cq);
/* The completion vector that the queue was opened with. */
uint32_t fake_net_cq_vector(const struct verve_net_cq *cq);

/* Writes every event to stderr. Also with VERVE_TRACE=1 in the environment. */
void fake_net_trace(bool on);

#endif
