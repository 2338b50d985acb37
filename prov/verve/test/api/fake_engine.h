/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake engine, for tests of objects that wait for engines. It takes the place of engine/engine.h at
 * link time, and of the domain, fabric and clock that queues need. Such a program links only the
 * objects under test: api/{cq,cntr,eq,poll,wait,stubs}.c, comp/{comp,comp_queue}.c and base/log.c.
 *
 * Its device completes pieces of work; each turn brings one piece to work(). Time passes only by
 * verve_net_pause, a millisecond each.
 */
#ifndef VERVE_TEST_FAKE_ENGINE_H
#define VERVE_TEST_FAKE_ENGINE_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* work is called under the engine's lock, for piece n, counted from 0. */
struct verve_engine *fake_engine_open(void (*work)(void *arg, uintptr_t n), void *arg);
/* The same with this lock, which outlives the engine. NULL: it has one of its own. */
struct verve_engine *fake_engine_open_with(struct verve_lock *lock,
					   void (*work)(void *arg, uintptr_t n), void *arg);
void fake_engine_close(struct verve_engine *engine);
/* The device completes a piece of work. Any thread. */
void fake_engine_complete(struct verve_engine *engine);
/* Turns so far. */
uintptr_t fake_engine_turns(const struct verve_engine *engine);

/* Calls of verve_net_yield and verve_net_back_off so far. */
uintptr_t fake_yields(void);

/*
 * A domain and a fabric for an application of this version and threading, and the references that
 * are held.
 */
struct fid_domain *fake_domain(uint32_t api_version, enum fi_threading threading);
uintptr_t fake_domain_references(void);
struct fid_fabric *fake_fabric(uint32_t api_version);
uintptr_t fake_fabric_references(void);

#endif
