/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_info: fi_getinfo: each hint is honoured or refused, attributes are consistent, addresses are
 * resolved, and the result can be copied and printed. One process.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/node.h"
#include "common/suite.h"

#define API_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

static const struct node_attr msg_attr = { .caps = FI_MSG };

typedef void (*adjust_fn)(struct fi_info *hints, struct fi_info *offer);

/*
 * fi_getinfo with our hints after adjust, which sees the answer to the unadjusted hints. Returns
 * its code.
 */
static int ask(struct env *env, adjust_fn adjust, struct fi_info **info)
{
	struct fi_info *hints = node_hints(env, &msg_attr), *offer = NULL;
	int ret;

	*info = NULL;
	REQUIRE_RET(node_getinfo(env, &msg_attr, hints, &offer), 0);
	/* Without -p: stay with the provider that offered. */
	if (!hints->fabric_attr->prov_name)
		hints->fabric_attr->prov_name = strdup(offer->fabric_attr->prov_name);
	adjust(hints, offer);
	ret = node_getinfo(env, &msg_attr, hints, info);
	fi_freeinfo(offer);
	fi_freeinfo(hints);
	return ret;
}

static void refuse(struct env *env, const char *what, adjust_fn adjust)
{
	struct fi_info *info;
	int ret = ask(env, adjust, &info);

	if (!CHECK_RET(ret, -FI_ENODATA))
		printf("a hint that no provider fulfils was accepted: %s\n", what);
	if (info)
		fi_freeinfo(info);
}

static struct fi_info *accept_hint(struct env *env, adjust_fn adjust)
{
	struct fi_info *info;

	REQUIRE_RET(ask(env, adjust, &info), 0);
	return info;
}

static void want_dgram(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->ep_attr->type = FI_EP_DGRAM;
}

static void want_msg_ep(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->ep_attr->type = FI_EP_MSG;
}

static void want_protocol(struct fi_info *h, struct fi_info *o)
{
	h->ep_attr->protocol = o->ep_attr->protocol ^ 0x7000000;
}

static void want_message(struct fi_info *h, struct fi_info *o)
{
	h->ep_attr->max_msg_size = o->ep_attr->max_msg_size + 1;
}

static void want_inject(struct fi_info *h, struct fi_info *o)
{
	h->tx_attr->inject_size = o->tx_attr->inject_size + (1 << 20);
}

static void want_tx_iov(struct fi_info *h, struct fi_info *o)
{
	h->tx_attr->iov_limit = o->tx_attr->iov_limit + 1;
}

static void want_rx_iov(struct fi_info *h, struct fi_info *o)
{
	h->rx_attr->iov_limit = o->rx_attr->iov_limit + 1;
}

static void want_caps(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->caps |= FI_MULTICAST;
}

static void want_domain(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	free(h->domain_attr->name);
	h->domain_attr->name = strdup("no_such_device");
}

static void want_fabric(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	free(h->fabric_attr->name);
	h->fabric_attr->name = strdup("no_such_fabric");
}

static void want_cq_data(struct fi_info *h, struct fi_info *o)
{
	h->domain_attr->cq_data_size = o->domain_attr->cq_data_size + 1;
}

static void want_addr_format(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->addr_format = FI_ADDR_PSMX2;
}

static void want_version(struct fi_info *h, struct fi_info *o)
{
	h->fabric_attr->prov_version = o->fabric_attr->prov_version + FI_VERSION(100, 0);
}

static bool has_message_limit(struct env *env)
{
	struct fi_info *hints = node_hints(env, &msg_attr), *info = NULL;
	bool limited;

	REQUIRE_RET(node_getinfo(env, &msg_attr, hints, &info), 0);
	limited = info->ep_attr->max_msg_size < SIZE_MAX;
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return limited;
}

