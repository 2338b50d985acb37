/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoint, from open to close: what it can be bound to, what it needs to be enabled, its name,
 * flags and options, and in which order.
 */
#include "api/ep.h"

#include "../support/oom.h"
#include "ep_pair.h"

#include "engine/engine.h"
#include "net/qp.h"
#include "xport/op.h"
#include "xport/xport.h"

static struct ep_pair pair;
static struct fixture *fix = &pair.fix;
static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_cntr *cntr;

static void setup(void)
{
	fixture_init(fix, FI_VERSION(1, 17));
	fixture_open_domain(fix);
}

static void teardown(void)
{
	fixture_fini(fix);
}

TestSuite(ep, .init = setup, .fini = teardown);

/* Opens an endpoint and the objects that it may be bound to. Nothing is bound. */
static void open_all(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG};
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	cr_assert_eq(fi_endpoint(fix->domain, fix->info, &ep, fix), 0);
	cr_assert_eq(fi_av_open(fix->domain, &av_attr, &av, NULL), 0);
	cr_assert_eq(fi_cq_open(fix->domain, &cq_attr, &cq, NULL), 0);
	cr_assert_eq(fi_cntr_open(fix->domain, &cntr_attr, &cntr, NULL), 0);
}

static void close_all(void)
{
	cr_expect_eq(fi_close(&ep->fid), 0);
	cr_expect_eq(fi_close(&av->fid), 0);
	cr_expect_eq(fi_close(&cq->fid), 0);
	cr_expect_eq(fi_close(&cntr->fid), 0);
}

static void bind_and_enable(void)
{
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(ep), 0);
}

/* The completion vectors of the endpoint's queues. */
static void expect_vectors(uint32_t send, uint32_t recv)
{
	struct verve_engine *engine = verve_ep_from_fid(ep)->engine;
	struct verve_xport *xport = verve_engine_lock(engine);

	cr_expect_eq(fake_net_cq_vector(xport->send_cq), send);
	cr_expect_eq(fake_net_cq_vector(xport->recv_cq), recv);
	verve_engine_unlock(engine);
}

Test(ep, queues_of_each_endpoint_have_the_next_vector)
{
	for (uint32_t i = 0; i < 3; i++) {
		open_all();
		bind_and_enable();
		expect_vectors(i, i);
		close_all();
	}
}

Test(ep, queue_with_affinity_has_its_vector)
{
	struct fi_cq_attr attr = {.flags = FI_AFFINITY, .signaling_vector = 0};
	struct fid_cq *there;

	open_all();
	bind_and_enable();
	close_all();
	open_all();
	cr_assert_eq(fi_cq_open(fix->domain, &attr, &there, NULL), 0);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	cr_assert_eq(fi_ep_bind(ep, &there->fid, FI_RECV), 0);
	cr_assert_eq(fi_enable(ep), 0);
	expect_vectors(1, 0);
	close_all();
	cr_expect_eq(fi_close(&there->fid), 0);
}

/* Opening. */

static int refused(void)
{
	struct fid_ep *none;

	return fi_endpoint(fix->domain, fix->info, &none, NULL);
}

Test(ep, is_what_it_was_opened_as)
{
	open_all();
	cr_expect_eq(ep->fid.fclass, FI_CLASS_EP);
	cr_expect_eq(ep->fid.context, fix);
	cr_expect_eq(fi_close(&fix->domain->fid), -FI_EBUSY);
	close_all();
}

Test(ep, other_types_are_refused)
{
	fix->info->ep_attr->type = FI_EP_MSG;
	cr_expect_eq(refused(), -FI_EINVAL);
	fix->info->ep_attr->type = FI_EP_DGRAM;
	cr_expect_eq(refused(), -FI_EINVAL);
	fix->info->ep_attr->type = FI_EP_UNSPEC;
	open_all();
	close_all();
}

Test(ep, missing_attributes_are_refused)
{
	struct fi_info whole = *fix->info;

	fix->info->ep_attr = NULL;
	cr_expect_eq(refused(), -FI_EINVAL);
	*fix->info = whole;
	fix->info->tx_attr = NULL;
	cr_expect_eq(refused(), -FI_EINVAL);
	*fix->info = whole;
	fix->info->rx_attr = NULL;
	cr_expect_eq(refused(), -FI_EINVAL);
	*fix->info = whole;
}

