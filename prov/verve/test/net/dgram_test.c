/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram socket, tested on the loopback interface, which loses no datagram. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <unistd.h>
#include <rdma/providers/fi_prov.h>
#include <string.h>

#include "../support/child.h"
#include "base/config.h"
#include "base/log.h"
#include "net/dgram.h"

static struct fi_provider provider = {.name = "verve"};

static void setup(void)
{
	verve_log_provider = &provider;
}

TestSuite(dgram, .init = setup);

/* Of bind(2) with a port: how often it was called, all of which fail; -1: it does its work. */
static int refused_binds = -1;
static bool roce_port_was_tried;
/* Answers of getsockname(2) that name RoCE's port. */
static int roce_names;

/* IPV6_ADDR_PREFERENCES of the last socket of connect(2); 2: public addresses. */
static int preference;

/* What recvmsg(2) finds in the error queue, once; the destination is [::1]:9. */
static struct sock_extended_err queued;

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __real_getsockname(int fd, struct sockaddr *addr, socklen_t *len);

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	const struct sockaddr_in *in = (const void *)addr;

	if (refused_binds < 0 || !in->sin_port)
		return __real_bind(fd, addr, len);
	refused_binds++;
	roce_port_was_tried |= in->sin_port == htons(VERVE_NET_ROCE_PORT);
	errno = EADDRINUSE;
	return -1;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct sockaddr_in6 *to = msg->msg_name;

	if (!queued.ee_errno)
		return __real_recvmsg(fd, msg, flags);
	cr_assert(flags & MSG_ERRQUEUE);
	*to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(9)};
	to->sin6_addr = in6addr_loopback;
	msg->msg_namelen = sizeof(*to);
	cmsg->cmsg_level = IPPROTO_IPV6;
	cmsg->cmsg_type = IPV6_RECVERR;
	cmsg->cmsg_len = CMSG_LEN(sizeof(queued));
	msg->msg_controllen = CMSG_SPACE(sizeof(queued));
	memcpy(CMSG_DATA(cmsg), &queued, sizeof(queued));
	queued.ee_errno = 0;
	return 1;
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	socklen_t size = sizeof(preference);

	if (getsockopt(fd, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, &preference, &size))
		preference = 0;
	return __real_connect(fd, addr, len);
}

int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	int ret = __real_getsockname(fd, addr, len);

	if (roce_names) {
		roce_names--;
		((struct sockaddr_in *)addr)->sin_port = htons(VERVE_NET_ROCE_PORT);
	}
	return ret;
}

static struct verve_addr loopback(sa_family_t family)
{
	struct verve_addr addr = {0};

	addr.sa.sa_family = family;
	if (family == AF_INET)
		addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		addr.in6.sin6_addr = in6addr_loopback;
	return addr;
}

static struct verve_net_dgram *open_at(struct verve_addr *addr)
{
	struct verve_net_dgram *dgram;

	cr_assert_eq(verve_net_dgram_open(addr, &dgram), 0);
	return dgram;
}

static void await(struct verve_net_dgram *dgram)
{
	struct pollfd poll_fd = {.fd = verve_net_dgram_fd(dgram), .events = POLLIN};

	cr_assert_eq(poll(&poll_fd, 1, -1), 1);
}

/* An address at which no socket listens: its socket has just been closed. */
static struct verve_addr nobody(sa_family_t family)
{
	struct verve_addr addr = loopback(family);

	verve_net_dgram_close(open_at(&addr));
	return addr;
}

static void exchange(sa_family_t family)
{
	struct verve_addr a_addr = loopback(family), b_addr = loopback(family), from;
	struct verve_net_dgram *a = open_at(&a_addr), *b = open_at(&b_addr);
	char buf[16];

	cr_assert_neq(verve_addr_port(&a_addr), 0);
	cr_assert_not(verve_addr_equal(&a_addr, &b_addr));
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), -FI_EAGAIN);
	cr_expect_eq(verve_net_dgram_send(a, "hello", 5, &b_addr), 0);
	await(b);
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), 5);
	cr_expect_eq(memcmp(buf, "hello", 5), 0);
	cr_expect(verve_addr_equal(&from, &a_addr));
	cr_expect_eq(memcmp(&from, &a_addr, sizeof(from)), 0);
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), -FI_EAGAIN);
	verve_net_dgram_close(a);
	verve_net_dgram_close(b);
}

