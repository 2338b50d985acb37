/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vector: checks and translates the calls of fi_av(3). The table itself is conn/addrvec.c.
 *
 * An insertion contacts no peer: it succeeds for every address that an endpoint could have.
 */
#include "api/av.h"

#include <ctype.h>
#include <netdb.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/domain.h"
#include "api/eq.h"
#include "api/node.h"
#include "api/stubs.h"
#include "base/log.h"
#include "engine/engine.h"
#include "net/device.h"

enum {
	HOST_MAX = VERVE_NODE_HOST_MAX,
	RX_CTX_BITS_MAX = 32, /* of rx_ctx_bits; indices stay below 2^30 */
};

struct verve_av_user {
	LIST_ENTRY(verve_av_user) link;
	struct verve_engine *engine;
};

void verve_av_get(struct verve_av *av)
{
	AO_fetch_and_add1(&av->references);
}

void verve_av_put(struct verve_av *av)
{
	AO_fetch_and_sub1_release(&av->references);
}

int verve_av_bind_engine(struct verve_av *av, struct verve_engine *engine)
{
	struct verve_av_user *user = malloc(sizeof(*user));

	if (!user)
		return -FI_ENOMEM;
	user->engine = engine;
	verve_lock_acquire(&av->lock);
	LIST_INSERT_HEAD(&av->users, user, link);
	verve_lock_release(&av->lock);
	return 0;
}

void verve_av_unbind_engine(struct verve_av *av, struct verve_engine *engine)
{
	struct verve_av_user *user;

	verve_lock_acquire(&av->lock);
	LIST_FOREACH(user, &av->users, link) {
		if (user->engine == engine)
			break;
	}
	if (user)
		LIST_REMOVE(user, link);
	verve_lock_release(&av->lock);
	free(user);
}

/*
 * One insertion call. Its addresses are inserted in order. The results go to the arrays, to the
 * event queue and to the count.
 */
struct insertion {
	struct verve_av *av;
	fi_addr_t *fi_addr; /* NULL: the application does not want it */
	int *errors;	    /* of FI_SYNC_ERR; NULL: the application does not want it */
	void *context;
	uint64_t index; /* index of the next address in the arrays */
	int inserted;
	int error; /* negative FI errno: an event could not be written */
};

static int insertion_begin(struct insertion *ins, struct verve_av *av, fi_addr_t *fi_addr,
			   uint64_t flags, void *context)
{
	if (flags & ~(FI_MORE | FI_SYNC_ERR) || (flags & FI_SYNC_ERR && av->flags & FI_EVENT)) {
		VERVE_WARN(AV, "insertion flags 0x%llx are not supported\n",
			   (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	if (flags & FI_SYNC_ERR && !context) {
		VERVE_WARN(AV, "FI_SYNC_ERR needs an array in context\n");
		return -FI_EINVAL;
	}
	if (av->flags & FI_EVENT && !av->eq) {
		VERVE_WARN(AV, "opened with FI_EVENT, but no event queue is bound\n");
		return -FI_ENOEQ;
	}
	*ins = (struct insertion){
		.av = av,
		.fi_addr = fi_addr,
		.errors = flags & FI_SYNC_ERR ? context : NULL,
		.context = context,
	};
	return 0;
}

/* The next address of the call is not inserted. error: negative FI errno, the reason. */
static void insertion_fail(struct insertion *ins, int error)
{
	struct fi_eq_err_entry entry = {
		.fid = &ins->av->fid.fid,
		.context = ins->context,
		.data = ins->index,
		.err = -error,
	};

	if (ins->fi_addr)
		ins->fi_addr[ins->index] = FI_ADDR_NOTAVAIL;
	if (ins->errors)
		ins->errors[ins->index] = -error;
	if (ins->av->flags & FI_EVENT && !ins->error)
		ins->error = verve_eq_write_error(ins->av->eq, &entry);
	ins->index++;
}

static bool is_endpoint(const struct verve_addr *addr)
{
	if (!verve_addr_port(addr))
		return false;
	if (addr->sa.sa_family == AF_INET)
		return addr->in.sin_addr.s_addr != htonl(INADDR_ANY) &&
		       addr->in.sin_addr.s_addr != htonl(INADDR_BROADCAST) &&
		       !IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr));
	return !IN6_IS_ADDR_UNSPECIFIED(&addr->in6.sin6_addr) &&
	       !IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr) &&
	       !IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
}