/* A peer breaks the connection at more messages than an endpoint may have under way. */
Test(ep, more_operations_than_peers_take_are_refused)
{
	size_t size = fix->info->tx_attr->size;

	fix->info->tx_attr->size = 65537;
	cr_expect_eq(refused(), -FI_EINVAL);
	fix->info->tx_attr->size = 65536;
	open_all();
	close_all();
	fix->info->tx_attr->size = size;
}

Test(ep, source_address_is_an_ip_address_or_the_ports)
{
	void *addr = fix->info->src_addr;
	struct sockaddr_in name;
	size_t len = sizeof(name);

	((struct sockaddr *)addr)->sa_family = AF_UNIX;
	cr_expect_eq(refused(), -FI_EINVAL);
	((struct sockaddr *)addr)->sa_family = AF_INET;
	fix->info->src_addrlen = 3;
	cr_expect_eq(refused(), -FI_EINVAL);
	fix->info->src_addrlen = sizeof(struct sockaddr_in);
	fix->info->src_addr = NULL;
	open_all();
	bind_and_enable();
	cr_expect_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_expect_eq(name.sin_addr.s_addr, ((struct sockaddr_in *)addr)->sin_addr.s_addr);
	close_all();
	fix->info->src_addr = addr;
}

Test(ep, offers_only_what_was_asked_for)
{
	char byte;

	fix->info->caps &= ~(FI_TAGGED | FI_RMA);
	open_all();
	bind_and_enable();
	cr_expect_eq(fi_trecv(ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_read(ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_recv(ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	close_all();
}

/* Binding. */

Test(ep, binds_one_address_vector_of_its_domain)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fid_domain *domain;
	struct fid_av *foreign;

	open_all();
	cr_assert_eq(fi_domain(fix->fabric, fix->info, &domain, NULL), 0);
	cr_assert_eq(fi_av_open(domain, &attr, &foreign, NULL), 0);
	cr_expect_eq(fi_ep_bind(ep, &foreign->fid, 0), -FI_EDOMAIN);
	cr_expect_eq(fi_ep_bind(ep, &av->fid, FI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_close(&av->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&foreign->fid), 0);
	cr_expect_eq(fi_close(&domain->fid), 0);
	close_all();
}

Test(ep, binds_a_queue_for_each_direction_once)
{
	open_all();
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_SELECTIVE_COMPLETION), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_READ), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_RECV | FI_SELECTIVE_COMPLETION), 0);
	cr_expect_eq(fi_close(&cq->fid), -FI_EBUSY);
	close_all();
}

Test(ep, binds_a_counter_for_each_event_once)
{
	open_all();
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, 0), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_MULTI_RECV), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV), 0);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_READ | FI_SEND), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid,
				FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
		     0);
	cr_expect_eq(fi_close(&cntr->fid), -FI_EBUSY);
	close_all();
}

Test(ep, binds_nothing_else)
{
	struct fid_eq *eq = fixture_open_eq(fix);

	open_all();
	cr_expect_eq(fi_ep_bind(ep, &fix->domain->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_ep_bind(ep, &eq->fid, 1), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &eq->fid, 0), 0);
	cr_expect_eq(fi_ep_bind(ep, &eq->fid, 0), -FI_EINVAL);
	close_all();
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(ep, binds_counters_alone_once_enabled)
{
	struct fid_eq *eq = fixture_open_eq(fix);

	open_all();
	bind_and_enable();
	cr_expect_eq(fi_ep_bind(ep, &av->fid, 0), -FI_EOPBADSTATE);
	cr_expect_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), -FI_EOPBADSTATE);
	cr_expect_eq(fi_ep_bind(ep, &eq->fid, 0), -FI_EOPBADSTATE);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, 0), -FI_EBADFLAGS);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_SEND), 0);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_SEND | FI_RECV), -FI_EINVAL, "it has one");
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_RECV), 0);
	cr_expect_eq(fi_close(&cntr->fid), -FI_EBUSY);
	close_all();
	cr_expect_eq(fi_close(&eq->fid), 0);
}

