/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions of the application: access, keys, arguments, binding, events. */
#include "../support/fake_memory.h"
#include "fixture.h"

#include <string.h>

#include "api/domain.h"
#include "mr/region.h"

static struct fixture fix;
static char buffer[8192];

static void setup(void)
{
	fixture_init(&fix, FI_VERSION(1, 17));
}

static void teardown(void)
{
	fixture_fini(&fix);
}

TestSuite(mr, .init = setup, .fini = teardown);

static struct fid_mr *reg(uint64_t access, size_t len)
{
	struct fid_mr *mr;

	if (!fix.domain)
		fixture_open_domain(&fix);
	cr_assert_eq(fi_mr_reg(fix.domain, buffer, len, access, 0, 7, 0, &mr, &fix), 0);
	return mr;
}

/* Returns the access that the device was told to grant for a region with access. */
static unsigned granted(uint64_t access)
{
	struct fid_mr *mr = reg(access, sizeof(buffer));
	unsigned net = ((struct verve_mr_region *)fi_mr_desc(mr))->access;

	cr_assert_eq(fi_close(&mr->fid), 0);
	return net;
}

static int reg_error(uint64_t access, uint64_t offset, uint64_t flags)
{
	struct fid_mr *mr;

	if (!fix.domain)
		fixture_open_domain(&fix);
	return fi_mr_reg(fix.domain, buffer, sizeof(buffer), access, offset, 0, flags, &mr, NULL);
}

static int regattr_error(const struct fi_mr_attr *attr)
{
	struct fid_mr *mr;

	if (!fix.domain)
		fixture_open_domain(&fix);
	return fi_mr_regattr(fix.domain, attr, 0, &mr);
}

