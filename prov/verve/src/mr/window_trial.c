/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Trial of memory windows. A read that is refused costs the binder: its queue pair ends. */
#include "mr/window_trial.h"

#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mr/region.h"
#include "net/device.h"
#include "net/mw.h"

enum {
	PAGE = 4096,
	LEN = 8, /* bytes of a read */
	/* Places in the page: for the bytes that are read; the window; bytes beside the window. */
	TO = 0,
	INSIDE = 1024,
	INSIDE_LEN = 64,
	BESIDE = INSIDE + INSIDE_LEN,
};

struct trial {
	struct verve_net_device *dev;
	struct verve_net_binder *binder; /* NULL: to be opened */
	bool spent; /* the binder has failed: another one takes its place when it is needed */
	struct verve_mr_region *base;
	struct verve_net_mw mw;
	char *memory; /* a page, which base covers */
	bool for_peer; /* windows for a peer are tried */
	bool atomics; /* the device binds windows for atomics */
	bool exposed; /* a window may go on after the trial: the page must not be used again */
};

static void binder_put(struct trial *trial)
{
	if (trial->binder)
		verve_net_binder_close(trial->binder);
	trial->binder = NULL;
	trial->spent = false;
}

static int binder_get(struct trial *trial)
{
	if (trial->spent)
		binder_put(trial);
	if (trial->binder)
		return 0;
	return verve_net_binder_open(trial->dev, VERVE_NET_BINDER_PATIENCE, true,
				     &trial->binder);
}

/* -FI_ENOENT: others have all windows. */
static int window_get(struct trial *trial, struct verve_net_mw *mw)
{
	int ret = verve_net_mw_alloc(trial->dev, trial->for_peer, mw);

	return ret == -FI_ENOMEM ? -FI_ENOENT : ret;
}

static int window_put(struct trial *trial, struct verve_net_mw *mw, const char **broken)
{
	int ret = verve_net_mw_free(mw);

	if (!ret)
		return 0;
	trial->exposed = true;
	*broken = "does not free windows";
	return ret;
}

/* *refused: the device did not read the bytes. An error: that is not known. */
static int try_read(struct trial *trial, size_t at, uint32_t rkey, bool *refused)
{
	int ret = binder_get(trial);

	if (ret)
		return ret;
	ret = verve_net_binder_read(trial->binder, trial->memory + TO, trial->base->lkey,
				    trial->memory + at, rkey, LEN);
	*refused = ret == -FI_EACCES;
	trial->spent = ret;
	return *refused ? 0 : ret;
}

/* *broken: the promise that the device breaks; NULL: none. An error: that is not known. */
static int try_bound(struct trial *trial, const char **broken)
{
	bool refused;
	int ret = try_read(trial, INSIDE, trial->mw.rkey, &refused);

	if (!ret && refused)
		*broken = "refuses the bytes of a window";
	if (ret || refused || !verve_net_device_port(trial->dev)->limits.mw_bounds)
		return ret;
	ret = try_read(trial, BESIDE, trial->mw.rkey, &refused);
	if (!ret && !refused)
		*broken = "lets peers reach bytes beside a window";
	return ret;
}

static int try_unbound(struct trial *trial, const char **broken)
{
	uint32_t rkey = trial->mw.rkey;
	bool refused;
	int ret = binder_get(trial);

	if (!ret)
		ret = verve_net_mw_unbind(trial->binder, &trial->mw, &trial->base->net,
					  trial->memory + INSIDE);
	if (!ret)
		ret = try_read(trial, INSIDE, rkey, &refused);
	if (!ret && !refused)
		*broken = "lets peers use the key of a window that is unbound";
	return ret;
}

/*
 * Some devices bind no windows for atomics (mlx5, where UMRs may not change that access), and say
 * so by any error. That costs binder and window, so this bind has a window of its own.
 */
static int try_atomics(struct trial *trial, const char **broken)
{
	struct verve_net_mw mw;
	int ret = window_get(trial, &mw);

	if (ret)
		return ret;
	ret = binder_get(trial);
	if (ret) {
		window_put(trial, &mw, broken);
		return ret;
	}
	ret = verve_net_mw_bind(trial->binder, &mw, &trial->base->net, trial->memory + INSIDE,
				INSIDE_LEN, VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE |
				VERVE_NET_REMOTE_ATOMIC);
	if (!ret)
		ret = verve_net_mw_unbind(trial->binder, &mw, &trial->base->net,
					  trial->memory + INSIDE);
	trial->atomics = !ret;
	if (ret)
		binder_put(trial);
	return window_put(trial, &mw, broken);
}

static int try_window(struct trial *trial, const char **broken)
{
	bool wanted = verve_net_device_port(trial->dev)->limits.atomics;
	int ret = wanted ? try_atomics(trial, broken) : 0;

	if (!ret)
		ret = binder_get(trial);
	if (!ret)
		ret = verve_net_mw_bind(trial->binder, &trial->mw, &trial->base->net,
					trial->memory + INSIDE, INSIDE_LEN, VERVE_NET_REMOTE_READ);
	if (!ret)
		ret = try_bound(trial, broken);
	return ret || *broken ? ret : try_unbound(trial, broken);
}

