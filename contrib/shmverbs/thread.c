/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"

enum { BATCH = 16 };

static const struct shmv_thread_calls *thread_calls;
static int epoll_fd = -1, kick_fd;
static char kick_mark; /* its address is the mark of kick_fd */

static void *run(void *arg)
{
	struct epoll_event events[BATCH];
	bool again = false;
	uint64_t kicks;

	pthread_setname_np(pthread_self(), "shmverbs");
	for (;;) {
		int n = epoll_wait(epoll_fd, events, BATCH, again ? 1 : -1);

		for (int i = 0; i < n; i++) {
			void *mark = events[i].data.ptr;

			if (mark == &kick_mark)
				(void)!read(kick_fd, &kicks, sizeof(kicks));
			else if (mark)
				thread_calls->ready(mark);
		}
		again = thread_calls->turn();
	}
	return arg;
}

void shmv_thread_start(const struct shmv_thread_calls *calls)
{
	sigset_t all, old;
	pthread_t thread;

	thread_calls = calls;
	kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	shmv_thread_watch(kick_fd, &kick_mark);
	/* Signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, run, NULL))
		shmv_log("no thread: neither events nor the end of peers will be noticed");
	else
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void shmv_thread_watch(int fd, void *mark)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};

	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

void shmv_thread_unwatch(int fd)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void shmv_thread_kick(void)
{
	uint64_t one = 1;

	(void)!write(kick_fd, &one, sizeof(one));
}

void shmv_thread_forked(void)
{
	epoll_fd = -1;
}
