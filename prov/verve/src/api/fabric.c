/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fabric: opens and closes fabrics, and has the list of open fabrics. */
#include "api/fabric.h"

#include <atomic_ops.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "api/name.h"
#include "api/stubs.h"
#include "base/log.h"

struct fabric {
	struct fid_fabric fid;
	TAILQ_ENTRY(fabric) link;
	volatile AO_t references; /* domains and event queues open on it */
	char name[VERVE_FABRIC_NAME_MAX];
};

/* In the order in which they were opened. */
static TAILQ_HEAD(, fabric) fabrics = TAILQ_HEAD_INITIALIZER(fabrics);
static pthread_mutex_t fabrics_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * A thread may have held the lock at the fork(2). The child does not have that thread, but may call
 * fi_getinfo, which takes the lock.
 */
static void in_child(void)
{
	pthread_mutex_init(&fabrics_lock, NULL);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

struct fid_fabric *verve_fabric_find(const char *name, uint32_t version,
				     const struct fid_fabric *asked)
{
	struct fabric *fabric;

	pthread_mutex_lock(&fabrics_lock);
	TAILQ_FOREACH(fabric, &fabrics, link) {
		if (asked && asked != &fabric->fid)
			continue;
		if (!strcmp(fabric->name, name) && fabric->fid.api_version == version)
			break;
	}
	pthread_mutex_unlock(&fabrics_lock);
	return fabric ? &fabric->fid : NULL;
}

void verve_fabric_get(struct fid_fabric *fabric)
{
	AO_fetch_and_add1(&((struct fabric *)fabric)->references);
}

void verve_fabric_put(struct fid_fabric *fabric)
{
	AO_fetch_and_sub1_release(&((struct fabric *)fabric)->references);
}

static int fabric_close(struct fid *fid)
{
	struct fabric *fabric = (struct fabric *)fid;
	AO_t references = AO_load_acquire(&fabric->references);

	if (references) {
		VERVE_WARN(FABRIC, "cannot close the fabric, %zu objects are still open on it\n",
			   (size_t)references);
		return -FI_EBUSY;
	}
	pthread_mutex_lock(&fabrics_lock);
	TAILQ_REMOVE(&fabrics, fabric, link);
	pthread_mutex_unlock(&fabrics_lock);
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = verve_stub_bind,
	.control = verve_stub_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

int verve_fabric_open(struct fi_fabric_attr *attr, struct fi_ops_fabric *ops,
		      struct fid_fabric **fabricp, void *context)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct fabric *fabric;

	if (!attr->name || strlen(attr->name) >= VERVE_FABRIC_NAME_MAX ||
	    strncmp(attr->name, VERVE_FABRIC_PREFIX, strlen(VERVE_FABRIC_PREFIX))) {
		VERVE_WARN(FABRIC, "no fabric is named %s\n", attr->name ? attr->name : "NULL");
		return -FI_EINVAL;
	}
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = ops;
	/* Core sets the same version, but only after this call. */
	fabric->fid.api_version = attr->api_version;
	strcpy(fabric->name, attr->name);
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&fabrics_lock);
	TAILQ_INSERT_TAIL(&fabrics, fabric, link);
	pthread_mutex_unlock(&fabrics_lock);
	*fabricp = &fabric->fid;
	return 0;
}