/* As applications do that decide late which counter counts, such as Sandia OpenSHMEM. */
Test(ep, counter_bound_late_counts_and_makes_progress)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *late[2];
	char out = 'x', in = 0;

	/* Close the fixture's domain first: ep_pair_open opens one. */
	cr_assert_eq(fi_close(&fix->domain->fid), 0);
	ep_pair_open(&pair);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(fi_cntr_open(fix->domain, &attr, &late[i], NULL), 0);
	cr_assert_eq(fi_send(pair.a.ep, &out, 1, NULL, pair.a.peer, &out), 0);
	cr_assert_eq(fi_ep_bind(pair.a.ep, &late[0]->fid, FI_SEND), 0);
	cr_assert_eq(fi_ep_bind(pair.b.ep, &late[1]->fid, FI_RECV), 0);
	cr_assert_eq(fi_recv(pair.b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	/* Only the counters are read, no queue. */
	for (int i = 0; i < 1000 && (!fi_cntr_read(late[0]) || !fi_cntr_read(late[1])); i++)
		fake_net_advance(100000);
	cr_expect_eq(fi_cntr_read(late[0]), 1);
	cr_expect_eq(fi_cntr_read(late[1]), 1);
	cr_expect_eq(in, 'x');
	ep_side_close(&pair.a);
	cr_expect_eq(fi_close(&late[0]->fid), 0);
	ep_side_close(&pair.b);
	cr_expect_eq(fi_close(&late[1]->fid), 0);
}

Test(ep, counter_that_cannot_be_bound_late_is_not)
{
	open_all();
	bind_and_enable();
	oom_fail(0, false);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_READ), -FI_ENOMEM);
	cr_expect_eq(oom_stop(), 1);
	cr_expect_eq(fi_close(&cntr->fid), 0);
	cr_assert_eq(fi_cntr_open(fix->domain, NULL, &cntr, NULL), 0);
	cr_expect_eq(fi_ep_bind(ep, &cntr->fid, FI_READ), 0);
	close_all();
}

/* Enabling. */

Test(ep, needs_addresses_and_somewhere_to_complete)
{
	open_all();
	cr_expect_eq(fi_enable(ep), -FI_ENOAV);
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_expect_eq(fi_enable(ep), -FI_ENOCQ);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), 0);
	cr_expect_eq(fi_enable(ep), -FI_ENOCQ);
	/* a counter takes the place of a queue */
	cr_assert_eq(fi_ep_bind(ep, &cntr->fid, FI_RECV), 0);
	cr_expect_eq(fi_enable(ep), 0);
	cr_expect_eq(fi_enable(ep), -FI_EOPBADSTATE);
	close_all();
}

