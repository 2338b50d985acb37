/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies between one piece of memory and a list of pieces. Any thread. */
#ifndef VERVE_XPORT_IOV_H
#define VERVE_XPORT_IOV_H

#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

/* Any number of pieces, and any offset; the two functions behind these are for all callers. */
size_t verve_iov_gather_any(void *to, const struct iovec *iov, size_t count, size_t offset,
			    size_t len);
size_t verve_iov_scatter_any(const struct iovec *iov, size_t count, size_t offset, const void *from,
			     size_t len);

/* Copies up to len bytes of an iov from offset on to flat memory. Returns the bytes copied. */
static inline size_t verve_iov_gather(void *to, const struct iovec *iov, size_t count,
				      size_t offset, size_t len)
{
	if (count != 1 || offset || !len || len > iov->iov_len)
		return verve_iov_gather_any(to, iov, count, offset, len);
	memcpy(to, iov->iov_base, len);
	return len;
}

/* Copies up to len bytes of flat memory to an iov from offset on. Returns the bytes copied. */
static inline size_t verve_iov_scatter(const struct iovec *iov, size_t count, size_t offset,
				       const void *from, size_t len)
{
	if (count != 1 || offset || !len || len > iov->iov_len)
		return verve_iov_scatter_any(iov, count, offset, from, len);
	memcpy(iov->iov_base, from, len);
	return len;
}

/* Bytes of all pieces together. */
static inline size_t verve_iov_len(const struct iovec *iov, size_t count)
{
	size_t len = count ? iov->iov_len : 0;

	for (size_t i = 1; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

#endif
