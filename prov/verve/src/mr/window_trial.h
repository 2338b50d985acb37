/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trial of a device's memory windows. What peers may reach rests on promises (InfiniBand spec. vol.
 * 1, 10.6.7.2): a window opens its bytes, no others, and its key ends when it is unbound. A window
 * for a peer opens them to the peer of one queue pair. Few programs use windows, so no domain
 * relies on them before it has tried one.
 */
#ifndef VERVE_MR_WINDOW_TRIAL_H
#define VERVE_MR_WINDOW_TRIAL_H

#include <stdbool.h>

struct verve_net_device;

/*
 * Binds a window to memory of its own, and reads by its key through a second queue pair, which is
 * connected to the binder's (net/mw.h). May block for milliseconds. Any thread. -FI_EPERM: the
 * device breaks a promise, so no window may be used. -FI_EOPNOTSUPP: the driver binds none.
 * -FI_ENOENT: other domains or processes have all windows, so a later trial may succeed. Other
 * errors of net/mw.h: the trial could not be made. *atomics, if the result is 0: the device has
 * atomics, and binds windows for them. Logs.
 */
int verve_mr_window_trial(struct verve_net_device *dev, bool *atomics);
/* The same for windows for a peer (limits.mw_peer), which are bound for reading alone. */
int verve_mr_window_trial_for_peer(struct verve_net_device *dev);

#endif
