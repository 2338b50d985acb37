/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Input of the connection manager: datagrams that arrived, and those that did not. */
#include "conn/cm_dgram.h"

#include <rdma/fi_errno.h>
#include <sys/types.h>

#include "conn/cm_entry.h"
#include "conn/cm_job.h"
#include "conn/cm_perform.h"
#include "conn/cm_state.h"
#include "conn/conn.h"
#include "conn/conn_recv.h"
#include "conn/conn_send.h"
#include "net/sys.h"

enum {
	DGRAMS_A_STEP = 256,
	/* Jobs that only strangers have caused, and that are under way: */
	STRANGERS_UNPROVEN = 64, /* with so many, a HELLO needs a cookie */
	STRANGERS_LIMIT = 1024,	 /* with so many, a HELLO is lost; its sender repeats it */
};

static void dgram_refuse(struct verve_cm *cm, const struct verve_hello *hello,
			 enum verve_hello_reason reason, const struct verve_addr *to)
{
	struct verve_hello bye;

	verve_conn_refuse(&cm->self, hello, reason, &bye);
	verve_cm_send(cm, &bye, to);
}

static void dgram_refuse_version(struct verve_cm *cm, const struct verve_hello *hello,
			   const struct verve_addr *from, uint64_t now)
{
	verve_guard_warn_version(&cm->guard, hello, from, now);
	if (hello->kind == VERVE_HELLO_HELLO)
		dgram_refuse(cm, hello, VERVE_HELLO_VERSION, from);
}

/* The BYE is not signed: the sender could not check it. A limit per second stops floods. */
static void dgram_refuse_key(struct verve_cm *cm, const struct verve_hello *hello,
		       enum verve_guard_verdict why, const struct verve_addr *from, uint64_t now)
{
	uint8_t buf[VERVE_HELLO_SIZE];
	struct verve_hello bye;

	verve_guard_warn_refused(&cm->guard, why, from, now);
	if (!verve_guard_may_answer(&cm->guard, VERVE_GUARD_ANSWER_KEY, now))
		return;
	verve_conn_refuse(&cm->self, hello, VERVE_HELLO_AUTH, &bye);
	verve_hello_encode(&bye, buf);
	cm->stats.sent++;
	verve_net_dgram_send(cm->dgram, buf, sizeof(buf), from);
}

/* True: the datagram names another host's queue pair. A limit per second stops floods. */
static bool dgram_refuse_elsewhere(struct verve_cm *cm, const struct verve_hello *hello,
				   const struct verve_addr *from, uint64_t now)
{
	if (!cm->attr.roce || hello->kind != VERVE_HELLO_HELLO ||
	    verve_guard_vouches(&cm->guard, hello, from))
		return false;
	cm->stats.foreign++;
	verve_guard_warn_elsewhere(&cm->guard, hello, from, now);
	if (hello->sender_incarnation != cm->self.incarnation &&
	    verve_guard_may_answer(&cm->guard, VERVE_GUARD_ANSWER_ELSEWHERE, now))
		dgram_refuse(cm, hello, VERVE_HELLO_NO_WAY, from);
	return true;
}

/* The BYE says that the peer has another key. It is not authentic, and may be forged. */
static void dgram_receive_rejection(struct verve_cm *cm, const struct verve_hello *bye,
			      const struct verve_addr *from, uint64_t now)
{
	struct verve_cm_entry *entry = verve_cm_entry_find(cm, from);

	if (entry && verve_conn_doubt(&entry->conn, bye))
		verve_guard_warn_rejected(&cm->guard, from, now);
}

static void dgram_receive_unauthenticated(struct verve_cm *cm, const struct verve_hello *hello,
					  enum verve_guard_verdict why,
					  const struct verve_addr *from, uint64_t now)
{
	cm->stats.unauthenticated++;
	/* A HELLO with our own incarnation was reflected to us: an answer would go on for ever. */
	if (hello->kind == VERVE_HELLO_HELLO && hello->sender_incarnation != cm->self.incarnation)
		dgram_refuse_key(cm, hello, why, from, now);
}

/* Opening our end of the connection cannot even begin: tells the peer. */
static void dgram_refuse_resource(struct verve_cm *cm, struct verve_cm_entry *entry,
			    const struct verve_hello *hello, int error)
{
	struct verve_conn_out out = {0};

	if (entry->conn.state != VERVE_CONN_IDLE)
		verve_conn_abort(&entry->conn, error, &out);
	verve_cm_perform(cm, entry, &out);
	dgram_refuse(cm, hello, cm->failed ? VERVE_HELLO_FAILED : VERVE_HELLO_RESOURCE,
		     &entry->conn.addr);
}

