/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Run directory: the folder in which the processes of one user keep their pages (base/page.h). A
 * page's file is called PID.RANDOM, belongs to the folder's owner, and is locked by the process
 * that writes it for as long as this process lives: the kernel says who lives, not the page.
 *
 * Functions return a negative FI errno; nothing is logged. No lock; any thread.
 * Source: fcntl(2), advisory record locks; open(2), O_TMPFILE.
 */
#ifndef VERVE_BASE_RUNDIR_H
#define VERVE_BASE_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { VERVE_RUNDIR_PATH = 64, VERVE_RUNDIR_NAME = 32 }; /* bytes of buffers */

/* Writes "/dev/shm/verve-UID" to buf of VERVE_RUNDIR_PATH bytes; returns buf. */
const char *verve_rundir_path(uid_t uid, char *buf);

/*
 * Opens a folder for reading. It must be the user's, and nobody else may enter it; the last part of
 * the path is no symbolic link. create: makes it if it is not there. Returns the descriptor.
 * -FI_EPERM: the folder is another user's, or open to others.
 */
int verve_rundir_open(const char *path, uid_t uid, bool create);

/*
 * Makes a file of len bytes (all zero, and allocated) in the folder, and locks it. It has no name
 * yet. Returns its descriptor, which must stay open as long as the file is to count as alive. No
 * other descriptor of the file may be closed in this process: that would unlock the file.
 */
int verve_rundir_create(int dir, size_t len);
/*
 * Allocates len bytes more, from offset on, which may be behind the file's end. No more than
 * RLIMIT_FSIZE allows: the kernel would end the process.
 */
int verve_rundir_allocate(int file, off_t offset, size_t len);
/* Gives the file a name, which is written to name of VERVE_RUNDIR_NAME bytes. */
int verve_rundir_link(int dir, int file, char *name);

/*
 * Opens a page's file for reading, if its name is that of a page of another process than this one,
 * and if it is a plain file of that user with no second name. -FI_EPERM: it is not.
 */
int verve_rundir_open_file(int dir, const char *name, uid_t uid);
/*
 * True if the process that wrote the file lives. *pid: that process; 0: it has no number here (it
 * is in another PID namespace).
 */
bool verve_rundir_is_alive(int file, pid_t *pid);

/* Removes the files of dead processes. Returns how many. */
int verve_rundir_reap(int dir, uid_t uid);

#endif
