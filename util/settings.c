/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Settings: the provider's own table of variables, before and after it was read. */
#include "settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/prov.h"
#include "base/log.h"
#include "net/timeout.h"
#include "told.h"

enum { NAME_MAX_LEN = 64, VALUE_MAX_LEN = 256 };

const char verve_settings_memlock[] = "RLIMIT_MEMLOCK";

static struct verve_config defaults;

struct row {
	char name[NAME_MAX_LEN], value[VALUE_MAX_LEN];
	const char *unit, *source;
};

/* The two of libfabric's own that the provider heeds: fi_mr(3). */
static const struct {
	const char *name, *unit;
	const size_t *number;
} shared[] = {
	{"FI_MR_CACHE_MAX_COUNT", "registrations", &verve_config.mr_cache_count},
	{"FI_MR_CACHE_MAX_SIZE", "bytes", &verve_config.mr_cache_size},
};

enum { SHARED = sizeof(shared) / sizeof(shared[0]) };

static void env_name(const char *name, char *buf)
{
	int len = snprintf(buf, NAME_MAX_LEN, "FI_VERVE_%s", name);

	for (int i = 0; i < len; i++)
		buf[i] = toupper((unsigned char)buf[i]);
}

void verve_settings_load(struct verve_report *report)
{
	char line[VERVE_TOLD_LINE_MAX];

	defaults = verve_config;
	verve_log_provider = &verve_prov;
	verve_told_clear();
	verve_config_load(&verve_prov);
	for (size_t i = 0; i < verve_told_count(); i++)
		if (!strncmp(verve_told_line(i, line), "FI_", strlen("FI_")))
			verve_report_add(report, VERVE_WARNING, "environment", NULL, "%s", line);
}

/* The member's value in the copy that was made before the settings were read. */
static const void *default_of(const void *member)
{
	return (const char *)&defaults + ((const char *)member - (const char *)&verve_config);
}

static bool is_default(const struct verve_config_param *param)
{
	const char *was;

	if (param->number)
		return *param->number == *(const size_t *)default_of(param->number);
	was = *(const char *const *) default_of(param->text);
	return was == *param->text || (was && *param->text && !strcmp(was, *param->text));
}

/* True if the value in use was set in the environment, or in a file of libfabric 2.x. */
static bool is_set(const struct verve_config_param *param)
{
	size_t number;
	char *text;

	if (param->automatic)
		return !fi_param_get(&verve_prov, param->name, &text) && text &&
		       !verve_config_is_auto(*param->number);
	if (param->number)
		return !fi_param_get(&verve_prov, param->name, &number) && number == *param->number;
	return !fi_param_get(&verve_prov, param->name, &text) && text && *param->text &&
	       !strcmp(text, *param->text);
}

const char *verve_settings_source(const struct verve_config_param *param)
{
	static char name[NAME_MAX_LEN];

	if (is_set(param)) {
		env_name(param->name, name);
		return getenv(name) ? name : "libfabric.conf";
	}
	return is_default(param) ? "default" : verve_settings_memlock;
}

const char *verve_settings_source_of(const size_t *number)
{
	const struct verve_config_param *param;

	for (size_t i = 0; (param = verve_config_param(i)); i++)
		if (param->number == number)
			return verve_settings_source(param);
	return "default";
}

static const char *shared_source(size_t index)
{
	const char *monitor = getenv("FI_MR_CACHE_MONITOR"), *text = getenv(shared[index].name);

	if (!index && monitor && !strcmp(monitor, "disabled"))
		return "FI_MR_CACHE_MONITOR";
	/* What is no number was warned about, and has no effect. */
	if (text && strtoull(text, NULL, 10) == *shared[index].number)
		return shared[index].name;
	return *shared[index].number == *(const size_t *)default_of(shared[index].number) ?
		       "default" : verve_settings_memlock;
}

/* What the variables of the transport timeout come to, on a device that keeps to its times. */
static void get_timeout(struct row *row, bool worst)
{
	struct verve_net_timeout timeout = verve_net_timeout_choose(verve_config.transport_timeout,
								    verve_config.retry_count);
	uint64_t ns = worst ? timeout.worst : timeout.nominal;

	snprintf(row->name, sizeof(row->name), "%s", worst ? "(timeout at most)" :
							    "(timeout nominal)");
	snprintf(row->value, sizeof(row->value), "%" PRIu64, ns / 1000000);
	row->unit = "milliseconds";
	row->source = "FI_VERVE_TRANSPORT_TIMEOUT and FI_VERVE_RETRY_COUNT";
}

/* False: there are no more. */
static bool get_row(size_t index, struct row *row)
{
	const struct verve_config_param *param;
	size_t params = 0;

	while (verve_config_param(params))
		params++;
	if (index >= params + SHARED + 2)
		return false;
	if (index >= params + SHARED) {
		get_timeout(row, index - params - SHARED);
		return true;
	}
	if (index >= params) {
		index -= params;
		snprintf(row->name, sizeof(row->name), "%s", shared[index].name);
		snprintf(row->value, sizeof(row->value), "%zu", *shared[index].number);
		row->unit = shared[index].unit;
		row->source = shared_source(index);
		return true;
	}
	param = verve_config_param(index);
	env_name(param->name, row->name);
	if (param->automatic && verve_config_is_auto(*param->number))
		snprintf(row->value, sizeof(row->value), "auto");
	else if (param->number)
		snprintf(row->value, sizeof(row->value), "%zu", *param->number);
	else
		snprintf(row->value, sizeof(row->value), "%s",
			 *param->text ? *param->text : param->unit);
	row->unit = param->number ? param->unit : "";
	row->source = verve_settings_source(param);
	return true;
}

void verve_settings_print(const struct verve_style *style)
{
	const char *bold = style->colour ? "\033[1m" : "", *off = style->colour ? "\033[0m" : "";
	struct row row;

	fprintf(style->file, "%s%-26s %12s %-13s  %s%s\n", bold, "variable", "value", "", "from",
		off);
	for (size_t i = 0; get_row(i, &row); i++)
		fprintf(style->file, "%-26s %12s %-13s  %s\n", row.name, row.value, row.unit,
			row.source);
}

void verve_settings_json(struct verve_json *json, const char *key)
{
	struct row row;

	verve_json_begin(json, key, '[');
	for (size_t i = 0; get_row(i, &row); i++) {
		verve_json_begin(json, NULL, '{');
		verve_json_text(json, "name", row.name);
		verve_json_text(json, "value", row.value);
		verve_json_text(json, "unit", row.unit[0] ? row.unit : NULL);
		verve_json_text(json, "source", row.source);
		verve_json_end(json, '}');
	}
	verve_json_end(json, ']');
}
