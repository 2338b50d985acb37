/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of queue pairs: what the kernel is asked and answers, and whose queue pairs they are. */
#include <criterion/criterion.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>

#include "stat_print.h"

static struct verve_stat_look look;
static struct nl_msg *msg;
static char *text;
static size_t text_len;

/* A process with an endpoint of mlx5_0:1, and a peer of it at queue pair 77. */
static struct verve_stat_entry entries[] = {
	{.index = 0, .page = {.kind = VERVE_STAT_KIND_ENDPOINT, .id = 1, .name = "10.0.0.1:4791",
			      .text = "mlx5_0:1"}},
	{.index = 1, .page = {.kind = VERVE_STAT_KIND_PEER, .id = 2, .owner = 1,
			      .name = "10.0.0.2:4791"}},
};
static struct verve_stat_entry *by_id[] = {&entries[0], &entries[1]};
static struct verve_stat_process process = {
	.pid = 4, .command = "app", .name = "4.x", .entries = entries, .by_id = by_id, .count = 2};

enum { QUESTIONS = 8, REFUSING = 3, COUNTING = 5, NONE = -1 };

/* The kernel's part: two devices, of which one has no counters; those of the other are in msg. */
static struct {
	int protocol, error; /* of connecting */
	struct {
		int type, flags, device, resource;
	} question[QUESTIONS];
	int asked;
	nl_recvmsg_msg_cb_t take;
	void *arg;
} kernel;

int __wrap_nl_connect(struct nl_sock *sock, int protocol);
int __wrap_nl_socket_modify_cb(struct nl_sock *sock, enum nl_cb_type type, enum nl_cb_kind kind,
			       nl_recvmsg_msg_cb_t take, void *arg);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *question);
int __wrap_nl_recvmsgs_default(struct nl_sock *sock);

int __wrap_nl_connect(struct nl_sock *sock, int protocol)
{
	(void)sock;
	kernel.protocol = protocol;
	return kernel.error;
}

int __wrap_nl_socket_modify_cb(struct nl_sock *sock, enum nl_cb_type type, enum nl_cb_kind kind,
			       nl_recvmsg_msg_cb_t take, void *arg)
{
	(void)sock;
	cr_expect_eq(type, NL_CB_VALID);
	cr_expect_eq(kind, NL_CB_CUSTOM);
	kernel.take = take;
	kernel.arg = arg;
	return 0;
}

static int number_in(struct nlmsghdr *header, int type)
{
	const struct nlattr *attr = nlmsg_find_attr(header, 0, type);

	return attr ? (int)nla_get_u32(attr) : NONE;
}

int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *question)
{
	struct nlmsghdr *header = nlmsg_hdr(question);

	(void)sock;
	cr_assert_lt(kernel.asked, QUESTIONS);
	kernel.question[kernel.asked].type = header->nlmsg_type;
	kernel.question[kernel.asked].flags = header->nlmsg_flags;
	kernel.question[kernel.asked].device = number_in(header, RDMA_NLDEV_ATTR_DEV_INDEX);
	kernel.question[kernel.asked].resource = number_in(header, RDMA_NLDEV_ATTR_STAT_RES);
	kernel.asked++;
	return 0;
}

static void tell_device(uint32_t index)
{
	struct nl_msg *device = nlmsg_alloc_simple(
		RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET), 0);

	nla_put_u32(device, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	kernel.take(device, kernel.arg);
	nlmsg_free(device);
}

/* Answers the last question. */
int __wrap_nl_recvmsgs_default(struct nl_sock *sock)
{
	int device = kernel.question[kernel.asked - 1].device;

	(void)sock;
	if (device == REFUSING)
		return -NLE_OPNOTSUPP;
	if (device == COUNTING)
		return kernel.take(msg, kernel.arg);
	tell_device(REFUSING);
	tell_device(COUNTING);
	return 0;
}

static void expect_question(int number, int command, int device, int resource)
{
	cr_expect_eq(kernel.question[number].type, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
	cr_expect_eq(kernel.question[number].flags, NLM_F_REQUEST | NLM_F_DUMP);
	cr_expect_eq(kernel.question[number].device, device);
	cr_expect_eq(kernel.question[number].resource, resource);
}

static void setup(void)
{
	entries[1].page.values[VERVE_STAT_PEER_QP_NUM] = 77;
	entries[1].page.values[VERVE_STAT_PEER_STATE] = VERVE_STAT_STATE_UP;
	look.host.processes = &process;
	look.host.count = 1;
	msg = nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET), 0);
	cr_assert_not_null(msg);
}

static void teardown(void)
{
	nlmsg_free(msg);
	verve_stat_qps_fini(&look.qps);
	free(text);
}

TestSuite(stat_qp, .init = setup, .fini = teardown);

static void put_value(const char *name, uint64_t value)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);

	nla_put_string(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
	nla_put_u64(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
	nla_nest_end(msg, entry);
}

static void put_qp(uint32_t number)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	nla_put_u32(msg, RDMA_NLDEV_ATTR_RES_LQPN, number);
	nla_nest_end(msg, entry);
}

/* Counter id of port 1, for queue pair number and, if not 0, another one. */
static void put_counter(uint32_t id, uint32_t number, uint32_t another)
{
	struct nlattr *counter = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_COUNTER_ENTRY), *table;

	nla_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_STAT_COUNTER_ID, id);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP);
	put_qp(number);
	if (another)
		put_qp(another);
	nla_nest_end(msg, table);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	put_value("out_of_sequence", 3);
	put_value("rnr_nak_retry_err", 0);
	nla_nest_end(msg, table);
	nla_nest_end(msg, counter);
}

