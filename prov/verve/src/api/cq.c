/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queue: opening, reading in every format, errors, waiting. */
#include "api/cq.h"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/domain.h"
#include "api/stubs.h"
#include "base/log.h"
#include "net/cq.h"

enum {
	SIZE_DEFAULT = 1024, /* entries */
};

_Static_assert(VERVE_COMP_MSG == FI_MSG && VERVE_COMP_RMA == FI_RMA, "kinds");
_Static_assert(VERVE_COMP_TAGGED == FI_TAGGED && VERVE_COMP_MULTI_RECV == FI_MULTI_RECV, "kinds");
_Static_assert(VERVE_COMP_ATOMIC == FI_ATOMIC, "kinds");
_Static_assert(VERVE_COMP_READ == FI_READ && VERVE_COMP_WRITE == FI_WRITE, "initiated");
_Static_assert(VERVE_COMP_RECV == FI_RECV && VERVE_COMP_SEND == FI_SEND, "initiated");
_Static_assert(VERVE_COMP_REMOTE_READ == FI_REMOTE_READ, "by the peer");
_Static_assert(VERVE_COMP_REMOTE_WRITE == FI_REMOTE_WRITE, "by the peer");
_Static_assert(VERVE_COMP_REMOTE_CQ_DATA == FI_REMOTE_CQ_DATA, "data");

#define SAME_PLACE(a, field_a, b, field_b)                                                         \
	_Static_assert(offsetof(struct a, field_a) == offsetof(struct b, field_b), #field_a)

/* An entry of every format is a shorter or longer beginning of a completion. */
SAME_PLACE(verve_comp, context, fi_cq_tagged_entry, op_context);
SAME_PLACE(verve_comp, flags, fi_cq_tagged_entry, flags);
SAME_PLACE(verve_comp, len, fi_cq_tagged_entry, len);
SAME_PLACE(verve_comp, buf, fi_cq_tagged_entry, buf);
SAME_PLACE(verve_comp, data, fi_cq_tagged_entry, data);
SAME_PLACE(verve_comp, tag, fi_cq_tagged_entry, tag);
SAME_PLACE(fi_cq_msg_entry, len, fi_cq_tagged_entry, len);
SAME_PLACE(fi_cq_data_entry, data, fi_cq_tagged_entry, data);

/* struct fi_cq_err_entry of libfabric 1.20, whatever header verve is compiled with. */
struct error_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen;
	int err;
	int prov_errno;
	void *err_data;
	size_t err_data_size; /* since 1.5 */
	fi_addr_t src_addr;   /* since 1.20 */
};

SAME_PLACE(error_entry, tag, fi_cq_err_entry, tag);
SAME_PLACE(error_entry, olen, fi_cq_err_entry, olen);
SAME_PLACE(error_entry, prov_errno, fi_cq_err_entry, prov_errno);
SAME_PLACE(error_entry, err_data, fi_cq_err_entry, err_data);
SAME_PLACE(error_entry, err_data_size, fi_cq_err_entry, err_data_size);

void verve_cq_get(struct verve_cq *cq)
{
	AO_fetch_and_add1(&cq->references);
}

void verve_cq_put(struct verve_cq *cq)
{
	AO_fetch_and_sub1_release(&cq->references);
}

struct verve_lock *verve_cq_lend_lock(struct verve_cq *cq)
{
	return verve_wait_lend(&cq->wait);
}

void verve_cq_take_back(struct verve_cq *cq, struct verve_lock *lock)
{
	verve_wait_take_back(&cq->wait, lock);
}

int verve_cq_bind_engine(struct verve_cq *cq, struct verve_engine *engine)
{
	return verve_wait_bind(&cq->wait, engine);
}

void verve_cq_unbind_engine(struct verve_cq *cq, struct verve_engine *engine)
{
	verve_wait_unbind(&cq->wait, engine);
}

