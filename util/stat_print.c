/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Printing for people. */
#include "stat_print.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "net/cq.h"

static uint64_t sum(const struct verve_stat_entry *entry, int first, int count)
{
	uint64_t total = 0;

	for (int i = 0; i < count; i++)
		total += entry->page.values[first + i];
	return total;
}

/* What is printed of each peer: sums, or how much they grow in a second. */
enum { SENT, ARRIVED, REQUESTS, BYTES_OUT, BYTES_IN, COLUMNS };

static void columns_of(const struct verve_stat_entry *peer, uint64_t *columns)
{
	const AO_t *values = peer->page.values;

	columns[SENT] = sum(peer, VERVE_STAT_PEER_SENT, VERVE_WIRE_TYPES);
	columns[ARRIVED] = sum(peer, VERVE_STAT_PEER_ARRIVED, VERVE_WIRE_TYPES);
	columns[REQUESTS] = sum(peer, VERVE_STAT_PEER_REQUESTS, 3);
	columns[BYTES_OUT] = values[VERVE_STAT_PEER_SENT_BYTES] +
			     sum(peer, VERVE_STAT_PEER_REQUEST_BYTES + 1, 2);
	columns[BYTES_IN] = values[VERVE_STAT_PEER_ARRIVED_BYTES] +
			    values[VERVE_STAT_PEER_REQUEST_BYTES];
}

/* A page may say anything: a rate beyond the range of its type is the largest one. */
static uint64_t rate_of(uint64_t grown, double seconds)
{
	double rate = seconds > 0 ? grown / seconds + 0.5 : 0;

	return rate < 0x1p64 ? rate : UINT64_MAX;
}

/* A peer that was not there before has grown from zero; one that was not read has no rate. */
static void rates_of(const struct verve_stat_look *look, const struct verve_stat_look *before,
		     const struct verve_stat_process *process, const struct verve_stat_entry *peer,
		     uint64_t *columns)
{
	const struct verve_stat_entry *old = verve_stat_before(&before->host, process, peer);
	double seconds = (look->host.when - before->host.when) / 1e9;
	uint64_t then[COLUMNS] = {0};

	columns_of(peer, columns);
	if (old)
		columns_of(old, then);
	else if (!verve_stat_was_read(&before->host, process, peer))
		columns_of(peer, then);
	for (int i = 0; i < COLUMNS; i++)
		columns[i] = columns[i] > then[i] ? rate_of(columns[i] - then[i], seconds) : 0;
}

/* Every number that is not zero, by its name. */
static void print_values(FILE *file, const struct verve_stat_entry *entry, const char *indent)
{
	size_t count;
	const struct verve_stat_metric *metrics = verve_stat_metrics(entry->page.kind, &count);
	bool any = false;

	for (size_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < (metrics[i].labels ? metrics[i].count : 1); j++) {
			uint64_t value = entry->page.values[metrics[i].first + j];

			if (!value || (metrics[i].labels && !metrics[i].labels[j]))
				continue;
			fprintf(file, "%s%s%s%s %" PRIu64, any ? ", " : indent, metrics[i].name,
				metrics[i].labels ? "." : "",
				metrics[i].labels ? metrics[i].labels[j] : "", value);
			any = true;
		}
	if (any)
		putc('\n', file);
}

static void print_peer(FILE *file, const struct verve_stat_entry *peer, const uint64_t *columns)
{
	const AO_t *values = peer->page.values;

	fprintf(file, "    %-24s %-10s %7zu %7zu %6zu", peer->page.name,
		verve_stat_state_name(peer), values[VERVE_STAT_PEER_CREDITS],
		values[VERVE_STAT_PEER_PENDING], values[VERVE_STAT_PEER_ACTIVE]);
	for (int i = 0; i < COLUMNS; i++)
		fprintf(file, " %11" PRIu64, columns[i]);
	fprintf(file, " %7zu %8zu %8zu", values[VERVE_STAT_PEER_REPLAYS],
		values[VERVE_STAT_PEER_REPEATED], values[VERVE_STAT_PEER_QP_NUM]);
	if (values[VERVE_STAT_PEER_ERROR])
		fprintf(file, "  %s (%s)", peer->page.text,
			fi_strerror(values[VERVE_STAT_PEER_ERROR] & 0xffff));
	putc('\n', file);
}

