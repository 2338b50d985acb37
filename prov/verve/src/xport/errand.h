/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errands: what an operation's memory needs of the device and takes long: registering it, up to
 * hundreds of microseconds, and giving regions back. A thread does an errand after it has released
 * the engine's lock (xport/errand_run.h), so that other threads go on meanwhile.
 *
 * An operation that cannot start without regions asks for them, and stays QUEUED; when the errand
 * is done, its peer is kicked, and it asks again. An operation that ends leaves its regions to an
 * errand, which is to write its completion: the application may free its buffer then, and no peer
 * may reach it any more. Regions go back one errand after the other, in order. Errands of a third
 * kind register slabs, for no operation (xport/slab.h).
 *
 * Without attr.off_lock nothing here waits: all is done in place. The engine's lock protects
 * everything here, but for an errand that is OUT.
 */
#ifndef VERVE_XPORT_ERRAND_H
#define VERVE_XPORT_ERRAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <uthash.h>

#include "comp/comp.h"
#include "mr/cache.h"
#include "net/mr.h"
#include "xport/errand_state.h"
#include "xport/op.h"
#include "xport/request.h"

struct verve_comp_counter;
struct verve_comp_queue;
struct verve_mr_region;
struct verve_slab_chunk;
struct verve_slab_pool;
struct verve_xport;

/* Regions for these pieces of memory, all or none. */
struct verve_errand_ask {
	enum verve_mr_how how;
	unsigned access; /* VERVE_NET_* */
	uint32_t count;	 /* pieces */
	struct iovec piece[VERVE_IOV_LIMIT];
};

enum verve_errand_state {
	VERVE_ERRAND_IDLE,    /* nothing is to be done; refused is kept for the operation */
	VERVE_ERRAND_WANTED,  /* in wanted */
	VERVE_ERRAND_PARTING, /* in parting */
	VERVE_ERRAND_OUT,     /* a thread does it, without the lock */
	VERVE_ERRAND_HERE,    /* the operation has yet to take the result */
};

/* The completion that an errand is to write (xport/report.c). */
struct verve_errand_report {
	void (*write)(const struct verve_errand *errand); /* NULL: there is none */
	struct verve_comp_queue *queue;
	struct verve_comp_counter *counter;
	struct verve_peer *peer; /* of a transmit: counts in peer->parting; or NULL */
	bool notify, is_error, is_foreign;
	struct verve_comp_error entry;
};

struct verve_errand {
	STAILQ_ENTRY(verve_errand) link;
	UT_hash_handle hh; /* by op */
	struct verve_xport *xport;
	struct verve_op *op; /* that has asked; NULL: it has ended, or never asked */
	enum verve_errand_state state;
	struct verve_errand_ask ask;
	int ret; /* of the ask that was executed: 0, or a negative FI errno */
	/* What each way of getting regions, without and with remote access, has come to, or 0. */
	int refused[VERVE_MR_HOWS][2];
	struct verve_mr_region *got[VERVE_IOV_LIMIT]; /* of the ask; with ret 0 */
	const void *giver; /* the memory whose regions it gives back; NULL: any */
	uint32_t back_count;
	struct verve_mr_region *back[2 * VERVE_IOV_LIMIT]; /* to be given back */
	struct verve_errand_report report;
	/* An errand that registers slabs has nothing of the above, but xport and state. */
	struct verve_slab_pool *grows; /* NULL: it is no such errand */
	size_t slabs;
	struct verve_slab_chunk *chunk; /* NULL: there was this error */
	int error; /* positive FI errno */
};

/* What asking so has come to before, or 0. */
static inline int *verve_errand_refused(struct verve_errand *errand,
					const struct verve_errand_ask *ask)
{
	return &errand->refused[ask->how][!!(ask->access & VERVE_NET_REMOTE_READ)];
}
/* The regions that it asks for, in place: 0, or the error, and then none. Needs no lock. */
int verve_errand_get_regions(struct verve_xport *xport, const struct verve_errand_ask *ask,
			     struct verve_mr_region *region[VERVE_IOV_LIMIT]);

/* Gives them back, in place. Needs no lock. */
void verve_errand_put_regions(struct verve_xport *xport, struct verve_mr_region *const *region,
			      uint32_t count);

/*
 * Regions for the operation's memory, in region[]. -FI_EINPROGRESS: an errand gets them; the
 * operation asks for the same when its peer is kicked. Other errors: of the function that ask->how
 * names; once it has failed, it fails for this operation.
 */
int verve_errand_get(struct verve_xport *xport, struct verve_op *op,
		     const struct verve_errand_ask *ask,
		     struct verve_mr_region *region[VERVE_IOV_LIMIT]);
/*
 * Gives back count regions of the memory giver (or NULL). No request uses them. True: an errand
 * does.
 */
bool verve_errand_give_back(struct verve_xport *xport, const void *giver,
			    struct verve_mr_region **region, uint32_t count);
/*
 * The operation is being reported: gives its count regions back. giver: its memory, of which an
 * errand may give other regions back; or NULL. NULL: all that is done. Else the caller fills in the
 * report, and calls verve_errand_send.
 */
struct verve_errand *verve_errand_part(struct verve_xport *xport, struct verve_op *op,
				       const void *giver, struct verve_mr_region **region,
				       uint32_t count);
void verve_errand_send(struct verve_errand *errand);
/*
 * The errand has got regions that no operation takes: it becomes IDLE, and they are among those
 * that it is to give back.
 */
void verve_errand_take_back(struct verve_errand *errand);

/* Registers slabs for the transport's pool. False: they are to be registered in place. */
bool verve_errand_grow(struct verve_xport *xport, struct verve_slab_pool *pool, size_t count);

/* For verve_errand_forget alone: the operation has asked. */
void verve_errand_forget_asked(struct verve_xport *xport, struct verve_op *op);
/* The operation ends: nobody takes the result of its errand any more. */
static inline void verve_errand_forget(struct verve_xport *xport, struct verve_op *op)
{
	if (__builtin_expect(op->flags & VERVE_OP_ASKED, 0))
		verve_errand_forget_asked(xport, op);
}

#endif
