/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake net/mw.h. Binds are executed at once; the rules are those of InfiniBand spec. vol. 1,
 * 10.6.7.2. A binder that has failed once fails until it is closed, as its queue pair is in the
 * error state. A window that could not be unbound stays bound until it is freed. The configuration:
 *
 *   mw_stale       the key of an unbound window lives on until the window is freed
 *   mw_late        a bind that fails is done all the same, though nobody waits for it
 *   mw_stays       a bound window cannot be freed: it lives until its region is closed
 *   mw_no_atomics  a bind for atomics is refused, which costs the binder
 *   mw_for_all     a window for a peer opens its bytes to all peers
 *   mw_refused     a queue pair other than a binder's binds no window for a peer, and fails
 */
#include "net/mw.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "fake_region.h"
#include "fake_world.h"
#include "net/qp.h"

static const unsigned remote = VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE |
			       VERVE_NET_REMOTE_ATOMIC;

struct verve_net_binder {
	struct verve_net_device *dev;
	bool broken, reads;
};

struct window {
	struct verve_net_device *dev;
	struct fake_region *bound; /* NULL: not bound */
	bool for_peer;
	uint32_t next_key; /* for_peer: of the next bind */
};

int verve_net_binder_open(struct verve_net_device *dev, uint64_t patience, bool reads,
			  struct verve_net_binder **binderp)
{
	struct verve_net_binder *binder;
	int ret = fake_gate(FAKE_NET_BINDER_OPEN);

	if (!patience)
		fake_fatal("a binder without patience");
	if (ret)
		return ret;
	if (!fake_world.config.limits.mw)
		return -FI_EOPNOTSUPP;
	binder = calloc(1, sizeof(*binder));
	if (!binder)
		return -FI_ENOMEM;
	binder->dev = dev;
	binder->reads = reads;
	dev->users++;
	fake_opened(FAKE_BINDER);
	*binderp = binder;
	return 0;
}

void verve_net_binder_close(struct verve_net_binder *binder)
{
	fake_windows_check_closed(binder->dev, binder);
	binder->dev->users--;
	free(binder);
	fake_closed(FAKE_BINDER);
}

int verve_net_mw_alloc(struct verve_net_device *dev, bool for_peer, struct verve_net_mw *mw)
{
	struct window *window;
	int ret = fake_gate(FAKE_NET_MW_ALLOC);

	if (ret)
		return ret;
	if (fake_world.open[FAKE_MW] >= fake_world.config.limits.mw)
		return -FI_ENOMEM;
	if (for_peer && !fake_world.config.limits.mw_peer)
		return -FI_EOPNOTSUPP;
	window = calloc(1, sizeof(*window));
	if (!window)
		return -FI_ENOMEM;
	window->dev = dev;
	window->for_peer = for_peer;
	window->next_key = fake_next_key();
	dev->users++;
	fake_opened(FAKE_MW);
	*mw = (struct verve_net_mw){fake_next_key(), for_peer, window};
	return 0;
}

uint32_t verve_net_mw_next_key(const struct verve_net_mw *mw)
{
	return ((const struct window *)mw->handle)->next_key;
}

void verve_net_mw_posted(struct verve_net_mw *mw)
{
	struct window *window = mw->handle;

	mw->rkey = window->next_key;
	window->next_key = fake_next_key();
}

static void unbind(struct window *window)
{
	struct fake_region *bound = window->bound;

	if (!bound)
		return;
	HASH_DELETE(hh_rkey, window->dev->by_rkey, bound);
	bound->base->windows--;
	free(bound);
	window->bound = NULL;
}

void fake_windows_check_closed(struct verve_net_device *dev, const void *qp)
{
	struct fake_region *bound, *next;

	/* A window that could not be freed (mw_stays) has a handle. */
	HASH_ITER(hh_rkey, dev->by_rkey, bound, next)
		if (bound->only == qp && !bound->window)
			fake_fatal("a queue pair closes to which the window of key %#x is bound",
				   bound->rkey);
}

static void window_end(struct window *window)
{
	unbind(window);
	window->dev->users--;
	free(window);
	fake_closed(FAKE_MW);
}

int verve_net_mw_free(struct verve_net_mw *mw)
{
	struct window *window = mw->handle;

	if (window->bound && fake_world.config.mw_stays) {
		window->bound->base->stuck++;
		window->bound->window = window;
		return -FI_EBUSY;
	}
	window_end(window);
	return 0;
}

void fake_windows_end(struct fake_region *base)
{
	struct fake_region *bound, *next;

	HASH_ITER(hh_rkey, base->dev->by_rkey, bound, next)
		if (base->stuck && bound->base == base)
			window_end(bound->window);
}

/* The device and the binder let the request through. */
static int binder_gate(struct verve_net_binder *binder)
{
	int ret = binder->broken ? -FI_EIO : fake_gate(FAKE_NET_MW_BIND);

	fake_world.now += fake_world.config.binder_time;
	if (!ret && binder->dev->host->removed)
		ret = -FI_ENODEV;
	binder->broken |= ret != 0;
	return ret;
}

