/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fake engine, for the tests of what waits for engines: stands in at link time for engine/engine.h,
 * and for what queues need of their domain, fabric and clock. The program links these tests'
 * subjects alone: api/{cq,cntr,eq,poll,wait,stubs}.c, proto/{comp,comp_queue}.c, base/log.c.
 *
 * Its device completes pieces of work; each turn brings one of them to work(). Time passes only by
 * verve_net_pause, a millisecond each.
 */
#ifndef VERVE_TEST_FAKE_ENGINE_H
#define VERVE_TEST_FAKE_ENGINE_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* n counts from 0. Called under the engine's lock. */
struct verve_engine *fake_engine_open(void (*work)(void *arg, uintptr_t n), void *arg);
void fake_engine_close(struct verve_engine *engine);
/* The device completes a piece of work. Any thread. */
void fake_engine_complete(struct verve_engine *engine);
/* Turns that were made so far. */
uintptr_t fake_engine_turns(const struct verve_engine *engine);

/* A domain and a fabric of an application of this version; the references that are out. */
struct fid_domain *fake_domain(uint32_t api_version, enum fi_threading threading);
uintptr_t fake_domain_references(void);
struct fid_fabric *fake_fabric(uint32_t api_version);
uintptr_t fake_fabric_references(void);

#endif
