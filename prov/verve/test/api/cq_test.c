/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queue as libfabric sees it: formats, errors for every version, progress, waiting. */
#include "api/cq.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <string.h>

#include "../support/oom.h"
#include "fake_engine.h"

static struct fid_domain *domain;

static void setup(void)
{
	domain = fake_domain(FI_VERSION(1, 17), FI_THREAD_SAFE);
}

static void teardown(void)
{
	oom_stop();
	cr_expect_eq(fake_domain_references(), 0);
}

TestSuite(cq, .init = setup, .fini = teardown);

static struct fid_cq *open_attr(struct fi_cq_attr attr)
{
	struct fid_cq *cq;

	cr_assert_eq(fi_cq_open(domain, &attr, &cq, &attr), 0);
	return cq;
}

static struct fid_cq *open_cq(enum fi_cq_format format, enum fi_wait_obj obj)
{
	return open_attr((struct fi_cq_attr){.size = 8, .format = format, .wait_obj = obj});
}

static void close_cq(struct fid_cq *cq)
{
	cr_assert_eq(fi_close(&cq->fid), 0);
}

static struct verve_comp_queue *queue_of(struct fid_cq *cq)
{
	return &verve_cq_from_fid(&cq->fid)->queue;
}

static struct verve_comp comp_of(uintptr_t n)
{
	return (struct verve_comp){
		.context = (void *)n,
		.flags = FI_RECV | FI_TAGGED,
		.len = n + 2,
		.buf = (void *)(n + 3),
		.data = n + 4,
		.tag = n + 5,
		.src = n + 6,
	};
}

static void put(void *arg, uintptr_t n)
{
	struct verve_comp comp = comp_of(n);

	verve_comp_queue_write(queue_of(arg), &comp);
}

static void put_error(struct fid_cq *cq, const char *reason)
{
	struct verve_comp_error error = {
		.comp = comp_of(1), .olen = 7, .err = FI_ENOTCONN, .prov_errno = 9};

	strcpy(error.reason, reason);
	verve_comp_queue_write_error(queue_of(cq), &error);
}

