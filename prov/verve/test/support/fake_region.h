/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The keys of the fake net's devices: regions (fake_mr.c) and windows of regions (fake_mw.c). */
#ifndef VERVE_TEST_SUPPORT_FAKE_REGION_H
#define VERVE_TEST_SUPPORT_FAKE_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

struct verve_net_device;

/* A region, or a window that is bound. */
struct fake_region {
	UT_hash_handle hh_lkey, hh_rkey;
	struct verve_net_device *dev;
	uint32_t lkey, rkey; /* 0: none */
	uint64_t addr;	     /* that goes with the keys */
	uint64_t memory;
	uint64_t len;
	uint64_t pinned; /* bytes of it */
	unsigned access;
	struct fake_region *base; /* a window's region */
	const void *only;	  /* a window for a peer: its queue pair, or binder; NULL: any */
	uint32_t windows;	  /* bound to this region */
	uint32_t stuck;		  /* windows that could not be freed */
	void *handle;		  /* a window's */
	void *window;		  /* the handle of a window that could not be freed */
};

struct verve_net_bind;

/* Executes the request that binds a window for a peer to queue pair qp, with this key. */
bool fake_window_bind(const void *qp, const struct verve_net_bind *bind, uint32_t rkey);
/* Executes the request that ends the window of this key. False: it is none of this queue pair. */
bool fake_window_invalidate(struct verve_net_device *dev, const void *qp, uint32_t rkey);
/* Fatal if windows are bound to the queue pair, or binder, which closes. */
void fake_windows_check_closed(struct verve_net_device *dev, const void *qp);

/* The windows of a region that could not be freed end with the region. */
void fake_windows_end(struct fake_region *base);

/* A new key, never 0. It comes back only after 2^31 others. */
uint32_t fake_next_key(void);

#endif
