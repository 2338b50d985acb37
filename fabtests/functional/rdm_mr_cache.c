/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rdm_mr_cache: registrations that outlive their use: threads map memory, fill it, transfer it and
 * take it away in every way there is, while others are given the same addresses. Whatever is not
 * what was filled in last is a failure. The same with a provider that hears of no unmap must fail,
 * or it proves nothing. Regions that come and go; keys of closed ones; memory that is only read, or
 * piecemeal.
 *
 * FI_VERVE_MR_CACHE says whether there is anything to find; FI_VERVE_MR_CACHE_MONITOR=notify, that
 * it is for us to tell what goes. One process talks to itself.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_verve.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/parallel.h"
#include "common/pattern.h"
#include "common/rma.h"
#include "common/suite.h"
#include "common/xfer.h"

#define CAPS (FI_RMA | FI_TAGGED)
#define THREADS 4
#define PAGE 4096
#define PAGES 20
#define SIZE (PAGES * PAGE) /* too long for an eager message */
#define TORTURES 60	    /* rounds of each thread */
#define COMINGS 2000	    /* regions */
#define PIECE (64 << 10)    /* bytes, not eager; */
#define PIECES 16	    /* one or more of them are unmapped at a time */
#define SCATTERED 200	    /* rounds of that */
#define ARENA (PIECES * PIECE)
#define ACCESS (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

struct torture {
	struct node node;
	struct parallel_pool pools[THREADS];
	unsigned rounds;
	atomic_uint stale, split;
	bool may_be_stale;
};

struct worker {
	struct torture *torture;
	unsigned thread;
	uint64_t seed, random;
};

static atomic_bool blind;

/* The provider's, too: while blind, it watches nothing and does not know. Nor is it told. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	if (request == UFFDIO_REGISTER && blind)
		return 0;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

static bool mode_is(const char *mode)
{
	const char *is = getenv("FI_VERVE_MR_CACHE");

	return !strcmp(is && *is ? is : "auto", mode);
}

static struct fi_verve_ops_mr_cache *ops_of(struct node *node)
{
	struct fi_verve_ops_mr_cache *ops;

	REQUIRE_RET(fi_open_ops(&node->domain->fid, FI_VERVE_MR_CACHE_OPS, 0, (void **)&ops, NULL),
		    0);
	return ops;
}

static struct fi_verve_mr_cache_stats stats_of(struct node *node)
{
	struct fi_verve_mr_cache_stats stats;

	ops_of(node)->stats(node->domain, &stats, sizeof(stats));
	return stats;
}

/* Before memory goes, where that has been promised. */
static void tell(struct node *node, void *memory)
{
	const char *monitor = getenv("FI_VERVE_MR_CACHE_MONITOR");

	if (monitor && !strcmp(monitor, "notify") && !blind)
		ops_of(node)->notify(node->domain, memory, SIZE);
}

static void unmap(struct node *node, void *memory)
{
	tell(node, memory);
	munmap(memory, SIZE);
}

static void self_open(struct node *node, struct env *env)
{
	const struct node_attr attr = { .caps = CAPS, .one_cq = true };
	char name[NODE_ADDR_MAX];

	node_open(node, env, &attr);
	node_enable(node);
	node_name(node, name);
	node->peer = node_insert(node, name);
}

static uint64_t next(struct worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 7;
	worker->random ^= worker->random << 17;
	return worker->random >> 16;
}

