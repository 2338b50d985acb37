/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Configuration: the table of FI_VERVE_* variables, and reading them. To add a variable, add a
 * field in config.h and a row here; `fi_info -e` and the manual page are made from the table.
 */
#include "base/config.h"

#include <ctype.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memlock.h"

static const char prefix[] = "FI_VERVE_";

enum { NAME_MAX_LEN = 64 };

struct verve_config verve_config = {
	.iface = NULL,
	.inline_size = 256,
	.eager_size = 65536,
	.rendezvous_size = SIZE_MAX,
	.read_size = SIZE_MAX,
	.tx_size = 4096,
	.rx_buffers = SIZE_MAX,
	.rx_limit = SIZE_MAX,
	.locked = SIZE_MAX,
	.window = 64,
	.max_conns = SIZE_MAX,
	.connect_timeout = 30000,
	.transport_timeout = 3500,
	.auth_key_file = NULL,
	.atomics = "target",
	.mr_cache = "auto",
	.mr_cache_monitor = "userfaultfd",
	.mr_cache_count = 1024,
	.mr_cache_size = (size_t)1 << 30,
	.odp = "off",
	.traffic_class = SIZE_MAX,
	.sl = 0,
	.flow_label = 0,
	.hop_limit = 64,
	.lid_path_bits = 0,
	.gid_index = SIZE_MAX,
	.pkey = SIZE_MAX,
	.path_mtu = "auto",
	.retry_count = 7,
	.rnr_retry_count = 7,
	.rnr_timeout = 640,
	.port_range = NULL,
	.stat = NULL,
};

static const char *const atomics_choices[] = {"target", "device", NULL};
static const char *const mr_cache_choices[] = {"auto", "off", "strict", "on", NULL};
static const char *const mr_cache_monitor_choices[] = {"userfaultfd", "notify", NULL};
static const char *const odp_choices[] = {"off", "on", NULL};
static const char *const path_mtu_choices[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};