static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/* Takes the completions that are in the queue, without progress. */
static ssize_t cq_take(struct verve_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	ssize_t ret;

	if (verve_comp_queue_is_empty(&cq->queue))
		return -FI_EAGAIN;
	ret = verve_comp_queue_copy(&cq->queue, buf, cq->entry_size, src_addr, count);
	return ret || !count ? ret : -FI_EAGAIN;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr)
{
	struct verve_cq *cq = verve_cq_from_fid(&fid->fid);

	if (!count || verve_comp_queue_is_empty(&cq->queue))
		verve_wait_progress(&cq->wait);
	return cq_take(cq, buf, count, src_addr);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/*
 * Sets err_data to the reason. has_buf: err_data is a buffer of the application, which the reason
 * is copied to; otherwise err_data points to cq->reason. fi_cq(3).
 */
static void fill_err_data(struct verve_cq *cq, const char *reason, struct error_entry *entry,
			  bool has_buf)
{
	size_t len = strlen(reason) + 1;

	if (!has_buf) {
		verve_lock_acquire(&cq->queue.lock);
		memcpy(cq->reason, reason, len);
		verve_lock_release(&cq->queue.lock);
		entry->err_data = len > 1 ? cq->reason : NULL;
		entry->err_data_size = len > 1 ? len : 0;
		return;
	}
	if (len > entry->err_data_size)
		len = entry->err_data_size;
	memcpy(entry->err_data, reason, len);
	((char *)entry->err_data)[len - 1] = '\0';
	entry->err_data_size = len > 1 ? len : 0;
}

/*
 * Applications expect these errors in the course of things, and the code says everything. No reason
 * is given: some applications pass an entry for them whose err_data was never set.
 */
static bool is_expected(int err)
{
	return err == FI_ENOMSG || err == FI_ECANCELED || err == FI_ETRUNC;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct verve_cq *cq = verve_cq_from_fid(&fid->fid);
	uint32_t version = verve_domain_api_version(cq->domain);
	size_t size = sizeof(struct error_entry);
	struct verve_comp_error error;
	struct error_entry entry;
	bool has_buf;
	int ret;

	(void)flags;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		size = offsetof(struct error_entry, err_data_size);
	else if (FI_VERSION_LT(version, FI_VERSION(1, 20)))
		size = offsetof(struct error_entry, src_addr);
	if (verve_comp_queue_is_empty(&cq->queue))
		verve_wait_progress(&cq->wait);
	ret = verve_comp_queue_read_error(&cq->queue, &error);
	if (ret)
		return ret;
	/* Do not touch the application's buffer behind the fields that its version has. */
	entry.err_data_size = 0;
	memcpy(&entry, buf, size);
	entry.op_context = error.comp.context;
	entry.flags = error.comp.flags;
	entry.len = error.comp.len;
	entry.buf = error.comp.buf;
	entry.data = error.comp.data;
	entry.tag = error.comp.tag;
	entry.olen = error.olen;
	entry.err = error.err;
	entry.prov_errno = error.prov_errno;
	entry.src_addr = error.comp.src;
	has_buf = entry.err_data_size > 0 && entry.err_data;
	if (is_expected(error.err)) {
		entry.err_data = has_buf ? entry.err_data : NULL;
		entry.err_data_size = 0;
	} else {
		fill_err_data(cq, error.reason, &entry, has_buf);
	}
	memcpy(buf, &entry, size);
	return 1;
}

struct sread {
	struct verve_cq *cq;
	void *buf;
	size_t count;
	fi_addr_t *src_addr;
	size_t wanted;
};

static ssize_t cq_look(void *arg)
{
	struct sread *sread = arg;
	struct verve_cq *cq = sread->cq;

	if (!verve_comp_queue_is_ready(&cq->queue, sread->wanted)) {
		verve_wait_progress(&cq->wait);
		if (!verve_comp_queue_is_ready(&cq->queue, sread->wanted))
			return -FI_EAGAIN;
	}
	return cq_take(cq, sread->buf, sread->count, sread->src_addr);
}

static bool cq_arm(void *arg)
{
	struct sread *sread = arg;

	return verve_comp_queue_arm(&sread->cq->queue, sread->wanted);
}

static const struct verve_wait_ops sread_ops = {.look = cq_look, .arm = cq_arm};

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src_addr,
			    const void *cond, int timeout)
{
	struct verve_cq *cq = verve_cq_from_fid(&fid->fid);
	struct sread sread = {cq, buf, count, src_addr, 1};
	ssize_t ret;

	/* The pointer itself is the number of entries: fi_cq(3). */
	if (cq->threshold && (uintptr_t)cond > 1)
		sread.wanted = (uintptr_t)cond;
	ret = verve_wait_for(&cq->wait, timeout, &sread_ops, &sread);
	/* After the time-out, fewer entries than the threshold are better than none. */
	return ret == -FI_ETIMEDOUT ? cq_take(cq, buf, count, src_addr) : ret;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct verve_cq *cq = verve_cq_from_fid(&fid->fid);

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	verve_wait_signal(&cq->wait);
	return 0;
}

