/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Stand-ins for the functions of libibverbs and libc that tell about the host. */
#include "fake_verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/sysfs.h"

struct fake_verbs fake_verbs;

/* True if the call fails; errno then says error, if that is positive. */
static bool fails(int error)
{
	if (error > 0)
		errno = error;
	return error;
}

static struct verbs_context context;
static struct ibv_ah handle;
static struct ibv_pd domain;
static struct ibv_qp qps[2]; /* an open queue pair has a context, a closed one has none */

ssize_t __wrap__ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
				    size_t max, uint32_t flags, size_t size);
int __wrap_ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid);
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int __wrap_ibv_destroy_ah(struct ibv_ah *ah);
const char *__wrap_ibv_get_device_name(struct ibv_device *device);
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);
unsigned __wrap_if_nametoindex(const char *name);
int __wrap_access(const char *path, int mode);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, int mode);
int __wrap_open(const char *path, int flags, int mode)
{
	if (strncmp(path, "/dev/infiniband/", strlen("/dev/infiniband/")))
		return __real_open(path, flags, mode);
	errno = fake_verbs.file_error;
	return fake_verbs.file_error ? -1 : eventfd(0, EFD_CLOEXEC);
}

bool __wrap_verve_sysfs_is_ipoib(const char *netdev, const struct verve_net_gid *gid);
void __wrap_verve_sysfs_ipoib(const struct verve_net_gid *gid, char *netdev);
int __wrap_verve_inet6_list_init(struct verve_inet6_list *list);
void __wrap_verve_inet6_list_fini(struct verve_inet6_list *list);
struct ibv_device **ibv_get_device_list(int *count);
void ibv_free_device_list(struct ibv_device **list);

static int query_device(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	(void)ctx;
	(void)input;
	memset(attr, 0, size);
	attr->orig_attr = fake_verbs.attr;
	attr->odp_caps = fake_verbs.odp;
	return fake_verbs.query_device_error;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = fake_verbs.attr;
	return 0;
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
	size_t size)
{
	(void)ctx;
	if (!port)
		abort(); /* ports count from 1 */
	memcpy(attr, &fake_verbs.port, size);
	return fake_verbs.query_port_error;
}

ssize_t __wrap__ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
				    size_t max, uint32_t flags, size_t size)
{
	(void)ctx;
	(void)flags;
	if (fake_verbs.gid_count < 0)
		return fake_verbs.gid_count;
	if ((size_t)fake_verbs.gid_count > max || size != sizeof(*entries))
		return -EINVAL;
	memcpy(entries, fake_verbs.gids, (size_t)fake_verbs.gid_count * size);
	return fake_verbs.gid_count;
}

int __wrap_ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	for (int i = 0; i < fake_verbs.gid_count; i++)
		if (fake_verbs.gids[i].port_num == port &&
		    fake_verbs.gids[i].gid_index == (uint32_t)index) {
			*gid = fake_verbs.gids[i].gid;
			return 0;
		}
	return -1;
}

struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	fake_verbs.ah = *attr;
	if (fake_verbs.bad_gids & 1u << attr->grh.sgid_index && fails(fake_verbs.ah_error))
		return NULL;
	fake_verbs.open_ahs++;
	return &handle;
}

int __wrap_ibv_destroy_ah(struct ibv_ah *ah)
{
	fake_verbs.open_ahs -= ah == &handle;
	return 0;
}

const char *__wrap_ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
	if (fake_verbs.getifaddrs_error) {
		errno = fake_verbs.getifaddrs_error;
		return -1;
	}
	for (int i = 0; i + 1 < fake_verbs.ifaddr_count; i++)
		fake_verbs.ifaddrs[i].ifa_next = &fake_verbs.ifaddrs[i + 1];
	*list = fake_verbs.ifaddr_count ? fake_verbs.ifaddrs : NULL;
	fake_verbs.open_ifaddrs++;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	(void)list;
	fake_verbs.open_ifaddrs--;
}

unsigned __wrap_if_nametoindex(const char *name)
{
	fake_verbs.index_lookups++;
	for (int i = 0; i < fake_verbs.ifaddr_count; i++)
		if (!strcmp(fake_verbs.ifaddrs[i].ifa_name, name))
			return fake_verbs.ifindex[i];
	return 0;
}

int __wrap_access(const char *path, int mode)
{
	(void)path;
	(void)mode;
	errno = fake_verbs.access_error;
	return fake_verbs.access_error ? -1 : 0;
}

bool __wrap_verve_sysfs_is_ipoib(const char *netdev, const struct verve_net_gid *gid)
{
	const char *at = fake_verbs.ipoib ? fake_verbs.ipoib : "";
	size_t len;

	(void)gid;
	for (; *at; at += len + (at[len] == ' ')) {
		len = strcspn(at, " ");
		if (len == strlen(netdev) && !memcmp(at, netdev, len))
			return true;
	}
	return false;
}

void __wrap_verve_sysfs_ipoib(const struct verve_net_gid *gid, char *netdev)
{
	const char *list = fake_verbs.ipoib ? fake_verbs.ipoib : "";

	(void)gid;
	snprintf(netdev, VERVE_NET_NAME_MAX, "%.*s", (int)strcspn(list, " "), list);
}

int __wrap_verve_inet6_list_init(struct verve_inet6_list *list)
{
	*list = (struct verve_inet6_list){fake_verbs.inet6, fake_verbs.inet6_count};
	return 0;
}

