/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The world: clock, event queue, randomness, failures, the count of open objects. */
#include "fake_world.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"

struct fake_world fake_world;

static const char *const object_names[FAKE_OBJECTS] = {
	"device", "mr",	"channel",   "cq",     "srq", "qp",
	"dgram",  "thread", "port list", "binder", "mw",
};

_Noreturn void fake_fatal(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fprintf(stderr, "fake net, %.3f us: ", fake_world.now / 1e3);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	abort();
}

void fake_trace(const char *fmt, ...)
{
	va_list args;

	if (!fake_world.trace)
		return;
	va_start(args, fmt);
	fprintf(stderr, "[%12.3f] ", fake_world.now / 1e3);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

void fake_net_trace(bool on)
{
	fake_world.trace = on;
}

/* Event queue: a binary heap ordered by time, then by the order of scheduling. */

static bool is_before(const struct fake_event *a, const struct fake_event *b)
{
	return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

static void place(struct fake_event *event, size_t pos)
{
	fake_world.heap[pos] = event;
	event->pos = pos;
}

static void sift(struct fake_event *event)
{
	struct fake_event **heap = fake_world.heap;
	size_t pos = event->pos, child;

	for (; pos > 1 && is_before(event, heap[pos / 2]); pos /= 2)
		place(heap[pos / 2], pos);
	for (; (child = 2 * pos) <= fake_world.heap_count; pos = child) {
		if (child < fake_world.heap_count && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], event))
			break;
		place(heap[child], pos);
	}
	place(event, pos);
}

void fake_event_at(struct fake_event *event, uint64_t time, void (*run)(struct fake_event *))
{
	struct fake_world *world = &fake_world;

	event->time = time > world->now ? time : world->now;
	event->seq = world->next_seq++;
	event->run = run;
	if (!event->pos) {
		if (world->heap_count + 2 > world->heap_size) {
			world->heap_size = world->heap_size ? 2 * world->heap_size : 1024;
			world->heap = realloc(world->heap,
					      world->heap_size * sizeof(world->heap[0]));
			if (!world->heap)
				fake_fatal("no memory");
		}
		place(event, ++world->heap_count);
	}
	sift(event);
}

void fake_event_cancel(struct fake_event *event)
{
	struct fake_event *last;
	size_t pos = event->pos;

	if (!pos)
		return;
	event->pos = 0;
	last = fake_world.heap[fake_world.heap_count--];
	if (last == event)
		return;
	place(last, pos);
	sift(last);
}

uint64_t fake_net_time(void)
{
	return fake_world.now;
}

uint64_t fake_net_next(void)
{
	return fake_world.heap_count ? fake_world.heap[1]->time : UINT64_MAX;
}

void fake_event_run(struct fake_event *event)
{
	fake_event_cancel(event);
	if (fake_world.now < event->time)
		fake_world.now = event->time;
	event->run(event);
	fake_threads_look();
}

bool fake_net_run_next(void)
{
	if (!fake_world.heap_count)
		return false;
	fake_event_run(fake_world.heap[1]);
	return true;
}

void fake_net_run_until(uint64_t time)
{
	/* The test's own calls may have woken a thread. */
	fake_threads_look();
	while (fake_net_next() <= time)
		fake_net_run_next();
	if (time > fake_world.now)
		fake_world.now = time;
}

void fake_net_advance(uint64_t ns)
{
	fake_net_run_until(fake_world.now + ns);
}

/* Randomness: xoshiro256**, seeded by splitmix64 (Blackman and Vigna). */

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

