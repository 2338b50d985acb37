/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fixture of the engine's tests. */
#include "ends.h"

#include <criterion/criterion.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "../support/fake_net.h"
#include "base/config.h"
#include "base/log.h"
#include "msg/recv.h"
#include "msg/send.h"
#include "net/device.h"
#include "net/sys.h"

static struct fi_provider provider = {.name = "verve"};
struct end a, b;
static char out[ROOM], in[ROOM];

void end_prepare(struct end *end, uint32_t host)
{
	struct verve_net_port *list;
	size_t count;

	cr_assert_eq(verve_net_port_list(&list, &count), 0);
	cr_assert_eq(verve_net_device_open(list[host].device, 1, NULL, &end->dev), 0);
	verve_net_port_list_free(list, count);
	verve_addrvec_init(&end->addrvec);
	verve_mr_cache_init(&end->mr_cache, end->dev);
	cr_assert_eq(verve_comp_queue_init(&end->tx_queue, 64, false), 0);
	cr_assert_eq(verve_comp_queue_init(&end->rx_queue, 64, false), 0);
	end->xport = (struct verve_xport_attr){
		.dev = end->dev,
		.addrvec = &end->addrvec,
		.mr_cache = &end->mr_cache,
		.sink = {.tx_queue = &end->tx_queue, .rx_queue = &end->rx_queue},
		.tx_size = 64,
		.inline_size = 128,
		.eager_size = EAGER,
		.window = 4,
		.min_multi_recv = 64,
		.keepalive = TRANSPORT_MS * ms,
	};
	end->attr.xport = &end->xport;
	fake_net_host_addr(host, &end->attr.addr);
}

void open_end(struct end *end)
{
	cr_assert_eq(verve_engine_open(&end->attr, &end->engine), 0);
	verve_engine_start(end->engine);
}

void close_end(struct end *end)
{
	verve_engine_stop(end->engine);
	verve_engine_close(end->engine);
	end->engine = NULL;
}

void end_release(struct end *end)
{
	if (end->engine)
		close_end(end);
	verve_comp_queue_fini(&end->tx_queue);
	verve_comp_queue_fini(&end->rx_queue);
	verve_mr_cache_fini(&end->mr_cache);
	verve_addrvec_fini(&end->addrvec);
	verve_net_device_close(end->dev);
}

bool end_is_free(struct end *end)
{
	struct verve_lock *lock = (struct verve_lock *)verve_engine_lock_of(end->engine);
	bool locked = verve_lock_try(lock);

	if (locked)
		verve_lock_release(lock);
	return locked;
}

void progress(void *arg)
{
	(void)arg;
	if (a.engine)
		verve_engine_progress(a.engine);
	if (b.engine)
		verve_engine_progress(b.engine);
}

void ends_setup(void)
{
	verve_log_provider = &provider;
	verve_config.connect_timeout = CONNECT_MS;
	verve_config.transport_timeout = TRANSPORT_MS;
	memset(out, 'x', sizeof(out));
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	end_prepare(&a, 0);
	end_prepare(&b, 1);
	fake_net_on_pause(progress, NULL);
}

void ends_teardown(void)
{
	end_release(&a);
	end_release(&b);
	fake_net_on_pause(NULL, NULL);
	cr_expect_eq(fake_net_leaks(NULL, 0), 0);
}

void open_both(void)
{
	open_end(&a);
	open_end(&b);
}

void run(uint64_t time)
{
	uint64_t end = fake_net_time() + time;

	while (fake_net_time() < end)
		verve_net_pause();
}

uint64_t addr_of(struct end *from, const struct end *to)
{
	const struct verve_addr *name = verve_engine_addr(to->engine);
	uint64_t fi_addr = verve_addrvec_find(&from->addrvec, name);

	if (fi_addr == UINT64_MAX)
		cr_assert_eq(verve_addrvec_insert(&from->addrvec, name, &fi_addr), 0);
	return fi_addr;
}

uint64_t b_addr(void)
{
	return addr_of(&a, &b);
}

int send_from(struct end *from, uint64_t addr, size_t len, uint32_t flags)
{
	struct iovec iov = {out, len};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = addr, .flags = flags | VERVE_OP_NOTIFY};
	int ret = verve_send(verve_engine_lock(from->engine), &request);

	verve_engine_unlock(from->engine);
	return ret;
}

int send_to(uint64_t addr, size_t len, uint32_t flags)
{
	return send_from(&a, addr, len, flags);
}

int try_recv(struct end *end)
{
	struct iovec iov = {in, ROOM};
	struct verve_request request = {
		.iov = &iov, .iov_count = 1, .addr = UINT64_MAX, .flags = VERVE_OP_NOTIFY};
	int ret = verve_recv(verve_engine_lock(end->engine), &request);

	verve_engine_unlock(end->engine);
	return ret;
}

void recv_any(struct end *end)
{
	cr_assert_eq(try_recv(end), 0);
}

void expect_len(struct verve_comp_queue *queue, size_t len)
{
	struct verve_comp comp;

	cr_assert_eq(verve_comp_queue_read(queue, &comp, 1), 1);
	cr_expect_eq(comp.len, len);
}

void expect_failure(struct verve_comp_queue *queue, int err, const char *text)
{
	struct verve_comp_error error;

	cr_assert_eq(verve_comp_queue_read_error(queue, &error), 0);
	cr_expect_eq(error.err, err, "%s", error.reason);
	cr_expect_not_null(strstr(error.reason, text), "%s", error.reason);
}

void expect_error(struct verve_comp_queue *queue, int err)
{
	expect_failure(queue, err, "");
}
