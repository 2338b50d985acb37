/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Printing JSON. */
#include "json.h"
#include "stat_print.h"

static void print_metric(struct verve_json *json, const struct verve_stat_entry *entry,
			 const struct verve_stat_metric *metric)
{
	if (!metric->labels) {
		verve_json_number(json, metric->name, entry->page.values[metric->first]);
		return;
	}
	verve_json_begin(json, metric->name, '{');
	for (uint32_t i = 0; i < metric->count; i++)
		if (metric->labels[i])
			verve_json_number(json, metric->labels[i],
					  entry->page.values[metric->first + i]);
	verve_json_end(json, '}');
}

static void print_events(struct verve_json *json, const struct verve_stat_entry *entry,
			 uint64_t now)
{
	struct verve_page_event events[VERVE_PAGE_EVENTS];
	size_t count = verve_stat_events(entry, events);

	verve_json_begin(json, "events", '[');
	for (size_t i = 0; i < count; i++) {
		verve_json_begin(json, NULL, '{');
		verve_json_number(json, "age_ns", now > events[i].when ? now - events[i].when : 0);
		verve_json_text(json, "event", verve_stat_event_names[events[i].what]);
		verve_json_number(json, "conn_id", events[i].id);
		verve_json_number(json, "error", events[i].error);
		verve_json_number(json, "status", events[i].status);
		verve_json_end(json, '}');
	}
	verve_json_end(json, ']');
}

static void print_entry(struct verve_json *json, const struct verve_stat_entry *entry, uint64_t now)
{
	size_t count;
	const struct verve_stat_metric *metrics = verve_stat_metrics(entry->page.kind, &count);
	bool is_peer = entry->page.kind == VERVE_STAT_KIND_PEER;

	verve_json_begin(json, NULL, '{');
	verve_json_text(json, "kind", verve_stat_kind_names[entry->page.kind]);
	verve_json_number(json, "id", entry->page.id);
	verve_json_number(json, "owner", entry->page.owner);
	verve_json_text(json, "name", entry->page.name);
	if (is_peer)
		verve_json_text(json, "state_name", verve_stat_state_name(entry));
	verve_json_text(json, is_peer ? "last_error" : "device", entry->page.text);
	for (size_t i = 0; i < count; i++)
		print_metric(json, entry, &metrics[i]);
	if (is_peer)
		print_events(json, entry, now);
	verve_json_end(json, '}');
}

static void print_process(struct verve_json *json, const struct verve_stat_process *process,
			  uint64_t now)
{
	verve_json_begin(json, NULL, '{');
	verve_json_number(json, "uid", process->uid);
	verve_json_number(json, "pid", process->pid);
	verve_json_text(json, "page", process->name);
	verve_json_text(json, "command", process->command);
	verve_json_number(json, "hidden", process->hidden);
	verve_json_number(json, "unread", process->unread);
	verve_json_begin(json, "entries", '[');
	for (size_t i = 0; i < process->count; i++)
		print_entry(json, &process->entries[i], now);
	verve_json_end(json, ']');
	verve_json_end(json, '}');
}

/* One counter of queue pairs. */
static void print_qp_counter(struct verve_json *json, const struct verve_stat_host *host,
			     const struct verve_stat_qp_counter *counter)
{
	verve_json_begin(json, NULL, '{');
	verve_json_text(json, "device", counter->device);
	verve_json_number(json, "port", counter->port);
	verve_json_number(json, "id", counter->id);
	verve_json_begin(json, "queue_pairs", '[');
	for (size_t i = 0; i < counter->qp_count; i++) {
		const struct verve_stat_entry *peer = verve_stat_peer_of(
			host, counter->device, counter->port, counter->qps[i]);

		verve_json_begin(json, NULL, '{');
		verve_json_number(json, "qp", counter->qps[i]);
		verve_json_text(json, "peer", peer ? peer->page.name : NULL);
		verve_json_end(json, '}');
	}
	verve_json_end(json, ']');
	verve_json_begin(json, "values", '{');
	for (size_t i = 0; i < counter->value_count; i++)
		verve_json_number(json, counter->values[i].name, counter->values[i].value);
	verve_json_end(json, '}');
	verve_json_end(json, '}');
}

void verve_stat_print_json(FILE *file, const struct verve_stat_look *look)
{
	struct verve_json json = {.file = file};

	verve_json_begin(&json, NULL, '{');
	verve_json_text(&json, "version", VERSION);
	verve_json_begin(&json, "processes", '[');
	for (size_t i = 0; i < look->host.count; i++)
		print_process(&json, &look->host.processes[i], look->host.when);
	verve_json_end(&json, ']');
	verve_json_begin(&json, "devices", '[');
	for (size_t i = 0; i < look->device.count; i++) {
		const struct verve_stat_counter *counter = &look->device.counters[i];

		verve_json_begin(&json, NULL, '{');
		verve_json_text(&json, "device", counter->device);
		verve_json_text(&json, "port", counter->port);
		verve_json_text(&json, "counter", counter->name);
		verve_json_number(&json, "value", counter->value);
		verve_json_end(&json, '}');
	}
	verve_json_end(&json, ']');
	verve_json_begin(&json, "queue_pair_counters", '[');
	for (size_t i = 0; i < look->qps.count; i++)
		print_qp_counter(&json, &look->host, &look->qps.counters[i]);
	verve_json_end(&json, ']');
	verve_json_end(&json, '}');
}