static void insertion_add(struct insertion *ins, struct verve_addr *addr)
{
	const struct verve_net_port *port = verve_net_device_port(ins->av->domain->dev);
	char text[VERVE_ADDR_STRLEN];
	uint64_t fi_addr;
	int ret;

	if (!is_endpoint(addr)) {
		VERVE_WARN(AV, "%s cannot be an endpoint's address\n", verve_addr_str(addr, text));
		insertion_fail(ins, -FI_EADDRNOTAVAIL);
		return;
	}
	verve_addr_take_scope(addr, &port->addrs[0].addr);
	/*
	 * Insert under the vector's lock: otherwise the address might get an index that an engine
	 * has still to forget.
	 */
	verve_lock_acquire(&ins->av->lock);
	ret = verve_addrvec_insert(&ins->av->addrs, addr, &fi_addr);
	verve_lock_release(&ins->av->lock);
	if (ret) {
		insertion_fail(ins, ret);
		return;
	}
	if (ins->fi_addr)
		ins->fi_addr[ins->index] = fi_addr;
	if (ins->errors)
		ins->errors[ins->index] = 0;
	ins->index++;
	ins->inserted++;
}

/* The value that the call returns. */
static int insertion_end(struct insertion *ins)
{
	struct fi_eq_entry entry = {
		.fid = &ins->av->fid.fid,
		.context = ins->context,
		.data = (uint64_t)ins->inserted,
	};

	if (!(ins->av->flags & FI_EVENT))
		return ins->inserted;
	if (!ins->error)
		ins->error =
			verve_eq_write_event(ins->av->eq, FI_AV_COMPLETE, &entry, sizeof(entry));
	return ins->error;
}

/* The address family of the domain's format. AF_UNSPEC: both. */
static int family_of(const struct verve_av *av)
{
	switch (av->domain->addr_format) {
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return AF_UNSPEC;
	}
}

