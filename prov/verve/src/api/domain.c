/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domain: opens the port that an fi_info names; the list of open domains; functions that the
 * objects of a domain share.
 */
#include "api/domain.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/attr.h"
#include "api/auth.h"
#include "api/eq.h"
#include "api/fabric.h"
#include "api/name.h"
#include "api/port_cache.h"
#include "base/config.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/progress.h"
#include "net/device.h"
#include "rma/key.h"

/* libfabric 2.x deprecates this name, as those in api/attr.h. */
#define REG_MR (1ull << 59) /* FI_REG_MR */

/* In the order in which they were opened. */
static TAILQ_HEAD(, verve_domain) domains = TAILQ_HEAD_INITIALIZER(domains);
static pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * A thread may have held the lock at the fork(2). The child does not have that thread, but may call
 * fi_getinfo, which takes the lock.
 */
static void in_child(void)
{
	pthread_mutex_init(&domains_lock, NULL);
}

static void register_fork(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

void verve_domain_get(struct verve_domain *domain)
{
	AO_fetch_and_add1(&domain->references);
}

void verve_domain_put(struct verve_domain *domain)
{
	AO_fetch_and_sub1_release(&domain->references);
}

uint32_t verve_domain_api_version(const struct verve_domain *domain)
{
	return domain->api_version;
}

bool verve_domain_elides_locks(const struct verve_domain *domain)
{
	return !domain->progress && domain->threading == FI_THREAD_DOMAIN;
}

int verve_domain_mr_event(struct verve_domain *domain, struct fid_mr *mr)
{
	struct fi_eq_entry entry = {.fid = &mr->fid, .context = mr->fid.context};

	if (!domain->mr_events)
		return 0;
	return verve_eq_write_event(domain->eq, FI_MR_COMPLETE, &entry, sizeof(entry));
}

void verve_domain_add_engine(struct verve_domain *domain, struct verve_domain_engine *member,
			     struct verve_engine *engine)
{
	member->engine = engine;
	pthread_mutex_lock(&domain->engine_lock);
	LIST_INSERT_HEAD(&domain->engines, member, link);
	pthread_mutex_unlock(&domain->engine_lock);
}

void verve_domain_remove_engine(struct verve_domain *domain, struct verve_domain_engine *member)
{
	pthread_mutex_lock(&domain->engine_lock);
	LIST_REMOVE(member, link);
	pthread_mutex_unlock(&domain->engine_lock);
}

void verve_domain_revoke(struct verve_domain *domain, const struct verve_mr_key *key)
{
	struct verve_domain_engine *member;

	pthread_mutex_lock(&domain->engine_lock);
	LIST_FOREACH(member, &domain->engines, link) {
		verve_key_revoke(verve_engine_lock(member->engine), key->key, key->generation);
		verve_engine_unlock_within(member->engine);
	}
	pthread_mutex_unlock(&domain->engine_lock);
}

int verve_domain_close(struct fid *fid)
{
	struct verve_domain *domain = verve_domain_from_fid(fid);
	AO_t references = AO_load_acquire(&domain->references);

	if (references) {
		VERVE_WARN(DOMAIN, "%s: cannot close, %zu objects are still open on it\n",
			   verve_net_device_port(domain->dev)->device, (size_t)references);
		return -FI_EBUSY;
	}
	pthread_mutex_lock(&domains_lock);
	TAILQ_REMOVE(&domains, domain, link);
	pthread_mutex_unlock(&domains_lock);
	if (domain->progress)
		verve_progress_close(domain->progress);
	pthread_mutex_destroy(&domain->engine_lock);
	pthread_mutex_destroy(&domain->events.lock);
	verve_mr_cache_fini(&domain->mr_cache);
	verve_mr_keytab_fini(&domain->mr_keytab);
	verve_net_device_close(domain->dev);
	if (domain->eq)
		verve_eq_put(domain->eq);
	verve_fabric_put(domain->fabric);
	verve_auth_key_wipe(&domain->auth_key);
	free(domain);
	return 0;
}

int verve_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct verve_domain *domain = verve_domain_from_fid(fid);

	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	if (flags & ~REG_MR)
		return -FI_EBADFLAGS;
	if (domain->eq) {
		VERVE_WARN(DOMAIN, "%s: an event queue is bound already\n",
			   verve_net_device_port(domain->dev)->device);
		return -FI_EINVAL;
	}
	domain->eq = (struct fid_eq *)bfid;
	domain->mr_events = flags & REG_MR;
	verve_eq_get(domain->eq);
	return 0;
}

