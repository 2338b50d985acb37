/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_info: is verve used on this host, why not, and what would it do? See verve_info(1). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "ask.h"
#include "devices.h"
#include "host.h"
#include "library.h"
#include "net/device.h"
#include "options.h"
#include "peer.h"
#include "report.h"
#include "settings.h"
#include "sizes.h"
#include "told.h"
#include "tune.h"

/* All that is looked at. */
struct look {
	struct verve_options options;
	struct verve_style style;
	struct verve_net_port *ports;
	size_t count;
	struct verve_report host, as, peer;
	bool offered; /* by libfabric to applications */
	bool has_key; /* or needs none */
	bool used;    /* it is offered, and a domain opens */
};

static void print_told(void)
{
	char line[VERVE_TOLD_LINE_MAX];

	for (size_t i = 0; i < verve_told_count(); i++)
		fprintf(stderr, "verve: %s\n", verve_told_line(i, line));
	verve_told_clear();
}

/* The order is the one in which libfabric, the kernel and the provider come to decide. */
static int look_at_host(struct look *look)
{
	size_t before;
	int ret;

	/* First, because libfabric, when it starts, forgets all variables that were defined. */
	look->offered = verve_library_report(&look->host);
	verve_settings_load(&look->host);
	look->has_key = verve_host_report_key(&look->host);
	before = verve_report_count(&look->host, VERVE_USED);
	verve_told_clear();
	ret = verve_net_port_list(&look->ports, &look->count);
	if (ret) {
		fprintf(stderr, "verve_info: cannot list devices: %s\n", fi_strerror(-ret));
		return ret;
	}
	if (look->options.verbose)
		print_told();
	verve_devices_report(&look->host, look->ports, look->count);
	if (look->options.verbose)
		print_told();
	look->used = look->offered && look->has_key &&
		     verve_report_count(&look->host, VERVE_USED) > before;
	verve_host_report_missing(&look->host, "", look->ports, look->count);
	verve_host_report_memlock(&look->host);
	verve_host_report_watch(&look->host);
	return 0;
}

static void print_text(struct look *look)
{
	if (look->options.as)
		verve_report_print(&look->as, &look->style);
	if (look->options.to || look->options.listen)
		verve_report_print(&look->peer, &look->style);
	if (look->options.as || look->options.to || look->options.listen)
		return;
	if (look->options.config)
		verve_settings_print(&look->style);
	if (look->options.sizes)
		verve_sizes_print(look->ports, look->count, &look->style, &look->host);
	if (look->options.tune)
		verve_tune_print(look->ports, look->count, &look->style, &look->host);
	if (look->options.config || look->options.sizes || look->options.tune)
		putc('\n', look->style.file);
	verve_report_print(&look->host, &look->style);
	fprintf(look->style.file, "verve %s\n",
		look->used ? "is used" : "is not used on this host");
}

static void print_json(struct look *look)
{
	struct verve_json json = {.file = look->style.file};

	verve_json_begin(&json, NULL, '{');
	verve_json_text(&json, "version", VERSION);
	verve_json_bool(&json, "used", look->used);
	if (look->options.config)
		verve_settings_json(&json, "config");
	if (look->options.sizes)
		verve_sizes_json(look->ports, look->count, &json, "sizes", &look->host);
	if (look->options.tune)
		verve_tune_json(look->ports, look->count, &json, "tune", &look->host);
	if (look->options.as)
		verve_report_json(&look->as, &json, "as");
	if (look->options.to || look->options.listen)
		verve_report_json(&look->peer, &json, "peer");
	verve_report_json(&look->host, &json, "findings");
	verve_json_end(&json, '}');
}

static bool has_usable(const struct look *look)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->ports[i].usable)
			return true;
	return false;
}

static void ask(struct look *look)
{
	verve_ask_report(&look->as, look->options.as, look->ports, look->count);
	/* What verve would answer is never heard, or of no use. */
	if (!look->offered && verve_ask_is_direct(look->options.as))
		verve_library_report(&look->as);
	if (!look->has_key)
		verve_host_report_key(&look->as);
	/* Where none is usable, the answers are those of another host, which was said. */
	if (look->offered && look->has_key && !look->used && has_usable(look))
		verve_report_add(&look->as, VERVE_REFUSED, "ports", "verve_info",
				 "none is used here");
}

static enum verve_exit answer(struct look *look)
{
	bool yes = look->used;

	if (look->options.as) {
		ask(look);
		yes = !verve_report_count(&look->as, VERVE_REFUSED);
	}
	/* The tests of the way are libfabric's calls: without verve they find no address. */
	if ((look->options.to || look->options.listen) && !look->offered)
		verve_library_report(&look->peer);
	if (look->options.to)
		yes = verve_peer_test(&look->peer, look->options.to, look->options.from);
	if (look->options.listen)
		/* The object comes at the end, and stands alone. */
		yes = verve_peer_listen(&look->peer, look->options.from,
					look->options.json ? stderr : stdout);
	if (look->options.json)
		print_json(look);
	else
		print_text(look);
	return yes ? VERVE_EXIT_YES : VERVE_EXIT_NO;
}

int main(int argc, char **argv)
{
	struct look look = {0};
	int status;

	if (!verve_options_parse(argc, argv, &look.options, &status))
		return status;
	if (look.options.to && !verve_peer_is_address(look.options.to)) {
		fprintf(stderr, "verve_info: --to=%s is not HOST or HOST:PORT, with a port from 1 "
			"to 65535\n", look.options.to);
		return VERVE_EXIT_USAGE;
	}
	look.style = (struct verve_style){
		.file = stdout, .colour = look.options.colour, .verbose = look.options.verbose};
	/*
	 * A peer that does not answer within this time is not asked again, unless the user sets the
	 * variable.
	 */
	if (look.options.to)
		setenv("FI_VERVE_CONNECT_TIMEOUT", "5000", 0);
	status = look_at_host(&look) ? VERVE_EXIT_USAGE : answer(&look);
	if (look.count)
		verve_net_port_list_free(look.ports, look.count);
	verve_report_fini(&look.host);
	verve_report_fini(&look.as);
	verve_report_fini(&look.peer);
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "verve_info: cannot write: %s\n", strerror(errno));
	return VERVE_EXIT_USAGE;
}
