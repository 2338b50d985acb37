/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: fi_getinfo(3) to fi_enable(3), as an application does it. */
#include "endpoint.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint64_t access_mask = FI_REMOTE_READ | FI_REMOTE_WRITE;

/* A numeric address as hints have it. */
static int set_source(struct fi_info *hints, const char *from)
{
	struct fi_info *info = NULL;
	int ret;

	hints->fabric_attr->prov_name = strdup("verve");
	if (!hints->fabric_attr->prov_name)
		return -FI_ENOMEM;
	if (!from)
		return 0;
	ret = fi_getinfo(fi_version(), from, NULL, FI_SOURCE, hints, &info);
	if (ret)
		return ret == -FI_ENODATA ? -FI_EADDRNOTAVAIL : ret;
	hints->src_addr = malloc(info->src_addrlen);
	if (hints->src_addr) {
		hints->src_addrlen = info->src_addrlen;
		memcpy(hints->src_addr, info->src_addr, info->src_addrlen);
		hints->addr_format = info->addr_format;
	}
	fi_freeinfo(info);
	return hints->src_addr ? 0 : -FI_ENOMEM;
}

int verve_endpoint_find(struct verve_endpoint *endpoint, const char *node, const char *service,
			uint64_t flags, const char *from)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	ret = set_source(hints, flags & FI_SOURCE ? NULL : from);
	if (!ret)
		ret = fi_getinfo(fi_version(), node, service, flags, hints, &endpoint->info);
	fi_freeinfo(hints);
	return ret;
}

static int open_queues(struct verve_endpoint *endpoint)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_av_attr av_attr = {.type = FI_AV_MAP};
	int ret;

	ret = fi_av_open(endpoint->domain, &av_attr, &endpoint->av, NULL);
	if (!ret)
		ret = fi_cq_open(endpoint->domain, &cq_attr, &endpoint->cq, NULL);
	if (!ret)
		ret = fi_endpoint(endpoint->domain, endpoint->info, &endpoint->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(endpoint->ep, &endpoint->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(endpoint->ep, &endpoint->cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(endpoint->ep);
}

int verve_endpoint_open(struct verve_endpoint *endpoint)
{
	int ret = fi_fabric(endpoint->info->fabric_attr, &endpoint->fabric, NULL);

	if (!ret)
		ret = fi_domain(endpoint->fabric, endpoint->info, &endpoint->domain, NULL);
	if (!ret)
		ret = open_queues(endpoint);
	if (!ret)
		ret = fi_mr_reg(endpoint->domain, endpoint->region, sizeof(endpoint->region),
				access_mask, 0, 0, 0, &endpoint->mr, NULL);
	return ret;
}

void verve_endpoint_close(struct verve_endpoint *endpoint)
{
	struct fid *fids[] = {
		endpoint->ep ? &endpoint->ep->fid : NULL, endpoint->mr ? &endpoint->mr->fid : NULL,
		endpoint->cq ? &endpoint->cq->fid : NULL, endpoint->av ? &endpoint->av->fid : NULL,
		endpoint->domain ? &endpoint->domain->fid : NULL,
		endpoint->fabric ? &endpoint->fabric->fid : NULL};

	for (size_t i = 0; i < sizeof(fids) / sizeof(fids[0]); i++)
		if (fids[i])
			fi_close(fids[i]);
	fi_freeinfo(endpoint->info);
}

static int take_error(struct verve_endpoint *endpoint, const void *context)
{
	struct fi_cq_err_entry entry = {
		.err_data = endpoint->error, .err_data_size = sizeof(endpoint->error) - 1};

	endpoint->error[0] = '\0';
	if (fi_cq_readerr(endpoint->cq, &entry, 0) != 1)
		return -FI_EIO;
	endpoint->error[entry.err_data_size < sizeof(endpoint->error) ?
			entry.err_data_size : sizeof(endpoint->error) - 1] = '\0';
	return entry.op_context == context ? -entry.err : 0;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void verve_endpoint_forget(struct verve_endpoint *endpoint)
{
	memset(endpoint->early, 0, sizeof(endpoint->early));
}

static bool came_early(struct verve_endpoint *endpoint, const void *context)
{
	for (size_t i = 0; i < VERVE_ENDPOINT_EARLY; i++) {
		if (endpoint->early[i] != context)
			continue;
		endpoint->early[i] = NULL;
		return true;
	}
	return false;
}

int verve_endpoint_wait(struct verve_endpoint *endpoint, const void *context, int timeout_ms)
{
	int64_t end = now_ms() + timeout_ms;

	if (came_early(endpoint, context))
		return 0;
	for (;;) {
		int64_t left = timeout_ms < 0 ? -1 : end - now_ms();
		struct fi_cq_entry entry;
		ssize_t ret;

		if (timeout_ms >= 0 && left <= 0)
			return -FI_ETIMEDOUT;
		ret = fi_cq_sread(endpoint->cq, &entry, 1, NULL, (int)left);
		if (ret == 1 && entry.op_context == context)
			return 0;
		if (ret == 1)
			endpoint->early[endpoint->early_count++ % VERVE_ENDPOINT_EARLY] =
				entry.op_context;
		if (ret == -FI_EAVAIL)
			ret = take_error(endpoint, context);
		if (ret < 0 && ret != -FI_EAGAIN)
			return (int)ret;
	}
}
