/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Endpoint: open, names, enable, close. bind.c has the objects that it is bound to. */
#include "api/ep_open.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/alias.h"
#include "api/atomic.h"
#include "api/attr.h"
#include "api/auth.h"
#include "api/av.h"
#include "api/bind.h"
#include "api/cq.h"
#include "api/domain.h"
#include "api/ep.h"
#include "api/msg.h"
#include "api/rma.h"
#include "api/srx.h"
#include "api/profile.h"
#include "api/stubs.h"
#include "api/tagged.h"
#include "base/config.h"
#include "base/log.h"
#include "engine/engine.h"
#include "net/device.h"
#include "net/dgram.h"
#include "xport/xport.h"

/*
 * On RoCE, peers without this endpoint's key refuse an address that does not lead to the port: the
 * connection could be forged. Their log, not this one, would say so.
 */
static void warn_of_name(const struct verve_ep *ep)
{
	const struct verve_net_port *port = verve_net_device_port(ep->domain->dev);
	char name[VERVE_ADDR_STRLEN], own[VERVE_ADDR_STRLEN];

	if (port->ethernet && port->addr_count && !ep->auth_key.is_set &&
	    !verve_addr_same_host(&ep->addr, &port->addrs[0].addr))
		VERVE_WARN(EP_CTRL, "%s is not the address of %s port %u, %s: peers will refuse "
			   "this endpoint's connections (is its info another domain's?)\n",
			   verve_addr_str(&ep->addr, name), port->device, port->port_num,
			   verve_addr_str(&port->addrs[0].addr, own));
	if (port->ethernet && verve_addr_port(&ep->addr) == VERVE_NET_ROCE_PORT)
		VERVE_WARN(EP_CTRL, "%s has the UDP port of RoCE v2, whose datagrams most devices "
			   "keep for themselves: give the endpoint another port\n",
			   verve_addr_str(&ep->addr, name));
}

/*
 * Peers may ask the engine for keys of regions until it is stopped. By the domain's list it hears
 * of each region that closes, and tells these peers: so it leaves the list between the two steps.
 */
static void engine_end(struct verve_ep *ep, struct verve_engine *engine)
{
	verve_engine_stop(engine);
	verve_domain_remove_engine(ep->domain, &ep->in_domain);
	verve_engine_close(engine);
}

static int ep_enable(struct verve_ep *ep)
{
	struct verve_xport_attr xport = {
		.dev = ep->domain->dev,
		.mr_cache = &ep->domain->mr_cache,
		.mr_keytab = &ep->domain->mr_keytab,
		.tx_size = ep->tx_size,
		.inline_size = verve_config.inline_size,
		.dscp = ep->dscp,
		.eager_size = verve_config.eager_size,
		.send_vector = ep->tx_cq ? ep->tx_cq->vector : -1,
		.recv_vector = ep->rx_cq ? ep->rx_cq->vector : -1,
		.window = verve_config.window,
		.min_multi_recv = ep->min_multi_recv,
		.keepalive = verve_config.transport_timeout * 1000000ull / 2,
		.source = ep->caps & FI_SOURCE,
		.rma_event = ep->caps & FI_RMA_EVENT,
		.app_keys = ~ep->domain->mr_mode & FI_MR_PROV_KEY,
		.device_atomics = ep->domain->device_atomics,
	};
	struct verve_engine_attr attr = {
		.addr = ep->addr,
		.key = ep->auth_key.is_set ? &ep->auth_key : NULL,
		.elide_lock = verve_domain_elides_locks(ep->domain),
		.xport = &xport,
		.shared = ep->srx ? ep->srx->ep.engine : NULL,
		.failed = verve_bind_report_failure,
		.arg = ep,
	};
	struct verve_engine *engine;
	int ret;

	if (ep->engine)
		return -FI_EOPBADSTATE;
	ret = verve_bind_check(ep);
	if (!ret)
		ret = verve_bind_prepare_failure(ep);
	if (ret)
		return ret;
	warn_of_name(ep);
	verve_bind_fill_sink(ep, &xport.sink);
	xport.addrvec = &ep->av->addrs;
	attr.lock = ep->srx ? NULL : verve_bind_lend_lock(ep);
	ret = verve_engine_open(&attr, &engine);
	if (ret)
		return ret;
	ep->engine = engine;
	/* The list comes before any turn: by a turn a peer may hear of a key that then ends. */
	verve_domain_add_engine(ep->domain, &ep->in_domain, engine);
	ret = verve_bind_engine(ep, engine);
	if (ret)
		goto err_engine;
	verve_engine_start(engine);
	verve_alias_enable_all(ep);
	return 0;

err_engine:
	ep->engine = NULL;
	engine_end(ep, engine);
	return ret;
}

