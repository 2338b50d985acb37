/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of the fake net: the world, its event queue, and the fields that fake objects share. Only
 * test/support/fake_*.c includes it.
 */
#ifndef VERVE_TEST_SUPPORT_FAKE_WORLD_H
#define VERVE_TEST_SUPPORT_FAKE_WORLD_H

#include <sys/queue.h>
#include <uthash.h>

#include "fake_net.h"
#include "net/mr.h"
#include "net/qp.h"

enum {
	FAKE_MAX_SGE = 8,
};

enum fake_object {
	FAKE_DEVICE,
	FAKE_MR,
	FAKE_CHANNEL,
	FAKE_CQ,
	FAKE_SRQ,
	FAKE_QP,
	FAKE_DGRAM,
	FAKE_THREAD,
	FAKE_PORT_LIST,
	FAKE_BINDER,
	FAKE_MW,
	FAKE_OBJECTS,
};

/* Embedded in each object that waits for a time. */
struct fake_event {
	uint64_t time, seq;
	size_t pos; /* in the heap; 0: not in it */
	void (*run)(struct fake_event *event);
};

struct fake_host {
	uint32_t index;
	bool dead, down, paused, removed;
	bool holds; /* a message of this host that has begun to arrive does not go on */
	char reason[VERVE_NET_REASON_MAX]; /* empty: usable */
	/* Set by tests: the device cannot be opened, and has no MTU; reason_may_end of its port. */
	bool unopened, reason_may_end;
	struct verve_net_portaddr addrs[2];
	uint32_t addr_count;
	uint32_t netdev_addrs; /* addresses of the interface; 0: addr_count */
	struct verve_net_qp *qps; /* uthash by number */
	uint32_t qp_count, next_qp_num, freed_qp_num;
	uint16_t next_port;
};

struct verve_net_device {
	struct fake_host *host;
	struct verve_net_port port;
	struct verve_net_portaddr addr;
	int async_fd;
	uint32_t async_events;
	struct verve_net_fault fault; /* what the first of them says */
	struct fake_region *by_lkey, *by_rkey; /* uthash */
	uint32_t mr_count;
	uint32_t users;
	LIST_ENTRY(verve_net_device) link;
};

struct fake_world {
	struct fake_net_config config;
	uint64_t now;
	uint64_t random[4];
	uint64_t next_seq;
	uint32_t next_key, vectors;
	uint64_t memlock; /* bytes */
	void *dmabuf;	  /* memory; NULL: devices take none */
	uint64_t dmabuf_size;
	struct fake_event **heap; /* 1-based */
	size_t heap_count, heap_size;
	struct fake_host *hosts;
	LIST_HEAD(, verve_net_device) devices;
	uint32_t eventful; /* devices whose asynchronous events wait */
	size_t open[FAKE_OBJECTS];
	uint32_t fail_kinds;
	uint64_t fail_in;
	int fail_error;
	bool failed;
	void (*on_pause)(void *arg);
	void *on_pause_arg;
	bool in_pause;
	void (*on_close)(void *arg);
	void *on_close_arg;
	bool in_close, in_mr;
	void (*on_mr)(void *arg, bool opens, const void *addr);
	void *on_mr_arg;
	bool stopping; /* operations under way are freed, not executed */
	bool stamps, trace;
	const char *thread; /* the thread whose step runs; NULL: the test's */
	struct fake_net_stats stats;
};

extern struct fake_world fake_world;

/* Something that a program must never do to the device, or the test to the fake. */
_Noreturn void fake_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fake_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Schedules, or moves, an event. */
void fake_event_at(struct fake_event *event, uint64_t time, void (*run)(struct fake_event *));
void fake_event_cancel(struct fake_event *event);
static inline bool fake_event_is_set(const struct fake_event *event)
{
	return event->pos;
}

/* Runs it now, or moves the clock to its time. */
void fake_event_run(struct fake_event *event);
/* Mixes value into a digest. */
static inline uint64_t fake_mix(uint64_t digest, uint64_t value)
{
	digest = (digest ^ value) * 0x9e3779b97f4a7c15u;
	return digest ^ digest >> 29;
}
uint64_t fake_cq_digest(const struct verve_net_cq *cq, uint64_t digest);

/* from min to max. */
uint64_t fake_between(uint64_t min, uint64_t max);
/* chance in 1/1000. */
bool fake_chance(uint32_t chance);
/* How long the next leg of a request takes. */
uint64_t fake_rc_delay(void);

/* The gate: 0, or the error that this call is to fail with. */
int fake_gate(uint32_t kind);
/* A call begins that takes long on a device: only workers should make it. */
void fake_slow(void);
void fake_opened(enum fake_object object);
void fake_closed(enum fake_object object);

/* Can a and b exchange packets now? */
bool fake_is_reachable(const struct fake_host *a, const struct fake_host *b);
/* NULL: nobody has it. The port does not matter. */
struct fake_host *fake_host_of_addr(const struct verve_addr *addr);
struct fake_host *fake_host_of_gid(const struct verve_net_gid *gid);
/* Fills in the port of a host as verve_net_port_list shows it; addrs is the host's. */
void fake_port_fill(struct fake_host *host, struct verve_net_port *port);
void fake_device_async(struct verve_net_device *dev);

/* Is [addr, addr + len) in the region with this key, with that access? len 0 always is. */
bool fake_lkey_covers(const struct verve_net_device *dev, uint32_t lkey, uint64_t addr,
		      uint32_t len, unsigned access);
bool fake_rkey_is_there(const struct verve_net_device *dev, uint32_t rkey);
bool fake_rkey_covers(const struct verve_net_device *dev, uint32_t rkey, uint64_t addr,
		      uint32_t len, unsigned access);
/* True unless the key is of a window for the peer of another queue pair (or binder) than qp. */
bool fake_rkey_is_for(const struct verve_net_device *dev, uint32_t rkey, const void *qp);
/* The memory behind an address that is covered. */
void *fake_lkey_memory(const struct verve_net_device *dev, uint32_t lkey, uint64_t addr);
void *fake_rkey_memory(const struct verve_net_device *dev, uint32_t rkey, uint64_t addr);

/* Completion queue: qp and number tell which request of a send queue it ends; NULL: a receive. */
struct verve_net_wc;
void fake_cq_push(struct verve_net_cq *cq, const struct verve_net_wc *wc, struct verve_net_qp *qp,
		  uint32_t number);
/* qp closes: entries stay, or go, as the configuration says. */
void fake_cq_forget(struct verve_net_cq *cq, struct verve_net_qp *qp, uint32_t qp_num);
/* Counts users. */
void fake_cq_use(struct verve_net_cq *cq, int users);

/* True if the descriptor is that of a device's asynchronous events. */
bool fake_device_has_fd(int fd);

/* Every thread has something to look at. */
void fake_threads_wake(void);
/* Wakes the threads whose watched descriptor is readable. */
void fake_threads_look(void);
bool fake_threads_run(const char *name); /* one of that name was started and not stopped */

#endif