void verve_cm_receive(struct verve_cm *cm, struct verve_cm_entry *entry,
		      const struct verve_hello *hello, uint64_t now)
{
	struct verve_conn_out out;
	int ret;

	if (entry->busy) {
		verve_cm_job_keep(entry->job, hello);
		return;
	}
	verve_conn_receive(&entry->conn, hello, now, verve_net_random64(), &out);
	verve_cm_perform(cm, entry, &out);
	if (!(out.actions & VERVE_CONN_DO_OPEN))
		return;
	if (!entry->request && cm->strangers >= STRANGERS_LIMIT)
		return;
	ret = verve_cm_entry_open(cm, entry);
	if (ret)
		dgram_refuse_resource(cm, entry, hello, -ret);
	else
		verve_cm_job_keep(entry->job, hello);
}

/*
 * The peer must echo a cookie first, which proves that it lives at that address. The manager keeps
 * nothing about the peer meanwhile.
 */
static void dgram_challenge(struct verve_cm *cm, const struct verve_hello *hello,
		      const struct verve_addr *from, uint64_t now)
{
	uint64_t cookie = verve_guard_cookie(&cm->guard, hello, from, now);
	struct verve_hello reply;

	verve_conn_challenge(&cm->self, hello, cookie, &reply);
	cm->stats.challenged++;
	verve_cm_send(cm, &reply, from);
}

/* A datagram from an address that has no entry. */
static void dgram_receive_first(struct verve_cm *cm, const struct verve_hello *hello,
			  const struct verve_addr *from, uint64_t now)
{
	struct verve_cm_entry *entry;

	if (hello->sender_incarnation == cm->self.incarnation || hello->kind == VERVE_HELLO_BYE ||
	    hello->kind == VERVE_HELLO_CHALLENGE) {
		cm->stats.foreign++;
		return;
	}
	if (hello->recipient_id) {
		cm->stats.foreign++;
		dgram_refuse(cm, hello, VERVE_HELLO_UNKNOWN, from);
		return;
	}
	entry = verve_cm_entry_make(cm, from);
	if (entry)
		verve_cm_receive(cm, entry, hello, now);
	else
		dgram_refuse(cm, hello, VERVE_HELLO_RESOURCE, from);
}

/* How many strangers have something of ours: connections that wait for READY, or jobs. */
static size_t count_strangers(const struct verve_cm *cm)
{
	if (cm->strangers >= STRANGERS_UNPROVEN)
		return VERVE_GUARD_UNPROVEN;
	return cm->count[VERVE_CM_LIST_HALF_OPEN] + cm->strangers;
}

static void dgram_dispatch(struct verve_cm *cm, const void *buf, size_t len,
			  const struct verve_addr *from, uint64_t now)
{
	enum verve_guard_verdict verdict;
	struct verve_hello hello;
	struct verve_cm_entry *entry;
	int ret = verve_hello_decode(buf, len, &hello);

	cm->stats.received++;
	if (ret)
		cm->stats.malformed++;
	if (ret && ret != -FI_ENOPROTOOPT)
		return;
	if (verve_addr_equal(from, &cm->self.addr)) {
		cm->stats.foreign++; /* a forged address: no endpoint sends to itself */
		return;
	}
	verdict = verve_guard_check(&cm->guard, &hello, buf, len, from);
	if (hello.kind == VERVE_HELLO_BYE && hello.reason == VERVE_HELLO_AUTH)
		dgram_receive_rejection(cm, &hello, from, now);
	if (verdict != VERVE_GUARD_PASS) {
		dgram_receive_unauthenticated(cm, &hello, verdict, from, now);
		return;
	}
	if (ret) {
		dgram_refuse_version(cm, &hello, from, now);
		return;
	}
	if (dgram_refuse_elsewhere(cm, &hello, from, now))
		return;
	entry = verve_cm_entry_find(cm, from);
	if (!(entry && verve_conn_judges(&entry->conn, &hello)) &&
	    verve_guard_doubts(&cm->guard, &hello, from, now, count_strangers(cm)))
		dgram_challenge(cm, &hello, from, now);
	else if (entry)
		verve_cm_receive(cm, entry, &hello, now);
	else
		dgram_receive_first(cm, &hello, from, now);
}

static void dgram_receive_error(struct verve_cm *cm, const struct verve_addr *about, int error)
{
	struct verve_cm_entry *entry = verve_cm_entry_find(cm, about);
	struct verve_conn_out out;

	if (!entry || entry->busy)
		return;
	verve_conn_unreachable(&entry->conn, error, &out);
	verve_cm_perform(cm, entry, &out);
}

bool verve_cm_step_dgrams(struct verve_cm *cm, uint64_t now)
{
	uint8_t buf[VERVE_HELLO_SIZE_MAX + 1];
	struct verve_addr from;

	for (int i = 0; i < DGRAMS_A_STEP; i++) {
		ssize_t len = verve_net_dgram_recv(cm->dgram, buf, sizeof(buf), &from);

		if (len >= 0)
			dgram_dispatch(cm, buf, (size_t)len, &from, now);
		else if (len == -FI_ECONNREFUSED || len == -FI_EHOSTUNREACH ||
			 len == -FI_ENETUNREACH)
			dgram_receive_error(cm, &from, (int)-len);
		else
			return false;
	}
	return true;
}
