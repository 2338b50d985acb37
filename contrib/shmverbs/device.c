/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "context.h"
#include "layout.h"
#include "ports.h"

/* verbs.h has a macro of this name; the function itself is here. */
#undef ibv_query_port

enum {
	MSG_MAX = 1 << 30,
	SPEED_NDR = 128, /* InfiniBand specification, PortInfo: LinkSpeedExtActive */
	WIDTH_4X = 2,
	PHYS_LINK_UP = 5,
	PHYS_DISABLED = 3,
};

static struct shmv_dev devs[SHMV_DEVS_MAX];
static uint32_t dev_count;

void shmv_device_init(bool any)
{
	dev_count = any ? shmv_ports_count() : 0;
	for (uint32_t i = 0; i < dev_count; i++) {
		struct ibv_device *ib = &devs[i].ib;

		devs[i].index = i;
		ib->node_type = IBV_NODE_CA;
		ib->transport_type = IBV_TRANSPORT_IB;
		sprintf(ib->name, "shm%u", i);
		sprintf(ib->dev_name, "uverbs%u", i);
		sprintf(ib->dev_path, "/sys/class/infiniband_verbs/uverbs%u", i);
		sprintf(ib->ibdev_path, "/sys/class/infiniband/shm%u", i);
	}
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(dev_count + 1, sizeof(*list));

	for (uint32_t i = 0; list && i < dev_count; i++)
		list[i] = &devs[i].ib;
	if (count)
		*count = list ? dev_count : 0;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	const struct shmv_ports *ports = shmv_ports_get();

	return ports ? htobe64(ports->port[((struct shmv_dev *)device)->index].guid) : 0;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return ((struct shmv_dev *)device)->index;
}

static void get_limits(struct ibv_device_attr *to)
{
	to->max_mr_size = UINT64_MAX;
	to->page_size_cap = 0xfffffffffffff000;
	to->max_qp = shmv_conf.max_qp;
	to->max_qp_wr = shmv_conf.max_qp_wr;
	to->max_sge = to->max_sge_rd = shmv_conf.max_sge;
	to->max_cq = SHM_CQ_MAX;
	to->max_cqe = shmv_conf.max_cqe;
	to->max_mr = SHM_MR_MAX - 1;
	to->max_mw = shmv_conf.mw ? SHM_MR_MAX - 1 : 0;
	to->max_pd = 1 << 16;
	to->max_ah = 1 << 16;
	to->max_qp_rd_atom = to->max_qp_init_rd_atom = shmv_conf.max_rd_atomic;
	to->max_res_rd_atom = shmv_conf.max_rd_atomic * shmv_conf.max_qp;
	to->atomic_cap = shmv_conf.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
	to->max_pkeys = SHMV_PKEYS;
	if (!shmv_conf.srq)
		return;
	to->max_srq = SHM_RQ_MAX / 2;
	to->max_srq_wr = shmv_conf.max_qp_wr;
	to->max_srq_sge = shmv_conf.max_sge;
}

int shmv_query_device_ex(struct ibv_context *ib, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t size)
{
	const struct shmv_ctx *ctx = shmv_ctx_of(ib);
	struct ibv_device_attr *to = &attr->orig_attr;

	if (input && input->comp_mask)
		return EINVAL;
	if (shmv_ctx_is_fatal(ctx))
		return EIO;
	memset(attr, 0, size);
	strcpy(to->fw_ver, "shm 2");
	to->node_guid = to->sys_image_guid = htobe64(ctx->port->guid);
	to->vendor_id = shmv_conf.vendor;
	to->vendor_part_id = shmv_conf.part;
	to->device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
			       IBV_DEVICE_PORT_ACTIVE_EVENT;
	if (shmv_conf.mw)
		to->device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	to->phys_port_cnt = 1;
	get_limits(to);
	if (size >= sizeof(*attr))
		attr->phys_port_cnt_ex = 1;
	return 0;
}

int ibv_query_device(struct ibv_context *ib, struct ibv_device_attr *attr)
{
	struct ibv_device_attr_ex all;
	int ret = shmv_query_device_ex(ib, NULL, &all, sizeof(all));

	if (!ret)
		*attr = all.orig_attr;
	return ret;
}

