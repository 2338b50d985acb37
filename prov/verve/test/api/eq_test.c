/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queue: events and errors in order, peeking, what each version of libfabric sees, waiting.
 */
#include "api/eq.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "../support/oom.h"
#include "fake_engine.h"

static struct fid_fabric *fabric;

static void setup(void)
{
	fabric = fake_fabric(FI_VERSION(1, 17));
}

static void teardown(void)
{
	oom_stop();
	cr_expect_eq(fake_fabric_references(), 0);
}

TestSuite(eq, .init = setup, .fini = teardown);

static struct fid_eq *open_eq(enum fi_wait_obj obj)
{
	struct fi_eq_attr attr = {.size = 16, .flags = FI_WRITE, .wait_obj = obj};
	struct fid_eq *eq;

	cr_assert_eq(fi_eq_open(fabric, &attr, &eq, &attr), 0);
	return eq;
}

static void close_eq(struct fid_eq *eq)
{
	cr_assert_eq(fi_close(&eq->fid), 0);
}

static void write_event(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry entry = {.context = eq, .data = data};

	cr_assert_eq(verve_eq_write_event(eq, FI_AV_COMPLETE, &entry, sizeof(entry)), 0);
}

static void write_error(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_err_entry entry = {.context = eq,
					.data = data,
					.err = FI_EINVAL,
					.prov_errno = 7,
					.err_data = &entry,
					.err_data_size = 5};

	cr_assert_eq(verve_eq_write_error(eq, &entry), 0);
}

static void read_event(struct fid_eq *eq, uint64_t data, uint64_t flags)
{
	struct fi_eq_entry entry = {0};
	uint32_t event = 99;

	cr_assert_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), flags), sizeof(entry));
	cr_expect_eq(event, FI_AV_COMPLETE);
	cr_expect_eq(entry.context, eq);
	cr_expect_eq(entry.data, data);
}

Test(eq, every_operation_is_there)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);
	void *const *op = (void *const *)&eq->ops->read;
	void *const *fid_op = (void *const *)&eq->fid.ops->close;

	cr_expect_eq(eq->fid.fclass, FI_CLASS_EQ);
	cr_expect_not_null(eq->fid.context);
	for (size_t i = 0; i < (sizeof(*eq->ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(op[i]);
	for (size_t i = 0; i < (sizeof(*eq->fid.ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(fid_op[i]);
	close_eq(eq);
}

Test(eq, bad_attributes_are_refused)
{
	struct fi_eq_attr bad[] = {
		{.flags = FI_PEEK},
		{.flags = FI_PEER},
		{.wait_obj = (enum fi_wait_obj)99},
		{.wait_obj = FI_WAIT_SET},
	};
	const int error[] = {-FI_EBADFLAGS, -FI_EINVAL, -FI_EINVAL, -FI_ENOSYS};
	struct fid_eq *eq;

	cr_expect_eq(fi_eq_open(fabric, NULL, &eq, NULL), -FI_EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(fi_eq_open(fabric, &bad[i], &eq, NULL), error[i], "case %zu", i);
	oom_fail(0, false);
	cr_expect_eq(fi_eq_open(fabric, &(struct fi_eq_attr){0}, &eq, NULL), -FI_ENOMEM);
}

Test(eq, stays_open_while_it_is_used)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);

	cr_expect_eq(fake_fabric_references(), 1);
	verve_eq_get(eq);
	cr_expect_eq(fi_close(&eq->fid), -FI_EBUSY);
	verve_eq_put(eq);
	write_event(eq, 1);
	write_error(eq, 2);
	close_eq(eq);
}

/* More events than the size that was asked for: the size is a hint. */
Test(eq, events_come_in_order_and_as_often_as_they_are_peeked_at)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);
	struct fi_eq_entry entry;
	uint32_t event;

	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	for (uint64_t n = 0; n < 1000; n++)
		write_event(eq, n);
	for (uint64_t n = 0; n < 1000; n++) {
		read_event(eq, n, FI_PEEK);
		read_event(eq, n, FI_PEEK);
		read_event(eq, n, 0);
	}
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK), -FI_EAGAIN);
	close_eq(eq);
}

Test(eq, buffer_that_is_too_small_loses_nothing)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);
	struct fi_eq_entry entry;
	uint32_t event;

	write_event(eq, 3);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_MORE), -FI_EBADFLAGS);
	read_event(eq, 3, 0);
	close_eq(eq);
}

Test(eq, error_stands_between_what_came_before_and_after)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry;
	uint32_t event;

	write_event(eq, 1);
	write_error(eq, 2);
	write_event(eq, 3);
	cr_expect_eq(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
	read_event(eq, 1, 0);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	cr_expect_eq(fi_eq_readerr(eq, &error, FI_PEEK), sizeof(error));
	cr_expect_eq(fi_eq_readerr(eq, &error, 0), sizeof(error));
	cr_expect_eq(error.context, eq);
	cr_expect_eq(error.data, 2);
	cr_expect_eq(error.err, FI_EINVAL);
	cr_expect_eq(error.prov_errno, 7);
	cr_expect_null(error.err_data);
	cr_expect_eq(error.err_data_size, 0);
	read_event(eq, 3, 0);
	close_eq(eq);
}

