/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* JSON: commas, indentation, and escapes. */
#include "json.h"

#include <inttypes.h>

static void print_string(FILE *file, const char *text)
{
	putc('"', file);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else if (*c < 0x20 || *c >= 0x7f)
			fprintf(file, "\\u%04x", *c);
		else
			putc(*c, file);
	}
	putc('"', file);
}

static void indent(struct verve_json *json)
{
	putc('\n', json->file);
	for (unsigned i = 0; i < json->depth; i++)
		putc('\t', json->file);
}

/* Writes the comma, line break and key before a value. */
static void lead(struct verve_json *json, const char *key)
{
	if (json->more)
		putc(',', json->file);
	if (json->depth)
		indent(json);
	json->more = true;
	if (!key)
		return;
	print_string(json->file, key);
	fputs(": ", json->file);
}

void verve_json_begin(struct verve_json *json, const char *key, char bracket)
{
	lead(json, key);
	putc(bracket, json->file);
	json->depth++;
	json->more = false;
}

void verve_json_end(struct verve_json *json, char bracket)
{
	json->depth--;
	if (json->more)
		indent(json);
	putc(bracket, json->file);
	json->more = true;
	if (!json->depth)
		putc('\n', json->file);
}

void verve_json_text(struct verve_json *json, const char *key, const char *value)
{
	lead(json, key);
	if (value)
		print_string(json->file, value);
	else
		fputs("null", json->file);
}

void verve_json_number(struct verve_json *json, const char *key, uint64_t value)
{
	lead(json, key);
	fprintf(json->file, "%" PRIu64, value);
}

void verve_json_bool(struct verve_json *json, const char *key, bool value)
{
	lead(json, key);
	fputs(value ? "true" : "false", json->file);
}
