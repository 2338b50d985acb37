/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The page: its file comes and goes, entries are given and taken, and a child has no part in it. */
#include "base/page.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/last_log.h"
#include "base/config.h"
#include "base/log.h"
#include "base/rundir.h"
#include <rdma/providers/fi_prov.h>

static struct fi_provider provider = {.name = "verve"};
static char folder[] = "/dev/shm/verve-test-XXXXXX";

static void setup(void)
{
	cr_assert_not_null(mkdtemp(folder));
	verve_config.stat = folder;
	verve_log_provider = &provider;
	last_log_level = FI_LOG_WARN;
}

static void teardown(void)
{
	cr_expect_eq(rmdir(folder), 0, "the page's file was left behind");
}

TestSuite(page, .init = setup, .fini = teardown);

/* How many files are in the folder; path: the last one's. */
static int files(char *path)
{
	DIR *stream = opendir(folder);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(stream)))
		if (entry->d_name[0] != '.') {
			sprintf(path, "%s/%.40s", folder, entry->d_name);
			count++;
		}
	closedir(stream);
	return count;
}

Test(page, lives_as_long_as_it_has_a_user)
{
	char path[128];

	cr_assert(verve_page_open());
	cr_expect_eq(files(path), 1);
	cr_assert(verve_page_open());
	cr_expect_eq(files(path), 1);
	verve_page_close();
	cr_expect_eq(files(path), 1);
	verve_page_close();
	cr_expect_eq(files(path), 0);
	cr_assert(verve_page_open());
	cr_expect_eq(files(path), 1);
	verve_page_close();
}

Test(page, is_removed_at_the_end_of_the_process)
{
	char path[128];

	cr_assert(verve_page_open());
	verve_page_remove();
	cr_expect_eq(files(path), 0);
	verve_page_close();
}

Test(page, its_head_says_what_it_is)
{
	struct verve_page_head head;
	char path[128];
	FILE *file;

	cr_assert(verve_page_open());
	cr_assert_eq(files(path), 1);
	file = fopen(path, "re");
	cr_assert_eq(fread(&head, sizeof(head), 1, file), 1);
	cr_expect_str_eq(head.magic, verve_page_magic);
	cr_expect_eq(head.layout, VERVE_PAGE_LAYOUT);
	cr_expect_eq(head.entry_size, sizeof(struct verve_page_entry));
	cr_expect_eq(head.pid, getpid());
	cr_expect_eq(head.count, 0);
	fclose(file);
	verve_page_close();
}

Test(page, is_not_made_where_it_may_not_be)
{
	char path[128];

	verve_config.stat = "off";
	cr_expect_not(verve_page_open());
	verve_config.stat = "/proc/none";
	cr_expect_not(verve_page_open());
	verve_config.stat = folder;
	cr_assert_eq(chmod(folder, 0755), 0);
	cr_expect_not(verve_page_open());
	cr_expect_eq(files(path), 0);
}

Test(page, an_entry_is_used_again_under_another_id)
{
	struct verve_page_entry *first, *second;
	uint32_t id;

	cr_assert(verve_page_open());
	first = verve_page_get(3, 7, "one", NULL);
	cr_expect_eq(first->kind, 3);
	cr_expect_eq(first->owner, 7);
	cr_expect_str_eq(first->name, "one");
	cr_expect_eq(first->changes % 2, 0);
	id = first->id;
	cr_expect_neq(id, 0);
	first->values[0] = 1;
	verve_page_add_event(first, &(struct verve_page_event){.what = 1});
	verve_page_put(first);
	cr_expect_eq(first->kind, 0);
	second = verve_page_get(2, 0, "two", NULL);
	cr_expect_eq(second, first);
	cr_expect_neq(second->id, id);
	cr_expect_eq(second->values[0], 0);
	cr_expect_eq(second->event_count, 0);
	verve_page_put(second);
	verve_page_close();
}

Test(page, a_key_shares_an_entry)
{
	struct verve_page_entry *first, *second, *other;
	int key, another;

	cr_assert(verve_page_open());
	first = verve_page_get(1, 0, "a", &key);
	second = verve_page_get(1, 0, "a", &key);
	other = verve_page_get(1, 0, "b", &another);
	cr_expect_eq(first, second);
	cr_expect_neq(first, other);
	verve_page_put(first);
	cr_expect_eq(second->kind, 1);
	verve_page_put(second);
	cr_expect_eq(second->kind, 0);
	verve_page_put(other);
	verve_page_close();
}

