/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Configuration: how the device of this process behaves. The value of property NAME comes from
 * the variable SHMV_NAME, else from the profile that SHMV_PROFILE names, else it is the default.
 * README.md explains the properties. A profile is a file of lines "name value"; # begins a
 * comment.
 */
#ifndef SHMV_CONF_H
#define SHMV_CONF_H

#include <stdbool.h>
#include <stdint.h>

struct shmv_conf {
	/* Limits, as ibv_query_device(3) reports them. */
	uint32_t max_inline, max_qp, max_qp_wr, max_sge, max_cqe, max_rd_atomic;
	uint32_t spare_qp; /* what a process gets of them; not reported */
	uint32_t vendor, part;
	uint32_t srq, mw, td, ah, atomics; /* 0: the device has none */
	/* Time that commands take. */
	uint32_t qp_us, reg_us, reg_ns_per_page, resolve_ms;
	/* Behaviour in which devices differ. */
	uint32_t mlx5_wqes, inline_exact, qp_errno, clean_cq, err_post, last_wqe, pin_memory,
		pin_rings, populate, warm;
	/* The port. */
	uint32_t infiniband, grh_required, lmc, mtu, roce_v1;
	/* The wire. */
	uint32_t wire_ns, wire_mbps, jitter_ns, event_us, wake_us, lose_one_in, seed;
	uint32_t beside_max, heap_mb, stats;
	char ips[256], pkeys[64], subnets[128], fabric[64], profile[64];
	char dir[80]; /* the fabric's folder, below /dev/shm */
	bool timed;   /* completions carry a time, and no poll sees them before it */
};

extern struct shmv_conf shmv_conf;

/*
 * Reads it. False, and a line on standard error: the profile cannot be read, or a value is wrong.
 */
bool shmv_conf_read(void);

/* Takes the time of a command of the kernel: sleeps, or spins if the time is short. */
void shmv_conf_spend(uint64_t ns);

#endif
