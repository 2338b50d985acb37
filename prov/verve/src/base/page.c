/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Page: the file, which of its entries are in use, and the order of writes to an entry. */
#include "base/page.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "base/rundir.h"
#include <rdma/fi_errno.h>

enum {
	ENTRY = sizeof(struct verve_page_entry),
	BATCH = 16, /* entries by which the file grows */
	MAP = (1 + VERVE_PAGE_ENTRIES) * ENTRY,
};

_Static_assert(sizeof(struct verve_page_head) <= ENTRY, "the head takes the place of an entry");
_Static_assert(ENTRY % sizeof(uint64_t) == 0, "entries are aligned");

const char verve_page_magic[VERVE_PAGE_SHORT] = "verve page";

/* What an entry is used for. Not in the page: its writer reads nothing from there. */
struct use {
	uint32_t count; /* gets without a put; 0: free */
	uint32_t kind;
	const void *key;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct verve_page_head *head; /* the mapping of MAP bytes; NULL: there is no page */
	struct verve_page_entry *entries;
	struct use uses[VERVE_PAGE_ENTRIES];
	uint32_t users;	    /* verve_page_open without verve_page_close */
	uint32_t allocated; /* entries that the file has room for */
	uint32_t count;	    /* entries that were ever in use: head->count */
	uint32_t hidden;    /* head->hidden */
	uint32_t last_id;
	int dir, file;
	pid_t pid;
	char name[VERVE_RUNDIR_NAME];
	bool told; /* why there is no page */
} page;

/* In a child: nothing took the place of the parent's page, and the log does not say so yet. */
static bool hole;

/*
 * The child has no copy of a thread that held the lock, so all may be half changed. The memory of
 * the page is not in the child (MADV_DONTFORK). The lock of the file is the parent's. Copies of the
 * parent's endpoints point to the page: memory that no reader sees takes its place, so that a child
 * that uses them does not fault. If there is no memory, a child that uses them faults; the log of
 * its own first use says so, because between fork and that use, logging may wait for ever.
 */
