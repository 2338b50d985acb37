/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several threads wait in every way there is, for one queue and one counter of two engines. No
 * wake-up is lost, and no completion is read twice. Threads and descriptors are real, and there are
 * no time-outs: if a wake-up is lost, the alarm ends the program. This is not a Criterion program,
 * because ThreadSanitizer cannot run those.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cntr.h"
#include "api/cq.h"
#include "fake_engine.h"
#include <rdma/fi_errno.h>

enum {
	ENGINES = 2,
	PIECES = 1000, /* pieces of work of each engine */
	TOTAL = ENGINES * PIECES,
	BATCH = 3,
	ROLES_MAX = 8,
	LIMIT = 300, /* seconds until the alarm */
};

/* The threads of one run. */
struct lineup {
	const char *name;
	void *(*roles[ROLES_MAX])(void *arg);
	bool strict; /* each piece of work waits until the one before it is taken */
};

static const struct lineup *lineup;

static struct fid_fabric *fabric;
static struct fid_cq *cq;
static struct fid_cntr *cntr;
static struct verve_engine *engines[ENGINES];
static volatile AO_t given, completed, taken; /* pieces of work */
static volatile AO_t seen[TOTAL];
static int stop; /* eventfd(2): all work is taken */

static void require(bool held, const char *what)
{
	if (held)
		return;
	fprintf(stderr, "wait_stress: %s\n", what);
	exit(1);
}

/*
 * Threads give the processor away where it matters: between clearing, arming, looking and sleeping.
 * The linker puts these functions in the place of the real ones.
 */
ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
int __real_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout);

static void stumble(void)
{
	static __thread unsigned seed;
	int r;

	if (!seed)
		seed = (unsigned)gettid();
	r = rand_r(&seed);
	if (r % 4 == 0)
		usleep((useconds_t)(r / 4 % 50));
}

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	ssize_t ret;

	stumble();
	ret = __real_read(fd, buf, len);
	stumble();
	return ret;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	stumble();
	return __real_epoll_wait(fd, events, max, timeout);
}

/* Called when a turn of an engine found a piece of work. */
static void put(void *arg, uintptr_t n)
{
	struct verve_comp comp = {.flags = FI_RECV, .len = (size_t)AO_fetch_and_add1(&completed)};

	(void)arg;
	(void)n;
	verve_comp_queue_write(&verve_cq_from_fid(&cq->fid)->queue, &comp);
	verve_comp_counter_add(&verve_cntr_from_fid(&cntr->fid)->counter, 1);
}

static bool is_done(void)
{
	return AO_load_acquire(&taken) == TOTAL;
}

/* Waits until no work is left to take: all other threads sleep then, or are about to. */
static void await_all_taken(void)
{
	while (AO_load_acquire(&taken) < AO_load_acquire(&given))
		sched_yield();
}

static void *device(void *arg)
{
	struct verve_engine *engine = arg;
	unsigned seed = (unsigned)(engine == engines[0]);

	for (int i = 0; i < PIECES; i++) {
		int r = rand_r(&seed);

		AO_fetch_and_add1_full(&given);
		fake_engine_complete(engine);
		if (lineup->strict)
			await_all_taken();
		if (r % 8 == 0)
			usleep((useconds_t)(r / 8 % 300));
	}
	return NULL;
}

/* Counts the entries as taken. Returns the number of all entries taken so far. */
static AO_t take(const struct fi_cq_msg_entry *entry, ssize_t count)
{
	uint64_t one = 1;
	AO_t now;

	for (ssize_t i = 0; i < count; i++)
		require(entry[i].len < TOTAL && !AO_fetch_and_add1(&seen[entry[i].len]),
			"a completion was read twice");
	now = AO_fetch_and_add_full(&taken, (AO_t)count) + (AO_t)count;
	if (now == TOTAL)
		require(write(stop, &one, sizeof(one)) == sizeof(one) && !fi_cq_signal(cq),
			"cannot say that all is taken");
	return now;
}

/* Reads the queue. 0: it was empty; else the number of all entries taken so far. */
static AO_t read_queue(bool sleep)
{
	struct fi_cq_msg_entry entry[BATCH];
	ssize_t count = sleep ? fi_cq_sread(cq, entry, BATCH, NULL, -1)
			      : fi_cq_read(cq, entry, BATCH);

	require(count > 0 || count == -FI_EAGAIN, "reading the queue failed");
	return count > 0 ? take(entry, count) : 0;
}

static void *caller(void *arg)
{
	(void)arg;
	while (!is_done())
		read_queue(true);
	/* Each thread that ends wakes the next one. */
	fi_cq_signal(cq);
	return NULL;
}

/* Takes entries, then reads no more until another thread has taken some. */
static void *absentee(void *arg)
{
	(void)arg;
	while (!is_done()) {
		AO_t now = read_queue(true);

		while (now && AO_load_acquire(&taken) == now && now < TOTAL)
			sched_yield();
	}
	fi_cq_signal(cq);
	return NULL;
}

static void nap(unsigned *seed)
{
	usleep((useconds_t)rand_r(seed) % 200);
}

/* Reads entries that other threads are woken for. */
static void *thief(void *arg)
{
	unsigned seed = 7;

	(void)arg;
	while (!is_done()) {
		read_queue(false);
		nap(&seed);
	}
	return NULL;
}

/* Makes turns, which bring work to the queue, and reads nothing. */
static void *turner(void *arg)
{
	unsigned seed = 8;

	(void)arg;
	while (!is_done()) {
		fi_cq_read(cq, NULL, 0);
		if (rand_r(&seed) % 4 == 0)
			nap(&seed);
	}
	return NULL;
}