static const struct verve_config_param params[] = {
	{
		.name = "iface",
		.help = "Use only the ports of these network interfaces (eth0) and RDMA devices "
			"(mlx5_0), with commas between them; mlx5_0@eth1: this port, with its "
			"handshake over eth1.",
		.unit = "any",
		.text = &verve_config.iface,
	},
	{
		.name = "inline_size",
		.help = "Messages that are, header included, no longer than this travel inside the "
			"work request; a device may grant less.",
		.unit = "bytes",
		.number = &verve_config.inline_size,
		.max = VERVE_CONFIG_INLINE_MAX,
	},
	{
		.name = "eager_size",
		.help = "Messages no longer than this are sent at once; longer ones are read by "
			"the receiver when it has a buffer for them. The default is smaller where "
			"RLIMIT_MEMLOCK does not allow it.",
		.unit = "bytes",
		.number = &verve_config.eager_size,
		.min = VERVE_CONFIG_EAGER_MIN,
		.max = 1 << 20,
	},
	{
		.name = "rendezvous_size",
		.help = "Longer messages are read by the receiver even if they are no longer than "
			"the eager size.",
		.unit = "bytes",
		.number = &verve_config.rendezvous_size,
		.automatic = "where the measured costs of the device make that cheaper",
		.min = 1024,
		.max = 1 << 20,
	},
	{
		.name = "read_size",
		.help = "Longer RDMA reads, those of long messages too, go in several of this. On "
			"soft-RoCE in a network that loses packets, 4096: see LIMITATIONS.",
		.unit = "bytes",
		.number = &verve_config.read_size,
		.automatic = "128 KiB on soft-RoCE, 1 MiB on other devices",
		.min = 1024,
		.max = 1 << 30,
	},
	{
		.name = "tx_size",
		.help = "Operations that an endpoint accepts before it says -FI_EAGAIN, if the "
			"application does not say.",
		.unit = "operations",
		.number = &verve_config.tx_size,
		.min = 16,
		.max = VERVE_CONFIG_TX_SIZE_MAX,
	},
	{
		.name = "rx_buffers",
		.help = "Receive buffers, each of the eager size, that an endpoint pins from the "
			"beginning on.",
		.unit = "buffers",
		.number = &verve_config.rx_buffers,
		.automatic = "the window of one connection and 32 more, up to 256",
		.min = VERVE_CONFIG_RX_BUFFERS_MIN,
		.max = VERVE_CONFIG_RX_MAX,
	},
	{
		.name = "rx_limit",
		.help = "Receive buffers that an endpoint pins at most, while peers send more "
			"than it can take at once.",
		.unit = "buffers",
		.number = &verve_config.rx_limit,
		.automatic = "the process's share of a 32nd of the memory, from 1024 to 4096, and "
			     "no more than a quarter of RLIMIT_MEMLOCK holds",
		.min = VERVE_CONFIG_RX_BUFFERS_MIN,
		.max = VERVE_CONFIG_RX_MAX,
	},
	{
		.name = "window",
		.help = "Messages of the eager size that one peer may have at an endpoint without "
			"a receive. Shorter ones count in proportion to their length; 2048 of "
			"up to 64 bytes count as one.",
		.unit = "messages",
		.number = &verve_config.window,
		.min = VERVE_CONFIG_WINDOW_MIN,
		.max = 65535,
	},
	{
		.name = "max_conns",
		.help = "Connections of an endpoint above which idle ones are closed to make place "
			"for others.",
		.unit = "connections",
		.number = &verve_config.max_conns,
		.automatic = "the process's share of the device's queue pairs, at most 4096",
		.min = 2,
		.max = 65536,
	},
	{
		.name = "connect_timeout",
		.help = "How long to try to connect to a peer that does not answer.",
		.unit = "milliseconds",
		.number = &verve_config.connect_timeout,
		.min = 100,
		.max = 3600000,
	},
	{
		.name = "transport_timeout",
		.help = "How long the device repeats a packet that a connected peer does not "
			"acknowledge, before its operations fail.",
		.unit = "milliseconds",
		.number = &verve_config.transport_timeout,
		.min = 10,
		.max = 600000,
	},
	{
		.name = "auth_key_file",
		.help = "A file whose 16 to 4096 bytes are the authentication key of endpoints "
			"that the application gives none; only peers with the same key can "
			"connect.",
		.unit = "none",
		.text = &verve_config.auth_key_file,
	},
	{
		.name = "atomics",
		.help = "Who executes atomics: the target's processor, all of them, or its device, "
			"only those of 64 bits that it can. Both ends must agree.",
		.text = &verve_config.atomics,
		.choices = atomics_choices,
	},
	{
		.name = "mr_cache",
		.help = "Which registrations are kept for the next use of the same memory: those "
			"that peers cannot reach, of what is used again; none; all that peers "
			"cannot reach; or all, also of closed regions.",
		.text = &verve_config.mr_cache,
		.choices = mr_cache_choices,
	},
	{
		.name = "mr_cache_monitor",
		.help = "Who tells that memory is unmapped: the kernel, by userfaultfd; or the "
			"application, which promises to (see MEMORY).",
		.text = &verve_config.mr_cache_monitor,
		.choices = mr_cache_monitor_choices,
	},
	{
		.name = "odp",
		.help = "Whether registered memory is paged on demand instead of pinned, where the "
			"device can do so.",
		.text = &verve_config.odp,
		.choices = odp_choices,
	},
	{
		.name = "traffic_class",
		.help = "Traffic class of the packets: four times the DSCP, and the ECN bits. It "
			"has precedence over the application's.",
		.unit = "",
		.number = &verve_config.traffic_class,
		.automatic = "the application's, else 106 on RoCE, 0 on InfiniBand",
		.max = 255,
	},
	{
		.name = "sl",
		.help = "Service level of the packets; on RoCE the priority of a VLAN.",
		.unit = "",
		.number = &verve_config.sl,
		.max = 15,
	},
	{
		.name = "flow_label",
		.help = "Flow label of the packets; with 0 the device chooses.",
		.unit = "",
		.number = &verve_config.flow_label,
		.max = 0xfffff,
	},
	{
		.name = "hop_limit",
		.help = "InfiniBand: how many routers a packet with a global route header may "
			"pass; on RoCE the kernel takes the route's.",
		.unit = "",
		.number = &verve_config.hop_limit,
		.min = 1,
		.max = 255,
	},
	{
		.name = "lid_path_bits",
		.help = "InfiniBand: the port's LID so many after its first one is used; a port "
			"has 2^LMC of them.",
		.unit = "",
		.number = &verve_config.lid_path_bits,
		.max = 127,
	},
	{
		.name = "gid_index",
		.help = "Use only this entry of a port's GID table.",
		.unit = "",
		.number = &verve_config.gid_index,
		.automatic = "all that an IP address leads to; on InfiniBand the first",
		.max = 255,
	},
	{
		.name = "pkey",
		.help = "Partition key on InfiniBand, the number of a partition (0x8001 and 0x1 "
			"are the same one).",
		.unit = "",
		.number = &verve_config.pkey,
		.automatic = "the IPoIB interface's, else 0xffff, else the first full membership",
		.min = 1,
		.max = 0xffff,
	},
	{
		.name = "path_mtu",
		.help = "Bytes of a packet's payload, at most; the ports' own MTUs are respected.",
		.text = &verve_config.path_mtu,
		.choices = path_mtu_choices,
	},
	{
		.name = "retry_count",
		.help = "How often a packet is repeated that is not acknowledged. Together the "
			"repetitions take the transport timeout.",
		.unit = "",
		.number = &verve_config.retry_count,
		.max = 7,
	},
	{
		.name = "rnr_retry_count",
		.help = "How often a message is repeated that finds no receive buffer; 7: for "
			"ever.",
		.unit = "",
		.number = &verve_config.rnr_retry_count,
		.max = 7,
	},
	{
		.name = "rnr_timeout",
		.help = "How long a peer waits before it repeats a message that found no receive "
			"buffer here.",
		.unit = "microseconds",
		.number = &verve_config.rnr_timeout,
		.min = 10,
		.max = 491520,
	},
	{
		.name = "port_range",
		.help = "UDP ports of the handshake, as 40000-40100, for endpoints whose port the "
			"application does not choose.",
		.unit = "any",
		.text = &verve_config.port_range,
	},
	{
		.name = "stat",
		.help = "The folder in which the process keeps its counters for verve_stat(1), as "
			"an absolute path; or off.",
		.unit = "/dev/shm/verve-UID",
		.text = &verve_config.stat,
	},
};

