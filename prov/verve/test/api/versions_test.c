/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Applications of every libfabric version, with the structures of their version. Each structure
 * ends at a page that must not be touched. Modes and enumerators have the names of their time.
 * Nothing may be returned that the application cannot know.
 */
#include "ep_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	FENCES_MAX = 64,

	/* libfabric 2.x deprecates these names, and using them breaks the build. */
	MR_BASIC = 1 << 0,    /* FI_MR_BASIC */
	MR_SCALABLE = 1 << 1, /* FI_MR_SCALABLE */

	PROGRESS_CONTROL_UNIFIED = 3, /* FI_PROGRESS_CONTROL_UNIFIED, of 1.21 and later */
};

static const uint64_t local_mr = 1ull << 55; /* FI_LOCAL_MR */
static const int mr_needed = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

static const uint32_t versions[] = {
	FI_VERSION(1, 0),  FI_VERSION(1, 1),  FI_VERSION(1, 2),	 FI_VERSION(1, 3),
	FI_VERSION(1, 4),  FI_VERSION(1, 5),  FI_VERSION(1, 6),	 FI_VERSION(1, 7),
	FI_VERSION(1, 8),  FI_VERSION(1, 9),  FI_VERSION(1, 10), FI_VERSION(1, 11),
	FI_VERSION(1, 12), FI_VERSION(1, 13), FI_VERSION(1, 14), FI_VERSION(1, 15),
	FI_VERSION(1, 16), FI_VERSION(1, 17), FI_VERSION(1, 18), FI_VERSION(1, 19),
	FI_VERSION(1, 20), FI_VERSION(1, 21), FI_VERSION(1, 22), FI_VERSION(2, 0),
	FI_VERSION(2, 1),
};

enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };

/* Bytes of the structures in the public headers of these releases, with pointers of 64 bits. */
struct sizes {
	uint32_t since;
	size_t info, domain, ep, tx, mr, cq_error;
};

static const struct sizes all_sizes[] = {
	{FI_VERSION(1, 0), 112, 120, 80, 72, 48, 72},
	{FI_VERSION(1, 5), 112, 184, 96, 72, 64, 80},
	{FI_VERSION(1, 7), 120, 184, 96, 72, 64, 80},
	{FI_VERSION(1, 9), 120, 192, 96, 80, 80, 80},
	{FI_VERSION(1, 19), 120, 192, 96, 80, 88, 80},
	{FI_VERSION(1, 20), 120, 200, 96, 80, 88, 88},
	{FI_VERSION(2, 0), 120, 208, 96, 80, 112, 88},
};

enum { ALL_SIZES = sizeof(all_sizes) / sizeof(all_sizes[0]) };

static const struct sizes *sizes_of(uint32_t version)
{
	size_t i = ALL_SIZES - 1;

	while (all_sizes[i].since > version)
		i--;
	return &all_sizes[i];
}

static struct ep_pair pair;
static char buffer[64], target[64];
static void *fences[FENCES_MAX];
static int fence_count;

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void remove_fences(void)
{
	while (fence_count)
		munmap(fences[--fence_count], 2 * page_size());
}

TestSuite(versions, .fini = remove_fences);

/*
 * Returns size bytes that end at a page without access: a copy of the have bytes at from, cut or
 * padded.
 */
static void *fenced(const void *from, size_t have, size_t size)
{
	size_t page = page_size();
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(at, MAP_FAILED);
	cr_assert_lt(fence_count, FENCES_MAX);
	fences[fence_count++] = at;
	cr_assert_eq(mprotect(at + page, page, PROT_NONE), 0);
	return memcpy(at + page - size, from, have < size ? have : size);
}

/* A copy of info with structures as short as the application's version has them. */
static struct fi_info *shorten(const struct fi_info *info, const struct sizes *size)
{
	struct fi_info copy = *info;

	copy.domain_attr = fenced(info->domain_attr, sizeof(*info->domain_attr), size->domain);
	copy.ep_attr = fenced(info->ep_attr, sizeof(*info->ep_attr), size->ep);
	copy.tx_attr = fenced(info->tx_attr, sizeof(*info->tx_attr), size->tx);
	copy.rx_attr = fenced(info->rx_attr, sizeof(*info->rx_attr), sizeof(*info->rx_attr));
	return fenced(&copy, sizeof(copy), size->info);
}

static const char *text(uint32_t version)
{
	static char name[16];

	snprintf(name, sizeof(name), "%u.%u", FI_MAJOR(version), FI_MINOR(version));
	return name;
}

/*
 * Allocates hints with domain_attr as long as the newest version has it, whatever libfabric is in
 * use.
 */
static struct fi_info *alloc_hints(void)
{
	struct fi_info *hints = fi_allocinfo();
	size_t have = sizeof(*hints->domain_attr), want = all_sizes[ALL_SIZES - 1].domain;

	cr_assert_not_null(hints);
	if (have < want) {
		hints->domain_attr = realloc(hints->domain_attr, want);
		cr_assert_not_null(hints->domain_attr);
		memset((char *)hints->domain_attr + have, 0, want - have);
	}
	return hints;
}

