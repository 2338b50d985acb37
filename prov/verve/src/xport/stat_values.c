/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The names of all numbers in the page. */
#include "xport/stat_values.h"

#include "base/page.h"

_Static_assert((int)VERVE_STAT_PEER_VALUES <= (int)VERVE_PAGE_VALUES, "a peer's numbers fit");

const char *const verve_stat_kind_names[VERVE_STAT_KINDS] = {
	[VERVE_STAT_KIND_DOMAIN] = "domain",
	[VERVE_STAT_KIND_ENDPOINT] = "endpoint",
	[VERVE_STAT_KIND_PEER] = "peer",
};

const char *const verve_stat_state_names[VERVE_STAT_STATES] = {
	[VERVE_STAT_STATE_IDLE] = "idle",
	[VERVE_STAT_STATE_WANTING] = "wanting",
	[VERVE_STAT_STATE_CONNECTING] = "connecting",
	[VERVE_STAT_STATE_HALF_OPEN] = "half-open",
	[VERVE_STAT_STATE_UP] = "up",
	[VERVE_STAT_STATE_SUSPENDED] = "suspended",
	[VERVE_STAT_STATE_QUIESCING] = "quiescing",
	[VERVE_STAT_STATE_LEAVING] = "leaving",
};

const char *const verve_stat_event_names[VERVE_STAT_EVENTS] = {
	[VERVE_STAT_EVENT_ASKED] = "asks to connect",
	[VERVE_STAT_EVENT_CAME_UP] = "is up",
	[VERVE_STAT_EVENT_HEARD] = "can be used: the peer hears this side",
	[VERVE_STAT_EVENT_FAILED] = "cannot connect",
	[VERVE_STAT_EVENT_STOPPED] = "is suspended",
	[VERVE_STAT_EVENT_WENT_ON] = "goes on",
	[VERVE_STAT_EVENT_QUIESCED] = "quiesces",
	[VERVE_STAT_EVENT_REOPENED] = "stays open",
	[VERVE_STAT_EVENT_LEFT] = "is left by the peer",
	[VERVE_STAT_EVENT_BROKE] = "ends",
};

_Static_assert((int)VERVE_STAT_OPS_MAX == 1000, "the texts below say so");

static const char *const requests[] = {"read", "write", "atomic"};

static const char *const packets[VERVE_WIRE_TYPES] = {
	[VERVE_WIRE_EAGER] = "eager",
	[VERVE_WIRE_RTS] = "rts",
	[VERVE_WIRE_FIN] = "fin",
	[VERVE_WIRE_CREDIT] = "credit",
	[VERVE_WIRE_WRITE_DATA] = "write_data",
	[VERVE_WIRE_BYE] = "bye",
	[VERVE_WIRE_ATOMIC] = "atomic",
	[VERVE_WIRE_ATOMIC_REPLY] = "atomic_reply",
	[VERVE_WIRE_RMA_EVENT] = "rma_event",
	[VERVE_WIRE_KEY_QUERY] = "key_query",
	[VERVE_WIRE_KEY_REPLY] = "key_reply",
	[VERVE_WIRE_KEY_REVOKE] = "key_revoke",
	[VERVE_WIRE_QUIESCE] = "quiesce",
	[VERVE_WIRE_WITHDRAW] = "withdraw",
	[VERVE_WIRE_PULL] = "pull",
	[VERVE_WIRE_CHUNK] = "chunk",
	[VERVE_WIRE_RESUME] = "resume",
	[VERVE_WIRE_FENCE] = "fence",
	[VERVE_WIRE_FENCED] = "fenced",
	[VERVE_WIRE_BATCH] = "batch",
	[VERVE_WIRE_PART] = "part",
};

