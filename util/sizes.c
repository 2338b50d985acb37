/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sizes: the bounds of msg/send.c and msg/rndv.c, and what the device grants of them. */
#include "sizes.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "api/attr.h"
#include "api/info.h"
#include "base/config.h"
#include "devices.h"
#include "net/cq.h"
#include "net/qp.h"
#include "net/srq.h"
#include "settings.h"
#include "tune.h"
#include "xport/open.h"
#include "xport/transfer.h"
#include "xport/wire.h"

enum { DEPTH = 16 };

/* Opens a queue pair like a connection's, to read the granted attributes. */
static int measure_qp(struct verve_net_device *dev, size_t *granted)
{
	struct verve_net_qp_attr attr = {
		.send_wr = DEPTH, .send_sge = 1, .inline_size = verve_config.inline_size};
	struct verve_net_qp *qp;
	int ret;

	ret = verve_net_cq_open(dev, DEPTH, NULL, 0, &attr.send_cq);
	if (ret)
		return ret;
	attr.recv_cq = attr.send_cq;
	ret = verve_net_srq_open(dev, DEPTH, &attr.srq);
	if (ret)
		goto out_cq;
	ret = verve_net_qp_open(dev, &attr, 0, &qp);
	if (ret)
		goto out_srq;
	*granted = verve_net_qp_inline_size(qp);
	verve_net_qp_close(qp);
out_srq:
	verve_net_srq_close(attr.srq);
out_cq:
	verve_net_cq_close(attr.send_cq);
	return ret;
}

int verve_sizes_measure(const struct verve_net_port *port, struct verve_sizes_limits *limits)
{
	struct verve_net_device *dev;
	struct verve_mr_costs costs;
	int ret = verve_net_device_open(port->device, port->port_num, NULL, &dev);

	if (ret)
		return ret;
	limits->eager = verve_xport_eager_size(dev, verve_config.eager_size);
	limits->read = verve_transfer_read_size(port);
	verve_tune_measure(dev, &costs);
	verve_mr_costs_compare(&costs, &limits->crossover);
	ret = measure_qp(dev, &limits->granted);
	verve_net_device_close(dev);
	return ret;
}

/* Empty ranges are left out: thresholds may cross. */
static void add(struct verve_sizes *sizes, uint64_t to, const char *what, const char *how,
		const char *source)
{
	struct verve_size *row = &sizes->row[sizes->count];
	uint64_t from = sizes->count ? row[-1].to + 1 : 0;

	if (to < from)
		return;
	*row = (struct verve_size){.from = from, .to = to, .what = what, .how = how};
	snprintf(row->source, sizeof(row->source), "%s", source);
	sizes->count++;
}

/* What decides where rendezvous begins. */
static const char *source_of_rendezvous(const struct verve_sizes_limits *limits)
{
	if (limits->crossover.rendezvous <= limits->eager)
		return verve_config_is_auto(verve_config.rendezvous_size) ?
			       "measured: from there on a read costs less" :
			       verve_settings_source_of(&verve_config.rendezvous_size);
	return limits->eager < verve_config.eager_size ?
		       "device limit" : verve_settings_source_of(&verve_config.eager_size);
}

/* Messages that are sent at once, but not inline. */
static void add_eager(struct verve_sizes *sizes, const struct verve_sizes_limits *limits)
{
	const struct verve_mr_crossover *crossover = &limits->crossover;
	size_t end = limits->eager, copied, direct;

	if (crossover->rendezvous <= end)
		end = crossover->rendezvous - 1;
	copied = crossover->described <= end ? crossover->described - 1 : end;
	direct = crossover->offer_kept <= end ? crossover->offer_kept - 1 : end;
	add(sizes, copied, "copied", "into a registered buffer, buffer free at once",
	    copied < end ? "measured: up to there a copy costs less" :
			   source_of_rendezvous(limits));
	add(sizes, direct, "direct", "from the buffer if it is registered, else copied",
	    direct < end ? "measured: from there on a read of a kept buffer costs less" :
			   source_of_rendezvous(limits));
	add(sizes, end, "offered", "as rendezvous if the registration is kept, else as direct",
	    source_of_rendezvous(limits));
}

