/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atomic.h"
#include "conf.h"
#include "log.h"
#include "segment.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct shmv_ports *ports;

uint32_t shmv_ports_count(void)
{
	uint32_t count = 1;

	for (const char *at = shmv_conf.ips; *at; at++)
		count += *at == ',';
	return count < SHMV_DEVS_MAX ? count : SHMV_DEVS_MAX;
}

/* The hash function FNV-1a. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t conf_hash(void)
{
	char text[768];

	snprintf(text, sizeof(text), "%s %s %s %u %u %u %u %zu", shmv_conf.ips, shmv_conf.pkeys,
		 shmv_conf.subnets, shmv_conf.infiniband, shmv_conf.lmc, shmv_conf.roce_v1,
		 shmv_conf.mtu, sizeof(struct shmv_ports));
	return hash_of(text);
}

static void add_gid(struct shmv_port *port, const union ibv_gid *gid, uint32_t type)
{
	for (uint32_t i = 0; i < SHMV_GIDS; i++) {
		if (port->gids[i].used)
			continue;
		port->gids[i].gid = *gid;
		port->gids[i].type = type;
		port->gids[i].used = 1;
		return;
	}
}

/* Adds a GID of version 2, and before it of version 1 if the property roce_v1 is set. */
static void add_roce_gid(struct shmv_port *port, const union ibv_gid *gid)
{
	if (shmv_conf.roce_v1)
		add_gid(port, gid, IBV_GID_TYPE_ROCE_V1);
	add_gid(port, gid, IBV_GID_TYPE_ROCE_V2);
}

/*
 * Adds the GIDs of a RoCE port: its link address if the property roce_v1 is set, then its IP
 * addresses.
 */
static void add_roce_gids(struct shmv_port *port, char *ips)
{
	union ibv_gid gid = {.global = {htobe64(UINT64_C(0xfe80) << 48), htobe64(port->guid)}};
	char *save, *ip;

	if (shmv_conf.roce_v1)
		add_roce_gid(port, &gid);
	for (ip = strtok_r(ips, "+", &save); ip; ip = strtok_r(NULL, "+", &save)) {
		memset(&gid, 0, sizeof(gid));
		gid.raw[10] = gid.raw[11] = 0xff;
		if (inet_pton(AF_INET, ip, &gid.raw[12]) == 1 || inet_pton(AF_INET6, ip, &gid) == 1)
			add_roce_gid(port, &gid);
		else
			shmv_log("%s is no address", ip);
	}
}

/* Copies entry number index of a list with commas; the last entry if the list is shorter. */
static void pick(char *to, size_t size, const char *list, uint32_t index)
{
	const char *comma;

	for (; index && (comma = strchr(list, ',')); index--)
		list = comma + 1;
	snprintf(to, size, "%.*s", (int)strcspn(list, ","), list);
}

static void port_make(struct shmv_port *port, uint32_t index)
{
	char text[256], *save, *pkey;
	uint32_t at = 0;

	memset(port, 0, sizeof(*port));
	port->state = IBV_PORT_ACTIVE;
	port->mtu = shmv_conf.mtu;
	port->guid = UINT64_C(0x02534800fffe0001) + index;
	if (!shmv_conf.infiniband) {
		pick(text, sizeof(text), shmv_conf.ips, index);
		add_roce_gids(port, text);
		port->pkeys[0] = 0xffff;
		return;
	}
	port->lmc = shmv_conf.lmc;
	port->lid = (index + 1) << 3;
	port->sm_lid = 1;
	pick(text, sizeof(text), shmv_conf.subnets, index);
	port->subnet = strtoull(text, NULL, 0);
	add_gid(port, &(union ibv_gid){.global = {htobe64(port->subnet), htobe64(port->guid)}},
		IBV_GID_TYPE_IB);
	snprintf(text, sizeof(text), "%s", shmv_conf.pkeys);
	for (pkey = strtok_r(text, ",", &save); pkey && at < SHMV_PKEYS;
	     pkey = strtok_r(NULL, ",", &save))
		port->pkeys[at++] = strtoul(pkey, NULL, 0);
}

/*
 * Makes the ports. False: processes have devices open with other ports. Under the lock of the
 * file.
 */
static bool make(struct shmv_ports *to)
{
	uint64_t hash = conf_hash();

	if (to->hash == hash)
		return true;
	if (to->hash && shmv_seg_any()) {
		shmv_log("%s is in use with other ports: choose another SHMV_FABRIC",
			 shmv_conf.dir);
		return false;
	}
	to->devs = shmv_ports_count();
	for (uint32_t i = 0; i < to->devs; i++)
		port_make(&to->port[i], i);
	to->hash = hash;
	return true;
}

