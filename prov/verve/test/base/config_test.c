/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Configuration: setting each variable, and the warning for each value that is not allowed. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <ctype.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/ipc_lock.h"
#include "base/config.h"
#include "base/log.h"

static struct fi_provider provider = {.name = "verve"};
static char log_text[16384];

/* Loads, and collects the log. libfabric reads FI_LOG_LEVEL at the first fi_getparams. */
static void load(void)
{
	struct fi_param *params;
	int count;
	FILE *log;
	size_t len;

	verve_log_provider = &provider;
	setenv("FI_LOG_LEVEL", "warn", 1);
	cr_assert_eq(fi_getparams(&params, &count), 0);
	fi_freeparams(params);
	cr_redirect_stderr();
	verve_config_load(&provider);
	fflush(stderr);
	log = cr_get_redirected_stderr();
	len = fread(log_text, 1, sizeof(log_text) - 1, log);
	log_text[len] = '\0';
}

static bool logged(const char *text)
{
	return strstr(log_text, text);
}

Test(config, nothing_set_keeps_the_defaults)
{
	struct verve_config before = verve_config;

	load();
	cr_expect_null(verve_config.iface);
	cr_expect_eq(memcmp(&verve_config, &before, sizeof(before)), 0);
	cr_expect_not(logged("FI_VERVE_"), "%s", log_text);
}

/* Writes the variable's name, as applications set it, to buf. */
static void name_of(const struct verve_config_param *param, char *buf, size_t len)
{
	snprintf(buf, len, "FI_VERVE_%s", param->name);
	for (; *buf; buf++)
		*buf = (char)toupper((unsigned char)*buf);
}

/*
 * Writes an allowed value. It depends on place, so that few rows have the same, and is not the
 * default, unless the range is small.
 */
static void value_of(const struct verve_config_param *param, size_t place, char *buf, size_t len)
{
	size_t last = 0;

	while (param->choices && param->choices[last + 1])
		last++;
	if (param->number)
		snprintf(buf, len, "%zu", param->min + 1 + place % (param->max - param->min));
	else if (param->choices)
		snprintf(buf, len, "%s", param->choices[last]);
	else if (!strcmp(param->name, "port_range"))
		snprintf(buf, len, "%zu-65535", 1 + place);
	else
		snprintf(buf, len, "/some/text%zu", place);
}

Test(config, every_row_of_the_table_is_read)
{
	const struct verve_config_param *param;
	char name[64], value[64];

	for (size_t i = 0; (param = verve_config_param(i)); i++) {
		name_of(param, name, sizeof(name));
		value_of(param, i, value, sizeof(value));
		setenv(name, value, 1);
	}
	load();
	for (size_t i = 0; (param = verve_config_param(i)); i++) {
		value_of(param, i, value, sizeof(value));
		if (param->number)
			cr_expect_eq(*param->number, strtoul(value, NULL, 10), "%s is %zu, not %s",
				     param->name, *param->number, value);
		else
			cr_expect_str_eq(*param->text, value, "%s", param->name);
	}
	cr_expect_not(logged("FI_VERVE_"), "%s", log_text);
}