void __wrap_verve_inet6_list_fini(struct verve_inet6_list *list)
{
	(void)list;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	static struct ibv_device *list[2];

	list[0] = fake_verbs.listed ? &fake_verbs.device : NULL;
	if (count)
		*count = fake_verbs.listed;
	if (fails(fake_verbs.get_device_list_error))
		return NULL;
	fake_verbs.open_lists++;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	(void)list;
	fake_verbs.open_lists--;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *ctx = fake_verbs_context();

	(void)device;
	if (fails(fake_verbs.open_error))
		return NULL;
	ctx->async_fd = eventfd(0, EFD_CLOEXEC);
	return ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	close(ctx->async_fd);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	if (fails(fake_verbs.pd_error))
		return NULL;
	domain.context = ctx;
	return &domain;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return 0;
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	(void)port;
	if (index >= fake_verbs.port.pkey_tbl_len)
		return -1;
	*pkey = htons(fake_verbs.pkeys[index]);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp;

	if (fails(fake_verbs.create_qp ? fake_verbs.create_qp(init) : 0))
		return NULL;
	qp = qps[0].context ? &qps[1] : &qps[0];
	qp->context = pd->context;
	qp->srq = init->srq;
	qp->qp_num = 0x123 + (uint32_t)(qp - qps);
	return qp;
}

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	(void)of;
	if (attr->qp_state == fake_verbs.modify_refused)
		return EINVAL;
	if (attr->qp_state == IBV_QPS_INIT)
		fake_verbs.init = *attr;
	if (attr->qp_state == IBV_QPS_RTS)
		fake_verbs.rts = *attr;
	if (attr->qp_state != IBV_QPS_RTR)
		return 0;
	fake_verbs.rtr = *attr;
	fake_verbs.modify_mask = mask;
	for (int i = 0; i < fake_verbs.gid_count; i++)
		if (fake_verbs.gids[i].gid_index == attr->ah_attr.grh.sgid_index)
			return 0;
	return EINVAL;
}

int ibv_destroy_qp(struct ibv_qp *of)
{
	of->context = NULL;
	return 0;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	if (!fake_verbs.event_count) {
		errno = EAGAIN;
		return -1;
	}
	event->event_type = fake_verbs.events[--fake_verbs.event_count];
	memset(&event->element, 0, sizeof(event->element));
	event->element.port_num = 1;
	if (event->event_type == IBV_EVENT_CQ_ERR)
		event->element.cq = fake_verbs.failed_cq;
	if (event->event_type == IBV_EVENT_SRQ_ERR)
		event->element.srq = fake_verbs.failed_srq;
	if (event->event_type == IBV_EVENT_QP_FATAL)
		event->element.qp = &qps[0];
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

void fake_verbs_reset(void)
{
	for (int i = 0; i < fake_verbs.ifaddr_count; i++)
		free(fake_verbs.ifaddrs[i].ifa_addr);
	memset(&fake_verbs, 0, sizeof(fake_verbs));
	fake_verbs.device.transport_type = IBV_TRANSPORT_IB;
	snprintf(fake_verbs.device.name, sizeof(fake_verbs.device.name), "none0");
	snprintf(fake_verbs.device.dev_name, sizeof(fake_verbs.device.dev_name), "uverbs9");
	fake_verbs.ah_error = ETIMEDOUT;
	fake_verbs.attr.phys_port_cnt = 1;
	fake_verbs.attr.max_srq = 1;
	fake_verbs.attr.max_sge = 4;
	fake_verbs.attr.max_qp_rd_atom = 1;
	fake_verbs.attr.max_qp_init_rd_atom = 1;
	fake_verbs.port.state = IBV_PORT_ACTIVE;
	fake_verbs.port.link_layer = IBV_LINK_LAYER_ETHERNET;
	fake_verbs.port.active_mtu = IBV_MTU_1024;
}

struct ibv_context *fake_verbs_context(void)
{
	context.sz = sizeof(context);
	context.query_device_ex = query_device;
	context.query_port = query_port;
	context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context.context.device = &fake_verbs.device;
	return &context.context;
}

void fake_verbs_add_gid(uint32_t port, uint32_t index, enum ibv_gid_type type, const char *gid,
			uint32_t ifindex)
{
	struct ibv_gid_entry *entry = &fake_verbs.gids[fake_verbs.gid_count++];

	*entry = (struct ibv_gid_entry){
		.gid_index = index, .port_num = port, .gid_type = type, .ndev_ifindex = ifindex};
	if (inet_pton(AF_INET6, gid, &entry->gid) != 1)
		abort();
}

/* Allocates exactly one sockaddr, as getifaddrs(3) does, so that ASan sees a read beyond it. */
void fake_verbs_add_addr(const char *name, unsigned ifindex, bool up, const char *ip)
{
	struct ifaddrs *ifa = &fake_verbs.ifaddrs[fake_verbs.ifaddr_count];
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in = {.sin_family = AF_INET};
	const void *addr = &in;
	size_t len = sizeof(in);

	if (inet_pton(AF_INET, ip, &in.sin_addr) != 1) {
		if (inet_pton(AF_INET6, ip, &in6.sin6_addr) != 1)
			abort();
		if (IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr))
			in6.sin6_scope_id = ifindex;
		addr = &in6;
		len = sizeof(in6);
	}
	ifa->ifa_name = (char *)name;
	ifa->ifa_flags = up ? IFF_UP : 0;
	ifa->ifa_addr = malloc(len);
	if (!ifa->ifa_addr)
		abort();
	memcpy(ifa->ifa_addr, addr, len);
	fake_verbs.ifindex[fake_verbs.ifaddr_count++] = ifindex;
}

void fake_verbs_add_flags(unsigned ifindex, const char *ip, uint32_t flags)
{
	struct verve_inet6_addr *addr = &fake_verbs.inet6[fake_verbs.inet6_count++];

	addr->ifindex = ifindex;
	addr->flags = flags;
	if (inet_pton(AF_INET6, ip, &addr->ip) != 1)
		abort();
}
