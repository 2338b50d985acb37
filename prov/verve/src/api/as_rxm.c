/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * As ofi_rxm: a second entry point, for a shared object of its own. Core identifies providers by
 * name. If several providers have the same name, core uses the one with the highest version and
 * hides the others.
 */
#include "api/as_rxm.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/info.h"
#include "api/prov.h"
#include "base/log.h"

/* Core appends ";ofi_rxm" to this name. */
static const char core_name[] = "verbs";
static const char own_name[] = "ofi_rxm";

static bool is_asked(const char *name)
{
	return !strcasecmp(name, "verbs;ofi_rxm") || !strcasecmp(name, "ofi_rxm;verbs") ||
	       !strcasecmp(name, own_name);
}

static int refuse_hints(const char *name)
{
	if (name && strcasestr(name, own_name))
		VERVE_WARN(FABRIC,
			   "nothing for %s: libverve-as-rxm-fi.so hides libfabric's own ofi_rxm "
			   "and answers verbs;ofi_rxm alone; take its folder out of "
			   "FI_PROVIDER_PATH\n", name);
	return -FI_ENODATA;
}

/* Sets the provider's name and the protocol. Core completes the name after getinfo has returned. */
static int rename_infos(struct fi_info *list)
{
	for (struct fi_info *info = list; info; info = info->next) {
		info->fabric_attr->prov_name = strdup(core_name);
		if (!info->fabric_attr->prov_name)
			return -FI_ENOMEM;
		info->ep_attr->protocol = FI_PROTO_RXM;
	}
	return 0;
}

int verve_as_rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			 const struct fi_info *hints, struct fi_info **info)
{
	const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;
	struct fi_info own = {0};
	struct fi_ep_attr ep = {0};
	int ret;

	if (!name || !is_asked(name))
		return refuse_hints(name);
	/*
	 * The application's hints are as long as their version defines: nic is there since version
	 * 1.7, authorization keys since version 1.5. Memory behind that must not be read.
	 */
	memcpy(&own, hints,
	       FI_VERSION_LT(version, FI_VERSION(1, 7)) ? offsetof(struct fi_info, nic) :
							  sizeof(own));
	if (hints->ep_attr && hints->ep_attr->protocol == FI_PROTO_RXM) {
		memcpy(&ep, hints->ep_attr,
		       FI_VERSION_LT(version, FI_VERSION(1, 5)) ?
			       offsetof(struct fi_ep_attr, auth_key_size) :
			       sizeof(ep));
		ep.protocol = FI_PROTO_UNSPEC;
		ep.protocol_version = 0;
		own.ep_attr = &ep;
	}
	ret = verve_info_get(version, node, service, flags, &own, info);
	if (ret)
		return ret;
	ret = rename_infos(*info);
	if (ret) {
		fi_freeinfo(*info);
		*info = NULL;
	}
	return ret;
}

/*
 * Variables and log keep the name of verve. Only name, version and getinfo, which core uses, are
 * different.
 */
FI_EXT_INI
{
	static struct fi_provider as_rxm;

	as_rxm = *verve_prov_load();
	as_rxm.name = own_name;
	as_rxm.version = VERVE_AS_RXM_VERSION;
	as_rxm.getinfo = verve_as_rxm_getinfo;
	VERVE_WARN(CORE,
		   "libverve-as-rxm-fi.so answers in the place of verbs;ofi_rxm, with endpoints of "
		   "verve; libfabric's own ofi_rxm is hidden, over every provider\n");
	return &as_rxm;
}
