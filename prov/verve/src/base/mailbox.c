/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mailbox: senders push to a stack by compare-and-swap; the reader reverses the stack. */
#include "base/mailbox.h"

#include <stddef.h>

void verve_mailbox_init(struct verve_mailbox *box)
{
	AO_store(&box->head, 0);
}

bool verve_mailbox_put(struct verve_mailbox *box, struct verve_mail *mail)
{
	AO_t head;

	do {
		head = AO_load(&box->head);
		mail->next = (struct verve_mail *)head;
	} while (!AO_compare_and_swap_full(&box->head, head, (AO_t)mail));
	return !head;
}

struct verve_mail *verve_mailbox_take(struct verve_mailbox *box)
{
	struct verve_mail *mail, *next, *oldest = NULL;
	AO_t head;

	do {
		head = AO_load(&box->head);
	} while (head && !AO_compare_and_swap_full(&box->head, head, 0));
	for (mail = (struct verve_mail *)head; mail; mail = next) {
		next = mail->next;
		mail->next = oldest;
		oldest = mail;
	}
	return oldest;
}
