/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* oob: one connected TCP socket; a message is a 32-bit length and its bytes. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/check.h"
#include "common/clock.h"
#include "common/oob.h"

static void set_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct addrinfo *resolve(const char *host, const char *port, int family, int flags)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags }, *list;
	int ret = getaddrinfo(host, port, &hints, &list);

	if (ret)
		check_fatal("out-of-band address %s port %s: %s", host ? host : "any", port,
			    gai_strerror(ret));
	return list;
}

/* -1, with errno: this host does not have the family, or somebody has the port. */
static int listen_in(int family, const char *port)
{
	struct addrinfo *any = resolve(NULL, port, family, AI_PASSIVE);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, zero = 0;

	if (fd < 0)
		goto out;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, any->ai_addr, any->ai_addrlen) || listen(fd, 1)) {
		int error = errno;

		close(fd);
		errno = error;
		fd = -1;
	}
out:
	freeaddrinfo(any);
	return fd;
}

/* A client comes over either family: a socket of IPv6 serves both. */
static int listen_on(const char *port)
{
	int fd = listen_in(AF_INET6, port);

	if (fd < 0)
		fd = listen_in(AF_INET, port);
	if (fd < 0)
		check_fatal("cannot listen on out-of-band port %s: %s", port, strerror(errno));
	return fd;
}

void oob_serve(struct oob *oob, const char *port)
{
	int listener = listen_on(port);
	struct pollfd pfd = { .fd = listener, .events = POLLIN };

	if (poll(&pfd, 1, (int)oob->timeout * 1000) != 1)
		check_fatal("no client within %u s", oob->timeout);
	oob->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (oob->fd < 0)
		check_fatal("accept: %s", strerror(errno));
	close(listener);
	set_nodelay(oob->fd);
}

static int try_connect(const struct addrinfo *list)
{
	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			continue;
		if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
			return fd;
		close(fd);
	}
	return -1;
}

void oob_connect(struct oob *oob, const char *host, const char *port)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	struct addrinfo *list = resolve(host, port, AF_UNSPEC, 0);
	uint64_t end = clock_now() + oob->timeout * 1000000000ull;

	/* The server may start after us. */
	while ((oob->fd = try_connect(list)) < 0) {
		if (clock_now() > end)
			check_fatal("no server at %s port %s within %u s", host, port,
				    oob->timeout);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(list);
	set_nodelay(oob->fd);
}

void oob_close(struct oob *oob)
{
	if (oob->fd >= 0)
		close(oob->fd);
	oob->fd = -1;
}

static void write_all(struct oob *oob, const void *buf, size_t len)
{
	const char *at = buf;

	while (len) {
		ssize_t n = send(oob->fd, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			check_fatal("the other side went away (%s)", strerror(errno));
		at += n;
		len -= (size_t)n;
	}
}

static void read_all(struct oob *oob, void *buf, size_t len)
{
	uint64_t end = clock_now() + oob->timeout * 1000000000ull;
	unsigned turns = 0;
	char *at = buf;

	while (len) {
		ssize_t n = recv(oob->fd, at, len, oob->progress ? MSG_DONTWAIT : 0);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (!n)
			check_fatal("the other side went away");
		if (errno != EAGAIN && errno != EINTR)
			check_fatal("out-of-band receive: %s", strerror(errno));
		if (clock_now() > end)
			check_fatal("nothing from the other side within %u s", oob->timeout);
		if (oob->progress)
			oob->progress(oob->arg, turns++);
	}
}

void oob_send(struct oob *oob, const void *out, size_t len)
{
	uint32_t head = htonl((uint32_t)len);

	write_all(oob, &head, sizeof(head));
	write_all(oob, out, len);
}

size_t oob_recv(struct oob *oob, void *in, size_t max)
{
	uint32_t head;
	size_t len;

	read_all(oob, &head, sizeof(head));
	len = ntohl(head);
	if (len > max || len > OOB_MAX)
		check_fatal("out of step with the other side (message of %zu bytes)", len);
	read_all(oob, in, len);
	return len;
}

size_t oob_recv_silently(struct oob *oob, void *in, size_t max)
{
	void (*progress)(void *arg, unsigned turns) = oob->progress;
	size_t len;

	oob->progress = NULL;
	len = oob_recv(oob, in, max);
	oob->progress = progress;
	return len;
}

size_t oob_exchange(struct oob *oob, const void *out, size_t len, void *in, size_t max)
{
	oob_send(oob, out, len);
	return oob_recv(oob, in, max);
}