/* Opens and closes engines of the queue, which find nothing. */
static void *landlord(void *arg)
{
	struct verve_cq *of = verve_cq_from_fid(&cq->fid);
	unsigned seed = 10;

	(void)arg;
	while (!is_done()) {
		struct verve_lock *lock = verve_cq_lend_lock(of);
		struct verve_engine *guest = fake_engine_open_with(lock, put, NULL);

		require(lock && !verve_cq_bind_engine(of, guest), "cannot bind a guest");
		nap(&seed);
		verve_cq_unbind_engine(of, guest);
		fake_engine_close(guest);
		verve_cq_take_back(of, lock);
	}
	return NULL;
}

/* Clears the descriptor, is told that there is an entry, and leaves the entry to other threads. */
static void *dodger(void *arg)
{
	struct fid *fid = &cq->fid;
	unsigned seed = 9;

	(void)arg;
	while (!is_done()) {
		if (fi_trywait(fabric, &fid, 1) == -FI_EAGAIN)
			await_all_taken();
		if (rand_r(&seed) % 4 == 0)
			nap(&seed);
	}
	return NULL;
}

static int open_epoll(struct fid *fid)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), fd = -1;

	require(!fi_control(fid, FI_GETWAIT, &fd), "there is no descriptor");
	require(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) &&
		!epoll_ctl(epoll, EPOLL_CTL_ADD, stop, &event), "cannot watch a descriptor");
	return epoll;
}

static void sleep_on(int epoll, struct fid *fid)
{
	struct epoll_event event;
	int ret = fi_trywait(fabric, &fid, 1);

	require(!ret || ret == -FI_EAGAIN, "fi_trywait failed");
	if (!ret)
		require(epoll_wait(epoll, &event, 1, -1) == 1, "sleeping failed");
}

static void *poller(void *arg)
{
	int epoll = open_epoll(&cq->fid);

	(void)arg;
	while (!is_done())
		if (!read_queue(false))
			sleep_on(epoll, &cq->fid);
	close(epoll);
	return NULL;
}

/* The only thread on the counter's descriptor. */
static void *counter_poller(void *arg)
{
	int epoll = open_epoll(&cntr->fid);

	(void)arg;
	while (fi_cntr_read(cntr) < TOTAL)
		sleep_on(epoll, &cntr->fid);
	close(epoll);
	return NULL;
}

static void *counter_caller(void *arg)
{
	(void)arg;
	for (uint64_t value = 0; value < TOTAL; value++)
		require(!fi_cntr_wait(cntr, value + 1, -1), "waiting for the counter failed");
	return NULL;
}

static void open_all(void)
{
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_FD};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	struct fid_domain *domain = fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);

	AO_store(&given, 0);
	AO_store(&completed, 0);
	AO_store(&taken, 0);
	for (int i = 0; i < TOTAL; i++)
		AO_store(&seen[i], 0);
	fabric = fake_fabric(FI_VERSION(1, 17));
	stop = eventfd(0, EFD_CLOEXEC);
	require(!fi_cq_open(domain, &cq_attr, &cq, NULL), "no queue");
	require(!fi_cntr_open(domain, &cntr_attr, &cntr, NULL), "no counter");
	for (int i = 0; i < ENGINES; i++) {
		struct verve_cq *of = verve_cq_from_fid(&cq->fid);

		engines[i] = fake_engine_open_with(i ? NULL : verve_cq_lend_lock(of), put, NULL);
		require(!verve_cq_bind_engine(of, engines[i]) &&
			!verve_cntr_bind_engine(verve_cntr_from_fid(&cntr->fid), engines[i]),
			"cannot bind an engine");
	}
}

static void close_all(void)
{
	for (int i = 0; i < ENGINES; i++) {
		verve_cq_unbind_engine(verve_cq_from_fid(&cq->fid), engines[i]);
		verve_cntr_unbind_engine(verve_cntr_from_fid(&cntr->fid), engines[i]);
		fake_engine_close(engines[i]);
	}
	require(!fi_close(&cq->fid) && !fi_close(&cntr->fid), "cannot close");
	close(stop);
}

static void run(void)
{
	pthread_t threads[ROLES_MAX + ENGINES];
	int count = 0;

	open_all();
	while (count < ROLES_MAX && lineup->roles[count]) {
		require(!pthread_create(&threads[count], NULL, lineup->roles[count], NULL),
			"no thread");
		count++;
	}
	for (int i = 0; i < ENGINES; i++)
		require(!pthread_create(&threads[count++], NULL, device, engines[i]), "no thread");
	while (count--)
		pthread_join(threads[count], NULL);
	for (int i = 0; i < TOTAL; i++)
		require(AO_load(&seen[i]) == 1, "a completion was lost");
	require(fi_cntr_read(cntr) == TOTAL, "the counter is wrong");
	close_all();
}

int main(void)
{
	static const struct lineup lineups[] = {
		{"one caller", {caller, turner}, true},
		{"callers", {absentee, absentee, turner}, true},
		{"one poller", {poller, turner}, true},
		{"pollers", {poller, poller, dodger, turner}, true},
		{"guests", {caller, poller, turner, landlord, landlord}, false},
		{"counter", {thief, counter_poller, counter_caller, counter_caller}, true},
		{"everybody", {caller, caller, poller, poller, thief, turner, counter_poller,
			       counter_caller}, false},
	};

	alarm(LIMIT);
	for (size_t i = 0; i < sizeof(lineups) / sizeof(lineups[0]); i++) {
		lineup = &lineups[i];
		printf("%s\n", lineup->name);
		fflush(stdout);
		run();
	}
	return 0;
}