static void print_peers(FILE *file, const struct verve_stat_look *look,
			const struct verve_stat_look *before,
			const struct verve_stat_process *process,
			const struct verve_stat_entry *endpoint, bool verbose)
{
	static const char *const heads[COLUMNS] = {"sent", "arrived", "requests", "bytes out",
						   "bytes in"};
	size_t count;
	struct verve_stat_entry *const *peers = verve_stat_peers(process, endpoint, &count);

	if (!count)
		return;
	fprintf(file, "    %-24s %-10s %7s %7s %6s", "peer", "state", "credits", "pending",
		"active");
	for (int i = 0; i < COLUMNS; i++)
		fprintf(file, " %9s%s", heads[i], before ? "/s" : "  ");
	fprintf(file, " %7s %8s %8s  %s\n", "replays", "repeated", "qp", "last error");
	for (size_t i = 0; i < count; i++) {
		uint64_t columns[COLUMNS];

		if (before)
			rates_of(look, before, process, peers[i], columns);
		else
			columns_of(peers[i], columns);
		print_peer(file, peers[i], columns);
		if (verbose)
			print_values(file, peers[i], "      ");
	}
}

static void print_process(FILE *file, const struct verve_stat_look *look,
			  const struct verve_stat_look *before,
			  const struct verve_stat_process *process, bool verbose)
{
	fprintf(file, "process %d %s, user %u", (int)process->pid, process->command,
		(unsigned)process->uid);
	if (process->hidden)
		fprintf(file, ", %" PRIu64 " endpoints or peers are not shown", process->hidden);
	if (process->unread)
		fprintf(file, ", %u entries are not read", process->unread);
	putc('\n', file);
	for (size_t i = 0; i < process->count; i++) {
		const struct verve_stat_entry *entry = &process->entries[i];

		if (entry->page.kind == VERVE_STAT_KIND_PEER)
			continue;
		fprintf(file, "  %s %s%s%s\n", verve_stat_kind_names[entry->page.kind],
			entry->page.name, entry->page.text[0] ? " on " : "", entry->page.text);
		print_values(file, entry, "    ");
		if (entry->page.kind == VERVE_STAT_KIND_ENDPOINT)
			print_peers(file, look, before, process, entry, verbose);
	}
}

/* A counter that is smaller than before has begun anew: the driver or the device was replaced. */
static uint64_t grown(const struct verve_stat_device *before,
		      const struct verve_stat_counter *counter)
{
	for (size_t i = 0; before && i < before->count; i++) {
		const struct verve_stat_counter *old = &before->counters[i];

		if (!strcmp(old->device, counter->device) && !strcmp(old->port, counter->port) &&
		    !strcmp(old->name, counter->name))
			return counter->value - (counter->value >= old->value ? old->value : 0);
	}
	return counter->value;
}

static void print_devices(FILE *file, const struct verve_stat_device *device,
			  const struct verve_stat_device *before)
{
	const struct verve_stat_counter *last = NULL;

	for (size_t i = 0; i < device->count; i++) {
		const struct verve_stat_counter *counter = &device->counters[i];
		uint64_t value = grown(before, counter);
		bool more = last && !strcmp(last->device, counter->device) &&
			    !strcmp(last->port, counter->port);

		if (!value)
			continue;
		if (more)
			fputs(", ", file);
		else
			fprintf(file, "%sdevice %s:%s%s ", last ? "\n" : "", counter->device,
				counter->port, before ? " since the last look" : "");
		fprintf(file, "%s %" PRIu64, counter->name, value);
		last = counter;
	}
	if (last)
		putc('\n', file);
}

/* Which queue pairs, and whose. */
static void print_qp_owners(FILE *file, const struct verve_stat_host *host,
			    const struct verve_stat_qp_counter *counter)
{
	for (size_t i = 0; i < counter->qp_count; i++) {
		const struct verve_stat_entry *peer = verve_stat_peer_of(
			host, counter->device, counter->port, counter->qps[i]);

		fprintf(file, "%s qp %u", i ? "," : "", counter->qps[i]);
		if (peer)
			fprintf(file, " to %s", peer->page.name);
	}
}

