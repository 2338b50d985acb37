/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the page tells of endpoints and peers: traffic, states, errors, events; and without a page.
 */
#include "xport/publish.h"

#include <string.h>

#include "../proto/pair.h"
#include "base/config.h"

static char out[8192], in[8192];

static struct verve_page_entry *entry_of(struct node *node, const struct node *to)
{
	return node_peer(node, to)->stat;
}

static void exchange(size_t len)
{
	pair_recv(len, 0, NULL);
	pair_send(len, 0, NULL);
	nodes_settle();
	expect_comp(&a.tx_queue);
	expect_comp(&b.rx_queue);
}

Test(publish, packets_and_requests_are_counted)
{
	struct verve_page_entry *at_a, *at_b;

	pair_open(out, in, sizeof(out));
	at_a = entry_of(&a, &b);
	at_b = entry_of(&b, &a);
	exchange(100);
	exchange(100);
	cr_expect_eq(at_a->values[VERVE_STAT_PEER_SENT + VERVE_WIRE_EAGER], 2);
	cr_expect_geq(at_a->values[VERVE_STAT_PEER_SENT_BYTES], 200);
	cr_expect_eq(at_b->values[VERVE_STAT_PEER_ARRIVED + VERVE_WIRE_EAGER], 2);
	cr_expect_geq(at_b->values[VERVE_STAT_PEER_ARRIVED_BYTES], 200);
	exchange(sizeof(out));
	cr_expect_eq(at_a->values[VERVE_STAT_PEER_SENT + VERVE_WIRE_RTS], 1);
	cr_expect_eq(at_a->values[VERVE_STAT_PEER_ARRIVED + VERVE_WIRE_FIN], 1);
	cr_expect_eq(at_b->values[VERVE_STAT_PEER_ARRIVED + VERVE_WIRE_RTS], 1);
	cr_expect_eq(at_b->values[VERVE_STAT_PEER_SENT + VERVE_WIRE_FIN], 1);
	cr_expect_geq(at_b->values[VERVE_STAT_PEER_REQUESTS], 1);
	cr_expect_eq(at_b->values[VERVE_STAT_PEER_REQUEST_BYTES], sizeof(out));
	pair_close();
}

static const struct verve_page_event *last_event(const struct verve_page_entry *entry)
{
	cr_assert_gt(entry->event_count, 0);
	return &entry->events[(entry->event_count - 1) % VERVE_PAGE_EVENTS];
}

Test(publish, a_connection_that_breaks_leaves_its_reason)
{
	struct verve_page_entry *entry;
	struct verve_link *link;
	uint32_t conn_id;

	pair_open(out, in, sizeof(out));
	entry = entry_of(&a, &b);
	link = node_link(&a, &b);
	conn_id = link->conn_id;
	exchange(1);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_STATE], VERVE_STAT_STATE_UP);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_CONNECTIONS], 1);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_CONN_ID], conn_id);
	verve_link_break(a.xport, link, FI_EIO, 12, "a test");
	cr_expect_eq(entry->values[VERVE_STAT_PEER_STATE], VERVE_STAT_STATE_IDLE);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_ERRORS], 1);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_ERROR], FI_EIO);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_STATUS], 12);
	cr_expect_str_eq(entry->text, "a test");
	cr_expect_eq(last_event(entry)->what, VERVE_STAT_EVENT_BROKE);
	cr_expect_eq(last_event(entry)->id, conn_id);
	cr_expect_eq(last_event(entry)->error, FI_EIO);
	pair_close();
}

Test(publish, an_end_in_order_is_no_error)
{
	struct verve_page_entry *entry;

	pair_open(out, in, sizeof(out));
	entry = entry_of(&a, &b);
	verve_link_break(a.xport, node_link(&a, &b), FI_ENOTCONN, 0, "the peer closed");
	cr_expect_eq(entry->values[VERVE_STAT_PEER_ERRORS], 0);
	cr_expect_str_empty(entry->text);
	cr_expect_eq(last_event(entry)->what, VERVE_STAT_EVENT_BROKE);
	pair_close();
}

