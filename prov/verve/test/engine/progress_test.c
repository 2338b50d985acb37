/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Progress thread: a domain opened with FI_PROGRESS_AUTO answers its peers without a call of the
 * application, and runs nothing when there is no work.
 */
#include "engine/progress.h"

#include <criterion/criterion.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <string.h>

#include "../api/fixture.h"
#include "api/cq.h"
#include "api/domain.h"

enum { LONG = 100000 };

static const uint64_t second = 1000000000;

struct end {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
};

static struct fixture fix;
static struct end a, b;
static char from[LONG], to[LONG];

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
	memset(from, 'x', LONG);
	memset(to, 0, LONG);
}

static void teardown(void)
{
	fixture_fini(&fix);
}

TestSuite(progress, .init = setup, .fini = teardown);

static void open_end(struct end *end, enum fi_progress progress)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};

	fix.info->domain_attr->data_progress = progress;
	cr_assert_eq(fi_domain(fix.fabric, fix.info, &end->domain, NULL), 0);
	cr_assert_eq(fi_av_open(end->domain, &av_attr, &end->av, NULL), 0);
	cr_assert_eq(fi_cq_open(end->domain, &attr, &end->cq, NULL), 0);
	cr_assert_eq(fi_endpoint(end->domain, fix.info, &end->ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_enable(end->ep), 0);
}

static void open_both(enum fi_progress progress_a, enum fi_progress progress_b)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	open_end(&a, progress_a);
	open_end(&b, progress_b);
	cr_assert_eq(fi_getname(&b.ep->fid, &name, &len), 0);
	cr_assert_eq(fi_av_insert(a.av, &name, 1, &a.peer, 0, NULL), 1);
}

static void close_end(struct end *end)
{
	cr_expect_eq(fi_close(&end->ep->fid), 0);
	cr_expect_eq(fi_close(&end->cq->fid), 0);
	cr_expect_eq(fi_close(&end->av->fid), 0);
	cr_expect_eq(fi_close(&end->domain->fid), 0);
}

static void close_both(void)
{
	close_end(&a);
	close_end(&b);
}

/* Looks at the queue without the progress that fi_cq_read makes. */
static bool has_completion(const struct end *end)
{
	return !verve_comp_queue_is_empty(&verve_cq_from_fid(&end->cq->fid)->queue);
}

/*
 * Sends a message of len bytes that the receiver must confirm. The test calls libfabric no more
 * after that.
 */
static void send_message(size_t len)
{
	struct iovec iov = {from, len};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = a.peer};

	cr_assert_eq(fi_recv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, NULL), 0);
	cr_assert_eq(fi_sendmsg(a.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION), 0);
	fake_net_advance(second);
}

Test(progress, short_and_long_messages_end_without_a_call)
{
	static const size_t len[] = {8, 3000, LONG};

	open_both(FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	for (int i = 0; i < 3; i++) {
		struct fi_cq_tagged_entry entry;

		memset(to, 0, LONG);
		send_message(len[i]);
		cr_expect(has_completion(&a));
		cr_expect(has_completion(&b));
		cr_expect_eq(memcmp(from, to, len[i]), 0);
		cr_expect_eq(fi_cq_read(a.cq, &entry, 1), 1);
		cr_expect_eq(fi_cq_read(b.cq, &entry, 1), 1);
	}
	close_both();
}

Test(progress, one_side_alone_answers_for_itself)
{
	struct fi_cq_tagged_entry entry;

	open_both(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO);
	send_message(LONG);
	/*
	 * The connection is up. But a polls only when the application calls: its engine does not
	 * know yet, and has not sent.
	 */
	cr_expect_not(has_completion(&b));
	cr_expect_eq(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
	fake_net_advance(second);
	cr_expect(has_completion(&b));
	cr_expect_not(has_completion(&a));
	close_both();
}

Test(progress, manual_domains_wait_for_the_application)
{
	open_both(FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL);
	send_message(LONG);
	cr_expect_not(has_completion(&a));
	cr_expect_not(has_completion(&b));
	close_both();
}

/*
 * Counts the events of the fake net in the next ns nanoseconds. Only the watch over connections may
 * make some.
 */
static uint64_t events_in(uint64_t ns)
{
	uint64_t end = fake_net_time() + ns, count = 0;

	for (; fake_net_next() <= end; count++)
		fake_net_run_next();
	fake_net_run_until(end);
	return count;
}

Test(progress, sleeps_when_idle)
{
	open_both(FI_PROGRESS_AUTO, FI_PROGRESS_AUTO);
	fake_net_advance(second);
	cr_expect_eq(events_in(86400 * second), 0);
	send_message(LONG);
	fake_net_advance(60 * second);
	cr_expect_eq(events_in(86400 * second), 0);
	close_both();
}

Test(progress, locks_are_kept_whatever_the_application_promises)
{
	fix.info->domain_attr->threading = FI_THREAD_DOMAIN;
	open_end(&a, FI_PROGRESS_AUTO);
	cr_expect_not(verve_domain_elides_locks(verve_domain_from_fid(&a.domain->fid)));
	close_end(&a);
	open_end(&a, FI_PROGRESS_MANUAL);
	cr_expect(verve_domain_elides_locks(verve_domain_from_fid(&a.domain->fid)));
	close_end(&a);
}

Test(progress, thread_that_does_not_start_is_reported)
{
	struct fid_domain *domain;

	fix.info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	fake_net_fail(FAKE_NET_THREAD_START, 1, -FI_EAGAIN);
	cr_expect_eq(fi_domain(fix.fabric, fix.info, &domain, NULL), -FI_EAGAIN);
}

Test(progress, endpoint_that_cannot_be_watched_is_not_enabled)
{
	open_end(&a, FI_PROGRESS_AUTO);
	open_end(&b, FI_PROGRESS_AUTO);
	cr_expect_eq(fi_close(&b.ep->fid), 0);
	cr_assert_eq(fi_endpoint(b.domain, fix.info, &b.ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(b.ep, &b.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(b.ep, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	fake_net_fail(FAKE_NET_THREAD_WATCH, 2, -FI_ENOMEM);
	cr_expect_eq(fi_enable(b.ep), -FI_ENOMEM);
	cr_expect(fake_net_has_failed());
	close_both();
}

Test(progress, unloading_stops_threads_of_open_domains)
{
	open_end(&a, FI_PROGRESS_AUTO);
	verve_progress_fini();
	verve_progress_fini();
	close_end(&a);
}

Test(progress, endpoint_is_enabled_after_unloading)
{
	open_end(&a, FI_PROGRESS_AUTO);
	cr_expect_eq(fi_close(&a.ep->fid), 0);
	verve_progress_fini();
	cr_assert_eq(fi_endpoint(a.domain, fix.info, &a.ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(a.ep, &a.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(a.ep, &a.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_expect_eq(fi_enable(a.ep), 0);
	close_end(&a);
}