Test(cq, every_operation_is_there)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	void *const *op = (void *const *)&cq->ops->read;
	void *const *fid_op = (void *const *)&cq->fid.ops->close;

	cr_expect_eq(cq->fid.fclass, FI_CLASS_CQ);
	cr_expect_not_null(cq->fid.context);
	cr_expect_eq(cq->ops->size, sizeof(*cq->ops));
	for (size_t i = 0; i < (sizeof(*cq->ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(op[i]);
	for (size_t i = 0; i < (sizeof(*cq->fid.ops) - sizeof(size_t)) / sizeof(void *); i++)
		cr_expect_not_null(fid_op[i]);
	cr_expect_eq(fi_control(&cq->fid, FI_ENABLE, NULL), -FI_ENOSYS);
	close_cq(cq);
}

Test(cq, bad_attributes_are_refused)
{
	struct fi_cq_attr bad[] = {
		{.format = (enum fi_cq_format)99},
		{.flags = FI_PEEK},
		{.flags = FI_PEER},
		{.wait_obj = (enum fi_wait_obj)99},
		{.wait_obj = FI_WAIT_SET},
		{.wait_obj = FI_WAIT_MUTEX_COND},
		{.wait_obj = FI_WAIT_FD, .wait_cond = (enum fi_cq_wait_cond)99},
		{.size = SIZE_MAX},
		{.flags = FI_AFFINITY, .signaling_vector = -1},
		{.flags = FI_AFFINITY, .signaling_vector = 1 << 20},
	};
	const int error[] = {-FI_EINVAL, -FI_EBADFLAGS, -FI_EINVAL, -FI_EINVAL, -FI_ENOSYS,
			     -FI_ENOSYS, -FI_EINVAL,	-FI_ENOMEM, -FI_EINVAL, -FI_EINVAL};
	struct fid_cq *cq;

	cr_expect_eq(fi_cq_open(domain, NULL, &cq, NULL), -FI_EINVAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(fi_cq_open(domain, &bad[i], &cq, NULL), error[i], "case %zu", i);
}

Test(cq, hints_and_ignored_fields_are_accepted)
{
	close_cq(open_attr((struct fi_cq_attr){.flags = FI_AFFINITY, .signaling_vector = 0}));
	close_cq(open_attr((struct fi_cq_attr){.wait_cond = (enum fi_cq_wait_cond)99}));
}

Test(cq, open_without_memory_leaves_nothing)
{
	for (long nth = 0; nth < 3; nth++) {
		struct fi_cq_attr attr = {.wait_obj = FI_WAIT_FD};
		struct fid_cq *cq;

		oom_fail(nth, false);
		cr_expect_eq(fi_cq_open(domain, &attr, &cq, NULL), -FI_ENOMEM);
		cr_expect_eq(oom_stop(), 1);
		cr_expect_eq(fake_domain_references(), 0);
	}
}

/* Reads more entries than are copied at a time, into a buffer of exactly their size. */
static void check_format(enum fi_cq_format format, size_t size)
{
	enum { COUNT = 50 };
	unsigned char buf[COUNT * sizeof(struct fi_cq_tagged_entry) + 1];
	struct fid_cq *cq = open_cq(format, FI_WAIT_NONE);
	struct fi_cq_tagged_entry entry;

	for (uintptr_t n = 0; n < COUNT; n++)
		put(cq, n);
	memset(buf, 0x5a, sizeof(buf));
	cr_assert_eq(fi_cq_read(cq, buf, COUNT), COUNT);
	cr_assert_eq(buf[COUNT * size], 0x5a);
	for (uintptr_t n = 0; n < COUNT; n++) {
		const struct verve_comp comp = comp_of(n);

		memcpy(&entry, &comp, sizeof(entry));
		memcpy(&entry, buf + n * size, size);
		cr_assert_eq(entry.op_context, comp.context);
		cr_assert_eq(entry.flags, comp.flags);
		cr_assert_eq(entry.len, comp.len);
		cr_assert_eq(entry.buf, comp.buf);
		cr_assert_eq(entry.data, comp.data);
		cr_assert_eq(entry.tag, comp.tag);
	}
	cr_assert_eq(fi_cq_read(cq, buf, COUNT), -FI_EAGAIN);
	close_cq(cq);
}

Test(cq, every_format_has_its_fields)
{
	check_format(FI_CQ_FORMAT_UNSPEC, sizeof(struct fi_cq_entry));
	check_format(FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry));
	check_format(FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry));
	check_format(FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry));
	check_format(FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry));
}

Test(cq, readfrom_names_the_senders)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE);
	struct verve_comp unknown = comp_of(0);
	struct fi_cq_entry entry[40];
	fi_addr_t src[40];

	for (uintptr_t n = 0; n < 30; n++)
		put(cq, n);
	unknown.src = UINT64_MAX;
	verve_comp_queue_write(queue_of(cq), &unknown);
	cr_assert_eq(fi_cq_readfrom(cq, entry, 40, src), 31);
	for (uintptr_t n = 0; n < 30; n++)
		cr_expect_eq(src[n], n + 6);
	cr_expect_eq(src[30], FI_ADDR_NOTAVAIL);
	put(cq, 0);
	cr_assert_eq(fi_cq_readfrom(cq, entry, 1, NULL), 1);
	close_cq(cq);
}

