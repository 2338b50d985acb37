/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions: the access that libibverbs is asked to grant, and the meaning of its errors. */
#include "net/mr.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>

#include "net/verbs.h"

static struct verve_net_device dev;
static struct ibv_mr handle = {.lkey = 3, .rkey = 4};
static unsigned asked; /* IBV_ACCESS_* of the last registration */
static uint64_t asked_offset, asked_iova; /* of the last registration */
/*
 * Of the next registrations: positive errno; 0: they succeed; negative: they fail, and leave errno
 * alone.
 */
static int error;
static char buffer[64];

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned access);
struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       unsigned access)
{
	(void)pd;
	(void)addr;
	(void)length;
	asked = access;
	asked_iova = iova;
	if (error > 0)
		errno = error;
	return error ? NULL : &handle;
}

struct ibv_mr *__wrap_ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	(void)fd;
	asked_offset = offset;
	return __wrap_ibv_reg_mr_iova2(pd, NULL, length, iova, (unsigned)access);
}

static unsigned verbs(unsigned access)
{
	struct verve_net_mr mr;

	cr_assert_eq(verve_net_mr_reg(&dev, buffer, sizeof(buffer), access, &mr), 0);
	cr_expect_eq(mr.lkey, 3);
	cr_expect_eq(mr.rkey, 4);
	cr_expect_eq(asked_iova, (uintptr_t)buffer);
	return asked;
}

