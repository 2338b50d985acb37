/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * state: the state of one process of the soak, for member.c, which runs it, slots.c, which sends,
 * receives.c, which receives, and judge.c, which knows right results.
 *
 * Every message has a number, which is its tag or its remote CQ data: 8 bits for the sender, 8 for
 * the receiver, 16 for the sender's life, and 32 that count messages between the two. Length and
 * contents follow from the number.
 */
#ifndef FABTESTS_SOAK_STATE_H
#define FABTESTS_SOAK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/comp.h"
#include "common/env.h"
#include "common/node.h"
#include "common/rma.h"
#include "common/xfer.h"
#include "soak/board.h"

enum {
	SOAK_SLOTS = 8,		/* operations under way at a time */
	SOAK_LONGEST = 300000,	/* bytes of a message */
	SOAK_SLICE = 32768,	/* bytes of every region that belong to one slot of one member */
	SOAK_WORDS = SOAK_ALL * SOAK_SLOTS * SOAK_SLICE, /* offset of the words for additions */
	SOAK_REGION = SOAK_WORDS + SOAK_ALL * 8,	  /* bytes */
	SOAK_REGION_KEY = 7,
	SOAK_RECVS = 12,
	SOAK_POOLS = 2,	  /* multi-receive buffers */
	SOAK_SEEN = 4096, /* messages of one sender that are remembered */
};

/* The first field of every struct that a completion's context points to. */
enum soak_kind { SOAK_SLOT, SOAK_RECV, SOAK_POOL };

enum soak_job {
	SOAK_TAGGED,
	SOAK_MESSAGE,
	SOAK_WRITE,
	SOAK_READ, /* reads back the bytes of a write */
	SOAK_ADD,
};

/* Place for one operation of this member. */
struct soak_slot {
	enum soak_kind kind;
	bool busy, posted; /* busy and not posted: the provider had no room yet */
	enum soak_job job;
	unsigned to;
	uint64_t number; /* of the message, or the seed of a write's bytes */
	uint64_t since;	 /* ns: when it was posted */
	uint64_t before; /* an addition: the word's value before */
	size_t len;
	void *buf;
};

struct soak_recv {
	enum soak_kind kind;
	struct xfer xfer;
};

/* The messages that came from one sender, so that none comes twice. */
struct soak_seen {
	unsigned life;
	uint32_t last;
	uint64_t bits[SOAK_SEEN / 64];
};

/* A word at the peer to which only this member adds: the values that it may have. */
struct soak_word {
	bool busy, known;
	uint64_t least, most;
};

struct soak_member {
	struct env env;
	struct node node;
	struct soak_board *board;
	struct soak_entry *entry;
	unsigned self, members, life;
	uint64_t random;
	uint64_t die_at; /* operations until a mayfly kills itself; 0: never */
	uint64_t operations;
	struct region region;
	fi_addr_t addrs[SOAK_ALL];
	uint32_t next[SOAK_ALL]; /* the last message to each */
	struct soak_seen seen[SOAK_ALL];
	struct soak_word words[SOAK_ALL];
	struct soak_slot slots[SOAK_SLOTS];
	struct soak_recv recvs[SOAK_RECVS], pools[SOAK_POOLS];
	uint64_t turn; /* ns: when the last one was */
	bool torn;     /* connections may break */
};

/* judge.c */

/* From 0 to below - 1. */
unsigned soak_draw(struct soak_member *m, unsigned below);
uint64_t soak_number(unsigned from, unsigned to, unsigned life, uint32_t n);
unsigned soak_number_from(uint64_t number);
/* The length of the message in bytes. */
size_t soak_number_len(uint64_t number);
/* True if the message asks for FI_DELIVERY_COMPLETE. */
bool soak_is_acked(uint64_t number);
/* The tally of such messages with the other member. */
struct soak_count *soak_count_of(struct soak_member *m, uint64_t number, unsigned other);
/* True if number names a member other than this one. */
bool soak_is_other(const struct soak_member *m, unsigned number);
/*
 * Counts an error, and fails the test if the error is not right. what: the operation; other: the
 * member at the other end, or SOAK_ALL if it is unknown.
 */
void soak_judge_error(struct soak_member *m, const struct comp *comp, const char *what,
		      unsigned other);

/* receives.c */

void soak_post_recvs(struct soak_member *m);
/* Checks the message, or the error, and posts the receive again. */
void soak_finish_recv(struct soak_member *m, struct soak_recv *recv, const struct comp *comp);

/* slots.c */

/* By enum soak_job, for messages. */
extern const char *const soak_job_names[];

/* Begins an operation in a slot that is not busy. */
void soak_start(struct soak_member *m, struct soak_slot *slot, enum soak_job job, unsigned to);
/* Any operation with any peer, or none. */
void soak_start_any(struct soak_member *m, struct soak_slot *slot);
/* Posts the operation of a slot for which the provider had no room. */
void soak_try_post(struct soak_member *m, struct soak_slot *slot);
/* Checks the completion. A write goes on as a read; anything else leaves the slot. */
void soak_finish_slot(struct soak_member *m, struct soak_slot *slot, const struct comp *comp);

#endif