Test(mr, describes_what_was_registered)
{
	struct fid_mr *mr = reg(FI_SEND | FI_REMOTE_READ, sizeof(buffer));
	struct verve_mr_region *region = fi_mr_desc(mr);

	cr_expect_eq(mr->fid.fclass, FI_CLASS_MR);
	cr_expect_eq(mr->fid.context, &fix);
	cr_expect_eq(region->addr, buffer);
	cr_expect_eq(region->len, sizeof(buffer));
	cr_expect_eq(fi_mr_key(mr), region->rkey, "the key is the rkey, not the requested one");
	cr_expect_eq(fi_close(&fix.domain->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(mr, access_is_exact)
{
	cr_expect_eq(granted(0), 0);
	cr_expect_eq(granted(FI_SEND), 0);
	cr_expect_eq(granted(FI_WRITE), 0);
	cr_expect_eq(granted(FI_RECV), VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(granted(FI_READ), VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(granted(FI_REMOTE_READ), VERVE_NET_REMOTE_READ);
	cr_expect_eq(granted(FI_REMOTE_WRITE), VERVE_NET_REMOTE_WRITE | VERVE_NET_LOCAL_WRITE);
	cr_expect_eq(granted(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
			     FI_REMOTE_WRITE),
		     VERVE_NET_LOCAL_WRITE | VERVE_NET_REMOTE_READ | VERVE_NET_REMOTE_WRITE);
}

Test(mr, same_range_twice_has_two_keys)
{
	struct fid_mr *a = reg(FI_REMOTE_READ, sizeof(buffer));
	struct fid_mr *b = reg(FI_REMOTE_WRITE, sizeof(buffer));

	cr_expect_neq(fi_mr_key(a), fi_mr_key(b));
	cr_expect_eq(fi_close(&a->fid), 0);
	cr_expect_eq(fi_close(&b->fid), 0);
}

Test(mr, nothing_can_be_registered)
{
	struct fid_mr *mr = reg(FI_REMOTE_READ | FI_REMOTE_WRITE, 0);
	struct verve_mr_region *region = fi_mr_desc(mr);

	cr_expect_eq(region->len, 0);
	cr_expect_eq(region->access, 0);
	cr_expect_neq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

/* The device need not give such regions different keys. */
Test(mr, memory_that_no_peer_may_touch_can_be_registered_often)
{
	struct fid_mr *mrs[4];

	fixture_open_domain(&fix);
	cr_assert_eq(fi_mr_reg(fix.domain, buffer, 64, FI_SEND | FI_WRITE, 0, 0, 0, &mrs[0], NULL),
		     0);
	cr_assert_eq(fi_mr_reg(fix.domain, buffer, 64, FI_RECV | FI_READ, 0, 0, 0, &mrs[1], NULL),
		     0);
	cr_assert_eq(fi_mr_reg(fix.domain, NULL, 0, FI_REMOTE_READ, 0, 0, 0, &mrs[2], NULL), 0);
	cr_assert_eq(fi_mr_reg(fix.domain, NULL, 0, FI_REMOTE_READ, 0, 0, 0, &mrs[3], NULL), 0);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(fi_close(&mrs[i]->fid), 0);
}

Test(mr, bad_arguments_are_refused)
{
	cr_expect_eq(reg_error(FI_SEND, 1, 0), -FI_EINVAL, "offset is reserved");
	cr_expect_eq(reg_error(FI_SEND | FI_TAGGED, 0, 0), -FI_EINVAL, "not an access bit");
	cr_expect_eq(reg_error(FI_SEND, 0, FI_RMA_PMEM), -FI_EBADFLAGS);
}

Test(mr, segments_are_one_region_with_one_key)
{
	struct iovec iov[65];
	struct fid_mr *mr, *other;

	for (size_t i = 0; i < 65; i++)
		iov[i] = (struct iovec){buffer + 64 * (64 - i % 64) - 64, 16};
	fixture_open_domain(&fix);
	cr_expect_eq(fi_mr_regv(fix.domain, iov, 65, FI_SEND, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	cr_expect_eq(fi_mr_regv(fix.domain, iov, 0, FI_SEND, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	cr_assert_eq(fi_mr_regv(fix.domain, iov, 64, FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0);
	cr_assert_eq(fi_mr_regv(fix.domain, iov, 2, FI_REMOTE_READ, 0, 7, 0, &other, NULL), 0);
	cr_expect_gt(fi_mr_key(mr), UINT32_MAX, "no rkey");
	cr_expect_neq(fi_mr_key(mr), FI_KEY_NOTAVAIL);
	cr_expect_neq(fi_mr_key(mr), fi_mr_key(other));
	cr_expect_eq(((struct verve_mr_region *)fi_mr_desc(mr))->addr, iov[0].iov_base);
	cr_expect_eq(fi_close(&other->fid), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
	iov[1].iov_len = SIZE_MAX - 15;
	cr_expect_eq(fi_mr_regv(fix.domain, iov, 2, FI_SEND, 0, 0, 0, &mr, NULL), -FI_EINVAL);
	iov[1].iov_len = 16;
	fake_net_fail(FAKE_NET_MR_REG, 2, -FI_ENOMEM);
	cr_expect_eq(fi_mr_regv(fix.domain, iov, 3, FI_SEND, 0, 0, 0, &mr, NULL), -FI_ENOMEM);
}

Test(mr, application_chooses_keys_each_once)
{
	struct fid_mr *a, *b;

	fix.info->domain_attr->mr_mode = 0;
	a = reg(FI_REMOTE_READ, sizeof(buffer));
	cr_expect_eq(fi_mr_key(a), 7);
	cr_expect_eq(fi_mr_reg(fix.domain, buffer, 8, FI_REMOTE_WRITE, 0, 7, 0, &b, NULL),
		     -FI_ENOKEY);
	cr_assert_eq(fi_mr_reg(fix.domain, buffer, 8, FI_REMOTE_WRITE, 0, UINT64_MAX - 1, 0, &b,
			       NULL), 0);
	cr_expect_eq(fi_mr_key(b), UINT64_MAX - 1);
	cr_expect_eq(fi_close(&a->fid), 0);
	a = reg(FI_REMOTE_READ, 100);
	cr_expect_eq(fi_close(&a->fid), 0);
	cr_expect_eq(fi_close(&b->fid), 0);
}

/* As Mercury does: buffers that no peer touches all get the key 0. */
Test(mr, local_memory_uses_up_no_key)
{
	struct iovec iov[2] = {{buffer, 8}, {buffer + 16, 8}};
	struct fid_mr *local, *segments, *mr;

	fix.info->domain_attr->mr_mode = 0;
	local = reg(FI_SEND | FI_RECV, sizeof(buffer));
	cr_expect_eq(fi_mr_key(local), 7);
	cr_assert_eq(fi_mr_regv(fix.domain, iov, 2, FI_READ, 0, 7, 0, &segments, NULL), 0);
	cr_expect_eq(fi_mr_key(segments), 7);
	cr_assert_eq(fi_mr_reg(fix.domain, buffer, 8, FI_REMOTE_READ, 0, 7, 0, &mr, NULL), 0);
	cr_expect_eq(fi_close(&local->fid), 0);
	cr_expect_eq(fi_close(&segments->fid), 0);
	/* The key is that of the one region that peers reach. */
	cr_expect_eq(fi_mr_reg(fix.domain, buffer, 8, FI_REMOTE_READ, 0, 7, 0, &local, NULL),
		     -FI_ENOKEY);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

/* All 64 bits of a key are the application's: no number has a meaning of its own. */
Test(mr, every_number_can_be_chosen_as_a_key)
{
	static const uint64_t keys[] = {0, 1, 1ull << 32, 1ull << 63, 1ull << 63 | 1, UINT64_MAX};
	enum { KEYS = sizeof(keys) / sizeof(keys[0]) };
	struct iovec iov[2] = {{buffer, 8}, {buffer + 16, 8}};
	struct fid_mr *mr[KEYS], *again;

	fix.info->domain_attr->mr_mode = 0;
	fixture_open_domain(&fix);
	for (size_t segments = 1; segments <= 2; segments++) {
		for (int i = 0; i < KEYS; i++) {
			cr_assert_eq(fi_mr_regv(fix.domain, iov, segments, FI_REMOTE_READ, 0,
						keys[i], 0, &mr[i], NULL),
				     0);
			cr_expect_eq(fi_mr_key(mr[i]), keys[i], "%#lx became %#lx", keys[i],
				     fi_mr_key(mr[i]));
		}
		for (int i = 0; i < KEYS; i++)
			cr_expect_eq(fi_mr_reg(fix.domain, buffer, 8, FI_REMOTE_READ, 0, keys[i], 0,
					       &again, NULL),
				     -FI_ENOKEY, "%#lx", keys[i]);
		for (int i = 0; i < KEYS; i++)
			cr_expect_eq(fi_close(&mr[i]->fid), 0);
	}
}

/* As SOS with remote virtual addressing tries. The log says what to do instead (mr/region.h). */
Test(mr, all_memory_cannot_be_registered)
{
	struct fid_mr *mr;

	fix.info->domain_attr->mr_mode = 0;
	fixture_open_domain(&fix);
	cr_expect_eq(fi_mr_reg(fix.domain, NULL, SIZE_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0,
			       0, &mr, NULL),
		     -FI_EINVAL);
}

Test(mr, addresses_from_zero_need_no_exported_key)
{
	struct fid_mr *mr;
	struct verve_mr_region *region;

	fix.info->domain_attr->mr_mode = FI_MR_PROV_KEY;
	fixture_open_domain(&fix);
	for (size_t offset = 0; offset < 4096; offset += 511) {
		cr_assert_eq(fi_mr_reg(fix.domain, buffer + offset, 1, FI_REMOTE_READ, 0, 0, 0, &mr,
				       NULL), 0);
		region = fi_mr_desc(mr);
		cr_expect_eq((uint32_t)fi_mr_key(mr), region->rkey);
		cr_expect_eq(fi_mr_key(mr) >> 32, (uintptr_t)(buffer + offset) % 4096);
		cr_expect_eq((uintptr_t)(buffer + offset) + region->shift, fi_mr_key(mr) >> 32);
		cr_expect_eq(fi_close(&mr->fid), 0);
	}
}

Test(mr, raw_keys_are_the_keys)
{
	struct fid_mr *mr = reg(FI_REMOTE_READ, sizeof(buffer));
	uint8_t raw[16];
	uint64_t base, mapped;
	size_t size = 7;

	cr_expect_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), -FI_ETOOSMALL);
	cr_expect_eq(size, 8);
	size = sizeof(raw);
	cr_expect_eq(fi_mr_raw_attr(mr, &base, raw, &size, 1), -FI_EBADFLAGS);
	size = sizeof(raw);
	cr_assert_eq(fi_mr_raw_attr(mr, &base, raw, &size, 0), 0);
	cr_expect_eq(size, 8);
	cr_expect_eq(base, (uintptr_t)buffer);
	cr_expect_eq(fi_mr_map_raw(fix.domain, base, raw, 7, &mapped, 0), -FI_EINVAL);
	cr_assert_eq(fi_mr_map_raw(fix.domain, base, raw, size, &mapped, 0), 0);
	cr_expect_eq(mapped, fi_mr_key(mr));
	cr_expect_eq(fi_mr_unmap_key(fix.domain, mapped), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(mr, authorization_key_is_refused_since_it_exists)
{
	struct iovec iov = {buffer, sizeof(buffer)};
	uint8_t key[4] = "key";
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .auth_key_size = sizeof(key), .auth_key = key};

	cr_expect_eq(regattr_error(&attr), -FI_EINVAL);
}

/* The structure of an application of 1.4 ends before auth_key_size. */
Test(mr, fields_newer_than_the_application_are_not_read)
{
	struct iovec iov = {buffer, sizeof(buffer)};
	struct fi_mr_attr attr;
	struct fid_mr *mr;

	memset(&attr, 0xff, sizeof(attr));
	attr.mr_iov = &iov;
	attr.iov_count = 1;
	attr.access = FI_SEND;
	attr.offset = 0;
	attr.context = &attr;
	fix.fabric->api_version = FI_VERSION(1, 4);
	fixture_open_domain(&fix);
	cr_assert_eq(fi_mr_regattr(fix.domain, &attr, 0, &mr), 0);
	cr_expect_eq(mr->fid.context, &attr);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(mr, device_memory_is_refused)
{
	struct iovec iov = {buffer, sizeof(buffer)};
	struct fi_mr_attr attr = {.mr_iov = &iov, .iov_count = 1, .iface = FI_HMEM_CUDA};

	fix.info->caps |= FI_HMEM;
	for (int iface = FI_HMEM_CUDA; iface < FI_HMEM_CUDA + 8; iface++) {
		attr.iface = iface;
		cr_expect_eq(regattr_error(&attr), -FI_ENOSYS);
	}
}

Test(mr, host_memory_is_registered_for_newer_applications)
{
	struct iovec iov = {buffer, sizeof(buffer)};
	struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_RECV, .iface = FI_HMEM_SYSTEM};
	struct fid_mr *mr;

	fix.info->caps |= FI_HMEM;
	fixture_open_domain(&fix);
	cr_assert_eq(fi_mr_regattr(fix.domain, &attr, 0, &mr), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

enum { PAGE = 4096 };

static const uint64_t dmabuf_flag = 1ull << 40; /* FI_MR_DMABUF */

/* struct fi_mr_dmabuf of libfabric 1.20. */
struct dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

static _Alignas(4096) char device_memory[4 * PAGE];
static char *const device_base = (char *)0x7000000; /* nothing is mapped there */

static int reg_dmabufs(const struct dmabuf *dmabufs, size_t count, uint64_t access,
		       struct fid_mr **mr)
{
	struct fi_mr_attr attr = {
		.mr_iov = (const void *)dmabufs, .iov_count = count, .access = access,
		.requested_key = 5, .iface = FI_HMEM_CUDA};

	fix.info->caps |= FI_HMEM;
	if (!fix.domain)
		fixture_open_domain(&fix);
	return fi_mr_regattr(fix.domain, &attr, dmabuf_flag, mr);
}

Test(mr, dmabuf_is_reached_by_peers)
{
	struct dmabuf dmabuf = {
		.fd = fake_net_dmabuf(device_memory, sizeof(device_memory)), .offset = PAGE + 8,
		.len = 100, .base_addr = device_base};
	struct verve_mr_region *region;
	struct fid_mr *mr;
	uint64_t base;
	size_t size = sizeof(base);

	cr_assert_eq(reg_dmabufs(&dmabuf, 1, FI_REMOTE_READ | FI_REMOTE_WRITE, &mr), 0);
	region = fi_mr_desc(mr);
	cr_expect_eq(fi_mr_key(mr), region->rkey);
	cr_expect_eq(region->addr, device_base + PAGE + 8);
	cr_expect_eq(region->len, 100);
	cr_expect_eq(region->shift, 0);
	cr_assert_eq(fi_mr_raw_attr(mr, &base, (uint8_t *)&(uint64_t){0}, &size, 0), 0);
	cr_expect_eq(base, (uintptr_t)device_base + PAGE + 8);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(mr, dmabuf_has_offsets_too)
{
	struct dmabuf dmabuf = {
		.fd = fake_net_dmabuf(device_memory, sizeof(device_memory)), .offset = PAGE + 8,
		.len = 100};
	struct fid_mr *mr;

	fix.info->domain_attr->mr_mode = FI_MR_PROV_KEY;
	cr_assert_eq(reg_dmabufs(&dmabuf, 1, FI_REMOTE_READ, &mr), 0);
	cr_expect_eq(fi_mr_key(mr) >> 32, 8);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

/* Two dmabufs make one region, as two segments of host memory do. */
Test(mr, dmabufs_are_segments)
{
	struct dmabuf dmabufs[2];
	struct fid_mr *mr;

	dmabufs[0] = (struct dmabuf){fake_net_dmabuf(device_memory, sizeof(device_memory)), 0, PAGE,
				     device_base};
	dmabufs[1] = (struct dmabuf){dmabufs[0].fd, 2 * PAGE, PAGE, device_base};
	fix.info->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
	cr_assert_eq(reg_dmabufs(dmabufs, 2, FI_REMOTE_READ, &mr), 0);
	cr_expect_eq(fi_mr_key(mr), 5);
	cr_expect_eq(fi_close(&mr->fid), 0);
	dmabufs[1].len = SIZE_MAX;
	cr_expect_eq(reg_dmabufs(dmabufs, 2, FI_REMOTE_READ, &mr), -FI_EINVAL);
	dmabufs[1].len = 3 * PAGE;
	cr_expect_eq(reg_dmabufs(dmabufs, 2, FI_REMOTE_READ, &mr), -FI_EINVAL, "beyond its end");
}

Test(mr, dmabuf_is_refused_where_it_cannot_be)
{
	struct dmabuf dmabuf = {.fd = 0, .len = 100, .base_addr = device_base};
	struct fid_mr *mr;

	cr_expect_eq(reg_dmabufs(&dmabuf, 1, FI_REMOTE_READ, &mr), -FI_EOPNOTSUPP, "by the device");
	dmabuf.fd = fake_net_dmabuf(device_memory, sizeof(device_memory)) + 1;
	cr_expect_eq(reg_dmabufs(&dmabuf, 1, FI_REMOTE_READ, &mr), -FI_EBADF);
	dmabuf.fd--;
	cr_expect_eq(reg_dmabufs(&dmabuf, 1, FI_REMOTE_READ | FI_SEND, &mr), -FI_EOPNOTSUPP,
		     "it would have to be copied by the processor");
	cr_expect_eq(reg_error(FI_REMOTE_READ, 0, dmabuf_flag), -FI_EBADFLAGS, "without a dmabuf");
}

/*
 * Hook providers leave device undefined, and applications without FI_HMEM leave iface undefined,
 * too.
 */
Test(mr, device_fields_do_not_count_for_host_memory)
{
	struct iovec iov = {buffer, sizeof(buffer)};
	struct fi_mr_attr attr = {.mr_iov = &iov, .iov_count = 1, .iface = FI_HMEM_ZE};
	struct fid_mr *mr;

	attr.device.reserved = UINT64_MAX;
	fix.info->caps &= ~FI_HMEM;
	fixture_open_domain(&fix);
	cr_assert_eq(fi_mr_regattr(fix.domain, &attr, 0, &mr), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(mr, failure_of_the_device_is_passed_on)
{
	fixture_open_domain(&fix);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_ENOMEM);
	cr_expect_eq(reg_error(FI_SEND, 0, 0), -FI_ENOMEM);
	fake_net_fail(FAKE_NET_MR_REG, 1, -FI_EFAULT);
	cr_expect_eq(reg_error(FI_SEND, 0, 0), -FI_EFAULT);
}

Test(mr, binding_and_enabling)
{
	struct fid_mr *mr = reg(FI_SEND, sizeof(buffer));
	struct fid ep = {.fclass = FI_CLASS_EP};

	cr_expect_eq(fi_mr_bind(mr, &ep, 0), 0);
	cr_expect_eq(fi_mr_bind(mr, &ep, FI_SEND), -FI_EBADFLAGS);
	cr_expect_eq(fi_mr_bind(mr, &fix.domain->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_mr_enable(mr), 0);
	cr_expect_eq(fi_mr_refresh(mr, NULL, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(mr, registration_is_reported_where_that_was_asked_for)
{
	struct fid_eq *eq = fixture_open_eq(&fix);
	struct fi_eq_entry entry;
	struct fid_mr *mr;
	uint32_t event;

	fixture_open_domain(&fix);
	cr_assert_eq(fi_domain_bind(fix.domain, &eq->fid, 1ull << 59 /* FI_REG_MR */), 0);
	mr = reg(FI_SEND, sizeof(buffer));
	cr_assert_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	cr_expect_eq(event, FI_MR_COMPLETE);
	cr_expect_eq(entry.fid, &mr->fid);
	cr_expect_eq(entry.context, &fix);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(reg_error(FI_SEND, 1, 0), -FI_EINVAL);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	cr_expect_eq(fi_close(&fix.domain->fid), 0);
	fix.domain = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}
