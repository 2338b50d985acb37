/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* verve_info's probe: each step that can fail, against a peer of this process that answers so. */
#include "probe.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "api/prov.h"
#include "base/log.h"
#include "conn/guard.h"
#include "net/dgram.h"

static const char secret[] = "a secret of the two sides", other[] = "a secret of somebody else";

/* The peer: what it answers. */
static struct {
	struct verve_net_dgram *dgram;
	struct verve_addr addr;
	struct verve_guard guard;
	enum verve_hello_reason reason; /* 0: silent */
	uint8_t version;
	bool noisy, is_signed;
	bool refuses; /* the key, too, after its answer */
	unsigned asked;
	bool stop;
	pthread_t thread;
} peer;

static struct verve_auth_key key;
static struct verve_probe probe;
static struct verve_report report;

static void loopback(struct verve_addr *addr)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(verve_addr_set(addr, &in, sizeof(in)), 0);
}

static void setup(void)
{
	verve_log_provider = &verve_prov;
	loopback(&peer.addr);
	cr_assert_eq(verve_net_dgram_open(&peer.addr, &peer.dgram), 0);
	peer.version = VERVE_HELLO_VERSION_MAX;
}

static void teardown(void)
{
	__atomic_store_n(&peer.stop, true, __ATOMIC_RELEASE);
	if (peer.thread)
		pthread_join(peer.thread, NULL);
	verve_guard_fini(&peer.guard);
	if (peer.dgram)
		verve_net_dgram_close(peer.dgram);
	verve_report_fini(&report);
}

TestSuite(probe, .init = setup, .fini = teardown);

static void send_bye(struct verve_hello bye, const struct verve_addr *to)
{
	uint8_t buf[VERVE_HELLO_SIZE];

	if (peer.is_signed)
		verve_guard_seal(&peer.guard, &bye, buf, to);
	else
		verve_hello_encode(&bye, buf);
	cr_assert_eq(verve_net_dgram_send(peer.dgram, buf, sizeof(buf), to), 0);
}

static void answer(const struct verve_hello *hello, const struct verve_addr *from)
{
	struct verve_hello bye = {
		.kind = VERVE_HELLO_BYE,
		.reason = peer.reason,
		.version_min = peer.version,
		.version_max = peer.version,
		.sender_incarnation = 77,
		.recipient_incarnation = hello->sender_incarnation,
		.recipient_id = hello->sender_id,
		.echo = hello->nonce,
	}, wrong = bye;

	if (peer.noisy) {
		wrong.reason = VERVE_HELLO_VERSION;
		wrong.echo = 5;
		send_bye(wrong, from);
		wrong.echo = UINT64_MAX;
		send_bye(wrong, from);
		wrong = bye;
		wrong.reason = VERVE_HELLO_AUTH;
		wrong.recipient_incarnation++;
		send_bye(wrong, from);
	}
	if (peer.reason)
		send_bye(bye, from);
	if (peer.refuses) {
		bye.reason = VERVE_HELLO_AUTH;
		send_bye(bye, from);
	}
}

/*
 * Answers what has come until it is told to stop. A probe must look like a HELLO that an endpoint
 * takes.
 */
static void *serve(void *arg)
{
	struct pollfd poll_fd = {.fd = verve_net_dgram_fd(peer.dgram), .events = POLLIN};

	(void)arg;
	for (;;) {
		bool stop = __atomic_load_n(&peer.stop, __ATOMIC_ACQUIRE);
		uint8_t buf[VERVE_HELLO_SIZE_MAX];
		struct verve_addr from;
		struct verve_hello hello;
		ssize_t len = verve_net_dgram_recv(peer.dgram, buf, sizeof(buf), &from);

		if (len < 0 && stop)
			return NULL;
		if (len < 0) {
			poll(&poll_fd, 1, 10);
			continue;
		}
		cr_expect_eq(verve_hello_decode(buf, len, &hello), 0);
		cr_expect_eq(hello.kind, VERVE_HELLO_HELLO);
		cr_expect_neq(hello.recipient_id, 0, "no endpoint has such a connection");
		cr_expect(verve_guard_vouches(&peer.guard, &hello, &from));
		peer.asked++;
		answer(&hello, &from);
	}
}

