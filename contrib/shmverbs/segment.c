/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "atomic.h"
#include "conf.h"
#include "lock.h"
#include "thread.h"

enum { LOOK_EVERY = 16 }; /* new files between two searches for files of dead processes */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held to use the list */
static struct shmv_seg *segs;				  /* all segments of peers */
static uint64_t pipe_ids;

static void seg_path(char *path, size_t size, uint32_t slot)
{
	snprintf(path, size, "%s/%u", shmv_conf.dir, slot);
}

static struct shmv_seg *seg_map(int fd, uint32_t slot)
{
	struct shmv_seg *seg = calloc(1, sizeof(*seg));
	struct stat st;

	if (!seg)
		return NULL;
	if (!fstat(fd, &st) && (size_t)st.st_size >= sizeof(struct shm))
		seg->shm = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (!seg->shm || seg->shm == MAP_FAILED) {
		free(seg);
		return NULL;
	}
	seg->size = st.st_size;
	seg->slot = slot;
	seg->refs = 1;
	seg->pidfd = -1;
	seg->pid = seg->shm->head.pid;
	seg->nonce = seg->shm->head.nonce;
	pthread_mutex_init(&seg->wake_lock, NULL);
	return seg;
}

static void seg_unmap(struct shmv_seg *seg)
{
	if (seg->pidfd >= 0)
		close(seg->pidfd);
	for (uint32_t i = 0; i < seg->wakes; i++)
		close(seg->wake[i].fd);
	munmap(seg->shm, seg->size);
	pthread_mutex_destroy(&seg->wake_lock);
	free(seg);
}

static bool seg_is_alive(const struct shmv_seg *seg)
{
	const struct shm_head *head = &seg->shm->head;

	return head->magic == SHM_MAGIC && !(head->gone & SHM_CLOSED) &&
	       shmv_process_start(seg->pid) == head->start;
}

struct shmv_seg *shmv_seg_attach(uint32_t slot)
{
	struct shmv_seg *seg = NULL, *old;
	char path[112];
	int fd;

	seg_path(path, sizeof(path), slot);
	pthread_mutex_lock(&mutex);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		goto out;
	seg = seg_map(fd, slot);
	close(fd);
	if (!seg)
		goto out;
	for (old = segs; old; old = old->next)
		if (old->nonce == seg->nonce && !shmv_load32(&old->dead))
			break;
	if (old || !seg_is_alive(seg)) {
		seg_unmap(seg);
		seg = old;
		if (old)
			old->refs++;
		goto out;
	}
	seg->pidfd = syscall(SYS_pidfd_open, seg->pid, 0);
	if (seg->pidfd >= 0 && seg_is_alive(seg))
		shmv_thread_watch(seg->pidfd, seg);
	seg->next = segs;
	segs = seg;
out:
	pthread_mutex_unlock(&mutex);
	return seg;
}

void shmv_seg_detach(struct shmv_seg *seg)
{
	struct shmv_seg **at = &segs;

	pthread_mutex_lock(&mutex);
	if (!--seg->refs) {
		while (*at && *at != seg)
			at = &(*at)->next;
		if (*at)
			*at = seg->next;
		seg_unmap(seg);
	}
	pthread_mutex_unlock(&mutex);
}

void shmv_seg_bury(struct shmv_seg *seg)
{
	struct shmv_seg *known;

	pthread_mutex_lock(&mutex);
	for (known = segs; known && known != seg; known = known->next)
		;
	if (known) {
		shmv_store32(&seg->dead, 1);
		shmv_thread_unwatch(seg->pidfd);
	}
	pthread_mutex_unlock(&mutex);
}

/* True if a living process has the slot. Removes the file of a dead process. */
static bool is_taken(uint32_t slot)
{
	struct shm_head head;
	char path[112];
	ssize_t n;
	int fd;

	seg_path(path, sizeof(path), slot);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, &head, sizeof(head));
	close(fd);
	if (n == sizeof(head) && shmv_process_start(head.pid) == head.start)
		return true;
	unlink(path);
	return false;
}

bool shmv_seg_any(void)
{
	bool any = false;

	for (uint32_t i = 1; i <= SHM_SLOT_MAX; i++)
		any |= is_taken(i);
	return any;
}

