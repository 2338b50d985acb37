/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Hello: the layout as a struct with every offset asserted; the checks of received fields. */
#include "conn/hello.h"

#include <endian.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/config.h"

enum {
	MAGIC = 0x45565256, /* "VRVE" */
	BITS_24 = 0xffffff, /* the largest QP number or PSN */
	QP_NUM_MIN = 2, /* 0 and 1 are management queue pairs */
	MTU_LOG2_MIN = 8,
	MTU_LOG2_MAX = 12,
};

struct layout {
	uint32_t magic;
	uint16_t length;
	uint8_t kind, reason;
	uint8_t version_min, version_max;
	uint8_t zero[2];
	uint32_t features;
	uint64_t sender_incarnation, recipient_incarnation;
	uint32_t sender_id, recipient_id;
	uint64_t serial, nonce, echo;
	uint8_t gid[16];
	uint32_t qp_num, psn;
	uint16_t lid;
	uint8_t mtu_log2, rd_atomic_target;
	uint16_t window, pkey;
	uint32_t eager_size;
	uint32_t resumes;
	uint8_t auth[VERVE_HELLO_AUTH_SIZE];
};

_Static_assert(offsetof(struct layout, length) == 4, "hello");
_Static_assert(offsetof(struct layout, kind) == 6, "hello");
_Static_assert(offsetof(struct layout, reason) == 7, "hello");
_Static_assert(offsetof(struct layout, version_min) == 8, "hello");
_Static_assert(offsetof(struct layout, version_max) == 9, "hello");
_Static_assert(offsetof(struct layout, features) == 12, "hello");
_Static_assert(offsetof(struct layout, sender_incarnation) == 16, "hello");
_Static_assert(offsetof(struct layout, recipient_incarnation) == 24, "hello");
_Static_assert(offsetof(struct layout, sender_id) == 32, "hello");
_Static_assert(offsetof(struct layout, recipient_id) == 36, "hello");
_Static_assert(offsetof(struct layout, serial) == 40, "hello");
_Static_assert(offsetof(struct layout, nonce) == 48, "hello");
_Static_assert(offsetof(struct layout, echo) == 56, "hello");
_Static_assert(offsetof(struct layout, gid) == 64, "hello");
_Static_assert(offsetof(struct layout, qp_num) == 80, "hello");
_Static_assert(offsetof(struct layout, psn) == 84, "hello");
_Static_assert(offsetof(struct layout, lid) == 88, "hello");
_Static_assert(offsetof(struct layout, mtu_log2) == 90, "hello");
_Static_assert(offsetof(struct layout, rd_atomic_target) == 91, "hello");
_Static_assert(offsetof(struct layout, window) == 92, "hello");
_Static_assert(offsetof(struct layout, pkey) == 94, "hello");
_Static_assert(offsetof(struct layout, eager_size) == 96, "hello");
_Static_assert(offsetof(struct layout, resumes) == 100, "hello");
_Static_assert(offsetof(struct layout, auth) == VERVE_HELLO_AUTH_OFFSET, "hello");
_Static_assert(sizeof(struct layout) == VERVE_HELLO_SIZE, "hello");

void verve_hello_encode(const struct verve_hello *hello, void *buf)
{
	struct layout layout = {
		.magic = htole32(MAGIC),
		.length = htole16(VERVE_HELLO_SIZE),
		.kind = hello->kind,
		.reason = hello->reason,
		.version_min = hello->version_min,
		.version_max = hello->version_max,
		.features = htole32(hello->features | (hello->qp.grh ? VERVE_HELLO_GRH : 0)),
		.sender_incarnation = htole64(hello->sender_incarnation),
		.recipient_incarnation = htole64(hello->recipient_incarnation),
		.sender_id = htole32(hello->sender_id),
		.recipient_id = htole32(hello->recipient_id),
		.serial = htole64(hello->serial),
		.nonce = htole64(hello->nonce),
		.echo = htole64(hello->echo),
		.qp_num = htole32(hello->qp.qp_num),
		.psn = htole32(hello->qp.psn),
		.lid = htole16(hello->qp.lid),
		.mtu_log2 = hello->qp.mtu_log2,
		.rd_atomic_target = hello->qp.rd_atomic_target,
		.window = htole16(hello->window),
		.pkey = htole16(hello->qp.pkey),
		.eager_size = htole32(hello->eager_size),
		.resumes = htole32(hello->resumes),
	};

	memcpy(layout.gid, hello->qp.gid.raw, sizeof(layout.gid));
	memcpy(layout.auth, hello->auth, sizeof(layout.auth));
	memcpy(buf, &layout, sizeof(layout));
}

