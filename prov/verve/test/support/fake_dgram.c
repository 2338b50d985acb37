/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fake net/dgram.h: a network that loses, doubles, delays and overtakes, and ICMP errors. */
#include "net/dgram.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_world.h"

enum { QUEUE_LIMIT = 1024, SIZE_LIMIT = 65507 };

/* A datagram, or (error not 0) ICMP's answer to a datagram that was sent to from. */
struct packet {
	struct fake_event event;
	STAILQ_ENTRY(packet) link;
	struct verve_addr from, to;
	int error;
	size_t len;
	uint8_t data[];
};

struct verve_net_dgram {
	UT_hash_handle hh;
	struct verve_addr addr;
	struct fake_host *host;
	STAILQ_HEAD(, packet) queue;
	uint32_t queued;
};

static struct verve_net_dgram *sockets; /* uthash by address */

static struct verve_net_dgram *socket_at(const struct verve_addr *addr)
{
	struct verve_net_dgram *dgram;

	HASH_FIND(hh, sockets, addr, sizeof(*addr), dgram);
	return dgram;
}

static int choose_port(struct fake_host *host, struct verve_addr *addr)
{
	for (int i = 0; i < 65536; i++) {
		verve_addr_set_port(addr, host->next_port);
		host->next_port = host->next_port < 60999 ? host->next_port + 1 : 32768;
		if (!socket_at(addr))
			return 0;
	}
	return -FI_EADDRINUSE;
}

int verve_net_dgram_open(struct verve_addr *addr, struct verve_net_dgram **dgramp)
{
	struct fake_host *host = fake_host_of_addr(addr);
	struct verve_net_dgram *dgram;
	int ret = fake_gate(FAKE_NET_DGRAM_OPEN);

	if (ret)
		return ret;
	if (!host)
		return -FI_EADDRNOTAVAIL;
	if (!verve_addr_port(addr))
		ret = choose_port(host, addr);
	else if (socket_at(addr))
		ret = -FI_EADDRINUSE;
	if (ret)
		return ret;
	dgram = calloc(1, sizeof(*dgram));
	if (!dgram)
		return -FI_ENOMEM;
	dgram->addr = *addr;
	dgram->host = host;
	STAILQ_INIT(&dgram->queue);
	HASH_ADD(hh, sockets, addr, sizeof(dgram->addr), dgram);
	fake_opened(FAKE_DGRAM);
	*dgramp = dgram;
	return 0;
}

void verve_net_dgram_close(struct verve_net_dgram *dgram)
{
	struct packet *packet;

	while ((packet = STAILQ_FIRST(&dgram->queue))) {
		STAILQ_REMOVE_HEAD(&dgram->queue, link);
		free(packet);
	}
	HASH_DEL(sockets, dgram);
	free(dgram);
	fake_closed(FAKE_DGRAM);
}

int verve_net_dgram_fd(const struct verve_net_dgram *dgram)
{
	(void)dgram;
	return -1;
}

static uint64_t delay(void)
{
	return fake_between(fake_world.config.dgram_delay_min, fake_world.config.dgram_delay_max);
}

static void deliver(struct fake_event *event);

/* ICMP: to sender, about a datagram to about. */
static void refuse(const struct verve_addr *sender, const struct verve_addr *about, int error)
{
	struct packet *packet;

	if (fake_chance(fake_world.config.dgram_loss))
		return;
	packet = calloc(1, sizeof(*packet));
	if (!packet)
		fake_fatal("no memory");
	packet->from = *about;
	packet->to = *sender;
	packet->error = error;
	fake_world.stats.dgrams_refused++;
	fake_event_at(&packet->event, fake_world.now + delay(), deliver);
}

/* On its way from one host to the other: does it arrive? */
static bool is_lost(const struct packet *packet, const struct fake_host *to)
{
	const struct fake_host *from = fake_host_of_addr(&packet->from);

	return fake_world.stopping || !to || to->dead || to->down || (from && from->dead);
}

static void deliver(struct fake_event *event)
{
	struct packet *packet = (struct packet *)event;
	struct fake_host *host = fake_host_of_addr(&packet->to);
	struct verve_net_dgram *dgram = socket_at(&packet->to);

	if (is_lost(packet, host)) {
		if (!host && !fake_world.stopping && !packet->error)
			refuse(&packet->from, &packet->to, -FI_EHOSTUNREACH);
		free(packet);
		return;
	}
	if (!dgram) {
		if (!packet->error)
			refuse(&packet->from, &packet->to, -FI_ECONNREFUSED);
		free(packet);
		return;
	}
	if (dgram->queued == QUEUE_LIMIT) {
		fake_world.stats.dgrams_lost++;
		free(packet);
		return;
	}
	STAILQ_INSERT_TAIL(&dgram->queue, packet, link);
	dgram->queued++;
	fake_threads_wake();
}

static void transmit(const struct verve_net_dgram *dgram, const void *buf, size_t len,
		     const struct verve_addr *to)
{
	struct packet *packet = malloc(sizeof(*packet) + len);

	if (!packet)
		fake_fatal("no memory");
	memset(packet, 0, sizeof(*packet));
	packet->from = dgram->addr;
	packet->to = *to;
	packet->len = len;
	memcpy(packet->data, buf, len);
	fake_event_at(&packet->event, fake_world.now + delay(), deliver);
}

int verve_net_dgram_send(struct verve_net_dgram *dgram, const void *buf, size_t len,
			 const struct verve_addr *to)
{
	char from_text[VERVE_ADDR_STRLEN], to_text[VERVE_ADDR_STRLEN];
	int ret = fake_gate(FAKE_NET_DGRAM_SEND);

	if (ret)
		return ret;
	if (len > SIZE_LIMIT || to->sa.sa_family != dgram->addr.sa.sa_family ||
	    !verve_addr_port(to))
		return -FI_EINVAL;
	fake_world.stats.dgrams++;
	if (fake_world.trace)
		fake_trace("datagram %s -> %s, %zu bytes", verve_addr_str(&dgram->addr, from_text),
			   verve_addr_str(to, to_text), len);
	if (dgram->host->dead || dgram->host->down || dgram->host->paused ||
	    fake_chance(fake_world.config.dgram_loss)) {
		fake_world.stats.dgrams_lost++;
		return 0;
	}
	transmit(dgram, buf, len, to);
	if (fake_chance(fake_world.config.dgram_dup)) {
		fake_world.stats.dgrams_duplicated++;
		transmit(dgram, buf, len, to);
	}
	return 0;
}

ssize_t verve_net_dgram_recv(struct verve_net_dgram *dgram, void *buf, size_t len,
			     struct verve_addr *from)
{
	struct packet *packet = STAILQ_FIRST(&dgram->queue);
	ssize_t ret;

	if (!packet || dgram->host->paused)
		return -FI_EAGAIN;
	STAILQ_REMOVE_HEAD(&dgram->queue, link);
	dgram->queued--;
	*from = packet->from;
	ret = packet->error;
	if (!ret) {
		ret = (ssize_t)(packet->len < len ? packet->len : len);
		memcpy(buf, packet->data, (size_t)ret);
	}
	free(packet);
	return ret;
}

/* The fake net has no routing tables. As any host, each sends to itself from itself. */
bool verve_net_dgram_routes_from(const struct verve_addr *dest, const struct verve_addr *own)
{
	return verve_addr_same_host(dest, own);
}