int verve_cq_trywait(struct verve_cq *cq)
{
	struct sread any = {.cq = cq, .wanted = 1};

	return verve_wait_try(&cq->wait, &sread_ops, &any);
}

/* prov_errno: an ibv_wc_status. err_data: the reason that cq_readerr gave, or NULL. */
static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	const char *status = verve_net_wc_str((uint32_t)prov_errno);

	(void)fid;
	if (!buf || !len)
		return status;
	if (err_data && prov_errno)
		snprintf(buf, len, "%s (%s)", (const char *)err_data, status);
	else
		snprintf(buf, len, "%s", err_data ? (const char *)err_data : status);
	return buf;
}

static int cq_close(struct fid *fid)
{
	struct verve_cq *cq = verve_cq_from_fid(fid);
	AO_t references = AO_load_acquire(&cq->references);

	if (references || verve_wait_is_bound(&cq->wait)) {
		VERVE_WARN(CQ,
			   "cannot close completion queue %p: %zu endpoints or poll sets use it\n",
			   (void *)cq, (size_t)references);
		return -FI_EBUSY;
	}
	verve_comp_queue_fini(&cq->queue);
	verve_wait_fini(&cq->wait);
	verve_domain_put(cq->domain);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return verve_wait_control(&verve_cq_from_fid(fid)->wait, command, arg);
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = verve_stub_bind,
	.control = cq_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

static int cq_check(const struct fi_cq_attr *attr)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);

	if (!attr)
		return -FI_EINVAL;
	if (attr->flags & ~FI_AFFINITY) {
		VERVE_WARN(CQ, "completion queue flags 0x%llx are not supported\n",
			   (unsigned long long)attr->flags);
		return attr->flags & FI_PEER ? -FI_EINVAL : -FI_EBADFLAGS; /* fi_peer(3) */
	}
	if (attr->flags & FI_AFFINITY && (unsigned)attr->signaling_vector >= cpus) {
		VERVE_WARN(CQ,
			   "signaling_vector %d is not a processor: with FI_AFFINITY it is "
			   "a number "
			   "from 0 to %u\n",
			   attr->signaling_vector, cpus - 1);
		return -FI_EINVAL;
	}
	if ((unsigned)attr->format > FI_CQ_FORMAT_TAGGED) {
		VERVE_WARN(CQ, "%d is not a completion format\n", attr->format);
		return -FI_EINVAL;
	}
	if (attr->wait_obj != FI_WAIT_NONE && (unsigned)attr->wait_cond > FI_CQ_COND_THRESHOLD) {
		VERVE_WARN(CQ, "%d is not a wait condition\n", attr->wait_cond);
		return -FI_EINVAL;
	}
	return 0;
}

int verve_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **fid,
		  void *context)
{
	struct verve_domain *domain = verve_domain_from_fid(&domain_fid->fid);
	struct verve_cq *cq;
	int ret;

	ret = cq_check(attr);
	if (ret)
		return ret;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	ret = verve_wait_init(&cq->wait, attr->wait_obj, verve_domain_elides_locks(domain));
	if (ret)
		goto err_free;
	ret = verve_comp_queue_init(&cq->queue, attr->size ? attr->size : SIZE_DEFAULT,
				    verve_domain_elides_locks(domain));
	if (ret)
		goto err_wait;
	cq->queue.wake = verve_wait_wake;
	cq->queue.arg = &cq->wait;
	cq->entry_size = entry_size(attr->format);
	cq->vector = attr->flags & FI_AFFINITY ? attr->signaling_vector : -1;
	cq->threshold = attr->wait_cond == FI_CQ_COND_THRESHOLD;
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	cq->domain = domain;
	verve_domain_get(domain);
	*fid = &cq->fid;
	return 0;

err_wait:
	verve_wait_fini(&cq->wait);
err_free:
	free(cq);
	return ret;
}
