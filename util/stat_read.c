/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Reading pages: what is believed of them. */
#include "stat_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/sys.h"

enum {
	ENTRY = sizeof(struct verve_page_entry),
	TRIES = 8, /* a process that was stopped while it changed an entry never ends that */
};

static _Noreturn void no_memory(void)
{
	fputs("verve_stat: no memory\n", stderr);
	exit(2);
}

static void *grow(void *list, size_t count, size_t size)
{
	/* At powers of two there is no room left. */
	if (count & (count - 1))
		return list;
	list = realloc(list, (count ? 2 * count : 1) * size);
	if (!list)
		no_memory();
	return list;
}

/* Ends the text, and replaces what a terminal might take for a command. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static bool read_at(int file, void *buf, size_t len, uint32_t index)
{
	return pread(file, buf, len, (off_t)index * ENTRY) == (ssize_t)len;
}

/* Copies an entry while nobody changes it, if possible. Place 0 has the head. */
static bool read_entry(int file, uint32_t index, struct verve_page_entry *entry)
{
	for (int i = 0; i < TRIES; i++) {
		AO_t before, after;

		if (!read_at(file, &before, sizeof(before), 1 + index) ||
		    !read_at(file, entry, ENTRY, 1 + index) ||
		    !read_at(file, &after, sizeof(after), 1 + index))
			return false;
		if (before == after && !(before & 1))
			break;
	}
	clean(entry->name, sizeof(entry->name));
	clean(entry->text, sizeof(entry->text));
	return entry->kind && entry->kind < VERVE_STAT_KINDS;
}

/* Orders as verve_stat_owner searches. */
static int by_id(const void *a, const void *b)
{
	const struct verve_page_entry *one = &(*(struct verve_stat_entry *const *)a)->page;
	const struct verve_page_entry *other = &(*(struct verve_stat_entry *const *)b)->page;

	if (one->kind != other->kind)
		return one->kind < other->kind ? -1 : 1;
	return (one->id > other->id) - (one->id < other->id);
}

/* Entries do not move any more. */
static void sort_entries(struct verve_stat_process *process)
{
	if (!process->count)
		return;
	process->by_id = calloc(process->count, sizeof(process->by_id[0]));
	if (!process->by_id)
		no_memory();
	for (size_t i = 0; i < process->count; i++)
		process->by_id[i] = &process->entries[i];
	qsort(process->by_id, process->count, sizeof(process->by_id[0]), by_id);
}

static void read_entries(int file, uint64_t count, struct verve_stat_process *process)
{
	struct verve_page_entry entry;

	for (uint32_t i = 0; i < count && i < VERVE_PAGE_ENTRIES; i++) {
		if (!read_entry(file, i, &entry))
			continue;
		process->entries = grow(process->entries, process->count,
					sizeof(process->entries[0]));
		process->entries[process->count++] = (struct verve_stat_entry){i, entry};
	}
	sort_entries(process);
}

/* False: the file is no page of this layout. */
static bool read_page(int file, struct verve_stat_process *process)
{
	struct verve_page_head head;

	if (!read_at(file, &head, sizeof(head), 0) ||
	    memcmp(head.magic, verve_page_magic, sizeof(head.magic)) ||
	    head.layout != VERVE_PAGE_LAYOUT || head.entry_size != ENTRY)
		return false;
	clean(head.command, sizeof(head.command));
	memcpy(process->command, head.command, sizeof(process->command));
	process->hidden = head.hidden;
	if (!process->pid)
		process->pid = head.pid;
	read_entries(file, head.count, process);
	return true;
}

static void read_file(struct verve_stat_host *host, int dir, const char *name, uid_t uid)
{
	int file = verve_rundir_open_file(dir, name, uid);
	struct verve_stat_process process = {.uid = uid};

	if (file < 0)
		return;
	if (!verve_rundir_is_alive(file, &process.pid)) {
		host->reaped += !unlinkat(dir, name, 0);
	} else if (read_page(file, &process)) {
		snprintf(process.name, sizeof(process.name), "%.*s", VERVE_RUNDIR_NAME - 1, name);
		host->processes = grow(host->processes, host->count, sizeof(process));
		host->processes[host->count++] = process;
	}
	close(file);
}

static int read_folder(struct verve_stat_host *host, const char *path, uid_t uid)
{
	int dir = verve_rundir_open(path, uid, false);
	struct dirent *entry;
	DIR *stream;
	int count = 0;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	stream = fdopendir(dir);
	if (!stream) {
		close(dir);
		return -FI_ENOMEM;
	}
	for (; count < VERVE_STAT_PAGES_MAX && (entry = readdir(stream)); count++)
		read_file(host, dir, entry->d_name, uid);
	if (count == VERVE_STAT_PAGES_MAX)
		fprintf(stderr, "verve_stat: %s: only %d names are read\n", path, count);
	closedir(stream);
	return 0;
}