/* Each variable sets the field of the same name. */
Test(config, every_variable_is_read)
{
	setenv("FI_VERVE_IFACE", "eth7", 1);
	setenv("FI_VERVE_INLINE_SIZE", "0", 1);
	setenv("FI_VERVE_EAGER_SIZE", "1000", 1);
	setenv("FI_VERVE_READ_SIZE", "1500", 1);
	setenv("FI_VERVE_TX_SIZE", "2000", 1);
	setenv("FI_VERVE_RX_BUFFERS", "3000", 1);
	setenv("FI_VERVE_WINDOW", "40", 1);
	setenv("FI_VERVE_MAX_CONNS", "45", 1);
	setenv("FI_VERVE_CONNECT_TIMEOUT", "5000", 1);
	setenv("FI_VERVE_TRANSPORT_TIMEOUT", "6000", 1);
	setenv("FI_VERVE_AUTH_KEY_FILE", "/etc/verve.key", 1);
	setenv("FI_VERVE_ATOMICS", "device", 1);
	setenv("FI_VERVE_MR_CACHE", "strict", 1);
	setenv("FI_VERVE_MR_CACHE_MONITOR", "notify", 1);
	setenv("FI_VERVE_RX_LIMIT", "3500", 1);
	setenv("FI_VERVE_ODP", "on", 1);
	setenv("FI_VERVE_TRAFFIC_CLASS", "104", 1);
	setenv("FI_VERVE_SL", "3", 1);
	setenv("FI_VERVE_FLOW_LABEL", "1048575", 1);
	setenv("FI_VERVE_GID_INDEX", "0", 1);
	setenv("FI_VERVE_PKEY", "0x8001", 1);
	setenv("FI_VERVE_PATH_MTU", "2048", 1);
	setenv("FI_VERVE_RETRY_COUNT", "4", 1);
	setenv("FI_VERVE_RNR_RETRY_COUNT", "5", 1);
	setenv("FI_VERVE_RNR_TIMEOUT", "1000", 1);
	setenv("FI_VERVE_PORT_RANGE", "40000-40100", 1);
	setenv("FI_VERVE_STAT", "/run/stat", 1);
	load();
	cr_expect_str_eq(verve_config.iface, "eth7");
	cr_expect_eq(verve_config.inline_size, 0);
	cr_expect_eq(verve_config.eager_size, 1000);
	cr_expect_eq(verve_config.read_size, 1500);
	cr_expect_eq(verve_config.tx_size, 2000);
	cr_expect_eq(verve_config.rx_buffers, 3000);
	cr_expect_eq(verve_config.rx_limit, 3500);
	cr_expect_eq(verve_config.window, 40);
	cr_expect_eq(verve_config.max_conns, 45);
	cr_expect_eq(verve_config.connect_timeout, 5000);
	cr_expect_eq(verve_config.transport_timeout, 6000);
	cr_expect_str_eq(verve_config.auth_key_file, "/etc/verve.key");
	cr_expect_str_eq(verve_config.atomics, "device");
	cr_expect_str_eq(verve_config.mr_cache, "strict");
	cr_expect_str_eq(verve_config.mr_cache_monitor, "notify");
	cr_expect_str_eq(verve_config.odp, "on");
	cr_expect_eq(verve_config.traffic_class, 104);
	cr_expect_eq(verve_config.sl, 3);
	cr_expect_eq(verve_config.flow_label, 0xfffff);
	cr_expect_eq(verve_config.gid_index, 0);
	cr_expect_eq(verve_config.pkey, 0x8001);
	cr_expect_str_eq(verve_config.path_mtu, "2048");
	cr_expect_eq(verve_config.retry_count, 4);
	cr_expect_eq(verve_config.rnr_retry_count, 5);
	cr_expect_eq(verve_config.rnr_timeout, 1000);
	cr_expect_eq(verve_config.port_first, 40000);
	cr_expect_eq(verve_config.port_last, 40100);
	cr_expect_not(logged("FI_VERVE_"), "%s", log_text);
	cr_expect_str_eq(verve_config.stat, "/run/stat");
}

Test(config, routers_and_lids_are_read)
{
	setenv("FI_VERVE_HOP_LIMIT", "255", 1);
	setenv("FI_VERVE_LID_PATH_BITS", "7", 1);
	load();
	cr_expect_eq(verve_config.hop_limit, 255);
	cr_expect_eq(verve_config.lid_path_bits, 7);
}

Test(config, what_is_no_choice_is_warned_about_and_ignored)
{
	setenv("FI_VERVE_ATOMICS", "nic", 1);
	load();
	cr_expect_str_eq(verve_config.atomics, "target");
	cr_expect(logged("FI_VERVE_ATOMICS=nic is neither target nor device: using target"), "%s",
		  log_text);
}

