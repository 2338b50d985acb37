/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Library: asks libfabric for its providers; where verve is missing, looks for the cause. */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <rdma/fabric.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/attr.h"
#include "api/prov.h"

static const char dso[] = "libverve-fi.so";

/* The version of verve that libfabric lists. False: libfabric does not list verve. */
static bool find_provider(uint32_t *version)
{
	struct fi_info *list = NULL;
	bool found = false;

	if (fi_getinfo(fi_version(), NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list))
		return false;
	for (const struct fi_info *info = list; info && !found; info = info->next) {
		found = info->fabric_attr->prov_name &&
			!strcmp(info->fabric_attr->prov_name, verve_prov.name);
		*version = info->fabric_attr->prov_version;
	}
	fi_freeinfo(list);
	return found;
}

/* FI_PROVIDER: names in any case, with commas between; "^" before them all: not these. */
static bool is_hidden(const char *filter)
{
	bool negated, named = false;
	char *copy, *rest, *name;

	if (!filter || !*filter)
		return false;
	negated = *filter == '^';
	copy = strdup(filter + negated);
	if (!copy)
		return false;
	for (rest = copy; (name = strsep(&rest, ","));)
		named |= !strcasecmp(name, verve_prov.name);
	free(copy);
	return named == negated;
}

/* The folder in which libfabric looks for providers by default: beside itself. */
static void default_folder(char *folder)
{
	Dl_info library;
	int len = 0;

	if (dladdr((void *)fi_getinfo, &library) && library.dli_fname) {
		const char *slash = strrchr(library.dli_fname, '/');

		len = slash ? (int)(slash - library.dli_fname) : 0;
		snprintf(folder, PATH_MAX, "%.*s/libfabric", len, library.dli_fname);
	}
	if (!len)
		snprintf(folder, PATH_MAX, "%s", PROVIDERDIR);
}

/*
 * A folder of FI_PROVIDER_PATH, or the file itself (libfabric 2.x: "@" before it, "+" before the
 * whole). True: path names the file.
 */
static bool find_in(const char *entry, char *path)
{
	entry += strspn(entry, "+@");
	if (!*entry)
		return false;
	snprintf(path, PATH_MAX, "%s/%s", entry, dso);
	if (!access(path, F_OK))
		return true;
	snprintf(path, PATH_MAX, "%s", entry);
	if (strstr(entry, dso) && !access(path, F_OK))
		return true;
	*path = '\0';
	return false;
}

/* The file that libfabric would load; false: none, and searched says where. */
static bool find_file(char *path, char *searched)
{
	const char *variable = getenv("FI_PROVIDER_PATH");
	char *copy, *rest, *entry;
	bool found = false;

	if (!variable || *variable == '+') {
		default_folder(searched);
		if (find_in(searched, path) || !variable)
			return *path;
	}
	snprintf(searched, PATH_MAX, "FI_PROVIDER_PATH=%s", variable);
	copy = strdup(variable);
	for (rest = copy; copy && !found && (entry = strsep(&rest, ":"));)
		found = find_in(entry, path);
	free(copy);
	return found;
}

/* Why the file is no provider for this libfabric. False: nothing is wrong with it as such. */
static bool report_unloadable(struct verve_report *report, const char *path, const char *subject)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	char remedy[PATH_MAX + 16];
	const char *error = handle ? NULL : dlerror();
	bool is_provider = handle && dlsym(handle, "fi_prov_ini");

	if (handle)
		dlclose(handle);
	if (is_provider)
		return false;
	snprintf(remedy, sizeof(remedy), "ldd -r %s", path);
	if (error && !strncmp(error, path, strlen(path)))
		error += strlen(path) + strspn(error + strlen(path), ": ");
	verve_report_add(report, VERVE_REFUSED, subject, remedy, "%s cannot be loaded (%s)", path,
			 error ? error : "no fi_prov_ini in it");
	return true;
}

static void report_hidden(struct verve_report *report, const char *subject)
{
	verve_report_add(report, VERVE_REFUSED, subject, "export FI_PROVIDER=verve",
			 "FI_PROVIDER=%s hides verve", getenv("FI_PROVIDER"));
}

static void explain(struct verve_report *report, const char *subject)
{
	char path[PATH_MAX] = "", searched[PATH_MAX + 32] = "", remedy[PATH_MAX + 32];

	if (!find_file(path, searched)) {
		if (find_in(PROVIDERDIR, path))
			snprintf(remedy, sizeof(remedy), "export FI_PROVIDER_PATH=%s", PROVIDERDIR);
		else
			snprintf(remedy, sizeof(remedy), "make install, or export "
				 "FI_PROVIDER_PATH=FOLDER that has it");
		verve_report_add(report, VERVE_REFUSED, subject, remedy,
				 "%s is not where libfabric looks (%.200s)", dso, searched);
	} else if (report_unloadable(report, path, subject)) {
		return;
	} else if (is_hidden(getenv("FI_PROVIDER"))) {
		report_hidden(report, subject);
	} else {
		verve_report_add(report, VERVE_REFUSED, subject,
				 "FI_LOG_LEVEL=warn fi_info -p verve",
				 "%s is there, and libfabric does not show verve", path);
	}
}

bool verve_library_report(struct verve_report *report)
{
	uint32_t version = 0, running = fi_version();
	char subject[64];

	snprintf(subject, sizeof(subject), "libfabric %u.%u", FI_MAJOR(running), FI_MINOR(running));
	if (!find_provider(&version)) {
		explain(report, subject);
		return false;
	}
	/* A hidden provider is among those that libfabric lists, but answers no application. */
	if (is_hidden(getenv("FI_PROVIDER"))) {
		report_hidden(report, subject);
		return false;
	}
	if (version != VERVE_PROV_VERSION)
		verve_report_add(report, VERVE_WARNING, subject, "install both from one build",
				 "it loads verve %u.%u, this tool is of %u.%u", FI_MAJOR(version),
				 FI_MINOR(version), FI_MAJOR(VERVE_PROV_VERSION),
				 FI_MINOR(VERVE_PROV_VERSION));
	verve_report_add(report, VERVE_USED, subject, NULL, "offers verve %u.%u to applications",
			 FI_MAJOR(version), FI_MINOR(version));
	return true;
}
