/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The nth call of the device, the sockets or the threads fails, for every n from the first to the
 * last that two endpoints need to open, exchange a message, alone or behind something else, and close:
 * nothing leaks, nothing hangs, and the next attempt works.
 */
#include <criterion/criterion.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "sim.h"

struct fi_provider *fi_prov_ini(void);

enum { LEN = 100000, EAGER_LEN = 1000, CALLS_MAX = 1000, KEY = 77 };

/* What the two do. */
struct work {
	size_t len; /* of the message */
	enum { NOTHING, REFUSED_WRITE, WRITE, FETCH_ADD } first;
	bool app_key; /* the target's: asked for over the connection */
	bool device_atomics;
};

static const uint64_t patience = 120000000000; /* simulated ns */

struct end {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr; /* of target */
	uint64_t target, source, result;
	char *buf;
	int completions, errors;
};

struct pair {
	struct fi_info *list;
	struct fid_fabric *fabric;
	struct end end[2];
	const struct work *work;
};

static void close_fid(struct fid *fid)
{
	if (fid)
		cr_assert_eq(fi_close(fid), 0);
}

static void progress(void *arg)
{
	struct pair *pair = arg;
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};

	for (int i = 0; i < 2; i++) {
		struct end *end = &pair->end[i];
		ssize_t ret = end->cq ? fi_cq_read(end->cq, &entry, 1) : -FI_EAGAIN;

		if (ret == 1) {
			end->completions++;
		} else if (ret == -FI_EAVAIL) {
			cr_assert_eq(fi_cq_readerr(end->cq, &error, 0), 1);
			cr_assert_gt(error.err, 0);
			end->errors++;
		} else {
			cr_assert_eq(ret, -FI_EAGAIN);
		}
	}
}

static void pair_close(struct pair *pair)
{
	fake_net_on_pause(progress, pair);
	for (int i = 0; i < 2; i++) {
		struct end *end = &pair->end[i];

		close_fid(end->ep ? &end->ep->fid : NULL);
		end->ep = NULL;
		progress(pair);
	}
	fake_net_on_pause(NULL, NULL);
	for (int i = 0; i < 2; i++) {
		struct end *end = &pair->end[i];

		close_fid(end->mr ? &end->mr->fid : NULL);
		close_fid(end->cq ? &end->cq->fid : NULL);
		close_fid(end->av ? &end->av->fid : NULL);
		close_fid(end->domain ? &end->domain->fid : NULL);
		free(end->buf);
	}
	close_fid(pair->fabric ? &pair->fabric->fid : NULL);
	if (pair->list)
		fi_freeinfo(pair->list);
}

static int end_open(struct pair *pair, struct end *end, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
	struct fi_av_attr av_attr = {.type = FI_AV_MAP};
	uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	int ret = fi_domain(pair->fabric, info, &end->domain, NULL);

	end->buf = calloc(1, LEN);
	if (!ret)
		ret = fi_mr_reg(end->domain, &end->target, sizeof(end->target), access, 0, KEY, 0,
				&end->mr, NULL);
	if (!ret)
		ret = fi_av_open(end->domain, &av_attr, &end->av, NULL);
	if (!ret)
		ret = fi_cq_open(end->domain, &cq_attr, &end->cq, NULL);
	if (!ret)
		ret = fi_endpoint(end->domain, info, &end->ep, NULL);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV);
	return ret ? ret : fi_enable(end->ep);
}

static int pair_open(struct pair *pair)
{
	struct fi_provider *prov = fi_prov_ini();
	struct fi_info *info;
	int ret;

	ret = prov->getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &pair->list);
	if (ret)
		return ret;
	pair->list->fabric_attr->api_version = FI_VERSION(1, 17);
	ret = prov->fabric(pair->list->fabric_attr, &pair->fabric, NULL);
	if (ret)
		return ret;
	pair->fabric->api_version = FI_VERSION(1, 17);
	for (info = pair->list; info && info->addr_format != FI_SOCKADDR_IN; info = info->next)
		;
	cr_assert_not_null(info);
	if (pair->work->app_key)
		info->domain_attr->mr_mode &= ~FI_MR_PROV_KEY;
	ret = end_open(pair, &pair->end[0], info);
	return ret ? ret : end_open(pair, &pair->end[1], info);
}

