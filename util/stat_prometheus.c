/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Printing for Prometheus. All samples of a metric stand together, so the metrics are the outer
 * loop. A sample is unique by the user, the name of the page's file, and the place in the page:
 * none of these is what a page says of itself.
 */
#include <inttypes.h>

#include "stat_print.h"

static void print_label(FILE *file, const char *lead, const char *name, const char *value)
{
	fprintf(file, "%s%s=\"", lead, name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			putc('\\', file);
		putc(*value, file);
	}
	putc('"', file);
}

static void print_head(FILE *file, const char *name, const char *help, bool counter)
{
	fprintf(file, "# HELP %s %s.\n# TYPE %s %s\n", name, help, name,
		counter ? "counter" : "gauge");
}

static void print_process_labels(FILE *file, const struct verve_stat_process *process)
{
	fprintf(file, "{uid=\"%u\",pid=\"%d\"", (unsigned)process->uid, (int)process->pid);
	print_label(file, ",", "page", process->name);
	print_label(file, ",", "command", process->command);
}

static void print_entry_labels(FILE *file, const struct verve_stat_process *process,
			       const struct verve_stat_entry *entry)
{
	const struct verve_stat_entry *owner = verve_stat_owner(process, entry);

	print_process_labels(file, process);
	fprintf(file, ",place=\"%u\"", entry->index);
	print_label(file, ",", verve_stat_kind_names[entry->page.kind], entry->page.name);
	if (owner)
		print_label(file, ",", verve_stat_kind_names[owner->page.kind], owner->page.name);
}

static void print_samples(FILE *file, const char *name, const struct verve_stat_process *process,
			  const struct verve_stat_entry *entry,
			  const struct verve_stat_metric *metric)
{
	uint32_t count = metric->labels ? metric->count : 1;

	for (uint32_t i = 0; i < count; i++) {
		if (metric->labels && !metric->labels[i])
			continue;
		fputs(name, file);
		print_entry_labels(file, process, entry);
		if (metric->labels)
			print_label(file, ",", "type", metric->labels[i]);
		fprintf(file, "} %" PRIu64 "\n", (uint64_t)entry->page.values[metric->first + i]);
	}
}

static void print_metric(FILE *file, const struct verve_stat_host *host, enum verve_stat_kind kind,
			 const struct verve_stat_metric *metric)
{
	char name[2 * VERVE_STAT_NAME];

	snprintf(name, sizeof(name), "verve_%s_%s%s", verve_stat_kind_names[kind], metric->name,
		 metric->counter ? "_total" : "");
	print_head(file, name, metric->help, metric->counter);
	for (size_t i = 0; i < host->count; i++) {
		const struct verve_stat_process *process = &host->processes[i];

		for (size_t j = 0; j < process->count; j++)
			if (process->entries[j].page.kind == kind)
				print_samples(file, name, process, &process->entries[j], metric);
	}
}

static void print_process(FILE *file, const char *name, const struct verve_stat_process *process,
			  uint64_t value)
{
	fputs(name, file);
	print_process_labels(file, process);
	fprintf(file, "} %" PRIu64 "\n", value);
}

static void print_processes(FILE *file, const struct verve_stat_host *host)
{
	const char *hidden = "verve_process_hidden", *unread = "verve_process_unread";

	print_head(file, hidden, "Endpoints and peers that have no place in the page", false);
	for (size_t i = 0; i < host->count; i++)
		print_process(file, hidden, &host->processes[i], host->processes[i].hidden);
	print_head(file, unread, "Entries of the page that were not read", false);
	for (size_t i = 0; i < host->count; i++)
		print_process(file, unread, &host->processes[i], host->processes[i].unread);
}

static void print_devices(FILE *file, const struct verve_stat_device *device)
{
	const char *name = "verve_device_counter_total";

	print_head(file, name, "The kernel's counters of a port of a device", true);
	for (size_t i = 0; i < device->count; i++) {
		const struct verve_stat_counter *counter = &device->counters[i];

		fputs(name, file);
		print_label(file, "{", "device", counter->device);
		print_label(file, ",", "port", counter->port);
		print_label(file, ",", "counter", counter->name);
		fprintf(file, "} %" PRIu64 "\n", counter->value);
	}
}

/* The peer is named where the counter stands for its queue pair alone. */
static void print_qps(FILE *file, const struct verve_stat_look *look)
{
	const char *name = "verve_queue_pair_counter_total";

	if (look->qps.count)
		print_head(file, name, "The kernel's counters that stand for queue pairs", true);
	for (size_t i = 0; i < look->qps.count; i++) {
		const struct verve_stat_qp_counter *counter = &look->qps.counters[i];
		const struct verve_stat_entry *peer =
			counter->qp_count == 1 ?
				verve_stat_peer_of(&look->host, counter->device, counter->port,
						   counter->qps[0]) : NULL;

		for (size_t j = 0; j < counter->value_count; j++) {
			fputs(name, file);
			print_label(file, "{", "device", counter->device);
			fprintf(file, ",port=\"%u\",id=\"%u\"", counter->port, counter->id);
			print_label(file, ",", "peer", peer ? peer->page.name : "");
			print_label(file, ",", "counter", counter->values[j].name);
			fprintf(file, "} %" PRIu64 "\n", counter->values[j].value);
		}
	}
}

void verve_stat_print_prometheus(FILE *file, const struct verve_stat_look *look)
{
	print_processes(file, &look->host);
	for (int kind = 1; kind < VERVE_STAT_KINDS; kind++) {
		size_t count;
		const struct verve_stat_metric *metrics = verve_stat_metrics(kind, &count);

		for (size_t i = 0; i < count; i++)
			print_metric(file, &look->host, kind, &metrics[i]);
	}
	print_devices(file, &look->device);
	print_qps(file, look);
}
