/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device: the list of devices, and what they say of themselves and of their port. */
#ifndef SHMV_DEVICE_H
#define SHMV_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* any: whether there are devices; not with a wrong configuration. */
void shmv_device_init(bool any);

/* Operations of struct verbs_context. */
int shmv_query_device_ex(struct ibv_context *ib, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);
int shmv_query_port(struct ibv_context *ib, uint8_t port, struct ibv_port_attr *attr, size_t size);

#endif
