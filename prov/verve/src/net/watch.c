/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Watch: the userfaultfd, the thread that reads it, the ranges that are watched already, and the
 * canary that proves them.
 *
 * The thread allocates nothing and touches no mapping. While an event is unread, the kernel (from
 * 5.15 on) refuses to write-protect with EAGAIN, before it looks at the argument: asking for that with an
 * empty range, which is invalid, is how a thread learns, in one system call, that nothing is on
 * its way. (With no argument at all it would cost a page fault, and the lock of all mappings.)
 */
#include "net/watch.h"

#include <atomic_ops.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"

enum {
	CANARY_PAGES = 4,
	QUIET_TRIES = 4,
	KNOWN = 64,	/* ranges remembered */
	LOOKS = 4,	/* until all pieces of a mapping are watched */
	LINE_REST = 16, /* letters behind the addresses of a line, at least */
	EXACT_ADDRESS = 1 << 11, /* UFFD_FEATURE_EXACT_ADDRESS of Linux 5.18: headers may be older */
};

struct range {
	uintptr_t start, end; /* equal: empty */
};

struct verve_net_watch {
	void (*gone)(void *arg, uintptr_t start, uintptr_t end);
	void *arg;
	pthread_t thread;
	int fd, stop_fd;
	volatile AO_t busy;	/* from before an event is read until gone returned */
	volatile AO_t forked;	/* a child: events and thread are its parent's */
	volatile AO_t proving;	/* the canary's events, not the caller's */
	volatile AO_t proved;	/* bit i: page i of the canary was reported */
	volatile AO_t unseen;	/* an event was there, but asking did not tell */
	uintptr_t canary;
	size_t page;
	/* What is watched, so that nobody has to ask. Under the lock, which is held across nothing. */
	pthread_mutex_t lock;
	struct range known[KNOWN];
	unsigned victim;
	uint64_t losses; /* how often mappings went */
};

/* For the child after fork(2), which has one thread and may do almost nothing. */
static struct verve_net_watch *opened;