/*
 * Replaces FI_MR_BASIC and FI_MR_SCALABLE by the bits that they stand for. Before version 1.5, mode
 * 0 leaves the choice to the provider; verve prefers basic. fi_mr(3).
 */
static int normal_mr_mode(uint32_t api_version, int mode)
{
	if (mode == VERVE_MR_SCALABLE)
		return 0;
	if (mode == VERVE_MR_BASIC || (mode == 0 && FI_VERSION_LT(api_version, FI_VERSION(1, 5))))
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	return mode;
}

/*
 * fi_mr(3): with FI_MR_LOCAL, descriptors are valid. Without FI_MR_LOCAL, they are ignored before
 * version 1.22, and are valid or NULL since. Without FI_MR_ALLOCATED, the pages of a region may
 * have changed since it was registered; so its descriptor is ignored, and the buffer is registered
 * anew.
 */
static bool takes_desc(uint32_t api_version, int mr_mode)
{
	return mr_mode & FI_MR_LOCAL ||
	       (FI_VERSION_GE(api_version, FI_VERSION(1, 22)) && mr_mode & FI_MR_ALLOCATED);
}

/* True if info names the domain's port and address. An endpoint of the domain can have no other. */
static bool has_address(const struct verve_domain *domain, const struct fi_info *info)
{
	const struct verve_net_port *port = verve_net_device_port(domain->dev);
	char name[VERVE_NET_NAME_MAX];
	struct verve_addr addr;

	verve_name_format_domain(port, name);
	return !strcmp(name, info->domain_attr->name) && port->addr_count &&
	       !verve_addr_set(&addr, info->src_addr, info->src_addrlen) &&
	       verve_addr_same_host(&addr, &port->addrs[0].addr);
}

/*
 * True if keys and addresses of regions mean the same for info as for the domain. For a domain that
 * the application asked for, it is enough that info grants all modes of the domain.
 */
static bool has_mr_mode(const struct verve_domain *domain, const struct fi_info *info, bool asked)
{
	const int modes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	int have = domain->mr_mode & modes;
	int granted = normal_mr_mode(domain->api_version, info->domain_attr->mr_mode) & modes;

	if (!(info->caps & (FI_RMA | FI_ATOMIC)) || have == granted)
		return true;
	return asked && !(info->domain_attr->mr_mode & (VERVE_MR_BASIC | VERVE_MR_SCALABLE)) &&
	       !(have & ~granted);
}

/* Keys are not compared: an application that gives a key gets a domain of its own. */
static bool has_no_keys(const struct verve_domain *domain, const struct fi_info *info)
{
	return !domain->own_key && !info->domain_attr->auth_key_size;
}

static bool domain_fits(const struct verve_domain *domain, uint32_t version,
			const struct fi_info *info, bool asked)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	return domain->api_version == version && has_address(domain, info) &&
	       (domain->threading != FI_THREAD_DOMAIN || attr->threading == FI_THREAD_DOMAIN) &&
	       (domain->progress || attr->data_progress != FI_PROGRESS_AUTO) &&
	       (domain->caps & FI_ATOMIC || ~info->caps & FI_ATOMIC) &&
	       has_mr_mode(domain, info, asked) && has_no_keys(domain, info);
}

