/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Mailbox: order, the wake-up hint, and many senders with one reader. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/mailbox.h"

struct letter {
	struct verve_mail mail;
	unsigned sender, number;
};

Test(mailbox, oldest_first)
{
	struct letter letters[3];
	struct verve_mailbox box;
	struct verve_mail *mail;

	verve_mailbox_init(&box);
	cr_assert(verve_mailbox_is_empty(&box));
	cr_assert_null(verve_mailbox_take(&box));
	for (int i = 0; i < 3; i++)
		cr_assert_eq(verve_mailbox_put(&box, &letters[i].mail), i == 0);
	cr_assert_not(verve_mailbox_is_empty(&box));
	mail = verve_mailbox_take(&box);
	for (int i = 0; i < 3; i++, mail = mail->next)
		cr_assert_eq(mail, &letters[i].mail);
	cr_assert_null(mail);
	cr_assert(verve_mailbox_is_empty(&box));
	cr_assert(verve_mailbox_put(&box, &letters[0].mail));
	cr_assert_eq(verve_mailbox_take(&box), &letters[0].mail);
}

enum { SENDERS = 4, LETTERS = 20000 };

struct sender {
	pthread_t thread;
	struct verve_mailbox *box;
	struct letter *letters;
	unsigned wakes;
};

static void *send_all(void *arg)
{
	struct sender *sender = arg;

	for (unsigned i = 0; i < LETTERS; i++)
		sender->wakes += verve_mailbox_put(sender->box, &sender->letters[i].mail);
	return NULL;
}

Test(mailbox, many_senders_lose_nothing_and_keep_their_order)
{
	struct verve_mailbox box;
	struct sender senders[SENDERS];
	unsigned next[SENDERS] = {0}, batches = 0, wakes = 0;

	verve_mailbox_init(&box);
	for (unsigned s = 0; s < SENDERS; s++) {
		senders[s] = (struct sender){.box = &box};
		senders[s].letters = calloc(LETTERS, sizeof(struct letter));
		for (unsigned i = 0; i < LETTERS; i++)
			senders[s].letters[i] = (struct letter){.sender = s, .number = i};
		cr_assert_eq(pthread_create(&senders[s].thread, NULL, send_all, &senders[s]), 0);
	}
	for (unsigned total = 0; total < SENDERS * LETTERS;) {
		struct verve_mail *mail = verve_mailbox_take(&box), *following;

		if (mail)
			batches++;
		else
			sched_yield();
		for (; mail; mail = following, total++) {
			struct letter *letter = (struct letter *)mail;

			following = mail->next;
			if (letter->number != next[letter->sender]++)
				cr_assert_fail("letter %u of %u is out of turn", letter->number,
					       letter->sender);
		}
	}
	for (unsigned s = 0; s < SENDERS; s++) {
		pthread_join(senders[s].thread, NULL);
		wakes += senders[s].wakes;
		free(senders[s].letters);
	}
	cr_assert(verve_mailbox_is_empty(&box));
	cr_assert_eq(wakes, batches, "the reader is woken once for each batch");
}