Test(dgram, carries_bytes_and_source)
{
	exchange(AF_INET);
}

Test(dgram, carries_bytes_and_source_on_ipv6)
{
	exchange(AF_INET6);
}

Test(dgram, longer_than_the_buffer_is_cut)
{
	struct verve_addr a_addr = loopback(AF_INET), b_addr = loopback(AF_INET), from;
	struct verve_net_dgram *a = open_at(&a_addr), *b = open_at(&b_addr);
	char buf[4];

	cr_expect_eq(verve_net_dgram_send(a, "0123456789", 10, &b_addr), 0);
	cr_expect_eq(verve_net_dgram_send(a, "", 0, &b_addr), 0);
	await(b);
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), 4);
	await(b);
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), 0);
	verve_net_dgram_close(a);
	verve_net_dgram_close(b);
}

/* Datagrams to a live address between refused ones must not be reported as refused. */
static void dgram_refuse(sa_family_t family)
{
	struct verve_addr a_addr = loopback(family), b_addr = loopback(family);
	struct verve_addr dead[2] = {nobody(family), nobody(family)}, from;
	struct verve_net_dgram *a = open_at(&a_addr), *b = open_at(&b_addr);
	bool seen[2] = {false, false};
	char buf[16];

	cr_assert_eq(verve_net_dgram_send(a, "x", 1, &dead[0]), 0);
	await(a);
	cr_expect_eq(verve_net_dgram_send(a, "y", 1, &b_addr), 0);
	cr_expect_eq(verve_net_dgram_send(a, "x", 1, &dead[1]), 0);
	cr_expect_eq(verve_net_dgram_send(a, "z", 1, &b_addr), 0);
	while (!seen[0] || !seen[1]) {
		ssize_t ret;

		await(a);
		ret = verve_net_dgram_recv(a, buf, sizeof(buf), &from);
		if (ret == -FI_EAGAIN)
			continue;
		cr_assert_eq(ret, -FI_ECONNREFUSED);
		cr_assert(verve_addr_equal(&from, &dead[0]) || verve_addr_equal(&from, &dead[1]));
		seen[verve_addr_equal(&from, &dead[1])] = true;
	}
	cr_expect_eq(verve_net_dgram_recv(a, buf, sizeof(buf), &from), -FI_EAGAIN);
	await(b);
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), 1);
	cr_expect_eq(buf[0], 'y');
	await(b);
	cr_expect_eq(verve_net_dgram_recv(b, buf, sizeof(buf), &from), 1);
	cr_expect_eq(buf[0], 'z');
	verve_net_dgram_close(a);
	verve_net_dgram_close(b);
}

Test(dgram, refusal_names_the_destination)
{
	dgram_refuse(AF_INET);
}

Test(dgram, refusal_names_the_destination_on_ipv6)
{
	dgram_refuse(AF_INET6);
}

/*
 * Firewalls reject so (firewalld does by default); of IPv4 the kernel says EHOSTUNREACH itself. Its
 * EACCES would mean a wrong key to the application.
 */
Test(dgram, ipv6_firewall_that_rejects_is_a_host_that_is_not_reached)
{
	struct verve_addr addr = loopback(AF_INET6), from;
	struct verve_net_dgram *dgram = open_at(&addr);
	char buf[16];

	queued = (struct sock_extended_err){.ee_errno = EACCES,
					    .ee_origin = SO_EE_ORIGIN_ICMP6};
	cr_expect_eq(verve_net_dgram_recv(dgram, buf, sizeof(buf), &from), -FI_EHOSTUNREACH);
	cr_expect_eq(verve_addr_port(&from), 9);
	cr_expect_eq(verve_net_dgram_recv(dgram, buf, sizeof(buf), &from), -FI_EAGAIN);
	queued.ee_errno = EMSGSIZE; /* says nothing about a peer */
	cr_expect_eq(verve_net_dgram_recv(dgram, buf, sizeof(buf), &from), -FI_EAGAIN);
	verve_net_dgram_close(dgram);
}

