/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Probe: a HELLO of the provider's own making, and the BYE that answers it. */
#include "probe.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "conn/guard.h"
#include "conn/hello.h"
#include "net/dgram.h"
#include "net/sys.h"

enum { TRIES = 5, NOBODY = 1 };

struct asking {
	struct verve_guard guard;
	struct verve_net_dgram *dgram;
	struct verve_addr to;
	uint64_t incarnation;
	uint64_t sent[TRIES]; /* when; the nonce is the place, from 1 on */
};

/* A HELLO that makes sense to every endpoint, for a connection that none has. */
static int ask(struct asking *asking, int number)
{
	struct verve_hello hello = {
		.kind = VERVE_HELLO_HELLO,
		.version_min = VERVE_HELLO_VERSION_MIN,
		.version_max = VERVE_HELLO_VERSION_MAX,
		.sender_incarnation = asking->incarnation,
		.recipient_incarnation = NOBODY,
		.sender_id = NOBODY,
		.recipient_id = NOBODY,
		.serial = 1,
		.nonce = (uint64_t)number + 1,
		.echo = NOBODY,
		.qp = {.qp_num = 2, .mtu_log2 = 8},
		.window = VERVE_CONFIG_WINDOW_MIN,
		.eager_size = VERVE_CONFIG_EAGER_MIN,
	};
	uint8_t buf[VERVE_HELLO_SIZE];

	verve_guard_gid(&asking->guard.addr, &hello.qp.gid);
	verve_guard_seal(&asking->guard, &hello, buf, &asking->to);
	asking->sent[number] = verve_net_now();
	return verve_net_dgram_send(asking->dgram, buf, sizeof(buf), &asking->to);
}

/* True: the datagram answers, and *probe says how. */
static bool take(const struct asking *asking, const void *buf, size_t len,
		 const struct verve_addr *from, struct verve_probe *probe)
{
	struct verve_hello bye;

	if (!verve_addr_equal(from, &asking->to) || verve_hello_decode(buf, len, &bye) ||
	    bye.kind != VERVE_HELLO_BYE || bye.recipient_incarnation != asking->incarnation ||
	    bye.echo > TRIES || !asking->sent[bye.echo - 1])
		return false;
	/* A refusal of the key is never signed. */
	if (bye.reason != VERVE_HELLO_AUTH &&
	    verve_guard_check(&asking->guard, &bye, buf, len, from) != VERVE_GUARD_PASS)
		return false;
	probe->error = 0;
	probe->ns = verve_net_now() - asking->sent[bye.echo - 1];
	probe->version_min = bye.version_min;
	probe->version_max = bye.version_max;
	if (bye.reason == VERVE_HELLO_AUTH)
		probe->failed = VERVE_PROBE_KEY;
	else if (bye.reason == VERVE_HELLO_VERSION)
		probe->failed = VERVE_PROBE_VERSION;
	else
		probe->failed = VERVE_PROBE_PASSED;
	return true;
}

/* True: *probe is complete. */
static bool wait_for_answer(struct asking *asking, int wait_ms, struct verve_probe *probe)
{
	struct pollfd poll_fd = {.fd = verve_net_dgram_fd(asking->dgram), .events = POLLIN};
	uint64_t end = verve_net_now() + (uint64_t)wait_ms * 1000000;
	uint8_t buf[VERVE_HELLO_SIZE_MAX + 1];
	struct verve_addr from;

	for (;;) {
		ssize_t len = verve_net_dgram_recv(asking->dgram, buf, sizeof(buf), &from);
		uint64_t now = verve_net_now();

		if (len >= 0 && take(asking, buf, (size_t)len, &from, probe))
			return true;
		if (len >= 0)
			continue;
		if (len != -FI_EAGAIN) {
			probe->error = (int)-len;
			return true;
		}
		if (now >= end)
			return false;
		poll(&poll_fd, 1, (int)((end - now) / 1000000) + 1);
	}
}

int verve_probe_run(const struct verve_addr *own, const struct verve_addr *to,
		    const struct verve_auth_key *key, int wait_ms, struct verve_probe *probe)
{
	struct asking asking = {.to = *to, .incarnation = verve_net_random64() | 1};
	struct verve_addr addr = *own;
	bool done = false;
	int ret;

	*probe = (struct verve_probe){.has_key = key->is_set, .error = FI_ETIMEDOUT};
	verve_addr_set_port(&addr, 0);
	ret = verve_net_dgram_open(&addr, &asking.dgram);
	if (ret)
		return ret;
	verve_guard_init(&asking.guard, key->is_set ? key : NULL, &addr);
	for (int i = 0; i < TRIES && !done; i++) {
		ret = ask(&asking, i);
		done = (ret && ret != -FI_EAGAIN) || wait_for_answer(&asking, wait_ms, probe);
		if (ret && ret != -FI_EAGAIN)
			probe->error = -ret;
	}
	verve_net_dgram_close(asking.dgram);
	verve_guard_fini(&asking.guard);
	return 0;
}

static void report_no_datagram(struct verve_report *report, const struct verve_probe *probe,
			       const char *host, const char *port)
{
	char remedy[VERVE_FINDING_TEXT_MAX];

	if (probe->error == FI_ECONNREFUSED) {
		snprintf(remedy, sizeof(remedy), VERVE_PROBE_LISTEN, host);
		verve_report_add(report, VERVE_REFUSED, "datagram", remedy,
				 "%s is reached, but nobody listens to UDP port %s, or a firewall "
				 "rejects it", host, port);
		return;
	}
	snprintf(remedy, sizeof(remedy), "ping %.200s; let UDP port %.8s through firewalls, there "
		 "and back", host, port);
	verve_report_add(report, VERVE_REFUSED, "datagram", remedy, "no answer to %d: %s", TRIES,
			 fi_strerror(probe->error));
}

void verve_probe_report(struct verve_report *report, const struct verve_probe *probe,
			const char *host, const char *port)
{
	if (probe->failed == VERVE_PROBE_DATAGRAM) {
		report_no_datagram(report, probe, host, port);
		return;
	}
	verve_report_add(report, VERVE_USED, "datagram", NULL, "answered after %.2f ms",
			 (double)probe->ns / 1e6);
	if (probe->failed == VERVE_PROBE_KEY) {
		verve_report_add(report, VERVE_REFUSED, "key",
				 "the same FI_VERVE_AUTH_KEY_FILE on both sides", "%s",
				 probe->has_key ? "the peer has another one, or none" :
						  "the peer has one, this side has none");
		return;
	}
	verve_report_add(report, VERVE_USED, "key", NULL, "%s",
			 probe->has_key ? "the same on both sides" : "none on either side");
	if (probe->failed == VERVE_PROBE_VERSION)
		verve_report_add(report, VERVE_REFUSED, "version",
				 "install the same version of verve on both sides",
				 "of the protocol: %d to %d here, %u to %u there",
				 VERVE_HELLO_VERSION_MIN, VERVE_HELLO_VERSION_MAX,
				 probe->version_min, probe->version_max);
	else
		verve_report_add(report, VERVE_USED, "version", NULL,
				 "of the protocol: up to %d here, up to %u there",
				 VERVE_HELLO_VERSION_MAX, probe->version_max);
}