Test(ep, failure_to_enable_can_be_repeated)
{
	size_t before;

	open_all();
	cr_assert_eq(fi_ep_bind(ep, &av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	before = fake_net_leaks(NULL, 0);
	fake_net_fail(FAKE_NET_SRQ_OPEN, 1, -FI_ENOMEM);
	cr_expect_eq(fi_enable(ep), -FI_ENOMEM);
	cr_expect_eq(fake_net_leaks(NULL, 0), before);
	cr_expect_eq(fi_enable(ep), 0);
	close_all();
}

Test(ep, nothing_is_transferred_before_it_is_enabled)
{
	struct fi_msg msg = {0};
	struct fi_msg_tagged tagged = {0};
	char byte = 0;

	open_all();
	cr_expect_eq(fi_send(ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_inject(ep, &byte, 1, 0), -FI_EOPBADSTATE);
	cr_expect_eq(fi_recv(ep, &byte, 1, NULL, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_recvmsg(ep, &msg, FI_PEEK), -FI_EOPBADSTATE);
	cr_expect_eq(fi_tsend(ep, &byte, 1, NULL, 0, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_trecv(ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_trecvmsg(ep, &tagged, FI_PEEK), -FI_EOPBADSTATE);
	cr_expect_eq(fi_read(ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_write(ep, &byte, 1, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE);
	cr_expect_eq(fi_cancel(&ep->fid, NULL), -FI_EOPBADSTATE);
	close_all();
}

/* Names. */

Test(ep, has_a_name_once_enabled)
{
	struct sockaddr_in name, wanted;
	unsigned char part[4] = {0};
	size_t len = sizeof(name);

	open_all();
	cr_expect_eq(fi_getname(&ep->fid, &name, &len), -FI_EOPBADSTATE);
	wanted = *(struct sockaddr_in *)fix->info->src_addr;
	wanted.sin_port = htons(7777);
	cr_expect_eq(fi_setname(&ep->fid, &wanted, 3), -FI_EINVAL);
	cr_expect_eq(fi_setname(&ep->fid, &wanted, sizeof(wanted)), 0);
	bind_and_enable();
	cr_expect_eq(fi_setname(&ep->fid, &wanted, sizeof(wanted)), -FI_EOPBADSTATE);
	cr_expect_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_expect_eq(len, sizeof(name));
	cr_expect_eq(memcmp(&name, &wanted, sizeof(name)), 0);
	len = 0;
	cr_expect_eq(fi_getname(&ep->fid, NULL, &len), -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(name));
	len = 3;
	cr_expect_eq(fi_getname(&ep->fid, part, &len), -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(name));
	cr_expect_eq(memcmp(part, &wanted, 3), 0);
	cr_expect_eq(part[3], 0);
	close_all();
}

Test(ep, name_of_the_other_family_is_refused)
{
	struct sockaddr_in6 name = {.sin6_family = AF_INET6};

	open_all();
	cr_expect_eq(fi_setname(&ep->fid, &name, sizeof(name)), -FI_EINVAL);
	close_all();
}

/* The endpoint's name is the domain's address with this port. Peers need such a name. */
static void expect_own_address(uint16_t port)
{
	const struct sockaddr_in *own = fix->info->src_addr;
	struct sockaddr_in name;
	size_t len = sizeof(name);

	bind_and_enable();
	cr_assert_eq(fi_getname(&ep->fid, &name, &len), 0);
	cr_expect_eq(name.sin_addr.s_addr, own->sin_addr.s_addr);
	cr_expect_eq(name.sin_port, htons(port));
	close_all();
}

Test(ep, wildcard_is_the_address_of_the_domain)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(7777)},
			   *src = fix->info->src_addr;
	struct sockaddr_in own = *src;

	open_all();
	cr_expect_eq(fi_setname(&ep->fid, &any, sizeof(any)), 0);
	expect_own_address(7777);
	any.sin_port = htons(7778);
	*src = any;
	open_all();
	*src = own;
	expect_own_address(7778);
}

Test(ep, wildcard_of_the_other_family_is_nobodys)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	void *own = fix->info->src_addr;
	size_t len = fix->info->src_addrlen;

	fix->info->src_addr = &any;
	fix->info->src_addrlen = sizeof(any);
	cr_expect_eq(refused(), -FI_EADDRNOTAVAIL);
	fix->info->src_addr = own;
	fix->info->src_addrlen = len;
}

/* Options and flags. */

Test(ep, least_rest_of_a_multi_receive_buffer_can_be_set)
{
	size_t value = 0, len = sizeof(value);
	char small[sizeof(size_t) - 1];

	open_all();
	cr_expect_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	cr_expect_gt(value, 0);
	value = 4711;
	cr_expect_eq(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, len), 0);
	value = 0;
	cr_expect_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	cr_expect_eq(value, 4711);
	value = 0; /* 0 becomes 1: a buffer without room is always given back */
	cr_expect_eq(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, len), 0);
	cr_expect_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len), 0);
	cr_expect_eq(value, 1);
	len = sizeof(small);
	cr_expect_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, small, &len),
		     -FI_ETOOSMALL);
	cr_expect_eq(len, sizeof(size_t));
	cr_expect_eq(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 4),
		     -FI_EINVAL);
	cr_expect_eq(fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, len),
		     -FI_ENOPROTOOPT);
	cr_expect_eq(fi_getopt(&ep->fid, FI_OPT_ENDPOINT + 1, FI_OPT_MIN_MULTI_RECV, &value, &len),
		     -FI_ENOPROTOOPT);
	close_all();
}

Test(ep, operation_flags_can_be_asked_for_and_set)
{
	uint64_t flags;

	open_all();
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	cr_expect_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_RECV | FI_MULTI_RECV;
	cr_expect_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), 0);
	flags = FI_TRANSMIT;
	cr_expect_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	cr_expect_eq(flags, FI_DELIVERY_COMPLETE);
	flags = FI_RECV;
	cr_expect_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	cr_expect_eq(flags, FI_MULTI_RECV);
	/* Flags that no operation has, or only operations of the other direction. */
	flags = FI_TRANSMIT | 1ull << 47;
	cr_expect_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	flags = FI_RECV | FI_DELIVERY_COMPLETE;
	cr_expect_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	flags = FI_TRANSMIT;
	cr_expect_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), 0);
	cr_expect_eq(flags, FI_DELIVERY_COMPLETE);
	flags = FI_RECV | FI_TRANSMIT;
	cr_expect_eq(fi_control(&ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL);
	flags = 0;
	cr_expect_eq(fi_control(&ep->fid, FI_SETOPSFLAG, &flags), -FI_EINVAL);
	cr_expect_eq(fi_control(&ep->fid, FI_GETWAIT, &flags), -FI_ENOSYS);
	close_all();
}

