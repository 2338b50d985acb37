/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mailbox: a lock-free queue from any number of senders to one reader. A mail is embedded in its
 * object.
 *
 * The service thread and the engines talk through mailboxes, so that neither waits for the other.
 * The atomic operations are those of libatomic_ops. The reader takes all mail at once.
 */
#ifndef VERVE_BASE_MAILBOX_H
#define VERVE_BASE_MAILBOX_H

#include <atomic_ops.h>
#include <stdbool.h>

struct verve_mail {
	struct verve_mail *next;
};

struct verve_mailbox {
	volatile AO_t head; /* newest first */
};

void verve_mailbox_init(struct verve_mailbox *box);

/*
 * Puts a mail, which belongs to the reader from then on. True: the mailbox was empty, so the caller
 * must wake the reader. Any thread.
 */
bool verve_mailbox_put(struct verve_mailbox *box, struct verve_mail *mail);

/* Takes all mail, the oldest first, linked by next; NULL: no mail. One reader at a time. */
struct verve_mail *verve_mailbox_take(struct verve_mailbox *box);

/* A cheap test for the poll loop. Any thread. */
static inline bool verve_mailbox_is_empty(const struct verve_mailbox *box)
{
	return AO_load(&box->head) == 0;
}

#endif
