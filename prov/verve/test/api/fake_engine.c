/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake engine, domain, fabric and clock. */
#include "fake_engine.h"

#include <assert.h>
#include <atomic_ops.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cntr.h"
#include "api/cq.h"
#include "api/domain.h"
#include "api/eq.h"
#include "api/fabric.h"
#include "api/poll.h"
#include "api/trywait.h"
#include "base/log.h"
#include "net/cq.h"
#include "net/sys.h"

struct verve_engine {
	struct verve_lock own, *lock;
	int fd;
	volatile AO_t pending, armed;
	volatile AO_t turns;
	uintptr_t done;
	void (*work)(void *arg, uintptr_t n);
	void *arg;
};

static struct fi_provider provider = {.name = "verve"};
static struct verve_domain domain;
static struct fid_fabric fabric;
static volatile AO_t fabric_references;
static volatile AO_t pauses, yields;

struct verve_engine *fake_engine_open(void (*work)(void *arg, uintptr_t n), void *arg)
{
	return fake_engine_open_with(NULL, work, arg);
}

struct verve_engine *fake_engine_open_with(struct verve_lock *lock,
					   void (*work)(void *arg, uintptr_t n), void *arg)
{
	struct verve_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		abort();
	verve_lock_init(&engine->own, false);
	engine->lock = lock ? lock : &engine->own;
	engine->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->work = work;
	engine->arg = arg;
	return engine;
}

void fake_engine_close(struct verve_engine *engine)
{
	close(engine->fd);
	verve_lock_fini(&engine->own);
	free(engine);
}

static void announce(struct verve_engine *engine)
{
	uint64_t one = 1;

	if (write(engine->fd, &one, sizeof(one)) != sizeof(one))
		abort();
}

void fake_engine_complete(struct verve_engine *engine)
{
	AO_fetch_and_add_full(&engine->pending, 1);
	if (!AO_fetch_and_add_full(&engine->armed, 0))
		return;
	AO_and_full(&engine->armed, 0);
	announce(engine);
}

uintptr_t fake_engine_turns(const struct verve_engine *engine)
{
	return AO_load(&engine->turns);
}

const struct verve_lock *verve_engine_lock_of(const struct verve_engine *engine)
{
	return engine->lock;
}

bool verve_engine_turn(struct verve_engine *engine)
{
	assert(verve_lock_held(engine->lock));
	AO_fetch_and_add1(&engine->turns);
	if (!AO_load_acquire(&engine->pending))
		return false;
	AO_fetch_and_sub1(&engine->pending);
	engine->work(engine->arg, engine->done++);
	return true;
}

bool verve_engine_progress(struct verve_engine *engine)
{
	bool any;

	if (!verve_lock_try(engine->lock))
		return false;
	any = verve_engine_turn(engine);
	verve_lock_release(engine->lock);
	return any;
}

int verve_engine_fd(const struct verve_engine *engine)
{
	return engine->fd;
}

int verve_engine_arm_locked(struct verve_engine *engine)
{
	uint64_t count;
	bool any;

	(void)!read(engine->fd, &count, sizeof(count));
	AO_or_full(&engine->armed, 1);
	any = verve_engine_turn(engine);
	if (any)
		announce(engine);
	return any ? -FI_EAGAIN : 0;
}

int verve_engine_arm(struct verve_engine *engine)
{
	int ret;

	verve_lock_acquire(engine->lock);
	ret = verve_engine_arm_locked(engine);
	verve_lock_release(engine->lock);
	return ret;
}

/* A domain with the three operations that these tests use. */
struct fid_domain *fake_domain(uint32_t api_version, enum fi_threading threading)
{
	static struct fi_ops_domain ops = {
		.size = sizeof(ops),
		.cq_open = verve_cq_open,
		.cntr_open = verve_cntr_open,
		.poll_open = verve_poll_open,
	};

	verve_log_provider = &provider;
	domain.fid.fid.fclass = FI_CLASS_DOMAIN;
	domain.fid.ops = &ops;
	domain.api_version = api_version;
	domain.threading = threading;
	return &domain.fid;
}

uintptr_t fake_domain_references(void)
{
	return AO_load(&domain.references);
}

void verve_domain_get(struct verve_domain *of)
{
	AO_fetch_and_add1(&of->references);
}

void verve_domain_put(struct verve_domain *of)
{
	AO_fetch_and_sub1(&of->references);
}

uint32_t verve_domain_api_version(const struct verve_domain *of)
{
	return of->api_version;
}

bool verve_domain_elides_locks(const struct verve_domain *of)
{
	return of->threading == FI_THREAD_DOMAIN;
}

/* A fabric with the two operations that these tests use. */
struct fid_fabric *fake_fabric(uint32_t api_version)
{
	static struct fi_ops_fabric ops = {
		.size = sizeof(ops),
		.eq_open = verve_eq_open,
		.trywait = verve_fabric_trywait,
	};

	verve_log_provider = &provider;
	fabric.fid.fclass = FI_CLASS_FABRIC;
	fabric.ops = &ops;
	fabric.api_version = api_version;
	return &fabric;
}

uintptr_t fake_fabric_references(void)
{
	return AO_load(&fabric_references);
}

void verve_fabric_get(struct fid_fabric *of)
{
	(void)of;
	AO_fetch_and_add1(&fabric_references);
}

void verve_fabric_put(struct fid_fabric *of)
{
	(void)of;
	AO_fetch_and_sub1(&fabric_references);
}

uint64_t verve_net_now(void)
{
	return (1000 + AO_load(&pauses)) * UINT64_C(1000000);
}

void verve_net_pause(void)
{
	AO_fetch_and_add1(&pauses);
	sched_yield();
}

void verve_net_yield(void)
{
	AO_fetch_and_add1(&yields);
	sched_yield();
}

void verve_net_back_off(void)
{
	verve_net_yield();
}

uintptr_t fake_yields(void)
{
	return AO_load(&yields);
}

const char *verve_net_wc_str(uint32_t status)
{
	return status ? "a work request failed" : "success";
}
