/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Enabling and closing an endpoint while another thread polls its shared receive context and closes
 * regions: peers must hear of each key that ends. ep_test.c and close_test.c have the rest. The
 * program is linked with --wrap for each __wrap_ function: there the other thread comes in.
 */
#include "ep_pair.h"

#include <pthread.h>

#include "api/domain.h"
#include "api/srx.h"
#include "engine/engine.h"

enum { KEY = 5, LEN = 64, LONG = 300000, PORT = 7777 };

static struct ep_pair pair; /* a is the peer, b has the shared receive context */
static struct fid_ep *srx;
static struct fid_mr *mr;
static char from[LEN], old[LEN], new[LEN];
static pthread_mutex_t *interrupted; /* the other thread comes before this lock; NULL: no more */

static void reg(void *buf)
{
	cr_assert_eq(fi_mr_reg(pair.fix.domain, buf, LEN, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL),
		     0);
}

static void setup(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct sockaddr_in name;

	memset(from, 'x', LEN);
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	pair.fix.info->domain_attr->mr_mode = 0; /* the application chooses keys */
	fixture_open_domain(&pair.fix);
	ep_side_open(&pair, &pair.a);
	cr_assert_eq(fi_srx_context(pair.fix.domain, pair.fix.info->rx_attr, &srx, NULL), 0);
	cr_assert_eq(fi_cq_open(pair.fix.domain, &cq_attr, &pair.b.cq, NULL), 0);
	cr_assert_eq(fi_av_open(pair.fix.domain, &av_attr, &pair.b.av, NULL), 0);
	pair.fix.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	cr_assert_eq(fi_endpoint(pair.fix.domain, pair.fix.info, &pair.b.ep, NULL), 0);
	cr_assert_eq(fi_ep_bind(pair.b.ep, &pair.b.av->fid, 0), 0);
	cr_assert_eq(fi_ep_bind(pair.b.ep, &pair.b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	cr_assert_eq(fi_ep_bind(pair.b.ep, &srx->fid, 0), 0);
	/* The peer knows the name before the endpoint is enabled. */
	name = *(struct sockaddr_in *)pair.fix.info->src_addr;
	name.sin_port = htons(PORT);
	cr_assert_eq(fi_setname(&pair.b.ep->fid, &name, sizeof(name)), 0);
	cr_assert_eq(fi_av_insert(pair.a.av, &name, 1, &pair.a.peer, 0, NULL), 1);
	reg(old);
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&mr->fid), 0);
	if (pair.b.ep)
		cr_expect_eq(fi_close(&pair.b.ep->fid), 0);
	cr_expect_eq(fi_close(&pair.b.av->fid), 0);
	cr_expect_eq(fi_close(&pair.b.cq->fid), 0);
	cr_expect_eq(fi_close(&srx->fid), 0);
	ep_side_close(&pair.a);
	fixture_fini(&pair.fix);
}

TestSuite(ep_open, .init = setup, .fini = teardown);

static void start_write(void)
{
	cr_assert_eq(fi_write(pair.a.ep, from, LEN, NULL, pair.a.peer, 0, KEY, NULL), 0);
}

/* The memory that the key names is another one from now on. */
static void change_region(void)
{
	cr_assert_eq(fi_close(&mr->fid), 0);
	reg(new);
}

/* Polls the context, as a peek does, while the peer writes; then changes the region. */
static void other_thread(void)
{
	for (int i = 0; i < 200 && !old[0]; i++) {
		verve_engine_progress(verve_srx_from_fid(&srx->fid)->ep.engine);
		fi_cq_read(pair.a.cq, NULL, 0);
		fake_net_advance(1000000);
	}
	change_region();
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (mutex == interrupted) {
		interrupted = NULL;
		other_thread();
	}
	return __real_pthread_mutex_lock(mutex);
}

Test(ep_open, key_that_ends_while_an_endpoint_is_enabled_is_revoked)
{
	struct verve_domain *domain = verve_domain_from_fid(&pair.fix.domain->fid);

	start_write();
	interrupted = &domain->engine_lock; /* the new engine is about to be listed */
	cr_assert_eq(fi_enable(pair.b.ep), 0);
	cr_assert_null(interrupted);
	ep_pair_comp(&pair, &pair.a);
	memset(new, 0, LEN);
	start_write();
	ep_pair_comp(&pair, &pair.a);
	cr_expect_eq(memcmp(new, from, LEN), 0);
}

static char sent[LONG], received[LONG];
static ssize_t written; /* completions of the peer's write while b closes, or an error */

static void while_closing(void *arg)
{
	enum { CHANGES, WRITES = 100 }; /* the peer may hear of the change before it writes */
	static int pauses;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	(void)arg;
	if (pauses == CHANGES)
		change_region();
	if (pauses++ == WRITES)
		start_write();
	ret = fi_cq_read(pair.a.cq, &entry, 1);
	if (written || ret == -FI_EAGAIN)
		return;
	written = ret;
	cr_assert_eq(fi_recv(pair.a.ep, received, LONG, NULL, FI_ADDR_UNSPEC, NULL), 0);
}

/* The endpoint waits for a receive of the peer, which goes on using the key. */
Test(ep_open, key_that_ends_while_an_endpoint_closes_is_revoked)
{
	cr_assert_eq(fi_enable(pair.b.ep), 0);
	ep_side_insert(&pair.b, &pair.a);
	start_write();
	ep_pair_comp(&pair, &pair.a);
	memset(sent, 'y', LONG);
	cr_assert_eq(fi_send(pair.b.ep, sent, LONG, NULL, pair.b.peer, NULL), 0);
	fake_net_on_pause(while_closing, NULL);
	cr_assert_eq(fi_close(&pair.b.ep->fid), 0);
	fake_net_on_pause(NULL, NULL);
	pair.b.ep = NULL;
	cr_expect_eq(written, 1);
	cr_expect_eq(memcmp(new, from, LEN), 0);
	cr_expect_eq(memcmp(received, sent, LONG), 0);
}
