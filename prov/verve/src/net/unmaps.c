/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watch: the userfaultfd, the thread that reads it, the ranges that are watched already, and the
 * canary: pages of our own whose events prove that the kernel tells.
 *
 * The thread allocates nothing and changes no mapping. Any thread can ask with one system call
 * whether an event is unread: while it is, the kernel (from 5.15 on) answers UFFDIO_WRITEPROTECT
 * with EAGAIN, before it looks at the argument. Without an unread event, the empty range in the
 * argument gives EINVAL. (A NULL argument would cost a page fault, and the lock of all mappings.)
 */
#include "net/unmaps.h"

#include <atomic_ops.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wakefd.h"
#include "net/thread.h"

enum {
	CANARY_PAGES = 4,
	QUIET_TRIES = 4,
	KNOWN = 64,	/* ranges in the list of watched ones */
	LOOKS = 4,	/* readings of /proc/self/maps until all pieces of a mapping are watched */
	LOCK_WAIT = 50, /* microseconds */
	LINE_REST = 16, /* letters behind the addresses of a line, at least */
	EXACT_ADDRESS = 1 << 11, /* UFFD_FEATURE_EXACT_ADDRESS, Linux 5.18: headers may lack it */
};

struct range {
	uintptr_t start, end; /* equal: empty */
};

struct verve_net_unmaps {
	void (*gone)(void *arg, uintptr_t start, uintptr_t end);
	void *arg;
	pthread_t thread;
	int fd, stop_fd;
	volatile AO_t busy;    /* not 0: the thread reads an event, or gone is running */
	volatile AO_t forked;  /* this process is a child: the parent has events and thread */
	volatile AO_t proving; /* events are the canary's; gone is not called */
	volatile AO_t proved;  /* bit i: an event told of page i of the canary */
	volatile AO_t unseen;  /* an event was unread, but watch_has_event said no */
	uintptr_t canary;
	size_t page;
	/* Ranges watched already, to save system calls. Guarded by lock, held across no call. */
	pthread_mutex_t lock;
	struct range known[KNOWN];
	unsigned victim; /* the next range to overwrite */
	uint64_t losses; /* number of times that watched mappings went */
};

/* The open watch, for watch_in_child, which runs in the child after fork(2) without argument. */
static struct verve_net_unmaps *opened;
/*
 * Guards opened, together with its userfaultfd: a child that kept the descriptor would keep the
 * watch alive, and the parent's next munmap(2) would wait for a thread that has ended. fork(2)
 * takes the lock first, and then waits for malloc's: so no call that allocates or waits is made
 * under it, and the watch's thread never waits for it.
 */
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;

static void watch_before_fork(void)
{
	pthread_mutex_lock(&opened_lock);
}

static void watch_in_parent(void)
{
	pthread_mutex_unlock(&opened_lock);
}

static void watch_in_child(void)
{
	if (opened) {
		AO_store_release(&opened->forked, 1);
		close(opened->fd);
		close(opened->stop_fd);
		opened = NULL;
	}
	pthread_mutex_unlock(&opened_lock);
}

static void register_fork(void)
{
	pthread_atfork(watch_before_fork, watch_in_parent, watch_in_child);
}

static bool watch_has_event(const struct verve_net_unmaps *watch)
{
	struct uffdio_writeprotect nothing = {.range = {0, 0}};

	return ioctl(watch->fd, UFFDIO_WRITEPROTECT, &nothing) == 0 || errno != EINVAL;
}

bool verve_net_unmaps_quiet(struct verve_net_unmaps *watch)
{
	/* A thread that has just unmapped memory gets here while gone still runs: wait a little. */
	for (int i = 0; i < QUIET_TRIES && !AO_load(&watch->forked); i++) {
		/*
		 * Ask the kernel before busy: the thread sets busy before it reads an event, so an
		 * event that the kernel does not count any more shows in busy. (An atomic addition
		 * of 0, because ThreadSanitizer does not know barriers.)
		 */
		if (!watch_has_event(watch) && !AO_fetch_and_add_full(&watch->busy, 0))
			return true;
		sched_yield();
	}
	return false;
}

static bool range_contains(const struct range *range, uintptr_t start, uintptr_t end)
{
	return range->start <= start && end <= range->end;
}

/* True: the range is watched already. *losses: for a later call of known_add. */
static bool known_contains(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end,
			   uint64_t *losses)
{
	bool found = false;

	pthread_mutex_lock(&watch->lock);
	for (int i = 0; i < KNOWN && !found; i++)
		found = range_contains(&watch->known[i], start, end);
	*losses = watch->losses;
	pthread_mutex_unlock(&watch->lock);
	return found;
}

