/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rdm_eq: event queues: write, read, peek, waiting and what they refuse. One process. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/node.h"
#include "common/suite.h"

static struct fid_eq *open_eq(struct node *node, enum fi_wait_obj wait_obj)
{
	struct fi_eq_attr attr = { .size = 16, .flags = FI_WRITE, .wait_obj = wait_obj };
	struct fid_eq *eq = NULL;

	REQUIRE_RET(fi_eq_open(node->fabric, &attr, &eq, NULL), 0);
	return eq;
}

static void write_event(struct fid_eq *eq, struct node *node, uint64_t data)
{
	struct fi_eq_entry entry = { .fid = &node->domain->fid, .context = node, .data = data };

	CHECK_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
}

static void check_event(struct node *node, const struct fi_eq_entry *entry, uint32_t event,
			uint64_t data)
{
	CHECK_EQ(event, FI_NOTIFY);
	CHECK(entry->fid == &node->domain->fid);
	CHECK(entry->context == node);
	CHECK_EQ(entry->data, data);
}

static void run_order(struct env *env)
{
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct node node;
	uint32_t event = 0;

	node_open(&node, env, NULL);
	eq = open_eq(&node, FI_WAIT_UNSPEC);
	CHECK_RET(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	for (uint64_t i = 0; i < 8; i++)
		write_event(eq, &node, i);
	for (uint64_t i = 0; i < 8; i++) {
		memset(&entry, 0, sizeof(entry));
		event = 0;
		CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
		check_event(&node, &entry, event, i);
		memset(&entry, 0, sizeof(entry));
		CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
		check_event(&node, &entry, event, i);
	}
	CHECK_RET(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK), -FI_EAGAIN);
	CHECK_RET(fi_close(&eq->fid), 0);
	node_close(&node);
}

/* More events than the size asked for: a minimum, not a cap. */
static void run_many(struct env *env)
{
	enum { COUNT = 1000 };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct node node;
	uint32_t event;

	node_open(&node, env, NULL);
	eq = open_eq(&node, FI_WAIT_UNSPEC);
	for (uint64_t i = 0; i < COUNT; i++)
		write_event(eq, &node, i);
	for (uint64_t i = 0; i < COUNT; i++) {
		REQUIRE(fi_eq_read(eq, &event, &entry, sizeof(entry), 0) == sizeof(entry));
		CHECK_EQ(entry.data, i);
	}
	CHECK_RET(fi_close(&eq->fid), 0);
	node_close(&node);
}

struct writer {
	struct fid_eq *eq;
	struct node *node;
};

static void *write_later(void *arg)
{
	struct writer *writer = arg;

	usleep(50000);
	write_event(writer->eq, writer->node, 77);
	return NULL;
}

static void run_sread(struct env *env)
{
	struct fi_eq_entry entry;
	struct writer writer;
	struct node node;
	pthread_t thread;
	uint32_t event;
	uint64_t start;

	node_open(&node, env, NULL);
	writer = (struct writer){ open_eq(&node, FI_WAIT_UNSPEC), &node };
	start = clock_now();
	CHECK_RET(fi_eq_sread(writer.eq, &event, &entry, sizeof(entry), 100, 0), -FI_EAGAIN);
	CHECK(clock_now() - start >= 99000000);
	REQUIRE(!pthread_create(&thread, NULL, write_later, &writer));
	CHECK_EQ(fi_eq_sread(writer.eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	pthread_join(thread, NULL);
	check_event(&node, &entry, event, 77);
	CHECK_RET(fi_close(&writer.eq->fid), 0);
	node_close(&node);
}

static void run_fd(struct env *env)
{
	struct pollfd pfd = { .fd = -1, .events = POLLIN };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct fid *fid;
	struct node node;
	uint32_t event;

	node_open(&node, env, NULL);
	eq = open_eq(&node, FI_WAIT_FD);
	fid = &eq->fid;
	REQUIRE_RET(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	CHECK_RET(fi_trywait(node.fabric, &fid, 1), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	write_event(eq, &node, 5);
	CHECK_EQ(poll(&pfd, 1, 1000), 1);
	CHECK_RET(fi_trywait(node.fabric, &fid, 1), -FI_EAGAIN);
	CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	CHECK_RET(fi_trywait(node.fabric, &fid, 1), 0);
	CHECK_EQ(poll(&pfd, 1, 0), 0);
	CHECK_RET(fi_close(&eq->fid), 0);
	node_close(&node);
}

static void run_errors(struct env *env)
{
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	char text[256] = "";
	struct fid_eq *eq;
	struct node node;
	uint32_t event;

	node_open(&node, env, NULL);
	eq = open_eq(&node, FI_WAIT_UNSPEC);
	CHECK_RET(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
	CHECK(fi_eq_strerror(eq, FI_EINVAL, NULL, text, sizeof(text)));
	write_event(eq, &node, 1);
	CHECK_RET(fi_eq_read(eq, &event, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
	/* It was not consumed. */
	CHECK_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	CHECK_RET(fi_close(&eq->fid), 0);
	node_close(&node);
}

/* Writing needs FI_WRITE; waiting needs a wait object. */
static void run_bad_input(struct env *env)
{
	struct fi_eq_attr plain = { .wait_obj = FI_WAIT_NONE };
	struct fi_eq_attr bad_wait = { .wait_obj = (enum fi_wait_obj)99 };
	struct fi_eq_entry entry = { 0 };
	struct fid_eq *eq;
	struct node node;
	uint32_t event;

	node_open(&node, env, NULL);
	CHECK_ERROR(fi_eq_open(node.fabric, &bad_wait, &eq, NULL));
	REQUIRE_RET(fi_eq_open(node.fabric, &plain, &eq, NULL), 0);
	CHECK_ERROR(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0));
	CHECK_ERROR(fi_eq_sread(eq, &event, &entry, sizeof(entry), 10, 0));
	CHECK_RET(fi_close(&eq->fid), 0);
	node_close(&node);
}

static const struct suite_case cases[] = {
	{ "order", FI_MSG, run_order },
	{ "many", FI_MSG, run_many },
	{ "sread", FI_MSG, run_sread },
	{ "fd", FI_MSG, run_fd },
	{ "errors", FI_MSG, run_errors },
	{ "bad_input", FI_MSG, run_bad_input },
};

int main(int argc, char **argv)
{
	static const struct suite suite = {
		.usage = { "rdm_eq", "Event queues.", false },
		.cases = cases,
		.count = sizeof(cases) / sizeof(*cases),
	};

	return suite_main(&suite, argc, argv);
}
