/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Run directory: who may own what in it, and who lives. */
#include "base/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

enum { RANDOM_DIGITS = 8 };

const char *verve_rundir_path(uid_t uid, char *buf)
{
	snprintf(buf, VERVE_RUNDIR_PATH, "/dev/shm/verve-%u", (unsigned)uid);
	return buf;
}

int verve_rundir_open(const char *path, uid_t uid, bool create)
{
	struct stat stat;
	int dir;

	if (create && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!fstat(dir, &stat) && stat.st_uid == uid && !(stat.st_mode & 077))
		return dir;
	close(dir);
	return -FI_EPERM;
}

/* The whole file, with bytes that are added later. */
static struct flock whole_file(void)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

/* Above RLIMIT_FSIZE the kernel would end the process with SIGXFSZ. */
static bool is_allowed(size_t len)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && len <= limit.rlim_cur;
}

/*
 * A signal that waits makes tmpfs give up. A profiler's come so often that no number of tries would
 * do, so they are blocked meanwhile.
 */
int verve_rundir_allocate(int file, off_t offset, size_t len)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = posix_fallocate(file, offset, len);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

int verve_rundir_create(int dir, size_t len)
{
	struct flock lock = whole_file();
	int file, ret;

	if (!is_allowed(len))
		return -FI_E2BIG;
	file = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (file < 0)
		return -errno;
	ret = verve_rundir_allocate(file, 0, len);
	if (!ret && fcntl(file, F_SETLK, &lock))
		ret = -errno;
	if (!ret)
		return file;
	close(file);
	return ret;
}

int verve_rundir_link(int dir, int file, char *name)
{
	char self[VERVE_RUNDIR_PATH];
	uint32_t random;

	/* Processes of several PID namespaces may share the folder, and have the same number. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return -errno;
	snprintf(name, VERVE_RUNDIR_NAME, "%d.%08x", (int)getpid(), random);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", file);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* The process that the name tells; 0: it is no name of a page. */
static pid_t pid_of(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	if (!digits || digits > 9 || name[digits] != '.' ||
	    strspn(name + digits + 1, "0123456789abcdef") != RANDOM_DIGITS ||
	    name[digits + 1 + RANDOM_DIGITS])
		return 0;
	return atoi(name);
}

int verve_rundir_open_file(int dir, const char *name, uid_t uid)
{
	pid_t pid = pid_of(name);
	struct stat stat;
	int file;

	/* Closing a file of this process would give its lock away. */
	if (!pid || pid == getpid())
		return -FI_EPERM;
	/* Without O_NONBLOCK, opening a named pipe would wait for a writer. */
	file = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (file < 0)
		return -errno;
	/* With links, a user could show readers one file under any number of names. */
	if (!fstat(file, &stat) && S_ISREG(stat.st_mode) && stat.st_uid == uid &&
	    stat.st_nlink <= 1)
		return file;
	close(file);
	return -FI_EPERM;
}

bool verve_rundir_is_alive(int file, pid_t *pid)
{
	struct flock lock = whole_file();

	*pid = 0;
	/* A file system without locks says nothing about the process. */
	if (fcntl(file, F_GETLK, &lock))
		return true;
	if (lock.l_type == F_UNLCK)
		return false;
	if (lock.l_pid > 0)
		*pid = lock.l_pid;
	return true;
}

static bool reap_file(int dir, const char *name, uid_t uid)
{
	int file = verve_rundir_open_file(dir, name, uid);
	bool reaped;
	pid_t pid;

	if (file < 0)
		return false;
	reaped = !verve_rundir_is_alive(file, &pid) && !unlinkat(dir, name, 0);
	close(file);
	return reaped;
}

int verve_rundir_reap(int dir, uid_t uid)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
	struct dirent *entry;
	DIR *stream;

	if (copy < 0)
		return 0;
	stream = fdopendir(copy);
	if (!stream) {
		close(copy);
		return 0;
	}
	while ((entry = readdir(stream)))
		count += reap_file(dir, entry->d_name, uid);
	closedir(stream);
	return count;
}
