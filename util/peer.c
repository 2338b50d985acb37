/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peer: a probe of the handshake; then the asking side sends its name, the listener answers with a
 * region, which is written and read back. Each of these steps is one operation of libfabric: its
 * error says what failed.
 */
#include "peer.h"

#include <endian.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/auth.h"
#include "base/config.h"
#include "endpoint.h"
#include "probe.h"
#include "told.h"

enum { NAME_MAX_LEN = 64, PROBE_MS = 1000, ANSWER_MS = 5000, STEP_MS = 20000 };

static const char default_port[] = "7471"; /* UDP, of the listener's handshake */
static const char magic[8] = "vrvinfo1";

/* The question and the answer. Little-endian. */
struct letter {
	char magic[8];
	uint64_t addr, key; /* the listener's region */
	uint32_t mtu;	    /* bytes, of the sender's port; 0: not known */
	uint32_t name_len;  /* the asking side's endpoint */
	char name[NAME_MAX_LEN];
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

static uint32_t own_mtu(const struct verve_endpoint *endpoint)
{
	const struct fid_nic *nic = endpoint->info->nic;

	return nic && nic->link_attr ? (uint32_t)nic->link_attr->mtu : 0;
}

/* Splits HOST, HOST:PORT or [HOST]:PORT; several colons without a bracket are an IPv6 address. */
static void split(const char *text, char *host, size_t room, const char **port)
{
	const char *colon = strrchr(text, ':');
	size_t len = strlen(text);

	*port = default_port;
	if (*text == '[' && strchr(text, ']')) {
		len = (size_t)(strchr(text, ']') - text) - 1;
		text++;
		if (colon > text + len)
			*port = colon + 1;
	} else if (colon && strchr(text, ':') == colon) {
		len = (size_t)(colon - text);
		*port = colon + 1;
	}
	snprintf(host, room, "%.*s", (int)len, text);
}

bool verve_peer_is_address(const char *to)
{
	char host[VERVE_FINDING_TEXT_MAX];
	const char *port;
	unsigned long number;

	split(to, host, sizeof(host), &port);
	number = strspn(port, "0123456789") == strlen(port) ? strtoul(port, NULL, 10) : 0;
	return *host && number && number <= UINT16_MAX;
}

/* The remedy for a step's error. */
static const char *remedy_of(int error, const char *to, const char *port, char *buf, size_t room)
{
	switch (error) {
	case FI_ECONNREFUSED:
		snprintf(buf, room, VERVE_PROBE_LISTEN, to);
		break;
	case FI_ETIMEDOUT:
		snprintf(buf, room,
			 "ping %.200s; let UDP port %.8s, and 4791 for RoCE v2, through firewalls",
			 to, port);
		break;
	case FI_EADDRINUSE:
		snprintf(buf, room, "ss -ulpn 'sport = :%.8s' names the program, perhaps another "
			 "verve_info --listen", port);
		break;
	case FI_EKEYREJECTED:
		snprintf(buf, room, "the same FI_VERVE_AUTH_KEY_FILE on both sides");
		break;
	case FI_ENOPROTOOPT:
		snprintf(buf, room, "install the same version of verve on both sides");
		break;
	case FI_EHOSTUNREACH:
	case FI_EIO:
		snprintf(buf, room,
			 "ping %.200s; let UDP port 4791 (RoCE v2) through; one MTU on the way",
			 to);
		break;
	default:
		return NULL;
	}
	return buf;
}

static bool fail(struct verve_report *report, const struct verve_endpoint *endpoint,
		 const char *step, int error, const char *to)
{
	char host[VERVE_FINDING_TEXT_MAX], remedy[VERVE_FINDING_TEXT_MAX];
	char why[VERVE_TOLD_LINE_MAX];
	const char *port;

	/* A completion has its reason; for other errors it stands in the log. */
	if (endpoint->error[0])
		snprintf(why, sizeof(why), "%s", endpoint->error);
	else
		verve_told_line(verve_told_count() - 1, why);
	split(to, host, sizeof(host), &port);
	verve_report_add(report, VERVE_REFUSED, step,
			 remedy_of(-error, host, port, remedy, sizeof(remedy)), "%s%s%s",
			 fi_strerror(-error), why[0] ? ", " : "", why);
	return false;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A message of which the peer's device has said that it is there. */
static int send_letter(struct verve_endpoint *endpoint, const struct letter *letter, fi_addr_t to)
{
	struct iovec iov = {.iov_base = (void *)letter, .iov_len = sizeof(*letter)};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = to, .context = (void *)letter};
	int ret = (int)fi_sendmsg(endpoint->ep, &msg, FI_TRANSMIT_COMPLETE);

	return ret ? ret : verve_endpoint_wait(endpoint, letter, STEP_MS);
}

/* Datagram, key and version. */
static bool probe_peer(struct verve_report *report, const struct verve_endpoint *endpoint,
		       const char *to)
{
	const struct fi_info *info = endpoint->info;
	char host[VERVE_FINDING_TEXT_MAX];
	struct verve_auth_key key = {0};
	struct verve_addr own, peer;
	struct verve_probe probe;
	const char *port;
	int ret;

	split(to, host, sizeof(host), &port);
	ret = verve_addr_set(&own, info->src_addr, info->src_addrlen);
	if (!ret)
		ret = verve_addr_set(&peer, info->dest_addr, info->dest_addrlen);
	if (!ret && verve_config.auth_key_file)
		ret = verve_auth_from_file(verve_config.auth_key_file, &key);
	if (!ret)
		ret = verve_probe_run(&own, &peer, &key, PROBE_MS, &probe);
	verve_auth_key_wipe(&key);
	if (ret)
		return fail(report, endpoint, "datagram", ret, to);
	verve_probe_report(report, &probe, host, port);
	return probe.failed == VERVE_PROBE_PASSED;
}

/* A connection, and an answer over it. */
static bool connect_to(struct verve_report *report, struct verve_endpoint *endpoint, const char *to,
		       fi_addr_t *peer, struct letter *answer)
{
	struct letter question = {.mtu = htole32(own_mtu(endpoint))};
	size_t len = sizeof(question.name);
	uint64_t start = now_us();
	int ret;

	memcpy(question.magic, magic, sizeof(magic));
	ret = fi_getname(&endpoint->ep->fid, question.name, &len);
	question.name_len = htole32((uint32_t)len);
	if (!ret && fi_av_insert(endpoint->av, endpoint->info->dest_addr, 1, peer, 0, NULL) != 1)
		ret = -FI_EINVAL;
	if (!ret)
		ret = (int)fi_recv(endpoint->ep, answer, sizeof(*answer), NULL, FI_ADDR_UNSPEC,
				    answer);
	if (!ret)
		ret = send_letter(endpoint, &question, *peer);
	if (ret)
		return fail(report, endpoint, "queue pair", ret, to);
	verve_report_add(report, VERVE_USED, "queue pair", NULL, "connected in %.1f ms",
			 (double)(now_us() - start) / 1000);
	ret = verve_endpoint_wait(endpoint, answer, ANSWER_MS);
	if (!ret && memcmp(answer->magic, magic, sizeof(magic)))
		ret = -FI_ENOPROTOOPT;
	if (ret)
		return fail(report, endpoint, "answer", ret, to);
	verve_report_add(
		report, VERVE_USED, "answer", NULL, "came after %.1f ms; MTU here %u, there %u",
		(double)(now_us() - start) / 1000, own_mtu(endpoint), le32toh(answer->mtu));
	return true;
}

static bool access_region(struct verve_report *report, struct verve_endpoint *endpoint,
			  fi_addr_t peer, const struct letter *answer, const char *to)
{
	enum { HALF = VERVE_ENDPOINT_REGION / 2 };
	uint64_t addr = le64toh(answer->addr), key = le64toh(answer->key);
	char *sent = endpoint->region, *back = sent + HALF;
	int ret;

	for (size_t i = 0; i < HALF; i++)
		sent[i] = (char)(i * 7 + 1);
	ret = (int)fi_write(endpoint->ep, sent, HALF, NULL, peer, addr, key, sent);
	if (!ret)
		ret = verve_endpoint_wait(endpoint, sent, STEP_MS);
	if (ret)
		return fail(report, endpoint, "write", ret, to);
	verve_report_add(report, VERVE_USED, "write", NULL, "%d bytes", HALF);
	ret = (int)fi_read(endpoint->ep, back, HALF, NULL, peer, addr, key, back);
	if (!ret)
		ret = verve_endpoint_wait(endpoint, back, STEP_MS);
	if (ret)
		return fail(report, endpoint, "read", ret, to);
	if (memcmp(sent, back, HALF)) {
		verve_report_add(report, VERVE_REFUSED, "read", NULL,
				 "brought other bytes than were written");
		return false;
	}
	verve_report_add(report, VERVE_USED, "read", NULL, "%d bytes, those that were written",
			 HALF);
	return true;
}

/* Which of the two addresses is wrong: one that is no name, or the own one, or the peer's. */
static void report_no_address(struct verve_report *report, const char *to, const char *from,
			      int error)
{
	char host[VERVE_FINDING_TEXT_MAX], remedy[VERVE_FINDING_TEXT_MAX];
	char line[VERVE_TOLD_LINE_MAX];
	const char *why = fi_strerror(-error), *port;
	bool own = error == -FI_EADDRNOTAVAIL, named = !verve_told_last("nothing for node ", line);

	split(own ? from : to, host, sizeof(host), &port);
	snprintf(remedy, sizeof(remedy), "getent ahosts %.200s", host);
	if (!named && strrchr(line, ':'))
		why = strrchr(line, ':') + 2;
	verve_report_add(report, VERVE_REFUSED, "address", named ? "verve_info" : remedy,
			 "no usable port here %s %s (%s)", own ? "has the address" : "leads to",
			 own ? from : to, why);
}

bool verve_peer_test(struct verve_report *report, const char *to, const char *from)
{
	static struct verve_endpoint endpoint;
	struct letter answer = {.mtu = 0};
	char host[VERVE_FINDING_TEXT_MAX];
	fi_addr_t peer;
	const char *port;
	bool passed;
	int ret;

	split(to, host, sizeof(host), &port);
	verve_told_clear();
	ret = verve_endpoint_find(&endpoint, host, port, 0, from);
	if (ret) {
		report_no_address(report, to, from, ret);
		return false;
	}
	verve_report_add(report, VERVE_USED, "address", NULL, "%s leads to %s",
			 endpoint.info->domain_attr->name, to);
	verve_told_clear();
	ret = verve_endpoint_open(&endpoint);
	if (ret)
		passed = fail(report, &endpoint, "endpoint", ret, to);
	else
		passed = probe_peer(report, &endpoint, to) &&
			 connect_to(report, &endpoint, to, &peer, &answer) &&
			 access_region(report, &endpoint, peer, &answer, to);
	verve_endpoint_close(&endpoint);
	return passed;
}

/*
 * Serves one test. The peer's own side reports errors. A message that is no question, such as a
 * longer one of another program, is forgotten. If the endpoint has failed, the next receive tells.
 */
static int serve(struct verve_endpoint *endpoint)
{
	static struct letter question, answer;
	fi_addr_t peer;
	int ret;

	verve_endpoint_forget(endpoint);
	memset(&question, 0, sizeof(question));
	answer.mtu = htole32(own_mtu(endpoint));
	memcpy(answer.magic, magic, sizeof(magic));
	answer.addr = htole64((uintptr_t)endpoint->region);
	answer.key = htole64(fi_mr_key(endpoint->mr));
	ret = (int)fi_recv(endpoint->ep, &question, sizeof(question), NULL, FI_ADDR_UNSPEC,
			    &question);
	if (ret)
		return ret;
	do
		ret = verve_endpoint_wait(endpoint, &question, 500);
	while (ret == -FI_ETIMEDOUT && !stopped);
	if (ret || memcmp(question.magic, magic, sizeof(magic)) ||
	    le32toh(question.name_len) < endpoint->info->src_addrlen ||
	    fi_av_insert(endpoint->av, question.name, 1, &peer, 0, NULL) != 1)
		return 0;
	send_letter(endpoint, &answer, peer);
	return 0;
}

bool verve_peer_listen(struct verve_report *report, const char *from, FILE *file)
{
	static struct verve_endpoint endpoint;
	struct sigaction action = {.sa_handler = stop};
	char text[128];
	size_t len = sizeof(text), name_len = NAME_MAX_LEN;
	char name[NAME_MAX_LEN];
	int ret;

	ret = verve_endpoint_find(&endpoint, from, default_port, FI_SOURCE, NULL);
	if (ret) {
		verve_report_add(report, VERVE_REFUSED, "listen", "verve_info",
				 "no port here can (%s)", fi_strerror(-ret));
		return false;
	}
	verve_told_clear();
	ret = verve_endpoint_open(&endpoint);
	if (ret) {
		fail(report, &endpoint, "listen", ret, "");
		verve_endpoint_close(&endpoint);
		return false;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (!fi_getname(&endpoint.ep->fid, name, &name_len)) {
		fprintf(file, "listening: %s of %s\n",
			fi_av_straddr(endpoint.av, name, text, &len),
			endpoint.info->domain_attr->name);
		fflush(file);
	}
	while (!stopped && !ret)
		ret = serve(&endpoint);
	verve_endpoint_close(&endpoint);
	if (stopped || !ret)
		return true;
	verve_report_add(report, VERVE_REFUSED, "listen", NULL, "%s", fi_strerror(-ret));
	return false;
}
