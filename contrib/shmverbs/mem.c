/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mem.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "conf.h"
#include "context.h"
#include "log.h"
#include "td.h"

/* verbs.h has macros of these names; the functions themselves are here. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum {
	USERS_LEAVE_NS = 1000000000, /* longest wait: a killed peer may have left a key in use */
	POPULATE_READ = 22,	     /* MADV_POPULATE_READ and _WRITE, Linux 5.14 */
	POPULATE_WRITE = 23,
};

static uint64_t pinned; /* bytes that this process has pinned */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ib)
{
	struct shmv_ctx *ctx = shmv_ctx_of(ib);
	struct shmv_pd *pd;

	if (shmv_ctx_is_fatal(ctx))
		return shmv_fail(EIO);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ib.context = ib;
	pd->ib.handle = shmv_add32(&ctx->pd_next, 1);
	return &pd->ib;
}

struct ibv_pd *shmv_alloc_parent_domain(struct ibv_context *ib,
					struct ibv_parent_domain_init_attr *init)
{
	struct shmv_pd *pd;

	if (!init->pd || init->comp_mask)
		return shmv_fail(init->pd ? EOPNOTSUPP : EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ib.context = ib;
	pd->ib.handle = init->pd->handle; /* the keys of both are the same */
	pd->whole = init->pd;
	pd->td = (struct shmv_td *)init->td;
	shmv_pd_ref(pd->whole, 1);
	if (pd->td)
		shmv_add32(&pd->td->refs, 1);
	return &pd->ib;
}

int ibv_dealloc_pd(struct ibv_pd *ib)
{
	struct shmv_pd *pd = (struct shmv_pd *)ib;

	if (shmv_load32(&pd->refs))
		return EBUSY;
	if (pd->whole)
		shmv_pd_ref(pd->whole, -1);
	if (pd->td)
		shmv_add32(&pd->td->refs, -1);
	free(pd);
	return 0;
}

void *shmv_mr_hold(struct shm *shm, uint32_t key, uint64_t addr, uint64_t len, uint32_t access,
		   uint32_t pd, uint32_t qpn)
{
	struct shm_mr *mr = shmv_mr_at(shm, key);
	void *memory;

	shmv_add32(&mr->users, 1);
	memory = shmv_mr_find(shm, key, addr, len, access, pd);
	if (memory && mr->access & SHM_ACCESS_QP && mr->qpn != qpn)
		memory = NULL;
	if (!memory)
		shmv_mr_release(shm, key);
	return memory;
}

bool shmv_mr_end(struct shm_mr *mr, uint32_t key)
{
	uint64_t end = shmv_now() + USERS_LEAVE_NS;

	if (!key || !shmv_replace32(&mr->key, key, 0))
		return false;
	while (shmv_load32(&mr->users) && shmv_now() < end)
		sched_yield();
	return true;
}

uint32_t shmv_mr_key_get(struct shmv_ctx *ctx)
{
	uint32_t key = 0;

	pthread_mutex_lock(&ctx->mutex);
	if (ctx->mr_used < SHM_MR_MAX - 1)
		key = ++ctx->mr_used << 8 | 1;
	else if (ctx->mr_free_head != ctx->mr_free_tail)
		key = ctx->mr_free[ctx->mr_free_head++ % SHM_MR_MAX];
	pthread_mutex_unlock(&ctx->mutex);
	return key;
}

void shmv_mr_key_put(struct shmv_ctx *ctx, uint32_t key)
{
	shmv_store32(&shmv_mr_at(ctx->seg->shm, key)->users, 0);
	pthread_mutex_lock(&ctx->mutex);
	if (!ctx->mr_free)
		ctx->mr_free = calloc(SHM_MR_MAX, sizeof(*ctx->mr_free));
	key = (key & ~255u) | ((key & 255) % 255 + 1); /* the key of the index's next use */
	if (ctx->mr_free)
		ctx->mr_free[ctx->mr_free_tail++ % SHM_MR_MAX] = key;
	pthread_mutex_unlock(&ctx->mutex);
}

static bool has_ipc_lock(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	return !syscall(SYS_capget, &header, data) && data[0].effective & 1u << CAP_IPC_LOCK;
}

int shmv_pin(size_t bytes)
{
	/* Without a limit the bytes count, too: a process can give up its capability later. */
	uint64_t sum = shmv_add64(&pinned, bytes);
	struct rlimit limit;

	if (has_ipc_lock() || getrlimit(RLIMIT_MEMLOCK, &limit) || sum <= limit.rlim_cur)
		return 0;
	shmv_add64(&pinned, -bytes);
	return ENOMEM;
}

void shmv_unpin(size_t bytes)
{
	shmv_add64(&pinned, -bytes);
}

int shmv_pin_ring(size_t bytes)
{
	return shmv_conf.pin_rings ? shmv_pin(bytes) : 0;
}

void shmv_unpin_ring(size_t bytes)
{
	if (shmv_conf.pin_rings)
		shmv_unpin(bytes);
}

/* Bytes of all pages that the memory touches; *start becomes the first page's. */
static size_t span(uintptr_t *start, size_t len)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uintptr_t end = (*start + len + page - 1) & -page;