static void in_child(void)
{
	void *memory;

	pthread_mutex_init(&lock, NULL);
	if (!page.head)
		return;
	memory = mmap(page.head, MAP, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	hole = memory != page.head;
	/* Linux before 4.17 takes the address for a wish. */
	if (hole && memory != MAP_FAILED)
		munmap(memory, MAP);
	close(page.file);
	close(page.dir);
	memset(&page, 0, sizeof(page));
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

static int page_map(int file)
{
	/* Memory behind the end of the file is not touched before the file has grown. */
	void *memory = mmap(NULL, MAP, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (memory == MAP_FAILED)
		return -errno;
	if (madvise(memory, MAP, MADV_DONTFORK)) {
		munmap(memory, MAP);
		return -FI_ENOSYS;
	}
	page.head = memory;
	page.entries = (struct verve_page_entry *)memory + 1;
	return 0;
}

static void fill_head(void)
{
	memcpy(page.head->magic, verve_page_magic, sizeof(page.head->magic));
	page.head->layout = VERVE_PAGE_LAYOUT;
	page.head->entry_size = ENTRY;
	page.head->pid = page.pid;
	prctl(PR_GET_NAME, page.head->command);
}

static int page_make(void)
{
	char path[VERVE_RUNDIR_PATH];
	int ret;

	page.dir = verve_rundir_open(verve_config.stat ? verve_config.stat :
							 verve_rundir_path(geteuid(), path),
				     geteuid(), true);
	if (page.dir < 0)
		return page.dir;
	verve_rundir_reap(page.dir, geteuid());
	ret = page.file = verve_rundir_create(page.dir, (1 + BATCH) * (size_t)ENTRY);
	if (ret < 0)
		goto err_dir;
	ret = page_map(page.file);
	if (ret)
		goto err_file;
	page.pid = getpid();
	page.allocated = BATCH;
	page.count = page.hidden = 0;
	fill_head();
	ret = verve_rundir_link(page.dir, page.file, page.name);
	if (ret)
		goto err_map;
	return 0;

err_map:
	munmap(page.head, MAP);
	page.head = NULL;
err_file:
	close(page.file);
err_dir:
	close(page.dir);
	return ret;
}

/* A warning if the user has named the folder; else the reason is only in the verbose log. */
static void tell(int error)
{
	if (page.told)
		return;
	page.told = true;
	if (verve_config.stat)
		VERVE_WARN(CORE,
			   "verve_stat does not see this process: FI_VERVE_STAT=%s: %s (the "
			   "folder must be the user's own, of mode 700, and on a file system "
			   "such as tmpfs)\n",
			   verve_config.stat, fi_strerror(error));
	else
		VERVE_INFO(CORE,
			   "verve_stat does not see this process: /dev/shm/verve-%u: %s "
			   "(FI_VERVE_STAT names another folder)\n",
			   (unsigned)geteuid(), fi_strerror(error));
}

static void tell_hole(void)
{
	if (hole)
		VERVE_WARN(CORE, "no memory after fork(2): a call that uses an endpoint of the "
				 "parent process ends this one\n");
	hole = false;
}

bool verve_page_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret = 0;

	if (verve_config.stat && !strcmp(verve_config.stat, "off"))
		return false;
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&lock);
	tell_hole();
	if (!page.head)
		ret = page_make();
	if (ret)
		tell(-ret);
	else
		page.users++;
	pthread_mutex_unlock(&lock);
	return !ret;
}

void verve_page_close(void)
{
	pthread_mutex_lock(&lock);
	if (!--page.users) {
		unlinkat(page.dir, page.name, 0);
		munmap(page.head, MAP);
		close(page.file);
		close(page.dir);
		page.head = NULL;
		memset(page.uses, 0, sizeof(page.uses));
	}
	pthread_mutex_unlock(&lock);
}

void verve_page_remove(void)
{
	pthread_mutex_lock(&lock);
	if (page.head && page.pid == getpid())
		unlinkat(page.dir, page.name, 0);
	pthread_mutex_unlock(&lock);
}

/* Makes room for entry `index` in the file. False: there is none. */
static bool grow(uint32_t index)
{
	off_t end = (off_t)(1 + page.allocated) * ENTRY;
	struct rlimit limit;

	if (index < page.allocated)
		return true;
	/* Above RLIMIT_FSIZE the kernel would end the process with SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || (rlim_t)(end + BATCH * ENTRY) > limit.rlim_cur ||
	    verve_rundir_allocate(page.file, end, BATCH * ENTRY))
		return false;
	page.allocated += BATCH;
	return true;
}

/* The entry of that kind and key, or a free one. VERVE_PAGE_ENTRIES: there is none. */
static uint32_t find(uint32_t kind, const void *key)
{
	uint32_t unused = VERVE_PAGE_ENTRIES;

	for (uint32_t i = 0; i < page.count; i++) {
		const struct use *use = &page.uses[i];

		if (key && use->count && use->key == key && use->kind == kind)
			return i;
		if (!use->count && unused == VERVE_PAGE_ENTRIES)
			unused = i;
		if (!key && unused != VERVE_PAGE_ENTRIES)
			break;
	}
	if (unused == VERVE_PAGE_ENTRIES && page.count < VERVE_PAGE_ENTRIES && grow(page.count)) {
		unused = page.count++;
		AO_store_release(&page.head->count, page.count);
	}
	return unused;
}

/* From here to end_change, readers know that what they copy is half changed. */
static void begin_change(struct verve_page_entry *entry)
{
	/* With a full barrier. AO_nop_full would do, but GCC refuses it under TSan. */
	AO_or_full(&entry->changes, 1);
}

static void end_change(struct verve_page_entry *entry)
{
	AO_store_release(&entry->changes, AO_load(&entry->changes) + 1);
}

static void begin_use(struct verve_page_entry *entry, uint32_t kind, uint32_t owner,
		      const char *name)
{
	begin_change(entry);
	memset((char *)entry + sizeof(entry->changes), 0, ENTRY - sizeof(entry->changes));
	entry->kind = kind;
	entry->owner = owner;
	entry->id = kind ? ++page.last_id : 0;
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	end_change(entry);
}

struct verve_page_entry *verve_page_get(uint32_t kind, uint32_t owner, const char *name,
					const void *key)
{
	struct verve_page_entry *entry = NULL;
	uint32_t index;

	assert(kind);
	pthread_mutex_lock(&lock);
	index = find(kind, key);
	if (index < VERVE_PAGE_ENTRIES) {
		entry = &page.entries[index];
		if (!page.uses[index].count++)
			begin_use(entry, kind, owner, name);
		page.uses[index].kind = kind;
		page.uses[index].key = key;
	} else {
		AO_store(&page.head->hidden, ++page.hidden);
	}
	pthread_mutex_unlock(&lock);
	return entry;
}

void verve_page_put(struct verve_page_entry *entry)
{
	pthread_mutex_lock(&lock);
	if (!entry)
		AO_store(&page.head->hidden, --page.hidden);
	else if (!--page.uses[entry - page.entries].count)
		begin_use(entry, 0, 0, "");
	pthread_mutex_unlock(&lock);
}

static void set_text(struct verve_page_entry *entry, char *place, const char *text)
{
	begin_change(entry);
	snprintf(place, VERVE_PAGE_TEXT, "%s", text);
	end_change(entry);
}

void verve_page_set_name(struct verve_page_entry *entry, const char *name)
{
	set_text(entry, entry->name, name);
}

void verve_page_set_text(struct verve_page_entry *entry, const char *text)
{
	set_text(entry, entry->text, text);
}

void verve_page_add_event(struct verve_page_entry *entry, const struct verve_page_event *event)
{
	begin_change(entry);
	entry->events[entry->event_count % VERVE_PAGE_EVENTS] = *event;
	entry->event_count++;
	end_change(entry);
}
