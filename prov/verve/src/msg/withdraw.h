/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Withdrawing: the sender's half of cancelling a message that the peer has. WITHDRAW asks for it back; the peer's FIN says
 * whether a receive was faster (msg/unexpected.h has the peer's half).
 */
#ifndef VERVE_MSG_WITHDRAW_H
#define VERVE_MSG_WITHDRAW_H

struct verve_op;
struct verve_xport;

/* Asks for a message in AWAIT back; once. 0, or -FI_EAGAIN: no memory. */
int verve_withdraw(struct verve_xport *xport, struct verve_op *op);

#endif