Test(mr, access_is_what_was_asked)
{
	cr_expect_eq(verbs(VERVE_NET_REMOTE_READ), IBV_ACCESS_REMOTE_READ);
	cr_expect_eq(verbs(VERVE_NET_REMOTE_WRITE | VERVE_NET_LOCAL_WRITE),
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE);
	cr_expect_eq(verbs(VERVE_NET_REMOTE_ATOMIC | VERVE_NET_LOCAL_WRITE),
		     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE);
	cr_expect_eq(verbs(VERVE_NET_ON_DEMAND | VERVE_NET_LOCAL_WRITE),
		     IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
}

/* Peers may rely on the order of their writes; a reader that waits for a completion needs none. */
Test(mr, order_is_relaxed_where_no_peer_writes)
{
	static const unsigned strict[] = {VERVE_NET_REMOTE_READ, VERVE_NET_REMOTE_WRITE,
					  VERVE_NET_REMOTE_ATOMIC, VERVE_NET_ON_DEMAND};

	cr_expect_eq(verbs(VERVE_NET_LOCAL_WRITE), IBV_ACCESS_LOCAL_WRITE,
		     "a device off PCI gets no relaxed order");
	dev.port.on_pci = true;
	cr_expect_eq(verbs(0), IBV_ACCESS_RELAXED_ORDERING);
	cr_expect_eq(verbs(VERVE_NET_LOCAL_WRITE),
		     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	for (size_t i = 0; i < sizeof(strict) / sizeof(strict[0]); i++)
		cr_expect_not(verbs(strict[i] | VERVE_NET_LOCAL_WRITE) &
			      IBV_ACCESS_RELAXED_ORDERING);
}

Test(mr, dmabuf_that_nobody_knows_is_not_supported)
{
	static const int unknown[] = {EOPNOTSUPP, ENOSYS, ENOTTY, EPROTONOSUPPORT};
	struct verve_net_mr mr;

	cr_assert_eq(
		verve_net_mr_reg_dmabuf(&dev, 5, 4096, 64, 8192, VERVE_NET_REMOTE_READ, &mr), 0);
	cr_expect_eq(asked, IBV_ACCESS_REMOTE_READ);
	cr_expect_eq(asked_offset, 4096);
	cr_expect_eq(asked_iova, 8192);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		error = unknown[i];
		cr_expect_eq(verve_net_mr_reg_dmabuf(&dev, 5, 0, 64, 0, VERVE_NET_REMOTE_READ, &mr),
			     -FI_EOPNOTSUPP);
	}
	error = EBADF;
	cr_expect_eq(verve_net_mr_reg_dmabuf(&dev, 5, 0, 64, 0, VERVE_NET_REMOTE_READ, &mr),
		     -FI_EBADF);
}

static int reg_page(void *page, unsigned access)
{
	struct verve_net_mr mr;

	error = EFAULT;
	return verve_net_mr_reg(&dev, (char *)page + 100, 50, access, &mr);
}

/* From Linux 6.5 on the kernel says EFAULT of a file's pages, too, if the device is to write. */
Test(mr, memory_that_no_device_may_write_differs_from_memory_that_is_not_there)
{
	const unsigned write = VERVE_NET_LOCAL_WRITE;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct verve_net_mr mr;

	cr_assert_neq(page, MAP_FAILED);
	page[0] = 1;
	if (madvise(page, 4096, 23)) /* MADV_POPULATE_WRITE */
		cr_skip_test("Linux before 5.14 cannot tell");
	cr_expect_eq(reg_page(page, write), -FI_EOPNOTSUPP);
	cr_expect_eq(reg_page(page, write | VERVE_NET_REMOTE_WRITE), -FI_EOPNOTSUPP);
	cr_expect_eq(verve_net_mr_reg_iova(&dev, page, 50, 0, write, &mr), -FI_EOPNOTSUPP);
	cr_expect_eq(page[0], 1);
	cr_expect_eq(reg_page(page, 0), -FI_EFAULT);
	cr_expect_eq(reg_page(page, write | VERVE_NET_WINDOWS), -FI_EFAULT);
	cr_assert_eq(mprotect(page, 4096, PROT_READ), 0);
	cr_expect_eq(reg_page(page, write), -FI_EFAULT);
	cr_assert_eq(munmap(page, 4096), 0);
	cr_expect_eq(reg_page(page, write), -FI_EFAULT);
	cr_expect_eq(verve_net_mr_reg(&dev, NULL, SIZE_MAX, write, &mr), -FI_EFAULT);
}

/* Looking whether the memory is there must not give a sparse file its place on the disk. */
Test(mr, a_file_is_not_written_to)
{
	enum { LENGTH = 16 << 20 };
	const unsigned write = VERVE_NET_LOCAL_WRITE;
	char *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	unsigned char resident[LENGTH / 4096] = {0};
	struct verve_net_mr mr;
	size_t count = 0;

	cr_assert_neq(memory, MAP_FAILED);
	madvise(memory, LENGTH, MADV_NOHUGEPAGE);
	if (madvise(memory, 4096, 23))
		cr_skip_test("Linux before 5.14 cannot tell");
	error = EFAULT;
	cr_expect_eq(verve_net_mr_reg(&dev, memory, LENGTH, write, &mr), -FI_EOPNOTSUPP);
	cr_assert_eq(mincore(memory, LENGTH, resident), 0);
	for (size_t i = 0; i < LENGTH / 4096; i++)
		count += resident[i] & 1;
	cr_expect_leq(count, 2);
	/* All of the range counts. */
	cr_assert_eq(mprotect(memory + LENGTH / 2, 4096, PROT_READ), 0);
	cr_expect_eq(verve_net_mr_reg(&dev, memory, LENGTH, write, &mr), -FI_EFAULT);
	cr_assert_eq(munmap(memory + LENGTH / 2, 4096), 0);
	cr_expect_eq(verve_net_mr_reg(&dev, memory, LENGTH, write, &mr), -FI_EFAULT);
}

/* What an earlier call left in errno is not the reason. */
Test(mr, driver_that_does_not_say_why)
{
	struct verve_net_mr mr;

	error = -1;
	errno = EAGAIN;
	cr_expect_eq(verve_net_mr_reg(&dev, buffer, sizeof(buffer), 0, &mr), -FI_EIO);
	errno = EAGAIN;
	cr_expect_eq(verve_net_mr_reg_iova(&dev, buffer, sizeof(buffer), 0, 0, &mr), -FI_EIO);
	errno = ENOSYS;
	cr_expect_eq(verve_net_mr_reg_dmabuf(&dev, 5, 0, 64, 0, 0, &mr), -FI_EIO);
}
