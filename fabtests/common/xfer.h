/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * xfer: posts messages, tagged or not, by any of the nine calls of each, from one description.
 * The v- and msg-forms split the buffer over as many segments as the endpoint takes (at most
 * XFER_IOV).
 */
#ifndef FABTESTS_XFER_H
#define FABTESTS_XFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fabric.h>

#include "common/comp.h"
#include "common/node.h"

#define XFER_IOV 4

enum xfer_op {
	XFER_SEND,
	XFER_SENDV,
	XFER_SENDMSG,
	XFER_INJECT,
	XFER_SENDDATA,
	XFER_INJECTDATA,
	XFER_SEND_OPS,

	XFER_RECV = XFER_SEND_OPS,
	XFER_RECVV,
	XFER_RECVMSG,
	XFER_OPS,
};

struct xfer {
	enum xfer_op op;
	bool tagged;
	void *buf;
	size_t len;
	void *desc;
	fi_addr_t addr;
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;
	uint64_t flags; /* of the msg-forms */
	void *context;
};

const char *xfer_name(enum xfer_op op);
bool xfer_is_inject(enum xfer_op op);
bool xfer_has_data(const struct xfer *xfer);

/* One call; returns its code. */
ssize_t xfer_try(struct node *node, const struct xfer *xfer);
/* Repeats it while it says -FI_EAGAIN, making progress; bounded by -T; returns its code. */
ssize_t xfer_post(struct node *node, const struct xfer *xfer);

/* Posts and waits for the completion (if there is one), checking every field of it. */
void xfer_send(struct node *node, const struct xfer *xfer);
/* Waits for and checks the completion of a posted receive that gets len bytes. */
void xfer_finish_recv(struct node *node, const struct xfer *recv, const struct xfer *sent,
		      size_t len);

/*
 * The same for whichever of the count posted receives completes next (their contexts are their
 * addresses): the order of completions is not promised. Returns its index.
 */
size_t xfer_finish_any(struct node *node, const struct xfer *recvs, size_t count,
		       const struct xfer *sent, size_t len);

/* Splits buf into count segments of uneven lengths (zero-length ones when len is small). */
void xfer_split(struct iovec *iov, size_t count, void *buf, size_t len);

#endif
