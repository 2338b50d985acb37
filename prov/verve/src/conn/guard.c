/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Guard: authentication, cookies (SipHash of libsodium), warnings and their limits. */
#include "conn/guard.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <sodium.h>
#include <string.h>

#include "base/log.h"
#include "net/sys.h"

enum { ANSWERS = 64 }; /* refusals per second */

static const uint64_t second = 1000000000;
static const uint64_t warn_interval = 60ull * 1000000000;
static const uint64_t cookie_age = 60ull * 1000000000; /* a cookie is valid for one to two ages */

void verve_guard_init(struct verve_guard *guard, const struct verve_auth_key *key,
		      const struct verve_addr *addr)
{
	_Static_assert(sizeof(guard->secret) == crypto_shorthash_KEYBYTES, "the cookies' secret");

	memset(guard, 0, sizeof(*guard));
	if (key)
		guard->key = *key;
	guard->addr = *addr;
	verve_net_random(guard->secret, sizeof(guard->secret));
}

void verve_guard_fini(struct verve_guard *guard)
{
	verve_auth_key_wipe(&guard->key);
}

void verve_guard_seal(const struct verve_guard *guard, const struct verve_hello *hello, void *buf,
		      const struct verve_addr *to)
{
	struct verve_hello sealed = *hello;

	if (!guard->key.is_set) {
		verve_hello_encode(hello, buf);
		return;
	}
	sealed.features |= VERVE_HELLO_AUTHENTICATED;
	verve_hello_encode(&sealed, buf);
	verve_auth_sign(&guard->key, buf, VERVE_HELLO_SIZE, &guard->addr, to);
}

enum verve_guard_verdict verve_guard_check(const struct verve_guard *guard,
					   const struct verve_hello *hello, const void *buf,
					   size_t len, const struct verve_addr *from)
{
	bool is_signed = hello->features & VERVE_HELLO_AUTHENTICATED;

	if (!guard->key.is_set)
		return is_signed ? VERVE_GUARD_NO_KEY : VERVE_GUARD_PASS;
	if (!is_signed)
		return VERVE_GUARD_UNSIGNED;
	return verve_auth_check(&guard->key, buf, len, from, &guard->addr) ? VERVE_GUARD_PASS :
									      VERVE_GUARD_FORGED;
}

void verve_guard_gid(const struct verve_addr *addr, struct verve_net_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (addr->sa.sa_family == AF_INET6) {
		memcpy(gid->raw, &addr->in6.sin6_addr, 16);
		return;
	}
	memset(&gid->raw[10], 0xff, 2);
	memcpy(&gid->raw[12], &addr->in.sin_addr, 4);
}

bool verve_guard_vouches(const struct verve_guard *guard, const struct verve_hello *hello,
			 const struct verve_addr *from)
{
	struct verve_net_gid gid;

	verve_guard_gid(from, &gid);
	return guard->key.is_set || !memcmp(&gid, &hello->qp.gid, sizeof(gid));
}

/* A cookie: the hash of the sender, its request, and the minute. */
static uint64_t cookie_of(const struct verve_guard *guard, const struct verve_hello *hello,
			  const struct verve_addr *from, uint64_t minute)
{
	struct {
		uint64_t minute, incarnation, serial, nonce, id;
		uint8_t from[32];
	} about = {minute, hello->sender_incarnation, hello->serial, hello->nonce,
		   hello->sender_id, {0}};
	uint64_t cookie;

	_Static_assert(sizeof(about) == 5 * 8 + 32, "no padding");
	_Static_assert(sizeof(*from) <= sizeof(about.from), "an address");
	_Static_assert(sizeof(cookie) == crypto_shorthash_BYTES, "a cookie is a nonce");
	memcpy(about.from, from, sizeof(*from));
	crypto_shorthash((uint8_t *)&cookie, (const uint8_t *)&about, sizeof(about), guard->secret);
	return cookie ? cookie : 1;
}

uint64_t verve_guard_cookie(const struct verve_guard *guard, const struct verve_hello *hello,
			    const struct verve_addr *from, uint64_t now)
{
	return cookie_of(guard, hello, from, now / cookie_age);
}

