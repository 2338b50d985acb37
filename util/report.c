/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Report: the list of findings, as text and as JSON. */
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { SUBJECT_WIDTH = 48 }; /* columns; longer subjects push their line */

static const struct {
	const char *name, *mark, *colour;
} verdicts[] = {
	[VERVE_REFUSED] = {"refused", "-", "\033[31m"},
	[VERVE_WARNING] = {"warning", "!", "\033[33m"},
	[VERVE_USED] = {"used", "+", "\033[32m"},
};

static const char plain[] = "\033[0m", bold[] = "\033[1m";

struct verve_finding *verve_report_add(struct verve_report *report, enum verve_verdict verdict,
				       const char *subject, const char *remedy, const char *format,
				       ...)
{
	struct verve_finding *list, *finding;
	va_list args;

	list = realloc(report->list, (report->count + 1) * sizeof(*list));
	if (!list) {
		fputs("verve_info: no memory\n", stderr);
		exit(2);
	}
	report->list = list;
	finding = &list[report->count++];
	memset(finding, 0, sizeof(*finding));
	finding->verdict = verdict;
	snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
	snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy ? remedy : "");
	va_start(args, format);
	vsnprintf(finding->cause, sizeof(finding->cause), format, args);
	va_end(args);
	return finding;
}

void verve_report_fini(struct verve_report *report)
{
	free(report->list);
	*report = (struct verve_report){0};
}

size_t verve_report_count(const struct verve_report *report, enum verve_verdict verdict)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		count += report->list[i].verdict == verdict && !report->list[i].detail;
	return count;
}

static int subject_width(const struct verve_report *report, bool verbose)
{
	size_t width = 0;

	for (size_t i = 0; i < report->count; i++) {
		size_t len = strlen(report->list[i].subject);

		if ((verbose || !report->list[i].detail) && len > width && len <= SUBJECT_WIDTH)
			width = len;
	}
	return width;
}

static void print_finding(const struct verve_finding *finding, const struct verve_style *style,
			  int width)
{
	const char *on = style->colour ? verdicts[finding->verdict].colour : "";
	const char *off = style->colour ? plain : "", *command = style->colour ? bold : "";

	fprintf(style->file, "%s%s%s %-*s  %s", on, verdicts[finding->verdict].mark, off, width,
		finding->subject, finding->cause);
	if (finding->remedy[0])
		fprintf(style->file, ": %s%s%s", command, finding->remedy, off);
	putc('\n', style->file);
}

void verve_report_print(const struct verve_report *report, const struct verve_style *style)
{
	int width = subject_width(report, style->verbose);

	for (int verdict = 0; verdict < VERVE_VERDICTS; verdict++)
		for (size_t i = 0; i < report->count; i++) {
			const struct verve_finding *finding = &report->list[i];

			if ((int)finding->verdict == verdict &&
			    (style->verbose || !finding->detail))
				print_finding(finding, style, width);
		}
}

static void print_json(const struct verve_finding *finding, struct verve_json *json)
{
	verve_json_begin(json, NULL, '{');
	verve_json_text(json, "verdict", verdicts[finding->verdict].name);
	verve_json_text(json, "subject", finding->subject);
	verve_json_text(json, "cause", finding->cause);
	verve_json_text(json, "remedy", finding->remedy[0] ? finding->remedy : NULL);
	verve_json_bool(json, "detail", finding->detail);
	verve_json_end(json, '}');
}

void verve_report_json(const struct verve_report *report, struct verve_json *json, const char *key)
{
	verve_json_begin(json, key, '[');
	for (int verdict = 0; verdict < VERVE_VERDICTS; verdict++)
		for (size_t i = 0; i < report->count; i++)
			if ((int)report->list[i].verdict == verdict)
				print_json(&report->list[i], json);
	verve_json_end(json, ']');
}
