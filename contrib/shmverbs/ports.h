/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Ports: one for each device of the fabric, with its tables of GIDs and partitions. They lie in
 * a file that all processes of the fabric map, so that shmv-ctl can change them while they run.
 * Made from the configuration by the first process; a later one with another configuration makes
 * them anew if no device is open, and is refused otherwise.
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
	SHMV_ROUTER_LID = 0xff, /* the way to another subnet */
};

struct shmv_gid {
	union ibv_gid gid;
	uint32_t type; /* enum ibv_gid_type */
	uint32_t used;
};

struct shmv_port {
	_Alignas(64) uint32_t state; /* enum ibv_port_state */
	uint32_t fatal;		     /* the device is */
	uint32_t lid, lmc, sm_lid;
	uint64_t subnet, guid; /* byte order of the host */
	uint16_t pkeys[SHMV_PKEYS]; /* 0: none */
	struct shmv_gid gids[SHMV_GIDS];
	_Alignas(64) uint64_t tx_free; /* when its wire has nothing more to send, and to receive (wire.h) */
	_Alignas(64) uint64_t rx_free;
	_Alignas(64) uint64_t sent, received; /* requests of queue pairs that are gone */
};

struct shmv_ports {
	uint32_t devs;
	uint64_t hash; /* of the configuration that they were made from */
	struct shmv_port port[SHMV_DEVS_MAX];
};

/* Maps them, the first time; NULL (and a line on standard error): that cannot be done. */
struct shmv_ports *shmv_ports_get(void);

/* How many devices the configuration has. */
uint32_t shmv_ports_count(void);

/* The device that an address vector leads to from a port; -1: none, what is sent there is lost. */
int shmv_ports_find(const struct shmv_port *from, const struct ibv_ah_attr *ah);

/* 0, or EINVAL: an address vector that the port's driver refuses. */
int shmv_ports_check(const struct shmv_port *port, const struct ibv_ah_attr *ah);

/* Whether members of two partitions hear each other (InfiniBand specification, volume 1, 10.9.3). */
static inline bool shmv_ports_share(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && ((a | b) & 0x8000);
}

/* An interface that has the address of one of the port's GIDs; 0: none here. */
uint32_t shmv_ports_ifindex(const struct shmv_port *port);

#endif
