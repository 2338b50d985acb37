/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "note.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "atomic.h"
#include "event.h"
#include "log.h"
#include "retry.h"
#include "segment.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* starting the thread */
static int epoll_fd = -1, kick_fd, timer_fd, note_fds[2];
static uint64_t note_id;

/* Marks in epoll_event.data.ptr; all other pointers are segments. */
static char kick_mark, timer_mark, note_mark;

/* Notes that are not due yet; the thread's own. */
static struct shmv_note *late;
static size_t late_count, late_room;

static void keep(const struct shmv_note *note)
{
	if (late_count == late_room) {
		size_t room = 2 * late_room + 16;
		struct shmv_note *more = realloc(late, room * sizeof(*more));

		if (!more) {
			shmv_event_take(note); /* early, not never */
			return;
		}
		late = more;
		late_room = room;
	}
	late[late_count++] = *note;
}

static void take_notes(void)
{
	struct shmv_note note;

	while (read(note_fds[0], &note, sizeof(note)) == sizeof(note)) {
		if (note.due > shmv_now())
			keep(&note);
		else
			shmv_event_take(&note);
	}
}

/* What is due, in the order in which it was to be; then sets the timer for the next. */
static void take_late(void)
{
	uint64_t ticks, now = shmv_now(), next;
	struct itimerspec timer = {0};

	(void)!read(timer_fd, &ticks, sizeof(ticks));
	for (;;) {
		size_t first = 0;

		for (size_t i = 1; i < late_count; i++)
			if (late[i].due < late[first].due)
				first = i;
		if (!late_count || late[first].due > now) {
			next = late_count ? late[first].due : 0;
			break;
		}
		shmv_event_take(&late[first]);
		memmove(&late[first], &late[first + 1], (--late_count - first) * sizeof(*late));
	}
	timer.it_value.tv_sec = next / 1000000000;
	timer.it_value.tv_nsec = next % 1000000000;
	timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

static void *run(void *arg)
{
	struct epoll_event events[16];
	bool waits = false;
	uint64_t kicks;

	pthread_setname_np(pthread_self(), "shmverbs");
	for (;;) {
		int n = epoll_wait(epoll_fd, events, 16, waits ? 1 : -1);

		for (int i = 0; i < n; i++) {
			void *mark = events[i].data.ptr;

			if (mark == &kick_mark)
				(void)!read(kick_fd, &kicks, sizeof(kicks));
			else if (mark == &note_mark)
				take_notes();
			else if (mark != &timer_mark)
				shmv_seg_bury(mark);
		}
		if (late_count)
			take_late();
		waits = shmv_retry_all();
	}
	return arg;
}

static void watch(int fd, void *mark)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};

	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Under the mutex. Signals are the application's threads' business. */
static void start(void)
{
	sigset_t all, old;
	pthread_t thread;

	kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pipe2(note_fds, O_CLOEXEC | O_NONBLOCK))
		shmv_log("no pipe: no event will come");
	note_id = shmv_seg_pipe_id();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	watch(kick_fd, &kick_mark);
	watch(timer_fd, &timer_mark);
	watch(note_fds[0], &note_mark);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, run, NULL))
		shmv_log("no thread: neither events nor the end of peers will be noticed");
	else
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void shmv_note_address(int *fd, uint64_t *id)
{
	pthread_mutex_lock(&mutex);
	if (epoll_fd < 0)
		start();
	*fd = note_fds[1];
	*id = note_id;
	pthread_mutex_unlock(&mutex);
}

void shmv_note_send(struct shmv_seg *to, const struct shmv_note *note)
{
	const struct shm_head *head = &to->shm->head;

	if (!shmv_seg_write(to, head->note_id, head->note_fd, note, sizeof(*note)) && errno == EAGAIN)
		shmv_log("process %u takes no more notes: an event is lost", head->pid);
}

void shmv_note_watch(int pidfd, struct shmv_seg *seg)
{
	watch(pidfd, seg);
}

void shmv_note_unwatch(int pidfd)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, pidfd, NULL);
}

void shmv_note_kick(void)
{
	uint64_t one = 1;

	(void)!write(kick_fd, &one, sizeof(one));
}

void shmv_note_forked(void)
{
	epoll_fd = -1;
	late = NULL;
	late_count = late_room = 0;
	pthread_mutex_init(&mutex, NULL);
}
