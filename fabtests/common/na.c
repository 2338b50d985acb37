/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* na: opens and uses an endpoint as Mercury does. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/na.h"
#include "common/pattern.h"

#define CQ_SIZE 131072
#define CQ_READ 16
#define PROTO_VERVE 0x80766572u

/* The version that Mercury asks for: it depends on the libfabric that it was compiled with. */
static uint32_t asked_version(void)
{
	uint32_t own = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	if (FI_VERSION_GE(own, FI_VERSION(1, 20)))
		return FI_VERSION(1, 20);
	return FI_VERSION_GE(own, FI_VERSION(1, 13)) ? FI_VERSION(1, 13) : FI_VERSION(1, 9);
}

static struct fi_info *hints_of(const struct env *env)
{
	const char *name = env->opts.prov_name;
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		check_fatal("fi_allocinfo: out of memory");
	hints->mode = FI_ASYNC_IOV | FI_CONTEXT;
	hints->caps = NA_CAPS;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->ep_attr->type = FI_EP_RDM;
	if (name) {
		hints->fabric_attr->prov_name = strdup(name);
		hints->ep_attr->protocol = strcmp(name, "verve") ? FI_PROTO_RXM : PROTO_VERVE;
	}
	hints->tx_attr->op_flags = FI_INJECT_COMPLETE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_LOCAL | FI_MR_ENDPOINT;
	return hints;
}