Test(cq, error_stands_between_what_came_before_and_after)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE);
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry entry[40];

	for (uintptr_t n = 0; n < 20; n++)
		put(cq, n);
	put_error(cq, "");
	put(cq, 20);
	cr_expect_eq(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
	cr_expect_eq(fi_cq_read(cq, entry, 40), 20);
	cr_expect_eq(fi_cq_read(cq, entry, 40), -FI_EAVAIL);
	cr_expect_eq(fi_cq_read(cq, NULL, 0), 0);
	cr_expect_eq(fi_cq_readerr(cq, &error, 0), 1);
	cr_expect_eq(error.err, FI_ENOTCONN);
	cr_expect_eq(error.prov_errno, 9);
	cr_expect_eq(error.olen, 7);
	cr_expect_eq(error.tag, 6);
	cr_expect_null(error.err_data);
	cr_expect_eq(error.err_data_size, 0);
	cr_expect_eq(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
	cr_expect_eq(fi_cq_read(cq, entry, 40), 1);
	close_cq(cq);
}

/* As long as the error entry of 1.20; the header in use may be older. */
struct big_error {
	struct fi_cq_err_entry entry;
	uint64_t room[8];
};

/* Not a byte of the application's buffer behind its version's fields is touched. */
static void check_error_size(uint32_t version, size_t size)
{
	struct big_error big;
	struct fid_cq *cq;

	domain = fake_domain(version, FI_THREAD_SAFE);
	cq = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	put_error(cq, "why");
	memset(&big, 0x5a, sizeof(big));
	if (size > 72)
		big.entry.err_data_size = 0;
	/* fi_cq_readerr of libfabric 2.x would itself write a member of its version. */
	cr_assert_eq(cq->ops->readerr(cq, &big.entry, 0), 1);
	for (size_t i = size; i < sizeof(big); i++)
		cr_assert_eq(((unsigned char *)&big)[i], 0x5a, "byte %zu", i);
	cr_expect_eq(big.entry.op_context, (void *)1);
	cr_expect_eq(big.entry.err, FI_ENOTCONN);
	cr_expect_str_eq(big.entry.err_data, "why");
	if (size >= 80)
		cr_expect_eq(big.entry.err_data_size, 4);
	if (size >= 88)
		cr_expect_eq(((uint64_t *)&big)[10], 7);
	close_cq(cq);
}

Test(cq, error_entry_has_the_size_of_its_version)
{
	check_error_size(FI_VERSION(1, 0), 72);
	check_error_size(FI_VERSION(1, 4), 72);
	check_error_size(FI_VERSION(1, 5), 80);
	check_error_size(FI_VERSION(1, 19), 80);
	check_error_size(FI_VERSION(1, 20), 88);
	check_error_size(FI_VERSION(2, 1), 88);
}

Test(cq, err_data_goes_into_the_applications_buffer)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);

	for (size_t room = 1; room < 10; room++) {
		char data[16] = "untouched";
		struct fi_cq_err_entry error = {.err_data = data, .err_data_size = room};

		put_error(cq, "reason");
		cr_assert_eq(fi_cq_readerr(cq, &error, 0), 1);
		cr_expect_eq(error.err_data, data);
		cr_expect_eq(error.err_data_size, room == 1 ? 0 : room < 7 ? room : 7);
		cr_expect_eq(strlen(data), room - 1 < 6 ? room - 1 : 6);
		cr_expect_eq(strncmp(data, "reason", room - 1), 0);
		cr_expect_eq(data[8], 'd');
	}
	close_cq(cq);
}

/* The application expects to find no error, so it never set its entry. */
Test(cq, expected_errors_leave_err_data_alone)
{
	static const int expected[] = {FI_ENOMSG, FI_ECANCELED, FI_ETRUNC};
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);

	for (int i = 0; i < 3; i++) {
		char data[16] = "untouched";
		struct fi_cq_err_entry error = {.err_data = data, .err_data_size = 16};

		verve_comp_queue_write_error(queue_of(cq), &(struct verve_comp_error){
			.err = expected[i], .reason = "reason"});
		cr_assert_eq(fi_cq_readerr(cq, &error, 0), 1);
		cr_expect_eq(error.err, expected[i]);
		cr_expect_eq(error.err_data, data);
		cr_expect_eq(error.err_data_size, 0);
		cr_expect_str_eq(data, "untouched");
		verve_comp_queue_write_error(queue_of(cq), &(struct verve_comp_error){
			.err = expected[i], .reason = "reason"});
		error = (struct fi_cq_err_entry){.err = 0};
		cr_assert_eq(fi_cq_readerr(cq, &error, 0), 1);
		cr_expect_null(error.err_data);
		cr_expect_eq(error.err_data_size, 0);
	}
	close_cq(cq);
}

Test(cq, strerror_says_what_is_known)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE);
	char buf[64], small[4];

	cr_expect_str_eq(fi_cq_strerror(cq, 9, NULL, NULL, 0), "a work request failed");
	cr_expect_str_eq(fi_cq_strerror(cq, 9, NULL, buf, sizeof(buf)), "a work request failed");
	cr_expect_str_eq(fi_cq_strerror(cq, 9, "why", buf, sizeof(buf)),
			 "why (a work request failed)");
	cr_expect_str_eq(fi_cq_strerror(cq, 0, "why", buf, sizeof(buf)), "why");
	cr_expect_str_eq(fi_cq_strerror(cq, 0, "reason", small, sizeof(small)), "rea");
	cr_expect_eq(fi_cq_strerror(cq, 0, "why", buf, sizeof(buf)), buf);
	close_cq(cq);
}