static int get(uint32_t version, const struct fi_info *hints, struct fi_info **info)
{
	return fi_prov_ini()->getinfo(version, NULL, NULL, 0, hints, info);
}

/* Capabilities that the version's fabric.h defines. */
static uint64_t known_caps(uint32_t version)
{
	uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ |
			FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_SOURCE |
			FI_DIRECTED_RECV | FI_RMA_EVENT | FI_FENCE;

	return version < FI_VERSION(1, 5) ? caps : caps | FI_LOCAL_COMM | FI_REMOTE_COMM;
}

static uint64_t known_order(uint32_t version)
{
	uint64_t rma_or_atomic = FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |
				 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
				 FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

	return version < FI_VERSION(1, 8) ? 0x1ff : 0x1ff | rma_or_atomic;
}

static void check_known(uint32_t version, const struct fi_info *info)
{
	uint64_t caps = known_caps(version), order = known_order(version);
	const struct fi_domain_attr *domain = info->domain_attr;

	cr_expect_eq(info->caps & ~caps, 0, "%s", text(version));
	cr_expect_eq(info->mode, 0, "%s", text(version));
	cr_expect_eq(info->tx_attr->caps & ~caps, 0, "%s", text(version));
	cr_expect_eq(info->rx_attr->caps & ~caps, 0, "%s", text(version));
	cr_expect_eq(info->tx_attr->msg_order & ~order, 0, "%s", text(version));
	cr_expect_eq(info->rx_attr->msg_order & ~order, 0, "%s", text(version));
	cr_expect(info->tx_attr->msg_order & FI_ORDER_SAS, "%s", text(version));
	cr_expect_neq(domain->threading, FI_THREAD_UNSPEC);
	if (version < FI_VERSION(1, 5))
		cr_expect(domain->mr_mode == MR_BASIC || domain->mr_mode == MR_SCALABLE, "%s",
			  text(version));
	else
		cr_expect_eq(domain->mr_mode & ~(mr_needed | FI_MR_LOCAL | MR_BASIC), 0, "%s",
			     text(version));
	if (version < FI_VERSION(1, 21))
		cr_expect(domain->control_progress <= FI_PROGRESS_MANUAL &&
			  domain->data_progress <= FI_PROGRESS_MANUAL, "%s", text(version));
}

/* Capabilities that are offered to an application that asks for none: all that cost nothing. */
static uint64_t free_caps(uint32_t version)
{
	return known_caps(version) & ~(FI_SOURCE | FI_RMA_EVENT);
}

Test(versions, without_hints_all_that_is_known)
{
	for (int i = 0; i < VERSIONS; i++) {
		struct fi_info *list;

		cr_assert_eq(get(versions[i], NULL, &list), 0, "%s", text(versions[i]));
		for (const struct fi_info *info = list; info; info = info->next) {
			check_known(versions[i], info);
			cr_expect_eq(info->caps, free_caps(versions[i]), "%s", text(versions[i]));
		}
		fi_freeinfo(list);
	}
}