Test(publish, present_values_are_written_in_turns)
{
	struct verve_page_entry *entry, *endpoint, *domain;
	struct verve_link *link;

	pair_open(out, in, sizeof(out));
	entry = entry_of(&a, &b);
	endpoint = a.xport->stat.endpoint;
	domain = a.xport->stat.domain;
	link = node_link(&a, &b);
	link->credits -= 2;
	a.xport->count.malformed = 5;
	verve_publish_step(a.xport, a.xport->stat.when + 99999999);
	cr_expect_neq(endpoint->values[VERVE_STAT_EP_MALFORMED], 5, "it is too early");
	verve_publish_step(a.xport, a.xport->stat.when + 100000000);
	cr_expect_eq(endpoint->values[VERVE_STAT_EP_MALFORMED], 5);
	cr_expect_eq(endpoint->values[VERVE_STAT_EP_PEERS], 1);
	cr_expect_eq(endpoint->values[VERVE_STAT_EP_LINKS], 1);
	cr_expect_eq(endpoint->values[VERVE_STAT_EP_TX_SIZE], NODE_TX_SIZE);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_CREDITS], NODE_WINDOW - 2);
	cr_expect_eq(entry->values[VERVE_STAT_PEER_QP_NUM], link->qp_num);
	cr_expect_eq(entry->owner, endpoint->id);
	cr_expect_eq(endpoint->owner, domain->id);
	cr_expect_str_not_empty(domain->name);
	link->credits += 2;
	pair_close();
}

/* A sweep may free the peer with which the next turn was to go on. */
Test(publish, a_peer_that_goes_is_not_written)
{
	struct verve_addr addr;

	pair_open(out, in, sizeof(out));
	addr = b.addr;
	for (uint16_t i = 0; i < 100; i++) {
		verve_addr_set_port(&addr, 1000 + i);
		cr_assert_not_null(verve_peer_get(a.xport, &addr));
	}
	verve_publish(a.xport);
	cr_assert_not_null(a.xport->stat.next);
	verve_peer_sweep(a.xport);
	verve_publish(a.xport);
	verve_publish(a.xport);
	cr_expect_eq(a.xport->stat.endpoint->values[VERVE_STAT_EP_PEERS], 1);
	pair_close();
}

Test(publish, without_a_page_all_goes_on)
{
	verve_config.stat = "off";
	pair_open(out, in, sizeof(out));
	cr_expect_eq(entry_of(&a, &b), &a.xport->stat.spare);
	exchange(100);
	exchange(sizeof(out));
	verve_publish(a.xport);
	verve_link_break(a.xport, node_link(&a, &b), FI_EIO, 12, "a test");
	nodes_settle();
	pair_close();
}

static size_t count_names(const struct verve_stat_metric *metrics, size_t count, bool *known)
{
	size_t numbers = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t wide = metrics[i].labels ? metrics[i].count : 1;

		cr_expect_gt(wide, 0, "%s", metrics[i].name);
		for (uint32_t j = 0; j < wide; j++) {
			cr_assert_lt(metrics[i].first + j, VERVE_PAGE_VALUES);
			cr_expect_not(known[metrics[i].first + j], "%s", metrics[i].name);
			known[metrics[i].first + j] = true;
			numbers++;
		}
	}
	return numbers;
}

Test(publish, each_number_has_one_name)
{
	static const size_t wanted[VERVE_STAT_KINDS] = {
		0, VERVE_STAT_DOMAIN_VALUES, VERVE_STAT_EP_VALUES, VERVE_STAT_PEER_VALUES};

	for (int kind = 1; kind < VERVE_STAT_KINDS; kind++) {
		bool known[VERVE_PAGE_VALUES] = {false};
		const struct verve_stat_metric *metrics;
		size_t count;

		metrics = verve_stat_metrics(kind, &count);
		cr_expect_eq(count_names(metrics, count, known), wanted[kind], "%d", kind);
		cr_expect_not_null(verve_stat_kind_names[kind]);
	}
	for (int i = 0; i < VERVE_STAT_STATES; i++)
		cr_expect_not_null(verve_stat_state_names[i], "%d", i);
	for (int i = 1; i < VERVE_STAT_EVENTS; i++)
		cr_expect_not_null(verve_stat_event_names[i], "%d", i);
}