static void *map(void *at)
{
	void *mapped = mmap(at, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (mapped == MAP_FAILED)
		check_fatal("mmap: %s", strerror(errno));
	return mapped;
}

static void fill(struct worker *worker, void *memory)
{
	pattern_fill(memory, SIZE, ++worker->seed << 8 | worker->thread);
}

static void await(struct torture *torture, const struct parallel_op *op)
{
	uint64_t deadline = env_deadline(torture->node.env);

	while (!op->done) {
		if (!parallel_read(torture->node.txcq))
			sched_yield();
		if (clock_now() > deadline)
			check_fatal("an operation has not completed for %u s",
				    torture->node.env->opts.timeout);
	}
	REQUIRE_RET(op->err, 0);
}

static void post(struct torture *torture, const struct xfer *xfer)
{
	ssize_t ret;

	while ((ret = xfer_try(&torture->node, xfer)) == -FI_EAGAIN)
		parallel_read(torture->node.txcq);
	REQUIRE_RET(ret, 0);
}

static void compare(struct torture *torture, const void *got, const void *want)
{
	if (!memcmp(got, want, SIZE))
		return;
	torture->stale++;
	if (!torture->may_be_stale)
		check_fail("stale memory was transferred");
}

static void write_to_region(struct worker *worker, void *memory)
{
	struct torture *torture = worker->torture;
	struct parallel_op *op = parallel_op_get(&torture->pools[worker->thread]);
	struct region region = { .buf = map(NULL), .len = SIZE };
	struct rma rma = { .op = RMA_WRITE, .buf = memory, .len = SIZE, .context = op,
			   .addr = torture->node.peer };
	ssize_t ret;

	REQUIRE_RET(fi_mr_reg(torture->node.domain, region.buf, SIZE, ACCESS, 0, 0, 0, &region.mr,
			      NULL), 0);
	rma.remote_addr = region_remote(&torture->node, &region).addr;
	rma.key = fi_mr_key(region.mr);
	while ((ret = rma_try(&torture->node, &rma)) == -FI_EAGAIN)
		parallel_read(torture->node.txcq);
	REQUIRE_RET(ret, 0);
	await(torture, op);
	compare(torture, region.buf, memory);
	CHECK_RET(fi_close(&region.mr->fid), 0);
	unmap(&torture->node, region.buf);
}

static void send_to_buffer(struct worker *worker, void *memory)
{
	struct torture *torture = worker->torture;
	struct parallel_op *sent = parallel_op_get(&torture->pools[worker->thread]);
	struct parallel_op *received = parallel_op_get(&torture->pools[worker->thread]);
	void *buffer = map(NULL);

	post(torture, &(struct xfer){ .op = XFER_RECV, .tagged = true, .tag = worker->thread,
				      .buf = buffer, .len = SIZE, .addr = FI_ADDR_UNSPEC,
				      .context = received });
	post(torture, &(struct xfer){ .op = XFER_SEND, .tagged = true, .tag = worker->thread,
				      .buf = memory, .len = SIZE, .addr = torture->node.peer,
				      .context = sent });
	await(torture, received);
	await(torture, sent);
	compare(torture, buffer, memory);
	unmap(&torture->node, buffer);
}

static void transfer(struct worker *worker, void *memory)
{
	fill(worker, memory);
	if (next(worker) % 2)
		write_to_region(worker, memory);
	else
		send_to_buffer(worker, memory);
}

/* Unmaps a part of the memory and maps other memory there. NULL: no part of it is ours any more. */
static char *change(struct worker *worker, char *memory)
{
	const int where = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	char *moved;

	tell(&worker->torture->node, memory);
	switch (next(worker) % 5) {
	case 0:
		madvise(memory + PAGE, (PAGES - 2) * PAGE, MADV_DONTNEED);
		return memory;
	case 1:
		return map(memory);
	case 2:
		munmap(memory + 2 * PAGE, PAGE);
		if (mmap(memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, where, -1, 0) !=
		    MAP_FAILED)
			return memory;
		/* The kernel gave the page to another thread, which keeps it. */
		munmap(memory, 2 * PAGE);
		munmap(memory + 3 * PAGE, (PAGES - 3) * PAGE);
		return NULL;
	case 3:
		moved = map(NULL);
		if (mremap(memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, moved) != MAP_FAILED)
			return moved;
		/* Linux 6.1: memory of which a part is watched. moved may be gone. */
		CHECK_EQ(errno, EFAULT);
		worker->torture->split++;
		munmap(memory, SIZE);
		return NULL;
	default:
		return memory;
	}
}

static void work(void *arg, unsigned thread)
{
	struct torture *torture = arg;
	struct worker worker = { .torture = torture, .thread = thread,
				 .random = 0x9e3779b97f4a7c15u * (thread + 1) };

	for (unsigned i = 0; i < torture->rounds && !torture->stale; i++) {
		char *memory = map(NULL);

		transfer(&worker, memory);
		transfer(&worker, memory);
		memory = change(&worker, memory);
		if (!memory)
			continue;
		transfer(&worker, memory);
		unmap(&torture->node, memory);
	}
}

/* One thread: registrations that are kept are used again, and go. */
static void warm_up(struct torture *torture)
{
	struct worker worker = { .torture = torture, .thread = THREADS - 1, .random = 1 };
	char *memory = map(NULL);

	for (int i = 0; i < 4; i++)
		transfer(&worker, memory);
	unmap(&torture->node, memory);
}

/* Returns how often memory was stale. */
static unsigned torture_run(struct env *env, bool is_blind)
{
	struct torture torture = { .may_be_stale = is_blind };
	struct fi_verve_mr_cache_stats stats;
	struct parallel threads;

	torture.rounds = env->opts.iterations ? env->opts.iterations : TORTURES;
	self_open(&torture.node, env);
	warm_up(&torture);
	blind = is_blind;
	parallel_start(&threads, THREADS, work, &torture);
	parallel_join(&threads);
	blind = false;
	for (unsigned i = 0; i < THREADS; i++)
		parallel_pool_close(&torture.pools[i]);
	stats = stats_of(&torture.node);
	printf("hits %llu, misses %llu, not kept %llu, evictions %llu, "
		       "invalidations %llu, stale %u, "
	       "mremap failed %u\n",
	       (unsigned long long)stats.hits, (unsigned long long)stats.misses,
	       (unsigned long long)stats.unkept, (unsigned long long)stats.evictions,
	       (unsigned long long)stats.invalidations, torture.stale, torture.split);
	/* By default the cache keeps only registrations that pay, as few do here. */
	if (!mode_is("auto")) {
		CHECK_EQ(!stats.hits, mode_is("off"));
		CHECK_EQ(!stats.invalidations, mode_is("off"));
	}
	node_close(&torture.node);
	return torture.stale;
}

static void run_torture(struct env *env)
{
	CHECK_EQ(torture_run(env, false), 0);
}

/* Without a cache there is nothing that could be stale, watched or not. */
static void run_blind(struct env *env)
{
	CHECK_EQ(torture_run(env, true) > 0, !mode_is("off"));
}

static void come_and_go(struct node *node)
{
	void *memory = map(NULL);
	struct fid_mr *mr;

	/* Twice: the second time it may be there. */
	for (int i = 0; i < 2; i++) {
		REQUIRE_RET(fi_mr_reg(node->domain, memory, SIZE, ACCESS, 0, 0, 0, &mr, NULL), 0);
		REQUIRE_RET(fi_close(&mr->fid), 0);
	}
	unmap(node, memory);
}

/* Kilobytes that the process has, proc_pid_statm(5). */
static unsigned long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (file && fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * PAGE / 1024;
}

/*
 * Memory is registered, closed and unmapped again and again: pinned memory stays within the bounds.
 */
static void run_come_and_go(struct env *env)
{
	unsigned rounds = env->opts.iterations ? env->opts.iterations : COMINGS;
	unsigned tenth = rounds / 10 ? rounds / 10 : 1;
	struct fi_verve_mr_cache_stats stats;
	uint64_t start = clock_now();
	struct node node;

	self_open(&node, env);
	for (unsigned i = 1; i <= rounds; i++) {
		come_and_go(&node);
		if (i % tenth)
			continue;
		printf("%u rounds: %.0f a second, %lu KB\n", i,
		       tenth * 1e9 / (double)(clock_now() - start), resident());
		start = clock_now();
	}
	stats = stats_of(&node);
	printf("hits %llu, misses %llu, evictions %llu, invalidations %llu, regions %llu\n",
	       (unsigned long long)stats.hits, (unsigned long long)stats.misses,
	       (unsigned long long)stats.evictions, (unsigned long long)stats.invalidations,
	       (unsigned long long)stats.regions);
	/* A window that cannot be bound now costs another look. */
	CHECK(stats.hits + stats.misses >= 2 * rounds);
	/* New memory is never there; the second time it depends on mode and device: windows. */
	CHECK(stats.hits <= rounds);
	CHECK(mode_is("on") ? stats.hits > 0 : !mode_is("off") || stats.hits == 0);
	CHECK(stats.regions <= 1);
	CHECK_EQ(stats.evictions, 0);
	node_close(&node);
}

/* Error or none. */
static int write_by(struct node *node, void *buf, uint64_t addr, uint64_t key)
{
	struct rma rma = { .op = RMA_WRITE, .buf = buf, .len = SIZE, .addr = node->peer,
			   .remote_addr = addr, .key = key, .context = &rma };
	struct comp comp;

	REQUIRE_RET(rma_post(node, &rma), 0);
	comp_wait(node, node->txcq, &comp);
	return comp.err;
}

/*
 * A peer that uses the key of a closed region must not reach the memory that is mapped there now.
 * With "on" it may still reach the old memory until that is unmapped.
 */
static void run_closed(struct env *env)
{
	struct region region = { .buf = map(NULL), .len = SIZE };
	uint8_t *buf = pattern_alloc(SIZE);
	struct node node;
	uint64_t addr, key;

	self_open(&node, env);
	REQUIRE_RET(fi_mr_reg(node.domain, region.buf, SIZE, ACCESS, 0, 0, 0, &region.mr, NULL), 0);
	addr = region_remote(&node, &region).addr;
	key = fi_mr_key(region.mr);
	pattern_fill(buf, SIZE, 1);
	CHECK_RET(write_by(&node, buf, addr, key), 0);
	pattern_check(region.buf, SIZE, 1);
	REQUIRE_RET(fi_close(&region.mr->fid), 0);
	pattern_fill(buf, SIZE, 2);
	if (!write_by(&node, buf, addr, key)) {
		CHECK(mode_is("on"));
		pattern_check(region.buf, SIZE, 2);
	} else {
		pattern_check(region.buf, SIZE, 1);
	}
	map(region.buf);
	memset(region.buf, PATTERN_EMPTY, SIZE);
	pattern_fill(buf, SIZE, 3);
	(void)write_by(&node, buf, addr, key);
	pattern_check_byte(region.buf, SIZE, PATTERN_EMPTY);
	munmap(region.buf, SIZE);
	pattern_free(buf);
	node_close(&node);
}

/* Read-only memory is registered for operations that only read it. */
static void run_read_only(struct env *env)
{
	struct rma rma = { .op = RMA_READ, .buf = pattern_alloc(SIZE), .len = SIZE,
			   .context = &rma };
	struct region region = { .buf = map(NULL), .len = SIZE };
	struct node node;
	struct fid_mr *mr;

	self_open(&node, env);
	pattern_fill(region.buf, SIZE, 5);
	REQUIRE(!mprotect(region.buf, SIZE, PROT_READ));
	CHECK_ERROR(fi_mr_reg(node.domain, region.buf, SIZE, FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	CHECK_ERROR(fi_mr_reg(node.domain, region.buf, SIZE, FI_RECV, 0, 0, 0, &mr, NULL));
	REQUIRE_RET(fi_mr_reg(node.domain, region.buf, SIZE, FI_SEND | FI_REMOTE_READ, 0, 0, 0,
			      &region.mr, NULL), 0);
	rma.remote_addr = region_remote(&node, &region).addr;
	rma.key = fi_mr_key(region.mr);
	rma.addr = node.peer;
	rma_run(&node, &rma);
	pattern_check(rma.buf, SIZE, 5);
	pattern_free(rma.buf);
	CHECK_RET(fi_close(&region.mr->fid), 0);
	munmap(region.buf, SIZE);
	node_close(&node);
}

/* Writes a part of the arena to the same place in the region, and checks the bytes there. */
static void write_piece(struct node *node, const struct region *region, const char *arena,
			uint64_t random)
{
	size_t from = random % PIECES * PIECE;
	size_t len = (1 + (random >> 32) % (PIECES - random % PIECES)) * PIECE;
	const struct remote remote = region_remote(node, region);
	const struct rma write = { .op = RMA_WRITE, .buf = (char *)arena + from, .len = len,
				   .addr = node->peer, .remote_addr = remote.addr + from,
				   .key = remote.key, .context = node };

	rma_run(node, &write);
	CHECK(!memcmp((char *)region->buf + from, arena + from, len));
}

/*
 * Pieces at random of one memory, as of malloc's: each page is pinned a few times at most, in the
 * end nearly all are found, and new memory at the same address is not mistaken for the old.
 */
static void run_scattered(struct env *env)
{
	struct worker worker = { .random = 0x9e3779b97f4a7c15u };
	char *arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fi_verve_mr_cache_stats before, after;
	struct region region;
	struct node node;

	REQUIRE(arena != MAP_FAILED);
	self_open(&node, env);
	region_open(&node, &region, ARENA, FI_REMOTE_READ | FI_REMOTE_WRITE);
	before = stats_of(&node);
	for (int i = 0; i < 2 * SCATTERED; i++) {
		if (i % SCATTERED == SCATTERED / 4) {
			ops_of(&node)->notify(node.domain, arena, ARENA);
			REQUIRE(mmap(arena, ARENA, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == arena);
			pattern_fill(arena, ARENA, (uint64_t)i);
		}
		write_piece(&node, &region, arena, next(&worker));
	}
	after = stats_of(&node);
	printf("hits %llu, misses %llu, regions %llu, bytes %llu of %u\n",
	       (unsigned long long)(after.hits - before.hits),
	       (unsigned long long)(after.misses - before.misses),
	       (unsigned long long)(after.regions - before.regions),
	       (unsigned long long)(after.bytes - before.bytes), ARENA);
	CHECK(mode_is("off") ? !after.hits : after.hits - before.hits > SCATTERED);
	CHECK(after.bytes - before.bytes <= 2 * ARENA);
	region_close(&region);
	node_close(&node);
	munmap(arena, ARENA);
}

static const struct suite_case cases[] = {
	{ "torture", CAPS, run_torture },
	{ "blind", CAPS, run_blind },
	{ "come_and_go", CAPS, run_come_and_go },
	{ "closed", CAPS, run_closed },
	{ "read_only", CAPS, run_read_only },
	{ "scattered", CAPS, run_scattered },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_mr_cache", "Registrations that outlive their use.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