static size_t sockaddr_len(int family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* sockaddr may be unaligned. */
static int sockaddr_family(const void *sockaddr)
{
	sa_family_t family;

	memcpy(&family, (const char *)sockaddr + offsetof(struct sockaddr, sa_family),
	       sizeof(family));
	return family;
}

/*
 * addrs has one address behind the other. If the domain's format leaves the family open, all
 * addresses are of the family of the first.
 */
static int av_insert(struct fid_av *fid, const void *addrs, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct verve_av *av = verve_av_from_fid(&fid->fid);
	struct insertion ins;
	int family = family_of(av);
	size_t len;
	int ret;

	if ((!addrs && count) || count > INT32_MAX)
		return -FI_EINVAL;
	ret = insertion_begin(&ins, av, fi_addr, flags, context);
	if (ret)
		return ret;
	if (family == AF_UNSPEC && count)
		family = sockaddr_family(addrs);
	len = sockaddr_len(family);
	for (size_t i = 0; i < count; i++) {
		const char *sockaddr = (const char *)addrs + i * len;
		struct verve_addr addr;

		if (len && sockaddr_family(sockaddr) == family &&
		    !verve_addr_set(&addr, sockaddr, len)) {
			insertion_add(&ins, &addr);
			continue;
		}
		VERVE_WARN(AV, "address %zu is of family %d, not of the domain's format\n", i,
			   sockaddr_family(sockaddr));
		insertion_fail(&ins, -FI_EINVAL);
	}
	return insertion_end(&ins);
}

/*
 * Resolves node and service. node NULL: the caller needs the port alone. -FI_EADDRNOTAVAIL: there
 * is no such address. Logs.
 */
static int resolve(const struct verve_av *av, int family, const char *node, const char *service,
		   struct verve_addr *addr)
{
	const struct verve_net_port *port = verve_net_device_port(av->domain->dev);
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM};
	struct addrinfo *list, *ai;
	int ret;

	ret = getaddrinfo(node, service, &hints, &list);
	if (ret) {
		VERVE_WARN(AV, "%s port %s: %s\n", node ? node : "*", service, gai_strerror(ret));
		return -FI_EADDRNOTAVAIL;
	}
	ret = -FI_EADDRNOTAVAIL;
	if (node && verve_node_choose(list, &port->addrs[0].addr, addr) > 0)
		ret = 0;
	for (ai = list; ai && ret; ai = ai->ai_next)
		ret = verve_addr_set(addr, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(list);
	return ret;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct verve_av *av = verve_av_from_fid(&fid->fid);
	int family = family_of(av), ret;
	struct verve_node_str str;
	struct verve_addr addr;
	struct insertion ins;

	if (!node)
		return -FI_EINVAL;
	if (!service) {
		if (verve_node_parse_str(node, &str) || !str.service[0]) {
			VERVE_WARN(AV, "%s: neither a service nor an address string with a port\n",
				   node);
			return -FI_EINVAL;
		}
		node = str.host;
		service = str.service;
		if (family == AF_UNSPEC)
			family = str.family;
	}
	ret = insertion_begin(&ins, av, fi_addr, flags, context);
	if (ret)
		return ret;
	ret = resolve(av, family, node, service, &addr);
	if (ret)
		insertion_fail(&ins, ret);
	else
		insertion_add(&ins, &addr);
	return insertion_end(&ins);
}

/* Adds n to the IP address, which counts as one number. -FI_EADDRNOTAVAIL: the sum is too large. */
static int add_to_address(struct verve_addr *addr, uint64_t n)
{
	uint8_t *bytes = addr->in6.sin6_addr.s6_addr;
	size_t len = sizeof(addr->in6.sin6_addr);

	if (addr->sa.sa_family == AF_INET) {
		bytes = (uint8_t *)&addr->in.sin_addr;
		len = sizeof(addr->in.sin_addr);
	}
	for (size_t i = len; i > 0; i--) {
		n += bytes[i - 1];
		bytes[i - 1] = (uint8_t)n;
		n >>= 8;
	}
	return n ? -FI_EADDRNOTAVAIL : 0;
}

/*
 * Makes the name of the n-th host after node: "node08" and 2 make "node10". -FI_EINVAL: the name
 * has no number at its end, or becomes too long.
 */
static int add_to_name(const char *node, uint64_t n, char *host)
{
	size_t prefix = strlen(node);
	int digits, len;

	while (prefix > 0 && isdigit((unsigned char)node[prefix - 1]))
		prefix--;
	digits = (int)strlen(node + prefix);
	if (!n)
		len = snprintf(host, HOST_MAX, "%s", node);
	else if (!digits)
		return -FI_EINVAL;
	else
		len = snprintf(host, HOST_MAX, "%.*s%0*llu", (int)prefix, node, digits,
			       strtoull(node + prefix, NULL, 10) + n);
	return len < HOST_MAX ? 0 : -FI_EINVAL;
}

/*
 * The address of the n-th host after node, which is an IP address or a name, with the port of
 * service.
 */
static int resolve_nth(const struct verve_av *av, const char *node, uint64_t n,
		       const char *service, struct verve_addr *addr)
{
	int family = family_of(av);
	struct addrinfo hints = {.ai_family = family, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *list;
	char host[HOST_MAX];
	int ret;

	if (!getaddrinfo(node, NULL, &hints, &list)) {
		freeaddrinfo(list);
		ret = resolve(av, family, node, service, addr);
		return ret ? ret : add_to_address(addr, n);
	}
	ret = add_to_name(node, n, host);
	return ret ? ret : resolve(av, family, host, service, addr);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct verve_av *av = verve_av_from_fid(&fid->fid);
	struct verve_addr addr, first;
	struct insertion ins;
	uint32_t port;
	int ret;

	if (!node || !service || svccnt > UINT16_MAX || nodecnt > INT32_MAX / (svccnt + 1))
		return -FI_EINVAL;
	ret = insertion_begin(&ins, av, fi_addr, flags, context);
	if (ret)
		return ret;
	if (resolve(av, family_of(av), NULL, service, &first))
		return -FI_EINVAL;
	port = verve_addr_port(&first);
	if (port + svccnt > UINT16_MAX + 1u) {
		VERVE_WARN(AV, "ports %u to %zu: there is none above 65535\n", port,
			   port + svccnt - 1);
		return -FI_EINVAL;
	}
	for (size_t n = 0; n < nodecnt; n++) {
		ret = resolve_nth(av, node, n, service, &addr);
		for (uint32_t s = 0; s < svccnt; s++) {
			if (ret) {
				insertion_fail(&ins, ret);
				continue;
			}
			verve_addr_set_port(&addr, (uint16_t)(port + s));
			insertion_add(&ins, &addr);
		}
	}
	return insertion_end(&ins);
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct verve_av *av = verve_av_from_fid(&fid->fid);
	struct verve_av_user *user;
	int ret = 0;

	if (flags)
		return -FI_EBADFLAGS;
	if (!fi_addr && count)
		return -FI_EINVAL;
	verve_lock_acquire(&av->lock);
	for (size_t i = 0; i < count; i++) {
		int removed = verve_addrvec_remove(&av->addrs, fi_addr[i]);

		if (removed < 0) {
			VERVE_WARN(AV, "address %llu is not in the vector\n",
				   (unsigned long long)fi_addr[i]);
			ret = removed;
		} else if (removed) {
			LIST_FOREACH(user, &av->users, link)
				verve_engine_forget(user->engine, fi_addr[i]);
		}
	}
	verve_lock_release(&av->lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *buf, size_t *len)
{
	struct verve_av *av = verve_av_from_fid(&fid->fid);
	struct verve_addr addr;
	size_t room = *len;

	if (!verve_addrvec_get(&av->addrs, fi_addr, &addr))
		return -FI_EINVAL;
	*len = verve_addr_len(&addr);
	if (room)
		memcpy(buf, &addr, room < *len ? room : *len);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *sockaddr, char *buf, size_t *len)
{
	int family = sockaddr_family(sockaddr);
	char text[VERVE_ADDR_STRLEN];
	struct verve_addr addr;

	(void)fid;
	if (verve_addr_set(&addr, sockaddr, sockaddr_len(family)))
		*len = 1 + (size_t)snprintf(buf, *len, "unknown");
	else
		*len = 1 + (size_t)snprintf(buf, *len, "fi_sockaddr_%s://%s",
					    family == AF_INET ? "in" : "in6",
					    verve_addr_str(&addr, text));
	return buf;
}

static int av_close(struct fid *fid)
{
	struct verve_av *av = verve_av_from_fid(fid);
	AO_t references = AO_load_acquire(&av->references);

	if (references) {
		VERVE_WARN(AV, "cannot close, %zu endpoints are bound to it\n", (size_t)references);
		return -FI_EBUSY;
	}
	verve_addrvec_fini(&av->addrs);
	verve_lock_fini(&av->lock);
	if (av->eq)
		verve_eq_put(av->eq);
	verve_domain_put(av->domain);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct verve_av *av = verve_av_from_fid(fid);

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if (av->eq) {
		VERVE_WARN(AV, "an event queue is bound already\n");
		return -FI_EINVAL;
	}
	av->eq = (struct fid_eq *)bfid;
	verve_eq_get(av->eq);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = verve_stub_control,
	.ops_open = verve_stub_ops_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = verve_stub_av_av_set,
};

/* Checks attr, and sets its type if the application left it open. */
static int check_attr(struct fi_av_attr *attr)
{
	if (attr->name || attr->flags & FI_READ) {
		VERVE_INFO(AV, "shared address vectors are not supported\n");
		return -FI_ENOSYS;
	}
	/* FI_SYMMETRIC tells of addresses that could be stored in less memory. */
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC)) {
		VERVE_WARN(AV, "flags 0x%llx are not supported\n", (unsigned long long)attr->flags);
		return -FI_EBADFLAGS;
	}
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > RX_CTX_BITS_MAX) {
		VERVE_WARN(AV, "rx_ctx_bits is %d, not 0 to %d\n", attr->rx_ctx_bits,
			   RX_CTX_BITS_MAX);
		return -FI_EINVAL;
	}
	switch (attr->type) {
	case FI_AV_UNSPEC:
		attr->type = FI_AV_TABLE;
		return 0;
	case FI_AV_MAP:
	case FI_AV_TABLE:
		return 0;
	default:
		return -FI_EINVAL;
	}
}

int verve_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid,
		  void *context)
{
	struct verve_av *av;
	int ret;

	if (!attr)
		return -FI_EINVAL;
	ret = check_attr(attr);
	if (ret)
		return ret;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fid_ops;
	av->fid.ops = &av_ops;
	av->domain = verve_domain_from_fid(&domain->fid);
	av->flags = attr->flags & FI_EVENT;
	verve_addrvec_init(&av->addrs);
	verve_lock_init(&av->lock, false);
	LIST_INIT(&av->users);
	verve_domain_get(av->domain);
	*fid = &av->fid;
	return 0;
}
