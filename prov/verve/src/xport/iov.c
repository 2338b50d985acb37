/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "xport/iov.h"

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t verve_iov_gather_any(void *to, const struct iovec *iov, size_t count, size_t offset,
			    size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = min(iov[i].iov_len - offset, len - done);
		memcpy((char *)to + done, (char *)iov[i].iov_base + offset, n);
		done += n;
		offset = 0;
	}
	return done;
}

size_t verve_iov_scatter_any(const struct iovec *iov, size_t count, size_t offset, const void *from,
			     size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = min(iov[i].iov_len - offset, len - done);
		memcpy((char *)iov[i].iov_base + offset, (const char *)from + done, n);
		done += n;
		offset = 0;
	}
	return done;
}