Test(ep, flags_of_the_interface_become_our_own)
{
	struct verve_ep plain = {0}, selective = {.tx_selective = true, .rx_selective = true};

	cr_expect_eq(verve_ep_tx_flags(&plain, 0), VERVE_OP_NOTIFY);
	cr_expect_eq(verve_ep_tx_flags(&selective, 0), 0);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_COMPLETION), VERVE_OP_NOTIFY);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_REMOTE_CQ_DATA), VERVE_OP_DATA);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_INJECT), VERVE_OP_INJECT);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_INJECT_COMPLETE), 0);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_TRANSMIT_COMPLETE), VERVE_OP_TRANSMIT);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_DELIVERY_COMPLETE), VERVE_OP_ACK);
	cr_expect_eq(verve_ep_tx_flags(&selective, FI_FENCE), VERVE_OP_FENCE);
	cr_expect_eq(verve_ep_rx_flags(&plain, 0), VERVE_OP_NOTIFY);
	cr_expect_eq(verve_ep_rx_flags(&selective, 0), 0);
	cr_expect_eq(verve_ep_rx_flags(&selective, FI_COMPLETION | FI_MULTI_RECV),
		     VERVE_OP_NOTIFY | VERVE_OP_MULTI);
}

Test(ep, cancel_knows_posted_receives_alone)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_msg_entry entry;
	char byte;

	open_all();
	bind_and_enable();
	cr_expect_eq(fi_cancel(&ep->fid, &byte), -FI_ENOENT);
	cr_assert_eq(fi_recv(ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte), 0);
	cr_expect_eq(fi_cancel(&ep->fid, &byte), 0);
	cr_expect_eq(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
	cr_expect_eq(fi_cq_readerr(cq, &error, 0), 1);
	cr_expect_eq(error.err, FI_ECANCELED);
	cr_expect_eq(error.op_context, &byte);
	cr_expect_eq(fi_cancel(&ep->fid, &byte), -FI_ENOENT);
	close_all();
}

/* The queue pairs of a pair of endpoints that was opened with these traffic classes. */
static uint16_t dscp_of(uint32_t domain, uint32_t endpoint)
{
	struct fake_net_stats stats;
	struct ep_pair two;

	fixture_init(&two.fix, FI_VERSION(1, 17));
	two.fix.info->domain_attr->tclass = domain;
	two.fix.info->tx_attr->tclass = endpoint;
	ep_pair_open(&two);
	cr_assert_eq(fi_inject(two.a.ep, "x", 1, two.a.peer), 0);
	ep_pair_run(&two, 50);
	fake_net_stats(&stats);
	ep_pair_close(&two);
	return stats.dscp;
}

TestSuite(tclass);

Test(tclass, reaches_the_queue_pairs)
{
	const struct {
		uint32_t domain, endpoint;
		uint16_t dscp;
	} classes[] = {
		{FI_TC_UNSPEC, FI_TC_UNSPEC, 0},
		{fi_tc_dscp_set(0), FI_TC_UNSPEC, VERVE_NET_DSCP},
		{fi_tc_dscp_set(34), FI_TC_UNSPEC, VERVE_NET_DSCP | 34},
		{fi_tc_dscp_set(34), fi_tc_dscp_set(63), VERVE_NET_DSCP | 63},
		{fi_tc_dscp_set(34), FI_TC_BEST_EFFORT, 0},
		{FI_TC_LOW_LATENCY, FI_TC_UNSPEC, VERVE_NET_DSCP | 18},
		{FI_TC_UNSPEC, FI_TC_DEDICATED_ACCESS, VERVE_NET_DSCP | 46},
		{FI_TC_UNSPEC, FI_TC_BULK_DATA, VERVE_NET_DSCP | 10},
		{FI_TC_UNSPEC, FI_TC_SCAVENGER, VERVE_NET_DSCP | 1},
		{FI_TC_UNSPEC, FI_TC_NETWORK_CTRL, VERVE_NET_DSCP | 48},
		{FI_TC_UNSPEC, fi_tc_dscp_set(64), 0},
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		uint16_t dscp = dscp_of(classes[i].domain, classes[i].endpoint);

		cr_expect_eq(dscp, classes[i].dscp, "0x%x, 0x%x: 0x%x", classes[i].domain,
			     classes[i].endpoint, dscp);
	}
}