/* Probes the peer, which answers with reason and has the key of peer_secret, or none. */
static void run(enum verve_hello_reason reason, const char *own_secret, const char *peer_secret,
		int wait_ms)
{
	struct verve_auth_key peer_key = {0};
	struct verve_addr own;

	if (own_secret)
		verve_auth_key_make(&key, own_secret, strlen(own_secret));
	if (peer_secret)
		verve_auth_key_make(&peer_key, peer_secret, strlen(peer_secret));
	verve_guard_init(&peer.guard, peer_secret ? &peer_key : NULL, &peer.addr);
	peer.reason = reason;
	cr_assert_eq(pthread_create(&peer.thread, NULL, serve, NULL), 0);
	loopback(&own);
	cr_assert_eq(verve_probe_run(&own, &peer.addr, &key, wait_ms, &probe), 0);
	__atomic_store_n(&peer.stop, true, __ATOMIC_RELEASE);
	pthread_join(peer.thread, NULL);
	peer.thread = 0;
	verve_probe_report(&report, &probe, "10.0.0.2", "7471");
}

/* The last finding is refused, and those before it are used. */
static void expect_refused(size_t before, const char *step, const char *cause, const char *remedy)
{
	const struct verve_finding *last = &report.list[before];

	cr_assert_eq(report.count, before + 1);
	cr_expect_eq(verve_report_count(&report, VERVE_USED), before);
	cr_expect_eq(last->verdict, VERVE_REFUSED);
	cr_expect_str_eq(last->subject, step);
	cr_expect_not_null(strstr(last->cause, cause), "%s", last->cause);
	cr_expect_not_null(strstr(last->remedy, remedy), "%s", last->remedy);
}

Test(probe, peer_that_fits)
{
	run(VERVE_HELLO_UNKNOWN, NULL, NULL, 10000);
	cr_expect_eq(probe.failed, VERVE_PROBE_PASSED);
	cr_expect_eq(peer.asked, 1);
	cr_assert_eq(report.count, 3);
	cr_expect_eq(verve_report_count(&report, VERVE_USED), 3);
	cr_expect_not_null(strstr(report.list[0].cause, "answered after"));
	cr_expect_not_null(strstr(report.list[1].cause, "none on either side"));
	cr_expect_not_null(strstr(report.list[2].cause, "up to 2 here, up to 2 there"));
}

Test(probe, peer_with_the_same_key)
{
	peer.is_signed = true;
	run(VERVE_HELLO_UNKNOWN, secret, secret, 10000);
	cr_expect_eq(probe.failed, VERVE_PROBE_PASSED);
	cr_assert_eq(report.count, 3);
	cr_expect_not_null(strstr(report.list[1].cause, "the same on both sides"));
}

Test(probe, peer_with_a_key_where_this_side_has_none)
{
	run(VERVE_HELLO_AUTH, NULL, secret, 10000);
	expect_refused(1, "key", "this side has none", "FI_VERVE_AUTH_KEY_FILE");
}

Test(probe, peer_with_another_key)
{
	run(VERVE_HELLO_AUTH, secret, other, 10000);
	expect_refused(1, "key", "another one, or none", "FI_VERVE_AUTH_KEY_FILE");
}

/* Who does not have the key cannot say that all is well: the answer behind it counts. */
Test(probe, answer_that_is_signed_with_another_key)
{
	peer.is_signed = peer.refuses = true;
	run(VERVE_HELLO_UNKNOWN, secret, other, 10000);
	expect_refused(1, "key", "another one, or none", "FI_VERVE_AUTH_KEY_FILE");
	cr_expect_eq(peer.asked, 1);
}

Test(probe, peer_of_another_version)
{
	peer.version = VERVE_HELLO_VERSION_MAX + 1;
	run(VERVE_HELLO_VERSION, NULL, NULL, 10000);
	expect_refused(2, "version", "2 to 2 here, 3 to 3 there", "install the same version");
}

Test(probe, silent_peer_is_asked_five_times)
{
	run(0, NULL, NULL, 0);
	cr_expect_eq(peer.asked, 5);
	expect_refused(0, "datagram", "no answer to 5: Connection timed out",
		       "let UDP port 7471 through firewalls");
}

Test(probe, nobody_listens)
{
	struct verve_addr own;

	verve_net_dgram_close(peer.dgram);
	peer.dgram = NULL;
	loopback(&own);
	cr_assert_eq(verve_probe_run(&own, &peer.addr, &key, 10000, &probe), 0);
	verve_probe_report(&report, &probe, "10.0.0.2", "7471");
	expect_refused(0, "datagram", "nobody listens to UDP port 7471",
		       "there: verve_info --listen, with --from=10.0.0.2 if it says another");
}

Test(probe, what_is_no_answer_is_not_heard)
{
	peer.noisy = true;
	run(VERVE_HELLO_UNKNOWN, NULL, NULL, 10000);
	cr_expect_eq(probe.failed, VERVE_PROBE_PASSED);
}
