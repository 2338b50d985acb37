/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Service thread: when it runs, which managers it steps, and what can keep it from starting. */
#include "engine/service.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "../support/child.h"
#include "../support/fake_net.h"
#include "../support/fake_world.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "conn/cm.h"
#include "net/cq.h"
#include "net/device.h"
#include "net/qp.h"
#include "net/srq.h"
#include "net/sys.h"

enum { CLIENTS = 3 };

static const uint64_t second = 1000000000;

static struct fi_provider provider = {.name = "verve"};
static struct verve_net_device *dev[CLIENTS];
static struct verve_net_cq *cq[CLIENTS];
static struct verve_net_srq *srq[CLIENTS];
static struct verve_cm *cm[CLIENTS];
static struct verve_mailbox events;

/* Called when the manager tells its owner of new events; NULL: nothing is called. */
static void (*on_notify)(void);

static void notified(void *arg)
{
	(void)arg;
	if (on_notify)
		on_notify();
}

static void wake(void *arg)
{
	(void)arg;
	verve_service_wake();
}

/* Clients 0 and 2 are on one device, client 1 is on another. */
static void setup(void)
{
	struct verve_net_port *list;
	size_t count;

	verve_log_provider = &provider;
	verve_mailbox_init(&events);
	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	for (int i = 0; i < CLIENTS; i++) {
		struct verve_cm_attr attr = {
			.connect_timeout = second, .events = &events, .notify = notified,
				.wake = wake};

		if (i < 2)
			cr_assert_eq(verve_net_device_open(list[i].device, 1, NULL, &dev[i]), 0);
		else
			dev[i] = dev[0];
		cr_assert_eq(verve_net_cq_open(dev[i], 16, NULL, 0, &cq[i]), 0);
		cr_assert_eq(verve_net_srq_open(dev[i], 16, &srq[i]), 0);
		attr.dev = dev[i];
		attr.qp_attr = (struct verve_net_qp_attr){
			.send_cq = cq[i], .recv_cq = cq[i], .srq = srq[i], .send_wr = 1};
		fake_net_host_addr(i % 2, &attr.addr);
		cr_assert_eq(verve_cm_open(&attr, &cm[i]), 0);
	}
	verve_net_port_list_free(list, count);
}

static void teardown(void)
{
	struct verve_mail *mail, *next;

	for (int i = 0; i < CLIENTS; i++) {
		verve_cm_close(cm[i]);
		verve_net_srq_close(srq[i]);
		verve_net_cq_close(cq[i]);
	}
	verve_net_device_close(dev[0]);
	verve_net_device_close(dev[1]);
	for (mail = verve_mailbox_take(&events); mail; mail = next) {
		next = mail->next;
		verve_cm_event_free((struct verve_cm_event *)mail);
	}
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

TestSuite(service, .init = setup, .fini = teardown);

static bool runs(void)
{
	return fake_threads_run("verve-service");
}

static uint64_t datagrams(void)
{
	struct fake_net_stats stats;

	fake_net_stats(&stats);
	return stats.dgrams;
}

Test(service, runs_from_the_first_to_the_last)
{
	cr_expect_not(runs());
	for (int i = 0; i < CLIENTS; i++) {
		cr_assert_eq(verve_service_add(cm[i], dev[i]), 0);
		cr_expect(runs());
	}
	for (int i = 0; i < CLIENTS; i++) {
		cr_expect(runs());
		verve_service_remove(cm[i]);
	}
	cr_expect_not(runs());
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0); /* a thread can be started again */
	cr_expect(runs());
	verve_service_remove(cm[0]);
}

Test(service, steps_its_managers_alone)
{
	struct verve_addr nobody = *verve_cm_addr(cm[1]);

	verve_addr_set_port(&nobody, 9);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(verve_cm_connect(cm[i], &nobody), 0);
	fake_net_run_until(fake_net_time() + second / 10);
	cr_expect_eq(datagrams(), 0);
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	fake_net_run_until(fake_net_time() + 2 * second);
	cr_expect_gt(datagrams(), 0);
	/* FAILED, because the peer does not exist */
	cr_expect_not(verve_mailbox_is_empty(&events));
	verve_service_remove(cm[0]);
}

Test(service, wakes_for_what_is_asked_for_while_it_sleeps)
{
	struct verve_addr nobody = *verve_cm_addr(cm[1]);

	verve_addr_set_port(&nobody, 9);
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	fake_net_run_until(fake_net_time() + second);
	cr_expect_eq(fake_net_next(), UINT64_MAX); /* the thread sleeps */
	cr_assert_eq(verve_cm_connect(cm[0], &nobody), 0);
	cr_expect_lt(fake_net_next(), UINT64_MAX);
	fake_net_run_until(fake_net_time() + second / 1000);
	cr_expect_gt(datagrams(), 0);
	verve_service_remove(cm[0]);
}

Test(service, removed_one_is_touched_no_more)
{
	struct verve_addr nobody = *verve_cm_addr(cm[1]);
	uint64_t before;

	verve_addr_set_port(&nobody, 9);
	fake_net_host_pause(1, true); /* without an answer, the manager repeats its HELLO */
	for (int i = 0; i < 2; i++)
		cr_assert_eq(verve_service_add(cm[i * 2], dev[i * 2]), 0);
	cr_assert_eq(verve_cm_connect(cm[0], &nobody), 0);
	fake_net_run_until(fake_net_time() + second / 100);
	verve_service_remove(cm[0]);
	before = datagrams();
	cr_expect_gt(before, 0);
	fake_net_run_until(fake_net_time() + 5 * second);
	cr_expect_eq(datagrams(), before);
	verve_service_remove(cm[2]);
}