void verve_sizes_fill(struct verve_sizes *sizes, const struct verve_sizes_limits *limits)
{
	size_t asked = verve_config.inline_size;
	size_t used = limits->granted < asked ? limits->granted : asked;
	uint64_t eager = limits->eager, inlined;
	char source[VERVE_SIZES_TEXT_MAX];

	sizes->count = 0;
	if (used >= VERVE_WIRE_HEADER) {
		inlined = used - VERVE_WIRE_HEADER;
		snprintf(source, sizeof(source), "%s (%zu, less %d of header)",
			 used < asked ? "device limit" :
					verve_settings_source_of(&verve_config.inline_size),
			 used, VERVE_WIRE_HEADER);
		add(sizes, inlined < eager ? inlined : eager, "inline",
		    "in the work request, buffer free at once", source);
	}
	add_eager(sizes, limits);
	snprintf(source, sizeof(source), "no limit; reads of %zu: %s", limits->read,
		 verve_settings_source_of(&verve_config.read_size));
	add(sizes, UINT64_MAX, "rendezvous", "the receiver reads it from the sender's buffer",
	    source);
}

static void add_unmeasured(struct verve_report *report, const char *subject, int error)
{
	verve_report_add(report, VERVE_WARNING, subject, NULL,
			 "its sizes cannot be measured: %s", fi_strerror(-error));
}

static void print_notes(const struct verve_style *style)
{
	fprintf(style->file,
		"  messages wait at the sender once %zu of the eager size have no receive (%s); "
		"shorter ones count in proportion, and %d of up to %d bytes as one\n",
		verve_config.window, verve_settings_source_of(&verve_config.window),
		VERVE_WIRE_WEIGHT, VERVE_WIRE_SMALL);
	fprintf(style->file, "  fi_inject takes up to %zu bytes; remote CQ data and "
		"FI_DELIVERY_COMPLETE take 8 bytes each of what is inline\n",
		verve_attr_inject_size());
}

void verve_sizes_print(const struct verve_net_port *ports, size_t count,
		       const struct verve_style *style, struct verve_report *report)
{
	const char *bold = style->colour ? "\033[1m" : "", *off = style->colour ? "\033[0m" : "";
	char subject[VERVE_FINDING_TEXT_MAX], to[24];
	struct verve_sizes_limits limits;
	struct verve_sizes sizes;
	size_t printed = 0;

	for (size_t i = 0; i < count; i++) {
		int ret = ports[i].usable ? verve_sizes_measure(&ports[i], &limits) : 0;

		if (!ports[i].usable)
			continue;
		verve_devices_subject(&ports[i], subject);
		if (ret) {
			add_unmeasured(report, subject, ret);
			continue;
		}
		verve_sizes_fill(&sizes, &limits);
		fprintf(style->file, "%s%s%s: messages, bytes of payload\n", bold, subject, off);
		for (size_t j = 0; j < sizes.count; j++) {
			const struct verve_size *row = &sizes.row[j];

			snprintf(to, sizeof(to), "%" PRIu64, row->to);
			fprintf(style->file, "  %8" PRIu64 " .. %-8s  %-10s  %-48s  %s\n",
				row->from, row->to == UINT64_MAX ? "" : to, row->what, row->how,
				row->source);
		}
		printed++;
	}
	if (printed)
		print_notes(style);
}

void verve_sizes_json(const struct verve_net_port *ports, size_t count, struct verve_json *json,
		      const char *key, struct verve_report *report)
{
	char subject[VERVE_FINDING_TEXT_MAX];
	struct verve_sizes_limits limits;
	struct verve_sizes sizes;

	verve_json_begin(json, key, '[');
	for (size_t i = 0; i < count; i++) {
		int ret = ports[i].usable ? verve_sizes_measure(&ports[i], &limits) : 0;

		if (!ports[i].usable)
			continue;
		verve_devices_subject(&ports[i], subject);
		if (ret) {
			add_unmeasured(report, subject, ret);
			continue;
		}
		verve_sizes_fill(&sizes, &limits);
		for (size_t j = 0; j < sizes.count; j++) {
			const struct verve_size *row = &sizes.row[j];

			verve_json_begin(json, NULL, '{');
			verve_json_text(json, "port", subject);
			verve_json_number(json, "from", row->from);
			if (row->to == UINT64_MAX)
				verve_json_text(json, "to", NULL);
			else
				verve_json_number(json, "to", row->to);
			verve_json_text(json, "what", row->what);
			verve_json_text(json, "source", row->source);
			verve_json_end(json, '}');
		}
	}
	verve_json_end(json, ']');
}
