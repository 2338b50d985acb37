/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The fake net under the connection managers' tests. One thread. */
#include "cm_world.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "net/dgram.h"
#include "net/qp.h"
#include "net/sys.h"

enum { QPS = 1 << 16, RECORDS = 8192, DGRAM_MAX = 256, THREADS = 8 };

struct packet {
	TAILQ_ENTRY(packet) link;
	uint64_t when, order;
	unsigned from, to; /* ports, from 0 */
	int error;	   /* not 0: an ICMP error for a datagram to port from */
	size_t len;
	uint8_t data[DGRAM_MAX];
};

TAILQ_HEAD(packet_list, packet);

struct verve_net_dgram {
	unsigned port;
	struct packet_list queue;
};

struct verve_net_qp {
	uint32_t psn;
	bool connected, receives;
	struct verve_net_qp_addr self, remote;
};

struct cm_world_config cm_world_config;
uint64_t cm_world_time;

static struct verve_net_dgram *sockets[CM_WORLD_PORTS];
static bool muted[CM_WORLD_PORTS];
static struct packet **heap; /* elements from 1 on */
static size_t heap_count, heap_room;
static uint64_t next_order;
static struct verve_net_qp *qps[QPS]; /* by number */
static uint32_t last_qp_num;
static size_t qp_count;
static struct packet records[RECORDS];
static size_t record_count;
static uint64_t random_state;
static unsigned fail_open, fail_connect;

/* Randomness: splitmix64. */

uint64_t cm_world_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool chance(uint32_t of_1000)
{
	return cm_world_random() % 1000 < of_1000;
}

uint64_t verve_net_now(void)
{
	return cm_world_time;
}

void verve_net_random(void *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)cm_world_random();
}

/* The network: a heap of the packets that are under way. */

static bool is_before(const struct packet *a, const struct packet *b)
{
	return a->when < b->when || (a->when == b->when && a->order < b->order);
}

static void push(struct packet *packet)
{
	size_t place;

	if (heap_count + 1 >= heap_room) {
		size_t room = heap_room ? heap_room * 2 : 1024;
		struct packet **larger = realloc(heap, room * sizeof(*heap));

		if (!larger) {
			free(packet); /* lost, like any datagram */
			return;
		}
		heap = larger;
		heap_room = room;
	}
	packet->order = next_order++;
	for (place = ++heap_count; place > 1 && is_before(packet, heap[place / 2]); place /= 2)
		heap[place] = heap[place / 2];
	heap[place] = packet;
}

static struct packet *pop(void)
{
	struct packet *first = heap[1], *last = heap[heap_count--];
	size_t place = 1, child;

	for (; (child = 2 * place) <= heap_count; place = child) {
		if (child < heap_count && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], last))
			break;
		heap[place] = heap[child];
	}
	heap[place] = last;
	return first;
}

static void launch(const struct packet *from)
{
	uint64_t min = cm_world_config.delay_min, max = cm_world_config.delay_max;
	struct packet *packet = malloc(sizeof(*packet));

	if (!packet)
		return;
	*packet = *from;
	if (chance(cm_world_config.slow))
		max = cm_world_config.slow_max;
	packet->when = cm_world_time + min + (max > min ? cm_world_random() % (max - min) : 0);
	push(packet);
}

uint64_t cm_world_next(void)
{
	return heap_count ? heap[1]->when : UINT64_MAX;
}

unsigned cm_world_deliver(void)
{
	struct packet *packet = pop();
	unsigned to = packet->to;

	if (packet->when > cm_world_time)
		cm_world_time = packet->when;
	if (sockets[to]) {
		TAILQ_INSERT_TAIL(&sockets[to]->queue, packet, link);
		return to;
	}
	if (!packet->error && cm_world_config.refuse && !chance(cm_world_config.loss)) {
		struct packet icmp = {
			.from = to, .to = packet->from, .error = -FI_ECONNREFUSED};

		launch(&icmp);
	}
	free(packet);
	return to;
}

void cm_world_replay(void)
{
	if (record_count)
		launch(&records[cm_world_random() %
				(record_count < RECORDS ? record_count : RECORDS)]);
}

size_t cm_world_recorded(unsigned from, unsigned to, uint8_t kind, void *buf)
{
	size_t oldest = record_count > RECORDS ? record_count - RECORDS : 0;

	for (size_t i = record_count; i > oldest; i--) {
		const struct packet *packet = &records[(i - 1) % RECORDS];

		if (packet->from != from || packet->to != to || packet->data[6] != kind)
			continue;
		memcpy(buf, packet->data, packet->len);
		return packet->len;
	}
	return 0;
}

