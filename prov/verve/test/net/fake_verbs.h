/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fake device for the tests of net/gid.c, net/port.c and net/device.c: the test fills in the
 * answers of libibverbs about the device, and the interfaces of the host. A program with
 * fake_verbs.c is linked with --wrap for each __wrap_ function there. The host's list of devices
 * is empty unless the test sets listed: then it has the one device. The device makes queue pairs,
 * which remember the attributes of their last changes of state.
 */
#ifndef VERVE_TEST_NET_FAKE_VERBS_H
#define VERVE_TEST_NET_FAKE_VERBS_H

#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/inet6.h"

enum { FAKE_VERBS_MAX = 16 };

struct fake_verbs {
	struct ibv_device device;
	struct ibv_device_attr attr;
	struct ibv_odp_caps odp;
	int query_device_error, query_port_error; /* positive errno */
	struct ibv_port_attr port;
	struct ibv_gid_entry gids[FAKE_VERBS_MAX];
	int gid_count; /* or the negative errno of ibv_query_gid_table(3) */
	struct ifaddrs ifaddrs[FAKE_VERBS_MAX];
	unsigned ifindex[FAKE_VERBS_MAX];
	int ifaddr_count;
	int getifaddrs_error;
	struct verve_inet6_addr inet6[FAKE_VERBS_MAX];
	size_t inet6_count;
	int index_lookups; /* calls of if_nametoindex(3) */
	const char *ipoib; /* interfaces of every GID, with a space between them; NULL: none */
	unsigned bad_gids;     /* bit i: GID i makes no address handle */
	int ah_error;	       /* of it: positive errno; negative: errno is left alone */
	struct ibv_ah_attr ah; /* of the last ibv_create_ah(3) */
	int open_ahs, open_ifaddrs, open_lists; /* created and not destroyed yet */
	int access_error; /* of access(2) for /dev/infiniband/...; 0: allowed */
	int file_error;	  /* of open(2) for the same; 0: it opens */
	bool listed;		   /* ibv_get_device_list(3) has the device */
	/*
	 * Of ibv_get_device_list(3), ibv_open_device(3) and ibv_alloc_pd(3): 0, or positive errno;
	 * negative: they fail and leave errno alone.
	 */
	int get_device_list_error, open_error, pd_error;
	uint16_t pkeys[FAKE_VERBS_MAX]; /* host byte order; port.pkey_tbl_len says how many */
	struct ibv_qp_attr init, rtr, rts; /* of the last ibv_modify_qp(3) to that state */
	/*
	 * 0, or the positive errno of ibv_create_qp(3); negative: it fails and leaves errno alone.
	 * NULL: it never fails.
	 */
	int (*create_qp)(const struct ibv_qp_init_attr *init);
	int modify_mask;		   /* of the last ibv_modify_qp(3) to RTR */
	enum ibv_qp_state modify_refused;  /* with EINVAL; 0 (RESET): none */
	enum ibv_event_type events[FAKE_VERBS_MAX]; /* of port 1, for ibv_get_async_event(3) */
	int event_count;
	struct ibv_cq *failed_cq; /* of IBV_EVENT_CQ_ERR; IBV_EVENT_QP_FATAL is of the queue pair */
	struct ibv_srq *failed_srq; /* of IBV_EVENT_SRQ_ERR */
};

extern struct fake_verbs fake_verbs;

/* Resets the host to one active RoCE port without a GID, and no interface. */
void fake_verbs_reset(void);
struct ibv_context *fake_verbs_context(void);
/* gid: written as an IPv6 address, such as "::ffff:10.0.0.1". */
void fake_verbs_add_gid(uint32_t port, uint32_t index, enum ibv_gid_type type, const char *gid,
			uint32_t ifindex);
void fake_verbs_add_addr(const char *name, unsigned ifindex, bool up, const char *ip);
/* What the kernel thinks of an IPv6 address: IFA_F_ of linux/if_addr.h. */
void fake_verbs_add_flags(unsigned ifindex, const char *ip, uint32_t flags);

#endif