static struct shmv_ports *map(void)
{
	struct shmv_ports *to = NULL;
	char path[96];
	bool made;
	int fd;

	/* Processes of several users may meet, and an umask must not keep them out. */
	if (!mkdir(shmv_conf.dir, 0777))
		chmod(shmv_conf.dir, 0777);
	else if (errno != EEXIST)
		goto err;
	snprintf(path, sizeof(path), "%s/ports", shmv_conf.dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		goto err;
	fchmod(fd, 0666);
	if (!flock(fd, LOCK_EX) && !ftruncate(fd, sizeof(*to)))
		to = mmap(NULL, sizeof(*to), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		to = NULL;
	made = to && make(to);
	flock(fd, LOCK_UN); /* close(2) does not unlock: the mapping keeps the file open */
	close(fd);
	if (made)
		return to;
	if (to) {
		munmap(to, sizeof(*to));
		return NULL;
	}
err:
	shmv_log("cannot make files in %s: %s", shmv_conf.dir, strerror(errno));
	return NULL;
}

struct shmv_ports *shmv_ports_get(void)
{
	pthread_mutex_lock(&mutex);
	if (!ports)
		ports = map();
	pthread_mutex_unlock(&mutex);
	return ports;
}

void shmv_ports_forked(void)
{
	pthread_mutex_init(&mutex, NULL);
}

static int find_gid(const union ibv_gid *gid, uint32_t type)
{
	for (uint32_t dev = 0; dev < ports->devs; dev++) {
		for (uint32_t i = 0; i < SHMV_GIDS; i++) {
			const struct shmv_gid *at = &ports->port[dev].gids[i];

			if (at->used && at->type == type && !memcmp(&at->gid, gid, sizeof(*gid)))
				return dev;
		}
	}
	return -1;
}

static bool has_lid(const struct shmv_port *port, uint32_t lid)
{
	return lid >= port->lid && lid < port->lid + (1u << port->lmc);
}

int shmv_ports_find(const struct shmv_port *from, const struct ibv_ah_attr *ah)
{
	const struct shmv_port *to;
	int dev;

	if (!shmv_conf.infiniband)
		return find_gid(&ah->grh.dgid, from->gids[ah->grh.sgid_index].type);
	if (ah->is_global) {
		dev = find_gid(&ah->grh.dgid, IBV_GID_TYPE_IB);
		if (dev < 0)
			return -1;
		to = &ports->port[dev];
		if (to->subnet != from->subnet)
			return ah->dlid == SHMV_ROUTER_LID ? dev : -1;
		return has_lid(to, ah->dlid) ? dev : -1;
	}
	for (dev = 0; dev < (int)ports->devs; dev++) {
		to = &ports->port[dev];
		if (to->subnet == from->subnet && has_lid(to, ah->dlid))
			return dev;
	}
	return -1;
}

int shmv_ports_check(const struct shmv_port *port, const struct ibv_ah_attr *ah)
{
	bool global = !shmv_conf.infiniband || shmv_conf.grh_required;

	if (ah->port_num != 1 || (global && !ah->is_global))
		return EINVAL;
	if (ah->is_global &&
	    (ah->grh.sgid_index >= SHMV_GIDS || !port->gids[ah->grh.sgid_index].used))
		return EINVAL;
	if (shmv_conf.infiniband &&
	    (!ah->dlid || ah->dlid >= 0xc000 || ah->src_path_bits >> port->lmc))
		return EINVAL;
	return 0;
}

uint32_t shmv_ports_ifindex(const struct shmv_port *port)
{
	struct ifaddrs *list, *at;
	uint32_t found = 0;

	if (shmv_conf.infiniband || getifaddrs(&list))
		return 0;
	for (at = list; at && !found; at = at->ifa_next) {
		union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

		if (!at->ifa_addr)
			continue;
		if (at->ifa_addr->sa_family == AF_INET)
			memcpy(&gid.raw[12], &((struct sockaddr_in *)at->ifa_addr)->sin_addr, 4);
		else if (at->ifa_addr->sa_family == AF_INET6)
			memcpy(&gid, &((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr, 16);
		else
			continue;
		for (uint32_t i = 0; i < SHMV_GIDS && !found; i++)
			if (port->gids[i].used && !memcmp(&port->gids[i].gid, &gid, sizeof(gid)))
				found = if_nametoindex(at->ifa_name);
	}
	freeifaddrs(list);
	return found;
}
