/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Withdrawing: the sender's half of cancelling a message that the peer has. WITHDRAW asks for the
 * message back; the peer's FIN says whether a receive was faster. msg/unexpected.h has the peer's
 * half. The engine's lock protects everything here.
 */
#ifndef VERVE_MSG_WITHDRAW_H
#define VERVE_MSG_WITHDRAW_H

struct verve_op;
struct verve_xport;

/* op is a send in state AWAIT: asks for its message back, once. 0, or -FI_EAGAIN: no memory. */
int verve_withdraw(struct verve_xport *xport, struct verve_op *op);

#endif
