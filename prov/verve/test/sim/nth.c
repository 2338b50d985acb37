/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening and closing the three endpoints, and failing the nth call. */
#include <criterion/criterion.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>
#include <stdlib.h>
#include <string.h>

#include "../support/fake_memory.h"
#include "../support/oom.h"
#include "../support/prov_once.h"
#include "base/addr.h"
#include "base/config.h"
#include "nth_world.h"
#include "sim.h"

/* libfabric 2.x deprecates poll sets; applications still have them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

enum { SEGMENTS = 3, KEY = 77, N_MAX = 2000, TRIES = 100, SEEDS = 2 };

static const size_t region_size = (NTH_ENDS + 1) * NTH_SLICES * NTH_SLICE;

/* A kind of call that can fail. */
struct source {
	const char *what;
	int error; /* negative FI errno */
	void (*fail)(uint64_t n);
	bool (*stop)(void); /* true: it did */
	bool twice;	    /* two connections may suffer */
};

static void fail_allocation(uint64_t n)
{
	oom_fail((long)n - 1, false);
}

static void fail_two_allocations(uint64_t n)
{
	oom_fail_row((long)n - 1, 2);
}

static bool stop_allocation(void)
{
	return oom_stop();
}

static void fail_call(uint64_t n)
{
	fake_net_fail(FAKE_NET_CALL_ALL, n, -FI_ENOMEM);
}

static void break_call(uint64_t n)
{
	fake_net_fail(FAKE_NET_CALL_OPENS, n, -FI_EIO);
}

static bool stop_call(void)
{
	bool failed = fake_net_has_failed();

	fake_net_fail(0, 0, 0);
	return failed;
}

static const struct source allocations = {"allocation", -FI_ENOMEM, fail_allocation,
					  stop_allocation, false},
			   pairs = {"pair of allocations", -FI_ENOMEM, fail_two_allocations,
				    stop_allocation, true},
			   calls = {"call", -FI_ENOMEM, fail_call, stop_call, false},
			   broken_calls = {"broken call", -FI_EIO, break_call, stop_call, false};

/* Opening. Each step: 0, or the error of the call that failed. */

static void configure(const struct nth_scene *scene)
{
	verve_config.inline_size = scene->slabs ? 0 : 256;
	verve_config.eager_size = 1024;
	verve_config.window = 8;
	verve_config.rx_buffers = 16;
	verve_config.tx_size = 64;
	verve_config.max_conns = scene->conns;
	verve_config.connect_timeout = 5000;
	verve_config.transport_timeout = 500;
	verve_config.atomics = scene->device ? "device" : "target";
	verve_config.mr_cache = scene->kept ? "on" : scene->windows ? "strict" : "auto";
	fake_net_watch_allow(scene->kept || scene->windows);
}

static void start_world(uint64_t seed, const struct nth_scene *scene)
{
	struct fake_net_config config;

	fake_net_config_default(&config);
	config.seed = seed;
	config.hosts = NTH_ENDS;
	config.limits.mw = scene->windows ? 1000 : 0;
	config.limits.mw_peer = scene->for_peer;
	fake_net_start(&config);
}

static struct fi_info *find_info(const struct nth *nth, int end)
{
	struct fi_info *info;
	struct verve_addr addr;

	fake_net_host_addr((uint32_t)end, &addr);
	for (info = nth->list; info; info = info->next) {
		const struct sockaddr_in *in = info->src_addr;

		if (info->addr_format == FI_SOCKADDR_IN && in &&
		    in->sin_addr.s_addr == addr.in.sin_addr.s_addr)
			break;
	}
	return info;
}

static int open_fabric(struct nth *nth)
{
	struct fi_provider *prov = prov_once();
	struct fi_info *hints = fi_allocinfo();
	int ret;

	cr_assert_not_null(hints);
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_SOURCE |
		      FI_DIRECTED_RECV;
	if (nth->scene->events)
		hints->caps |= FI_RMA_EVENT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	if (!nth->scene->keys)
		hints->domain_attr->mr_mode |= FI_MR_PROV_KEY;
	if (nth->scene->automatic)
		hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	if (nth->scene->shared)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	configure(nth->scene);
	ret = prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &nth->list);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	for (int i = 0; i < NTH_ENDS; i++)
		cr_assert_not_null(find_info(nth, i));
	nth->list->fabric_attr->api_version = FI_VERSION(1, 17);
	ret = prov->fabric(nth->list->fabric_attr, &nth->fabric, NULL);
	if (!ret)
		nth->fabric->api_version = FI_VERSION(1, 17);
	return ret;
}

static int open_region(struct nth *nth, int index)
{
	struct nth_end *end = &nth->end[index];
	struct iovec iov[SEGMENTS];
	size_t cut = region_size / SEGMENTS / 8 * 8, count = nth->scene->keys ? SEGMENTS : 1;
	int ret;

	for (size_t i = 0; i < count; i++)
		iov[i] = (struct iovec){end->region + i * cut,
					i + 1 < count ? cut : region_size - i * cut};
	ret = fi_mr_regv(end->domain, iov, count, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0,
			 &end->mr, NULL);
	if (ret)
		end->mr = NULL;
	else
		end->key = fi_mr_key(end->mr);
	return ret;
}

