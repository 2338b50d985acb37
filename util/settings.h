/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings: the effective configuration, and where each value comes from. */
#ifndef VERVE_UTIL_SETTINGS_H
#define VERVE_UTIL_SETTINGS_H

#include "base/config.h"
#include "json.h"
#include "report.h"

/* Answer of verve_settings_source for a value that RLIMIT_MEMLOCK made smaller. */
extern const char verve_settings_memlock[];

/*
 * Reads the configuration as the provider does, once, before anything else of it is called, and
 * remembers the defaults. Variables that the provider warns about become warnings.
 */
void verve_settings_load(struct verve_report *report);

/*
 * "default", "FI_VERVE_IFACE", "libfabric.conf" or verve_settings_memlock. Valid until the next
 * call.
 */
const char *verve_settings_source(const struct verve_config_param *param);
/* The same of the parameter whose value is at number. */
const char *verve_settings_source_of(const size_t *number);

void verve_settings_print(const struct verve_style *style);
/* An array of objects: name, value (a text), unit, source. */
void verve_settings_json(struct verve_json *json, const char *key);

#endif