/* Each refusal is a pending error of the socket; no error may hide a datagram that arrived. */
Test(dgram, datagrams_arrive_between_refusals)
{
	struct verve_addr a_addr = loopback(AF_INET), b_addr = loopback(AF_INET), from;
	struct verve_addr dead = nobody(AF_INET);
	struct verve_net_dgram *a = open_at(&a_addr), *b = open_at(&b_addr);
	int refused = 0, received = 0;
	char buf[16];

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(verve_net_dgram_send(a, "x", 1, &dead), 0);
		cr_assert_eq(verve_net_dgram_send(b, "y", 1, &a_addr), 0);
	}
	while (refused < 8 || received < 8) {
		ssize_t ret;

		await(a);
		ret = verve_net_dgram_recv(a, buf, sizeof(buf), &from);
		refused += ret == -FI_ECONNREFUSED;
		received += ret == 1 && verve_addr_equal(&from, &b_addr);
	}
	cr_expect_eq(refused, 8);
	cr_expect_eq(received, 8);
	verve_net_dgram_close(a);
	verve_net_dgram_close(b);
}

Test(dgram, taken_and_foreign_addresses_are_refused)
{
	struct verve_addr addr = loopback(AF_INET), again, foreign = {0};
	struct verve_net_dgram *first = open_at(&addr), *second;

	again = addr;
	cr_expect_eq(verve_net_dgram_open(&again, &second), -FI_EADDRINUSE);
	foreign.in.sin_family = AF_INET;
	foreign.in.sin_addr.s_addr = htonl(0xc6336401); /* 198.51.100.1, for documentation only */
	cr_expect_eq(verve_net_dgram_open(&foreign, &second), -FI_EADDRNOTAVAIL);
	verve_net_dgram_close(first);
}

/* A child that lives on, such as a worker of Python's multiprocessing, would keep the port. */
Test(dgram, does_not_outlive_its_close_in_a_child)
{
	struct verve_addr addr = loopback(AF_INET), other = loopback(AF_INET);
	struct verve_net_dgram *dgram = open_at(&addr), *kept = open_at(&other), *again;
	int fds[2];
	pid_t pid;
	char byte = 0;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	pid = fork();
	if (!pid) {
		close(fds[1]);
		_exit(write(fds[0], &byte, 1) != 1 || read(fds[0], &byte, 1));
	}
	cr_assert_eq(read(fds[1], &byte, 1), 1, "the child has begun");
	verve_net_dgram_close(dgram);
	cr_expect_eq(verve_net_dgram_open(&addr, &again), 0);
	verve_net_dgram_close(again);
	cr_expect_eq(verve_net_dgram_send(kept, "x", 1, &other), 0, "the parent keeps its own");
	close(fds[1]);
	close(fds[0]);
	child_expect_success(pid);
	verve_net_dgram_close(kept);
}

Test(dgram, does_not_outlive_exec)
{
	struct verve_addr addr = loopback(AF_INET);
	struct verve_net_dgram *dgram = open_at(&addr);

	cr_expect(fcntl(verve_net_dgram_fd(dgram), F_GETFD) & FD_CLOEXEC);
	verve_net_dgram_close(dgram);
}

/* Three ports next to each other that nothing on this host uses, as far as can be known. */
static void choose_range(sa_family_t family)
{
	struct verve_addr addr = nobody(family);

	verve_config.port_first = verve_addr_port(&addr) > 65000 ? 64000 : verve_addr_port(&addr);
	verve_config.port_last = verve_config.port_first + 2;
}

