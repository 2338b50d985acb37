/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queue: fi_eq(3). It has events of address vectors and registrations, failures of
 * endpoints, and the application's own events. It is never overrun: only memory limits it, and a
 * function that cannot add an event says so.
 *
 * Its lock is taken last. Any thread may call the functions here, except that the application
 * serializes close.
 */
#ifndef VERVE_API_EQ_H
#define VERVE_API_EQ_H

#include <rdma/fi_eq.h>
#include <stddef.h>
#include <stdint.h>

struct verve_eq_event;

/*
 * eq_open of struct fi_ops_fabric. Holds a reference of the fabric until it is closed. fi_close
 * returns -FI_EBUSY while references are held. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; for the wait
 * object, errors as verve_wait_init.
 */
int verve_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		  void *context);

/* Every object that reports to the queue holds one reference. Any thread. */
void verve_eq_get(struct fid_eq *eq);
void verve_eq_put(struct fid_eq *eq);

/*
 * Adds an event, such as FI_AV_COMPLETE, of len bytes at buf, which are copied. 0 or -FI_ENOMEM,
 * which is logged.
 */
int verve_eq_write_event(struct fid_eq *eq, uint32_t event, const void *buf, size_t len);
/* Adds an error. entry is copied without its err_data. 0 or -FI_ENOMEM, which is logged. */
int verve_eq_write_error(struct fid_eq *eq, const struct fi_eq_err_entry *entry);

/*
 * The same for an error that may come where no memory can be had: alloc makes room for it, put adds
 * it. The room is the caller's until put, after that the queue's. alloc: NULL: no memory, which is
 * logged.
 */
struct verve_eq_event *verve_eq_alloc_error(void);
void verve_eq_put_error(struct fid_eq *eq, struct verve_eq_event *event,
			const struct fi_eq_err_entry *entry);
/* Removes the errors of this object, which is going to be freed, that nobody has read. */
void verve_eq_forget(struct fid_eq *eq, const struct fid *fid);
/* Room that was not used. NULL: nothing. */
void verve_eq_free_error(struct verve_eq_event *event);

/* For verve_fabric_trywait: as verve_wait_try. 0: the queue is empty. */
int verve_eq_trywait(struct fid_eq *eq);

#endif