int verve_net_binder_read(struct verve_net_binder *binder, void *to, uint32_t lkey,
			  const void *from, uint32_t rkey, uint32_t len)
{
	int ret = binder_gate(binder);

	(void)to, (void)lkey;
	if (!binder->reads)
		fake_fatal("a read by a binder that was not opened for it");
	if (ret)
		return ret;
	if (fake_rkey_covers(binder->dev, rkey, (uintptr_t)from, len, VERVE_NET_REMOTE_READ) &&
	    fake_rkey_is_for(binder->dev, rkey, binder))
		return 0;
	binder->broken = true;
	return -FI_EACCES;
}

static void check_bind(const struct window *window, const struct fake_region *base, uint64_t from,
		       size_t len, unsigned access)
{
	if (!len || len > VERVE_NET_MW_MAX || !(access & remote) ||
	    !(base->access & VERVE_NET_WINDOWS) || base->dev != window->dev ||
	    (access & (VERVE_NET_REMOTE_WRITE | VERVE_NET_REMOTE_ATOMIC) &&
	     !(base->access & VERVE_NET_LOCAL_WRITE)) ||
	    from < base->addr || from - base->addr > base->len ||
	    len > base->len - (from - base->addr))
		fake_fatal("a window is bound that breaks the rules: %zu bytes, access %#x", len,
			   access);
}

/* only: the queue pair, or binder, of a window for a peer. */
static void bind_to(struct window *window, const struct verve_net_bind *bind, uint32_t rkey,
		    const void *only)
{
	struct fake_region *base = bind->mr->handle, *bound;
	uint64_t from = (uintptr_t)bind->addr;

	check_bind(window, base, from, bind->len, bind->access);
	bound = calloc(1, sizeof(*bound));
	if (!bound)
		fake_fatal("no memory");
	*bound = (struct fake_region){
		.dev = window->dev,
		.rkey = rkey,
		.addr = from,
		.memory = base->memory + (from - base->addr),
		.len = bind->len,
		.access = bind->access & remote,
		.base = base,
		.only = only,
		.handle = window,
	};
	base->windows++;
	HASH_ADD(hh_rkey, window->dev->by_rkey, rkey, sizeof(bound->rkey), bound);
	window->bound = bound;
	fake_world.stats.binds++;
	fake_trace("host %u: a window opens %zu bytes, access %#x, key %#x",
		   window->dev->host->index, bind->len, bind->access, rkey);
}

bool fake_window_bind(const void *qp, const struct verve_net_bind *bind, uint32_t rkey)
{
	struct window *window = bind->mw->handle;

	if (!window->for_peer)
		fake_fatal("a window of type 1 is bound by a queue pair of the program");
	if (window->bound)
		fake_fatal("a window for a peer is bound that is bound already");
	if (fake_world.config.mw_refused)
		return false;
	bind_to(window, bind, rkey, qp);
	fake_world.stats.peer_binds++;
	return true;
}

bool fake_window_invalidate(struct verve_net_device *dev, const void *qp, uint32_t rkey)
{
	struct fake_region *bound;

	HASH_FIND(hh_rkey, dev->by_rkey, &rkey, sizeof(rkey), bound);
	if (!bound || bound->only != qp)
		return false;
	unbind(bound->handle);
	return true;
}

int verve_net_mw_bind(struct verve_net_binder *binder, struct verve_net_mw *mw,
		      const struct verve_net_mr *mr, void *addr, size_t len, unsigned access)
{
	const struct verve_net_bind bind = {mw, mr, addr, len, access};
	struct window *window = mw->handle;
	int ret = binder_gate(binder);

	if (ret && !fake_world.config.mw_late)
		return ret;
	if (access & VERVE_NET_REMOTE_ATOMIC && fake_world.config.mw_no_atomics) {
		binder->broken = true;
		return -FI_EIO;
	}
	if (window->for_peer) {
		if (window->bound)
			fake_fatal("a window for a peer is bound that is bound already");
		bind_to(window, &bind, window->next_key, binder);
		verve_net_mw_posted(mw);
		return ret;
	}
	unbind(window);
	mw->rkey = fake_next_key();
	bind_to(window, &bind, mw->rkey, NULL);
	return ret;
}

int verve_net_mw_unbind(struct verve_net_binder *binder, struct verve_net_mw *mw,
			const struct verve_net_mr *mr, void *addr)
{
	struct window *window = mw->handle;
	int ret = binder_gate(binder);

	if (ret)
		return ret;
	if (!window->bound || window->bound->base != mr->handle ||
	    window->bound->addr != (uintptr_t)addr)
		fake_fatal("a window is unbound that is not bound there");
	if (!fake_world.config.mw_stale)
		unbind(window);
	if (!window->for_peer)
		mw->rkey = fake_next_key();
	return 0;
}
