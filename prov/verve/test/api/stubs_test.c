/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stubs: no table has an empty entry, and a call of a stub returns an error. */
#include <criterion/criterion.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "api/stubs.h"

static struct fid_ep ep = {
	.cm = &verve_stub_cm,
	.msg = &verve_stub_msg,
	.rma = &verve_stub_rma,
	.tagged = &verve_stub_tagged,
	.atomic = &verve_stub_atomic,
	.collective = &verve_stub_collective,
};

/* Counts empty entries. Every table begins with its size, followed by pointers to functions. */
static size_t holes_in(const void *table)
{
	size_t size, count = 0;

	memcpy(&size, table, sizeof(size));
	cr_assert_gt(size, sizeof(size));
	for (size_t at = sizeof(size); at < size; at += sizeof(void *)) {
		void *function;

		memcpy(&function, (const char *)table + at, sizeof(function));
		count += !function;
	}
	return count;
}

Test(stubs, tables_are_whole)
{
	cr_expect_eq(verve_stub_cm.size, sizeof(struct fi_ops_cm));
	cr_expect_eq(verve_stub_msg.size, sizeof(struct fi_ops_msg));
	cr_expect_eq(verve_stub_tagged.size, sizeof(struct fi_ops_tagged));
	cr_expect_eq(verve_stub_rma.size, sizeof(struct fi_ops_rma));
	cr_expect_eq(verve_stub_atomic.size, sizeof(struct fi_ops_atomic));
	cr_expect_eq(verve_stub_collective.size, sizeof(struct fi_ops_collective));
	cr_expect_eq(holes_in(&verve_stub_cm), 0);
	cr_expect_eq(holes_in(&verve_stub_msg), 0);
	cr_expect_eq(holes_in(&verve_stub_tagged), 0);
	cr_expect_eq(holes_in(&verve_stub_rma), 0);
	cr_expect_eq(holes_in(&verve_stub_atomic), 0);
	cr_expect_eq(holes_in(&verve_stub_collective), 0);
}

Test(stubs, messages_say_ENOSYS)
{
	cr_expect_eq(fi_recv(&ep, NULL, 0, NULL, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_recvv(&ep, NULL, NULL, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_recvmsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_send(&ep, NULL, 0, NULL, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_sendv(&ep, NULL, NULL, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_sendmsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_inject(&ep, NULL, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_senddata(&ep, NULL, 0, NULL, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_injectdata(&ep, NULL, 0, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_trecv(&ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_trecvv(&ep, NULL, NULL, 0, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_trecvmsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_tsend(&ep, NULL, 0, NULL, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_tsendv(&ep, NULL, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_tsendmsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_tinject(&ep, NULL, 0, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_tsenddata(&ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_tinjectdata(&ep, NULL, 0, 0, 0, 0), -FI_ENOSYS);
}

Test(stubs, rma_says_ENOSYS)
{
	cr_expect_eq(fi_read(&ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_readv(&ep, NULL, NULL, 0, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_readmsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_write(&ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_writev(&ep, NULL, NULL, 0, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_writemsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_inject_write(&ep, NULL, 0, 0, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_writedata(&ep, NULL, 0, NULL, 0, 0, 0, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_inject_writedata(&ep, NULL, 0, 0, 0, 0, 0), -FI_ENOSYS);
}

Test(stubs, atomics_say_ENOSYS)
{
	size_t count;

	cr_expect_eq(fi_atomic(&ep, NULL, 0, NULL, 0, 0, 0, FI_INT8, FI_SUM, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_atomicv(&ep, NULL, NULL, 0, 0, 0, 0, FI_INT8, FI_SUM, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_atomicmsg(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_inject_atomic(&ep, NULL, 0, 0, 0, 0, FI_INT8, FI_SUM), -FI_ENOSYS);
	cr_expect_eq(fi_fetch_atomic(&ep, NULL, 0, NULL, NULL, NULL, 0, 0, 0, FI_INT8, FI_SUM,
				     NULL),
		     -FI_ENOSYS);
	cr_expect_eq(fi_fetch_atomicmsg(&ep, NULL, NULL, NULL, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_compare_atomic(&ep, NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, FI_INT8,
				       FI_CSWAP, NULL),
		     -FI_ENOSYS);
	cr_expect_eq(fi_compare_atomicmsg(&ep, NULL, NULL, NULL, 0, NULL, NULL, 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_atomicvalid(&ep, FI_INT8, FI_SUM, &count), -FI_ENOSYS);
	cr_expect_eq(fi_fetch_atomicvalid(&ep, FI_INT8, FI_SUM, &count), -FI_ENOSYS);
	cr_expect_eq(fi_compare_atomicvalid(&ep, FI_INT8, FI_CSWAP, &count), -FI_ENOSYS);
}

Test(stubs, connections_and_collectives_say_ENOSYS)
{
	struct fid_pep pep = {.cm = &verve_stub_cm};
	struct fid_mc *mc;

	cr_expect_eq(fi_getpeer(&ep, NULL, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_connect(&ep, NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_listen(&pep), -FI_ENOSYS);
	cr_expect_eq(fi_accept(&ep, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_reject(&pep, NULL, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_shutdown(&ep, 0), -FI_ENOSYS);
	cr_expect_eq(fi_join(&ep, NULL, 0, &mc, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_barrier(&ep, 0, NULL), -FI_ENOSYS);
	cr_expect_eq(fi_allreduce(&ep, NULL, 0, NULL, NULL, NULL, 0, FI_INT8, FI_SUM, 0, NULL),
		     -FI_ENOSYS);
}
