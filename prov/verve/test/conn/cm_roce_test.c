/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection manager on RoCE: without a key, the GID in a HELLO must be the address that the HELLO
 * came from. And what a stranger's HELLO does to a connection that our engine continues.
 */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "cm_node.h"
#include "cm_world.h"
#include "conn/hello.h"

static const uint64_t ms = 1000000;

static const struct verve_auth_key key = {.is_set = true, .bytes = {1, 2, 3}};

static void start(const struct verve_auth_key *node_key)
{
	nodes_roce = true;
	nodes_set_key(node_key);
	nodes_start(1, 2);
}

static struct verve_cm_stats stats_of(unsigned n)
{
	struct verve_cm_stats stats;

	verve_cm_stats_get(nodes[n].cm, &stats);
	return stats;
}

/* The last HELLO of node 1 to node 0 once more, from a new endpoint, and with another GID. */
static void forge(void)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_hello hello;

	cr_assert_eq(cm_world_recorded(1, 0, VERVE_HELLO_HELLO, buf), sizeof(buf));
	cr_assert_eq(verve_hello_decode(buf, sizeof(buf), &hello), 0);
	hello.sender_incarnation ^= 2;
	hello.recipient_id = 0;
	hello.qp.gid.raw[15] ^= 1;
	verve_hello_encode(&hello, buf);
	cm_world_inject(1, 0, buf, sizeof(buf));
}

Test(cm_roce, peers_have_the_address_that_they_send_from)
{
	start(NULL);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

Test(cm_roce, hello_with_the_gid_of_another_host_is_refused)
{
	start(NULL);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	node_close(1, false);
	nodes_may_break = true;
	node_drop(0, 1);
	nodes_run(cm_world_time + ms);
	forge();
	nodes_run(cm_world_time + 10 * ms);
	cr_expect_eq(stats_of(0).foreign, 1);
	cr_expect_eq(nodes[0].links[1].ups, 1);
	cr_expect_eq(cm_world_qps(), 0);
	nodes_stop();
}

/* Who has the key may be behind another address. */
Test(cm_roce, the_key_vouches)
{
	start(&key);
	node_connect(1, 0);
	nodes_run(UINT64_MAX);
	nodes_expect_connected(0, 1);
	nodes_stop();
}

static void start_not_on_roce(void)
{
	nodes_roce = false;
	nodes_set_key(NULL);
	nodes_start(1, 2);
}

/*
 * The peer has suspended the connection, and its next HELLO is lost at first. Meanwhile a stranger
 * pretends to be the peer: no queue pair is opened for it. The connection is continued.
 */
Test(cm_roce, stranger_does_not_end_what_is_suspended)
{
	uint32_t id, qps;

	start_not_on_roce();
	node_connect(0, 1);
	nodes_run(UINT64_MAX);
	id = nodes[0].links[1].conn_id;
	nodes_may_break = true;
	node_suspend(1, 0);
	nodes_run(cm_world_time + 1);
	cm_world_config.loss = 1000;
	nodes_run(cm_world_time + ms);
	cr_assert_eq(nodes[0].links[1].suspended, 1);
	cm_world_config.loss = 0;
	qps = cm_world_qps();
	forge();
	nodes_run(cm_world_time + ms);
	cr_expect_eq(cm_world_qps(), qps);
	cr_assert_null(nodes[0].links[1].qp);
	nodes_run(cm_world_time + 1000 * ms);
	nodes_expect_connected(0, 1);
	cr_expect_eq(nodes[1].links[0].resumes, id);
	nodes_stop();
}