Test(eq, error_entry_before_1_5_has_no_err_data_size)
{
	struct fi_eq_err_entry error;
	struct fid_eq *eq;

	fabric = fake_fabric(FI_VERSION(1, 4));
	eq = open_eq(FI_WAIT_NONE);
	write_error(eq, 1);
	memset(&error, 0x5a, sizeof(error));
	cr_expect_eq(fi_eq_readerr(eq, &error, 0), 40);
	cr_expect_eq(error.err, FI_EINVAL);
	cr_expect_eq(error.err_data_size, 0x5a5a5a5a5a5a5a5a);
	close_eq(eq);
}

Test(eq, application_writes_only_if_it_said_so)
{
	struct fi_eq_attr silent = {0};
	struct fi_eq_entry entry = {.data = 4};
	struct fid_eq *eq;
	uint32_t event;

	cr_assert_eq(fi_eq_open(fabric, &silent, &eq, NULL), 0);
	cr_expect_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_ENOSYS);
	close_eq(eq);
	eq = open_eq(FI_WAIT_NONE);
	cr_expect_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), FI_MORE), -FI_EBADFLAGS);
	cr_expect_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	cr_expect_eq(fi_eq_write(eq, FI_SHUTDOWN, NULL, 0, 0), 0);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	cr_expect_eq(event, FI_NOTIFY);
	cr_expect_eq(entry.data, 4);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), 0);
	cr_expect_eq(event, FI_SHUTDOWN);
	close_eq(eq);
}

Test(eq, writer_is_told_when_there_is_no_memory)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry = {0};

	oom_fail(0, true);
	cr_expect_eq(verve_eq_write_event(eq, FI_NOTIFY, &entry, sizeof(entry)), -FI_ENOMEM);
	cr_expect_eq(verve_eq_write_error(eq, &error), -FI_ENOMEM);
	cr_expect_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_ENOMEM);
	oom_stop();
	write_event(eq, 1);
	read_event(eq, 1, 0);
	close_eq(eq);
}

Test(eq, strerror_says_what_the_number_means)
{
	struct fid_eq *eq = open_eq(FI_WAIT_NONE);
	char buf[64], small[4];

	cr_expect_str_eq(fi_eq_strerror(eq, FI_EINVAL, NULL, NULL, 0), fi_strerror(FI_EINVAL));
	cr_expect_eq(fi_eq_strerror(eq, FI_EINVAL, NULL, buf, sizeof(buf)), buf);
	cr_expect_str_eq(buf, fi_strerror(FI_EINVAL));
	fi_eq_strerror(eq, FI_EINVAL, NULL, small, sizeof(small));
	cr_expect_eq(strlen(small), 3);
	close_eq(eq);
}

Test(eq, sread_returns_what_is_there_or_runs_out_of_time)
{
	struct fid_eq *eq = open_eq(FI_WAIT_UNSPEC), *none = open_eq(FI_WAIT_NONE);
	struct fi_eq_entry entry;
	uint32_t event;

	cr_expect_eq(fi_eq_sread(none, &event, &entry, sizeof(entry), 0, 0), -FI_ENOSYS);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 110, 0), -FI_EAGAIN);
	write_event(eq, 5);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, 1, -1, 0), -FI_ETOOSMALL);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, FI_PEEK), sizeof(entry));
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	cr_expect_eq(entry.data, 5);
	write_error(eq, 1);
	cr_expect_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), -FI_EAVAIL);
	close_eq(none);
	close_eq(eq);
}

Test(eq, trywait_tells_when_to_poll)
{
	struct fid_eq *eq = open_eq(FI_WAIT_FD);
	struct pollfd pfd = {.events = POLLIN};
	struct fid *fid = &eq->fid;

	cr_assert_eq(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	write_event(eq, 1);
	cr_assert_eq(poll(&pfd, 1, 0), 1);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), -FI_EAGAIN);
	read_event(eq, 1, 0);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	close_eq(eq);
}

enum { READERS = 3, EVENTS = 3000 };

static void *reader(void *arg)
{
	struct fi_eq_entry entry;
	uint32_t event;

	for (int i = 0; i < EVENTS; i++)
		cr_assert_eq(fi_eq_sread(arg, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	return NULL;
}

Test(eq, several_readers_all_get_their_share, .timeout = 300)
{
	struct fid_eq *eq = open_eq(FI_WAIT_UNSPEC);
	pthread_t thread[READERS];

	for (int i = 0; i < READERS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, reader, eq), 0);
	for (uint64_t n = 0; n < READERS * EVENTS; n++) {
		write_event(eq, n);
		if (n % 32 == 0)
			sched_yield();
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	close_eq(eq);
}