int na_getinfo(const struct env *env, bool by_name, struct fi_info **info)
{
	const char *node = env->opts.src_addr;
	struct fi_info *hints = hints_of(env);
	struct sockaddr_in *name;
	int ret;

	if (node && !by_name) {
		name = calloc(1, sizeof(*name));
		if (!name)
			check_fatal("out of memory");
		name->sin_family = AF_INET;
		REQUIRE(inet_pton(AF_INET, node, &name->sin_addr) == 1);
		hints->src_addr = name;
		hints->src_addrlen = sizeof(*name);
		node = NULL;
	}
	ret = fi_getinfo(asked_version(), node, node ? "0" : NULL,
			 node ? FI_SOURCE | FI_NUMERICHOST : 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

void na_mem_open(struct na *na, struct na_mem *mem, size_t len)
{
	*mem = (struct na_mem){ .buf = pattern_alloc(len), .len = len };
	if (!(na->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	REQUIRE_RET(fi_mr_reg(na->domain, mem->buf, len, FI_SEND | FI_RECV, 0, 0, 0,
			      &mem->mr, NULL), 0);
	mem->desc = fi_mr_desc(mem->mr);
}

void na_bulk_open(struct na *na, struct na_mem *mem, size_t len, uint64_t access)
{
	struct iovec iov = { .iov_base = pattern_alloc(len), .iov_len = len };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = access };

	*mem = (struct na_mem){ .buf = iov.iov_base, .len = len };
	REQUIRE_RET(fi_mr_regattr(na->domain, &attr, 0, &mem->mr), 0);
	if (na->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		REQUIRE_RET(fi_mr_bind(mem->mr, &na->ep->fid, 0), 0);
		REQUIRE_RET(fi_mr_enable(mem->mr), 0);
	}
	mem->desc = fi_mr_desc(mem->mr);
}

void na_mem_close(struct na_mem *mem)
{
	if (mem->mr)
		CHECK_RET(fi_close(&mem->mr->fid), 0);
	pattern_free(mem->buf);
	*mem = (struct na_mem){ 0 };
}

uint64_t na_bulk_addr(const struct na *na, const struct na_mem *mem)
{
	return na->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)mem->buf : 0;
}

/* Whether to try again. Progress makes room. */
static bool again(struct na *na, ssize_t ret, uint64_t end)
{
	if (ret != -FI_EAGAIN)
		return false;
	if (clock_now() > end)
		check_fatal("nothing but -FI_EAGAIN for %u s", na->env->opts.timeout);
	na_progress(na);
	return true;
}

static void begin(struct na_op *op)
{
	REQUIRE(!op->pending);
	*op = (struct na_op){ .pending = true };
}

static void post_multi(struct na *na, unsigned i)
{
	struct iovec iov = { .iov_base = (uint8_t *)na->buffers.buf + i * NA_BUFFER,
			     .iov_len = NA_BUFFER };
	struct fi_msg msg = { .msg_iov = &iov, .desc = &na->buffers.desc, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = &na->multi[i] };
	uint64_t end = env_deadline(na->env);
	ssize_t ret;

	begin(&na->multi[i]);
	do
		ret = fi_recvmsg(na->ep, &msg, FI_MULTI_RECV);
	while (again(na, ret, end));
	REQUIRE_RET(ret, 0);
}

static bool is_multi(const struct na *na, const struct na_op *op)
{
	return op >= na->multi && op < na->multi + NA_BUFFERS;
}

static void take_unexpected(struct na *na, struct na_op *op, const struct fi_cq_tagged_entry *e)
{
	const uint8_t *at = e->buf, *first = na->buffers.buf;
	size_t i = (size_t)(op - na->multi);

	CHECK(e->flags & FI_RECV);
	if (e->len || e->buf) {
		CHECK(e->flags & FI_REMOTE_CQ_DATA);
		CHECK(e->data <= UINT32_MAX);
		REQUIRE(at >= first + i * NA_BUFFER && at + e->len <= first + (i + 1) * NA_BUFFER);
		na->handler(na->arg, e->buf, e->len, (uint32_t)e->data);
	}
	if (e->flags & FI_MULTI_RECV) {
		op->pending = false;
		na->released++;
	}
}

static void take(struct na *na, const struct fi_cq_tagged_entry *e)
{
	struct na_op *op = e->op_context;

	REQUIRE(op != NULL && op->pending);
	if (is_multi(na, op)) {
		take_unexpected(na, op, e);
		return;
	}
	op->flags = e->flags;
	op->data = e->data;
	op->tag = e->tag;
	op->len = e->len;
	op->pending = false;
}

static void take_error(struct na *na)
{
	struct fi_cq_err_entry e = { 0 };
	struct na_op *op;

	REQUIRE_RET(fi_cq_readerr(na->cq, &e, 0), 1);
	op = e.op_context;
	REQUIRE(op != NULL && op->pending);
	CHECK(e.err > 0);
	op->err = e.err;
	op->flags = e.flags;
	op->pending = false;
	if (is_multi(na, op) && !na->closing)
		check_fail("a multi-receive buffer ended: %s", fi_strerror(e.err));
}

bool na_progress(struct na *na)
{
	struct fi_cq_tagged_entry entries[CQ_READ];
	ssize_t ret = fi_cq_read(na->cq, entries, CQ_READ);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		take_error(na);
		return true;
	}
	REQUIRE(ret > 0);
	for (ssize_t i = 0; i < ret; i++)
		take(na, &entries[i]);
	for (unsigned i = 0; na->handler && !na->closing && i < NA_BUFFERS; i++)
		if (!na->multi[i].pending)
			post_multi(na, i);
	return true;
}

static void progress_member(struct env_member *member)
{
	na_progress((struct na *)member);
}

void na_sleep(struct na *const *nas, unsigned count, int epoll)
{
	unsigned timeout = nas[0]->env->opts.timeout;
	struct epoll_event event;

	for (unsigned i = 0; i < count; i++) {
		struct fid *fid = &nas[i]->cq->fid;
		int ret = fi_trywait(nas[i]->fabric, &fid, 1);

		if (ret == -FI_EAGAIN)
			return;
		REQUIRE_RET(ret, 0);
	}
	if (epoll_wait(epoll, &event, 1, (int)timeout * 1000) != 1)
		check_fatal("no wake-up within %u s", timeout);
}

static void open_queue(struct na *na, int epoll)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD, .wait_cond = FI_CQ_COND_NONE,
				   .format = FI_CQ_FORMAT_TAGGED, .size = CQ_SIZE };
	struct epoll_event event = { .events = EPOLLIN };
	int fd = -1;

	REQUIRE_RET(fi_cq_open(na->domain, &attr, &na->cq, NULL), 0);
	REQUIRE_RET(fi_control(&na->cq->fid, FI_GETWAIT, &fd), 0);
	REQUIRE(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

static void set_min_multi_recv(struct na *na)
{
	size_t min = 0, len = sizeof(min);

	REQUIRE_RET(fi_getopt(&na->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	min = NA_MESSAGE;
	REQUIRE_RET(fi_setopt(&na->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			      sizeof(min)), 0);
}

void na_open(struct na *na, struct env *env, int epoll, na_handler *handler, void *arg)
{
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };
	size_t len = sizeof(na->name);

	*na = (struct na){ .env = env, .handler = handler, .arg = arg };
	REQUIRE_RET(na_getinfo(env, false, &na->info), 0);
	REQUIRE_RET(fi_fabric(na->info->fabric_attr, &na->fabric, NULL), 0);
	REQUIRE_RET(fi_domain(na->fabric, na->info, &na->domain, NULL), 0);
	REQUIRE_RET(fi_av_open(na->domain, &av, &na->av, NULL), 0);
	REQUIRE_RET(fi_endpoint(na->domain, na->info, &na->ep, NULL), 0);
	open_queue(na, epoll);
	REQUIRE_RET(fi_ep_bind(na->ep, &na->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	REQUIRE_RET(fi_ep_bind(na->ep, &na->av->fid, 0), 0);
	set_min_multi_recv(na);
	REQUIRE_RET(fi_enable(na->ep), 0);
	REQUIRE_RET(fi_getname(&na->ep->fid, &na->name, &len), 0);
	CHECK_EQ(len, sizeof(na->name));
	na->member.progress = progress_member;
	LIST_INSERT_HEAD(&env->members, &na->member, entry);
	if (!handler)
		return;
	na_mem_open(na, &na->buffers, NA_BUFFERS * NA_BUFFER);
	for (unsigned i = 0; i < NA_BUFFERS; i++)
		post_multi(na, i);
}

static void cancel_multi(struct na *na)
{
	uint64_t end = env_deadline(na->env);

	na->closing = true;
	for (unsigned i = 0; i < NA_BUFFERS; i++) {
		struct na_op *op = &na->multi[i];

		if (!op->pending)
			continue;
		CHECK_RET(na_cancel(na, op), 0);
		while (op->pending) {
			na_progress(na);
			if (clock_now() > end)
				check_fatal("a cancelled multi-receive buffer never ended");
		}
		CHECK_RET(op->err, FI_ECANCELED);
	}
	na_mem_close(&na->buffers);
}

void na_close(struct na *na)
{
	if (na->handler)
		cancel_multi(na);
	LIST_REMOVE(&na->member, entry);
	CHECK_RET(fi_close(&na->ep->fid), 0);
	CHECK_RET(fi_close(&na->cq->fid), 0);
	CHECK_RET(fi_close(&na->av->fid), 0);
	CHECK_RET(fi_close(&na->domain->fid), 0);
	CHECK_RET(fi_close(&na->fabric->fid), 0);
	fi_freeinfo(na->info);
}

void na_uri(const struct na *na, char uri[NA_URI])
{
	size_t len = NA_URI;

	REQUIRE(fi_av_straddr(na->av, &na->name, uri, &len) == uri);
	CHECK(len <= NA_URI);
	CHECK_EQ(len, strlen(uri) + 1);
}

fi_addr_t na_lookup(struct na *na, const char *uri)
{
	struct sockaddr_in name = { .sin_family = AF_INET };
	const char *host = strstr(uri, "://"), *port = strrchr(uri, ':');
	char text[INET_ADDRSTRLEN] = "";

	REQUIRE(host != NULL && port > host + 3);
	host += 3;
	snprintf(text, sizeof(text), "%.*s", (int)(port - host), host);
	REQUIRE(inet_pton(AF_INET, text, &name.sin_addr) == 1);
	name.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
	return na_insert(na, &name);
}

fi_addr_t na_insert(struct na *na, const struct sockaddr_in *name)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	REQUIRE_RET(fi_av_insert(na->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

void na_remove(struct na *na, fi_addr_t addr)
{
	CHECK_RET(fi_av_remove(na->av, &addr, 1, 0), 0);
}

void na_send(struct na *na, struct na_op *op, fi_addr_t to, const void *buf, size_t len, void *desc,
	     uint32_t tag)
{
	uint64_t end = env_deadline(na->env);
	ssize_t ret;

	begin(op);
	do
		ret = fi_senddata(na->ep, buf, len, desc, tag, to, op);
	while (again(na, ret, end));
	REQUIRE_RET(ret, 0);
}

void na_tsend(struct na *na, struct na_op *op, fi_addr_t to, const void *buf, size_t len,
	      void *desc, uint32_t tag)
{
	uint64_t end = env_deadline(na->env);
	ssize_t ret;

	begin(op);
	do
		ret = fi_tsend(na->ep, buf, len, desc, to, tag, op);
	while (again(na, ret, end));
	REQUIRE_RET(ret, 0);
}

void na_trecv(struct na *na, struct na_op *op, fi_addr_t from, void *buf, size_t len, void *desc,
	      uint32_t tag)
{
	uint64_t end = env_deadline(na->env);
	ssize_t ret;

	begin(op);
	do
		ret = fi_trecv(na->ep, buf, len, desc, from, tag, 0, op);
	while (again(na, ret, end));
	REQUIRE_RET(ret, 0);
}

typedef ssize_t rma_call(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);

static void post_rma(struct na *na, struct na_op *op, rma_call *call, uint64_t flags,
		     fi_addr_t peer,
		     const struct na_mem *local, uint64_t addr, uint64_t key)
{
	struct iovec iov = { .iov_base = local->buf, .iov_len = local->len };
	struct fi_rma_iov remote = { .addr = addr, .len = local->len, .key = key };
	void *desc = local->desc;
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = peer,
				  .rma_iov = &remote, .rma_iov_count = 1, .context = op };
	uint64_t end = env_deadline(na->env);
	ssize_t ret;

	begin(op);
	do
		ret = call(na->ep, &msg, flags);
	while (again(na, ret, end));
	REQUIRE_RET(ret, 0);
}

void na_put(struct na *na, struct na_op *op, fi_addr_t to, const struct na_mem *local,
	    uint64_t addr, uint64_t key)
{
	post_rma(na, op, fi_writemsg, FI_COMPLETION | FI_DELIVERY_COMPLETE, to, local, addr, key);
}

void na_get(struct na *na, struct na_op *op, fi_addr_t from, const struct na_mem *local,
	    uint64_t addr, uint64_t key)
{
	post_rma(na, op, fi_readmsg, FI_COMPLETION, from, local, addr, key);
}

int na_cancel(struct na *na, struct na_op *op)
{
	return (int)fi_cancel(&na->ep->fid, op);
}