static struct nlattr *begin_message(const char *device)
{
	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, device);
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_COUNTER);
}

static void take(struct nlattr *table)
{
	nla_nest_end(msg, table);
	verve_stat_qps_take(&look.qps, nlmsg_hdr(msg));
}

static void has(void (*print)(FILE *file), const char *part)
{
	FILE *file;

	free(text);
	file = open_memstream(&text, &text_len);
	print(file);
	fclose(file);
	cr_expect_not_null(strstr(text, part), "%s is not in:\n%s", part, text);
}

static void print_table(FILE *file)
{
	verve_stat_print(file, &look, NULL, false);
}

static void print_json(FILE *file)
{
	verve_stat_print_json(file, &look);
}

static void print_prometheus(FILE *file)
{
	verve_stat_print_prometheus(file, &look);
}

Test(stat_qp, counter_of_one_queue_pair_names_its_peer)
{
	struct nlattr *table = begin_message("mlx5_0");

	put_counter(4, 77, 0);
	take(table);
	cr_assert_eq(look.qps.count, 1);
	cr_expect_eq(look.qps.counters[0].value_count, 2);
	has(print_table, "device mlx5_0:1, qp 77 to 10.0.0.2:4791: out_of_sequence 3\n");
	has(print_json, "\"peer\": \"10.0.0.2:4791\"");
	has(print_json, "\"rnr_nak_retry_err\": 0");
	has(print_prometheus,
	    "verve_queue_pair_counter_total{device=\"mlx5_0\",port=\"1\",id=\"4\","
	    "peer=\"10.0.0.2:4791\",counter=\"out_of_sequence\"} 3\n");
}

Test(stat_qp, shared_counter_names_all_of_them)
{
	struct nlattr *table = begin_message("mlx5_0");

	put_counter(4, 77, 78);
	put_counter(5, 79, 0);
	take(table);
	cr_assert_eq(look.qps.count, 2);
	has(print_table, "device mlx5_0:1, qp 77 to 10.0.0.2:4791, qp 78: out_of_sequence 3\n");
	has(print_table, "device mlx5_0:1, qp 79: out_of_sequence 3\n");
	has(print_prometheus, "id=\"4\",peer=\"\",");
}

Test(stat_qp, same_number_elsewhere_is_another_queue_pair)
{
	struct nlattr *table = begin_message("mlx5_1");

	put_counter(4, 77, 0);
	take(table);
	has(print_table, "device mlx5_1:1, qp 77: out_of_sequence 3\n");
	entries[1].page.values[VERVE_STAT_PEER_STATE] = VERVE_STAT_STATE_IDLE;
	cr_expect_null(verve_stat_peer_of(&look.host, "mlx5_0", 1, 77), "an earlier queue pair's");
}

Test(stat_qp, growth_since_an_earlier_look)
{
	struct nlattr *table = begin_message("mlx5_0");
	uint64_t then;

	put_counter(4, 77, 0);
	take(table);
	then = verve_stat_qps_before(&look.qps, &look.qps.counters[0], "out_of_sequence");
	cr_expect_eq(then, 3);
	cr_expect_eq(verve_stat_qps_before(&look.qps, &look.qps.counters[0], "none"), 0);
	cr_expect_eq(verve_stat_qps_before(NULL, &look.qps.counters[0], "out_of_sequence"), 0);
}

/* Attributes that are missing, or shorter than their type. */
Test(stat_qp, message_with_gaps)
{
	struct nlattr *table = begin_message("mlx5_0"), *counter, *inner;

	counter = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_COUNTER_ENTRY);
	nla_put_u16(msg, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	inner = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP);
	nla_put_u16(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY, 1);
	nla_nest_end(msg, inner);
	inner = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	nla_put_u32(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY, 1);
	nla_nest_end(msg, inner);
	nla_nest_end(msg, counter);
	take(table);
	cr_assert_eq(look.qps.count, 1);
	cr_expect_eq(look.qps.counters[0].port, 0);
	cr_expect_eq(look.qps.counters[0].qp_count, 0);
	cr_expect_eq(look.qps.counters[0].value_count, 0);
}

Test(stat_qp, each_device_is_asked_for_its_counters)
{
	struct nlattr *table = begin_message("mlx5_0");

	put_counter(4, 77, 0);
	nla_nest_end(msg, table);
	verve_stat_qps_read(&look.qps);
	cr_expect_eq(kernel.protocol, NETLINK_RDMA);
	cr_assert_eq(kernel.asked, 3);
	expect_question(0, RDMA_NLDEV_CMD_GET, NONE, NONE);
	expect_question(1, RDMA_NLDEV_CMD_STAT_GET, REFUSING, RDMA_NLDEV_ATTR_RES_QP);
	expect_question(2, RDMA_NLDEV_CMD_STAT_GET, COUNTING, RDMA_NLDEV_ATTR_RES_QP);
	cr_assert_eq(look.qps.count, 1, "the first device has none, the second has one");
	cr_expect_str_eq(look.qps.counters[0].device, "mlx5_0");
	cr_expect_eq(look.qps.counters[0].id, 4);
}

Test(stat_qp, kernel_without_rdma_has_none)
{
	kernel.error = -NLE_PROTO_MISMATCH;
	verve_stat_qps_read(&look.qps);
	cr_expect_eq(kernel.asked, 0);
	cr_expect_eq(look.qps.count, 0);
}
