/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Errands: what operations ask for, and leave. */
#define HASH_NONFATAL_OOM 1
#include "xport/errand.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "mr/cache_find.h"
#include "xport/xport.h"

static struct verve_errands *errands_of(struct verve_xport *xport)
{
	return &xport->home->errands;
}

static struct verve_errand *errand_alloc(struct verve_xport *xport)
{
	struct verve_errand *errand = calloc(1, sizeof(*errand));

	if (errand)
		errand->xport = xport;
	return errand;
}

static struct verve_errand *find(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_errand *errand = NULL;

	if (op->flags & VERVE_OP_ASKED)
		HASH_FIND_PTR(errands_of(xport)->by_op, &op, errand);
	assert(!errand == !(op->flags & VERVE_OP_ASKED));
	return errand;
}

/* From here on the operation has no errand. */
static void detach(struct verve_errand *errand)
{
	struct verve_errands *errands = errands_of(errand->xport);

	HASH_DEL(errands->by_op, errand);
	errand->op->flags &= ~VERVE_OP_ASKED;
	errand->op = NULL;
}

static void want(struct verve_errand *errand)
{
	struct verve_errands *errands = errands_of(errand->xport);

	errand->state = VERVE_ERRAND_WANTED;
	STAILQ_INSERT_TAIL(&errands->wanted, errand, link);
	errands->waiting++;
	errand->xport->errand_count++;
}

static void unwant(struct verve_errand *errand)
{
	struct verve_errands *errands = errands_of(errand->xport);

	STAILQ_REMOVE(&errands->wanted, errand, verve_errand, link);
	errand->state = VERVE_ERRAND_IDLE;
	errands->waiting--;
	errand->xport->errand_count--;
}

static void part(struct verve_errand *errand)
{
	struct verve_errands *errands = errands_of(errand->xport);

	errand->state = VERVE_ERRAND_PARTING;
	STAILQ_INSERT_TAIL(&errands->parting, errand, link);
	errands->waiting++;
	errand->xport->errand_count++;
}

/* Puts back what can be at once. Returns how many regions are left, at the beginning. */
static uint32_t put_at_once(struct verve_xport *xport, struct verve_mr_region **region,
			    uint32_t count)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct verve_mr_region *rest =
			verve_mr_cache_put_at_once(xport->attr.mr_cache, region[i]);

		if (rest)
			region[left++] = rest;
	}
	return left;
}

void verve_errand_put_regions(struct verve_xport *xport, struct verve_mr_region *const *region,
			      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		verve_mr_cache_put(xport->attr.mr_cache, region[i]);
}

static void add_back(struct verve_errand *errand, struct verve_mr_region *const *region,
		     uint32_t count)
{
	memcpy(&errand->back[errand->back_count], region, count * sizeof(*region));
	errand->back_count += count;
}

bool verve_errand_give_back(struct verve_xport *xport, const void *giver,
			    struct verve_mr_region **region, uint32_t count)
{
	struct verve_errand *errand = NULL;

	if (xport->attr.off_lock) {
		count = put_at_once(xport, region, count);
		errand = count ? errand_alloc(xport) : NULL;
	}
	if (!errand) {
		verve_errand_put_regions(xport, region, count);
		return false;
	}
	errand->giver = giver;
	add_back(errand, region, count);
	part(errand);
	return true;
}

/* All pieces without the device. An error: no region is kept. */
static int find_regions(struct verve_xport *xport, const struct verve_errand_ask *ask,
			struct verve_mr_region **region)
{
	int ret = 0;

	for (uint32_t i = 0; i < ask->count; i++) {
		ret = verve_mr_cache_find(xport->attr.mr_cache, ask->how, ask->piece[i].iov_base,
					  ask->piece[i].iov_len, ask->access, &region[i]);
		if (ret) {
			verve_errand_give_back(xport, NULL, region, i);
			break;
		}
	}
	return ret;
}

int verve_errand_get_regions(struct verve_xport *xport, const struct verve_errand_ask *ask,
			     struct verve_mr_region *region[VERVE_IOV_LIMIT])
{
	for (uint32_t i = 0; i < ask->count; i++) {
		int ret = verve_mr_cache_get_by(xport->attr.mr_cache, ask->how,
						ask->piece[i].iov_base, ask->piece[i].iov_len,
						ask->access, &region[i]);

		if (ret) {
			verve_errand_put_regions(xport, region, i);
			return ret;
		}
	}
	return 0;
}

static bool is_for_peer(enum verve_mr_how how)
{
	return how == VERVE_MR_FOR_PEER || how == VERVE_MR_KEPT_FOR_PEER;
}

/*
 * The result that is HERE answers this ask, too. An operation may come to ask in another way: then
 * regions serve all the same, but for windows, which take a link that binds them.
 */
static bool answers(const struct verve_errand *errand, const struct verve_errand_ask *ask)
{
	const struct verve_errand_ask *had = &errand->ask;

	return had->access == ask->access && had->count == ask->count &&
	       !memcmp(had->piece, ask->piece, ask->count * sizeof(*ask->piece)) &&
	       (had->how == ask->how || is_for_peer(ask->how) || !is_for_peer(had->how));
}