enum { PARAMS = sizeof(params) / sizeof(params[0]) };

/* Writes the variable's name ("FI_VERVE_IFACE") to buf of NAME_MAX_LEN bytes; returns buf. */
static const char *param_env_name(const struct verve_config_param *param, char *buf)
{
	int len = snprintf(buf, NAME_MAX_LEN, "%s%s", prefix, param->name);

	for (int i = 0; i < len; i++)
		buf[i] = toupper((unsigned char)buf[i]);
	return buf;
}

const char *verve_config_others(const struct verve_config_param *param, const char *between,
				char *buf)
{
	int len = snprintf(buf, VERVE_CONFIG_OTHERS_MAX, "%s", param->choices[1]);

	for (int i = 2; param->choices[i]; i++)
		len += snprintf(buf + len, VERVE_CONFIG_OTHERS_MAX - len, "%s%s", between,
				param->choices[i]);
	return buf;
}

static void param_define(const struct fi_provider *prov, const struct verve_config_param *param)
{
	char others[VERVE_CONFIG_OTHERS_MAX];

	if (param->choices)
		fi_param_define(prov, param->name, FI_PARAM_STRING, "%s (default: %s; or %s)",
				param->help, param->choices[0],
				verve_config_others(param, " or ", others));
	else if (!param->number)
		fi_param_define(prov, param->name, FI_PARAM_STRING, "%s (default: %s)",
				param->help, param->unit);
	else if (param->automatic)
		fi_param_define(prov, param->name, FI_PARAM_STRING,
				"%s (default: auto, %s; or %zu to %zu)", param->help,
				param->automatic, param->min, param->max);
	else
		fi_param_define(prov, param->name, FI_PARAM_SIZE_T,
				"%s (default: %zu%s%s; %zu to %zu)", param->help, *param->number,
				param->unit[0] ? " " : "", param->unit, param->min, param->max);
}

