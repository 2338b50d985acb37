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
	LEVELS = 13, /* shares of a page: 1, 2, 4, ... VERVE_PAGE_ENTRIES places */
};

_Static_assert(1 << (LEVELS - 1) == VERVE_PAGE_ENTRIES, "the largest share is a whole page");

/* The pages of one user. */
struct folder {
	DIR *stream;
	uid_t uid;
	size_t share; /* places that are read of each page, at most */
	size_t left;  /* places that may still be read of all pages */
	bool cut;     /* some are not read */
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

static int by_owner(const void *a, const void *b)
{
	const struct verve_stat_entry *one = *(struct verve_stat_entry *const *)a;
	const struct verve_stat_entry *other = *(struct verve_stat_entry *const *)b;

	if (one->page.owner != other->page.owner)
		return one->page.owner < other->page.owner ? -1 : 1;
	return (one->index > other->index) - (one->index < other->index);
}

/* Entries do not move any more. */
static void sort_entries(struct verve_stat_process *process)
{
	if (!process->count)
		return;
	process->by_id = calloc(process->count, sizeof(process->by_id[0]));
	process->peers = calloc(process->count, sizeof(process->peers[0]));
	if (!process->by_id || !process->peers)
		no_memory();
	for (size_t i = 0; i < process->count; i++) {
		process->by_id[i] = &process->entries[i];
		if (process->entries[i].page.kind == VERVE_STAT_KIND_PEER)
			process->peers[process->peer_count++] = &process->entries[i];
	}
	qsort(process->by_id, process->count, sizeof(process->by_id[0]), by_id);
	qsort(process->peers, process->peer_count, sizeof(process->peers[0]), by_owner);
}

/* The first places. */
static void read_entries(int file, struct verve_stat_process *process)
{
	struct verve_page_entry entry;

	for (uint32_t i = 0; i < process->places; i++) {
		if (!read_entry(file, i, &entry))
			continue;
		process->entries = grow(process->entries, process->count,
					sizeof(process->entries[0]));
		process->entries[process->count++] = (struct verve_stat_entry){i, entry};
	}
	sort_entries(process);
}

/* False: the file is no page. */
static bool read_start(int file, struct verve_page_head *head)
{
	return read_at(file, head, sizeof(*head), 0) &&
	       !memcmp(head->magic, verve_page_magic, sizeof(head->magic));
}

/* False: the file is no page of this layout. */
static bool read_head(int file, struct verve_page_head *head)
{
	if (!read_start(file, head) || head->layout != VERVE_PAGE_LAYOUT ||
	    head->entry_size != ENTRY)
		return false;
	if (head->count > VERVE_PAGE_ENTRIES)
		head->count = VERVE_PAGE_ENTRIES;
	clean(head->command, sizeof(head->command));
	return true;
}

static bool read_page(struct folder *folder, int file, struct verve_stat_process *process)
{
	struct verve_page_head head;

	if (!read_head(file, &head))
		return false;
	memcpy(process->command, head.command, sizeof(process->command));
	process->hidden = head.hidden;
	if (!process->pid)
		process->pid = head.pid;
	process->places = head.count < folder->share ? head.count : folder->share;
	if (process->places > folder->left)
		process->places = folder->left;
	process->unread = head.count - process->places;
	folder->left -= process->places;
	folder->cut |= process->unread;
	read_entries(file, process);
	return true;
}

static void read_file(struct verve_stat_host *host, struct folder *folder, const char *name)
{
	int file = verve_rundir_open_file(dirfd(folder->stream), name, folder->uid);
	struct verve_stat_process process = {.uid = folder->uid};
	struct verve_page_head head;

	if (file < 0)
		return;
	if (!verve_rundir_is_alive(file, &process.pid)) {
		host->reaped += !unlinkat(dirfd(folder->stream), name, 0);
	} else if (read_page(folder, file, &process)) {
		snprintf(process.name, sizeof(process.name), "%.*s", VERVE_RUNDIR_NAME - 1, name);
		host->processes = grow(host->processes, host->count, sizeof(process));
		host->processes[host->count++] = process;
	} else {
		host->foreign += read_start(file, &head);
	}
	close(file);
}

/* Places of a page that were ever in use; 0: the file is none, or its process is dead. */
static size_t count_places(const struct folder *folder, const char *name)
{
	int file = verve_rundir_open_file(dirfd(folder->stream), name, folder->uid);
	struct verve_page_head head;
	size_t count = 0;
	pid_t pid;

	if (file < 0)
		return 0;
	if (verve_rundir_is_alive(file, &pid) && read_head(file, &head))
		count = head.count;
	close(file);
	return count;
}

/*
 * Places to read of each page: the largest power of two for which all pages of the folder together
 * have no more places to read than folder->left.
 */
static size_t find_share(const struct folder *folder)
{
	size_t sums[LEVELS] = {0};
	struct dirent *entry;
	int level = LEVELS - 1;

	for (int i = 0; i < VERVE_STAT_PAGES_MAX && (entry = readdir(folder->stream)); i++) {
		size_t count = count_places(folder, entry->d_name);

		for (int j = 0; j < LEVELS; j++)
			sums[j] += count < 1u << j ? count : 1u << j;
	}
	rewinddir(folder->stream);
	while (level && sums[level] > folder->left)
		level--;
	return 1u << level;
}

static int read_folder(struct verve_stat_host *host, const char *path, uid_t uid,
		       size_t entries_max)
{
	struct folder folder = {.uid = uid, .share = VERVE_PAGE_ENTRIES, .left = entries_max};
	int dir = verve_rundir_open(path, uid, false);
	struct dirent *entry;
	int count = 0;

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	folder.stream = fdopendir(dir);
	if (!folder.stream) {
		close(dir);
		return -FI_ENOMEM;
	}
	if (entries_max < SIZE_MAX)
		folder.share = find_share(&folder);
	for (; count < VERVE_STAT_PAGES_MAX && (entry = readdir(folder.stream)); count++)
		read_file(host, &folder, entry->d_name);
	if (count == VERVE_STAT_PAGES_MAX)
		fprintf(stderr, "verve_stat: %s: only %d names are read\n", path, count);
	if (folder.cut)
		fprintf(stderr,
			"verve_stat: %s: at most %zu entries are read: --folder=%s reads all\n",
			path, entries_max, path);
	closedir(folder.stream);
	return 0;
}

/*
 * The folders of all users; a folder that verve_rundir_open refuses is skipped. Root trusts its own
 * pages.
 */
static void read_all(struct verve_stat_host *host, size_t entries_max)
{
	char path[VERVE_RUNDIR_PATH], rest;
	DIR *stream = opendir("/dev/shm");
	struct dirent *entry;
	unsigned uid;

	while (stream && (entry = readdir(stream)))
		/* verve-01000 would be the folder of user 1000 once more. */
		if (sscanf(entry->d_name, "verve-%u%c", &uid, &rest) == 1 &&
		    !strcmp(basename(verve_rundir_path(uid, path)), entry->d_name))
			read_folder(host, path, uid, uid ? entries_max : SIZE_MAX);
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

int verve_stat_host_read(struct verve_stat_host *host, const char *folder, size_t entries_max)
{
	char path[VERVE_RUNDIR_PATH];
	uid_t uid = geteuid();
	struct stat stat_of;
	int ret = 0;

	*host = (struct verve_stat_host){.when = verve_net_now()};
	if (folder && !uid && !stat(folder, &stat_of))
		uid = stat_of.st_uid;
	if (folder)
		ret = read_folder(host, folder, uid, entries_max);
	else if (uid)
		ret = read_folder(host, verve_rundir_path(uid, path), uid, entries_max);
	else
		read_all(host, entries_max);
	if (host->count)
		qsort(host->processes, host->count, sizeof(host->processes[0]), by_process);
	return ret;
}

void verve_stat_host_fini(struct verve_stat_host *host)
{
	for (size_t i = 0; i < host->count; i++) {
		free(host->processes[i].by_id);
		free(host->processes[i].peers);
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

struct verve_stat_entry *const *verve_stat_peers(const struct verve_stat_process *process,
						 const struct verve_stat_entry *endpoint,
						 size_t *count)
{
	size_t first = 0, end = process->peer_count;

	/* The first peer whose owner is not smaller. */
	while (first < end) {
		size_t middle = (first + end) / 2;

		if (process->peers[middle]->page.owner < endpoint->page.id)
			first = middle + 1;
		else
			end = middle;
	}
	*count = 0;
	if (first == process->peer_count ||
	    verve_stat_owner(process, process->peers[first]) != endpoint)
		return NULL;
	while (first + *count < process->peer_count &&
	       process->peers[first + *count]->page.owner == endpoint->page.id)
		(*count)++;
	return process->peers + first;
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

/* NULL: the earlier look did not see the process. */
static const struct verve_stat_process *process_before(const struct verve_stat_host *before,
							const struct verve_stat_process *process)
{
	if (!before->count)
		return NULL;
	return bsearch(process, before->processes, before->count, sizeof(*process), by_process);
}

const struct verve_stat_entry *verve_stat_before(const struct verve_stat_host *before,
						 const struct verve_stat_process *process,
						 const struct verve_stat_entry *entry)
{
	const struct verve_stat_process *old = process_before(before, process);
	const struct verve_stat_entry *found;

	if (!old || !old->count)
		return NULL;
	found = bsearch(entry, old->entries, old->count, sizeof(*entry), by_index);
	return found && found->page.id == entry->page.id ? found : NULL;
}

bool verve_stat_was_read(const struct verve_stat_host *before,
			 const struct verve_stat_process *process,
			 const struct verve_stat_entry *entry)
{
	const struct verve_stat_process *old = process_before(before, process);

	return !old || !old->unread || entry->index < old->places;
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
