/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs a fuzz target over its corpus, with any compiler and without libFuzzer: every file of
 * corpus/CORPUS beside this one, or the files that the command line names. Prints the name of each
 * file before it runs, so that a crash names its file.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(const char *path)
{
	static uint8_t buf[INPUT_MAX];
	FILE *file = fopen(path, "rb");
	uint8_t *exact;
	size_t size;

	if (!file) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	size = fread(buf, 1, sizeof(buf), file);
	fclose(file);
	printf("%s\n", path);
	fflush(stdout);
	exact = malloc(size ? size : 1);
	memcpy(exact, buf, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	const char *srcdir = getenv("srcdir"); /* automake's */
	struct dirent **entries;
	char folder[2048], path[4096];
	int count;

	for (int i = 1; i < argc; i++)
		run(argv[i]);
	if (argc > 1)
		return EXIT_SUCCESS;
	snprintf(folder, sizeof(folder), "%s/prov/verve/test/fuzz/corpus/" CORPUS,
		 srcdir ? srcdir : ".");
	count = scandir(folder, &entries, is_visible, alphasort);
	if (count <= 0) {
		fprintf(stderr, "there is no corpus in %s\n", folder);
		return EXIT_FAILURE;
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		run(path);
		free(entries[i]);
	}
	free(entries);
	return EXIT_SUCCESS;
}