Test(cq, reading_an_empty_queue_makes_progress_first)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE);
	struct verve_engine *engine = fake_engine_open(put, cq);
	struct fi_cq_err_entry error = {0};
	struct fi_cq_entry entry;

	cr_assert_eq(verve_cq_bind_engine(verve_cq_from_fid(&cq->fid), engine), 0);
	fake_engine_complete(engine);
	cr_expect_eq(fi_cq_read(cq, &entry, 1), 1);
	cr_expect_eq(fake_engine_turns(engine), 1);
	put(cq, 0);
	cr_expect_eq(fi_cq_read(cq, &entry, 1), 1);
	cr_expect_eq(fake_engine_turns(engine), 1);
	cr_expect_eq(fi_cq_read(cq, NULL, 0), -FI_EAGAIN);
	cr_expect_eq(fake_engine_turns(engine), 2);
	fake_engine_complete(engine);
	cr_expect_eq(fi_cq_read(cq, NULL, 0), 0);
	cr_expect_eq(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
	cr_expect_eq(fake_engine_turns(engine), 3);
	verve_cq_unbind_engine(verve_cq_from_fid(&cq->fid), engine);
	fake_engine_close(engine);
	close_cq(cq);
}

Test(cq, stays_open_while_it_is_used)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD);
	struct verve_cq *verve = verve_cq_from_fid(&cq->fid);
	struct verve_engine *engine = fake_engine_open(put, cq);

	cr_expect_eq(fake_domain_references(), 1);
	verve_cq_get(verve);
	cr_expect_eq(fi_close(&cq->fid), -FI_EBUSY);
	verve_cq_put(verve);
	cr_assert_eq(verve_cq_bind_engine(verve, engine), 0);
	cr_expect_eq(fi_close(&cq->fid), -FI_EBUSY);
	verve_cq_unbind_engine(verve, engine);
	close_cq(cq);
	fake_engine_close(engine);
}

Test(cq, unread_entries_do_not_keep_it_open)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE);

	for (uintptr_t n = 0; n < 20; n++)
		put(cq, n);
	put_error(cq, "unread");
	close_cq(cq);
}

Test(cq, without_a_wait_object_nobody_waits)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_NONE);
	struct fid *fid = &cq->fid;
	struct fi_cq_entry entry;
	int fd;

	put(cq, 0);
	cr_expect_eq(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	cr_expect_eq(fi_cq_signal(cq), -FI_ENOSYS);
	cr_expect_eq(fi_control(fid, FI_GETWAIT, &fd), -FI_ENODATA);
	cr_expect_eq(fi_trywait(fake_fabric(FI_VERSION(1, 17)), &fid, 1), -FI_EINVAL);
	close_cq(cq);
}

Test(cq, sread_returns_what_is_there_or_runs_out_of_time)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC);
	struct fi_cq_entry entry[2];
	fi_addr_t src[2];

	cr_expect_eq(fi_cq_sread(cq, entry, 2, NULL, 0), -FI_EAGAIN);
	cr_expect_eq(fi_cq_sread(cq, entry, 2, NULL, 110), -FI_EAGAIN);
	put(cq, 1);
	put(cq, 2);
	cr_expect_eq(fi_cq_sreadfrom(cq, entry, 2, src, NULL, -1), 2);
	cr_expect_eq(entry[1].op_context, (void *)2);
	cr_expect_eq(src[1], 8);
	put_error(cq, "");
	cr_expect_eq(fi_cq_sread(cq, entry, 2, NULL, -1), -FI_EAVAIL);
	close_cq(cq);
}

