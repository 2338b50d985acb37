/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of queue pairs: a message as the kernel nests it, and whose queue pairs they are. */
#include <criterion/criterion.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
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

/* With any kernel, with or without devices. */
Test(stat_qp, kernel_is_asked)
{
	verve_stat_qps_read(&look.qps);
	for (size_t i = 0; i < look.qps.count; i++)
		cr_expect(look.qps.counters[i].device[0]);
}
