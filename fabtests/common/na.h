/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * na: an endpoint that asks and posts as Mercury's plugin for libfabric does: its hints, one queue
 * with a descriptor, unexpected messages with a tag of 32 bits as remote CQ data into multi-receive
 * buffers, expected messages by tag and sender, bulk transfers by fi_readmsg and fi_writemsg. One
 * thread.
 */
#ifndef FABTESTS_NA_H
#define FABTESTS_NA_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "common/env.h"

#define NA_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV)
#define NA_MESSAGE 4096 /* bytes of the longest message */
#define NA_BUFFERS 4	/* multi-receive buffers */
#define NA_BUFFER (16 * NA_MESSAGE)
#define NA_URI 128

struct na_op {
	struct fi_context context; /* first: the operation's context */
	bool pending;
	int err; /* positive FI errno; 0: success */
	uint64_t flags, data, tag;
	size_t len;
};

/* Memory of its own, guarded. */
struct na_mem {
	struct fid_mr *mr; /* NULL: not registered */
	void *buf;
	size_t len;
	void *desc;
};

/* An unexpected message has come; buf is valid during the call, which must not post. */
typedef void na_handler(void *arg, const void *buf, size_t len, uint32_t tag);

struct na {
	struct env_member member; /* first; of env */
	struct env *env;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct sockaddr_in name;
	na_handler *handler; /* NULL: receives no unexpected message */
	void *arg;
	struct na_op multi[NA_BUFFERS];
	struct na_mem buffers;
	unsigned released; /* multi-receive buffers that were full */
	bool closing;
};

/*
 * The answer to Mercury's hints, or a libfabric code. by_name: the address goes in as node and
 * service, else in the hints; Mercury does either.
 */
int na_getinfo(const struct env *env, bool by_name, struct fi_info **info);
/*
 * Opens, enables, and posts multi-receive buffers if there is a handler. epoll watches the queue.
 */
void na_open(struct na *na, struct env *env, int epoll, na_handler *handler, void *arg);
/* Cancels the multi-receive buffers first, as Mercury does. */
void na_close(struct na *na);

/* fi_av_straddr of the own name. */
void na_uri(const struct na *na, char uri[NA_URI]);
/* The address behind the "://" of such a string, inserted. */
fi_addr_t na_lookup(struct na *na, const char *uri);
fi_addr_t na_insert(struct na *na, const struct sockaddr_in *name);
void na_remove(struct na *na, fi_addr_t addr);

/* For messages: registered if the provider wants it for local buffers. */
void na_mem_open(struct na *na, struct na_mem *mem, size_t len);
/* For bulk transfers: always registered, as Mercury's bulk handles are. */
void na_bulk_open(struct na *na, struct na_mem *mem, size_t len, uint64_t access);
void na_mem_close(struct na_mem *mem);
/* Address of a bulk's first byte for the other side. */
uint64_t na_bulk_addr(const struct na *na, const struct na_mem *mem);

/* Each is repeated while the call says -FI_EAGAIN, bounded by -T. op stays until it is done. */
void na_send(struct na *na, struct na_op *op, fi_addr_t to, const void *buf, size_t len, void *desc,
	     uint32_t tag);
void na_tsend(struct na *na, struct na_op *op, fi_addr_t to, const void *buf, size_t len,
	      void *desc, uint32_t tag);
void na_trecv(struct na *na, struct na_op *op, fi_addr_t from, void *buf, size_t len, void *desc,
	      uint32_t tag);
void na_put(struct na *na, struct na_op *op, fi_addr_t to, const struct na_mem *local,
	    uint64_t addr, uint64_t key);
void na_get(struct na *na, struct na_op *op, fi_addr_t from, const struct na_mem *local,
	    uint64_t addr, uint64_t key);
/* fi_cancel; its code. */
int na_cancel(struct na *na, struct na_op *op);

/* Reads completions; returns whether there were some. */
bool na_progress(struct na *na);
/*
 * Sleeps until one of them may have something, unless one says that it must not sleep: fi_trywait
 * of each, then epoll_wait. Ends the program if nothing comes within -T seconds.
 */
void na_sleep(struct na *const *nas, unsigned count, int epoll);

#endif