/* The result, which is HERE. */
static void take(struct verve_errand *errand, struct verve_mr_region **region)
{
	errand->state = VERVE_ERRAND_IDLE;
	memcpy(region, errand->got, errand->ask.count * sizeof(*region));
}

static struct verve_errand *attach(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_errand *errand = errand_alloc(xport);

	if (!errand)
		return NULL;
	errand->op = op;
	HASH_ADD_PTR(errands_of(xport)->by_op, op, errand);
	if (!errand->hh.tbl) {
		free(errand);
		return NULL;
	}
	op->flags |= VERVE_OP_ASKED;
	return errand;
}

int verve_errand_get(struct verve_xport *xport, struct verve_op *op,
		     const struct verve_errand_ask *ask,
		     struct verve_mr_region *region[VERVE_IOV_LIMIT])
{
	struct verve_errand *errand;
	int ret;

	if (!xport->attr.off_lock)
		return verve_errand_get_regions(xport, ask, region);
	errand = find(xport, op);
	if (errand && errand->state == VERVE_ERRAND_OUT)
		return -FI_EINPROGRESS;
	if (errand && errand->state == VERVE_ERRAND_HERE && answers(errand, ask)) {
		take(errand, region);
		return 0;
	}
	ret = find_regions(xport, ask, region);
	if (ret != -FI_EAGAIN)
		return ret;
	if (!errand)
		errand = attach(xport, op);
	if (!errand)
		return verve_errand_get_regions(xport, ask, region);
	if (*verve_errand_refused(errand, ask))
		return *verve_errand_refused(errand, ask);
	/*
	 * Only now: each time that the operation tries to start, it may ask in several ways, of
	 * which this is the first that nothing answers.
	 */
	if (errand->state == VERVE_ERRAND_HERE)
		verve_errand_give_back(xport, NULL, errand->got, errand->ask.count);
	errand->ask = *ask;
	/* One that is WANTED keeps its place: packets make its operation try again. */
	if (errand->state != VERVE_ERRAND_WANTED)
		want(errand);
	return -FI_EINPROGRESS;
}

void verve_errand_take_back(struct verve_errand *errand)
{
	errand->state = VERVE_ERRAND_IDLE;
	add_back(errand, errand->got,
		 put_at_once(errand->xport, errand->got, errand->ask.count));
}

/* Once the endpoint does no errands any more, regions go back in place. */
static void end(struct verve_errand *errand)
{
	if (errand->back_count && errand->xport->attr.off_lock) {
		part(errand);
		return;
	}
	verve_errand_put_regions(errand->xport, errand->back, errand->back_count);
	free(errand);
}

/*
 * The last errand that gives regions of this memory back, and is to write nothing so far. NULL: all
 * are given back. An errand of memory that lay there before is as good.
 */
static struct verve_errand *find_parting(struct verve_xport *xport, const void *giver)
{
	struct verve_errands *errands = errands_of(xport);
	struct verve_errand *errand = errands->parting_out, *last = NULL, *next;

	if (errand && errand->giver == giver && !errand->report.write)
		last = errand;
	STAILQ_FOREACH(next, &errands->parting, link)
		if (next->giver == giver && !next->report.write)
			last = next;
	return last;
}

/* The operation's errand, or a new one. NULL: there is no need of one, or no memory. */
static struct verve_errand *take_errand(struct verve_xport *xport, struct verve_op *op, bool needed)
{
	struct verve_errand *errand = find(xport, op);

	if (!errand)
		return needed ? errand_alloc(xport) : NULL;
	if (errand->state == VERVE_ERRAND_WANTED)
		unwant(errand);
	if (errand->state == VERVE_ERRAND_HERE)
		verve_errand_take_back(errand);
	detach(errand);
	if (needed || errand->back_count || errand->state == VERVE_ERRAND_OUT)
		return errand;
	free(errand);
	return NULL;
}

struct verve_errand *verve_errand_part(struct verve_xport *xport, struct verve_op *op,
				       const void *giver, struct verve_mr_region **region,
				       uint32_t count)
{
	struct verve_errand *errand;

	if (!xport->attr.off_lock) {
		verve_errand_put_regions(xport, region, count);
		verve_errand_forget(xport, op);
		return giver ? find_parting(xport, giver) : NULL;
	}
	count = put_at_once(xport, region, count);
	errand = take_errand(xport, op, count);
	if (!errand) {
		verve_errand_put_regions(xport, region, count);
		return giver ? find_parting(xport, giver) : NULL;
	}
	add_back(errand, region, count);
	return errand;
}

void verve_errand_send(struct verve_errand *errand)
{
	if (errand->state == VERVE_ERRAND_IDLE)
		part(errand);
}

void verve_errand_forget_asked(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_errand *errand = find(xport, op);

	if (errand->state == VERVE_ERRAND_WANTED)
		unwant(errand);
	if (errand->state == VERVE_ERRAND_HERE)
		verve_errand_take_back(errand);
	detach(errand);
	if (errand->state == VERVE_ERRAND_OUT)
		return;
	end(errand);
}

bool verve_errand_grow(struct verve_xport *xport, struct verve_slab_pool *pool, size_t count)
{
	struct verve_errand *errand = xport->attr.off_lock ? errand_alloc(xport) : NULL;

	if (!errand)
		return false;
	errand->grows = pool;
	errand->slabs = count;
	want(errand);
	return true;
}
