/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event queue: one list of events and errors, in the order in which they were added. */
#include "api/eq.h"

#include <atomic_ops.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/fabric.h"
#include "api/stubs.h"
#include "api/wait.h"
#include "base/lock.h"
#include "base/log.h"

struct verve_eq_event {
	STAILQ_ENTRY(verve_eq_event) link;
	uint32_t type;
	bool error; /* true: data is a struct fi_eq_err_entry */
	size_t len;
	unsigned char data[];
};

struct eq {
	struct fid_eq fid;
	struct fid_fabric *fabric;
	uint64_t flags; /* FI_WRITE: the application may write events */
	struct verve_wait wait;
	struct verve_lock lock; /* guards events */
	STAILQ_HEAD(, verve_eq_event) events;
	volatile AO_t references; /* objects that report here */
};

static struct eq *eq_of(struct fid_eq *fid)
{
	return (struct eq *)fid; /* fid is its first member */
}

void verve_eq_get(struct fid_eq *fid)
{
	AO_fetch_and_add1(&eq_of(fid)->references);
}

void verve_eq_put(struct fid_eq *fid)
{
	AO_fetch_and_sub1_release(&eq_of(fid)->references);
}

/* NULL: no memory, which is logged. */
static struct verve_eq_event *event_alloc(uint32_t type, bool error, size_t len)
{
	struct verve_eq_event *event = malloc(sizeof(*event) + len);

	if (!event) {
		VERVE_WARN(EQ, "no memory for an event of type %u\n", type);
		return NULL;
	}
	event->type = type;
	event->error = error;
	event->len = len;
	return event;
}

/* data: event->len bytes. */
static void eq_put(struct eq *eq, struct verve_eq_event *event, const void *data)
{
	if (event->len)
		memcpy(event->data, data, event->len);
	verve_lock_acquire(&eq->lock);
	STAILQ_INSERT_TAIL(&eq->events, event, link);
	verve_lock_release(&eq->lock);
	verve_wait_wake(&eq->wait);
}

int verve_eq_write_event(struct fid_eq *fid, uint32_t event, const void *buf, size_t len)
{
	struct verve_eq_event *new = event_alloc(event, false, len);

	if (!new)
		return -FI_ENOMEM;
	eq_put(eq_of(fid), new, buf);
	return 0;
}

struct verve_eq_event *verve_eq_alloc_error(void)
{
	return event_alloc(0, true, sizeof(struct fi_eq_err_entry));
}

void verve_eq_free_error(struct verve_eq_event *event)
{
	free(event);
}

void verve_eq_put_error(struct fid_eq *fid, struct verve_eq_event *event,
			const struct fi_eq_err_entry *entry)
{
	struct fi_eq_err_entry copy = {
		.fid = entry->fid,
		.context = entry->context,
		.data = entry->data,
		.err = entry->err,
		.prov_errno = entry->prov_errno,
	};

	eq_put(eq_of(fid), event, &copy);
}

static bool is_error_of(const struct verve_eq_event *event, const struct fid *fid)
{
	struct fi_eq_err_entry entry;

	if (!event->error)
		return false;
	memcpy(&entry, event->data, sizeof(entry));
	return entry.fid == fid;
}

void verve_eq_forget(struct fid_eq *fid, const struct fid *about)
{
	STAILQ_HEAD(, verve_eq_event) kept = STAILQ_HEAD_INITIALIZER(kept), gone =
		STAILQ_HEAD_INITIALIZER(gone);
	struct eq *eq = eq_of(fid);
	struct verve_eq_event *event;

	verve_lock_acquire(&eq->lock);
	while ((event = STAILQ_FIRST(&eq->events))) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		if (is_error_of(event, about))
			STAILQ_INSERT_TAIL(&gone, event, link);
		else
			STAILQ_INSERT_TAIL(&kept, event, link);
	}
	STAILQ_CONCAT(&eq->events, &kept);
	verve_lock_release(&eq->lock);
	while ((event = STAILQ_FIRST(&gone))) {
		STAILQ_REMOVE_HEAD(&gone, link);
		free(event);
	}
}

int verve_eq_write_error(struct fid_eq *fid, const struct fi_eq_err_entry *entry)
{
	struct verve_eq_event *event = verve_eq_alloc_error();

	if (!event)
		return -FI_ENOMEM;
	verve_eq_put_error(fid, event, entry);
	return 0;
}

/*
 * Copies the next event, or the next error, to buf; returns the bytes copied. Without FI_PEEK the
 * event leaves the queue: *taken, which the caller frees. The lock is held.
 */