Test(config, out_of_range_is_warned_about_and_ignored)
{
	size_t eager = verve_config.eager_size, window = verve_config.window;

	setenv("FI_VERVE_EAGER_SIZE", "5", 1);
	setenv("FI_VERVE_WINDOW", "65536", 1);
	load();
	cr_expect_eq(verve_config.eager_size, eager);
	cr_expect_eq(verve_config.window, window);
	cr_expect(logged("FI_VERVE_EAGER_SIZE=5 is not between"), "%s", log_text);
	cr_expect(logged("FI_VERVE_WINDOW=65536 is not between"), "%s", log_text);
}

Test(config, what_is_no_number_is_warned_about_and_ignored)
{
	size_t eager = verve_config.eager_size, inline_size = verve_config.inline_size;

	setenv("FI_VERVE_EAGER_SIZE", "8k", 1);
	setenv("FI_VERVE_INLINE_SIZE", "many", 1);
	setenv("FI_VERVE_WINDOW", "-1", 1);
	load();
	cr_expect_eq(verve_config.eager_size, eager);
	cr_expect_eq(verve_config.inline_size, inline_size);
	cr_expect(logged("FI_VERVE_EAGER_SIZE=8k is not a number of bytes: "), "%s", log_text);
	cr_expect(logged("FI_VERVE_INLINE_SIZE=many is not a number"), "%s", log_text);
	cr_expect(logged("FI_VERVE_WINDOW=-1 is not a number"), "%s", log_text);
}

Test(config, a_number_may_be_automatic)
{
	setenv("FI_VERVE_TRAFFIC_CLASS", "auto", 1);
	setenv("FI_VERVE_GID_INDEX", "256", 1);
	setenv("FI_VERVE_PKEY", "0x", 1);
	setenv("FI_VERVE_SL", "auto", 1);
	load();
	cr_expect(verve_config_is_auto(verve_config.traffic_class));
	cr_expect(verve_config_is_auto(verve_config.gid_index));
	cr_expect(verve_config_is_auto(verve_config.pkey));
	cr_expect_eq(verve_config.sl, 0);
	cr_expect_not(logged("FI_VERVE_TRAFFIC_CLASS"), "%s", log_text);
	cr_expect(logged("FI_VERVE_GID_INDEX=256 is neither auto nor a number between 0 and 255"),
		  "%s", log_text);
	cr_expect(logged("FI_VERVE_PKEY=0x is neither auto nor a number"), "%s", log_text);
	cr_expect(logged("FI_VERVE_SL=auto is not a number: using 0\n"), "%s", log_text);
}

Test(config, what_is_no_range_of_ports_is_warned_about_and_ignored)
{
	static const char *const wrong[] = {
		"40000", "0-5", "5-4", "1-65536", "a-b", "1-2-3", "-1-2", "1- 2", "1-",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv("FI_VERVE_PORT_RANGE", wrong[i], 1);
		load();
		cr_expect_null(verve_config.port_range, "%s", wrong[i]);
		cr_expect_eq(verve_config.port_first, 0, "%s", wrong[i]);
		cr_expect(i || logged("is no range of ports such as 40000-40100"), "%s", log_text);
	}
}

Test(config, unknown_names_are_warned_about)
{
	setenv("FI_VERVE_IFACES", "eth0", 1);
	setenv("FI_VERVE_IFAC", "eth0", 1);
	load();
	cr_expect_null(verve_config.iface);
	cr_expect(logged("FI_VERVE_IFACES is set, but there is no such variable"), "%s", log_text);
	cr_expect(logged("FI_VERVE_IFAC is set, but there is no such variable"), "%s", log_text);
}

Test(config, every_variable_is_in_the_list_of_libfabric)
{
	const struct verve_config_param *param;
	char name[64];
	struct fi_param *params;
	int count;

	load();
	cr_assert_eq(fi_getparams(&params, &count), 0);
	for (size_t i = 0; (param = verve_config_param(i)); i++) {
		int found = 0;

		name_of(param, name, sizeof(name));
		for (int j = 0; j < count; j++)
			if (!strcmp(params[j].name, name))
				found += strstr(params[j].help_string, "default: ") != NULL;
		cr_expect_eq(found, 1, "%s is listed %d times", name, found);
	}
	fi_freeparams(params);
}