Test(cq, signal_ends_sread)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD);
	struct fi_cq_entry entry;

	cr_expect_eq(fi_cq_signal(cq), 0);
	cr_expect_eq(fi_cq_sread(cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	close_cq(cq);
}

Test(cq, threshold_is_waited_for)
{
	struct fid_cq *cq = open_attr((struct fi_cq_attr){
		.format = FI_CQ_FORMAT_CONTEXT,
		.wait_obj = FI_WAIT_UNSPEC,
		.wait_cond = FI_CQ_COND_THRESHOLD,
	});
	struct verve_engine *engine = fake_engine_open(put, cq);
	const void *three = (const void *)3;
	struct fi_cq_entry entry[8];

	cr_assert_eq(verve_cq_bind_engine(verve_cq_from_fid(&cq->fid), engine), 0);
	for (int i = 0; i < 3; i++)
		fake_engine_complete(engine);
	cr_expect_eq(fi_cq_sread(cq, entry, 8, three, -1), 3);
	/* Fewer entries than the threshold are returned when the time is up. */
	put(cq, 0);
	cr_expect_eq(fi_cq_sread(cq, entry, 8, three, 20), 1);
	cr_expect_eq(fi_cq_sread(cq, entry, 8, three, 0), -FI_EAGAIN);
	/* An error ends the wait. */
	put_error(cq, "");
	cr_expect_eq(fi_cq_sread(cq, entry, 8, three, -1), -FI_EAVAIL);
	verve_cq_unbind_engine(verve_cq_from_fid(&cq->fid), engine);
	fake_engine_close(engine);
	close_cq(cq);
}

Test(cq, without_a_condition_cond_is_ignored)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_UNSPEC);
	struct fi_cq_entry entry;

	put(cq, 0);
	cr_expect_eq(fi_cq_sread(cq, &entry, 1, (const void *)100, -1), 1);
	close_cq(cq);
}

Test(cq, trywait_tells_when_to_poll)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_CONTEXT, FI_WAIT_FD);
	struct fid_fabric *fabric = fake_fabric(FI_VERSION(1, 17));
	struct pollfd pfd = {.events = POLLIN};
	struct fid *fid = &cq->fid;
	struct fi_cq_entry entry;

	cr_assert_eq(fi_control(fid, FI_GETWAIT, &pfd.fd), 0);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	put(cq, 0);
	cr_assert_eq(poll(&pfd, 1, 0), 1);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), -FI_EAGAIN);
	cr_assert_eq(fi_cq_read(cq, &entry, 1), 1);
	cr_assert_eq(fi_trywait(fabric, &fid, 1), 0);
	cr_assert_eq(poll(&pfd, 1, 0), 0);
	close_cq(cq);
}

enum { READERS = 3, PIECES = 4000 };

static volatile AO_t left;

static void *reader(void *arg)
{
	struct fi_cq_tagged_entry entry[3];
	struct fid_cq *cq = arg;

	while (AO_load(&left)) {
		ssize_t n = fi_cq_sread(cq, entry, 3, NULL, -1);

		if (n < 0) {
			cr_assert_eq(n, -FI_EAGAIN);
			continue;
		}
		for (ssize_t i = 0; i < n; i++)
			cr_assert_eq(entry[i].tag, (uintptr_t)entry[i].op_context + 5);
		/*
		 * The thread that reads the last entry signals, and each thread that ends signals
		 * the next.
		 */
		AO_fetch_and_add(&left, (AO_t)-n);
	}
	fi_cq_signal(cq);
	return NULL;
}

Test(cq, threads_share_what_several_engines_complete, .timeout = 300)
{
	struct fid_cq *cq = open_cq(FI_CQ_FORMAT_TAGGED, FI_WAIT_FD);
	struct verve_engine *engine[2];
	pthread_t thread[READERS];

	AO_store(&left, 2 * PIECES);
	for (int i = 0; i < 2; i++) {
		engine[i] = fake_engine_open(put, cq);
		cr_assert_eq(verve_cq_bind_engine(verve_cq_from_fid(&cq->fid), engine[i]), 0);
	}
	for (int i = 0; i < READERS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, reader, cq), 0);
	for (int i = 0; i < PIECES; i++) {
		fake_engine_complete(engine[0]);
		fake_engine_complete(engine[1]);
		if (i % 32 == 0)
			sched_yield();
	}
	for (int i = 0; i < READERS; i++)
		pthread_join(thread[i], NULL);
	cr_expect_eq(AO_load(&left), 0);
	for (int i = 0; i < 2; i++) {
		verve_cq_unbind_engine(verve_cq_from_fid(&cq->fid), engine[i]);
		fake_engine_close(engine[i]);
	}
	close_cq(cq);
}
