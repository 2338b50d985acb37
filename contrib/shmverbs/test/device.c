/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device: the attributes of the device and its port. */
#include <string.h>

#include "side.h"
#include "tests.h"

void test_device(void)
{
	struct ibv_port_attr port;
	struct ibv_device_attr_ex attr;
	struct ibv_gid_entry entry[4];
	struct ibv_context *ctx;
	int n;

	ibv_free_device_list(ibv_get_device_list(&n));
	CHECK(n == 2);
	ctx = open_dev(1);
	CHECK(!strcmp(ibv_get_device_name(ctx->device), "shm1"));
	CHECK(!ibv_query_port(ctx, 1, &port) && port.state == IBV_PORT_ACTIVE &&
	      port.link_layer == IBV_LINK_LAYER_ETHERNET);
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr) &&
	      attr.orig_attr.atomic_cap == IBV_ATOMIC_HCA);
	CHECK(attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B &&
	      attr.orig_attr.max_mw);
	CHECK(ibv_query_gid_table(ctx, entry, 4, 0) == 1 &&
	      entry[0].gid_type == IBV_GID_TYPE_ROCE_V2);
	CHECK(ibv_query_gid_ex(ctx, 1, 9, entry, 0) && ibv_query_port(ctx, 2, &port));
	CHECK(!ibv_close_device(ctx));
}