/* True, after a warning: open aliases or profiles point to the endpoint. */
static bool is_used(struct verve_ep *ep)
{
	AO_t profiles = AO_load_acquire(&ep->profiles);

	if (verve_alias_is_any_open(ep)) {
		VERVE_WARN(EP_CTRL, "cannot close endpoint %p: it has aliases\n", (void *)ep);
		return true;
	}
	if (profiles) {
		VERVE_WARN(EP_CTRL, "cannot close endpoint %p: %zu profiles are open of it\n",
			   (void *)ep, (size_t)profiles);
		return true;
	}
	return false;
}

static int ep_close(struct fid *fid)
{
	struct verve_ep *ep = (struct verve_ep *)fid;

	/*
	 * In a child after fork(2): closing a queue pair there closes the parent's, and what is
	 * posted there lies in the parent's queues. All stays as it is until the child ends. A
	 * thread of the parent may have held the lock of the aliases.
	 */
	if (ep->engine && verve_engine_is_inherited(ep->engine))
		return 0;
	if (ep->owner != ep) {
		verve_alias_close(ep);
		return 0;
	}
	if (is_used(ep))
		return -FI_EBUSY;
	/* The application knows the endpoint no more, and would not know what an entry is about. */
	verve_bind_drop_failure(ep);
	if (ep->engine) {
		/*
		 * From here on, no other object but a shared receive context makes progress on the
		 * engine. verve_engine_stop does.
		 */
		verve_bind_engine_undo(ep, ep->engine);
		engine_end(ep, ep->engine);
	}
	verve_bind_forget_failure(ep);
	verve_bind_put_all(ep);
	verve_domain_put(ep->domain);
	verve_auth_key_wipe(&ep->auth_key);
	pthread_mutex_destroy(&ep->alias_lock);
	free(ep);
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct verve_ep *ep = (struct verve_ep *)fid;

	switch (command) {
	case FI_ENABLE:
		return ep_enable(ep->owner);
	case FI_GETOPSFLAG:
		return verve_ep_get_op_flags(ep, arg);
	case FI_SETOPSFLAG:
		return verve_ep_set_op_flags(ep, *(uint64_t *)arg);
	case FI_ALIAS:
		return verve_alias_open(ep, arg);
	default:
		return -FI_ENOSYS;
	}
}

/* Until the endpoint is enabled: what it was opened with or fi_setname gave, if that has a port. */
static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct verve_ep *ep = verve_ep_owner(fid);
	const struct verve_addr *name;
	size_t room = *addrlen;

	if (!ep->engine && !verve_addr_port(&ep->addr))
		return -FI_EOPBADSTATE;
	name = ep->engine ? verve_engine_addr(ep->engine) : &ep->addr;
	*addrlen = verve_addr_len(name);
	if (room)
		memcpy(addr, &name->sa, room < *addrlen ? room : *addrlen);
	return room < *addrlen ? -FI_ETOOSMALL : 0;
}

/*
 * Sets the endpoint's address to name. A wildcard means all addresses of the host. Of these, the
 * domain's address is the one that leads to the device, so it becomes the endpoint's name. A name
 * must be one definite address: peers insert it into their address vectors, and it is part of the
 * data that a datagram is authenticated with.
 */
static int take_name(struct verve_ep *ep, const struct verve_addr *name)
{
	const struct verve_net_port *port = verve_net_device_port(ep->domain->dev);
	char text[VERVE_ADDR_STRLEN];

	if (!verve_addr_is_wildcard(name)) {
		ep->addr = *name;
		return 0;
	}
	if (!port->addr_count || port->addrs[0].addr.sa.sa_family != name->sa.sa_family) {
		VERVE_WARN(EP_CTRL, "no address of the domain is one of %s\n",
			   verve_addr_str(name, text));
		return -FI_EADDRNOTAVAIL;
	}
	ep->addr = port->addrs[0].addr;
	verve_addr_set_port(&ep->addr, verve_addr_port(name));
	return 0;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct verve_ep *ep = verve_ep_owner(fid);
	struct verve_addr name;
	int ret;

	if (ep->engine)
		return -FI_EOPBADSTATE;
	ret = verve_addr_set(&name, addr, addrlen);
	if (ret)
		return ret;
	if (name.sa.sa_family != ep->addr.sa.sa_family)
		return -FI_EINVAL;
	return take_name(ep, &name);
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = verve_bind,
	.control = ep_control,
	.ops_open = verve_profile_open,
	.tostr = verve_stub_tostr,
	.ops_set = verve_stub_ops_set,
};

