/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Iov: copying between flat memory and an iov, at every offset and length. */
#include "xport/iov.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TOTAL = 30 };

static size_t split(char *memory, struct iovec iov[4])
{
	static const size_t len[] = {7, 0, 13, 10};
	size_t at = 0;

	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec) {memory + at, len[i]};
		at += len[i];
	}
	return at;
}

Test(transfer, gather_takes_every_range)
{
	char memory[TOTAL], out[TOTAL + 1];
	struct iovec iov[4];

	cr_assert_eq(split(memory, iov), TOTAL);
	for (int i = 0; i < TOTAL; i++)
		memory[i] = i + 1;
	for (size_t offset = 0; offset <= TOTAL; offset++)
		for (size_t len = 0; len <= TOTAL; len++) {
			size_t fits = len < TOTAL - offset ? len : TOTAL - offset;

			memset(out, 0, sizeof(out));
			cr_assert_eq(verve_iov_gather(out, iov, 4, offset, len), fits);
			cr_assert_eq(memcmp(out, memory + offset, fits), 0);
			cr_assert_eq(out[fits], 0);
		}
}

Test(transfer, scatter_fills_every_range_and_nothing_else)
{
	char memory[TOTAL], from[TOTAL];
	struct iovec iov[4];

	split(memory, iov);
	for (int i = 0; i < TOTAL; i++)
		from[i] = i + 1;
	for (size_t offset = 0; offset <= TOTAL; offset++)
		for (size_t len = 0; len <= TOTAL; len++) {
			size_t fits = len < TOTAL - offset ? len : TOTAL - offset;

			memset(memory, 0, sizeof(memory));
			cr_assert_eq(verve_iov_scatter(iov, 4, offset, from, len), fits);
			for (size_t i = 0; i < TOTAL; i++)
				cr_assert_eq(memory[i], i >= offset && i < offset + fits ?
					     from[i - offset] : 0);
		}
}
