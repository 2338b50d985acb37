/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_mr: regions in every kind of memory there is, written and read by the other half, and used as
 * local buffers; memory that cannot be registered, or not for that; limits; dmabufs; keys of
 * regions that are closed, and of their neighbours' memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"

#define CAPS (FI_RMA | FI_MSG)
#define PAGE 4096ul
#define SIZE (20 * PAGE)
#define HUGE_PAGE (2ul << 20)
#define MUCH (256ul << 20)
#define READ_ACCESS (FI_SEND | FI_WRITE | FI_REMOTE_READ)
#define WRITE_ACCESS (READ_ACCESS | FI_RECV | FI_READ | FI_REMOTE_WRITE)
#define NOBODY 65534
#define ROUNDS 20ul /* regions, one after the other */

static const struct node_attr attr = { .caps = CAPS };
static uint8_t data[SIZE], zeroed[SIZE];
static const uint8_t constant[SIZE] = { 1, 2, 3 };

/* Memory of one kind. */
struct kind {
	const char *name;
	void *(*get)(void);
	void (*put)(void *memory); /* NULL: it stays */
	bool read_only;
};

static void *mapped(void *memory, const char *what)
{
	if (memory == MAP_FAILED)
		check_fatal("cannot map %s: %s", what, strerror(errno));
	return memory;
}

static void unmap(void *memory)
{
	munmap(memory, SIZE);
}

static void *get_data(void)
{
	return memset(data, 1, SIZE);
}

static void *get_zeroed(void)
{
	return zeroed;
}

static void *get_constant(void)
{
	return (void *)constant;
}

static void *get_heap(void)
{
	return calloc(1, SIZE);
}

static void *get_private(void)
{
	return mapped(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		      "private memory");
}

static void *get_shared(void)
{
	return mapped(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		      "shared memory");
}

static int memory_file(void)
{
	int fd = memfd_create("rdm_mr", MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, SIZE))
		check_fatal("memfd_create: %s", strerror(errno));
	return fd;
}

static void *get_file(void)
{
	int fd = memory_file();
	void *memory =
		mapped(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), "a file");

	close(fd);
	return memory;
}

/* This program's file, mapped as prot allows: private pages come with the first write. */
static void *get_program(int prot)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	void *memory = mapped(mmap(NULL, SIZE, prot, MAP_PRIVATE, fd, 0), "a program");

	close(fd);
	return memory;
}

static void *get_text(void)
{
	return get_program(PROT_READ | PROT_EXEC);
}

static void *get_copy(void)
{
	return get_program(PROT_READ | PROT_WRITE);
}

static void *get_read_only(void)
{
	uint8_t *memory = get_private();

	pattern_fill(memory, SIZE, 3);
	REQUIRE(!mprotect(memory, SIZE, PROT_READ));
	return memory;
}

static const struct kind kinds[] = {
	{ "data", get_data, NULL, false },
	{ "zeroed data", get_zeroed, NULL, false },
	{ "constants", get_constant, NULL, true },
	{ "text", get_text, unmap, true },
	{ "heap", get_heap, free, false },
	{ "private memory", get_private, unmap, false },
	{ "shared memory", get_shared, unmap, false },
	{ "a file", get_file, unmap, false },
	{ "a private copy of a file", get_copy, unmap, false },
	{ "read-only memory", get_read_only, unmap, true },
};

static void move(struct node *node, enum rma_op op, void *buf, size_t len, void *desc,
		 const struct remote *remote)
{
	struct rma rma = { .op = op, .buf = buf, .len = len, .desc = desc, .addr = node->peer,
			   .remote_addr = remote->addr, .key = remote->key };

	rma.context = &rma;
	rma_run(node, &rma);
}

