/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "td.h"

#include <errno.h>
#include <stdlib.h>

#include "conf.h"
#include "log.h"
#include "mem.h"

struct ibv_td *shmv_alloc_td(struct ibv_context *ib, struct ibv_td_init_attr *init)
{
	struct shmv_td *td;

	if (!shmv_conf.td || init->comp_mask)
		return shmv_fail(EOPNOTSUPP);
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ib.context = ib;
	return &td->ib;
}

int shmv_dealloc_td(struct ibv_td *ib)
{
	if (shmv_load32(&((struct shmv_td *)ib)->refs))
		return EBUSY;
	free(ib);
	return 0;
}

struct ibv_pd *shmv_alloc_parent_domain(struct ibv_context *ib,
					struct ibv_parent_domain_init_attr *init)
{
	struct shmv_pd *pd;

	if (!init->pd || init->comp_mask)
		return shmv_fail(init->pd ? EOPNOTSUPP : EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ib.context = ib;
	pd->ib.handle = init->pd->handle; /* the keys of both are the same */
	pd->whole = init->pd;
	pd->td = (struct shmv_td *)init->td;
	shmv_pd_ref(pd->whole, 1);
	if (pd->td)
		shmv_add32(&pd->td->refs, 1);
	return &pd->ib;
}

void shmv_td_broken(void)
{
	shmv_log("two threads post to queue pairs of one thread domain at the same time");
	abort();
}