/* Name, help, whether it only grows, first number; of several numbers, their count and labels. */
static const struct verve_stat_metric peer_metrics[] = {
	{"state", "State of the connection, as a number", false, .first = VERVE_STAT_PEER_STATE},
	{"conn_id", "Id of the present or last connection", false,
	 .first = VERVE_STAT_PEER_CONN_ID},
	{"qp_num", "Number of its queue pair", false, .first = VERVE_STAT_PEER_QP_NUM},
	{"credits", "Credits: messages of the eager size that may leave now", false,
	 .first = VERVE_STAT_PEER_CREDITS},
	{"pending", "Operations that wait to be started, up to 1000 of each kind", false,
	 .first = VERVE_STAT_PEER_PENDING},
	{"active", "Operations that have started, up to 1000", false,
	 .first = VERVE_STAT_PEER_ACTIVE},
	{"outstanding", "Work requests at the device", false, .first = VERVE_STAT_PEER_OUTSTANDING},
	{"error", "Number of the last error, 0 without one", false, .first = VERVE_STAT_PEER_ERROR},
	{"status", "Completion status of the last error", false, .first = VERVE_STAT_PEER_STATUS},
	{"connections", "Connections that came up", true, .first = VERVE_STAT_PEER_CONNECTIONS},
	{"errors", "Connections that broke or could not be made", true,
	 .first = VERVE_STAT_PEER_ERRORS},
	{"replays", "Suspensions of a connection", true, .first = VERVE_STAT_PEER_REPLAYS},
	{"repeated", "Work requests that were posted again", true,
	 .first = VERVE_STAT_PEER_REPEATED},
	{"sent_bytes", "Bytes of packets posted", true, .first = VERVE_STAT_PEER_SENT_BYTES},
	{"arrived_bytes", "Bytes of packets that arrived", true,
	 .first = VERVE_STAT_PEER_ARRIVED_BYTES},
	{"requests", "RDMA requests posted", true, VERVE_STAT_PEER_REQUESTS, 3, requests},
	{"request_bytes", "Bytes of RDMA requests", true, VERVE_STAT_PEER_REQUEST_BYTES, 3,
	 requests},
	{"sent", "Packets posted, repetitions included", true, VERVE_STAT_PEER_SENT,
	 VERVE_WIRE_TYPES, packets},
	{"arrived", "Packets that arrived", true, VERVE_STAT_PEER_ARRIVED, VERVE_WIRE_TYPES,
	 packets},
};

static const struct verve_stat_metric endpoint_metrics[] = {
	{"peers", "Peers that the endpoint knows", false, .first = VERVE_STAT_EP_PEERS},
	{"links", "Connections, those that end included", false, .first = VERVE_STAT_EP_LINKS},
	{"tx_used", "Operations accepted and not finished", false, .first = VERVE_STAT_EP_TX_USED},
	{"tx_size", "The most of them", false, .first = VERVE_STAT_EP_TX_SIZE},
	{"wr_used", "Work requests at the device", false, .first = VERVE_STAT_EP_WR_USED},
	{"wr_limit", "The most of them", false, .first = VERVE_STAT_EP_WR_LIMIT},
	{"slabs_used", "Send buffers in use", false, .first = VERVE_STAT_EP_SLABS_USED},
	{"slabs_limit", "The most of them", false, .first = VERVE_STAT_EP_SLABS_LIMIT},
	{"slab_failures", "Attempts in a row that got no more of them", false,
	 .first = VERVE_STAT_EP_SLAB_FAILURES},
	{"rx_buffers", "Receive buffers", false, .first = VERVE_STAT_EP_RX_BUFFERS},
	{"rx_free", "Receive buffers that the device does not have", false,
	 .first = VERVE_STAT_EP_RX_FREE},
	{"rx_refused", "1 if the device takes no receive buffer", false,
	 .first = VERVE_STAT_EP_RX_REFUSED},
	{"stale", "Packets and completions of connections that are gone", true,
	 .first = VERVE_STAT_EP_STALE},
	{"malformed", "Packets that no peer should send", true, .first = VERVE_STAT_EP_MALFORMED},
};

static const struct verve_stat_metric domain_metrics[] = {
	{"regions", "Registrations in use or kept", false, .first = VERVE_STAT_DOMAIN_REGIONS},
	{"region_bytes", "Bytes that they pin", false, .first = VERVE_STAT_DOMAIN_REGION_BYTES},
	{"cache_hits", "Buffers that were registered already", true,
	 .first = VERVE_STAT_DOMAIN_HITS},
	{"cache_misses", "Buffers that had to be registered", true,
	 .first = VERVE_STAT_DOMAIN_MISSES},
	{"cache_failures", "Registrations that failed", true, .first = VERVE_STAT_DOMAIN_FAILURES},
	{"cache_unkept", "Registrations that could not be kept", true,
	 .first = VERVE_STAT_DOMAIN_UNKEPT},
	{"cache_evictions", "Registrations that made place for others", true,
	 .first = VERVE_STAT_DOMAIN_EVICTIONS},
	{"cache_invalidations", "Registrations whose memory was unmapped", true,
	 .first = VERVE_STAT_DOMAIN_INVALIDATIONS},
};

const struct verve_stat_metric *verve_stat_metrics(enum verve_stat_kind kind, size_t *count)
{
	switch (kind) {
	case VERVE_STAT_KIND_PEER:
		*count = sizeof(peer_metrics) / sizeof(peer_metrics[0]);
		return peer_metrics;
	case VERVE_STAT_KIND_ENDPOINT:
		*count = sizeof(endpoint_metrics) / sizeof(endpoint_metrics[0]);
		return endpoint_metrics;
	default:
		*count = sizeof(domain_metrics) / sizeof(domain_metrics[0]);
		return domain_metrics;
	}
}
