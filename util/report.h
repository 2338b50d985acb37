/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Report: findings, each about one subject: used, a warning, or refused with a cause and a remedy.
 * Printed refused first, then warnings, then what is used; in each group in the order of finding.
 */
#ifndef VERVE_UTIL_REPORT_H
#define VERVE_UTIL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "json.h"

enum verve_verdict { VERVE_REFUSED, VERVE_WARNING, VERVE_USED, VERVE_VERDICTS };

enum { VERVE_FINDING_TEXT_MAX = 320 };

struct verve_finding {
	enum verve_verdict verdict;
	bool detail; /* of another finding: text shows it when asked for more */
	char subject[VERVE_FINDING_TEXT_MAX];
	char cause[VERVE_FINDING_TEXT_MAX];
	char remedy[VERVE_FINDING_TEXT_MAX]; /* empty: none is known, or none is needed */
};

struct verve_report {
	struct verve_finding *list;
	size_t count;
};

/* How text is printed. */
struct verve_style {
	FILE *file;
	bool colour, verbose;
};

/*
 * Copies the texts; remedy may be NULL. Ends the process without memory. The report owns the
 * finding.
 */
__attribute__((format(printf, 5, 6)))
struct verve_finding *verve_report_add(struct verve_report *report, enum verve_verdict verdict,
				       const char *subject, const char *remedy, const char *format,
				       ...);
void verve_report_fini(struct verve_report *report);

/* Findings of the verdict, details left out. */
size_t verve_report_count(const struct verve_report *report, enum verve_verdict verdict);

/* "- SUBJECT  CAUSE: REMEDY" */
void verve_report_print(const struct verve_report *report, const struct verve_style *style);
/* An array of objects: verdict, subject, cause, remedy, detail. */
void verve_report_json(const struct verve_report *report, struct verve_json *json, const char *key);

#endif
