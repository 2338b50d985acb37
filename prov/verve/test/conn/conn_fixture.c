/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Two ends of a connection: a step, and the steps that most tests begin with. */
#include "conn_fixture.h"

#include <arpa/inet.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "base/log.h"

struct end a, b;
uint64_t now;
uint64_t random_number;
struct verve_conn_out out;

static struct verve_addr addr_of(uint8_t host)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(4000),
		.sin_addr.s_addr = htonl(0x0a000000u + host),
	};
	struct verve_addr addr;

	cr_assert_eq(verve_addr_set(&addr, &in, sizeof(in)), 0);
	return addr;
}

void start_end(struct end *end, uint8_t host, uint8_t peer)
{
	struct verve_addr addr = addr_of(peer);

	memset(end, 0, sizeof(*end));
	end->self.addr = addr_of(host);
	end->self.incarnation = ++random_number;
	end->self.window = 100u + host;
	end->self.eager_size = 1000u + host;
	end->self.timeout = 1000 * ms;
	verve_conn_init(&end->conn, &end->self, &addr);
}

void setup(void)
{
	static struct fi_provider provider = {.name = "test"};

	verve_log_provider = &provider;
	now = 5000 * ms;
	random_number = 1000;
	start_end(&a, 1, 2);
	start_end(&b, 2, 1);
}

TestSuite(conn, .init = setup);

void open_end(struct end *end)
{
	struct verve_conn_local local = {
		.id = (uint32_t)random_number + 1,
		.serial = ++end->serial,
		.nonce = random_number + 2,
		.qp = {.qp_num = (uint32_t)random_number + 3, .psn = 7, .mtu_log2 = 10},
	};

	random_number += 3;
	verve_conn_open(&end->conn, &local);
}

struct verve_hello request(struct end *end)
{
	verve_conn_connect(&end->conn);
	cr_assert_eq(end->conn.state, VERVE_CONN_QUEUED);
	open_end(end);
	verve_conn_start(&end->conn, now, ++random_number, &out);
	cr_assert_eq(out.actions, SEND);
	cr_assert_eq(out.hello.kind, VERVE_HELLO_HELLO);
	cr_assert_eq(end->conn.state, VERVE_CONN_WAIT_HELLO);
	return out.hello;
}

unsigned receive(struct end *end, const struct verve_hello *arrived)
{
	struct verve_hello hello = *arrived; /* a copy: arrived may be out.hello */
	unsigned actions = 0;

	for (;;) {
		verve_conn_receive(&end->conn, &hello, now, ++random_number, &out);
		actions |= out.actions;
		if (!(out.actions & OPEN))
			return actions;
		open_end(end);
	}
}

struct verve_hello establish(void)
{
	struct verve_hello first = request(&a), answer, ready;

	cr_assert_eq(receive(&b, &first), OPEN | ADOPT);
	answer = out.hello;
	cr_assert_eq(receive(&a, &answer), ADOPT);
	ready = out.hello;
	cr_assert_eq(receive(&b, &ready), REPORT_READY);
	cr_assert_eq(a.conn.state, VERVE_CONN_UP);
	cr_assert_eq(b.conn.state, VERVE_CONN_UP);
	return first;
}

void expect_agreement(void)
{
	/* Both engines have read UP. */
	verve_conn_taken(&a.conn);
	verve_conn_taken(&b.conn);
	cr_assert_eq(a.conn.remote.id, b.conn.local.id);
	cr_assert_eq(b.conn.remote.id, a.conn.local.id);
	cr_assert_eq(a.conn.remote.qp.qp_num, b.conn.local.qp.qp_num);
	cr_assert_eq(b.conn.remote.qp.qp_num, a.conn.local.qp.qp_num);
	cr_assert_eq(a.conn.remote.window, b.self.window);
	cr_assert_eq(a.conn.remote.eager_size, b.self.eager_size);
	cr_assert_eq(b.conn.remote.eager_size, a.self.eager_size);
	cr_assert_eq(b.conn.remote.window, a.self.window);
	cr_assert_eq(a.conn.timer, VERVE_TIMER_NEVER);
	cr_assert_eq(b.conn.timer, VERVE_TIMER_NEVER);
}

void fire(struct end *end)
{
	now = end->conn.timer;
	verve_conn_timer(&end->conn, now, ++random_number, &out);
}