/* The client reads all of the server's, then writes it anew if it may, and reads that. */
static void use(struct node *node, uint8_t *memory, size_t len, bool read_only)
{
	struct region region = { .buf = memory, .len = len };
	struct remote remote;
	uint8_t *there = pattern_alloc(len), *here = pattern_alloc(len);

	REQUIRE_RET(fi_mr_reg(node->domain, memory, len, read_only ? READ_ACCESS : WRITE_ACCESS, 0,
			      ++node->next_key, 0, &region.mr, NULL), 0);
	region.desc = fi_mr_desc(region.mr);
	remote = region_exchange(node, &region);
	/* Both halves are one program, with the same constants and text. */
	if (!node->env->server && len) {
		move(node, RMA_READ, there, len, NULL, &remote);
		if (read_only) {
			CHECK(!memcmp(there, memory, len));
		} else {
			pattern_fill(memory, len, len);
			move(node, RMA_WRITE, memory, len, region.desc, &remote);
			move(node, RMA_READ, here, len, NULL, &remote);
			pattern_check(here, len, len);
			memset(memory, 0, len);
			move(node, RMA_READ, memory, len, region.desc, &remote);
			pattern_check(memory, len, len);
		}
	}
	node_sync(node);
	if (!read_only && len && node->env->server)
		pattern_check(memory, len, len);
	CHECK_RET(fi_close(&region.mr->fid), 0);
	pattern_free(there);
	pattern_free(here);
}

/* Whole pages, parts of them, one byte, nothing. */
static void use_all(struct node *node, uint8_t *memory, bool read_only)
{
	use(node, memory, SIZE, read_only);
	use(node, memory + 3, SIZE - 10, read_only);
	use(node, memory + PAGE - 1, 2, read_only);
	use(node, memory + SIZE - 1, 1, read_only);
	use(node, memory + 5, 0, read_only);
}

static void run_kinds(struct env *env)
{
	struct node node;

	node_start(&node, env, &attr);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		void *memory = kinds[i].get();
		unsigned long failed = check_failed();

		use_all(&node, memory, kinds[i].read_only);
		if (check_failed() != failed)
			check_fail("that was %s", kinds[i].name);
		if (kinds[i].put)
			kinds[i].put(memory);
	}
	node_close(&node);
}

static void run_stack(struct env *env)
{
	uint8_t memory[SIZE];
	struct node node;

	memset(memory, 0, sizeof(memory));
	node_start(&node, env, &attr);
	use_all(&node, memory, false);
	node_close(&node);
}

/*
 * A huge page that the administrator has set aside (vm.nr_hugepages); otherwise memory with a hint
 * to the kernel.
 */
static void *get_huge(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *memory = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);

	if (memory != MAP_FAILED)
		return memory;
	memory = mmap(NULL, 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
	REQUIRE(memory != MAP_FAILED);
	memory += HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE;
	madvise(memory, HUGE_PAGE, MADV_HUGEPAGE);
	return memset(memory, 0, HUGE_PAGE);
}

static void run_huge_pages(struct env *env)
{
	uint8_t *memory = get_huge();
	struct node node;

	node_start(&node, env, &attr);
	use_all(&node, memory, false);
	use(&node, memory, HUGE_PAGE, false);
	node_close(&node);
}

/* A device that pages on demand finds an error at the first access, not before. */
static bool is_paged(void)
{
	const char *odp = getenv("FI_VERVE_ODP");

	return odp && !strcmp(odp, "on");
}

static int try(struct node *node, void *memory, size_t len, uint64_t access)
{
	struct fid_mr *mr;
	int ret = fi_mr_reg(node->domain, memory, len, access, 0, ++node->next_key, 0, &mr, NULL);

	if (!ret)
		CHECK_RET(fi_close(&mr->fid), 0);
	return ret;
}