static enum ibv_mtu mtu_of(const struct shmv_port *port)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= shmv_load32(&port->mtu))
		mtu++;
	return mtu;
}

int shmv_query_port(struct ibv_context *ib, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	const struct shmv_ctx *ctx = shmv_ctx_of(ib);
	const struct shmv_port *from = ctx->port;
	struct ibv_port_attr all = {
		.state = shmv_load32(&from->state), .max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_of(from),
		.gid_tbl_len = SHMV_GIDS, .max_msg_sz = MSG_MAX, .lid = from->lid, .lmc = from->lmc,
		.sm_lid = from->sm_lid, .active_width = WIDTH_4X, .active_speed = SPEED_NDR,
		.link_layer = shmv_conf.infiniband ? IBV_LINK_LAYER_INFINIBAND :
						     IBV_LINK_LAYER_ETHERNET,
		.flags = shmv_conf.grh_required ? IBV_QPF_GRH_REQUIRED : 0,
	};

	if (port != 1)
		return EINVAL;
	if (shmv_ctx_is_fatal(ctx))
		return EIO;
	all.phys_state = all.state == IBV_PORT_ACTIVE ? PHYS_LINK_UP : PHYS_DISABLED;
	while (all.pkey_tbl_len < SHMV_PKEYS && from->pkeys[all.pkey_tbl_len])
		all.pkey_tbl_len++;
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

int ibv_query_port(struct ibv_context *ib, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return shmv_query_port(ib, port, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* Sets *entry; 0, or the errno. */
static int get_gid(struct ibv_context *ib, uint32_t index, struct ibv_gid_entry *entry,
		   uint32_t ifindex)
{
	const struct shmv_gid *gid = &shmv_ctx_of(ib)->port->gids[index % SHMV_GIDS];

	if (index >= SHMV_GIDS)
		return EINVAL;
	if (!gid->used)
		return ENODATA;
	*entry = (struct ibv_gid_entry){.gid = gid->gid, .gid_index = index, .port_num = 1,
					.gid_type = gid->type, .ndev_ifindex = ifindex};
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ib, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct ibv_gid_entry all;
	int ret;

	if (port != 1 || flags)
		return EINVAL;
	ret = get_gid(ib, index, &all, shmv_ports_ifindex(shmv_ctx_of(ib)->port));
	if (!ret)
		memcpy(entry, &all, size < sizeof(all) ? size : sizeof(all));
	return ret;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ib, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t size)
{
	uint32_t ifindex = shmv_ports_ifindex(shmv_ctx_of(ib)->port);
	struct ibv_gid_entry all;
	size_t count = 0;

	if (flags)
		return -EINVAL;
	for (uint32_t i = 0; i < SHMV_GIDS && count < max; i++)
		if (!get_gid(ib, i, &all, ifindex))
			memcpy((char *)entries + count++ * size, &all,
			       size < sizeof(all) ? size : sizeof(all));
	return count;
}

/* An unused entry is reported as a GID of zeros. */
int ibv_query_gid(struct ibv_context *ib, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;

	if (port != 1 || index < 0 || index >= SHMV_GIDS) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	if (!get_gid(ib, index, &entry, 0))
		*gid = entry.gid;
	return 0;
}

/* Sets *type as sysfs has it: 0 is InfiniBand or RoCE version 1, 1 is RoCE version 2. */
int ibv_query_gid_type(struct ibv_context *ib, uint8_t port, unsigned int index, uint32_t *type)
{
	struct ibv_gid_entry entry;

	if (port != 1 || get_gid(ib, index, &entry, 0)) {
		errno = EINVAL;
		return -1;
	}
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}

int ibv_query_pkey(struct ibv_context *ib, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index < 0 || index >= SHMV_PKEYS) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(shmv_ctx_of(ib)->port->pkeys[index]);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *ib, uint8_t port, __be16 pkey)
{
	for (int i = 0; port == 1 && i < SHMV_PKEYS; i++)
		if (pkey && shmv_ctx_of(ib)->port->pkeys[i] == be16toh(pkey))
			return i;
	errno = EINVAL;
	return -1;
}

const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *text, size_t size)
{
	char path[512];
	int fd, n;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size);
	if (fd >= 0)
		close(fd);
	if (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	return n;
}

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}
