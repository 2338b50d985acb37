/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Mailbox: an intrusive, lock-free queue from any number of senders to one reader.
 *
 * The service thread and the engines talk through it, so that neither ever waits for the other.
 * libatomic_ops does the compare-and-swap; the reader takes everything at once.
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

/* The mail belongs to the reader from here on. Returns true if the box was empty (wake the reader). */
bool verve_mailbox_put(struct verve_mailbox *box, struct verve_mail *mail);

/* All mail, oldest first, linked by next; NULL if there is none. One reader at a time. */
struct verve_mail *verve_mailbox_take(struct verve_mailbox *box);

/* A cheap look, for the poll loop. */
static inline bool verve_mailbox_is_empty(const struct verve_mailbox *box)
{
	return AO_load(&box->head) == 0;
}

#endif