static int open_queues(struct nth *nth, struct nth_end *end)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .size = 4};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
	struct fi_poll_attr poll = {0};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	int ret = fi_eq_open(nth->fabric, &eq, &end->eq, NULL);

	if (!ret)
		ret = fi_av_open(end->domain, &av, &end->av, NULL);
	if (!ret)
		ret = fi_cq_open(end->domain, &cq, &end->cq, NULL);
	if (!ret)
		ret = fi_cntr_open(end->domain, &cntr, &end->cntr, NULL);
	if (!ret)
		ret = fi_poll_open(end->domain, &poll, &end->poll);
	if (!ret)
		ret = fi_poll_add(end->poll, &end->cq->fid, 0);
	return ret;
}

static int open_contexts(struct nth *nth, struct nth_end *end, struct fi_info *info)
{
	int ret = fi_stx_context(end->domain, info->tx_attr, &end->stx, NULL);

	if (!ret && nth->scene->shared)
		ret = fi_srx_context(end->domain, info->rx_attr, &end->srx, NULL);
	return ret;
}

static int open_endpoint(struct nth_end *end, struct fi_info *info)
{
	int ret = fi_endpoint(end->domain, info, &end->ep, NULL);

	if (!ret)
		ret = fi_ep_bind(end->ep, &end->eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->stx->fid, 0);
	if (!ret && end->srx)
		ret = fi_ep_bind(end->ep, &end->srx->fid, 0);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->cntr->fid, FI_SEND | FI_RECV);
	if (!ret)
		ret = fi_enable(end->ep);
	return ret ? ret : fi_ep_alias(end->ep, &end->alias, 0);
}

/* All get to know one. */
static int introduce(struct nth *nth, int index)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	cr_assert_eq(fi_getname(&nth->end[index].ep->fid, &name, &len), 0);
	for (int i = 0; i < NTH_ENDS; i++)
		if (fi_av_insert(nth->end[i].av, &name, 1, &nth->end[i].addr[index], 0, NULL) != 1)
			return -FI_ENOMEM;
	return 0;
}

static int end_open(struct nth *nth, int index)
{
	struct fi_info *info = find_info(nth, index);
	struct nth_end *end = &nth->end[index];
	int ret;

	end->region = calloc(1, region_size);
	cr_assert_not_null(end->region);
	ret = fi_domain(nth->fabric, info, &end->domain, NULL);
	if (!ret)
		ret = open_region(nth, index);
	if (!ret)
		ret = open_queues(nth, end);
	if (!ret)
		ret = open_contexts(nth, end, info);
	return ret ? ret : open_endpoint(end, info);
}

static int open_all(struct nth *nth)
{
	int ret = open_fabric(nth);

	for (int i = 0; !ret && i < NTH_ENDS; i++)
		ret = end_open(nth, i);
	for (int i = 0; !ret && i < NTH_ENDS; i++)
		ret = introduce(nth, i);
	return ret;
}

static void close_fid(struct fid *fid)
{
	int ret = fid ? fi_close(fid) : 0;

	cr_assert_eq(ret, 0, "fi_close of class %zu: %s", fid->fclass, fi_strerror(-ret));
}

#define CLOSE(object)                                                                              \
	do {                                                                                       \
		close_fid((object) ? &(object)->fid : NULL);                                       \
		(object) = NULL;                                                                   \
	} while (0)

static void close_endpoint(struct nth_end *end)
{
	CLOSE(end->alias);
	CLOSE(end->ep);
}

static void close_all(struct nth *nth)
{
	for (int i = 0; i < NTH_ENDS; i++)
		close_endpoint(&nth->end[i]);
	nth_progress(nth);
	for (int i = 0; i < NTH_ENDS; i++) {
		struct nth_end *end = &nth->end[i];

		CLOSE(end->srx);
		CLOSE(end->stx);
		if (end->poll)
			fi_poll_del(end->poll, &end->cq->fid, 0); /* if it was added */
		CLOSE(end->poll);
		CLOSE(end->cntr);
		CLOSE(end->cq);
		CLOSE(end->av);
		CLOSE(end->eq);
		CLOSE(end->mr);
		CLOSE(end->domain);
		free(end->region);
		end->region = NULL;
	}
	CLOSE(nth->fabric);
	if (nth->list)
		fi_freeinfo(nth->list);
	nth->list = NULL;
}

/* The objects that a scene closes and opens. */

static void open_again(struct nth *nth, int end, int (*open)(struct nth *nth, int end))
{
	int ret = -FI_ENOMEM;

	for (int i = 0; ret && i < TRIES; i++) {
		ret = open(nth, end);
		cr_assert(!ret || (ret == -FI_ENOMEM && !nth->strict),
			  "%s, seed %lu, %s %lu fails: %s", nth->scene->name, nth->seed, nth->what,
			  nth->n, fi_strerror(-ret));
		nth_progress(nth);
	}
	cr_assert_eq(ret, 0);
}