static ssize_t eq_take(struct eq *eq, bool error, uint32_t *type, void *buf, size_t len,
		       uint64_t flags, struct verve_eq_event **taken)
{
	struct verve_eq_event *event = STAILQ_FIRST(&eq->events);

	if (!event)
		return -FI_EAGAIN;
	if (event->error != error)
		return error ? -FI_EAGAIN : -FI_EAVAIL;
	if (!error && len < event->len)
		return -FI_ETOOSMALL;
	if (len > event->len)
		len = event->len;
	memcpy(buf, event->data, len);
	if (type)
		*type = event->type;
	if (!(flags & FI_PEEK)) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		*taken = event;
	}
	return (ssize_t)len;
}

static ssize_t eq_read_next(struct eq *eq, bool error, uint32_t *type, void *buf, size_t len,
			    uint64_t flags)
{
	struct verve_eq_event *taken = NULL;
	ssize_t ret;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	verve_lock_acquire(&eq->lock);
	ret = eq_take(eq, error, type, buf, len, flags, &taken);
	verve_lock_release(&eq->lock);
	free(taken);
	return ret;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	return eq_read_next(eq_of(fid), false, event, buf, len, flags);
}

/*
 * Before version 1.5 an entry had no err_data_size. The entries here have no err_data, so the field
 * is 0 where it is there.
 */
static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	size_t size = sizeof(*buf);

	if (FI_VERSION_LT(eq->fabric->api_version, FI_VERSION(1, 5)))
		size = offsetof(struct fi_eq_err_entry, err_data_size);
	return eq_read_next(eq, true, NULL, buf, size, flags);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	struct eq *eq = eq_of(fid);
	int ret;

	if (!(eq->flags & FI_WRITE))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	ret = verve_eq_write_event(fid, event, buf, len);
	return ret ? ret : (ssize_t)len;
}

struct sread {
	struct eq *eq;
	uint32_t *event;
	void *buf;
	size_t len;
	uint64_t flags;
};

static ssize_t eq_look(void *arg)
{
	struct sread *sread = arg;

	return eq_read_next(sread->eq, false, sread->event, sread->buf, sread->len, sread->flags);
}

static bool eq_arm(void *arg)
{
	struct sread *sread = arg;
	bool empty;

	/* Every event wakes, so there is nothing to arm. */
	verve_lock_acquire(&sread->eq->lock);
	empty = STAILQ_EMPTY(&sread->eq->events);
	verve_lock_release(&sread->eq->lock);
	return empty;
}

static const struct verve_wait_ops sread_ops = {.look = eq_look, .arm = eq_arm};

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct sread sread = {eq_of(fid), event, buf, len, flags};
	ssize_t ret = verve_wait_for(&sread.eq->wait, timeout, &sread_ops, &sread);

	return ret == -FI_ETIMEDOUT ? -FI_EAGAIN : ret;
}

int verve_eq_trywait(struct fid_eq *fid)
{
	struct sread any = {.eq = eq_of(fid)};

	return verve_wait_try(&any.eq->wait, &sread_ops, &any);
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	const char *text = fi_strerror(prov_errno);

	(void)fid, (void)err_data;
	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}

static int eq_close(struct fid *fid)
{
	struct eq *eq = eq_of((struct fid_eq *)fid);
	AO_t references = AO_load_acquire(&eq->references);
	struct verve_eq_event *event;

	if (references) {
		VERVE_WARN(EQ, "cannot close event queue %p: %zu objects report to it\n",
			   (void *)eq, (size_t)references);
		return -FI_EBUSY;
	}
	while ((event = STAILQ_FIRST(&eq->events))) {
		STAILQ_REMOVE_HEAD(&eq->events, link);
		free(event);
	}
	verve_lock_fini(&eq->lock);
	verve_wait_fini(&eq->wait);
	verve_fabric_put(eq->fabric);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	return verve_wait_control(&eq_of((struct fid_eq *)fid)->wait, command, arg);
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = verve_stub_bind,
	.control = eq_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

int verve_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **fid,
		  void *context)
{
	struct eq *eq;
	int ret;

	if (!attr)
		return -FI_EINVAL;
	if (attr->flags & ~(FI_WRITE | FI_AFFINITY)) {
		VERVE_WARN(EQ, "event queue flags 0x%llx are not supported\n",
			   (unsigned long long)attr->flags);
		return attr->flags & FI_PEER ? -FI_EINVAL : -FI_EBADFLAGS; /* fi_peer(3) */
	}
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	ret = verve_wait_init(&eq->wait, attr->wait_obj, false);
	if (ret) {
		free(eq);
		return ret;
	}
	verve_lock_init(&eq->lock, false);
	STAILQ_INIT(&eq->events);
	eq->flags = attr->flags;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	eq->fabric = fabric;
	verve_fabric_get(fabric);
	*fid = &eq->fid;
	return 0;
}
