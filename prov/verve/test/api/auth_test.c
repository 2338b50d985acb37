/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys: where a key comes from, which key an endpoint has, and which endpoints can
 * talk to each other.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/log_lines.h"
#include "api/auth.h"
#include "base/config.h"
#include "ep_pair.h"

enum { LEN = 100 };

static uint8_t one[] = "one secret of 24 bytes..", two[] = "another, which differs..";
static struct ep_pair pair;
static char out[LEN], in[LEN];
static char path[] = "/tmp/verve_auth_test.XXXXXX";

static void setup(void)
{
	fixture_init(&pair.fix, FI_VERSION(1, 17));
	verve_config.connect_timeout = 500;
}

TestSuite(auth, .init = setup);

static void set_domain_key(uint8_t *key, size_t size)
{
	pair.fix.info->domain_attr->auth_key = key;
	pair.fix.info->domain_attr->auth_key_size = size;
}

static void set_ep_key(uint8_t *key, size_t size)
{
	pair.fix.info->ep_attr->auth_key = key;
	pair.fix.info->ep_attr->auth_key_size = size;
}

/* The keys are the test's: without this, fi_freeinfo would free them. */
static void forget_keys(void)
{
	set_domain_key(NULL, 0);
	set_ep_key(NULL, 0);
}

/* Opens a pair of endpoints, each with a key of its own; NULL: without one. */
static void open_pair(uint8_t *key_a, uint8_t *key_b)
{
	fixture_open_domain(&pair.fix);
	set_ep_key(key_a, key_a ? sizeof(one) : 0);
	ep_side_open(&pair, &pair.a);
	set_ep_key(key_b, key_b ? sizeof(one) : 0);
	ep_side_open(&pair, &pair.b);
	forget_keys();
	ep_side_insert(&pair.a, &pair.b);
	ep_side_insert(&pair.b, &pair.a);
}

static void expect_talk(void)
{
	memset(out, 'x', LEN);
	cr_assert_eq(fi_recv(pair.b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	cr_assert_eq(fi_send(pair.a.ep, out, LEN, NULL, pair.a.peer, out), 0);
	cr_expect_eq(ep_pair_comp(&pair, &pair.b).op_context, in);
	cr_expect_eq(ep_pair_comp(&pair, &pair.a).op_context, out);
	cr_expect_arr_eq(in, out, LEN);
	ep_pair_close(&pair);
}

static void expect_silence(void)
{
	cr_assert_eq(fi_recv(pair.b.ep, in, LEN, NULL, FI_ADDR_UNSPEC, in), 0);
	cr_assert_eq(fi_send(pair.a.ep, out, LEN, NULL, pair.a.peer, out), 0);
	cr_expect_eq(ep_pair_error(&pair, &pair.a, FI_EKEYREJECTED).op_context, out);
	ep_pair_nothing(&pair, &pair.b);
	ep_pair_close(&pair);
}

Test(auth, endpoints_with_one_key_talk)
{
	open_pair(one, one);
	expect_talk();
}

Test(auth, endpoints_with_different_keys_do_not)
{
	open_pair(one, two);
	expect_silence();
}

Test(auth, one_sided_keys_do_not)
{
	open_pair(one, NULL);
	expect_silence();
}

Test(auth, nor_the_other_way_round)
{
	open_pair(NULL, one);
	expect_silence();
}

Test(auth, the_domains_key_is_everybodys)
{
	set_domain_key(one, sizeof(one));
	open_pair(NULL, one);
	expect_talk();
}

Test(auth, the_endpoints_key_goes_first)
{
	set_domain_key(one, sizeof(one));
	open_pair(NULL, two);
	expect_silence();
}

/* The structures of applications of 1.4 end before the keys. Bytes that lie there mean nothing. */
Test(auth, before_1_5_there_are_none)
{
	pair.fix.fabric->api_version = FI_VERSION(1, 4);
	set_domain_key(NULL, 3);
	open_pair(NULL, NULL);
	expect_talk();
}

static void write_file(const void *bytes, size_t size, mode_t mode)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
	verve_config.auth_key_file = path;
}

Test(auth, the_files_key_is_for_endpoints_without_a_key)
{
	write_file(one, sizeof(one), 0600);
	open_pair(NULL, one);
	unlink(path);
	expect_talk();
}

Test(auth, the_files_key_gives_way)
{
	write_file(one, sizeof(one), 0640);
	set_domain_key(two, sizeof(two));
	open_pair(NULL, one);
	unlink(path);
	expect_silence();
}

static void expect_log(const char *what)
{
	const char *text = log_take();

	cr_expect(strstr(text, what), "%s: %s", what, text);
}

static void expect_no_domain(int error, const char *why)
{
	cr_expect_eq(fi_domain(pair.fix.fabric, pair.fix.info, &pair.fix.domain, NULL), error);
	unlink(path);
	forget_keys();
	fixture_fini(&pair.fix);
	expect_log(why);
}

static void setup_log(void)
{
	log_start("warn", "verve");
	setup();
}

TestSuite(auth_refused, .init = setup_log);

Test(auth_refused, file_that_others_may_read)
{
	write_file(one, sizeof(one), 0604);
	expect_no_domain(-FI_EACCES, "chmod 600");
}

Test(auth_refused, file_that_the_group_may_write)
{
	write_file(one, sizeof(one), 0660);
	expect_no_domain(-FI_EACCES, "chmod 600");
}

Test(auth_refused, short_file)
{
	write_file(one, 15, 0600);
	expect_no_domain(-FI_EINVAL, "it must have 16 to 4096 bytes");
}

Test(auth_refused, long_file)
{
	static const uint8_t bytes[VERVE_AUTH_SECRET_MAX + 1];

	write_file(bytes, sizeof(bytes), 0600);
	expect_no_domain(-FI_EINVAL, "it must have 16 to 4096 bytes");
}

Test(auth_refused, missing_file)
{
	verve_config.auth_key_file = "/nonexistent/key";
	expect_no_domain(-FI_ENOENT, "FI_VERVE_AUTH_KEY_FILE=/nonexistent/key: No such file");
}

Test(auth_refused, folder)
{
	verve_config.auth_key_file = "/";
	expect_no_domain(-FI_EINVAL, "it is not a file");
}

Test(auth_refused, file_of_somebody_else)
{
	write_file(one, sizeof(one), 0600);
	if (geteuid() || chown(path, 12345, 12345)) {
		unlink(path);
		cr_skip_test("only root can give a file away");
	}
	expect_no_domain(-FI_EACCES, "it belongs to another user");
}

Test(auth_refused, short_attribute)
{
	set_domain_key(one, 15);
	expect_no_domain(-FI_EINVAL, "auth_key of 15 bytes: it must have 16 to 4096 bytes");
}

Test(auth_refused, attribute_of_nothing)
{
	set_domain_key(NULL, 16);
	expect_no_domain(-FI_EINVAL, "there is no key");
}

/* FI_AV_AUTH_KEY: the address vector would have the keys. */
Test(auth_refused, keys_of_address_vectors)
{
	set_domain_key(NULL, SIZE_MAX);
	expect_no_domain(-FI_EINVAL, "keys of an address vector are not offered");
}

Test(auth_refused, endpoint_with_a_short_key)
{
	struct fid_ep *ep;

	fixture_open_domain(&pair.fix);
	set_ep_key(one, 3);
	cr_expect_eq(fi_endpoint(pair.fix.domain, pair.fix.info, &ep, NULL), -FI_EINVAL);
	forget_keys();
	fixture_fini(&pair.fix);
	expect_log("endpoint: auth_key of 3 bytes");
}