void cm_world_mute(unsigned port)
{
	muted[port] = true;
}

void cm_world_inject(unsigned from, unsigned to, const void *buf, size_t len)
{
	struct packet packet = {.from = from, .to = to, .len = len};

	memcpy(packet.data, buf, len);
	launch(&packet);
}

void cm_world_addr(unsigned port, struct verve_addr *addr)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)(CM_WORLD_PORT + port)),
		.sin_addr.s_addr = htonl(0x0a010001),
	};

	verve_addr_set(addr, &in, sizeof(in));
}

void cm_world_start(uint64_t seed)
{
	random_state = seed;
	cm_world_time = 1000000;
	memset(muted, 0, sizeof(muted));
	memset(&cm_world_config, 0, sizeof(cm_world_config));
	cm_world_config.delay_min = 50000;
	cm_world_config.delay_max = 100000;
	cm_world_config.work_max = 20000;
	last_qp_num = 1; /* 0 and 1 are management queue pairs */
	record_count = 0;
	fail_open = fail_connect = 0;
}

static size_t threads_left(void);

size_t cm_world_stop(void)
{
	size_t left = qp_count;

	while (heap_count)
		free(pop());
	free(heap);
	heap = NULL;
	heap_room = 0;
	for (unsigned port = 0; port < CM_WORLD_PORTS; port++)
		left += sockets[port] != NULL;
	return left + threads_left();
}

/* net/dgram.h */

int verve_net_dgram_open(struct verve_addr *addr, struct verve_net_dgram **dgramp)
{
	unsigned port = verve_addr_port(addr) - CM_WORLD_PORT;
	struct verve_net_dgram *dgram;

	if (port >= CM_WORLD_PORTS)
		return -FI_EADDRNOTAVAIL;
	if (sockets[port])
		return -FI_EADDRINUSE;
	dgram = calloc(1, sizeof(*dgram));
	if (!dgram)
		return -FI_ENOMEM;
	dgram->port = port;
	TAILQ_INIT(&dgram->queue);
	sockets[port] = dgram;
	muted[port] = false;
	*dgramp = dgram;
	return 0;
}

void verve_net_dgram_close(struct verve_net_dgram *dgram)
{
	struct packet *packet;

	while ((packet = TAILQ_FIRST(&dgram->queue))) {
		TAILQ_REMOVE(&dgram->queue, packet, link);
		free(packet);
	}
	sockets[dgram->port] = NULL;
	free(dgram);
}

int verve_net_dgram_fd(const struct verve_net_dgram *dgram)
{
	(void)dgram;
	return -1;
}

int verve_net_dgram_send(struct verve_net_dgram *dgram, const void *buf, size_t len,
			 const struct verve_addr *to)
{
	struct packet packet = {.from = dgram->port, .to = verve_addr_port(to) - CM_WORLD_PORT};

	if (to->sa.sa_family != AF_INET || packet.to == CM_WORLD_PORTS || len > DGRAM_MAX)
		return -FI_EINVAL;
	packet.len = len;
	memcpy(packet.data, buf, len);
	records[record_count++ % RECORDS] = packet;
	if (packet.to > CM_WORLD_PORTS || muted[dgram->port] || chance(cm_world_config.loss))
		return 0;
	launch(&packet);
	if (chance(cm_world_config.copy))
		launch(&packet);
	return 0;
}

ssize_t verve_net_dgram_recv(struct verve_net_dgram *dgram, void *buf, size_t len,
			     struct verve_addr *from)
{
	struct packet *packet = TAILQ_FIRST(&dgram->queue);
	ssize_t ret;

	if (!packet)
		return -FI_EAGAIN;
	TAILQ_REMOVE(&dgram->queue, packet, link);
	cm_world_addr(packet->from, from);
	ret = packet->error ? packet->error : (ssize_t)(packet->len < len ? packet->len : len);
	if (ret > 0)
		memcpy(buf, packet->data, (size_t)ret);
	free(packet);
	return ret;
}

/* net/qp.h: the functions that a connection manager calls */

static bool comes_due(unsigned *nth)
{
	return *nth && !--*nth;
}

void cm_world_fail_open(unsigned nth)
{
	fail_open = nth;
}