Test(versions, empty_hints_are_everything)
{
	struct fi_info *hints = alloc_hints();

	for (int i = 0; i < VERSIONS; i++) {
		struct fi_info *info;

		cr_assert_eq(get(versions[i], hints, &info), 0, "%s", text(versions[i]));
		check_known(versions[i], info);
		cr_expect_eq(info->caps, free_caps(versions[i]), "%s", text(versions[i]));
		/*
		 * Since 1.5, mr_mode 0 means that the application chooses keys and that peers use
		 * offsets.
		 */
		if (versions[i] >= FI_VERSION(1, 5))
			cr_expect_eq(info->domain_attr->mr_mode, FI_MR_ALLOCATED, "%s",
				     text(versions[i]));
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

/*
 * Hints of portable applications: everything that they can work with, in every registration mode of
 * the version.
 */
static void set_hints(struct fi_info *hints, uint32_t version, int mr_mode)
{
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = mr_mode;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
	if (version < FI_VERSION(1, 5))
		hints->mode |= local_mr;
	if (version >= FI_VERSION(1, 21))
		hints->domain_attr->control_progress = (enum fi_progress)PROGRESS_CONTROL_UNIFIED;
}

/* Before 1.5: FI_MR_UNSPEC, FI_MR_BASIC and FI_MR_SCALABLE; since 1.5: bits. */
enum { MR_MODES = 3 };

static int mr_mode_of(uint32_t version, int index)
{
	const int old[MR_MODES] = {0, MR_BASIC, MR_SCALABLE};
	const int bits[MR_MODES] = {mr_needed | FI_MR_LOCAL, MR_BASIC, 0};

	return version < FI_VERSION(1, 5) ? old[index] : bits[index];
}

/* The address that a peer uses for the beginning of the region. */
static uint64_t base_of(const void *memory)
{
	return pair.fix.info->domain_attr->mr_mode & (MR_BASIC | FI_MR_VIRT_ADDR) ?
	       (uintptr_t)memory : 0;
}

static void open_pair(uint32_t version, int mr_mode)
{
	struct fi_info *hints = alloc_hints();

	fixture_init(&pair.fix, version);
	fi_freeinfo(pair.fix.list);
	set_hints(hints, version, mr_mode);
	cr_assert_eq(get(version, hints, &pair.fix.list), 0, "%s", text(version));
	fi_freeinfo(hints);
	check_known(version, pair.fix.list);
	cr_expect_eq(pair.fix.list->domain_attr->threading, FI_THREAD_COMPLETION);
	pair.fix.info = shorten(pair.fix.list, sizes_of(version));
	ep_pair_open(&pair);
}

static struct fid_mr *reg_attr(uint32_t version, void *base, uint64_t access)
{
	struct iovec iov = {base, sizeof(target)};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = access};
	struct fi_mr_attr *theirs = fenced(&attr, sizeof(attr), sizes_of(version)->mr);
	struct fid_mr *mr;

	cr_assert_eq(fi_mr_regattr(pair.fix.domain, theirs, 0, &mr), 0, "%s", text(version));
	return mr;
}

/*
 * Reads the next error at a, into an entry as long as the version has it. explained: with a text in
 * err_data.
 */
static void expect_error(uint32_t version, int err, bool explained)
{
	struct fi_cq_err_entry none = {0};
	struct fi_cq_err_entry *entry = fenced(&none, sizeof(none), sizes_of(version)->cq_error);
	struct fi_cq_tagged_entry comp;
	ssize_t ret;

	for (int i = 0; (ret = fi_cq_read(pair.a.cq, &comp, 1)) == -FI_EAGAIN && i < 1000; i++)
		ep_pair_run(&pair, 1);
	cr_assert_eq(ret, -FI_EAVAIL, "%s", text(version));
	/* fi_cq_readerr of libfabric 2.x would itself write a member of its version. */
	cr_assert_eq(pair.a.cq->ops->readerr(pair.a.cq, entry, 0), 1, "%s", text(version));
	cr_expect_eq(entry->err, err, "%s: %s", text(version), fi_strerror(entry->err));
	cr_expect_eq(entry->op_context, &pair, "%s", text(version));
	cr_expect_eq(entry->err_data != NULL, explained, "%s", text(version));
}

/* Sends a message, writes with the remote key, and causes errors of both kinds. */
static void use(uint32_t version)
{
	struct fid_mr *mr = reg_attr(version, target, FI_REMOTE_WRITE);
	struct fid_mr *local = reg_attr(version, buffer, FI_WRITE | FI_SEND);
	void *desc = fi_mr_desc(local);

	cr_assert_eq(fi_tsend(pair.a.ep, buffer, 8, desc, pair.a.peer, 7, &pair), 0);
	cr_assert_eq(fi_trecv(pair.b.ep, target, 8, NULL, pair.b.peer, 7, 0, &pair), 0);
	cr_expect_eq(ep_pair_comp(&pair, &pair.a).op_context, &pair);
	cr_expect_eq(ep_pair_comp(&pair, &pair.b).tag, 7);
	strcpy(buffer, text(version));
	cr_assert_eq(fi_write(pair.a.ep, buffer, 16, desc, pair.a.peer, base_of(target),
			      fi_mr_key(mr), &pair), 0);
	cr_expect_eq(ep_pair_comp(&pair, &pair.a).op_context, &pair);
	cr_expect_str_eq(target, text(version));

	cr_assert_eq(fi_recv(pair.a.ep, target, 8, NULL, FI_ADDR_UNSPEC, &pair), 0);
	cr_assert_eq(fi_cancel(&pair.a.ep->fid, &pair), 0);
	expect_error(version, FI_ECANCELED, false);
	cr_assert_eq(fi_write(pair.a.ep, buffer, 16, desc, pair.a.peer, base_of(target),
			      fi_mr_key(mr) ^ 0x55, &pair), 0);
	expect_error(version, FI_EACCES, true);
	cr_expect_eq(fi_close(&local->fid), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(versions, structures_are_as_long_as_they_were_then)
{
	for (int i = 0; i < VERSIONS; i++) {
		for (int j = 0; j < MR_MODES; j++) {
			open_pair(versions[i], mr_mode_of(versions[i], j));
			use(versions[i]);
			ep_pair_close(&pair);
			remove_fences();
		}
	}
}

Test(versions, every_threading_there_was_is_kept)
{
	struct fi_info *hints = alloc_hints();

	for (int i = 0; i < VERSIONS; i++) {
		for (int model = FI_THREAD_SAFE; model <= FI_THREAD_ENDPOINT; model++) {
			struct fi_info *info;

			hints->domain_attr->threading = (enum fi_threading)model;
			cr_assert_eq(get(versions[i], hints, &info), 0, "%s, threading %d",
				     text(versions[i]), model);
			cr_expect_eq((int)info->domain_attr->threading, model);
			fi_freeinfo(info);
		}
	}
	fi_freeinfo(hints);
}
