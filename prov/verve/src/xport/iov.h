/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copies between one piece of memory and a list of pieces. Any thread. */
#ifndef VERVE_XPORT_IOV_H
#define VERVE_XPORT_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/* Copy up to len bytes between flat memory and an iov from offset on. Return the bytes copied. */
size_t verve_iov_gather(void *to, const struct iovec *iov, size_t count, size_t offset, size_t len);
size_t verve_iov_scatter(const struct iovec *iov, size_t count, size_t offset, const void *from,
			 size_t len);
/* Bytes of all pieces together. */
size_t verve_iov_len(const struct iovec *iov, size_t count);

#endif