static void print_qps(FILE *file, const struct verve_stat_look *look,
		      const struct verve_stat_look *before)
{
	for (size_t i = 0; i < look->qps.count; i++) {
		const struct verve_stat_qp_counter *counter = &look->qps.counters[i];
		bool any = false;

		for (size_t j = 0; j < counter->value_count; j++) {
			const char *name = counter->values[j].name;
			uint64_t value = counter->values[j].value, old = 0;

			if (before)
				old = verve_stat_qps_before(&before->qps, counter, name);
			/* As with a device's counters. */
			value -= value >= old ? old : 0;
			if (!value)
				continue;
			if (!any) {
				fprintf(file, "device %s:%u,", counter->device, counter->port);
				print_qp_owners(file, &look->host, counter);
				fputs(before ? ", since the last look" : "", file);
			}
			fprintf(file, "%s %s %" PRIu64, any ? "," : ":", name, value);
			any = true;
		}
		if (any)
			putc('\n', file);
	}
}

void verve_stat_print(FILE *file, const struct verve_stat_look *look,
		      const struct verve_stat_look *before, bool verbose)
{
	for (size_t i = 0; i < look->host.count; i++)
		print_process(file, look, before, &look->host.processes[i], verbose);
	print_devices(file, &look->device, before ? &before->device : NULL);
	print_qps(file, look, before);
	if (!look->host.count && !look->host.foreign)
		fputs("no process of yours on this host has an endpoint of verve\n", file);
}

/*
 * "10.0.0.1" is the host of "10.0.0.1:4791"; "fd00::1", with brackets or without, that of
 * "[fd00::1]:4791".
 */
static bool is_meant(const char *name, const char *peer)
{
	size_t len = strlen(peer), host_len;
	const char *port = strrchr(name, ':'), *host = name;

	if (!strcmp(name, peer))
		return true;
	if (!port)
		return false;
	host_len = (size_t)(port - name);
	if (*peer != '[' && *host == '[' && host_len > 2) {
		host++;
		host_len -= 2;
	}
	return host_len == len && !strncmp(host, peer, len);
}

static void print_peer_events(FILE *file, const struct verve_stat_entry *peer, uint64_t now)
{
	struct verve_page_event events[VERVE_PAGE_EVENTS];
	size_t count = verve_stat_events(peer, events);

	for (size_t i = 0; i < count; i++) {
		const struct verve_page_event *event = &events[i];

		fprintf(file, "  %12.3f s  ", ((double)event->when - now) / 1e9);
		if (event->id)
			fprintf(file, "connection %#x", event->id);
		else
			fputs("this endpoint", file);
		fprintf(file, " %s", verve_stat_event_names[event->what]);
		if (event->error)
			fprintf(file, ": %s", fi_strerror(event->error & 0xffff));
		if (event->status)
			fprintf(file, ", %s", verve_net_wc_str(event->status));
		putc('\n', file);
	}
	if (peer->page.values[VERVE_STAT_PEER_ERROR])
		fprintf(file, "  last error: %s (%s)\n", peer->page.text,
			fi_strerror(peer->page.values[VERVE_STAT_PEER_ERROR] & 0xffff));
}

size_t verve_stat_print_events(FILE *file, const struct verve_stat_look *look, const char *peer)
{
	size_t count = 0;

	for (size_t i = 0; i < look->host.count; i++) {
		const struct verve_stat_process *process = &look->host.processes[i];

		for (size_t j = 0; j < process->count; j++) {
			const struct verve_stat_entry *entry = &process->entries[j];
			const struct verve_stat_entry *owner = verve_stat_owner(process, entry);

			if (entry->page.kind != VERVE_STAT_KIND_PEER ||
			    !is_meant(entry->page.name, peer))
				continue;
			fprintf(file, "process %d %s, endpoint %s, peer %s, %s\n",
				(int)process->pid, process->command, owner ? owner->page.name : "?",
				entry->page.name, verve_stat_state_name(entry));
			print_peer_events(file, entry, look->host.when);
			count++;
		}
	}
	return count;
}