/* Each bad registration is refused with an error; a good one still succeeds. */
static void run_refused(struct env *env)
{
	uint8_t *memory = get_private();
	struct node node;

	node_start(&node, env, &attr);
	pattern_fill(memory, SIZE, 9);
	if (!is_paged()) {
		REQUIRE(!mprotect(memory, SIZE, PROT_READ));
		CHECK_ERROR(try(&node, memory, SIZE, FI_REMOTE_WRITE));
		CHECK_ERROR(try(&node, memory, SIZE, FI_RECV));
		CHECK_ERROR(try(&node, memory, SIZE, FI_READ));
		CHECK_RET(try(&node, memory, SIZE, READ_ACCESS), 0);
		REQUIRE(!mprotect(memory + PAGE, PAGE, PROT_NONE));
		/* For reading it is registered by Linux up to 6.1. */
		CHECK_ERROR(try(&node, memory + PAGE, 1, FI_RECV));
		CHECK_RET(try(&node, memory, PAGE, READ_ACCESS), 0);
		REQUIRE(!munmap(memory + PAGE, PAGE));
		CHECK_ERROR(try(&node, memory, SIZE, READ_ACCESS));
		CHECK_ERROR(try(&node, memory + PAGE, PAGE, READ_ACCESS));
		CHECK_RET(try(&node, memory + 2 * PAGE, SIZE - 2 * PAGE, READ_ACCESS), 0);
		CHECK_ERROR(try(&node, NULL, PAGE, READ_ACCESS));
	}
	/* More than any device or address space has. */
	CHECK_ERROR(try(&node, memory, SIZE_MAX / 2, READ_ACCESS));
	CHECK_ERROR(try(&node, memory, SIZE_MAX, READ_ACCESS));
	munmap(memory, SIZE);
	memory = get_private();
	use_all(&node, memory, false);
	unmap(memory);
	node_close(&node);
}

static void *get_much(void)
{
	return mapped(mmap(NULL, MUCH, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), "much memory");
}

/*
 * A registration above the limit of locked memory is refused. Root changes to another user for this
 * case, to lose its privilege, before it opens the device: the device takes no orders from a
 * process that changed later.
 */
static void run_limit(struct env *env)
{
	struct rlimit before, limit = { .rlim_cur = MUCH / 2 };
	bool root = !geteuid();
	uint8_t *much = get_much();
	struct node node;

	REQUIRE(!getrlimit(RLIMIT_MEMLOCK, &before));
	limit.rlim_max = before.rlim_max;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &limit));
	if (root)
		REQUIRE(!seteuid(NOBODY));
	node_open(&node, env, &attr);
	CHECK_RET(try(&node, much, MUCH, WRITE_ACCESS), is_paged() ? 0 : -FI_ENOMEM);
	CHECK_RET(try(&node, much, SIZE, WRITE_ACCESS), 0);
	node_close(&node);
	if (root)
		REQUIRE(!seteuid(0));
	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &before));
	node_start(&node, env, &attr);
	use_all(&node, much, false);
	node_close(&node);
	munmap(much, MUCH);
}

/* As in fi_mr(3) of libfabric 1.20 and later, for builds with older headers. */
struct dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

/*
 * A dmabuf over our memory, if the kernel makes them (real); otherwise a descriptor that is no
 * dmabuf.
 */
