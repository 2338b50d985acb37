/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Errands: what operations ask for, and leave. */
#define HASH_NONFATAL_OOM 1
#include "xport/errand.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "mr/cache_find.h"
#include "net/mr.h"
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

static void want(struct verve_errand *errand, const struct verve_errand_ask *ask)
{
	struct verve_errands *errands = errands_of(errand->xport);

	errand->ask = *ask;
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

static void put_in_place(struct verve_xport *xport, struct verve_mr_region *const *region,
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

void verve_errand_give_back(struct verve_xport *xport, struct verve_mr_region **region,
			    uint32_t count)
{
	struct verve_errand *errand = NULL;

	if (xport->attr.off_lock) {
		count = put_at_once(xport, region, count);
		errand = count ? errand_alloc(xport) : NULL;
	}
	if (!errand) {
		put_in_place(xport, region, count);
		return;
	}
	add_back(errand, region, count);
	part(errand);
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
			put_in_place(xport, region, put_at_once(xport, region, i));
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
			put_in_place(xport, region, i);
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
	       (had->how == ask->how ||
		(!errand->ret && (is_for_peer(ask->how) || !is_for_peer(had->how))));
}

static int *refused(struct verve_errand *errand, const struct verve_errand_ask *ask)
{
	return &errand->refused[ask->how][!!(ask->access & VERVE_NET_REMOTE_READ)];
}

/* The result, which is HERE. */
static int take(struct verve_errand *errand, struct verve_mr_region **region)
{
	errand->state = VERVE_ERRAND_IDLE;
	if (errand->ret)
		*refused(errand, &errand->ask) = errand->ret;
	else
		memcpy(region, errand->got, errand->ask.count * sizeof(*region));
	return errand->ret;
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
	if (errand && errand->state == VERVE_ERRAND_HERE && answers(errand, ask))
		return take(errand, region);
	ret = find_regions(xport, ask, region);
	if (ret != -FI_EAGAIN)
		return ret;
	if (!errand)
		errand = attach(xport, op);
	if (!errand)
		return verve_errand_get_regions(xport, ask, region);
	if (*refused(errand, ask))
		return *refused(errand, ask);
	if (errand->state == VERVE_ERRAND_WANTED) {
		errand->ask = *ask;
		return -FI_EINPROGRESS;
	}
	/*
	 * Only now: each time that the operation tries to start, it may ask in several ways, of
	 * which this is the first that nothing answers.
	 */
	if (errand->state == VERVE_ERRAND_HERE && !errand->ret)
		verve_errand_give_back(xport, errand->got, errand->ask.count);
	want(errand, ask);
	return -FI_EINPROGRESS;
}

/* The operation does not take what is HERE: it becomes what the errand gives back. */
static void take_back(struct verve_errand *errand)
{
	errand->state = VERVE_ERRAND_IDLE;
	if (!errand->ret)
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
	put_in_place(errand->xport, errand->back, errand->back_count);
	free(errand);
}

/*
 * The completion of the last message in a multi-receive buffer gives the buffer back, so it must
 * not overtake the others.
 */
static bool may_wait(const struct verve_xport *xport, const struct verve_op *op)
{
	return xport->attr.off_lock && !(op->cls->is_receive && op->flags & VERVE_OP_UNINVITED);
}

struct verve_errand *verve_errand_part(struct verve_xport *xport, struct verve_op *op,
				       struct verve_mr_region **region, uint32_t count)
{
	struct verve_errand *errand = find(xport, op);

	if (!may_wait(xport, op)) {
		put_in_place(xport, region, count);
		verve_errand_forget(xport, op);
		return NULL;
	}
	count = put_at_once(xport, region, count);
	if (errand) {
		if (errand->state == VERVE_ERRAND_WANTED)
			unwant(errand);
		if (errand->state == VERVE_ERRAND_HERE)
			take_back(errand);
		detach(errand);
	} else if (count) {
		errand = errand_alloc(xport);
	}
	if (!errand) {
		put_in_place(xport, region, count);
		return NULL;
	}
	add_back(errand, region, count);
	if (errand->back_count || errand->state == VERVE_ERRAND_OUT)
		return errand;
	free(errand);
	return NULL;
}

void verve_errand_send(struct verve_errand *errand)
{
	if (errand->state != VERVE_ERRAND_OUT)
		part(errand);
}

void verve_errand_forget_asked(struct verve_xport *xport, struct verve_op *op)
{
	struct verve_errand *errand = find(xport, op);

	if (errand->state == VERVE_ERRAND_WANTED)
		unwant(errand);
	if (errand->state == VERVE_ERRAND_HERE)
		take_back(errand);
	detach(errand);
	if (errand->state == VERVE_ERRAND_OUT)
		return;
	end(errand);
}