static void fill_range(sa_family_t family)
{
	struct verve_net_dgram *dgram[3], *more;
	struct verve_addr addr, explicit = loopback(family);
	unsigned seen = 0;

	choose_range(family);
	for (size_t i = 0; i < 3; i++) {
		addr = loopback(family);
		dgram[i] = open_at(&addr);
		cr_assert_geq(verve_addr_port(&addr), verve_config.port_first);
		cr_assert_leq(verve_addr_port(&addr), verve_config.port_last);
		seen |= 1u << (verve_addr_port(&addr) - verve_config.port_first);
	}
	cr_expect_eq(seen, 7);
	addr = loopback(family);
	cr_expect_eq(verve_net_dgram_open(&addr, &more), -FI_EADDRINUSE);
	cr_expect_eq(verve_addr_port(&addr), 0);
	verve_net_dgram_close(dgram[1]);
	dgram[1] = open_at(&addr);
	/* A port that the caller names need not be in the range. */
	verve_addr_set_port(&explicit, verve_config.port_last);
	verve_config.port_first = verve_config.port_last = 1;
	cr_expect_eq(verve_net_dgram_open(&explicit, &more), -FI_EADDRINUSE);
	for (size_t i = 0; i < 3; i++)
		verve_net_dgram_close(dgram[i]);
	more = open_at(&explicit);
	verve_net_dgram_close(more);
}

Test(dgram, a_range_of_ports_is_kept_to)
{
	fill_range(AF_INET);
	fill_range(AF_INET6);
}

/* Devices keep what is sent to RoCE's port, so that a socket there hears nothing. */
Test(dgram, a_range_does_not_mean_the_port_of_roce)
{
	struct verve_addr addr = loopback(AF_INET);
	struct verve_net_dgram *dgram;

	verve_config.port_first = VERVE_NET_ROCE_PORT - 1;
	verve_config.port_last = VERVE_NET_ROCE_PORT + 1;
	refused_binds = 0;
	cr_expect_eq(verve_net_dgram_open(&addr, &dgram), -FI_EADDRINUSE);
	cr_expect_eq(refused_binds, 2);
	verve_config.port_first = verve_config.port_last = VERVE_NET_ROCE_PORT;
	cr_expect_eq(verve_net_dgram_open(&addr, &dgram), -FI_EADDRINUSE);
	cr_expect_not(roce_port_was_tried);
}

static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

Test(dgram, the_port_of_roce_is_not_taken_from_the_kernel)
{
	struct verve_addr addr = loopback(AF_INET), bound;
	int before = next_descriptor();
	socklen_t len = sizeof(bound);
	struct verve_net_dgram *dgram;

	roce_names = 1;
	dgram = open_at(&addr);
	cr_expect_neq(verve_addr_port(&addr), VERVE_NET_ROCE_PORT);
	cr_assert_eq(getsockname(verve_net_dgram_fd(dgram), &bound.sa, &len), 0);
	cr_expect_eq(verve_addr_port(&bound), verve_addr_port(&addr));
	verve_net_dgram_close(dgram);
	cr_expect_eq(next_descriptor(), before);
}

Test(dgram, kernel_sends_to_itself_from_itself)
{
	struct verve_addr self = loopback(AF_INET), own = self, other = self;

	own.in.sin_addr.s_addr = htonl(0x0a010001);   /* 10.1.0.1 */
	other.in.sin_addr.s_addr = htonl(0x7f000002); /* 127.0.0.2 */
	cr_expect(verve_net_dgram_routes_from(&self, &self));
	cr_expect_not(verve_net_dgram_routes_from(&self, &own));
	cr_expect_not(verve_net_dgram_routes_from(&self, &other));
}

/* The kernel may be set to prefer temporary ones, which are no good names of endpoints. */
Test(dgram, kernel_is_asked_for_the_lasting_address)
{
	struct verve_addr self = loopback(AF_INET6);

	cr_expect(verve_net_dgram_routes_from(&self, &self));
	cr_expect_eq(preference & 3, 2, "%#x", preference);
}

/* An application may close all descriptors that it does not know, and open others. */
Test(dgram, a_descriptor_that_is_something_else_ends_receiving)
{
	struct verve_addr addr = loopback(AF_INET), from;
	struct verve_net_dgram *dgram = open_at(&addr);
	int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char buf[16];

	cr_assert_eq(dup2(other, verve_net_dgram_fd(dgram)), verve_net_dgram_fd(dgram));
	cr_expect_eq(verve_net_dgram_recv(dgram, buf, sizeof(buf), &from), -FI_EIO);
	cr_expect_eq(verve_net_dgram_recv(dgram, buf, sizeof(buf), &from), -FI_EIO);
	close(other);
	verve_net_dgram_close(dgram);
}