/* Gives the file a slot that no open device has, and none had lately; 0 or an errno. */
static int seg_name(const char *temporary, uint32_t *slot)
{
	char path[112], text[16] = "0";
	uint32_t next = 0;
	int fd, ret = ENOSPC;

	snprintf(path, sizeof(path), "%s/next", shmv_conf.dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || flock(fd, LOCK_EX))
		return errno;
	fchmod(fd, 0666); /* an umask took bits away; fails if another user made the file */
	if (read(fd, text, sizeof(text) - 1) > 0)
		next = strtoul(text, NULL, 10);
	if (next % LOOK_EVERY == 0)
		shmv_seg_any();
	for (int i = 0; ret && i < SHM_SLOT_MAX; i++) {
		*slot = 1 + next++ % SHM_SLOT_MAX;
		seg_path(path, sizeof(path), *slot);
		if (!is_taken(*slot))
			ret = link(temporary, path) ? errno : 0;
	}
	snprintf(text, sizeof(text), "%-10u", next);
	(void)!pwrite(fd, text, strlen(text), 0);
	close(fd);
	return ret;
}

struct shmv_seg *shmv_seg_create(uint32_t dev, int note_fd, uint64_t note_id)
{
	size_t size = sizeof(struct shm) + ((size_t)shmv_conf.heap_mb << 20);
	struct shmv_seg *seg = NULL;
	struct shm_head *head;
	char temporary[112];
	uint32_t slot = 0;
	int fd, ret;

	snprintf(temporary, sizeof(temporary), "%s/new.%u.%lu", shmv_conf.dir, shmv_pid,
		 shmv_seg_pipe_id());
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0 || fchmod(fd, 0666) || ftruncate(fd, size))
		goto out;
	seg = seg_map(fd, 0);
	if (!seg)
		goto out;
	head = &seg->shm->head;
	*head = (struct shm_head){
		.magic = SHM_MAGIC,
		.dev = dev,
		.pid = shmv_pid,
		.start = shmv_process_start(shmv_pid),
		.note_fd = note_fd,
		.note_id = note_id,
	};
	(void)!getrandom(&head->nonce, sizeof(head->nonce), 0);
	seg->pid = shmv_pid;
	seg->nonce = head->nonce;
	ret = seg_name(temporary, &slot);
	if (ret) {
		seg_unmap(seg);
		seg = NULL;
		errno = ret;
		goto out;
	}
	seg->slot = slot;
out:
	ret = errno;
	unlink(temporary);
	if (fd >= 0)
		close(fd);
	errno = ret;
	return seg;
}

void shmv_seg_unlink(const struct shmv_seg *seg)
{
	char path[112];

	seg_path(path, sizeof(path), seg->slot);
	unlink(path);
}

uint64_t shmv_seg_pipe_id(void)
{
	return shmv_add64(&pipe_ids, 1);
}

/*
 * The descriptor of a pipe; -1: the process is gone. Under wake_lock: another thread may close a
 * descriptor.
 */
static int seg_pipe(struct shmv_seg *seg, uint64_t id, int owners_fd)
{
	char path[48];
	int fd;

	for (uint32_t i = 0; i < seg->wakes; i++)
		if (seg->wake[i].id == id)
			return seg->wake[i].fd;
	/*
	 * Opened for reading, too: writing to a pipe without a reader would end this process
	 * (SIGPIPE).
	 */
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", seg->pid, owners_fd);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (seg->wakes == SHMV_WAKES)
		close(seg->wake[--seg->wakes].fd);
	seg->wake[seg->wakes].id = id;
	seg->wake[seg->wakes++].fd = fd;
	return fd;
}

bool shmv_seg_write(struct shmv_seg *seg, uint64_t id, int owners_fd, const void *record,
		    size_t size)
{
	ssize_t n = -1;
	int fd;

	pthread_mutex_lock(&seg->wake_lock);
	fd = seg_pipe(seg, id, owners_fd);
	if (fd >= 0)
		n = write(fd, record, size);
	pthread_mutex_unlock(&seg->wake_lock);
	return n == (ssize_t)size;
}

void shmv_seg_forked(void)
{
	segs = NULL;
	pthread_mutex_init(&mutex, NULL);
}