static int begin(struct pair *pair, fi_addr_t addr)
{
	struct end *from = &pair->end[0], *to = &pair->end[1];
	uint64_t target = (uintptr_t)&to->target, key = fi_mr_key(to->mr);

	from->source = 5;
	switch (pair->work->first) {
	case REFUSED_WRITE:
		return (int)fi_write(from->ep, from->buf, 8, NULL, addr, 0, 12345, from);
	case WRITE:
		return (int)fi_write(from->ep, &from->source, 8, NULL, addr, target, key, from);
	case FETCH_ADD:
		return (int)fi_fetch_atomic(from->ep, &from->source, 1, NULL, &from->result, NULL, addr,
					    target, key, FI_UINT64, FI_SUM, from);
	default:
		return 0;
	}
}

static int exchange(struct pair *pair)
{
	size_t message = pair->work->len;
	int all = 1 + (pair->work->first != NOTHING), refused = pair->work->first == REFUSED_WRITE;
	struct end *from = &pair->end[0], *to = &pair->end[1];
	uint64_t end = fake_net_time() + patience;
	struct sockaddr_in name;
	size_t len = sizeof(name);
	fi_addr_t addr;
	int ret;

	ret = fi_getname(&to->ep->fid, &name, &len);
	if (ret)
		return ret;
	cr_assert_eq(fi_av_insert(from->av, &name, 1, &addr, 0, NULL), 1);
	memset(from->buf, 'x', message);
	ret = (int)fi_trecv(to->ep, to->buf, message, NULL, FI_ADDR_UNSPEC, 7, 0, to);
	if (!ret)
		ret = begin(pair, addr);
	if (!ret)
		ret = (int)fi_tsend(from->ep, from->buf, message, NULL, addr, 7, from);
	if (ret)
		return ret;
	while (from->completions + from->errors < all) {
		progress(pair);
		cr_assert_lt(fake_net_time(), end, "the send never completes");
		fake_net_advance(fake_net_next() == UINT64_MAX ? 1000000
							       : fake_net_next() - fake_net_time());
	}
	for (int i = 0; i < 100 && !to->completions; i++) {
		fake_net_advance(1000);
		progress(pair);
	}
	return from->errors > refused ? -FI_EIO : 0;
}

/* what: for a failure's message. */
static int attempt(const char *what, uint64_t n, const struct work *work)
{
	bool reaches = work->first == WRITE || work->first == FETCH_ADD;
	struct pair pair = {.work = work};
	char open[256];
	int ret = pair_open(&pair);

	if (!ret)
		ret = exchange(&pair);
	if (!ret) {
		cr_assert_eq(pair.end[0].completions, 1 + reaches);
		cr_assert_eq(pair.end[1].completions, 1);
		cr_assert_eq(pair.end[1].target, reaches ? 5 : 0);
		cr_assert_arr_eq(pair.end[1].buf, pair.end[0].buf, work->len);
	}
	pair_close(&pair);
	cr_assert_eq(fake_net_leaks(open, sizeof(open)), 0, "%s %lu: left open: %s", what, n, open);
	return ret;
}

static void sweep(uint32_t kinds, int error, const struct work *work)
{
	struct fake_net_config config;
	int failed = 0;

	fake_net_config_default(&config);
	verve_config.atomics = work->device_atomics ? "device" : "target";
	sim_log_reset(true);
	for (uint64_t n = 1; n < CALLS_MAX; n++) {
		config.seed = n;
		fake_net_start(&config);
		fake_net_fail(kinds, n, error);
		failed += attempt("with failing call", n, work) != 0;
		if (!fake_net_has_failed()) {
			cr_expect_gt(failed, 10, "only %d of %lu failures were felt", failed,
				     n - 1);
			return;
		}
		cr_assert_eq(attempt("after failed call", n, work), 0,
			     "after call %lu failed, the next attempt fails too", n);
	}
	cr_assert_fail("it never gets through");
}

Test(nth_call, no_memory)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM, &(struct work){.len = LEN});
}

Test(nth_call, other_error)
{
	sweep(FAKE_NET_CALL_OPENS, -FI_EIO, &(struct work){.len = LEN});
}

Test(nth_call, no_memory_to_replace_a_queue_pair)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM, &(struct work){.len = LEN, .first = REFUSED_WRITE});
}

Test(nth_call, eager)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM, &(struct work){.len = EAGER_LEN});
}

Test(nth_call, write)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM, &(struct work){.len = EAGER_LEN, .first = WRITE});
}

Test(nth_call, write_by_exported_key)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM,
	      &(struct work){.len = LEN, .first = WRITE, .app_key = true});
}

Test(nth_call, atomic)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM, &(struct work){.len = EAGER_LEN, .first = FETCH_ADD});
}

Test(nth_call, atomic_of_the_device)
{
	sweep(FAKE_NET_CALL_ALL, -FI_ENOMEM,
	      &(struct work){.len = EAGER_LEN, .first = FETCH_ADD, .device_atomics = true});
}