static int dmabuf_open(bool *real)
{
	struct udmabuf_create create = { .memfd = (uint32_t)memory_file(), .size = SIZE };
	int dev = open("/dev/udmabuf", O_RDWR), fd = -1;

	if (fcntl((int)create.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		check_fatal("F_ADD_SEALS: %s", strerror(errno));
	if (dev >= 0) {
		fd = ioctl(dev, UDMABUF_CREATE, &create);
		close(dev);
	}
	*real = fd >= 0;
	if (!*real)
		return (int)create.memfd;
	close((int)create.memfd);
	return fd;
}

static void run_dmabuf(struct env *env)
{
	struct dmabuf dmabuf = { .len = SIZE };
	struct fi_mr_attr mr_attr = { .mr_iov = (const void *)&dmabuf, .iov_count = 1,
				      .access = FI_REMOTE_READ | FI_REMOTE_WRITE };
	const uint64_t flag = 1ull << 40; /* FI_MR_DMABUF */
	struct fid_mr *mr;
	struct node node;
	bool real;
	int ret;

	node_start(&node, env, &attr);
	dmabuf.fd = dmabuf_open(&real);
	ret = fi_mr_regattr(node.domain, &mr_attr, flag, &mr);
	/* Devices that take dmabufs are few. */
	if (ret)
		CHECK(ret == -FI_EOPNOTSUPP || !real);
	else
		CHECK_RET(fi_close(&mr->fid), 0);
	mr_attr.access |= FI_RECV;
	CHECK_RET(fi_mr_regattr(node.domain, &mr_attr, flag, &mr), -FI_EOPNOTSUPP);
	CHECK_RET(fi_mr_reg(node.domain, data, SIZE, FI_REMOTE_READ, 0, 0, flag, &mr, NULL),
		  -FI_EBADFLAGS);
	close(dmabuf.fd);
	use_all(&node, data, false);
	node_close(&node);
}

/* Memory of accelerators is not offered, so nobody need find out. */
static void run_hmem(struct env *env)
{
	CHECK(!node_offered(env, CAPS | FI_HMEM));
}

/* The error of a write of len bytes, or 0. */
static int write_error(struct node *node, void *buf, size_t len, uint64_t addr, uint64_t key)
{
	struct rma rma = { .op = RMA_WRITE, .buf = buf, .len = len, .addr = node->peer,
			   .remote_addr = addr, .key = key, .context = &rma };
	struct comp comp;

	REQUIRE_RET(rma_post(node, &rma), 0);
	comp_wait(node, node->txcq, &comp);
	return comp.err;
}

/* What the client does with the server's region: what it may, and what it may not. */
static void probe(struct node *node, const struct remote *remote, const struct remote *old)
{
	uint8_t buf[64];

	memset(buf, PATTERN_EMPTY, sizeof(buf));
	CHECK_EQ(write_error(node, buf, 8, remote->addr - 8, remote->key), FI_EACCES);
	CHECK_EQ(write_error(node, buf, 8, remote->addr + remote->len, remote->key), FI_EACCES);
	if (old->len)
		CHECK_EQ(write_error(node, buf, 8, old->addr, old->key), FI_EACCES);
	pattern_fill(buf, sizeof(buf), remote->key);
	CHECK_EQ(write_error(node, buf, sizeof(buf), remote->addr, remote->key), 0);
}

/*
 * Regions that come and go in the same memory, whose registration may be kept: each key opens the
 * bytes of its region, as long as the region is open.
 */
static void run_revoked(struct env *env)
{
	struct remote old = { .len = 0 };
	uint8_t *memory = get_private();
	struct node node;

	node_start(&node, env, &attr);
	memset(memory, PATTERN_EMPTY, SIZE);
	for (size_t i = 1; i <= ROUNDS; i++) {
		struct region region = { .buf = memory + PAGE + 16 * i, .len = 64 * i };
		struct remote remote;

		REQUIRE_RET(fi_mr_reg(node.domain, region.buf, region.len, WRITE_ACCESS, 0,
				      ++node.next_key, 0, &region.mr, NULL), 0);
		remote = region_exchange(&node, &region);
		if (!env->server)
			probe(&node, &remote, &old);
		node_sync(&node);
		if (env->server) {
			pattern_check(region.buf, 64, fi_mr_key(region.mr));
			memset(region.buf, PATTERN_EMPTY, 64);
			pattern_check_byte(memory, SIZE, PATTERN_EMPTY);
		}
		CHECK_RET(fi_close(&region.mr->fid), 0);
		/* The key of the region that is closed, from now on for sure. */
		old = remote;
		node_sync(&node);
	}
	node_close(&node);
	unmap(memory);
}

static const struct suite_case cases[] = {
	{ "kinds", CAPS, run_kinds },
	{ "stack", CAPS, run_stack },
	{ "huge_pages", CAPS, run_huge_pages },
	{ "refused", CAPS, run_refused },
	{ "limit", CAPS, run_limit },
	{ "dmabuf", CAPS, run_dmabuf },
	{ "hmem", CAPS, run_hmem },
	{ "revoked", CAPS, run_revoked },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_mr", "Memory regions in every kind of memory.", true },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