void nth_region_close(struct nth *nth, int end)
{
	for (struct nth_request *request = nth->requests; request; request = request->next)
		request->may_fail |= !request->done && request->peer == end && request->slice;
	CLOSE(nth->end[end].mr);
}

void nth_region_open(struct nth *nth, int end)
{
	open_again(nth, end, open_region);
}

void nth_end_close(struct nth *nth, int end)
{
	for (struct nth_request *request = nth->requests; request; request = request->next)
		request->may_fail |=
			!request->done && (request->peer == end || request->end == end);
	close_endpoint(&nth->end[end]);
	nth_progress(nth);
}

static int open_endpoint_again(struct nth *nth, int end)
{
	int ret = open_endpoint(&nth->end[end], find_info(nth, end));

	if (!ret)
		ret = introduce(nth, end);
	if (ret)
		close_endpoint(&nth->end[end]);
	return ret;
}

void nth_end_open(struct nth *nth, int end)
{
	open_again(nth, end, open_endpoint_again);
}

/* Playing. */

/* Everybody has heard of everybody. */
static void greet(struct nth *nth)
{
	for (int i = 0; i < NTH_ENDS; i++)
		for (int j = 0; j < NTH_ENDS; j++)
			if (i != j)
				nth_recv(nth, i, j, 0, 100);
	for (int i = 0; i < NTH_ENDS; i++)
		for (int j = 0; j < NTH_ENDS; j++)
			if (i != j)
				nth_send(nth, i, j, 0, 100, 0);
	nth_finish(nth);
}

static void play(struct nth *nth)
{
	nth->scene->play(nth);
	nth_settle(nth);
}

static void open_well(struct nth *nth)
{
	int ret = open_all(nth);

	cr_assert_eq(ret, 0, "%s, seed %lu, after %s %lu failed: %s", nth->scene->name, nth->seed,
		     nth->what, nth->n, fi_strerror(-ret));
}

/* Opening everything, playing, and closing it, or playing alone. */
static void play_short(struct nth *nth, int error)
{
	int ret;

	if (!nth->scene->opening) {
		play(nth);
		return;
	}
	ret = open_all(nth);
	cr_assert(!ret || ret == -FI_ENOMEM || ret == error, "%s, seed %lu, %s %lu fails: %s",
		  nth->scene->name, nth->seed, nth->what, nth->n, fi_strerror(-ret));
	if (!ret) {
		play(nth);
		nth_finish(nth);
	}
	close_all(nth);
}

/* False: none was left to fail. */
static bool attempt(const struct nth_scene *scene, const struct source *source, uint64_t seed,
		    uint64_t n)
{
	struct nth nth = {.scene = scene, .what = source->what, .seed = seed, .n = n,
			  .harmed_max = source->twice ? 2 : 1};
	char open[256];
	bool failed;

	start_world(seed, scene);
	fake_net_on_pause(nth_progress, &nth);
	if (!scene->opening) {
		open_well(&nth);
		nth.strict = true;
		if (!scene->cold)
			greet(&nth);
	}
	nth.strict = false;
	source->fail(n);
	play_short(&nth, source->error);
	failed = source->stop();
	if (scene->opening)
		open_well(&nth);
	nth_finish(&nth);
	nth.strict = true;
	play(&nth);
	nth_finish(&nth);
	close_all(&nth);
	fake_net_on_pause(NULL, NULL);
	cr_assert_eq(fake_net_leaks(open, sizeof(open)), 0,
		     "%s, seed %lu, %s %lu fails: left open: %s", scene->name, seed, source->what,
		     n, open);
	return failed;
}

/* Up to the call that fails, every world from the same seed goes alike, so no call is left out. */
static void sweep(const struct nth_scene *scene, const struct source *source, uint64_t seed,
		  unsigned least)
{
	const char *one = getenv("VERVE_NTH");
	uint64_t n = 1;

	if (one) {
		attempt(scene, source, seed, strtoull(one, NULL, 0));
		return;
	}
	while (n < N_MAX && attempt(scene, source, seed, n))
		n++;
	cr_assert_lt(n, N_MAX, "%s never gets through", scene->name);
	cr_assert_geq(n - 1, least, "%s: only %lu times %s failed", scene->name, n - 1,
		      source->what);
	cr_log_info("%s, seed %lu: %lu times %s failed", scene->name, seed, n - 1, source->what);
	cr_assert(!__lsan_do_recoverable_leak_check || !__lsan_do_recoverable_leak_check(),
		  "%s: memory leaks when the nth %s fails", scene->name, source->what);
}

void nth_run(const struct nth_scene *scene)
{
	const char *one = getenv("VERVE_SEED");
	uint64_t first = one ? strtoull(one, NULL, 0) : 1, last = first;

	/* Opening hardly depends on it. */
	if (!one && !scene->opening)
		last = SEEDS;
	sim_log_reset(true);
	for (uint64_t seed = first; seed <= last; seed++) {
		sweep(scene, &allocations, seed, scene->allocations);
		sweep(scene, &pairs, seed, scene->allocations);
		sweep(scene, &calls, seed, scene->calls);
		if (scene->broken)
			sweep(scene, &broken_calls, seed, scene->broken);
	}
}
