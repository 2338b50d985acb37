/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Poll set: its members, under a lock of its own that is taken before any lock of a member. */
#include "api/poll.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "api/cntr.h"
#include "api/cq.h"
#include "api/domain.h"
#include "api/stubs.h"
#include "base/lock.h"
#include "base/log.h"

struct member {
	TAILQ_ENTRY(member) link;
	struct fid *fid;
};

TAILQ_HEAD(members, member);

struct poll {
	struct fid_poll fid;
	struct verve_domain *domain;
	struct verve_lock lock; /* guards members */
	struct members members;
};

static struct poll *poll_of(struct fid_poll *fid)
{
	return (struct poll *)fid; /* fid is its first member */
}

static void member_progress(struct fid *fid)
{
	verve_wait_progress(fid->fclass == FI_CLASS_CQ ? &verve_cq_from_fid(fid)->wait :
			    &verve_cntr_from_fid(fid)->wait);
}

static bool member_has_news(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		return !verve_comp_queue_is_empty(&verve_cq_from_fid(fid)->queue);
	return verve_cntr_poll(verve_cntr_from_fid(fid));
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct poll *poll = poll_of(fid);
	struct members named = TAILQ_HEAD_INITIALIZER(named);
	struct member *member, *next;
	int n = 0;

	verve_lock_acquire(&poll->lock);
	TAILQ_FOREACH(member, &poll->members, link)
		member_progress(member->fid);
	for (member = TAILQ_FIRST(&poll->members); member && n < count; member = next) {
		next = TAILQ_NEXT(member, link);
		if (!member_has_news(member->fid))
			continue;
		context[n++] = member->fid->context;
		/*
		 * count may be too small for all members with news. So the members that are named
		 * now come last the next time.
		 */
		TAILQ_REMOVE(&poll->members, member, link);
		TAILQ_INSERT_TAIL(&named, member, link);
	}
	TAILQ_CONCAT(&poll->members, &named, link);
	verve_lock_release(&poll->lock);
	return n;
}

/* Takes a reference, because a member of a set cannot be closed. */
static int member_get(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		verve_cq_get(verve_cq_from_fid(fid));
		return 0;
	case FI_CLASS_CNTR:
		verve_cntr_get(verve_cntr_from_fid(fid));
		return 0;
	default:
		VERVE_WARN(DOMAIN, "objects of class %zu cannot be in a poll set\n", fid->fclass);
		return -FI_EINVAL;
	}
}

static void member_put(struct fid *fid)
{
	if (fid->fclass == FI_CLASS_CQ)
		verve_cq_put(verve_cq_from_fid(fid));
	else
		verve_cntr_put(verve_cntr_from_fid(fid));
}

static struct member *poll_find(struct poll *poll, const struct fid *fid)
{
	struct member *member;

	TAILQ_FOREACH(member, &poll->members, link)
		if (member->fid == fid)
			return member;
	return NULL;
}

static int poll_add(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll *poll = poll_of(fid);
	struct member *member;
	bool before;
	int ret;

	if (flags)
		return -FI_EBADFLAGS;
	ret = member_get(event_fid);
	if (ret)
		return ret;
	member = malloc(sizeof(*member));
	if (!member) {
		member_put(event_fid);
		return -FI_ENOMEM;
	}
	member->fid = event_fid;
	verve_lock_acquire(&poll->lock);
	before = poll_find(poll, event_fid);
	if (!before)
		TAILQ_INSERT_TAIL(&poll->members, member, link);
	verve_lock_release(&poll->lock);
	if (!before)
		return 0;
	member_put(event_fid);
	free(member);
	return -FI_EALREADY;
}

static int poll_del(struct fid_poll *fid, struct fid *event_fid, uint64_t flags)
{
	struct poll *poll = poll_of(fid);
	struct member *member;

	if (flags)
		return -FI_EBADFLAGS;
	verve_lock_acquire(&poll->lock);
	member = poll_find(poll, event_fid);
	if (member)
		TAILQ_REMOVE(&poll->members, member, link);
	verve_lock_release(&poll->lock);
	if (!member)
		return -FI_EINVAL;
	member_put(event_fid);
	free(member);
	return 0;
}

static int poll_close(struct fid *fid)
{
	struct poll *poll = poll_of((struct fid_poll *)fid);

	if (!TAILQ_EMPTY(&poll->members)) {
		VERVE_WARN(DOMAIN, "cannot close poll set %p, it is not empty\n", (void *)poll);
		return -FI_EBUSY;
	}
	verve_lock_fini(&poll->lock);
	verve_domain_put(poll->domain);
	free(poll);
	return 0;
}

static struct fi_ops poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
	.bind = verve_stub_bind,
	.control = verve_stub_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int verve_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr, struct fid_poll **fid)
{
	struct verve_domain *domain = verve_domain_from_fid(&domain_fid->fid);
	struct poll *poll;

	if (attr && attr->flags) {
		VERVE_WARN(DOMAIN, "poll set flags 0x%llx are reserved\n",
			   (unsigned long long)attr->flags);
		return -FI_EINVAL;
	}
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	verve_lock_init(&poll->lock, verve_domain_elides_locks(domain));
	TAILQ_INIT(&poll->members);
	poll->fid.fid.fclass = FI_CLASS_POLL;
	poll->fid.fid.ops = &poll_fid_ops;
	poll->fid.ops = &poll_ops;
	poll->domain = domain;
	verve_domain_get(domain);
	*fid = &poll->fid;
	return 0;
}
