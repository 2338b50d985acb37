/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* comp: reads completion queues of every format; the only place that waits for completions. */
#include <poll.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/comp.h"

#define NAP_MS 20
#define REASON_MAX 256

union entry {
	struct fi_cq_entry context;
	struct fi_cq_msg_entry msg;
	struct fi_cq_data_entry data;
	struct fi_cq_tagged_entry tagged;
};

static void fill(struct comp *comp, const union entry *e, enum fi_cq_format format)
{
	*comp = (struct comp){ .context = e->context.op_context, .src = FI_ADDR_NOTAVAIL };
	if (format >= FI_CQ_FORMAT_MSG) {
		comp->flags = e->msg.flags;
		comp->len = e->msg.len;
	}
	if (format >= FI_CQ_FORMAT_DATA) {
		comp->buf = e->data.buf;
		comp->data = e->data.data;
	}
	if (format >= FI_CQ_FORMAT_TAGGED)
		comp->tag = e->tagged.tag;
}

static void fill_error(struct fid_cq *cq, struct comp *comp)
{
	static _Thread_local char reason[REASON_MAX];
	struct fi_cq_err_entry e = { .err_data = reason, .err_data_size = sizeof(reason) - 1 };
	ssize_t ret;

	memset(reason, 0, sizeof(reason));
	ret = fi_cq_readerr(cq, &e, 0);
	if (ret != 1)
		check_fatal("fi_cq_readerr after -FI_EAVAIL: %zd", ret);
	if (e.err <= 0)
		check_fatal("an error entry with err %d", e.err);
	*comp = (struct comp){
		.context = e.op_context, .flags = e.flags, .len = e.len, .buf = e.buf,
		.data = e.data, .tag = e.tag, .err = e.err, .olen = e.olen,
		.src = FI_ADDR_NOTAVAIL, .prov_errno = e.prov_errno, .reason = reason,
	};
}

static bool finish(struct node *node, struct fid_cq *cq, ssize_t ret, const union entry *e,
		   fi_addr_t src, struct comp *comp)
{
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		fill_error(cq, comp);
		return true;
	}
	if (ret != 1)
		check_fatal("fi_cq_read: %zd (%s)", ret, fi_strerror(ret < 0 ? (int)-ret : 0));
	fill(comp, e, node->cq_format);
	comp->src = src;
	return true;
}

bool comp_read(struct node *node, struct fid_cq *cq, struct comp *comp)
{
	union entry e = { 0 };
	ssize_t ret = fi_cq_read(cq, &e, 1);

	return finish(node, cq, ret, &e, FI_ADDR_NOTAVAIL, comp);
}

bool comp_read_from(struct node *node, struct fid_cq *cq, struct comp *comp)
{
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	union entry e = { 0 };
	ssize_t ret = fi_cq_readfrom(cq, &e, 1, &src);

	return finish(node, cq, ret, &e, src, comp);
}

bool comp_nap(struct node *node, struct fid_cq *cq, int milliseconds, struct comp *comp)
{
	union entry e = { 0 };
	ssize_t ret = fi_cq_sread(cq, &e, 1, NULL, milliseconds);

	return finish(node, cq, ret, &e, FI_ADDR_NOTAVAIL, comp);
}

static void sleep_on_fd(struct node *node, struct fid_cq *cq)
{
	struct fid *fid = &cq->fid;
	struct pollfd pfd = { .events = POLLIN };

	REQUIRE_RET(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	if (fi_trywait(node->fabric, &fid, 1) == FI_SUCCESS)
		poll(&pfd, 1, NAP_MS);
}

static bool try_once(struct node *node, struct fid_cq *cq, struct comp *comp)
{
	if (node->env->opts.method == OPTS_SREAD && node->cq_wait != FI_WAIT_NONE)
		return comp_nap(node, cq, NAP_MS, comp);
	if (comp_read(node, cq, comp))
		return true;
	if (node->env->opts.method == OPTS_FD && node->cq_wait == FI_WAIT_FD)
		sleep_on_fd(node, cq);
	return false;
}

void comp_wait(struct node *node, struct fid_cq *cq, struct comp *comp)
{
	uint64_t end = env_deadline(node->env);
	unsigned turns = 0;

	while (!try_once(node, cq, comp)) {
		env_progress(node->env, turns);
		if (!(++turns % 64) && clock_now() > end)
			check_fatal("no completion within %u s", node->env->opts.timeout);
	}
}

void comp_wait_from(struct node *node, struct fid_cq *cq, struct comp *comp)
{
	uint64_t end = env_deadline(node->env);
	unsigned turns = 0;

	while (!comp_read_from(node, cq, comp)) {
		env_progress(node->env, turns++);
		if (clock_now() > end)
			check_fatal("no completion within %u s", node->env->opts.timeout);
	}
}

void comp_expect(struct node *node, struct fid_cq *cq, void *context, struct comp *comp)
{
	comp_wait(node, cq, comp);
	CHECK_RET(comp->err, 0);
	CHECK_EQ((uintptr_t)comp->context, (uintptr_t)context);
}

void comp_expect_error(struct node *node, struct fid_cq *cq, void *context, int err,
		       struct comp *comp)
{
	comp_wait(node, cq, comp);
	CHECK_RET(comp->err, err);
	CHECK_EQ((uintptr_t)comp->context, (uintptr_t)context);
}

void comp_expect_none(struct node *node, struct fid_cq *cq)
{
	struct comp comp;

	if (!comp_read(node, cq, &comp))
		return;
	check_fail("an unexpected completion: context %p, flags 0x%llx, length %zu, error %d (%s)",
		   comp.context, (unsigned long long)comp.flags, comp.len, comp.err,
		   comp.err ? fi_strerror(comp.err) : "none");
}
