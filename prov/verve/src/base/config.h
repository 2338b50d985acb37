/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Configuration: one table (config.c) of all FI_VERVE_* variables: name, default, unit, range,
 * help.
 *
 * The variables are read once, when the provider is loaded, and constant afterwards; any thread may
 * read them. `fi_info -e` prints the table.
 * Source: fi_param_define and fi_param_get (rdma/providers/fi_prov.h), libfabric.conf in 2.x.
 */
#ifndef VERVE_BASE_CONFIG_H
#define VERVE_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_provider;

/* True if a number of the configuration is set to "auto". */
static inline bool verve_config_is_auto(size_t number)
{
	return number == SIZE_MAX;
}

/* The least values of eager_size and window: no endpoint announces less to its peers. */
enum { VERVE_CONFIG_EAGER_MIN = 256, VERVE_CONFIG_WINDOW_MIN = 2 };

/* Bytes of an inline request, at most. */
enum { VERVE_CONFIG_INLINE_MAX = 1024 };

/* Bytes of a receive buffer beside the payload, at most. */
enum { VERVE_CONFIG_BUFFER_EXTRA = 128 };

/* Receive buffers of an endpoint that a variable may ask for. */
enum { VERVE_CONFIG_RX_BUFFERS_MIN = 16, VERVE_CONFIG_RX_MAX = 32768 };

/* With FI_VERVE_RX_BUFFERS=auto (engine/share.h): 4 windows of messages of the eager size. */
enum { VERVE_CONFIG_RX_BUFFERS_AUTO = 256 };

/* Receive buffers that FI_VERVE_RX_LIMIT=auto allows, at most: 8 messages of 512 peers. */
enum { VERVE_CONFIG_RX_LIMIT_AUTO = 4096 };

/* Operations that an endpoint accepts, at most: no honest peer has more under way. */
enum { VERVE_CONFIG_TX_SIZE_MAX = 65536 };

struct verve_config {
	const char *iface;	  /* FI_VERVE_IFACE: see base/iface.h; NULL: any */
	size_t inline_size;	  /* FI_VERVE_INLINE_SIZE: bytes of header and payload */
	size_t eager_size;	  /* FI_VERVE_EAGER_SIZE: bytes of payload */
	size_t rendezvous_size;	  /* FI_VERVE_RENDEZVOUS_SIZE: bytes of payload; or auto */
	size_t read_size;	  /* FI_VERVE_READ_SIZE: bytes of an RDMA read at most; or auto */
	size_t tx_size;		  /* FI_VERVE_TX_SIZE: operations an endpoint accepts */
	size_t rx_buffers;	  /* FI_VERVE_RX_BUFFERS; or auto: see engine/share.h */
	size_t rx_limit;	  /* FI_VERVE_RX_LIMIT; or auto: see engine/share.h */
	size_t locked;		  /* bytes that receive buffers may pin: base/memlock.h */
	size_t window;		  /* FI_VERVE_WINDOW: credits of a peer (xport/credit.h) */
	size_t max_conns;	  /* FI_VERVE_MAX_CONNS; or auto: see engine/share.h */
	size_t connect_timeout;	  /* FI_VERVE_CONNECT_TIMEOUT: milliseconds */
	size_t transport_timeout; /* FI_VERVE_TRANSPORT_TIMEOUT: milliseconds */
	const char *auth_key_file; /* FI_VERVE_AUTH_KEY_FILE: path; NULL: no key */
	const char *atomics;	  /* FI_VERVE_ATOMICS: "target" or "device" */
	const char *mr_cache;	  /* FI_VERVE_MR_CACHE: auto, off, strict or on */
	const char *mr_cache_monitor; /* FI_VERVE_MR_CACHE_MONITOR: userfaultfd or notify */
	size_t mr_cache_count;	  /* FI_MR_CACHE_MAX_COUNT: kept registrations; 0: none */
	size_t mr_cache_size;	  /* FI_MR_CACHE_MAX_SIZE: bytes of kept registrations */
	const char *odp;	  /* FI_VERVE_ODP: "off" or "on" */
	size_t traffic_class;	  /* FI_VERVE_TRAFFIC_CLASS: DSCP and ECN; or auto */
	size_t sl;		  /* FI_VERVE_SL: service level */
	size_t flow_label;	  /* FI_VERVE_FLOW_LABEL; 0: the device chooses */
	size_t hop_limit;	  /* FI_VERVE_HOP_LIMIT: of global route headers */
	size_t lid_path_bits;	  /* FI_VERVE_LID_PATH_BITS: which of a port's LIDs */
	size_t gid_index;	  /* FI_VERVE_GID_INDEX; or auto */
	size_t pkey;		  /* FI_VERVE_PKEY: partition key; or auto */
	const char *path_mtu;	  /* FI_VERVE_PATH_MTU: auto, or bytes */
	size_t retry_count;	  /* FI_VERVE_RETRY_COUNT: of packets without acknowledgement */
	size_t rnr_retry_count;	  /* FI_VERVE_RNR_RETRY_COUNT: 7 is for ever */
	size_t rnr_timeout;	  /* FI_VERVE_RNR_TIMEOUT: microseconds */
	const char *port_range;	  /* FI_VERVE_PORT_RANGE: "FIRST-LAST"; NULL: any */
	const char *stat;	  /* FI_VERVE_STAT: a folder, or "off"; NULL: /dev/shm/verve-UID */
	uint16_t port_first, port_last; /* the two numbers of port_range; 0: any */
};

/* Holds the defaults until verve_config_load has run. */
extern struct verve_config verve_config;

/*
 * Defines the parameters of prov, and reads their values. Logs a warning for each FI_VERVE_
 * variable in the environment that does not exist, and for each value that is not allowed; then the
 * default stays. Called once, by fi_prov_ini.
 */
void verve_config_load(const struct fi_provider *prov);

/*
 * A row of the table; constant. A number has number, min and max. A text has text, and choices
 * unless any text is allowed.
 */
struct verve_config_param {
	const char *name; /* lower case, without FI_VERVE_, for fi_param_define (fi_prov.h) */
	const char *help;
	const char *unit; /* of a number; for a text without choices, the name of its default */
	size_t *number;	  /* NULL: the variable is a text */
	const char *automatic; /* meaning of "auto" for a number; NULL: it may not be "auto" */
	const char **text;
	const char *const *choices; /* the default first, NULL behind the last; NULL: any text */
	size_t min, max;	    /* of a number */
};

enum { VERVE_CONFIG_OTHERS_MAX = 64 };
/*
 * Writes all choices but the default to buf of VERVE_CONFIG_OTHERS_MAX bytes, with between in the
 * middle of each two; returns buf. param must have choices.
 */
const char *verve_config_others(const struct verve_config_param *param, const char *between,
				char *buf);

/* The row of that index, from 0; NULL: there are fewer rows. */
const struct verve_config_param *verve_config_param(size_t index);

#endif
