/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The world of wire_fuzz.c: three endpoints in one domain on the fake net. wire_run() reads their
 * completion queues and aborts as soon as a completion breaks a promise.
 */
#ifndef VERVE_TEST_FUZZ_WIRE_WORLD_H
#define VERVE_TEST_FUZZ_WIRE_WORLD_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>
#include <stdint.h>

struct verve_xport;

enum { VICTIM, HOSTILE, HONEST, ENDS };
enum {
	REGION = 4096, /* bytes of world.region, which peers may access */
	BUFFER = 5000, /* bytes of the longest message, in two pages at least */
	LOOT = 16384,  /* bytes of world.loot */
	SLOTS = 16,    /* receives of the victim at a time */
	FILL = 0x50,   /* every byte that the honest peer sends, or is sent */
	EVIL = 0xe7,   /* every byte that the hostile peer sends in messages */
};

struct wire_end {
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t to[ENDS];
};

/* A receive of the victim, and its context. */
struct wire_slot {
	bool posted, multi;
	uint8_t buf[BUFFER];
};

struct wire_world {
	struct fi_info *list, *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_mr *mr; /* of region */
	uint8_t *region;
	struct wire_end ends[ENDS];
	struct wire_slot slots[SLOTS];
	/* for the honest peer's last message, whose send has it as context, too */
	struct wire_slot last;
	bool got_honest;	  /* that message has come */
	uint8_t sink[BUFFER];	  /* the honest peer receives here */
	uint8_t fetched[BUFFER];  /* the victim reads to here */
	struct fid_mr *loot_mr;	  /* of loot */
	uint8_t *loot;		  /* the hostile peer reads the victim's memory to here */
};

extern struct wire_world world;

/*
 * app_keys: the application chooses the keys. least_window: the hostile peer announces the smallest
 * one.
 */
void wire_world_open(bool app_keys, bool least_window);
/* Aborts if an object of the device is left. */
void wire_world_close(void);
/* Prints what, and aborts, unless it holds. */
void wire_require(bool holds, const char *what);
/* Aborts if the bytes hold a run of FILL, which the hostile peer must never get. */
void wire_require_no_loot(const uint8_t *bytes, size_t len);
/* Reads all queues for so many simulated microseconds, the hostile peer's only if with_hostile. */
void wire_run(unsigned us, bool with_hostile);
/* The transport of an endpoint, locked. */
struct verve_xport *wire_end_lock(int which);
void wire_end_unlock(int which);

#endif