/* The folders of all users; a folder that verve_rundir_open refuses is skipped. */
static void read_all(struct verve_stat_host *host)
{
	char path[VERVE_RUNDIR_PATH], rest;
	DIR *stream = opendir("/dev/shm");
	struct dirent *entry;
	unsigned uid;

	while (stream && (entry = readdir(stream)))
		/* verve-01000 would be the folder of user 1000 once more. */
		if (sscanf(entry->d_name, "verve-%u%c", &uid, &rest) == 1 &&
		    !strcmp(basename(verve_rundir_path(uid, path)), entry->d_name))
			read_folder(host, path, uid);
	if (stream)
		closedir(stream);
}

static int by_process(const void *a, const void *b)
{
	const struct verve_stat_process *one = a, *other = b;

	if (one->uid != other->uid)
		return one->uid < other->uid ? -1 : 1;
	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return strcmp(one->name, other->name);
}

int verve_stat_host_read(struct verve_stat_host *host, const char *folder)
{
	char path[VERVE_RUNDIR_PATH];
	uid_t uid = geteuid();
	struct stat stat_of;
	int ret = 0;

	*host = (struct verve_stat_host){.when = verve_net_now()};
	if (folder && !uid && !stat(folder, &stat_of))
		uid = stat_of.st_uid;
	if (folder)
		ret = read_folder(host, folder, uid);
	else if (uid)
		ret = read_folder(host, verve_rundir_path(uid, path), uid);
	else
		read_all(host);
	if (host->count)
		qsort(host->processes, host->count, sizeof(host->processes[0]), by_process);
	return ret;
}

void verve_stat_host_fini(struct verve_stat_host *host)
{
	for (size_t i = 0; i < host->count; i++) {
		free(host->processes[i].by_id);
		free(host->processes[i].entries);
	}
	free(host->processes);
	*host = (struct verve_stat_host){0};
}

const struct verve_stat_entry *verve_stat_owner(const struct verve_stat_process *process,
						const struct verve_stat_entry *entry)
{
	const struct verve_stat_entry wanted = {
		.page = {.kind = entry->page.kind - 1, .id = entry->page.owner}};
	const struct verve_stat_entry *key = &wanted, **found;

	if (!process->by_id)
		return NULL;
	found = bsearch(&key, process->by_id, process->count, sizeof(key), by_id);
	return found ? *found : NULL;
}

const struct verve_stat_entry *verve_stat_peer_of(const struct verve_stat_host *host,
						  const char *device, uint32_t port,
						  uint32_t qp_num)
{
	char place[VERVE_PAGE_TEXT];

	snprintf(place, sizeof(place), "%s:%u", device, port);
	for (size_t i = 0; i < host->count; i++)
		for (size_t j = 0; j < host->processes[i].count; j++) {
			const struct verve_stat_entry *peer = &host->processes[i].entries[j];
			const struct verve_stat_entry *owner;

			/* The number of an idle peer was that of an earlier queue pair. */
			if (peer->page.kind != VERVE_STAT_KIND_PEER ||
			    peer->page.values[VERVE_STAT_PEER_QP_NUM] != qp_num ||
			    peer->page.values[VERVE_STAT_PEER_STATE] == VERVE_STAT_STATE_IDLE)
				continue;
			owner = verve_stat_owner(&host->processes[i], peer);
			if (owner && !strcmp(owner->page.text, place))
				return peer;
		}
	return NULL;
}

static int by_index(const void *a, const void *b)
{
	uint32_t one = ((const struct verve_stat_entry *)a)->index;
	uint32_t other = ((const struct verve_stat_entry *)b)->index;

	return (one > other) - (one < other);
}

const struct verve_stat_entry *verve_stat_before(const struct verve_stat_host *before,
						 const struct verve_stat_process *process,
						 const struct verve_stat_entry *entry)
{
	const struct verve_stat_process *old;
	const struct verve_stat_entry *found;

	if (!before->count)
		return NULL;
	old = bsearch(process, before->processes, before->count, sizeof(*old), by_process);
	if (!old || !old->count)
		return NULL;
	found = bsearch(entry, old->entries, old->count, sizeof(*entry), by_index);
	return found && found->page.id == entry->page.id ? found : NULL;
}

const char *verve_stat_state_name(const struct verve_stat_entry *peer)
{
	AO_t state = peer->page.values[VERVE_STAT_PEER_STATE];

	return state < VERVE_STAT_STATES ? verve_stat_state_names[state] : "?";
}

size_t verve_stat_events(const struct verve_stat_entry *entry, struct verve_page_event *events)
{
	size_t count = 0;

	for (AO_t i = 0; i < VERVE_PAGE_EVENTS; i++) {
		AO_t at = (entry->page.event_count + i) % VERVE_PAGE_EVENTS;
		const struct verve_page_event *event = &entry->page.events[at];

		if (event->what && event->what < VERVE_STAT_EVENTS)
			events[count++] = *event;
	}
	return count;
}
