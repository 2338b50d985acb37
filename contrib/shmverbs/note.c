/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "note.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "atomic.h"
#include "conf.h"
#include "log.h"
#include "segment.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held to start the thread */
static int timer_fd, note_fds[2];
static uint64_t note_id; /* 0: not started */

/* Notes that are not due yet. Only the device's thread uses them. */
static struct shmv_note *late;
static size_t late_count, late_room;

/* False: there is no memory. */
static bool keep(const struct shmv_note *note)
{
	if (late_count == late_room) {
		size_t room = 2 * late_room + 16;
		struct shmv_note *more = realloc(late, room * sizeof(*more));

		if (!more)
			return false;
		late = more;
		late_room = room;
	}
	late[late_count++] = *note;
	return true;
}

/* Takes the kept notes that are due, and sets the timer for the next one. */
static void take_late(void (*take)(const struct shmv_note *note))
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
		take(&late[first]);
		memmove(&late[first], &late[first + 1], (--late_count - first) * sizeof(*late));
	}
	timer.it_value.tv_sec = next / 1000000000;
	timer.it_value.tv_nsec = next % 1000000000;
	timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

void shmv_note_read(void (*take)(const struct shmv_note *note))
{
	struct shmv_note note;

	while (read(note_fds[0], &note, sizeof(note)) == sizeof(note))
		if (note.due <= shmv_now() || !keep(&note))
			take(&note); /* without memory the note is early, but not lost */
	if (late_count)
		take_late(take);
}

/* Under the mutex. */
static void start(const struct shmv_thread_calls *calls)
{
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (pipe2(note_fds, O_CLOEXEC | O_NONBLOCK))
		shmv_log("no pipe: no event will come");
	note_id = shmv_seg_pipe_id();
	shmv_thread_start(calls);
	shmv_thread_watch(timer_fd, NULL);
	shmv_thread_watch(note_fds[0], NULL);
}

void shmv_note_address(const struct shmv_thread_calls *calls, int *fd, uint64_t *id)
{
	pthread_mutex_lock(&mutex);
	if (!note_id)
		start(calls);
	*fd = note_fds[1];
	*id = note_id;
	pthread_mutex_unlock(&mutex);
}

void shmv_note_send(struct shmv_seg *to, const struct shmv_note *note)
{
	const struct shm_head *head = &to->shm->head;

	if (!shmv_seg_write(to, head->note_id, head->note_fd, note, sizeof(*note)) &&
	    errno == EAGAIN)
		shmv_log("process %u takes no more notes: an event is lost", head->pid);
}

void shmv_note_event(struct shmv_seg *to, enum ibv_event_type type, uint32_t index, uint32_t serial)
{
	struct shmv_note note = {
		.kind = SHMV_NOTE_EVENT,
		.type = type,
		.slot = to->slot,
		.index = index,
		.serial = serial,
	};

	if (shmv_conf.event_us)
		note.due = shmv_now() + shmv_conf.event_us * UINT64_C(1000);
	shmv_note_send(to, &note);
}

void shmv_note_forked(void)
{
	note_id = 0;
	late = NULL;
	late_count = late_room = 0;
	pthread_mutex_init(&mutex, NULL);
}