static void in_child(void)
{
	if (!opened)
		return;
	AO_store_release(&opened->forked, 1);
	close(opened->fd);
	close(opened->stop_fd);
	opened = NULL;
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static bool is_pending(const struct verve_net_watch *watch)
{
	struct uffdio_writeprotect nothing = {.range = {0, 0}};

	return ioctl(watch->fd, UFFDIO_WRITEPROTECT, &nothing) == 0 || errno != EINVAL;
}

bool verve_net_watch_quiet(struct verve_net_watch *watch)
{
	/* Whoever has just unmapped something comes here while gone still runs: not for long. */
	for (int i = 0; i < QUIET_TRIES && !AO_load(&watch->forked); i++) {
		/* In this order: what the kernel counts no more was read, and busy set before. (A
		 * barrier of its own is nothing that a thread sanitizer knows.) */
		if (!is_pending(watch) && !AO_fetch_and_add_full(&watch->busy, 0))
			return true;
		sched_yield();
	}
	return false;
}

static bool contains(const struct range *range, uintptr_t start, uintptr_t end)
{
	return range->start <= start && end <= range->end;
}

/* Watched already. If not, losses is what remember is to be told. */
static bool is_known(struct verve_net_watch *watch, uintptr_t start, uintptr_t end,
		     uint64_t *losses)
{
	bool found = false;

	pthread_mutex_lock(&watch->lock);
	for (int i = 0; i < KNOWN && !found; i++)
		found = contains(&watch->known[i], start, end);
	*losses = watch->losses;
	pthread_mutex_unlock(&watch->lock);
	return found;
}

/* All of it is watched, if there have been no losses since is_known. */
static void remember(struct verve_net_watch *watch, struct range range, uint64_t losses)
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

/* Of what is left of a range, one side will do. */
void verve_net_watch_forget(struct verve_net_watch *watch, uintptr_t start, uintptr_t end)
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

static void report(struct verve_net_watch *watch, uintptr_t start, uintptr_t end)
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
 * In this order, so that who was told that memory is watched, and had said before what it is to
 * keep of it, is told afterwards that it went.
 */
static void lose(struct verve_net_watch *watch, uintptr_t start, uintptr_t end)
{
	verve_net_watch_forget(watch, start, end);
	report(watch, start, end);
}

static void handle(struct verve_net_watch *watch)
{
	struct uffd_msg event;

	if (AO_load_acquire(&watch->proving) && !is_pending(watch))
		AO_store(&watch->unseen, 1);
	AO_fetch_and_add1_full(&watch->busy);
	while (read(watch->fd, &event, sizeof(event)) == sizeof(event)) {
		if (event.event == UFFD_EVENT_UNMAP)
			lose(watch, event.arg.remove.start, event.arg.remove.end);
		else if (event.event == UFFD_EVENT_REMAP)
			lose(watch, event.arg.remap.from,
			     event.arg.remap.from + event.arg.remap.len);
		else if (event.event == UFFD_EVENT_REMOVE)
			report(watch, event.arg.remove.start, event.arg.remove.end);
	}
	AO_fetch_and_sub1_full(&watch->busy);
}

static void *run(void *arg)
{
	struct verve_net_watch *watch = arg;
	struct pollfd fds[] = {
		{.fd = watch->fd, .events = POLLIN},
		{.fd = watch->stop_fd, .events = POLLIN},
	};

	while (!fds[1].revents) {
		if (poll(fds, 2, -1) > 0 && fds[0].revents)
			handle(watch);
	}
	/* A thread that ends gives its stack's pages back: it would wait for itself. */
	close(watch->fd);
	return NULL;
}

/* A line of /proc/self/maps. */
struct line {
	uintptr_t start, end;
	uint32_t kind; /* its four letters; 0: not private anonymous memory */
};

/* From text of length size; its length, 0: no whole line is there. proc(5). */
static size_t next_line(const char *text, size_t size, struct line *line)
{
	const char *newline = memchr(text, '\n', size);
	char *at;

	if (!newline)
		return 0;
	*line = (struct line){0};
	line->start = strtoul(text, &at, 16);
	line->end = strtoul(at + 1, &at, 16);
	if (newline - at > LINE_REST && at[4] == 'p') {
		const char *letters = at + 1;

		strtoul(at + 5, &at, 16);     /* offset */
		strtoul(at + 1, &at, 16);     /* device: major */
		strtoul(at + 1, &at, 16);     /* and minor */
		if (!strtoul(at, NULL, 10)) /* inode */
			memcpy(&line->kind, letters, sizeof(line->kind));
	}
	return newline + 1 - text;
}

/*
 * The mappings that start to end lies in (whole), and these with what adjoins them and looks the
 * same (run). They may be pieces of one mapping.
 */
struct place {
	uintptr_t start, end;
	struct range whole, run;
	uint32_t kind; /* of the last line of run */
};

/* The lines come in the order of their addresses. False: there is no more to learn. */
static bool learn(struct place *place, const struct line *line)
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

/* False: start to end is not private anonymous memory, all of it. */
static bool look(uintptr_t start, uintptr_t end, struct place *place)
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
		for (at = 0; more && (len = next_line(text + at, used - at, &line)); at += len)
			more = learn(place, &line);
		memmove(text, text + at, used - at);
		used -= at;
	}
	close(fd);
	return place->whole.end >= end;
}