/* The window opens its bytes to the binder's queue pair; then it is unbound, and does not. */
static int try_own(struct trial *trial, const char **broken)
{
	bool refused;
	int ret = binder_get(trial);

	if (!ret)
		ret = verve_net_mw_bind(trial->binder, &trial->mw, &trial->base->net,
					trial->memory + INSIDE, INSIDE_LEN, VERVE_NET_REMOTE_READ);
	if (!ret)
		ret = try_read(trial, INSIDE, trial->mw.rkey, &refused);
	if (!ret && refused)
		*broken = "refuses the bytes of a window for a peer";
	return ret || *broken ? ret : try_unbound(trial, broken);
}

/* The window is bound to one queue pair, and another one reads; then its own reads beside it. */
static int try_other(struct trial *trial, const char **broken)
{
	struct verve_net_binder *binder;
	bool refused;
	int ret = binder_get(trial);

	if (!ret)
		ret = verve_net_mw_bind(trial->binder, &trial->mw, &trial->base->net,
					trial->memory + INSIDE, INSIDE_LEN, VERVE_NET_REMOTE_READ);
	if (ret)
		return ret;
	binder = trial->binder;
	trial->binder = NULL;
	ret = try_read(trial, INSIDE, trial->mw.rkey, &refused);
	binder_put(trial);
	trial->binder = binder;
	if (!ret && !refused)
		*broken = "lets other peers use the key of a window for a peer";
	if (ret || *broken || !verve_net_device_port(trial->dev)->limits.mw_bounds)
		return ret;
	ret = try_read(trial, BESIDE, trial->mw.rkey, &refused);
	if (!ret && !refused)
		*broken = "lets a peer reach bytes beside its window";
	return ret;
}

static int try_for_peer(struct trial *trial, const char **broken)
{
	int ret = try_own(trial, broken);

	return ret || *broken ? ret : try_other(trial, broken);
}

/*
 * The binder goes first: a request that has not ended might bind the window later. But a window for
 * a peer must not outlive its queue pair.
 */
static int trial_end(struct trial *trial, const char **broken)
{
	int ret;

	if (!trial->for_peer)
		binder_put(trial);
	ret = window_put(trial, &trial->mw, broken);
	binder_put(trial);
	return ret;
}

static int trial_run(struct trial *trial, const char **broken)
{
	int freed, ret = posix_memalign((void **)&trial->memory, PAGE, PAGE);

	if (ret)
		return -FI_ENOMEM;
	memset(trial->memory, 0, PAGE);
	ret = verve_mr_region_open(trial->dev, trial->memory, PAGE,
				   VERVE_NET_LOCAL_WRITE | VERVE_NET_WINDOWS, &trial->base);
	if (ret)
		goto err_memory;
	ret = window_get(trial, &trial->mw);
	if (ret)
		goto err_region;
	ret = trial->for_peer ? try_for_peer(trial, broken) : try_window(trial, broken);
	freed = trial_end(trial, broken);
	if (!ret)
		ret = freed;
err_region:
	verve_mr_region_close(trial->base);
err_memory:
	if (!trial->exposed)
		free(trial->memory);
	return ret;
}

/* Logs what the trial has found. Returns its result: -FI_EPERM if a promise is broken. */
static int trial_conclude(const struct trial *trial, int ret, const char *broken)
{
	const char *name = verve_net_device_port(trial->dev)->device;

	if (broken) {
		VERVE_WARN(MR, "%s: memory windows%s are not used, because the device %s: %s\n",
			   name, trial->for_peer ? " for a peer" : "", broken,
			   trial->for_peer ? "windows for all peers are used" :
			   "memory is registered each time that it is opened to peers");
		return -FI_EPERM;
	}
	if (ret == -FI_ENOENT)
		VERVE_INFO(MR, "%s: there is no memory window to try now\n", name);
	else if (ret == -FI_EOPNOTSUPP)
		VERVE_WARN(MR, "%s: the device has memory windows, but its driver binds none\n",
			   name);
	else if (ret)
		VERVE_WARN(MR, "%s: cannot try memory windows%s: %s\n", name,
			   trial->for_peer ? " for a peer" : "", fi_strerror(-ret));
	return ret;
}

int verve_mr_window_trial(struct verve_net_device *dev, bool *atomics)
{
	struct trial trial = {.dev = dev};
	const char *broken = NULL;
	int ret = trial_run(&trial, &broken);

	*atomics = trial.atomics;
	if (!ret && !broken && !trial.atomics && verve_net_device_port(dev)->limits.atomics)
		VERVE_INFO(MR, "%s: the device binds no memory windows for atomics: such memory "
			   "is registered each time that it is opened to peers\n",
			   verve_net_device_port(dev)->device);
	return trial_conclude(&trial, ret, broken);
}

int verve_mr_window_trial_for_peer(struct verve_net_device *dev)
{
	struct trial trial = {.dev = dev, .for_peer = true};
	const char *broken = NULL;
	int ret = trial_run(&trial, &broken);

	return trial_conclude(&trial, ret, broken);
}
