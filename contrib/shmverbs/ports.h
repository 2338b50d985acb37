/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports: one for each device of the fabric, with its tables of GIDs and partitions. All ports lie
 * in one file that the fabric's processes map, so that shmv-ctl can change a port while they run.
 * The first process makes the file from its configuration. A later process with another
 * configuration makes the file anew if no device is open, and is refused otherwise.
 */
#ifndef SHMV_PORTS_H
#define SHMV_PORTS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SHMV_DEVS_MAX = 8,
	SHMV_GIDS = 16,
	SHMV_PKEYS = 8,
	SHMV_ROUTER_LID = 0xff, /* of the router to other subnets */
};

struct shmv_gid {
	union ibv_gid gid;
	uint32_t type; /* enum ibv_gid_type */
	uint32_t used;
};

/* One direction of a port's wire: times in ns of CLOCK_MONOTONIC. */
struct shmv_lane {
	uint64_t free;	     /* all messages have passed */
	uint64_t short_free; /* the short ones have, if they do not wait for the long ones */
};

struct shmv_port {
	_Alignas(64) uint32_t state; /* enum ibv_port_state */
	uint32_t fatal;		     /* the device has failed for good */
	uint32_t lid, lmc, sm_lid;
	uint32_t mtu; /* bytes */
	uint64_t subnet, guid; /* byte order of the host */
	uint16_t pkeys[SHMV_PKEYS]; /* 0: none */
	struct shmv_gid gids[SHMV_GIDS];
	_Alignas(64) struct shmv_lane tx; /* what its wire sends (wire.h) */
	_Alignas(64) struct shmv_lane rx; /* and receives */
	_Alignas(64) uint64_t sent, received; /* requests of queue pairs that are gone */
};

struct shmv_ports {
	uint32_t devs;
	uint64_t hash; /* of the configuration that they were made from */
	struct shmv_port port[SHMV_DEVS_MAX];
};

/*
 * Maps the file at the first call. NULL, and a line on standard error: the file cannot be made or
 * mapped.
 */
struct shmv_ports *shmv_ports_get(void);

/* In a child: another thread of its parent may have had the lock. */
void shmv_ports_forked(void);

/* Number of devices in the configuration. */
uint32_t shmv_ports_count(void);

/* The device to which an address vector leads from a port; -1: none, and packets to it are lost. */
int shmv_ports_find(const struct shmv_port *from, const struct ibv_ah_attr *ah);

/* 0, or EINVAL: the port's driver refuses such an address vector. */
int shmv_ports_check(const struct shmv_port *port, const struct ibv_ah_attr *ah);

/*
 * Whether members of two partitions hear each other (InfiniBand specification, volume 1, 10.9.3).
 */
static inline bool shmv_ports_share(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && ((a | b) & 0x8000);
}

/* Index of an interface that has the address of one of the port's GIDs; 0: there is none here. */
uint32_t shmv_ports_ifindex(const struct shmv_port *port);

#endif
