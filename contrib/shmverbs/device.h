/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device: the list of devices; the attributes of a device and of its port. */
#ifndef SHMV_DEVICE_H
#define SHMV_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* Makes the list. any: false: there are no devices, because the configuration is wrong. */
void shmv_device_init(bool any);

/* Operations of struct verbs_context. */
int shmv_query_device_ex(struct ibv_context *ib, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size);
int shmv_query_port(struct ibv_context *ib, uint8_t port, struct ibv_port_attr *attr, size_t size);

#endif