	*start &= -page;
	return end - *start;
}

/* Faults the memory in, as pinning does; EFAULT: it is not mapped, or not writable. */
static int populate(void *start, size_t bytes, bool write)
{
	static char probe;
	uintptr_t page = (uintptr_t)&probe & -sysconf(_SC_PAGESIZE);

	if (!shmv_conf.populate || !madvise(start, bytes, write ? POPULATE_WRITE : POPULATE_READ))
		return 0;
	if (errno == EINVAL && madvise((void *)page, 1, POPULATE_READ))
		return 0; /* before Linux 5.14 */
	return EFAULT;
}

/* Charges, faults in and takes the time of a registration: 0, ENOMEM or EFAULT. */
static int take_memory(void *addr, size_t len, bool write)
{
	uintptr_t start = (uintptr_t)addr;
	size_t bytes = span(&start, len);
	int ret;

	ret = shmv_conf.pin_memory ? shmv_pin(bytes) : 0;
	if (ret)
		return ret;
	ret = populate((void *)start, bytes, write);
	if (ret && shmv_conf.pin_memory)
		shmv_unpin(bytes);
	if (!ret) /* a refusal takes no time */
		shmv_conf_spend(shmv_conf.reg_us * UINT64_C(1000) +
				bytes / sysconf(_SC_PAGESIZE) * shmv_conf.reg_ns_per_page);
	return ret;
}

static int check_access(uint32_t access, const void *addr, size_t len)
{
	const uint32_t known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_MW_BIND;

	if (access & IBV_ACCESS_ON_DEMAND)
		return EOPNOTSUPP;
	if (access & ~known || !len || (uintptr_t)addr + len < (uintptr_t)addr)
		return EINVAL;
	if (access & IBV_ACCESS_MW_BIND && !shmv_conf.mw)
		return EINVAL;
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	struct shmv_ctx *ctx = shmv_ctx_of(pd->context);
	struct shm_mr *shm;
	struct ibv_mr *mr;
	uint32_t key;
	int ret;

	access &= ~IBV_ACCESS_OPTIONAL_RANGE;
	ret = shmv_ctx_is_fatal(ctx) ? EIO : check_access(access, addr, len);
	if (!ret)
		ret = take_memory(addr, len, access & IBV_ACCESS_LOCAL_WRITE);
	if (ret)
		return shmv_fail(ret);
	mr = calloc(1, sizeof(*mr));
	key = mr ? shmv_mr_key_get(ctx) : 0;
	if (!key) {
		if (shmv_conf.pin_memory)
			shmv_unpin(span(&(uintptr_t){(uintptr_t)addr}, len));
		free(mr);
		return shmv_fail(ENOMEM);
	}
	shm = shmv_mr_at(ctx->seg->shm, key);
	shm->addr = (uintptr_t)addr;
	shm->len = len;
	shm->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	shm->access = access | SHM_ACCESS_LKEY;
	shm->pd = pd->handle;
	shm->windows = 0;
	shmv_store32(&shm->key, key);
	*mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = len,
			      .handle = key, .lkey = key, .rkey = key};
	ctx->count.reg++;
	shmv_pd_ref(pd, 1);
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, len, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				 int fd, int access)
{
	(void)pd, (void)offset, (void)len, (void)iova, (void)fd, (void)access;
	return shmv_fail(EOPNOTSUPP);
}

/* EINVAL while a window is bound to the region, as in soft-RoCE (Linux: rxe_dereg_mr). */
int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct shmv_ctx *ctx = shmv_ctx_of(mr->context);
	struct shm_mr *shm = shmv_mr_at(ctx->seg->shm, mr->handle);

	pthread_mutex_lock(&ctx->mutex); /* against a bind that reads the region */
	if (shmv_load32(&shm->windows)) {
		pthread_mutex_unlock(&ctx->mutex);
		return EINVAL;
	}
	shmv_mr_end(shm, mr->handle);
	pthread_mutex_unlock(&ctx->mutex);
	shmv_mr_key_put(ctx, mr->handle);
	if (shmv_conf.pin_memory)
		shmv_unpin(span(&(uintptr_t){(uintptr_t)mr->addr}, mr->length));
	ctx->count.dereg++;
	shmv_pd_ref(mr->pd, -1);
	free(mr);
	return 0;
}
