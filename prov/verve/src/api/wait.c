/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait: progress, sleeping, and the wake-ups between them. */
#include "api/wait.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wakefd.h"
#include "engine/engine.h"
#include "net/sys.h"

enum {
	POLLS = 100, /* looks before a call sleeps */
	/*
	 * So many polls in a row that find nothing take some 30 us, longer than most answers do: a
	 * thread that yields to another program may lose a time slice of milliseconds. Two pollers
	 * that share a processor still give it to each other a hundred times in a slice.
	 */
	IDLE_POLLS = 1024,
};

static const uint64_t ns_per_ms = 1000000, ns_per_s = 1000000000;

/* Bytes. The locks of two entries in one cache line would make threads wait for each other. */
enum { CACHE_LINE = 64 };

/*
 * Whoever works on engine has lock. So the engine's own lock is needed, too, unless it is this one.
 * The entry stays until verve_wait_fini: a thread that walks through the entries may look at any of
 * them at any time.
 */
struct verve_wait_engine {
	_Alignas(CACHE_LINE) struct verve_lock lock;
	/*
	 * struct verve_engine *; 0: none. It changes under wait->lock and lock, and is used
	 * under one of them.
	 */
	volatile AO_t engine;
	bool is_lock_of_engine;
	bool lent; /* lock is an engine's, or is to be one's; guarded by wait->lock */
	volatile AO_t next; /* struct verve_wait_engine *; 0: this is the last one */
};

static int watch_fd(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void close_fd(struct verve_wait_fd *fd)
{
	if (fd->epoll >= 0)
		close(fd->epoll);
	if (fd->event >= 0)
		close(fd->event);
}

static int open_fd(struct verve_wait_fd *fd)
{
	int ret;

	fd->event = verve_wakefd_open();
	fd->epoll = epoll_create1(EPOLL_CLOEXEC);
	ret = fd->event < 0 ? fd->event : fd->epoll < 0 ? -errno : watch_fd(fd->epoll, fd->event);
	if (ret) {
		VERVE_WARN(CORE, "cannot open a wait descriptor: %s\n", fi_strerror(-ret));
		close_fd(fd);
	}
	return ret;
}

static int open_fds(struct verve_wait *wait, enum fi_wait_obj obj)
{
	int ret;

	wait->own = wait->given = (struct verve_wait_fd){-1, -1};
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_UNSPEC:
		return open_fd(&wait->own);
	case FI_WAIT_FD:
		ret = open_fd(&wait->own);
		if (ret)
			return ret;
		ret = open_fd(&wait->given);
		if (ret)
			close_fd(&wait->own);
		return ret;
	case FI_WAIT_SET:
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_POLLFD:
		VERVE_WARN(CORE,
			   "wait object %d is not supported: use FI_WAIT_FD or FI_WAIT_UNSPEC\n",
			   obj);
		return -FI_ENOSYS;
	default:
		VERVE_WARN(CORE, "%d is not a wait object\n", obj);
		return -FI_EINVAL;
	}
}