struct fid_domain *verve_domain_find(uint32_t version, const struct fid_domain *asked,
				     const struct fi_info *info, int *mr_mode)
{
	struct verve_domain *domain;

	pthread_mutex_lock(&domains_lock);
	TAILQ_FOREACH(domain, &domains, link) {
		if (asked && asked != &domain->fid)
			continue;
		if (domain_fits(domain, version, info, asked))
			break;
	}
	/*
	 * has_mr_mode has made sure that info grants the modes of the domain. FI_MR_BASIC and
	 * FI_MR_SCALABLE stand alone, so they are not changed.
	 */
	if (domain && asked && info->caps & (FI_RMA | FI_ATOMIC) &&
	    !(*mr_mode & (VERVE_MR_BASIC | VERVE_MR_SCALABLE)))
		*mr_mode &= domain->mr_mode | FI_MR_LOCAL;
	pthread_mutex_unlock(&domains_lock);
	return domain ? &domain->fid : NULL;
}

bool verve_domain_find_addr(const struct fid_domain *asked, struct verve_addr *addr)
{
	const struct verve_net_port *port;
	struct verve_domain *domain;

	pthread_mutex_lock(&domains_lock);
	TAILQ_FOREACH(domain, &domains, link) {
		if (asked == &domain->fid)
			break;
	}
	port = domain ? verve_net_device_port(domain->dev) : NULL;
	if (port && port->addr_count)
		*addr = port->addrs[0].addr;
	pthread_mutex_unlock(&domains_lock);
	return port && port->addr_count;
}

static int domain_check(const struct fi_info *info, int mr_mode)
{
	if (info->ep_attr && info->ep_attr->type != FI_EP_UNSPEC &&
	    info->ep_attr->type != FI_EP_RDM) {
		VERVE_WARN(DOMAIN, "%s: only FI_EP_RDM endpoints\n", info->domain_attr->name);
		return -FI_EINVAL;
	}
	if (!verve_attr_is_ip_format(info->addr_format)) {
		VERVE_WARN(DOMAIN, "%s: address format %u is not an IP address\n",
			   info->domain_attr->name, info->addr_format);
		return -FI_EINVAL;
	}
	if (mr_mode & (VERVE_MR_BASIC | VERVE_MR_SCALABLE)) {
		VERVE_WARN(DOMAIN, "%s: mr_mode 0x%x: basic or scalable go with no other mode\n",
			   info->domain_attr->name, mr_mode);
		return -FI_EINVAL;
	}
	return 0;
}

/*
 * Opens the port that the domain's name names. If the application chose a source address, the port
 * uses the GID of that address.
 */
static int open_device(const struct fi_info *info, struct verve_net_device **dev)
{
	char device[VERVE_NET_NAME_MAX];
	struct verve_addr addr;
	uint8_t port;
	int ret;

	ret = verve_name_parse_domain(info->domain_attr->name, device, &port);
	if (ret) {
		VERVE_WARN(DOMAIN, "no domain is named %s\n", info->domain_attr->name);
		return ret;
	}
	if (info->src_addr) {
		ret = verve_addr_set(&addr, info->src_addr, info->src_addrlen);
		if (ret) {
			VERVE_WARN(DOMAIN, "%s: source address is not an IP address\n",
				   info->domain_attr->name);
			return ret;
		}
	}
	ret = verve_net_device_open(device, port, info->src_addr ? &addr : NULL, dev);
	/* The kept list may be from before: GIDs can change without a sign that its stamp shows. */
	if (ret)
		verve_port_cache_clear();
	return ret;
}

/*
 * Opening fails if the device has no atomics. The processor cannot execute them instead, because
 * peers whose devices execute atomics would refuse this domain.
 */
static int choose_atomics(struct verve_domain *domain)
{
	const struct verve_net_port *port = verve_net_device_port(domain->dev);

	if (~domain->caps & FI_ATOMIC || strcmp(verve_config.atomics, "device"))
		return 0;
	if (!port->limits.atomics) {
		VERVE_WARN(DOMAIN,
			   "%s: FI_VERVE_ATOMICS=device, but the device has no atomics: unset it "
			   "here and at all peers\n", port->device);
		return -FI_EOPNOTSUPP;
	}
	domain->device_atomics = true;
	return 0;
}

