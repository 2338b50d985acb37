/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of queue pairs: netlink messages, nested as the kernel nests them. */
#include "stat_qp.h"

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 1024 };

/* The list with room for one more, which is all zero. */
static void *grow(void *list, size_t count, size_t size)
{
	char *grown = realloc(list, (count + 1) * size);

	if (!grown) {
		fputs("verve_stat: no memory\n", stderr);
		exit(2);
	}
	memset(grown + count * size, 0, size);
	return grown;
}

/* Numbers of another length than expected count as not there. */
static uint32_t read_u32(const struct nlattr *attr)
{
	return attr && nla_len(attr) >= (int)sizeof(uint32_t) ? nla_get_u32(attr) : 0;
}

static void read_text(const struct nlattr *attr, char *text)
{
	if (attr)
		snprintf(text, VERVE_STAT_NAME, "%.*s", nla_len(attr), (char *)nla_data(attr));
}

static struct nlattr *child(const struct nlattr *parent, int type)
{
	return parent ? nla_find(nla_data(parent), nla_len(parent), type) : NULL;
}

static void take_qps(struct verve_stat_qp_counter *counter, const struct nlattr *table)
{
	struct nlattr *entry;
	int rest;

	if (!table)
		return;
	nla_for_each_nested(entry, table, rest) {
		const struct nlattr *number = child(entry, RDMA_NLDEV_ATTR_RES_LQPN);

		if (!number)
			continue;
		counter->qps = grow(counter->qps, counter->qp_count, sizeof(*counter->qps));
		counter->qps[counter->qp_count++] = read_u32(number);
	}
}

static void take_values(struct verve_stat_qp_counter *counter, const struct nlattr *table)
{
	struct nlattr *entry;
	int rest;

	if (!table)
		return;
	nla_for_each_nested(entry, table, rest) {
		const struct nlattr *name =
			child(entry, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME);
		const struct nlattr *number =
			child(entry, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE);
		struct verve_stat_qp_value *value;

		if (!name || !number || nla_len(number) < (int)sizeof(uint64_t))
			continue;
		counter->values = grow(counter->values, counter->value_count,
				       sizeof(*counter->values));
		value = &counter->values[counter->value_count++];
		read_text(name, value->name);
		value->value = nla_get_u64(number);
	}
}

void verve_stat_qps_take(struct verve_stat_qps *qps, struct nlmsghdr *message)
{
	struct nlattr *device = nlmsg_find_attr(message, 0, RDMA_NLDEV_ATTR_DEV_NAME);
	struct nlattr *table = nlmsg_find_attr(message, 0, RDMA_NLDEV_ATTR_STAT_COUNTER), *entry;
	int rest;

	if (!device || !table)
		return;
	nla_for_each_nested(entry, table, rest) {
		struct verve_stat_qp_counter *counter;

		qps->counters = grow(qps->counters, qps->count, sizeof(*qps->counters));
		counter = &qps->counters[qps->count++];
		read_text(device, counter->device);
		counter->port = read_u32(child(entry, RDMA_NLDEV_ATTR_PORT_INDEX));
		counter->id = read_u32(child(entry, RDMA_NLDEV_ATTR_STAT_COUNTER_ID));
		take_qps(counter, child(entry, RDMA_NLDEV_ATTR_RES_QP));
		take_values(counter, child(entry, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS));
	}
}

struct devices {
	uint32_t index[DEVICES_MAX];
	size_t count;
};

static int take_device(struct nl_msg *msg, void *arg)
{
	struct nlattr *index = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_DEV_INDEX);
	struct devices *devices = arg;

	if (index && devices->count < DEVICES_MAX)
		devices->index[devices->count++] = read_u32(index);
	return NL_OK;
}

static int take_counters(struct nl_msg *msg, void *arg)
{
	verve_stat_qps_take(arg, nlmsg_hdr(msg));
	return NL_OK;
}

/* Asks for all of a kind. device: NULL, or its index. False: the kernel refuses. */
static bool dump(struct nl_sock *sock, int command, const uint32_t *device,
		 int (*take)(struct nl_msg *msg, void *arg), void *arg)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
						NLM_F_REQUEST | NLM_F_DUMP);
	bool sent = msg;

	if (sent && device)
		sent = !nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, *device) &&
		       !nla_put_u32(msg, RDMA_NLDEV_ATTR_STAT_RES, RDMA_NLDEV_ATTR_RES_QP);
	if (sent)
		sent = !nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, take, arg) &&
		       nl_send_auto(sock, msg) >= 0;
	nlmsg_free(msg);
	return sent && nl_recvmsgs_default(sock) >= 0;
}

void verve_stat_qps_read(struct verve_stat_qps *qps)
{
	struct nl_sock *sock = nl_socket_alloc();
	struct devices devices = {.count = 0};

	*qps = (struct verve_stat_qps){0};
	if (sock && !nl_connect(sock, NETLINK_RDMA) &&
	    dump(sock, RDMA_NLDEV_CMD_GET, NULL, take_device, &devices))
		for (size_t i = 0; i < devices.count; i++)
			dump(sock, RDMA_NLDEV_CMD_STAT_GET, &devices.index[i], take_counters, qps);
	nl_socket_free(sock);
}

void verve_stat_qps_fini(struct verve_stat_qps *qps)
{
	for (size_t i = 0; i < qps->count; i++) {
		free(qps->counters[i].qps);
		free(qps->counters[i].values);
	}
	free(qps->counters);
	*qps = (struct verve_stat_qps){0};
}

uint64_t verve_stat_qps_before(const struct verve_stat_qps *before,
			       const struct verve_stat_qp_counter *counter, const char *name)
{
	for (size_t i = 0; before && i < before->count; i++) {
		const struct verve_stat_qp_counter *old = &before->counters[i];

		if (old->id != counter->id || strcmp(old->device, counter->device))
			continue;
		for (size_t j = 0; j < old->value_count; j++)
			if (!strcmp(old->values[j].name, name))
				return old->values[j].value;
	}
	return 0;
}
