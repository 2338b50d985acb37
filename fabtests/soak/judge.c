/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * judge: numbers of messages, and right errors. An error is right only where a mayfly is at one of
 * the two ends, and only if the error tells of a lost peer. With -o torn such an error is right
 * elsewhere, too, and is printed with the time.
 */
#include <stdio.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "soak/state.h"

enum { SECOND = 1000000000 }; /* ns */

static const int codes[SOAK_CODES - 1] = { FI_EHOSTUNREACH, FI_ENOTCONN, FI_ECONNREFUSED,
					   FI_ETIMEDOUT, FI_EIO, FI_EACCES };

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

unsigned soak_draw(struct soak_member *m, unsigned below)
{
	m->random = mix(m->random);
	return (unsigned)(m->random % below);
}

uint64_t soak_number(unsigned from, unsigned to, unsigned life, uint32_t n)
{
	return (uint64_t)from << 56 | (uint64_t)to << 48 | (uint64_t)(life & 0xffff) << 32 | n;
}

unsigned soak_number_from(uint64_t number)
{
	return (unsigned)(number >> 56);
}

size_t soak_number_len(uint64_t number)
{
	static const size_t lengths[] = { 8, 0, 40, 64, 65, 200, 1000, 1, 64, 4096, 8, 16000, 512,
					  30000, 70000, SOAK_LONGEST };

	return lengths[mix(number) % (sizeof(lengths) / sizeof(*lengths))];
}

bool soak_is_acked(uint64_t number)
{
	return number & 1;
}

struct soak_count *soak_count_of(struct soak_member *m, uint64_t number, unsigned other)
{
	struct soak_tally *tally = &m->entry->tally;

	return soak_is_acked(number) ? &tally->acked[other] : &tally->plain[other];
}

bool soak_is_other(const struct soak_member *m, unsigned number)
{
	return number < SOAK_ALL && number % SOAK_MEMBERS < m->members && number != m->self;
}

void soak_judge_error(struct soak_member *m, const struct comp *comp, const char *what,
		      unsigned other)
{
	unsigned code = 0;

	while (code < SOAK_CODES - 1 && codes[code] != comp->err)
		code++;
	m->entry->errors[code]++;
	/* Some devices refuse access to the memory of a process before its connections end. */
	if (code < SOAK_CODES - 1 && comp->err != FI_EIO && *comp->reason &&
	    (other == SOAK_ALL || soak_is_mayfly(other) || soak_is_mayfly(m->self)))
		return;
	if (code < SOAK_CODES - 1 && *comp->reason && m->torn) {
		printf("torn,%llu,%u,%u,%s,%s\n", (unsigned long long)(clock_now() / SECOND),
		       m->self, other, what, comp->reason);
		return;
	}
	check_fail("member %u: %s %s member %u: %s, prov_errno %d: \"%s\"", m->self, what,
		   other == SOAK_ALL ? "of some" : "with", other, fi_strerror(comp->err),
		   comp->prov_errno, comp->reason);
}
