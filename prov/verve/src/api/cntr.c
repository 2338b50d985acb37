/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counter: opening, adding and setting, waiting. */
#include "api/cntr.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/domain.h"
#include "api/stubs.h"
#include "base/log.h"
#include "comp/counter.h"

void verve_cntr_get(struct verve_cntr *cntr)
{
	AO_fetch_and_add1(&cntr->references);
}

void verve_cntr_put(struct verve_cntr *cntr)
{
	AO_fetch_and_sub1_release(&cntr->references);
}

int verve_cntr_bind_engine(struct verve_cntr *cntr, struct verve_engine *engine)
{
	return verve_wait_bind(&cntr->wait, engine);
}

void verve_cntr_unbind_engine(struct verve_cntr *cntr, struct verve_engine *engine)
{
	verve_wait_unbind(&cntr->wait, engine);
}

/* Sets mark to the two values. True: mark had other values before. */
static bool mark_update(struct verve_cntr_mark *mark, AO_t value, AO_t errors)
{
	bool changed = value != AO_load(&mark->value) || errors != AO_load(&mark->errors);

	AO_store(&mark->value, value);
	AO_store(&mark->errors, errors);
	return changed;
}

static void read_both(struct verve_cntr *cntr, AO_t *value, AO_t *errors)
{
	verve_wait_progress(&cntr->wait);
	*value = AO_load_acquire(&cntr->counter.value);
	*errors = AO_load_acquire(&cntr->counter.errors);
	mark_update(&cntr->seen, *value, *errors);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	AO_t value, errors;

	read_both(verve_cntr_from_fid(&fid->fid), &value, &errors);
	return value;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);
	AO_t value, errors;

	read_both(cntr, &value, &errors);
	AO_store(&cntr->told, errors);
	return errors;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);

	AO_fetch_and_add(&cntr->polled.value, value);
	verve_comp_counter_add(&cntr->counter, value);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);

	AO_store(&cntr->polled.value, value);
	verve_comp_counter_set(&cntr->counter, value);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);

	AO_fetch_and_add(&cntr->polled.errors, value);
	verve_comp_counter_add_error(&cntr->counter, value);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);

	AO_store(&cntr->polled.errors, value);
	AO_store(&cntr->told, value);
	verve_comp_counter_set_error(&cntr->counter, value);
	return 0;
}

struct target {
	struct verve_cntr *cntr;
	uint64_t threshold;
	/*
	 * Error value that the application knew when the wait began. An error that another thread
	 * is told meanwhile ends this wait, too.
	 */
	AO_t told;
	AO_t errors; /* error value at the last look */
};

static ssize_t check_target(struct target *target)
{
	if (AO_load_acquire(&target->cntr->counter.value) >= target->threshold)
		return 0;
	target->errors = AO_load_acquire(&target->cntr->counter.errors);
	return target->errors != target->told ? -FI_EAVAIL : -FI_EAGAIN;
}

static ssize_t cntr_look(void *arg)
{
	struct target *target = arg;
	ssize_t ret = check_target(target);

	if (ret != -FI_EAGAIN)
		return ret;
	verve_wait_progress(&target->cntr->wait);
	return check_target(target);
}

static bool cntr_arm(void *arg)
{
	struct target *target = arg;

	verve_comp_counter_arm(&target->cntr->counter);
	return check_target(target) == -FI_EAGAIN;
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	static const struct verve_wait_ops ops = {.look = cntr_look, .arm = cntr_arm};
	struct verve_cntr *cntr = verve_cntr_from_fid(&fid->fid);
	struct target target = {cntr, threshold, .told = AO_load(&cntr->told)};
	ssize_t ret = verve_wait_for(&cntr->wait, timeout, &ops, &target);

	if (ret == -FI_EAVAIL)
		AO_store(&cntr->told, target.errors);
	return (int)ret;
}

bool verve_cntr_poll(struct verve_cntr *cntr)
{
	return mark_update(&cntr->polled, AO_load_acquire(&cntr->counter.value),
			   AO_load_acquire(&cntr->counter.errors));
}

/* For fi_trywait, a counter stays changed until the application reads it. */
static bool cntr_arm_any(void *arg)
{
	struct verve_cntr *cntr = arg;

	verve_comp_counter_arm(&cntr->counter);
	return AO_load_acquire(&cntr->counter.value) == AO_load(&cntr->seen.value) &&
	       AO_load_acquire(&cntr->counter.errors) == AO_load(&cntr->seen.errors);
}

int verve_cntr_trywait(struct verve_cntr *cntr)
{
	static const struct verve_wait_ops ops = {.arm = cntr_arm_any};

	return verve_wait_try(&cntr->wait, &ops, cntr);
}

static int cntr_close(struct fid *fid)
{
	struct verve_cntr *cntr = verve_cntr_from_fid(fid);
	AO_t references = AO_load_acquire(&cntr->references);

	if (references || verve_wait_is_bound(&cntr->wait)) {
		VERVE_WARN(CNTR, "cannot close counter %p: %zu objects use it\n", (void *)cntr,
			   (size_t)references);
		return -FI_EBUSY;
	}
	verve_wait_fini(&cntr->wait);
	verve_domain_put(cntr->domain);
	free(cntr);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return verve_wait_control(&verve_cntr_from_fid(fid)->wait, command, arg);
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = verve_stub_bind,
	.control = cntr_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static int cntr_check(const struct fi_cntr_attr *attr)
{
	if (attr->events != FI_CNTR_EVENTS_COMP) {
		VERVE_WARN(CNTR, "counters count completions, not events of kind %d\n",
			   attr->events);
		return -FI_EINVAL;
	}
	if (attr->flags) {
		VERVE_WARN(CNTR, "counter flags 0x%llx are reserved\n",
			   (unsigned long long)attr->flags);
		return -FI_EBADFLAGS;
	}
	return 0;
}

int verve_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **fid,
		    void *context)
{
	struct verve_domain *domain = verve_domain_from_fid(&domain_fid->fid);
	struct verve_cntr *cntr;
	int ret;

	ret = attr ? cntr_check(attr) : 0;
	if (ret)
		return ret;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	ret = verve_wait_init(&cntr->wait, attr ? attr->wait_obj : FI_WAIT_NONE,
			      verve_domain_elides_locks(domain));
	if (ret) {
		free(cntr);
		return ret;
	}
	cntr->counter.wake = verve_wait_wake;
	cntr->counter.arg = &cntr->wait;
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fid_ops;
	cntr->fid.ops = &cntr_ops;
	cntr->domain = domain;
	verve_domain_get(domain);
	*fid = &cntr->fid;
	return 0;
}
