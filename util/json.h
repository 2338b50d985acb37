/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * JSON (RFC 8259), written piece by piece. Keys are NULL inside arrays. Bytes that are not ASCII
 * are escaped one by one, so that the output is valid with any interface name.
 */
#ifndef VERVE_UTIL_JSON_H
#define VERVE_UTIL_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct verve_json {
	FILE *file;
	unsigned depth;
	bool more; /* a value stands before, in the same object or array */
};

/* bracket: '{' or '['. */
void verve_json_begin(struct verve_json *json, const char *key, char bracket);
/* bracket: '}' or ']'; behind the outermost comes a newline. */
void verve_json_end(struct verve_json *json, char bracket);
/* value NULL: null. */
void verve_json_text(struct verve_json *json, const char *key, const char *value);
void verve_json_number(struct verve_json *json, const char *key, uint64_t value);
void verve_json_bool(struct verve_json *json, const char *key, bool value);

#endif
