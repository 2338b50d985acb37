/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device for the tests of net/gid.c and net/port.c: what libibverbs says of it and which interfaces
 * the host has, all as the test fills it in. The program that links fake_verbs.c is linked with
 * --wrap for each of the functions that it stands in for.
 */
#ifndef VERVE_TEST_NET_FAKE_VERBS_H
#define VERVE_TEST_NET_FAKE_VERBS_H

#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_VERBS_MAX = 16 };

struct fake_verbs {
	struct ibv_device device;
	struct ibv_device_attr attr;
	struct ibv_odp_caps odp;
	int query_device_error, query_port_error; /* positive errno */
	struct ibv_port_attr port;
	struct ibv_gid_entry gids[FAKE_VERBS_MAX];
	int gid_count; /* or a negative errno */
	struct ifaddrs ifaddrs[FAKE_VERBS_MAX];
	unsigned ifindex[FAKE_VERBS_MAX];
	int ifaddr_count;
	int getifaddrs_error;
	unsigned bad_gids; /* bit i: GID i makes no address handle */
	struct ibv_ah_attr ah; /* that was asked for last */
	int open_ahs, open_ifaddrs;
	int access_error; /* of /dev/infiniband/...; 0: it may be opened */
};

extern struct fake_verbs fake_verbs;

/* One active RoCE port, no GID and no interface. */
void fake_verbs_reset(void);
struct ibv_context *fake_verbs_context(void);
/* type: of the GID; gid: as an IPv6 address, "::ffff:10.0.0.1". */
void fake_verbs_add_gid(uint32_t port, uint32_t index, enum ibv_gid_type type, const char *gid,
			uint32_t ifindex);
void fake_verbs_add_addr(const char *name, unsigned ifindex, bool up, const char *ip);

#endif
