/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/errand_run.h"

#include <assert.h>
#include <stdlib.h>

#include "xport/dispatch.h"
#include "xport/errand.h"
#include "xport/peer.h"
#include "xport/rx_buffers.h"
#include "xport/start.h"
#include "xport/turn.h"
#include "xport/xport.h"

struct verve_errand *verve_errand_take(struct verve_xport *xport)
{
	struct verve_errands *errands = &xport->home->errands;
	struct verve_errand *errand;

	assert(verve_lock_held(xport->lock));
	/* Giving back comes first: memory that is pinned counts against the process's limit. */
	errand = errands->parting_out ? NULL : STAILQ_FIRST(&errands->parting);
	if (errand) {
		STAILQ_REMOVE_HEAD(&errands->parting, link);
		errands->parting_out = errand;
	} else {
		errand = STAILQ_FIRST(&errands->wanted);
		if (!errand)
			return NULL;
		STAILQ_REMOVE_HEAD(&errands->wanted, link);
		errand->state = VERVE_ERRAND_OUT;
	}
	errands->waiting--;
	return errand;
}

void verve_errand_execute(struct verve_errand *errand)
{
	if (errand->grows) {
		errand->chunk = verve_slab_chunk_open(errand->grows, errand->slabs, &errand->error);
		return;
	}
	/* Of an errand that registers, the lock protects back. */
	if (errand->state == VERVE_ERRAND_OUT) {
		errand->ret = verve_errand_get_regions(errand->xport, &errand->ask, errand->got);
		return;
	}
	verve_errand_put_regions(errand->xport, errand->back, errand->back_count);
}

static void finish_parting(struct verve_errand *errand)
{
	struct verve_xport *xport = errand->xport;
	struct verve_peer *peer = errand->report.peer;

	xport->home->errands.parting_out = NULL;
	if (errand->report.write)
		errand->report.write(errand);
	free(errand);
	/* A fenced operation may have waited for this completion. */
	if (peer && !--peer->parting)
		verve_peer_kick(xport, peer);
}

/* The operation has ended meanwhile: the regions go back, before it is reported. */
static void turn_to_parting(struct verve_errand *errand)
{
	if (errand->ret)
		errand->state = VERVE_ERRAND_IDLE;
	else
		verve_errand_take_back(errand);
	verve_errand_send(errand);
}

/* Operations that wait for slabs start now: the application may make no call for long. */
static void finish_growing(struct verve_errand *errand)
{
	struct verve_xport *xport = errand->xport;
	bool receives = errand->grows == &xport->rx_slabs;

	verve_slab_pool_add(errand->grows, errand->chunk, errand->error);
	free(errand);
	if (receives) {
		verve_rx_buffers_added(xport);
		verve_dispatch_refill(xport);
	} else {
		verve_turn_look_after(xport);
	}
}

void verve_errand_finish(struct verve_errand *errand)
{
	struct verve_xport *xport = errand->xport;

	assert(verve_lock_held(xport->lock));
	xport->errand_count--;
	if (errand->grows) {
		finish_growing(errand);
	} else if (errand->state == VERVE_ERRAND_PARTING) {
		finish_parting(errand);
	} else if (errand->op) {
		errand->state = errand->ret ? VERVE_ERRAND_IDLE : VERVE_ERRAND_HERE;
		if (errand->ret)
			*verve_errand_refused(errand, &errand->ask) = errand->ret;
		verve_peer_kick(xport, errand->op->peer);
	} else {
		turn_to_parting(errand);
	}
}