Test(page, long_texts_are_cut)
{
	struct verve_page_entry *entry;
	char text[2 * VERVE_PAGE_TEXT];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert(verve_page_open());
	entry = verve_page_get(1, 0, text, NULL);
	verve_page_set_text(entry, text);
	cr_expect_eq(strlen(entry->name), VERVE_PAGE_TEXT - 1);
	cr_expect_eq(strlen(entry->text), VERVE_PAGE_TEXT - 1);
	verve_page_put(entry);
	verve_page_close();
}

Test(page, what_has_no_place_is_counted)
{
	static struct verve_page_entry *entries[VERVE_PAGE_ENTRIES];
	const struct verve_page_head *head;

	cr_assert(verve_page_open());
	for (int i = 0; i < VERVE_PAGE_ENTRIES; i++) {
		entries[i] = verve_page_get(1, 0, "", NULL);
		cr_assert_not_null(entries[i], "%d", i);
	}
	head = (const struct verve_page_head *)(entries[0] - 1);
	cr_expect_eq(head->count, VERVE_PAGE_ENTRIES);
	cr_expect_null(verve_page_get(1, 0, "", NULL));
	cr_expect_null(verve_page_get(1, 0, "", NULL));
	cr_expect_eq(head->hidden, 2);
	verve_page_put(NULL);
	cr_expect_eq(head->hidden, 1);
	verve_page_put(NULL);
	for (int i = 0; i < VERVE_PAGE_ENTRIES; i++)
		verve_page_put(entries[i]);
	verve_page_close();
}

Test(page, a_limit_of_file_sizes_is_heeded_when_it_grows)
{
	struct rlimit limit;
	int count = 0;

	cr_assert(verve_page_open());
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = 65536;
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	/* Without the look at the limit, SIGXFSZ ends the test. */
	while (verve_page_get(1, 0, "", NULL))
		count++;
	cr_expect_gt(count, 0);
	cr_expect_leq(count * sizeof(struct verve_page_entry), 65536);
	verve_page_close();
}

/* What a child finds; 0: it has no part of its parent's page, and can have its own. */
static int be_child(struct verve_page_entry *entry)
{
	char path[128];

	if (entry->kind)
		return 1; /* the page is in the child's memory */
	/* As a copy of the parent's endpoint would: the parent finds that nothing has changed. */
	verve_page_set_name(entry, "child");
	verve_page_set(entry, 0, 7);
	verve_page_remove();
	if (files(path) != 1)
		return 2; /* the child removed its parent's page */
	if (!verve_page_open() || files(path) != 2)
		return 3;
	verve_page_put(verve_page_get(1, 0, "", NULL));
	verve_page_close();
	return files(path) == 1 ? 0 : 4;
}

/* Emulated user space (qemu-user) copies memory into a child that is not to be copied. */
static bool keeps_memory_from_children(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned char there;
	int status;
	pid_t pid;

	cr_assert_neq(memory, MAP_FAILED);
	cr_assert_eq(madvise(memory, size, MADV_DONTFORK), 0);
	pid = fork();
	if (!pid)
		_exit(mincore(memory, size, &there) == 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	munmap(memory, size);
	return !status;
}

Test(page, a_child_has_no_part_in_it)
{
	struct verve_page_entry *entry;
	int status;
	pid_t pid;

	if (getenv("VERVE_EMULATED") && !keeps_memory_from_children())
		cr_skip_test("madvise(2) has no effect here: MADV_DONTFORK");
	cr_assert(verve_page_open());
	entry = verve_page_get(1, 0, "", NULL);
	pid = fork();
	if (!pid)
		_exit(be_child(entry));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "%d", WEXITSTATUS(status));
	cr_expect_eq(entry->kind, 1);
	cr_expect_str_empty(entry->name);
	cr_expect_eq(entry->values[0], 0);
	verve_page_put(entry);
	verve_page_close();
}

/* Memory that takes the page's place in a child may be missing. The log of the child says so. */
static int be_child_without_memory(rlim_t limit)
{
	struct rlimit old = {.rlim_cur = limit, .rlim_max = limit};

	if (setrlimit(RLIMIT_AS, &old))
		return 1;
	if (!verve_page_open())
		return 2;
	verve_page_close();
	return strstr(last_log, "no memory after fork(2)") ? 0 : 3;
}

Test(page, a_child_without_memory_is_told)
{
	struct rlimit old, none;
	int status;
	pid_t pid;

	cr_assert(verve_page_open());
	cr_assert_eq(getrlimit(RLIMIT_AS, &old), 0);
	none = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	pid = fork();
	if (!pid)
		_exit(be_child_without_memory(old.rlim_max));
	cr_assert_eq(setrlimit(RLIMIT_AS, &old), 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "%d", WEXITSTATUS(status));
	verve_page_close();
}