static void run_refused(struct env *env)
{
	refuse(env, "FI_EP_DGRAM", want_dgram);
	refuse(env, "FI_EP_MSG", want_msg_ep);
	refuse(env, "protocol", want_protocol);
	if (has_message_limit(env))
		refuse(env, "max_msg_size", want_message);
	refuse(env, "inject_size", want_inject);
	refuse(env, "tx iov_limit", want_tx_iov);
	refuse(env, "rx iov_limit", want_rx_iov);
	refuse(env, "FI_MULTICAST", want_caps);
	refuse(env, "domain name", want_domain);
	refuse(env, "fabric name", want_fabric);
	refuse(env, "cq_data_size", want_cq_data);
	refuse(env, "addr_format", want_addr_format);
	refuse(env, "prov_version", want_version);
}


static void hint_threading(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
}

static void hint_completion_threading(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->domain_attr->threading = FI_THREAD_COMPLETION;
}

static void hint_progress(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
}

static void hint_av_map(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->domain_attr->av_type = FI_AV_MAP;
}

static void hint_av_table(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->domain_attr->av_type = FI_AV_TABLE;
}

static void hint_order(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
}

static void hint_mode(struct fi_info *h, struct fi_info *o)
{
	(void)o;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->domain_attr->mr_mode |= FI_MR_LOCAL | FI_MR_ENDPOINT;
}

static void hint_sizes(struct fi_info *h, struct fi_info *o)
{
	h->tx_attr->size = o->tx_attr->size;
	h->rx_attr->size = o->rx_attr->size;
	h->tx_attr->iov_limit = 1;
	h->rx_attr->iov_limit = 1;
	h->ep_attr->max_msg_size = 1 << 20;
	h->domain_attr->cq_data_size = 4;
}

/* The answer has the hinted values; every value weaker than the provider's is accepted. */
static void run_accepted(struct env *env)
{
	struct fi_info *info;

	info = accept_hint(env, hint_threading);
	CHECK_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
	fi_freeinfo(info);
	info = accept_hint(env, hint_completion_threading);
	CHECK_EQ(info->domain_attr->threading, FI_THREAD_COMPLETION);
	fi_freeinfo(info);
	info = accept_hint(env, hint_progress);
	CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	fi_freeinfo(info);
	info = accept_hint(env, hint_av_map);
	CHECK_EQ(info->domain_attr->av_type, FI_AV_MAP);
	fi_freeinfo(info);
	info = accept_hint(env, hint_av_table);
	CHECK_EQ(info->domain_attr->av_type, FI_AV_TABLE);
	fi_freeinfo(info);
	info = accept_hint(env, hint_order);
	CHECK(info->tx_attr->msg_order & FI_ORDER_SAS);
	CHECK(info->rx_attr->msg_order & FI_ORDER_SAS);
	fi_freeinfo(info);
	/* Offering more modes than needed is fine, and none of them is demanded. */
	info = accept_hint(env, hint_mode);
	CHECK_EQ(info->mode & ~(FI_CONTEXT | FI_CONTEXT2), 0);
	fi_freeinfo(info);
	info = accept_hint(env, hint_sizes);
	CHECK(info->tx_attr->size > 0);
	CHECK(info->rx_attr->size > 0);
	fi_freeinfo(info);
}

static void check_one(const struct opts *opts, const struct fi_info *info)
{
	if (opts->prov_name)
		CHECK(!strcmp(info->fabric_attr->prov_name, opts->prov_name));
	CHECK_EQ(info->ep_attr->type, FI_EP_RDM);
	CHECK(info->fabric_attr->name != NULL);
	CHECK(info->domain_attr->name != NULL);
	CHECK_EQ(info->caps & FI_MSG, FI_MSG);
	CHECK_EQ(info->tx_attr->caps & ~info->caps, 0);
	CHECK_EQ(info->rx_attr->caps & ~info->caps, 0);
	CHECK(info->tx_attr->caps & FI_SEND);
	CHECK(info->rx_attr->caps & FI_RECV);
	CHECK(info->src_addr != NULL);
	CHECK(info->src_addrlen > 0 && info->src_addrlen <= 64);
	CHECK(info->ep_attr->max_msg_size >= 1ull << 30);
	CHECK(info->tx_attr->inject_size >= 16);
	CHECK(info->tx_attr->iov_limit >= 1);
	CHECK(info->rx_attr->iov_limit >= 1);
	CHECK(info->domain_attr->cq_data_size >= 4);
	CHECK(info->ep_attr->tx_ctx_cnt >= 1);
	CHECK(info->ep_attr->rx_ctx_cnt >= 1);
	CHECK(info->domain_attr->max_ep_tx_ctx >= 1);
	CHECK_EQ(info->mode, 0);
	CHECK(info->domain_attr->resource_mgmt == FI_RM_ENABLED);
}