/* Notes that the whole range is watched, unless a mapping went since known_contains was called. */
static void known_add(struct verve_net_unmaps *watch, struct range range, uint64_t losses)
{
	struct range *place = NULL;

	pthread_mutex_lock(&watch->lock);
	if (watch->losses != losses)
		goto out;
	for (int i = 0; i < KNOWN; i++) {
		struct range *known = &watch->known[i];

		if (known->start < known->end && known->start <= range.end &&
		    known->end >= range.start) {
			range.start = known->start < range.start ? known->start : range.start;
			range.end = known->end > range.end ? known->end : range.end;
			known->end = known->start;
		}
		if (known->start >= known->end)
			place = known;
	}
	if (!place)
		place = &watch->known[watch->victim++ % KNOWN];
	*place = range;
out:
	pthread_mutex_unlock(&watch->lock);
}

/*
 * A hole in the middle of a known range leaves two pieces; only the lower one stays known. The
 * other costs one system call when it is needed again.
 */
void verve_net_unmaps_forget(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	pthread_mutex_lock(&watch->lock);
	watch->losses++;
	for (int i = 0; i < KNOWN; i++) {
		struct range *known = &watch->known[i];

		if (start >= known->end || end <= known->start)
			continue;
		if (start > known->start)
			known->end = start;
		else
			known->start = end < known->end ? end : known->end;
	}
	pthread_mutex_unlock(&watch->lock);
}

static void watch_report(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	if (!AO_load_acquire(&watch->proving)) {
		watch->gone(watch->arg, start, end);
		return;
	}
	for (int i = 0; i < CANARY_PAGES; i++) {
		uintptr_t page = watch->canary + i * watch->page;

		if (start <= page && page + watch->page <= end)
			AO_store(&watch->proved, AO_load(&watch->proved) | 1u << i);
	}
}

/*
 * Forget before report: a thread that still finds the range known has published its cache entry
 * before that, and so the report reaches the entry.
 */
static void watch_lose(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	verve_net_unmaps_forget(watch, start, end);
	watch_report(watch, start, end);
}

static void watch_handle_events(struct verve_net_unmaps *watch)
{
	struct uffd_msg event;

	if (AO_load_acquire(&watch->proving) && !watch_has_event(watch))
		AO_store(&watch->unseen, 1);
	AO_fetch_and_add1_full(&watch->busy);
	while (read(watch->fd, &event, sizeof(event)) == sizeof(event)) {
		if (event.event == UFFD_EVENT_UNMAP)
			watch_lose(watch, event.arg.remove.start, event.arg.remove.end);
		else if (event.event == UFFD_EVENT_REMAP)
			watch_lose(watch, event.arg.remap.from,
				   event.arg.remap.from + event.arg.remap.len);
		else if (event.event == UFFD_EVENT_REMOVE)
			watch_report(watch, event.arg.remove.start, event.arg.remove.end);
	}
	AO_fetch_and_sub1_full(&watch->busy);
}

static void *watch_run(void *arg)
{
	struct verve_net_unmaps *watch = arg;
	struct pollfd fds[] = {
		{.fd = watch->fd, .events = POLLIN},
		{.fd = watch->stop_fd, .events = POLLIN},
	};

	while (!fds[1].revents) {
		if (poll(fds, 2, -1) > 0 && fds[0].revents)
			watch_handle_events(watch);
	}
	/*
	 * Close before the thread ends: its stack's pages are discarded then, which would be an
	 * event that only this thread could read. A thread in fork(2) may hold the lock and wait
	 * for malloc's, whose holder may wait for an event to be read: read on until it is free.
	 * Sleep, as yielding lets in no thread of a lower priority.
	 */
	while (pthread_mutex_trylock(&opened_lock)) {
		watch_handle_events(watch);
		usleep(LOCK_WAIT);
	}
	close(watch->fd);
	opened = NULL;
	pthread_mutex_unlock(&opened_lock);
	return NULL;
}

/* A line of /proc/self/maps: proc(5). */
struct line {
	uintptr_t start, end;
	uint32_t kind; /* the four letters of the access; 0: no readable private anonymous memory */
};

/* Parses the first line of text; returns its length in bytes. 0: text has no whole line. */
static size_t line_parse(const char *text, size_t size, struct line *line)
{
	const char *newline = memchr(text, '\n', size);
	char *at;

	if (!newline)
		return 0;
	*line = (struct line){0};
	line->start = strtoul(text, &at, 16);
	line->end = strtoul(at + 1, &at, 16);
	/*
	 * Nobody may read what is only reserved. If it can be registered all the same, it is memory
	 * of a device (nvidia-peermem), which comes and goes without an event.
	 */
	if (newline - at > LINE_REST && at[1] == 'r' && at[4] == 'p') {
		const char *letters = at + 1;

		strtoul(at + 5, &at, 16);   /* offset */
		strtoul(at + 1, &at, 16);   /* device: major */
		strtoul(at + 1, &at, 16);   /* and minor */
		if (!strtoul(at, NULL, 10)) /* inode */
			memcpy(&line->kind, letters, sizeof(line->kind));
	}
	return newline + 1 - text;
}

