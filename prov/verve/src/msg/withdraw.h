/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Withdrawing: the sender's half of cancelling a message that has arrived at the peer. WITHDRAW
 * asks the peer to give the message back. The peer answers with FIN: FI_ECANCELED if no receive had
 * taken the message, another status if a receive had. msg/unexpected.h has the peer's half. The
 * engine's lock protects everything here.
 */
#ifndef VERVE_MSG_WITHDRAW_H
#define VERVE_MSG_WITHDRAW_H

struct verve_op;
struct verve_xport;

/*
 * Asks the peer to give the message of op back. op: a send in state AWAIT. A second call for the
 * same op does nothing. 0, or -FI_EAGAIN: no memory.
 */
int verve_withdraw(struct verve_xport *xport, struct verve_op *op);

#endif
