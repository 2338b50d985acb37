/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ask: plays the consumer: its question, its second try, and its look at the answer. */
#include "ask.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/as_rxm.h"
#include "api/info.h"
#include "base/config.h"
#include "told.h"

enum { DOMAIN_ATTR_MAX = 256 };

/* libfabric asks the provider that is named last. */
static bool is_asked(const struct consumer *consumer)
{
	const char *last = consumer->prov_name ? strrchr(consumer->prov_name, ';') : NULL;

	return !consumer->prov_name || !strcmp(last ? last + 1 : consumer->prov_name, "verve");
}

bool verve_ask_is_direct(const char *key)
{
	for (size_t i = 0; i < consumer_count; i++)
		if (!strcmp(consumers[i].key, key) && !is_asked(&consumers[i]))
			return false;
	return true;
}

/*
 * The answer of verve's own getinfo to hints. NULL: nothing fits. log keeps its line when verve
 * logs nothing.
 */
static struct fi_info *get(uint32_t version, const struct fi_info *hints,
			   const struct verve_net_port *ports, size_t count, char *log)
{
	struct fi_info *info = NULL;

	verve_told_clear();
	if (!verve_info_choose(ports, count, version, NULL, NULL, 0, hints, &info))
		return info;
	verve_told_last("nothing for these hints: ", log);
	return NULL;
}

/* Longer than the headers' structure, as a later version's is. */
static struct fi_info *alloc_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	free(hints->domain_attr);
	hints->domain_attr = calloc(1, DOMAIN_ATTR_MAX);
	if (hints->domain_attr)
		return hints;
	fi_freeinfo(hints);
	return NULL;
}

struct fi_info *verve_ask_hints(const struct consumer *consumer, const struct verve_net_port *ports,
				size_t count)
{
	struct fi_info *hints = alloc_hints(), *offered;
	char log[VERVE_TOLD_LINE_MAX];

	if (hints && consumer->adopts) {
		offered = get(FI_VERSION(0, 0), NULL, ports, count, log);
		if (!offered) {
			fi_freeinfo(hints);
			return NULL;
		}
		hints->caps = offered->caps;
		fi_freeinfo(offered);
	}
	if (hints)
		consumer->ask(hints);
	return hints;
}

int verve_ask(const struct consumer *consumer, const struct verve_net_port *ports, size_t count,
	      struct verve_answer *answer)
{
	struct fi_info *hints = verve_ask_hints(consumer, ports, count), *info;
	char log[VERVE_TOLD_LINE_MAX] = "";
	unsigned attempt = 0;

	*answer = (struct verve_answer){.verdict = CONSUMER_RUNS, .is_asked = is_asked(consumer)};
	if (!hints)
		return -FI_ENOMEM;
	for (;;) {
		info = get(consumer->version, hints, ports, count, log);
		if (info)
			break;
		answer->verdict = CONSUMER_LIMITED;
		snprintf(answer->log, sizeof(answer->log), "%s", log);
		if (!consumer->ask_less || !consumer->ask_less(hints, ++attempt))
			break;
	}
	if (!info || !answer->is_asked)
		answer->verdict = CONSUMER_REFUSED;
	answer->is_accepted = answer->verdict == CONSUMER_REFUSED || !consumer->accepts ||
			      consumer->accepts(info);
	answer->grants_events = info && info->caps & ~hints->caps & FI_RMA_EVENT;
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return 0;
}