/*
 * A range from start to end in /proc/self/maps. whole: the mappings that contain the range. run:
 * whole, and the mappings beside it with the same access, which may be pieces of one mapping.
 */
struct place {
	uintptr_t start, end;
	struct range whole, run;
	uint32_t kind; /* kind of the last line of run */
};

/* Extends whole and run by the next line, in order of addresses. False: no further line counts. */
static bool place_extend(struct place *place, const struct line *line)
{
	bool joins = line->kind && line->kind == place->kind && line->start == place->run.end;

	if (line->start >= place->end && !joins)
		return false;
	if (line->start < place->end && line->end > place->start) {
		struct range *whole = &place->whole;

		if (!line->kind || line->start > (whole->end ? whole->end : place->start))
			return false;
		joins |= whole->end != 0;
		if (!whole->end)
			whole->start = line->start;
		whole->end = line->end;
	}
	if (!joins)
		place->run.start = line->start;
	place->run.end = line->end;
	place->kind = line->kind;
	return true;
}

/* Fills in *place. False: a part of start to end is no readable private anonymous memory. */
static bool place_look_up(uintptr_t start, uintptr_t end, struct place *place)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char text[8192];
	size_t used = 0, at, len;
	struct line line;
	bool more = true;
	ssize_t n;

	*place = (struct place){.start = start, .end = end};
	if (fd < 0)
		return false;
	while (more && (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0) {
		used += n;
		text[used] = '\0';
		for (at = 0; more && (len = line_parse(text + at, used - at, &line)); at += len)
			more = place_extend(place, &line);
		memmove(text, text + at, used - at);
		used -= at;
	}
	close(fd);
	return place->whole.end >= end;
}

static int watch_range(struct verve_net_unmaps *watch, const struct range *range)
{
	struct uffdio_register reg = {
		.range = {range->start, range->end - range->start},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(watch->fd, UFFDIO_REGISTER, &reg);
}

int verve_net_unmaps_add(struct verve_net_unmaps *watch, uintptr_t start, uintptr_t end)
{
	struct range tried;
	struct place place;
	uint64_t losses;
	int looks = 0;

	if (start >= end)
		return -FI_EOPNOTSUPP;
	if (known_contains(watch, start, end, &losses))
		return 0;
	if (!place_look_up(start, end, &place))
		return -FI_EOPNOTSUPP;
	/*
	 * Watch whole mappings: watching a part splits a mapping, and then the application's
	 * mremap(2) of the whole would fail. Another thread may map memory beside the run, which
	 * joins it, between the reading of maps and the ioctl: read again until all pieces are
	 * watched. The last reading also shows that the watched memory is still the expected one;
	 * a change after that makes an event.
	 */
	do {
		tried = place.run;
		/* Memory beside whole may belong to another userfaultfd, or be unwatchable. */
		if ((watch_range(watch, &place.run) && watch_range(watch, &place.whole)) ||
		    !place_look_up(start, end, &place))
			return -FI_EOPNOTSUPP;
	} while (!range_contains(&tried, place.run.start, place.run.end) && ++looks < LOOKS);
	/* The kernel watches a mapping wholly or not at all, so all of place.whole is watched. */
	known_add(watch, place.whole, losses);
	return 0;
}

/* Discards, moves, replaces and unmaps one page of the canary each; waits for the events. */
static int canary_change(struct verve_net_unmaps *watch, char *canary, char *elsewhere)
{
	const int over = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	const int move = MREMAP_MAYMOVE | MREMAP_FIXED;
	size_t page = watch->page;

	if (madvise(canary, page, MADV_DONTNEED) ||
	    mremap(canary + page, page, page, move, elsewhere) == MAP_FAILED ||
	    mmap(canary + 2 * page, page, PROT_READ, over, -1, 0) == MAP_FAILED ||
	    munmap(canary + 3 * page, page))
		return -errno;
	while (!verve_net_unmaps_quiet(watch))
		sched_yield();
	return 0;
}

static int watch_prove(struct verve_net_unmaps *watch)
{
	size_t size = CANARY_PAGES * watch->page;
	char *memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	int ret;

	if (memory == MAP_FAILED)
		return -FI_ENOMEM;
	memset(memory, 1, size);
	watch->canary = (uintptr_t)memory;
	AO_store_release(&watch->proving, 1);
	/*
	 * Nothing is watched yet: a kernel that reports an unread event cannot be asked this way.
	 */
	ret = watch_has_event(watch) ?
		      -FI_ENOSYS :
		      verve_net_unmaps_add(watch, watch->canary, watch->canary + size);
	if (!ret)
		ret = canary_change(watch, memory, memory + size);
	if (!ret &&
	    (AO_load(&watch->unseen) || AO_load(&watch->proved) != (1u << CANARY_PAGES) - 1))
		ret = -FI_ENOSYS;
	munmap(memory, 2 * size);
	while (!ret && !verve_net_unmaps_quiet(watch))
		sched_yield();
	AO_store_release(&watch->proving, 0);
	return ret;
}

/*
 * Before Linux 5.15 the kernel had one bit for unread events (mmap_changing): reading one event
 * cleared it, and UFFDIO_WRITEPROTECT did not tell of the others. No feature flag tells that a
 * kernel counts events. So accept a release number from 5.15 on, or a feature of a later release
 * (a distribution's kernel with an old number).
 */
static bool counts_events(uint64_t features)
{
	unsigned major, minor;
	struct utsname name;

	if (features & EXACT_ADDRESS)
		return true;
	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 5 || (major == 5 && minor >= 15);
}

static int userfaultfd_open(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
			    UFFD_FEATURE_EVENT_REMOVE,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY), error;

	if (fd < 0)
		return -errno;
	error = ioctl(fd, UFFDIO_API, &api) ? errno : 0;
	if (!error && counts_events(api.features))
		return fd;
	if (!error)
		error = ENOSYS;
	close(fd);
	return -error;
}