bool verve_guard_doubts(const struct verve_guard *guard, const struct verve_hello *hello,
			const struct verve_addr *from, uint64_t now, size_t strangers)
{
	uint64_t minute = now / cookie_age;

	if (hello->kind != VERVE_HELLO_HELLO || hello->recipient_id)
		return false;
	if (!guard->key.is_set && strangers < VERVE_GUARD_UNPROVEN)
		return false;
	return hello->echo != cookie_of(guard, hello, from, minute) &&
	       (!minute || hello->echo != cookie_of(guard, hello, from, minute - 1));
}

static bool may_warn(uint64_t *at, uint64_t now)
{
	if (*at && now - *at < warn_interval)
		return false;
	*at = now ? now : 1;
	return true;
}

void verve_guard_warn_version(struct verve_guard *guard, const struct verve_hello *hello,
			      const struct verve_addr *from, uint64_t now)
{
	char name[VERVE_ADDR_STRLEN];

	if (may_warn(&guard->warned.version, now))
		VERVE_WARN(EP_CTRL,
			   "%s speaks versions %u to %u of the protocol, this is %u to %u: "
			   "install the same release on both hosts\n",
			   verve_addr_str(from, name), hello->version_min, hello->version_max,
			   VERVE_HELLO_VERSION_MIN, VERVE_HELLO_VERSION_MAX);
}

void verve_guard_warn_refused(struct verve_guard *guard, enum verve_guard_verdict verdict,
			      const struct verve_addr *from, uint64_t now)
{
	static const char *const why[] = {
		[VERVE_GUARD_NO_KEY] = "it has an authentication key, this endpoint has none",
		[VERVE_GUARD_UNSIGNED] = "it has no authentication key, this endpoint has one",
		[VERVE_GUARD_FORGED] = "its authentication key is another",
	};
	char name[VERVE_ADDR_STRLEN];

	if (may_warn(&guard->warned.refused, now))
		VERVE_WARN(EP_CTRL,
			   "refused a connection from %s: %s: give both the same auth_key or "
			   "FI_VERVE_AUTH_KEY_FILE\n",
			   verve_addr_str(from, name), why[verdict]);
}

void verve_guard_warn_elsewhere(struct verve_guard *guard, const struct verve_hello *hello,
				const struct verve_addr *from, uint64_t now)
{
	char name[VERVE_ADDR_STRLEN], gid[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, &hello->qp.gid, gid, sizeof(gid));
	if (may_warn(&guard->warned.elsewhere, now))
		VERVE_WARN(EP_CTRL,
			   "refused a connection from %s: its RDMA port has another address, %s: "
			   "bind that endpoint to its port's address, or give both the same "
			   "auth_key or FI_VERVE_AUTH_KEY_FILE\n",
			   verve_addr_str(from, name), gid);
}

void verve_guard_warn_rejected(struct verve_guard *guard, const struct verve_addr *from,
			       uint64_t now)
{
	char name[VERVE_ADDR_STRLEN];

	if (may_warn(&guard->warned.rejected, now))
		VERVE_WARN(EP_CTRL,
			   "%s does not accept this endpoint's authentication key (%s): give both "
			   "the same auth_key or FI_VERVE_AUTH_KEY_FILE\n",
			   verve_addr_str(from, name),
			   guard->key.is_set ? "it has another, or none" : "there is none");
}

void verve_guard_warn_again(struct verve_guard *guard, const struct verve_addr *peer, int error,
			    uint64_t now)
{
	char name[VERVE_ADDR_STRLEN];

	if (may_warn(&guard->warned.again, now))
		VERVE_WARN(EP_CTRL, "cannot connect again to %s: %s\n",
			   verve_addr_str(peer, name), fi_strerror(error));
}

bool verve_guard_may_answer(struct verve_guard *guard, enum verve_guard_answer kind, uint64_t now)
{
	if (now - guard->answered[kind].since >= second) {
		guard->answered[kind].since = now;
		guard->answered[kind].count = 0;
	}
	if (guard->answered[kind].count == ANSWERS)
		return false;
	guard->answered[kind].count++;
	return true;
}