static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = verve_stub_cm_getpeer,
	.connect = verve_stub_cm_connect,
	.listen = verve_stub_cm_listen,
	.accept = verve_stub_cm_accept,
	.reject = verve_stub_cm_reject,
	.shutdown = verve_stub_cm_shutdown,
	.join = verve_stub_cm_join,
};

/*
 * Chooses the source address of info, or else the address that the domain was opened on, with a
 * port that the kernel chooses.
 */
static int choose_addr(struct verve_ep *ep, const struct fi_info *info)
{
	const struct verve_net_port *port = verve_net_device_port(ep->domain->dev);
	struct verve_addr name;
	int ret;

	if (!info->src_addr) {
		if (!port->addr_count)
			return -FI_EADDRNOTAVAIL;
		ep->addr = port->addrs[0].addr;
		return 0;
	}
	ret = verve_addr_set(&name, info->src_addr, info->src_addrlen);
	if (ret) {
		VERVE_WARN(EP_CTRL, "info->src_addr is not an IPv4 or IPv6 socket address\n");
		return ret;
	}
	return take_name(ep, &name);
}

static int choose_key(struct verve_ep *ep, const struct fi_ep_attr *attr)
{
	const struct verve_domain *domain = ep->domain;

	if (FI_VERSION_GE(domain->api_version, FI_VERSION(1, 5)) && attr->auth_key_size)
		return verve_auth_from_attr("endpoint", attr->auth_key, attr->auth_key_size,
					    &ep->auth_key);
	ep->auth_key = domain->auth_key;
	return 0;
}

/* An endpoint without a traffic class of its own has the domain's: fi_endpoint(3). */
static uint16_t choose_dscp(const struct verve_domain *domain, const struct fi_tx_attr *attr)
{
	if (FI_VERSION_LT(domain->api_version, FI_VERSION(1, 9)) || attr->tclass == FI_TC_UNSPEC)
		return domain->dscp;
	return verve_attr_dscp(attr->tclass);
}

static int info_check(const struct fi_info *info)
{
	if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr)
		return -FI_EINVAL;
	if (info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC) {
		VERVE_WARN(EP_CTRL, "endpoints are FI_EP_RDM, not type %d\n", info->ep_attr->type);
		return -FI_EINVAL;
	}
	/* A peer that sees more messages under way breaks the connection. */
	if (info->tx_attr->size > VERVE_TX_SIZE_MAX) {
		VERVE_WARN(EP_CTRL, "tx_attr->size is %zu: an endpoint takes %d operations\n",
			   info->tx_attr->size, VERVE_TX_SIZE_MAX);
		return -FI_EINVAL;
	}
	return 0;
}

int verve_ep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **ep_fid,
		  void *context)
{
	struct verve_domain *domain = verve_domain_from_fid(&domain_fid->fid);
	struct verve_ep *ep;
	int ret;

	ret = info_check(info);
	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->owner = ep;
	ep->domain = domain;
	ret = choose_addr(ep, info);
	if (!ret)
		ret = choose_key(ep, info->ep_attr);
	if (ret)
		goto err_free;
	pthread_mutex_init(&ep->alias_lock, NULL);
	LIST_INIT(&ep->aliases);
	ep->caps = info->caps;
	verve_ep_set_directed(ep, info->caps);
	ep->shared_rx = info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->shared_tx = info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
	ep->tx_op_flags = info->tx_attr->op_flags;
	ep->rx_op_flags = info->rx_attr->op_flags;
	ep->tx_size = info->tx_attr->size ? info->tx_attr->size : verve_config.tx_size;
	ep->dscp = choose_dscp(domain, info->tx_attr);
	ep->min_multi_recv = VERVE_EP_MIN_MULTI_RECV;
	verve_ep_update_flags(ep);
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fi_ops;
	ep->fid.ops = &verve_ep_ops;
	ep->fid.cm = &ep_cm_ops;
	ep->fid.msg = info->caps & FI_MSG ? &verve_msg_ops : &verve_stub_msg;
	ep->fid.tagged = info->caps & FI_TAGGED ? &verve_tagged_ops : &verve_stub_tagged;
	ep->fid.rma = info->caps & FI_RMA ? &verve_rma_ops : &verve_stub_rma;
	ep->fid.atomic = info->caps & FI_ATOMIC ? &verve_atomic_ops : &verve_stub_atomic;
	ep->fid.collective = &verve_stub_collective;
	verve_domain_get(domain);
	*ep_fid = &ep->fid;
	return 0;

err_free:
	free(ep);
	return ret;
}