/* The error of userfaultfd_open. */
static int watch_open_fd(struct verve_net_unmaps *watch)
{
	pthread_mutex_lock(&opened_lock);
	watch->fd = userfaultfd_open();
	if (watch->fd >= 0)
		opened = watch;
	pthread_mutex_unlock(&opened_lock);
	return watch->fd < 0 ? watch->fd : 0;
}

/* Nothing is watched yet: there is no event to read. */
static void watch_close_fd(struct verve_net_unmaps *watch)
{
	pthread_mutex_lock(&opened_lock);
	close(watch->fd);
	opened = NULL;
	pthread_mutex_unlock(&opened_lock);
}

/* Any thread that unmaps waits for this one, so that it must not wait for one that only polls. */
static int thread_start(struct verve_net_unmaps *watch)
{
	int ret = verve_thread_create(&watch->thread, "verve-watch", watch_run, watch);

	if (!ret)
		verve_thread_raise(watch->thread);
	return ret;
}

/* The thread closes the userfaultfd when it ends. */
static void thread_stop(struct verve_net_unmaps *watch)
{
	verve_wakefd_signal(watch->stop_fd);
	pthread_join(watch->thread, NULL);
}

/* Each domain of the process asks again, and the answer stays the same: it is logged once. */
static void log_missing(int error)
{
	static volatile AO_t is_logged;

	if (AO_fetch_and_add1(&is_logged))
		return;
	VERVE_WARN(MR,
		   "no registration is kept, because the kernel does not tell when memory is "
		   "unmapped (userfaultfd(2) with write protection and unmap events: %s); messages "
		   "and RMA of more than some 64 KiB register their memory each time, and take two "
		   "or three times as long: use a kernel from 5.15 (arm64: 6.10), a container that "
		   "allows userfaultfd, or FI_VERVE_MR_CACHE_MONITOR=notify (see MEMORY in "
		   "fi_verve(7)); FI_VERVE_MR_CACHE=off is the same without this line\n",
		   strerror(error));
}

int verve_net_unmaps_open(void (*gone)(void *arg, uintptr_t start, uintptr_t end), void *arg,
			  struct verve_net_unmaps **watchp)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct verve_net_unmaps *watch = calloc(1, sizeof(*watch));
	int ret;

	if (!watch)
		return -FI_ENOMEM;
	watch->gone = gone;
	watch->arg = arg;
	pthread_mutex_init(&watch->lock, NULL);
	watch->page = sysconf(_SC_PAGESIZE);
	pthread_once(&once, register_fork);
	ret = watch->stop_fd = verve_wakefd_open();
	if (ret < 0)
		goto err_watch;
	ret = watch_open_fd(watch);
	if (ret)
		goto err_stop_fd;
	ret = thread_start(watch);
	if (ret)
		goto err_fd;
	ret = watch_prove(watch);
	if (ret)
		goto err_thread;
	*watchp = watch;
	return 0;

err_thread:
	thread_stop(watch);
	goto err_stop_fd;
err_fd:
	watch_close_fd(watch);
err_stop_fd:
	close(watch->stop_fd);
err_watch:
	free(watch);
	log_missing(-ret);
	return ret == -FI_ENOMEM ? ret : -FI_ENOSYS;
}

void verve_net_unmaps_close(struct verve_net_unmaps *watch)
{
	if (!AO_load(&watch->forked)) {
		thread_stop(watch);
		close(watch->stop_fd);
	}
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}
