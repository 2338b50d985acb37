/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The test programs' payload: a wrong byte is seen wherever it is, and no right one is blamed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/pattern.h"

enum { SEED = 7, LONGEST = 2 * 4096 + 13, VALUE = 0x44 };

static const size_t lengths[] = {0, 1, 7, 8, 9, 4095, 4096, 4097, LONGEST};
static int status;

static void expect(bool held, const char *what, size_t len, size_t at)
{
	if (held)
		return;
	fprintf(stderr, "%s: %zu bytes, the wrong one is %zu\n", what, len, at);
	status = 1;
}

static void one_length(unsigned char *buf, size_t len)
{
	pattern_fill(buf, len, SEED);
	expect(pattern_holds(buf, len, SEED), "right bytes are blamed", len, len);
	for (size_t i = 0; i < len; i++) {
		buf[i] ^= 0x10;
		expect(!pattern_holds(buf, len, SEED), "a wrong byte is not seen", len, i);
		buf[i] ^= 0x10;
	}
	memset(buf, VALUE, len);
	expect(pattern_check_byte(buf, len, VALUE), "right values are blamed", len, len);
	for (size_t i = 0; i < len; i++) {
		unsigned long failed = check_failed();

		buf[i] ^= 0x10;
		expect(!pattern_check_byte(buf, len, VALUE) && check_failed() == failed + 1,
		       "a wrong value is not seen", len, i);
		buf[i] ^= 0x10;
	}
}

int main(void)
{
	/* Of exactly that length, so that a sanitizer sees a look behind it. */
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		unsigned char *buf = malloc(lengths[i] ? lengths[i] : 1);

		if (!buf)
			return 99;
		one_length(buf, lengths[i]);
		free(buf);
	}
	return status;
}