Test(service, nothing_to_wake_or_remove_is_fine)
{
	verve_service_wake();
	verve_service_remove(cm[0]);
	verve_service_fini();
	cr_expect_not(runs());
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	verve_service_remove(cm[1]);
	cr_expect(runs());
	verve_service_remove(cm[0]);
}

Test(service, thread_that_does_not_start_is_told_and_leaves_nothing)
{
	size_t before = fake_net_leaks(NULL, 0);

	fake_net_fail(FAKE_NET_THREAD_START, 1, -FI_EAGAIN);
	cr_expect_eq(verve_service_add(cm[0], dev[0]), -FI_EAGAIN);
	cr_expect_eq(fake_net_leaks(NULL, 0), before);
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	verve_service_remove(cm[0]);
	cr_expect_eq(fake_net_leaks(NULL, 0), before);
}

Test(service, device_that_cannot_be_watched_stops_the_thread_unless_it_serves_others)
{
	fake_net_fail(FAKE_NET_THREAD_WATCH, 1, -FI_ENOMEM);
	cr_expect_eq(verve_service_add(cm[0], dev[0]), -FI_ENOMEM);
	cr_expect_not(runs());
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	fake_net_fail(FAKE_NET_THREAD_WATCH, 1, -FI_ENOMEM);
	cr_expect_eq(verve_service_add(cm[1], dev[1]), -FI_ENOMEM);
	cr_expect(runs());
	fake_net_fail(0, 0, 0);
	verve_service_remove(cm[0]);
	cr_expect_not(runs());
}

Test(service, takes_the_events_of_its_devices)
{
	struct verve_net_fault fault;

	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	fake_net_device_remove(0);
	fake_net_step_threads();
	cr_expect_eq(verve_net_device_async_next(dev[0], &fault), -FI_ENODEV);
	verve_service_remove(cm[0]);
}

/*
 * The device of clients 0 and 2 goes. Client 1 is on another device, and still waits for its peer.
 */
Test(service, tells_all_on_a_device_that_is_gone_and_nobody_else)
{
	struct verve_mail *mail, *next;
	struct verve_addr silent;
	int told[VERVE_CM_SCARCE + 1] = {0};

	fake_net_host_addr(1, &silent);
	silent.in.sin_addr.s_addr = htonl(0x0a0100ff); /* an address that no host has */
	verve_addr_set_port(&silent, 9);
	for (int i = 0; i < CLIENTS; i++) {
		cr_assert_eq(verve_cm_connect(cm[i], &silent), 0);
		cr_assert_eq(verve_service_add(cm[i], dev[i]), 0);
	}
	fake_net_run_until(fake_net_time() + second / 100);
	cr_expect(verve_mailbox_is_empty(&events));
	fake_net_device_remove(0);
	fake_net_run_until(fake_net_time() + second / 100);
	for (mail = verve_mailbox_take(&events); mail; mail = next) {
		struct verve_cm_event *event = (struct verve_cm_event *)mail;

		next = mail->next;
		cr_expect_eq(event->error, FI_ENODEV);
		told[event->type]++;
		verve_cm_event_free(event);
	}
	cr_expect_eq(told[VERVE_CM_FATAL], 2);
	cr_expect_eq(told[VERVE_CM_FAILED], 2);
	for (int i = 0; i < CLIENTS; i++)
		verve_service_remove(cm[i]);
}

Test(service, unloading_stops_it_with_endpoints_left_open)
{
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	verve_service_fini();
	cr_expect_not(runs());
	verve_service_wake();
	verve_service_remove(cm[0]); /* the thread has stopped before: this does nothing */
	cr_expect_not(runs());
}

Test(service, polling_after_unloading_helps_nobody)
{
	struct verve_addr nobody = *verve_cm_addr(cm[1]);

	verve_addr_set_port(&nobody, 9);
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	fake_net_run_until(fake_net_time() + second / 1000);
	verve_service_fini();
	cr_assert_eq(verve_cm_connect(cm[0], &nobody), 0);
	verve_service_help(cm[0], verve_net_now());
	verve_service_remove(cm[0]);
}

static pid_t child;

/*
 * Called while the service thread is in its step and holds the lock. If the child hangs, the alarm
 * kills it after two seconds.
 */
static void fork_and_unload(void)
{
	if (child)
		return;
	child = fork();
	if (child)
		return;
	alarm(2);
	verve_service_wake();
	verve_service_remove(cm[0]);
	verve_service_fini();
	/* The child can have a service thread of its own. */
	if (verve_service_add(cm[1], dev[1]) || !runs())
		_exit(1);
	verve_service_remove(cm[1]);
	_exit(0);
}

Test(service, child_forked_while_the_thread_works_ends)
{
	struct verve_addr nobody = *verve_cm_addr(cm[1]);

	verve_addr_set_port(&nobody, 9);
	cr_assert_eq(verve_service_add(cm[0], dev[0]), 0);
	cr_assert_eq(verve_cm_connect(cm[0], &nobody), 0);
	on_notify = fork_and_unload;
	fake_net_run_until(fake_net_time() + 2 * second);
	on_notify = NULL;
	child_expect_success(child);
	verve_service_remove(cm[0]);
}