void cm_world_fail_connect(unsigned nth)
{
	fail_connect = nth;
}

int verve_net_qp_open(struct verve_net_device *dev, const struct verve_net_qp_attr *attr,
		      uint32_t psn, struct verve_net_qp **qpp)
{
	struct verve_net_qp *qp;

	(void)dev;
	(void)attr;
	if (comes_due(&fail_open) || last_qp_num + 1 == QPS)
		return -FI_ENOMEM;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -FI_ENOMEM;
	qp->self = (struct verve_net_qp_addr){
		.gid.raw = {[10] = 0xff, 0xff, 10, 1, 0, 1}, /* cm_world_addr */
		.qp_num = ++last_qp_num, .psn = psn, .mtu_log2 = 10, .rd_atomic_target = 16};
	qps[last_qp_num] = qp;
	qp_count++;
	*qpp = qp;
	return 0;
}

void verve_net_qp_close(struct verve_net_qp *qp)
{
	qps[qp->self.qp_num] = NULL;
	qp_count--;
	free(qp);
}

void verve_net_qp_addr(const struct verve_net_qp *qp, struct verve_net_qp_addr *addr)
{
	*addr = qp->self;
}

int verve_net_qp_connect(struct verve_net_qp *qp, const struct verve_net_qp_addr *remote,
			 uint32_t timeout_ms)
{
	(void)timeout_ms;
	if (qp->connected)
		abort(); /* a queue pair is connected once */
	if (!remote->rd_atomic_target)
		return -FI_EOPNOTSUPP;
	/* A failure that comes due is one of the second step. */
	qp->receives = true;
	if (comes_due(&fail_connect))
		return -FI_EINVAL;
	qp->connected = true;
	qp->remote = *remote;
	return 0;
}

bool verve_net_qp_may_receive(const struct verve_net_qp *qp)
{
	return qp->receives;
}

/* net/sys.h: threads are events. */

struct verve_net_thread {
	uint64_t (*step)(void *arg);
	void *arg;
	uint64_t when; /* of the next step; UINT64_MAX: the thread sleeps */
	bool is_used;
};

static struct verve_net_thread threads[THREADS];

static struct verve_net_thread *next_thread(void)
{
	struct verve_net_thread *next = NULL;

	for (int i = 0; i < THREADS; i++)
		if (threads[i].is_used && (!next || threads[i].when < next->when))
			next = &threads[i];
	return next;
}

static size_t threads_left(void)
{
	size_t left = 0;

	for (int i = 0; i < THREADS; i++)
		left += threads[i].is_used;
	return left;
}

uint64_t cm_world_next_thread(void)
{
	const struct verve_net_thread *next = next_thread();

	return next ? next->when : UINT64_MAX;
}

void cm_world_run_thread(void)
{
	struct verve_net_thread *thread = next_thread();

	if (thread->when > cm_world_time)
		cm_world_time = thread->when;
	thread->when = UINT64_MAX;
	if (thread->step(thread->arg) != UINT64_MAX)
		verve_net_thread_wake(thread);
}

int verve_net_thread_start(const char *name, uint64_t (*step)(void *arg), void *arg,
			   struct verve_net_thread **threadp)
{
	struct verve_net_thread *thread = threads;

	(void)name;
	if (cm_world_config.no_threads)
		return -FI_EAGAIN;
	while (thread->is_used)
		if (++thread == threads + THREADS)
			abort();
	*thread = (struct verve_net_thread){.step = step, .arg = arg, .when = UINT64_MAX,
					    .is_used = true};
	verve_net_thread_wake(thread);
	*threadp = thread;
	return 0;
}

void verve_net_thread_stop(struct verve_net_thread *thread)
{
	thread->is_used = false;
}

void verve_net_thread_wake(struct verve_net_thread *thread)
{
	uint64_t most = cm_world_config.work_max;
	uint64_t when = cm_world_time + (most ? cm_world_random() % most : 0);

	if (when < thread->when)
		thread->when = when;
}

size_t cm_world_qps(void)
{
	return qp_count;
}

struct verve_net_qp *cm_world_partner(const struct verve_net_qp *qp)
{
	struct verve_net_qp *partner = qp->connected ? qps[qp->remote.qp_num] : NULL;

	if (!partner || !partner->connected || qp->remote.psn != partner->self.psn ||
	    partner->remote.qp_num != qp->self.qp_num || partner->remote.psn != qp->self.psn)
		return NULL;
	return partner;
}
