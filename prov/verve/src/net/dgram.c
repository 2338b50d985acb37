/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Datagram socket: UDP, and the ICMP errors in its error queue (ip(7), IP_RECVERR). */
#include "net/dgram.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

struct verve_net_dgram {
	LIST_ENTRY(verve_net_dgram) link;
	int fd; /* -1: this process is a child of the one that opened it */
	bool lost; /* receiving fails for good, and the log says so */
};

/*
 * All open ones. A child after fork(2) that kept their sockets would keep their ports in use when
 * its parent has closed them. fork(2) takes the lock before the C library's own, so that a thread
 * may log under it.
 */
static LIST_HEAD(, verve_net_dgram) dgrams = LIST_HEAD_INITIALIZER(dgrams);
static pthread_mutex_t dgrams_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
	pthread_mutex_lock(&dgrams_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&dgrams_lock);
}

static void in_child(void)
{
	struct verve_net_dgram *dgram;

	while ((dgram = LIST_FIRST(&dgrams))) {
		LIST_REMOVE(dgram, link);
		close(dgram->fd);
		dgram->fd = -1;
	}
	pthread_mutex_unlock(&dgrams_lock);
}

static void register_fork(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

enum {
	/*
	 * Bytes: a thousand peers may send HELLO at once. The kernel's limit is net.core.rmem_max.
	 */
	RECEIVE_BUFFER = 4 << 20,
	/* A call retries so often when it fails with the errors of earlier datagrams. */
	TRIES = 16,
	/* IPV6_PREFER_SRC_PUBLIC of linux/in6.h, which cannot stand beside libc's headers. */
	PREFER_SRC_PUBLIC = 2,
};

static int set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

static int set_options(int fd, sa_family_t family)
{
	int ret;

	set_option(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
	if (family == AF_INET)
		return set_option(fd, IPPROTO_IP, IP_RECVERR, 1);
	ret = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return ret ? ret : set_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
}

/*
 * Binds to a free port of FI_VERVE_PORT_RANGE. Processes begin at different places, so that those
 * of one host seldom ask for the same port.
 */
static int bind_in_range(int fd, const struct verve_addr *addr)
{
	uint32_t count = verve_config.port_last - verve_config.port_first + 1u;
	struct verve_addr try = *addr;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = ((uint32_t)getpid() + i) % count;

		verve_addr_set_port(&try, verve_config.port_first + place);
		if (verve_addr_port(&try) == VERVE_NET_ROCE_PORT)
			continue;
		if (!bind(fd, &try.sa, verve_addr_len(&try)))
			return 0;
		if (errno != EADDRINUSE)
			return -errno;
	}
	VERVE_WARN(EP_CTRL, "no UDP port of FI_VERVE_PORT_RANGE=%u-%u is free (RoCE's own, %u, "
		   "does not count): a host needs one for each of its endpoints\n",
		   verve_config.port_first, verve_config.port_last, VERVE_NET_ROCE_PORT);
	return -FI_EADDRINUSE;
}

static int bind_socket(int fd, struct verve_addr *addr)
{
	struct verve_addr bound;
	socklen_t len = sizeof(bound);
	int ret = 0;

	if (verve_config.port_first && !verve_addr_port(addr))
		ret = bind_in_range(fd, addr);
	else if (bind(fd, &addr->sa, verve_addr_len(addr)))
		ret = -errno;
	if (ret)
		return ret;
	if (getsockname(fd, &bound.sa, &len))
		return -errno;
	return verve_addr_set(addr, &bound, len);
}

/* Returns the descriptor of a socket that is bound to *addr, which becomes the bound address. */
static int open_socket(struct verve_addr *addr)
{
	int fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = set_options(fd, addr->sa.sa_family);
	if (!ret)
		ret = bind_socket(fd, addr);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/*
 * The kernel may choose RoCE's port where net.ipv4.ip_local_port_range goes below 4792. It chooses
 * another one while a socket has that port.
 */
static int open_hearing_socket(struct verve_addr *addr)
{
	const struct verve_addr wanted = *addr;
	int fd = open_socket(addr), deaf = fd;

	if (fd < 0 || verve_addr_port(&wanted) || verve_addr_port(addr) != VERVE_NET_ROCE_PORT)
		return fd;
	*addr = wanted;
	fd = open_socket(addr);
	close(deaf);
	return fd;
}

int verve_net_dgram_open(struct verve_addr *addr, struct verve_net_dgram **dgramp)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct verve_net_dgram *dgram = calloc(1, sizeof(*dgram));
	char name[VERVE_ADDR_STRLEN];
	int ret;

	if (!dgram)
		return -FI_ENOMEM;
	pthread_once(&once, register_fork);
	pthread_mutex_lock(&dgrams_lock);
	ret = dgram->fd = open_hearing_socket(addr);
	if (ret >= 0)
		LIST_INSERT_HEAD(&dgrams, dgram, link);
	pthread_mutex_unlock(&dgrams_lock);
	if (ret >= 0) {
		*dgramp = dgram;
		return 0;
	}
	free(dgram);
	VERVE_WARN(EP_CTRL, "cannot open the UDP socket %s: %s\n", verve_addr_str(addr, name),
		   fi_strerror(-ret));
	return ret;
}

void verve_net_dgram_close(struct verve_net_dgram *dgram)
{
	pthread_mutex_lock(&dgrams_lock);
	if (dgram->fd >= 0) {
		LIST_REMOVE(dgram, link);
		close(dgram->fd);
	}
	pthread_mutex_unlock(&dgrams_lock);
	free(dgram);
}

int verve_net_dgram_fd(const struct verve_net_dgram *dgram)
{
	return dgram->fd;
}

/* A shortage of this host, whatever the destination: sending again later may succeed. */
static bool errno_is_shortage(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EINTR;
}

int verve_net_dgram_send(struct verve_net_dgram *dgram, const void *buf, size_t len,
			 const struct verve_addr *to)
{
	/*
	 * A send also fails with the pending error of an earlier datagram to another address, and
	 * clears that error. The error queue still has it for verve_net_dgram_recv. So send again.
	 */
	for (int try = 0; try < TRIES; try++) {
		if (sendto(dgram->fd, buf, len, MSG_NOSIGNAL, &to->sa, verve_addr_len(to)) >= 0)
			return 0;
		if (errno_is_shortage(errno))
			return -FI_EAGAIN;
	}
	/* The kernel never refuses a datagram at once: ECONNREFUSED belongs to an earlier one. */
	return errno == ECONNREFUSED ? -FI_EAGAIN : -errno;
}

static const struct sock_extended_err *msg_find_error(struct msghdr *msg)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg))
		if ((cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVERR) ||
		    (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_RECVERR))
			return (const struct sock_extended_err *)CMSG_DATA(cmsg);
	return NULL;
}

