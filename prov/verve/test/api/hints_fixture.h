/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the tests of hints: hints, ports of several devices, and the answer for them. */
#ifndef VERVE_TEST_API_HINTS_FIXTURE_H
#define VERVE_TEST_API_HINTS_FIXTURE_H

#include <criterion/criterion.h>
#include <rdma/fabric.h>
#include <stddef.h>
#include <stdint.h>

#include "net/port.h"

/* libfabric 2.x deprecates these names, and using them breaks the build. */
enum {
	MR_BASIC = 1 << 0,
	MR_SCALABLE = 1 << 1,
};

/*
 * struct fi_domain_attr with the members behind those of 1.17, whether the header in use has them
 * or not. Each is there from its version on.
 */
struct newer_domain_attr {
	union {
		struct fi_domain_attr attr;
		struct {
			/* tclass is the last of them, and takes the room of a size_t */
			char before[offsetof(struct fi_domain_attr, tclass) + sizeof(size_t)];
			size_t max_ep_auth_key; /* 1.20 */
			uint32_t max_group_id;	/* 2.0 */
			char room[64];
		};
	};
};

extern const int mr_needed;
extern const uint64_t rma_all, atomic_order;

extern uint32_t version; /* of the API, as the application says it */
extern struct verve_net_port *ports;
extern struct fi_info *hints; /* empty at the start of each test */
extern struct fi_info *info;  /* the last answer */

/*
 * Gives domain_attr the length of the newest version, as the libfabric of any version may allocate
 * it.
 */
void hints_lengthen(struct fi_info *of);

/* Ask for the answer. Return 0 or a negative FI errno. */
int hints_get(void);
int hints_get_with(const struct fi_info *with);
/* Asks again with the answer as hints, as applications do. The second answer must be the same. */
void hints_expect_match(void);

#endif
