/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queue: fi_eq(3). Events of address vectors and registrations, and the application's own.
 * Never overrun: it is limited by memory only, and who writes is told when there is none.
 *
 * Its own lock, taken last. Any thread may call anything, except that close is serialized by the
 * application.
 */
#ifndef VERVE_API_EQ_H
#define VERVE_API_EQ_H

#include <rdma/fi_eq.h>
#include <stddef.h>
#include <stdint.h>

/*
 * For struct fi_ops_fabric. References the fabric until it is closed. fi_close: -FI_EBUSY while
 * references are out. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; wait objects as verve_wait_init.
 */
int verve_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		  void *context);

/* Every object that reports there holds one reference. Any thread. */
void verve_eq_get(struct fid_eq *eq);
void verve_eq_put(struct fid_eq *eq);

/* Adds an event, FI_AV_COMPLETE and the like, of len bytes, which are copied. 0 or -FI_ENOMEM. */
int verve_eq_write_event(struct fid_eq *eq, uint32_t event, const void *buf, size_t len);
/* Adds an error; err_data is not kept. 0 or -FI_ENOMEM. */
int verve_eq_write_error(struct fid_eq *eq, const struct fi_eq_err_entry *entry);

/* For verve_fabric_trywait. */
int verve_eq_trywait(struct fid_eq *eq);

#endif