/*
 * Takes one error off the error queue. 1: datagrams to *to failed with *error (positive errno);
 * 0: the entry says nothing about a peer, take the next; -FI_EAGAIN: the queue is empty.
 */
static int take_error(struct verve_net_dgram *dgram, struct verve_addr *to, int *error)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct sock_extended_err) +
				      sizeof(struct sockaddr_in6))];
	} control;
	struct verve_addr name;
	char payload[1];
	struct iovec iov = {payload, sizeof(payload)};
	struct msghdr msg = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct sock_extended_err *err;

	if (recvmsg(dgram->fd, &msg, MSG_ERRQUEUE) < 0)
		return -FI_EAGAIN;
	err = msg_find_error(&msg);
	if (!err || verve_addr_set(to, &name, msg.msg_namelen))
		return 0;
	/* What firewalls say of IPv6 (administratively prohibited); of IPv4: EHOSTUNREACH. */
	*error = err->ee_errno == EACCES ? EHOSTUNREACH : err->ee_errno;
	return *error == ECONNREFUSED || *error == EHOSTUNREACH || *error == ENETUNREACH;
}

static ssize_t recv_failed(struct verve_net_dgram *dgram, int error)
{
	if (!dgram->lost)
		VERVE_WARN(EP_CTRL,
			   "no more handshakes: receiving from UDP socket %d fails: %s (does the "
			   "application close it, or a filter forbid it?)\n",
			   dgram->fd, strerror(error));
	dgram->lost = true;
	return -FI_EIO;
}

ssize_t verve_net_dgram_recv(struct verve_net_dgram *dgram, void *buf, size_t len,
			     struct verve_addr *from)
{
	for (int failures = 0;;) {
		struct verve_addr name;
		socklen_t name_len = sizeof(name);
		int error, failure, ret;
		ssize_t got;

		/* The descriptor may be another socket by now, one that blocks. */
		got = recvfrom(dgram->fd, buf, len, MSG_DONTWAIT, &name.sa, &name_len);
		if (got >= 0) {
			if (verve_addr_set(from, &name, name_len))
				continue;
			return got;
		}
		if (errno == EINTR)
			continue;
		/* Any other errno is a pending error, which the error queue has as well. */
		failure = errno;
		ret = take_error(dgram, from, &error);
		if (ret > 0)
			return -error;
		if (ret < 0 && failure == EAGAIN)
			return -FI_EAGAIN;
		if (ret < 0 && ++failures == TRIES)
			return recv_failed(dgram, failure);
	}
}

bool verve_net_dgram_routes_from(const struct verve_addr *dest, const struct verve_addr *own)
{
	struct verve_addr to = *dest, raw, from;
	socklen_t len = sizeof(raw);
	bool same = false;
	int fd;

	fd = socket(dest->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	/* Names of endpoints last (net/gid.c), so a temporary address is not to be preferred. */
	if (dest->sa.sa_family == AF_INET6)
		set_option(fd, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, PREFER_SRC_PUBLIC);
	/* Any port but 0 will do, because connect(2) of a UDP socket sends nothing. */
	verve_addr_set_port(&to, 9);
	if (!connect(fd, &to.sa, verve_addr_len(&to)) && !getsockname(fd, &raw.sa, &len) &&
	    !verve_addr_set(&from, &raw, len))
		same = verve_addr_same_host(&from, own);
	close(fd);
	return same;
}