static void run_consistent(struct env *env)
{
	struct fi_info *hints = node_hints(env, &msg_attr), *list = NULL;

	REQUIRE_RET(node_getinfo(env, &msg_attr, hints, &list), 0);
	for (struct fi_info *info = list; info; info = info->next)
		check_one(&env->opts, info);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* Every version that an application may have been written for. */
static void run_versions(struct env *env)
{
	static const uint32_t versions[] = {
		FI_VERSION(1, 0), FI_VERSION(1, 4), FI_VERSION(1, 5), FI_VERSION(1, 9),
		FI_VERSION(1, 14), FI_VERSION(1, 17),
	};

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		struct fi_info *hints = node_hints(env, &msg_attr), *info = NULL;

		/* Before 1.5 the mode is one of two names; none of them is for messages only. */
		if (versions[i] < FI_VERSION(1, 5))
			hints->domain_attr->mr_mode = 0;
		if (CHECK_RET(fi_getinfo(versions[i], NULL, NULL, 0, hints, &info), 0)) {
			CHECK_EQ(info->fabric_attr->api_version, versions[i]);
			fi_freeinfo(info);
		}
		fi_freeinfo(hints);
	}
}

/* No hints at all, and hints with a name only. */
static void run_no_hints(struct env *env)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	bool found = false;

	REQUIRE(hints != NULL);
	REQUIRE_RET(fi_getinfo(API_VERSION, NULL, NULL, 0, NULL, &list), 0);
	for (struct fi_info *info = list; info; info = info->next)
		found |= !env->opts.prov_name ||
			 !strcmp(info->fabric_attr->prov_name, env->opts.prov_name);
	CHECK(found);
	fi_freeinfo(list);
	if (env->opts.prov_name)
		hints->fabric_attr->prov_name = strdup(env->opts.prov_name);
	REQUIRE_RET(fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &list), 0);
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static uint16_t port_of(const void *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

/* Node and service are the destination, with FI_SOURCE the source. */
static void run_resolve(struct env *env)
{
	const char *host = env->opts.src_addr ? env->opts.src_addr : "127.0.0.1";
	struct fi_info *hints = node_hints(env, &msg_attr), *info = NULL;

	hints->addr_format = strchr(host, ':') ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	REQUIRE_RET(fi_getinfo(API_VERSION, host, "20123", 0, hints, &info), 0);
	REQUIRE(info->dest_addr != NULL);
	CHECK_EQ(port_of(info->dest_addr), 20123);
	CHECK_EQ(info->addr_format, hints->addr_format);
	fi_freeinfo(info);
	REQUIRE_RET(fi_getinfo(API_VERSION, host, "20124", FI_SOURCE, hints, &info), 0);
	REQUIRE(info->src_addr != NULL);
	CHECK_EQ(port_of(info->src_addr), 20124);
	CHECK(info->dest_addr == NULL);
	fi_freeinfo(info);
	REQUIRE_RET(fi_getinfo(API_VERSION, host, "20125", FI_NUMERICHOST, hints, &info), 0);
	fi_freeinfo(info);
	info = NULL;
	CHECK_RET(fi_getinfo(API_VERSION, "no.such.host.invalid", "1", 0, hints, &info),
		  -FI_ENODATA);
	if (info)
		fi_freeinfo(info);
	/* An address that no device of this host has cannot be a source. */
	info = NULL;
	CHECK_RET(fi_getinfo(API_VERSION, "198.51.100.7", "1", FI_SOURCE, hints, &info),
		  -FI_ENODATA);
	if (info)
		fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* Addresses in the hints instead of node and service. */
static void run_hint_addresses(struct env *env)
{
	struct fi_info *hints = node_hints(env, &msg_attr), *offer = NULL, *info = NULL;

	REQUIRE_RET(node_getinfo(env, &msg_attr, hints, &offer), 0);
	hints->src_addr = malloc(offer->src_addrlen);
	hints->dest_addr = malloc(offer->src_addrlen);
	REQUIRE(hints->src_addr && hints->dest_addr);
	memcpy(hints->src_addr, offer->src_addr, offer->src_addrlen);
	memcpy(hints->dest_addr, offer->src_addr, offer->src_addrlen);
	((struct sockaddr_in *)hints->src_addr)->sin_port = htons(20200);
	((struct sockaddr_in *)hints->dest_addr)->sin_port = htons(20201);
	hints->src_addrlen = hints->dest_addrlen = offer->src_addrlen;
	hints->addr_format = offer->addr_format;
	REQUIRE_RET(fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info), 0);
	REQUIRE(info->src_addr && info->dest_addr);
	CHECK_EQ(info->src_addrlen, offer->src_addrlen);
	CHECK_EQ(port_of(info->src_addr), 20200);
	CHECK_EQ(info->dest_addrlen, offer->src_addrlen);
	CHECK(!memcmp(info->dest_addr, hints->dest_addr, offer->src_addrlen));
	fi_freeinfo(info);
	fi_freeinfo(offer);
	fi_freeinfo(hints);
}

/* A result is a valid hint, and finds itself. */
static void run_round_trip(struct env *env)
{
	struct fi_info *hints = node_hints(env, &msg_attr), *offer = NULL, *info = NULL;

	REQUIRE_RET(node_getinfo(env, &msg_attr, hints, &offer), 0);
	REQUIRE_RET(fi_getinfo(API_VERSION, NULL, NULL, 0, offer, &info), 0);
	CHECK(!strcmp(info->domain_attr->name, offer->domain_attr->name));
	CHECK(!strcmp(info->fabric_attr->name, offer->fabric_attr->name));
	CHECK_EQ(info->caps & offer->caps, offer->caps);
	fi_freeinfo(info);
	fi_freeinfo(offer);
	fi_freeinfo(hints);
}

/* A copy stands alone, the device's description included, and both print the same. */
static void run_copies(struct env *env)
{
	struct fi_info *hints = node_hints(env, &msg_attr), *list = NULL;

	REQUIRE_RET(node_getinfo(env, &msg_attr, hints, &list), 0);
	for (struct fi_info *info = list; info; info = info->next) {
		struct fi_info *copy = fi_dupinfo(info);
		static char first[1 << 16], second[1 << 16];

		REQUIRE(copy != NULL);
		CHECK(!info->nic || copy->nic != info->nic);
		if (info->nic) {
			const struct fi_device_attr *dev = info->nic->device_attr;

			CHECK(copy->nic->device_attr != dev);
			CHECK(dev->name && !strcmp(copy->nic->device_attr->name, dev->name));
		}
		snprintf(first, sizeof(first), "%s", fi_tostr(info->ep_attr, FI_TYPE_EP_ATTR));
		snprintf(second, sizeof(second), "%s",
			 fi_tostr(copy->ep_attr, FI_TYPE_EP_ATTR));
		CHECK(first[0] && !strcmp(first, second));
		CHECK(strlen(fi_tostr(copy, FI_TYPE_INFO)) > 100);
		fi_freeinfo(copy);
	}
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

static const struct suite_case cases[] = {
	{ "refused", FI_MSG, run_refused },
	{ "accepted", FI_MSG, run_accepted },
	{ "consistent", FI_MSG, run_consistent },
	{ "versions", FI_MSG, run_versions },
	{ "no_hints", FI_MSG, run_no_hints },
	{ "resolve", FI_MSG, run_resolve },
	{ "hint_addresses", FI_MSG, run_hint_addresses },
	{ "round_trip", FI_MSG, run_round_trip },
	{ "copies", FI_MSG, run_copies },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_info", "fi_getinfo: hints, attributes, addresses.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