uint64_t fake_net_random(void)
{
	uint64_t *s = fake_world.random;
	uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

uint64_t fake_between(uint64_t min, uint64_t max)
{
	return min + fake_net_random() % (max - min + 1);
}

bool fake_chance(uint32_t chance)
{
	return chance && fake_net_random() % 1000 < chance;
}

uint64_t fake_rc_delay(void)
{
	const struct fake_net_config *config = &fake_world.config;
	uint64_t delay = fake_between(config->rc_delay_min, config->rc_delay_max);

	return fake_chance(config->rc_slow) ? 50 * delay : delay;
}

/* Failures and leaks. */

void fake_net_fail(uint32_t kinds, uint64_t nth, int error)
{
	fake_world.fail_kinds = kinds;
	fake_world.fail_in = nth;
	fake_world.fail_error = error;
	fake_world.failed = false;
}

void fake_net_fail_nth(uint64_t nth, int error)
{
	fake_net_fail(FAKE_NET_CALL_ALL, nth, error);
}

bool fake_net_has_failed(void)
{
	return fake_world.failed;
}

int fake_gate(uint32_t kind)
{
	fake_world.stats.calls++;
	if (!(fake_world.fail_kinds & kind) || !fake_world.fail_in || --fake_world.fail_in)
		return 0;
	fake_trace("call of kind %#x fails: %s", kind, fi_strerror(-fake_world.fail_error));
	fake_world.failed = true;
	return fake_world.fail_error;
}

void fake_slow(void)
{
	fake_world.stats.slow += !fake_world.thread || strcmp(fake_world.thread, "verve-worker");
}

void fake_opened(enum fake_object object)
{
	fake_world.open[object]++;
}

void fake_closed(enum fake_object object)
{
	struct fake_world *world = &fake_world;

	if (!world->open[object]--)
		fake_fatal("a %s is closed that is not open", object_names[object]);
	if (!world->on_close || world->in_close)
		return;
	world->in_close = true;
	world->on_close(world->on_close_arg);
	world->in_close = false;
}

void fake_net_on_close(void (*fn)(void *arg), void *arg)
{
	fake_world.on_close = fn;
	fake_world.on_close_arg = arg;
}

size_t fake_net_leaks(char *text, size_t size)
{
	size_t count = 0, used = 0;

	if (text && size)
		text[0] = '\0';
	for (int i = 0; i < FAKE_OBJECTS; i++) {
		if (!fake_world.open[i])
			continue;
		if (text && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%zu %s",
						 count ? ", " : "", fake_world.open[i],
						 object_names[i]);
		count += fake_world.open[i];
	}
	return count;
}

void fake_net_stats(struct fake_net_stats *stats)
{
	*stats = fake_world.stats;
}

/* The world itself. */

void fake_net_config_default(struct fake_net_config *config)
{
	*config = (struct fake_net_config){
		.seed = 1,
		.hosts = 2,
		.limits =
			{
				.cqe = 32767,
				.srq_wr = 32767,
				.qp_wr = 16384,
				.sge = FAKE_MAX_SGE,
				.read_sge = FAKE_MAX_SGE,
				.qp = 65536,
				.rd_atomic = 16,
				.rd_atomic_target = 16,
				.msg_size = 8u << 20,
				.read_size = 128 << 10,
				.mr_size = 1ull << 40,
				.mr = 65536,
				.mw_bounds = true,
				.atomics = true,
			},
		.inline_size = 256,
		.mtu = 4096,
		.dgram_delay_min = 5000,
		.dgram_delay_max = 100000,
		.rc_delay_min = 300,
		.rc_delay_max = 5000,
		.rc_slow = 5,
		.thread_delay = 5000,
	};
}

static void add_addr(struct fake_host *host, const void *sockaddr, size_t len, uint8_t gid_index)
{
	struct verve_net_portaddr *addr = &host->addrs[host->addr_count++];

	if (verve_addr_set(&addr->addr, sockaddr, len))
		fake_fatal("verve_addr_set refuses an address");
	addr->gid_index = gid_index;
	if (addr->addr.sa.sa_family == AF_INET6) {
		memcpy(addr->gid.raw, &addr->addr.in6.sin6_addr, 16);
		return;
	}
	memset(addr->gid.raw + 10, 0xff, 2);
	memcpy(addr->gid.raw + 12, &addr->addr.in.sin_addr, 4);
}

static void host_init(struct fake_host *host, uint32_t index)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x0a010000 + index + 1),
	};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	uint32_t last = htonl(index + 1);

	host->index = index;
	in6.sin6_addr.s6_addr[0] = 0xfd;
	in6.sin6_addr.s6_addr[3] = 1;
	memcpy(&in6.sin6_addr.s6_addr[12], &last, sizeof(last));
	add_addr(host, &in, sizeof(in), 1);
	add_addr(host, &in6, sizeof(in6), 2);
	host->next_qp_num = (uint32_t)fake_between(17, 4000);
	host->next_port = (uint16_t)fake_between(32768, 60000);
}

void fake_net_start(const struct fake_net_config *config)
{
	struct fake_world *world = &fake_world;
	struct fake_net_config copy = *config; /* may be the world's own */
	uint64_t state = config->seed;
	char open[256];

	if (fake_net_leaks(open, sizeof(open)))
		fake_fatal("a new world while these are open: %s", open);
	/* Datagrams under way are the only events that nobody else owns. */
	world->stopping = true;
	while (fake_net_run_next())
		;
	free(world->hosts);
	free(world->heap);
	memset(world, 0, sizeof(*world));
	world->config = copy;
	for (int i = 0; i < 4; i++)
		world->random[i] = splitmix(&state);
	world->next_key = (uint32_t)fake_net_random();
	world->memlock = UINT64_MAX;
	world->trace = getenv("VERVE_TRACE") != NULL;
	LIST_INIT(&world->devices);
	world->hosts = calloc(config->hosts, sizeof(world->hosts[0]));
	if (!world->hosts)
		fake_fatal("no memory");
	for (uint32_t i = 0; i < config->hosts; i++)
		host_init(&world->hosts[i], i);
}

__attribute__((constructor)) static void begin(void)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	fake_net_start(&config);
}

__attribute__((destructor)) static void end(void)
{
	fake_world.stopping = true;
	while (!fake_net_leaks(NULL, 0) && fake_net_run_next())
		;
	free(fake_world.heap);
	free(fake_world.hosts);
}
