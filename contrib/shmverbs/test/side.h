/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Side: one end of a connection with all its objects; and the checks of the tests. */
#ifndef SHMV_TEST_SIDE_H
#define SHMV_TEST_SIDE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	SIZE = 4 << 20, /* bytes of a side's memory */
	DEPTH = 64,	/* work requests of a side's queues */
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC,
};

/* A macro, because it prints its argument. */
#define CHECK(x) check(x, __func__, __LINE__, #x)
bool check(bool good, const char *function, int line, const char *what);
extern int failed_here; /* failed checks of the current test */

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char *buf;
};

struct name { /* a side, as its peer has to know it */
	uint32_t qpn, psn, rkey;
	uint16_t lid;
	uint64_t addr;
	union ibv_gid gid;
};

/* Attributes of connections that are made later. A test that changes them sets them back. */
struct knobs {
	int timeout, rnr_retry, rnr_timer, gid_index, pkey_index;
	bool global; /* with a global route */
};
extern struct knobs knobs;
extern const struct knobs knobs_default;

double now(void);
struct ibv_context *open_dev(int i);
struct ibv_qp *make_qp(struct side *s);
/* access: of the side's memory, beside all remote accesses. */
void side_open(struct side *s, int dev, bool srq);
void side_open_access(struct side *s, int dev, bool srq, int access);
void side_close(struct side *s);
struct name name_of(struct side *s);
int to_init(struct ibv_qp *qp);
int to_rtr(struct ibv_qp *qp, const struct name *to);
int to_rts(struct ibv_qp *qp);
void pair(struct side *a, struct side *b);
int post(struct side *s, int op, uint64_t id, size_t off, size_t len, int flags, uint64_t raddr,
	 uint32_t rkey);
int post_recv(struct side *s, uint64_t id, size_t off, size_t len);
/* Polls for a completion, at most so many seconds. Returns what ibv_poll_cq returned. */
int get(struct ibv_cq *cq, struct ibv_wc *wc, double seconds);
/* True if the next completion has this id and this status. */
bool got(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
void fill(unsigned char *p, size_t n, int seed);
bool is_filled(const unsigned char *p, size_t n, int seed);
int state(struct ibv_qp *qp);
/* Runs shmv-ctl with arguments; false: it failed. */
bool ctl(const char *arguments);
/* True if the next event has this type and is about element, or NULL. Acknowledges the event. */
bool event_is(struct ibv_context *ctx, enum ibv_event_type type, const void *element,
	      double seconds);

#endif