/* Needed because fi_param_get (fi_prov.h) reads "8k" as 8 and "many" as 0. */
static bool text_is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* " bytes", or nothing for a number without unit. */
static const char *unit_of(const struct verve_config_param *param, char *buf)
{
	snprintf(buf, NAME_MAX_LEN, "%s%s", param->unit[0] ? " " : "", param->unit);
	return buf;
}

static void param_read_number(const struct fi_provider *prov,
			      const struct verve_config_param *param)
{
	char name[NAME_MAX_LEN], unit[NAME_MAX_LEN];
	const char *text = getenv(param_env_name(param, name));
	size_t value;

	if (fi_param_get((struct fi_provider *)prov, param->name, &value))
		return;
	if (text && !text_is_number(text)) {
		VERVE_WARN(CORE, "%s=%s is not a number%s%s: using %zu\n", name, text,
			   param->unit[0] ? " of" : "", unit_of(param, unit), *param->number);
		return;
	}
	if (value < param->min || value > param->max) {
		VERVE_WARN(CORE, "%s=%s is not between %zu and %zu%s: using %zu\n", name,
			   text ? text : "", param->min, param->max, unit_of(param, unit),
			   *param->number);
		return;
	}
	*param->number = value;
}

/* A number that may be "auto", or hexadecimal as partition keys are written. */
static void param_read_automatic(const struct fi_provider *prov,
				 const struct verve_config_param *param)
{
	bool hexadecimal;
	char name[NAME_MAX_LEN], *text, *end;
	unsigned long long value;

	if (fi_param_get((struct fi_provider *)prov, param->name, &text) || !text || !*text)
		return;
	if (!strcmp(text, "auto")) {
		*param->number = SIZE_MAX;
		return;
	}
	hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	value = strtoull(text, &end, hexadecimal ? 16 : 10);
	if (*end || !isdigit((unsigned char)*text) || value < param->min || value > param->max)
		VERVE_WARN(CORE, "%s=%s is neither auto nor a number between %zu and %zu: using "
			   "auto\n", param_env_name(param, name), text, param->min, param->max);
	else
		*param->number = value;
}

static void param_choose(const struct verve_config_param *param, const char *value)
{
	char name[NAME_MAX_LEN], others[VERVE_CONFIG_OTHERS_MAX];

	for (const char *const *choice = param->choices; *choice; choice++) {
		if (!strcmp(value, *choice)) {
			*param->text = *choice;
			return;
		}
	}
	VERVE_WARN(CORE, "%s=%s is neither %s nor %s: using %s\n", param_env_name(param, name),
		   value, param->choices[0], verve_config_others(param, " nor ", others),
		   *param->text);
}

static void param_read_text(const struct fi_provider *prov, const struct verve_config_param *param)
{
	char *value;

	if (fi_param_get((struct fi_provider *)prov, param->name, &value) || !value || !*value)
		return;
	if (param->choices)
		param_choose(param, value);
	else
		*param->text = value;
}

/* Reads a port number. Returns the text behind it; NULL: there is none. */
static const char *port_parse(const char *text, uint16_t *port)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || !value || value > UINT16_MAX)
		return NULL;
	*port = value;
	return end;
}

/* Reads both ends of port_range. What is no range is warned about and ignored. */
static void config_read_ports(void)
{
	const char *text = verve_config.port_range, *rest;
	uint16_t first, last;

	if (!text)
		return;
	rest = port_parse(text, &first);
	if (rest && *rest == '-')
		rest = port_parse(rest + 1, &last);
	else
		rest = NULL;
	if (rest && !*rest && first <= last) {
		verve_config.port_first = first;
		verve_config.port_last = last;
		return;
	}
	VERVE_WARN(CORE, "FI_VERVE_PORT_RANGE=%s is no range of ports such as 40000-40100: using "
		   "any port\n", text);
	verve_config.port_range = NULL;
}

