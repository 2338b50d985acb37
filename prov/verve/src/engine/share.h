/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Share: how many connections and receive buffers an endpoint has at most, where the configuration
 * does not say. The processes of a host share the queue pairs of its devices, and its memory. Plain
 * functions; any thread.
 */
#ifndef VERVE_ENGINE_SHARE_H
#define VERVE_ENGINE_SHARE_H

#include <stddef.h>
#include <stdint.h>

struct verve_net_limits;

/*
 * Processes of this host that are to be expected on its devices: what the job's launcher says of
 * its own (Open MPI, MPICH's Hydra, Cray PALS, MVAPICH, Slurm), else the number of processors.
 */
uint32_t verve_share_processes(void);
/*
 * FI_VERVE_MAX_CONNS, or for "auto" three quarters of the device's queue pairs divided by
 * verve_share_processes(), from 16 to 4096: the rest is for others on the host. 0: no limit.
 */
uint32_t verve_share_conns(const struct verve_net_limits *limits);
/*
 * FI_VERVE_RX_LIMIT, or for "auto" as many buffers of so many bytes as fit a 32nd of the host's
 * memory (_SC_PHYS_PAGES of sysconf(3)) divided by verve_share_processes(), from 1024 to 4096,
 * but no more than verve_config.locked holds, and at least 16.
 */
uint32_t verve_share_buffers(size_t size);
/*
 * Receive buffers that may be added because messages have begun in half of them:
 * FI_VERVE_RX_BUFFERS, or for "auto" 256, but no more than limit, which is verve_share_buffers.
 */
uint32_t verve_share_uncredited_buffers(uint32_t limit);
/*
 * Receive buffers that an endpoint always has: FI_VERVE_RX_BUFFERS, or for "auto" as many as one
 * peer can fill with messages of the eager size while this side keeps up with it: its window, and
 * 32 for packets without credit; but no more than uncredited, which is
 * verve_share_uncredited_buffers. Of shorter messages there may be more: buffers are added then.
 */
uint32_t verve_share_first_buffers(uint32_t window, uint32_t uncredited);

#endif