static int watch_range(struct verve_net_watch *watch, const struct range *range)
{
	struct uffdio_register reg = {
		.range = {range->start, range->end - range->start},
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(watch->fd, UFFDIO_REGISTER, &reg);
}

int verve_net_watch_add(struct verve_net_watch *watch, uintptr_t start, uintptr_t end)
{
	struct range tried;
	struct place place;
	uint64_t losses;
	int looks = 0;

	if (start >= end)
		return -FI_EOPNOTSUPP;
	if (is_known(watch, start, end, &losses))
		return 0;
	if (!look(start, end, &place))
		return -FI_EOPNOTSUPP;
	/*
	 * Whole mappings: a mapping of which a part is watched becomes several, and mremap(2) of
	 * all of it, which has nothing to do with us, would fail. So it would if another thread
	 * mapped something between our looking and watching that is of one piece with what we
	 * saw: we look again until all pieces are watched. The last look also shows that what is
	 * watched is what we think; what is mapped there instead after that is an event.
	 */
	do {
		tried = place.run;
		/* What adjoins may be somebody else's to watch, or such that nobody can. */
		if ((watch_range(watch, &place.run) && watch_range(watch, &place.whole)) ||
		    !look(start, end, &place))
			return -FI_EOPNOTSUPP;
	} while (!contains(&tried, place.run.start, place.run.end) && ++looks < LOOKS);
	/* The kernel watches a mapping or does not: each line that has some of our memory, all of it. */
	remember(watch, place.whole, losses);
	return 0;
}

/* Changes a page in each of the ways that mappings change. Waits for no event but its own. */
static int change(struct verve_net_watch *watch, char *canary, char *elsewhere)
{
	const int over = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	const int move = MREMAP_MAYMOVE | MREMAP_FIXED;
	size_t page = watch->page;

	if (madvise(canary, page, MADV_DONTNEED) ||
	    mremap(canary + page, page, page, move, elsewhere) == MAP_FAILED ||
	    mmap(canary + 2 * page, page, PROT_READ, over, -1, 0) == MAP_FAILED ||
	    munmap(canary + 3 * page, page))
		return -errno;
	while (!verve_net_watch_quiet(watch))
		sched_yield();
	return 0;
}

static int prove(struct verve_net_watch *watch)
{
	size_t size = CANARY_PAGES * watch->page;
	char *memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	int ret;

	if (memory == MAP_FAILED)
		return -FI_ENOMEM;
	memset(memory, 1, size);
	watch->canary = (uintptr_t)memory;
	AO_store_release(&watch->proving, 1);
	/* Nothing is watched: of a kernel that says otherwise we do not know how to ask. */
	ret = is_pending(watch) ? -FI_ENOSYS :
				  verve_net_watch_add(watch, watch->canary, watch->canary + size);
	if (!ret)
		ret = change(watch, memory, memory + size);
	if (!ret && (AO_load(&watch->unseen) ||
		     AO_load(&watch->proved) != (1u << CANARY_PAGES) - 1))
		ret = -FI_ENOSYS;
	munmap(memory, 2 * size);
	while (!ret && !verve_net_watch_quiet(watch))
		sched_yield();
	AO_store_release(&watch->proving, 0);
	return ret;
}

/*
 * Until 5.15 the kernel remembered in one bit that events are under way (mmap_changing): the first that
 * was read cleared it, and asking did not tell of the others. No feature says that it counts them. A
 * kernel of that release does, and one with a feature of a later release, whatever number it bears.
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

static int open_fd(void)
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

/* No signal handler of the application runs in our thread. */
static int start(struct verve_net_watch *watch)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&watch->thread, NULL, run, watch);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		pthread_setname_np(watch->thread, "verve-watch");
	return -ret;
}

/* The descriptor is closed, too. */
static void stop(struct verve_net_watch *watch)
{
	uint64_t one = 1;

	(void)!write(watch->stop_fd, &one, sizeof(one));
	pthread_join(watch->thread, NULL);
}

int verve_net_watch_open(void (*gone)(void *arg, uintptr_t start, uintptr_t end), void *arg,
			 struct verve_net_watch **watchp)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct verve_net_watch *watch = calloc(1, sizeof(*watch));
	int ret;

	if (!watch)
		return -FI_ENOMEM;
	watch->gone = gone;
	watch->arg = arg;
	pthread_mutex_init(&watch->lock, NULL);
	watch->page = sysconf(_SC_PAGESIZE);
	ret = watch->fd = open_fd();
	if (ret < 0)
		goto err_watch;
	ret = watch->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (ret < 0) {
		ret = -errno;
		goto err_fd;
	}
	ret = start(watch);
	if (ret)
		goto err_stop_fd;
	ret = prove(watch);
	if (ret)
		goto err_thread;
	pthread_once(&once, register_fork);
	opened = watch;
	*watchp = watch;
	return 0;

err_thread:
	stop(watch);
	close(watch->stop_fd);
	goto err_watch;
err_stop_fd:
	close(watch->stop_fd);
err_fd:
	close(watch->fd);
err_watch:
	free(watch);
	VERVE_WARN(MR, "no registration is kept: the kernel does not tell when memory is unmapped "
		   "(userfaultfd(2) with write protection and unmap events: %s); a kernel from "
		   "5.15, and a container that allows userfaultfd, make large transfers faster\n",
		   strerror(-ret));
	return ret == -FI_ENOMEM ? ret : -FI_ENOSYS;
}

void verve_net_watch_close(struct verve_net_watch *watch)
{
	if (!AO_load(&watch->forked)) {
		opened = NULL;
		stop(watch);
		close(watch->stop_fd);
	}
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}