static void read_identity(const struct layout *layout, struct verve_hello *hello)
{
	hello->kind = layout->kind;
	hello->reason = layout->reason;
	hello->version_min = layout->version_min;
	hello->version_max = layout->version_max;
	hello->features = le32toh(layout->features) & ~VERVE_HELLO_GRH;
	hello->sender_incarnation = le64toh(layout->sender_incarnation);
	hello->recipient_incarnation = le64toh(layout->recipient_incarnation);
	hello->sender_id = le32toh(layout->sender_id);
	hello->recipient_id = le32toh(layout->recipient_id);
	hello->serial = le64toh(layout->serial);
	hello->nonce = le64toh(layout->nonce);
	hello->echo = le64toh(layout->echo);
	memcpy(hello->auth, layout->auth, sizeof(layout->auth));
}

static void read_queue_pair(const struct layout *layout, struct verve_hello *hello)
{
	memcpy(hello->qp.gid.raw, layout->gid, sizeof(layout->gid));
	hello->qp.qp_num = le32toh(layout->qp_num);
	hello->qp.psn = le32toh(layout->psn);
	hello->qp.lid = le16toh(layout->lid);
	hello->qp.mtu_log2 = layout->mtu_log2;
	hello->qp.rd_atomic_target = layout->rd_atomic_target;
	hello->qp.pkey = le16toh(layout->pkey);
	hello->qp.grh = le32toh(layout->features) & VERVE_HELLO_GRH;
	hello->window = le16toh(layout->window);
	hello->eager_size = le32toh(layout->eager_size);
	hello->resumes = le32toh(layout->resumes);
}

/*
 * True: the sender is named, and the recipient is named completely where it must be, or not at all.
 */
static bool identity_makes_sense(const struct verve_hello *hello)
{
	bool names_recipient = hello->recipient_id && hello->recipient_incarnation && hello->echo;

	if (!hello->sender_incarnation || !hello->version_min ||
	    hello->version_min > hello->version_max)
		return false;
	switch (hello->kind) {
	case VERVE_HELLO_HELLO:
		return hello->sender_id && hello->serial && hello->nonce &&
		       (names_recipient || !hello->recipient_id);
	case VERVE_HELLO_READY:
		return hello->sender_id && hello->serial && hello->nonce && names_recipient;
	case VERVE_HELLO_CHALLENGE:
		return hello->nonce && names_recipient;
	case VERVE_HELLO_BYE:
		return hello->reason && names_recipient;
	default:
		return false;
	}
}

static bool queue_pair_makes_sense(const struct verve_net_qp_addr *qp)
{
	return qp->qp_num >= QP_NUM_MIN && qp->qp_num <= BITS_24 && qp->psn <= BITS_24 &&
	       qp->mtu_log2 >= MTU_LOG2_MIN && qp->mtu_log2 <= MTU_LOG2_MAX;
}

/*
 * No endpoint can be configured with less. More is harmless: each side keeps its own limits, too.
 */
static bool buffers_make_sense(const struct verve_hello *hello)
{
	return hello->eager_size >= VERVE_CONFIG_EAGER_MIN &&
	       hello->window >= VERVE_CONFIG_WINDOW_MIN;
}

/* An unsigned datagram must have zeros as its code. conn/auth.h checks the code of a signed one. */
static bool auth_makes_sense(const struct verve_hello *hello)
{
	static const uint8_t none[VERVE_HELLO_AUTH_SIZE];

	return hello->features & VERVE_HELLO_AUTHENTICATED ||
	       !memcmp(hello->auth, none, sizeof(none));
}

int verve_hello_decode(const void *buf, size_t len, struct verve_hello *hello)
{
	struct layout layout;

	if (len < sizeof(layout) || len > VERVE_HELLO_SIZE_MAX)
		return -FI_EINVAL;
	memcpy(&layout, buf, sizeof(layout));
	if (le32toh(layout.magic) != MAGIC || le16toh(layout.length) != len)
		return -FI_EINVAL;
	memset(hello, 0, sizeof(*hello));
	read_identity(&layout, hello);
	if (!identity_makes_sense(hello) || !auth_makes_sense(hello))
		return -FI_EINVAL;
	if (hello->kind != VERVE_HELLO_BYE && (hello->version_min > VERVE_HELLO_VERSION_MAX ||
					       hello->version_max < VERVE_HELLO_VERSION_MIN))
		return -FI_ENOPROTOOPT;
	read_queue_pair(&layout, hello);
	if (hello->kind == VERVE_HELLO_HELLO &&
	    (!queue_pair_makes_sense(&hello->qp) || !buffers_make_sense(hello)))
		return -FI_EINVAL;
	return 0;
}
