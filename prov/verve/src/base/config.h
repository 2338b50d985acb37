/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Configuration: every FI_VERVE_* variable, in one table (config.c): name, default, unit, help.
 *
 * Read once, when the provider is loaded, and constant afterwards. `fi_info -e` prints the table.
 * Source: fi_param_define and fi_param_get (rdma/providers/fi_prov.h), libfabric.conf in 2.x.
 */
#ifndef VERVE_BASE_CONFIG_H
#define VERVE_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct fi_provider;

/* The least that eager_size and window can be: no endpoint announces less to its peers. */
enum { VERVE_CONFIG_EAGER_MIN = 256, VERVE_CONFIG_WINDOW_MIN = 2 };

/* Operations that an endpoint accepts, at most: no honest peer has more under way. */
enum { VERVE_CONFIG_TX_SIZE_MAX = 65536 };

struct verve_config {
	const char *iface;	  /* FI_VERVE_IFACE: netdev or device; NULL is any */
	size_t inline_size;	  /* FI_VERVE_INLINE_SIZE: bytes of header and payload */
	size_t eager_size;	  /* FI_VERVE_EAGER_SIZE: bytes of payload */
	size_t read_size;	  /* FI_VERVE_READ_SIZE: bytes of one RDMA read, at most */
	size_t tx_size;		  /* FI_VERVE_TX_SIZE: operations an endpoint accepts */
	size_t rx_buffers;	  /* FI_VERVE_RX_BUFFERS: receive buffers an endpoint pins */
	size_t window;		  /* FI_VERVE_WINDOW: eager messages a peer may have unconsumed */
	size_t max_conns;	  /* FI_VERVE_MAX_CONNS: connections that an endpoint keeps */
	size_t connect_timeout;	  /* FI_VERVE_CONNECT_TIMEOUT: milliseconds */
	size_t transport_timeout; /* FI_VERVE_TRANSPORT_TIMEOUT: milliseconds to a dead peer's error */
	const char *auth_key_file; /* FI_VERVE_AUTH_KEY_FILE: path; NULL is none */
	const char *atomics;	  /* FI_VERVE_ATOMICS: "target" or "device" executes them */
	const char *mr_cache;	  /* FI_VERVE_MR_CACHE: auto, off, strict or on */
	const char *mr_cache_monitor; /* FI_VERVE_MR_CACHE_MONITOR: userfaultfd or notify */
	size_t mr_cache_count;	  /* FI_MR_CACHE_MAX_COUNT: registrations kept; 0: none */
	size_t mr_cache_size;	  /* FI_MR_CACHE_MAX_SIZE: bytes of them */
	const char *odp;	  /* FI_VERVE_ODP: "off" or "on" */
};

/* Defaults until verve_config_load ran. */
extern struct verve_config verve_config;

/*
 * Defines the parameters under prov's name, reads them, and warns about every FI_VERVE_ name in the
 * environment that is not one of them. A value out of range is warned about and the default kept.
 */
void verve_config_load(const struct fi_provider *prov);

/*
 * A row of the table. The texts are constant; number is NULL for a text, choices for one that may
 * be any.
 */
struct verve_config_param {
	const char *name; /* without the prefix, lower case, as fi_param_define(3) wants it */
	const char *help;
	const char *unit; /* of a text without choices: what it is by default */
	size_t *number;
	const char **text;
	const char *const *choices; /* of the text, the default first; NULL behind the last */
	size_t min, max;
};

enum { VERVE_CONFIG_OTHERS_MAX = 64 };
/* In buf of that many bytes: the choices but the default, with what is to be between two. */
const char *verve_config_others(const struct verve_config_param *param, const char *between,
				char *buf);

/* In the table's order; NULL behind the last. */
const struct verve_config_param *verve_config_param(size_t index);

#endif
