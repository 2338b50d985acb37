/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Measuring what a device costs (mr/costs.h). Any thread. */
#ifndef VERVE_MR_COSTS_MEASURE_H
#define VERVE_MR_COSTS_MEASURE_H

struct verve_mr_costs;
struct verve_net_device;

/*
 * Measures the costs of the device's port, once in a process (the first 16 ports that are usable).
 * Opens a queue pair and closes it again, so it may block for milliseconds: not under an engine's
 * lock. Never fails: costs that cannot be measured are those of verve_mr_costs_default. So it is
 * with all of them without memory, where the device refuses to register, and where the clock stands
 * still; and with those of reads and windows on a device without windows, on a port that is not
 * usable or does not loop packets back, or without a queue pair to spare. hit is what asking the
 * monitor costs where a cache has opened it (mr/monitor.h).
 */
void verve_mr_costs_measure(struct verve_net_device *dev, struct verve_mr_costs *costs);

#endif