Test(config, folder_of_counters_is_an_absolute_path)
{
	setenv("FI_VERVE_STAT", "on", 1);
	load();
	cr_expect_null(verve_config.stat);
	cr_expect(logged("FI_VERVE_STAT=on is neither an absolute path nor off"), "%s", log_text);
}

/* libfabric's own variables are for the registration caches of all providers: fi_mr(3). */
Test(config, the_cache_heeds_what_libfabric_offers_for_all)
{
	setenv("FI_MR_CACHE_MAX_COUNT", "77", 1);
	setenv("FI_MR_CACHE_MAX_SIZE", "123456", 1);
	setenv("FI_VERVE_MR_CACHE", "strict", 1);
	load();
	cr_expect_eq(verve_config.mr_cache_count, 77);
	cr_expect_eq(verve_config.mr_cache_size, 123456);
	cr_expect_str_eq(verve_config.mr_cache, "strict");
	cr_expect_not(logged("FI_VERVE_"), "%s", log_text);
}

Test(config, a_size_of_the_cache_that_is_no_number_is_ignored)
{
	setenv("FI_MR_CACHE_MAX_COUNT", "many", 1);
	setenv("FI_MR_CACHE_MAX_SIZE", "1G", 1);
	load();
	cr_expect_eq(verve_config.mr_cache_count, 1024);
	cr_expect_gt(verve_config.mr_cache_size, 1);
	cr_expect(logged("FI_MR_CACHE_MAX_COUNT=many is not a number: using 1024"), "%s", log_text);
	cr_expect(logged("FI_MR_CACHE_MAX_SIZE=1G is not a number"), "%s", log_text);
}

Test(config, a_size_of_the_cache_may_be_hexadecimal)
{
	setenv("FI_MR_CACHE_MAX_SIZE", "0x1e240", 1);
	load();
	cr_expect_eq(verve_config.mr_cache_size, 123456);
	cr_expect_not(logged("FI_MR_CACHE"), "%s", log_text);
}

Test(config, a_cache_without_limit)
{
	setenv("FI_MR_CACHE_MAX_COUNT", "-1", 1);
	load();
	cr_expect_eq(verve_config.mr_cache_count, SIZE_MAX);
	cr_expect_not(logged("FI_MR_CACHE"), "%s", log_text);
}

Test(config, a_disabled_monitor_is_no_cache)
{
	setenv("FI_MR_CACHE_MONITOR", "disabled", 1);
	load();
	cr_expect_eq(verve_config.mr_cache_count, 0);
}

Test(config, an_unknown_kind_of_cache_is_none)
{
	setenv("FI_VERVE_MR_CACHE", "always", 1);
	load();
	cr_expect_str_eq(verve_config.mr_cache, "auto");
	cr_expect(logged("FI_VERVE_MR_CACHE=always"), "%s", log_text);
}

static void set_memlock(rlim_t bytes)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	if (limit.rlim_max < bytes)
		cr_skip("the host's hard limit of locked memory is lower");
	ipc_lock_drop();
	limit.rlim_cur = bytes;
	cr_assert_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

Test(config, defaults_fit_the_limit_of_locked_memory)
{
	enum { LIMIT = 4 << 20, BUFFERS = LIMIT / 4 };

	set_memlock(LIMIT);
	load();
	cr_expect_eq(verve_config.mr_cache_size, BUFFERS);
	cr_expect(verve_config_is_auto(verve_config.rx_buffers));
	cr_expect_eq(verve_config.eager_size, BUFFERS / 256);
	cr_expect(verve_config_is_auto(verve_config.rx_limit));
	cr_expect_eq(verve_config.locked, BUFFERS);
}

Test(config, a_tiny_limit_of_locked_memory_leaves_few_and_small_buffers)
{
	enum { LIMIT = 64 << 10 };

	set_memlock(LIMIT);
	load();
	cr_expect(verve_config_is_auto(verve_config.rx_buffers));
	cr_expect_eq(verve_config.eager_size, LIMIT / 4 / (LIMIT / 4 /
		     (VERVE_CONFIG_EAGER_MIN + VERVE_CONFIG_BUFFER_EXTRA)));
	cr_expect_eq(verve_config.locked, LIMIT / 4);
}