/* Of another value, such as "on", a folder would be made wherever the process is. */
static void config_check_stat(void)
{
	const char *text = verve_config.stat;

	if (!text || *text == '/' || !strcmp(text, "off"))
		return;
	VERVE_WARN(CORE, "FI_VERVE_STAT=%s is neither an absolute path nor off: using "
		   "/dev/shm/verve-UID\n", text);
	verve_config.stat = NULL;
}

/* As libfabric reads its own: 0x before a hexadecimal number; "-1" is the largest one. */
static bool core_text_is_number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 0);

	return end != text && !*end && value >= -1;
}

/* A number of libfabric's own. */
static void core_read_number(const char *param, const char *name, size_t *number)
{
	const char *text = getenv(name);
	size_t value;

	if (fi_param_get(NULL, param, &value))
		return;
	/* strtol(3) would read "1G" as 1 and a word as 0: a cache of one byte, or no cache. */
	if (text && !core_text_is_number(text))
		VERVE_WARN(CORE, "%s=%s is not a number: using %zu\n", name, text, *number);
	else
		*number = value;
}

/* Reads libfabric's own variables for registration caches of all providers: fi_mr(3). */
static void config_read_core(void)
{
	char *monitor;

	core_read_number("mr_cache_max_count", "FI_MR_CACHE_MAX_COUNT",
			 &verve_config.mr_cache_count);
	core_read_number("mr_cache_max_size", "FI_MR_CACHE_MAX_SIZE", &verve_config.mr_cache_size);
	if (!fi_param_get(NULL, "mr_cache_monitor", &monitor) && monitor &&
	    !strcmp(monitor, "disabled"))
		verve_config.mr_cache_count = 0;
}

static bool name_is_known(const char *name, size_t len)
{
	char known[NAME_MAX_LEN];

	for (size_t i = 0; i < PARAMS; i++) {
		param_env_name(&params[i], known);
		if (strlen(known) == len && !strncmp(known, name, len))
			return true;
	}
	return false;
}

static void config_warn_unknown(void)
{
	for (char **env = environ; env && *env; env++) {
		size_t len = strcspn(*env, "=");

		if (!strncmp(*env, prefix, sizeof(prefix) - 1) && !name_is_known(*env, len))
			VERVE_WARN(CORE, "%.*s is set, but there is no such variable: "
				   "fi_info -g verve lists them\n", (int)len, *env);
	}
}

/* Fits the defaults to the share of locked memory: of 256 receive buffers, each gets smaller. */
static void config_fit_memlock(void)
{
	size_t share = verve_config.locked;
	size_t buffers = share / (VERVE_CONFIG_EAGER_MIN + VERVE_CONFIG_BUFFER_EXTRA), fit;

	if (verve_config.mr_cache_size > share)
		verve_config.mr_cache_size = share;
	if (buffers > VERVE_CONFIG_RX_BUFFERS_AUTO)
		buffers = VERVE_CONFIG_RX_BUFFERS_AUTO;
	if (buffers < VERVE_CONFIG_RX_BUFFERS_MIN)
		buffers = VERVE_CONFIG_RX_BUFFERS_MIN;
	fit = share / buffers;
	if (fit < VERVE_CONFIG_EAGER_MIN)
		fit = VERVE_CONFIG_EAGER_MIN;
	if (fit < verve_config.eager_size)
		verve_config.eager_size = fit;
}

void verve_config_load(const struct fi_provider *prov)
{
	verve_config.locked = verve_memlock_share();
	config_fit_memlock();
	for (size_t i = 0; i < PARAMS; i++) {
		param_define(prov, &params[i]);
		if (params[i].automatic)
			param_read_automatic(prov, &params[i]);
		else if (params[i].number)
			param_read_number(prov, &params[i]);
		else
			param_read_text(prov, &params[i]);
	}
	config_read_ports();
	config_check_stat();
	config_read_core();
	config_warn_unknown();
}

const struct verve_config_param *verve_config_param(size_t index)
{
	return index < PARAMS ? &params[index] : NULL;
}