int verve_wait_init(struct verve_wait *wait, enum fi_wait_obj obj, bool elide)
{
	pthread_condattr_t attr;
	int ret;

	memset(wait, 0, sizeof(*wait));
	ret = open_fds(wait, obj);
	if (ret)
		return ret;
	wait->obj = obj;
	wait->elide = elide;
	verve_lock_init(&wait->lock, elide);
	pthread_mutex_init(&wait->sleep_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wait->woken, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

static struct verve_wait_engine *entry_at(const volatile AO_t *place)
{
	return (struct verve_wait_engine *)AO_load_acquire(place);
}

/* NULL: none. Without a lock the answer is good for nothing but not to look further. */
static struct verve_engine *engine_of(const struct verve_wait_engine *entry)
{
	return (struct verve_engine *)AO_load(&entry->engine);
}

/* wait->lock is held. */
static void set_engine(struct verve_wait_engine *entry, struct verve_engine *engine)
{
	verve_lock_acquire(&entry->lock);
	AO_store(&entry->engine, (AO_t)engine);
	verve_lock_release(&entry->lock);
}

void verve_wait_fini(struct verve_wait *wait)
{
	struct verve_wait_engine *entry, *next;

	for (entry = entry_at(&wait->entries); entry; entry = next) {
		next = entry_at(&entry->next);
		verve_lock_fini(&entry->lock);
		free(entry);
	}
	close_fd(&wait->own);
	close_fd(&wait->given);
	pthread_cond_destroy(&wait->woken);
	pthread_mutex_destroy(&wait->sleep_lock);
	verve_lock_fini(&wait->lock);
}

/*
 * The engine's entry; engine NULL: a free one, whose lock is not lent. NULL: there is none.
 * wait->lock is held.
 */
static struct verve_wait_engine *wait_find(const struct verve_wait *wait,
					   const struct verve_engine *engine)
{
	struct verve_wait_engine *entry = entry_at(&wait->entries);

	while (entry && (engine_of(entry) != engine || (!engine && entry->lent)))
		entry = entry_at(&entry->next);
	return entry;
}

/* An entry that is free; a new one if there is none. NULL: no memory. wait->lock is held. */
static struct verve_wait_engine *wait_find_free(struct verve_wait *wait)
{
	struct verve_wait_engine *entry = wait_find(wait, NULL);

	if (entry)
		return entry;
	entry = aligned_alloc(CACHE_LINE, sizeof(*entry));
	if (!entry)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	verve_lock_init(&entry->lock, wait->elide);
	entry->next = wait->entries;
	AO_store_release(&wait->entries, (AO_t)entry);
	return entry;
}

struct verve_lock *verve_wait_lend(struct verve_wait *wait)
{
	struct verve_wait_engine *entry;

	verve_lock_acquire(&wait->lock);
	entry = wait_find_free(wait);
	if (entry)
		entry->lent = true;
	verve_lock_release(&wait->lock);
	return entry ? &entry->lock : NULL;
}

/* The entry whose lock this is. NULL: there is none. wait->lock is held. */
static struct verve_wait_engine *wait_find_lock(const struct verve_wait *wait,
						const struct verve_lock *lock)
{
	struct verve_wait_engine *entry = entry_at(&wait->entries);

	while (entry && &entry->lock != lock)
		entry = entry_at(&entry->next);
	return entry;
}

void verve_wait_take_back(struct verve_wait *wait, struct verve_lock *lock)
{
	verve_lock_acquire(&wait->lock);
	wait_find_lock(wait, lock)->lent = false;
	verve_lock_release(&wait->lock);
}

static void unwatch_engine(struct verve_wait *wait, const struct verve_engine *engine)
{
	if (wait->own.epoll >= 0)
		epoll_ctl(wait->own.epoll, EPOLL_CTL_DEL, verve_engine_fd(engine), NULL);
	if (wait->given.epoll >= 0)
		epoll_ctl(wait->given.epoll, EPOLL_CTL_DEL, verve_engine_fd(engine), NULL);
}

static int watch_engine(struct verve_wait *wait, const struct verve_engine *engine)
{
	int ret = 0;

	if (wait->own.epoll >= 0)
		ret = watch_fd(wait->own.epoll, verve_engine_fd(engine));
	if (!ret && wait->given.epoll >= 0)
		ret = watch_fd(wait->given.epoll, verve_engine_fd(engine));
	if (ret) {
		unwatch_engine(wait, engine);
		VERVE_WARN(CORE, "cannot watch an endpoint's descriptor: %s\n", fi_strerror(-ret));
	}
	return ret;
}

/* wait->lock is held. */
static int bind_new(struct verve_wait *wait, struct verve_engine *engine)
{
	struct verve_wait_engine *entry = wait_find_lock(wait, verve_engine_lock_of(engine));
	bool is_lock = entry;
	int ret;

	if (!entry)
		entry = wait_find_free(wait);
	if (!entry)
		return -FI_ENOMEM;
	ret = watch_engine(wait, engine);
	if (ret)
		return ret;
	/* No thread reads this while the entry has no engine. */
	entry->is_lock_of_engine = is_lock;
	set_engine(entry, engine);
	return 0;
}

int verve_wait_bind(struct verve_wait *wait, struct verve_engine *engine)
{
	bool before;
	int ret = 0;

	verve_lock_acquire(&wait->lock);
	before = wait_find(wait, engine);
	if (!before)
		ret = bind_new(wait, engine);
	verve_lock_release(&wait->lock);
	/* Threads that sleep have not armed this engine. */
	if (!before && !ret)
		verve_wait_wake(wait);
	return ret;
}

void verve_wait_unbind(struct verve_wait *wait, struct verve_engine *engine)
{
	struct verve_wait_engine *entry;

	verve_lock_acquire(&wait->lock);
	entry = wait_find(wait, engine);
	if (entry) {
		unwatch_engine(wait, engine);
		set_engine(entry, NULL);
	}
	verve_lock_release(&wait->lock);
}

bool verve_wait_is_bound(struct verve_wait *wait)
{
	struct verve_wait_engine *entry;

	verve_lock_acquire(&wait->lock);
	entry = entry_at(&wait->entries);
	while (entry && !engine_of(entry))
		entry = entry_at(&entry->next);
	verve_lock_release(&wait->lock);
	return entry;
}

enum { FOUND = 1, BUSY = 2 };

/*
 * A turn of the entry's engine: FOUND something, or 0; BUSY: another thread has the lock. Without
 * an engine the lock is left alone: an endpoint that closes may have it for long.
 */
static inline unsigned poll_entry(struct verve_wait_engine *entry)
{
	struct verve_engine *engine = engine_of(entry);
	unsigned found = 0;

	if (!engine)
		return 0;
	if (!verve_lock_try(&entry->lock))
		return BUSY;
	engine = engine_of(entry);
	if (engine)
		found = entry->is_lock_of_engine ? verve_engine_turn(engine) :
						   verve_engine_progress(engine);
	verve_lock_release(&entry->lock);
	return found;
}

/*
 * True after IDLE_POLLS in a row that found nothing; then the count begins anew. Threads that poll
 * at the same time may miscount a little.
 */
static inline bool count_poll(struct verve_wait *wait, bool any)
{
	unsigned polls = any ? 0 : AO_int_load(&wait->idle_polls) + 1;
	bool enough = polls >= IDLE_POLLS;

	AO_int_store(&wait->idle_polls, enough ? 0 : polls);
	return enough;
}

void verve_wait_progress(struct verve_wait *wait)
{
	struct verve_wait_engine *entry;
	unsigned found = 0;

	for (entry = entry_at(&wait->entries); entry; entry = entry_at(&entry->next))
		found |= poll_entry(entry);
	/* Without a lock: a thread that yields may be away for milliseconds. */
	if (__builtin_expect(found & BUSY, 0))
		verve_net_back_off();
	else if (__builtin_expect(count_poll(wait, found), 0))
		verve_net_yield();
}

/* wait->lock is held. False: the entry's engine has something to do. */
static bool arm_engine(struct verve_wait_engine *entry)
{
	struct verve_engine *engine = engine_of(entry);
	int ret;

	if (!engine)
		return true;
	verve_lock_acquire(&entry->lock);
	ret = entry->is_lock_of_engine ? verve_engine_arm_locked(engine) : verve_engine_arm(engine);
	verve_lock_release(&entry->lock);
	return !ret;
}

/* Arms all engines. False: one has something to do. An engine that is bound later wakes. */
static bool arm_engines(struct verve_wait *wait)
{
	struct verve_wait_engine *entry;
	bool idle = true;

	verve_lock_acquire(&wait->lock);
	for (entry = entry_at(&wait->entries); entry; entry = entry_at(&entry->next))
		idle &= arm_engine(entry);
	verve_lock_release(&wait->lock);
	return idle;
}

/*
 * Why no wake-up is lost. A change is made first, and announced after that. A sleeper first clears
 * its descriptor, then arms, then looks, then sleeps. So either the sleeper sees the change when it
 * looks, or the change finds the sleeper armed, and writes the descriptor after the sleeper cleared
 * it. That is enough for one sleeper. For several sleepers:
 *
 * - Threads inside a call never share a descriptor. One of them, the leader, sleeps on own. When
 *   the leader wakes, for whatever reason, it begins a new turn: all other threads look again, and
 *   one of them becomes the leader. Each thread reads the number of the turn before it looks, and
 *   does not sleep if the number has changed by then.
 * - Threads of the application share given, so one thread may clear the descriptor that another
 *   thread is to be woken by. Then either nothing is left to read, which arm finds after the
 *   clearing, or something is left, and the descriptor is written again. For queues that is enough:
 *   they are readable as long as they have an entry. A signal that a thread has cleared keeps that
 *   thread from sleeping, once, and writes the descriptor again.
 * - Whoever arms an engine clears the engine's descriptor, under the engine's lock, and polls the
 *   engine after that. Work that arrived before is then in its queue or counter, which is armed. If
 *   the poll found work, the engine makes its descriptor readable again, because one turn may leave
 *   work behind.
 *
 * test/api/wait_model.c goes through all interleavings of these steps.
 */

void verve_wait_wake(void *arg)
{
	struct verve_wait *wait = arg;

	if (AO_load_acquire(&wait->asleep))
		verve_wakefd_signal(wait->own.event);
	if (wait->given.event >= 0)
		verve_wakefd_signal(wait->given.event);
}

/* Begins a new turn: all waiting threads look again. sleep_lock is held. */
static void next_turn(struct verve_wait *wait)
{
	AO_store_release(&wait->turn, wait->turn + 1);
	pthread_cond_broadcast(&wait->woken);
}

void verve_wait_signal(struct verve_wait *wait)
{
	AO_fetch_and_add1(&wait->signals);
	pthread_mutex_lock(&wait->sleep_lock);
	next_turn(wait);
	pthread_mutex_unlock(&wait->sleep_lock);
	/*
	 * Wake the leader after the new turn: a leader that clears this wake-up looks at the turn
	 * next.
	 */
	verve_wait_wake(wait);
}

/* Nanoseconds until end. UINT64_MAX: end is never. */
static uint64_t time_left(uint64_t end)
{
	uint64_t now;

	if (end == UINT64_MAX)
		return UINT64_MAX;
	now = verve_net_now();
	return end > now ? end - now : 0;
}

/* As the leader: sleeps on own until it is readable, or until end. False: the time is up. */
static bool sleep_as_leader(struct verve_wait *wait, AO_t turn, uint64_t end,
			    const struct verve_wait_ops *ops, void *arg)
{
	struct epoll_event event;
	uint64_t ns;

	verve_wakefd_drain(wait->own.event);
	if (AO_load_acquire(&wait->turn) != turn || !ops->arm(arg) || !arm_engines(wait))
		return true;
	ns = time_left(end);
	return epoll_wait(wait->own.epoll, &event, 1, ns == UINT64_MAX ? -1 :
			  (int)((ns + ns_per_ms - 1) / ns_per_ms)) != 0;
}

/*
 * While another thread leads: sleeps until the turn ends, or until end. False: the time is up.
 * sleep_lock is held.
 */
static bool sleep_as_follower(struct verve_wait *wait, AO_t turn, uint64_t end,
			      const struct verve_wait_ops *ops, void *arg)
{
	uint64_t ns = time_left(end);
	struct timespec until;
	int ret = 0;

	if (!ops->arm(arg))
		return true;
	clock_gettime(CLOCK_MONOTONIC, &until);
	if (ns != UINT64_MAX) {
		ns += (uint64_t)until.tv_nsec;
		until.tv_sec += (time_t)(ns / ns_per_s);
		until.tv_nsec = (long)(ns % ns_per_s);
	}
	while (!ret && wait->turn == turn)
		ret = ns == UINT64_MAX ? pthread_cond_wait(&wait->woken, &wait->sleep_lock) :
			pthread_cond_timedwait(&wait->woken, &wait->sleep_lock, &until);
	return !ret;
}

/* Sleeps until something has changed since the turn began, or until end. False: the time is up. */
static bool sleep_once(struct verve_wait *wait, AO_t turn, uint64_t end,
		       const struct verve_wait_ops *ops, void *arg)
{
	bool ret = true;

	pthread_mutex_lock(&wait->sleep_lock);
	if (wait->turn == turn && wait->asleep) {
		ret = sleep_as_follower(wait, turn, end, ops, arg);
	} else if (wait->turn == turn) {
		AO_store_release(&wait->asleep, 1);
		pthread_mutex_unlock(&wait->sleep_lock);
		ret = sleep_as_leader(wait, turn, end, ops, arg);
		pthread_mutex_lock(&wait->sleep_lock);
		AO_store_release(&wait->asleep, 0);
		next_turn(wait);
	}
	pthread_mutex_unlock(&wait->sleep_lock);
	return ret;
}

ssize_t verve_wait_for(struct verve_wait *wait, int timeout, const struct verve_wait_ops *ops,
		       void *arg)
{
	uint64_t end = UINT64_MAX;
	AO_t answered = AO_load(&wait->answered), signals;

	if (wait->obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	if (timeout >= 0)
		end = verve_net_now() + (uint64_t)timeout * ns_per_ms;
	for (int polls = 0;;) {
		AO_t turn = AO_load_acquire(&wait->turn);
		ssize_t ret = ops->look(arg);

		if (ret != -FI_EAGAIN)
			return ret;
		signals = AO_load_acquire(&wait->signals);
		if (signals != answered) {
			AO_store(&wait->answered, signals);
			return -FI_EAGAIN;
		}
		if (!time_left(end))
			return -FI_ETIMEDOUT;
		if (wait->obj == FI_WAIT_YIELD || polls < POLLS) {
			polls++;
			verve_net_pause();
		} else if (!sleep_once(wait, turn, end, ops, arg)) {
			end = 0; /* one last look */
		}
	}
}

/*
 * True at least once after verve_wait_signal, in whichever thread of the application comes first.
 * Two at the same moment may both see it, which costs each a look.
 */
static bool try_signals(struct verve_wait *wait)
{
	AO_t signals = AO_load_acquire(&wait->signals);
	bool any = signals != AO_load(&wait->tried);

	if (any)
		AO_store(&wait->tried, signals);
	return any;
}

int verve_wait_try(struct verve_wait *wait, const struct verve_wait_ops *ops, void *arg)
{
	if (wait->given.event < 0)
		return -FI_EINVAL;
	verve_wakefd_drain(wait->given.event);
	if (try_signals(wait) || !ops->arm(arg)) {
		verve_wakefd_signal(wait->given.event);
		return -FI_EAGAIN;
	}
	return arm_engines(wait) ? 0 : -FI_EAGAIN;
}

int verve_wait_control(const struct verve_wait *wait, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (wait->given.epoll < 0)
			return -FI_ENODATA;
		*(int *)arg = wait->given.epoll;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = wait->obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