/*
 * Opening fails if there should be a key and it cannot be had: without the key, anybody could
 * connect.
 */
static int choose_key(struct verve_domain *domain, uint32_t api_version,
		      const struct fi_domain_attr *attr)
{
	if (FI_VERSION_GE(api_version, FI_VERSION(1, 5)) && attr->auth_key_size)
		return verve_auth_from_attr(attr->name, attr->auth_key, attr->auth_key_size,
					    &domain->auth_key);
	if (verve_config.auth_key_file)
		return verve_auth_from_file(verve_config.auth_key_file, &domain->auth_key);
	return 0;
}

/*
 * Opens what the domain works with: the port, its key, and its progress thread. All else of the
 * domain cannot fail. After an error, nothing is open.
 */
static int domain_open_parts(struct verve_domain *domain, const struct fi_info *info,
			     uint32_t api_version)
{
	int ret;

	ret = open_device(info, &domain->dev);
	if (ret)
		return ret;
	domain->caps = info->caps;
	ret = choose_atomics(domain);
	if (ret)
		goto err_device;
	ret = choose_key(domain, api_version, info->domain_attr);
	if (ret)
		goto err_device;
	if (info->domain_attr->data_progress == FI_PROGRESS_AUTO) {
		ret = verve_progress_open(&domain->progress);
		if (ret)
			goto err_key;
	}
	return 0;

err_key:
	verve_auth_key_wipe(&domain->auth_key);
err_device:
	verve_net_device_close(domain->dev);
	return ret;
}

/* From here on, fi_getinfo finds the domain. */
static void domain_publish(struct verve_domain *domain)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_fork);
	pthread_mutex_lock(&domains_lock);
	TAILQ_INSERT_TAIL(&domains, domain, link);
	pthread_mutex_unlock(&domains_lock);
}

int verve_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		      const struct verve_domain_tables *tables, struct fid_domain **fid,
		      void *context)
{
	uint32_t api_version = fabric->api_version;
	struct verve_domain *domain;
	int mr_mode, ret;

	if (!info || !info->domain_attr || !info->domain_attr->name)
		return -FI_EINVAL;
	mr_mode = normal_mr_mode(api_version, info->domain_attr->mr_mode);
	ret = domain_check(info, mr_mode);
	if (ret)
		return ret;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	ret = domain_open_parts(domain, info, api_version);
	if (ret)
		goto err_free;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = tables->fid;
	domain->fid.ops = tables->domain;
	domain->fid.mr = tables->mr;
	domain->fabric = fabric;
	domain->api_version = api_version;
	domain->threading = info->domain_attr->threading;
	if (FI_VERSION_GE(api_version, FI_VERSION(1, 9)))
		domain->dscp = verve_attr_dscp(info->domain_attr->tclass);
	domain->addr_format = info->addr_format;
	domain->mr_mode = mr_mode;
	domain->takes_desc = takes_desc(api_version, mr_mode);
	domain->own_key = FI_VERSION_GE(api_version, FI_VERSION(1, 5)) &&
			  info->domain_attr->auth_key_size;
	verve_mr_cache_init(&domain->mr_cache, domain->dev);
	verve_mr_cache_measure(&domain->mr_cache);
	verve_mr_keytab_init(&domain->mr_keytab);
	pthread_mutex_init(&domain->events.lock, NULL);
	LIST_INIT(&domain->events.regions);
	LIST_INIT(&domain->events.eps);
	pthread_mutex_init(&domain->engine_lock, NULL);
	LIST_INIT(&domain->engines);
	verve_fabric_get(fabric);
	domain_publish(domain);
	*fid = &domain->fid;
	return 0;

err_free:
	free(domain);
	return ret;
}
