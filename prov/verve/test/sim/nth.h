/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nth: three endpoints of the whole provider on the fake net play a scene, again and again. Each
 * time the next call of a kind fails, or that call and the one after it, until the scene has no
 * more such calls. Every request must be refused with a clear error and be taken when it is made
 * again, or complete once. One failed call may do harm between two of the three only. The same
 * scene must succeed afterwards, with the same endpoints.
 *
 * Only allocations of the provider's objects fail: the program is linked with a copy of them in
 * which the linker has renamed the calls of the allocator (Makefile.include: provider_oom.o). So
 * neither the fake net nor the scene must know which allocations are the provider's. One thread.
 */
#ifndef VERVE_TEST_SIM_NTH_H
#define VERVE_TEST_SIM_NTH_H

#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stdint.h>

enum { NTH_ENDS = 3, NTH_ANY = -1, NTH_SLICES = 4, NTH_SLICE = 8192 };

enum nth_kind { NTH_SEND, NTH_RECV, NTH_WRITE, NTH_READ, NTH_ADD, NTH_PEEK };

struct nth;

/* A request. Its address is the context. */
struct nth_request {
	struct nth_request *next;
	enum nth_kind kind;
	int end, peer; /* end: makes the request; peer: its other end, or NTH_ANY */
	uint64_t tag, flags;
	size_t len;
	uint8_t *buf, *slice; /* the end's memory; RMA: the peer's */
	bool untagged;	      /* takes any untagged message */
	bool multi;	      /* untagged: a buffer for several messages */
	bool may_fail;	      /* cancelled, or its region closed, under way */
	bool must_fail;	      /* its key opens no region */
	bool done;
	int messages; /* multi */
	int error;    /* positive FI errno */
};

struct nth_end {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr;
	struct fid_poll *poll;
	struct fid_eq *eq;
	struct fid_ep *ep, *alias, *srx;
	struct fid_stx *stx;
	struct fid_mr *mr;
	fi_addr_t addr[NTH_ENDS];
	uint8_t *region; /* NTH_SLICES slices for each end */
	uint64_t key;	 /* of the last mr */
};

/* Plays a scene once. Its requests may still be under way when it returns. */
typedef void nth_play(struct nth *nth);

struct nth_scene {
	const char *name;
	nth_play *play;
	bool cold;	   /* nobody is connected when it begins */
	bool opening;	   /* opening everything is part of it */
	bool keys;	   /* applications choose keys, regions have segments */
	bool shared;	   /* a shared receive context each */
	bool automatic;	   /* progress threads */
	bool events;	   /* FI_RMA_EVENT */
	bool device;	   /* atomics are the device's */
	bool slabs;	   /* nothing is sent inline */
	bool kept;	   /* registrations outlive their use */
	bool windows;	   /* so do registrations, which peers reach through memory windows */
	bool for_peer;	   /* there are windows for one peer, too */
	uint32_t conns;	   /* connections that an endpoint keeps */
	/* That fail in it, at least; broken, for another reason than memory: 0: is not tried. */
	unsigned allocations, calls, broken;
};

struct nth {
	const struct nth_scene *scene;
	const char *what;  /* fails */
	uint64_t seed, n;
	int harmed_max;	   /* connections that may suffer */
	bool strict;	   /* no call fails any more */
	uint32_t round;
	struct fi_info *list;
	struct fid_fabric *fabric;
	struct nth_end end[NTH_ENDS];
	struct nth_request *requests;
};

/*
 * Fails every allocation, every two in a row, then every call of the device, the sockets and the
 * threads.
 */
void nth_run(const struct nth_scene *scene);

/* Requests. number tells a round's messages, or slices, apart: below 16, or NTH_SLICES. */

struct nth_request *nth_send(struct nth *nth, int from, int to, unsigned number, size_t len,
			     uint64_t flags);
/* from: the sender, or NTH_ANY for any sender of a message with that number. */
struct nth_request *nth_recv(struct nth *nth, int to, int from, unsigned number, size_t len);
/* These two for any untagged message; nth_send makes one with FI_MULTI_RECV. */
struct nth_request *nth_recv_untagged(struct nth *nth, int to, size_t len);
struct nth_request *nth_recv_multi(struct nth *nth, int to, size_t len);
struct nth_request *nth_write(struct nth *nth, int from, int to, unsigned number, size_t len);
struct nth_request *nth_read(struct nth *nth, int from, int to, unsigned number, size_t len);
struct nth_request *nth_add(struct nth *nth, int from, int to);
/* A request that the target's device refuses. */
struct nth_request *nth_write_refused(struct nth *nth, int from, int to);
/* flags: FI_CLAIM, FI_DISCARD. True: there was one. */
bool nth_peek(struct nth *nth, int to, int from, unsigned number, uint64_t flags,
	      struct nth_request **request);
/* Receives the message that nth_peek claimed. */
void nth_claim(struct nth *nth, struct nth_request *request, size_t len);
void nth_cancel(struct nth *nth, struct nth_request *request);
void nth_region_close(struct nth *nth, int end);
void nth_region_open(struct nth *nth, int end);
/* The endpoint alone. */
void nth_end_close(struct nth *nth, int end);
void nth_end_open(struct nth *nth, int end);

/* Lets simulated ns pass. */
void nth_pass(struct nth *nth, uint64_t ns);
/* Until all that was started has completed, but for receives whose message is lost. */
void nth_settle(struct nth *nth);

#endif