/* libfabric itself answers the consumer, with verve under the name of ofi_rxm. */
static bool alias_answers(const struct consumer *consumer, const struct verve_net_port *ports,
			  size_t count)
{
	struct fi_info *hints = verve_ask_hints(consumer, ports, count), *info = NULL;
	bool answers = false;

	if (!hints)
		return false;
	hints->fabric_attr->prov_name = strdup(consumer->prov_name);
	if (hints->fabric_attr->prov_name &&
	    !fi_getinfo(consumer->version, NULL, NULL, 0, hints, &info)) {
		answers = info->fabric_attr->prov_version == VERVE_AS_RXM_VERSION &&
			  (!consumer->accepts || consumer->accepts(info));
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
	return answers;
}

static void add_finding_of_another(struct verve_report *report, const char *subject,
				   const struct consumer *consumer,
				   const struct verve_answer *answer, bool is_answered)
{
	static const char remedy[] = "export FI_PROVIDER_PATH=" PROVIDERDIR "-verve-as-rxm:"
				     PROVIDERDIR;

	if (is_answered)
		verve_report_add(report, VERVE_USED, subject, NULL,
				 "gets what it asks for, from verve under the name of ofi_rxm");
	else
		verve_report_add(report, VERVE_REFUSED, subject, remedy,
				 "libfabric asks %s, not verve%s%s", consumer->prov_name,
				 answer->log[0] ? ", which would refuse, because " : "",
				 answer->log);
}

static void add_finding(struct verve_report *report, const struct consumer *consumer,
			const struct verve_answer *answer, bool is_answered)
{
	char subject[VERVE_FINDING_TEXT_MAX];

	snprintf(subject, sizeof(subject), "%s %s", consumer->name, consumer->part);
	if (!answer->is_asked)
		add_finding_of_another(report, subject, consumer, answer, is_answered);
	else if (answer->verdict == CONSUMER_RUNS && answer->is_accepted)
		verve_report_add(report, VERVE_USED, subject, NULL, "gets what it asks for");
	else if (answer->verdict == CONSUMER_LIMITED && answer->is_accepted)
		verve_report_add(report, VERVE_WARNING, subject, NULL,
				 "runs with limits: first refused, because %s", answer->log);
	else if (!answer->is_accepted)
		verve_report_add(report, VERVE_REFUSED, subject, NULL,
				 "does not take the answer that it gets");
	else
		verve_report_add(report, VERVE_REFUSED, subject, NULL, "refused, because %s",
				 answer->log[0] ? answer->log : "no port is used (verve_info)");
}

/* A port that a host could have. */
static void make_stand_in(struct verve_net_port *port, struct verve_net_portaddr *addr)
{
	*addr = (struct verve_net_portaddr){.netdev = "eth0"};
	addr->addr.in.sin_family = AF_INET;
	addr->addr.in.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1, for documentation */
	*port = (struct verve_net_port){
		.device = "any", .netdev = "eth0", .port_num = 1, .ethernet = true, .usable = true,
		.mtu = 4096, .limits = {.mr = 1 << 20}, .addrs = addr, .addr_count = 1};
}

size_t verve_ask_report(struct verve_report *report, const char *key,
			const struct verve_net_port *ports, size_t count)
{
	const char *iface = verve_config.iface;
	struct verve_net_portaddr addr;
	struct verve_net_port stand_in;
	size_t found = 0, usable = 0;

	for (size_t i = 0; i < count; i++)
		usable += ports[i].usable;
	if (!usable) {
		/* The variable names ports of this host. */
		verve_config.iface = NULL;
		make_stand_in(&stand_in, &addr);
		ports = &stand_in;
		count = 1;
	}
	for (size_t i = 0; i < consumer_count; i++) {
		struct verve_answer answer;

		if (strcmp(consumers[i].key, key))
			continue;
		found++;
		if (!verve_ask(&consumers[i], ports, count, &answer))
			add_finding(report, &consumers[i], &answer,
				    !answer.is_asked && alias_answers(&consumers[i], ports, count));
		else
			verve_report_add(report, VERVE_REFUSED, consumers[i].name, NULL,
					 "cannot be asked: nothing is offered without hints");
	}
	verve_config.iface = iface;
	if (found && !usable)
		verve_report_add(report, VERVE_WARNING, "ports", NULL,
				 "none is usable here (verve_info says why); the answers are "
				 "those of a host with one");
	return found;
}
