/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Provider: the entry point. Core calls it under a lock of its own, under which most functions of
 * libfabric would deadlock. So the entry point opens no device.
 */
#include "api/prov.h"

#include "api/attr.h"
#include "api/factory.h"
#include "api/info.h"
#include "api/port_cache.h"
#include "base/config.h"
#include "base/log.h"
#include "base/page.h"
#include "engine/progress.h"
#include "engine/service.h"

/* Core calls this after verve's destructors have run: all threads end here. */
static void cleanup(void)
{
	verve_progress_fini();
	verve_service_fini();
	verve_port_cache_clear();
	verve_page_remove();
}

struct fi_provider verve_prov = {
	.version = VERVE_PROV_VERSION,
	.name = "verve",
	.getinfo = verve_info_get,
	.fabric = verve_factory_open_fabric,
	.cleanup = cleanup,
};

struct fi_provider *verve_prov_load(void)
{
	const uint32_t built = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	const uint32_t running = fi_version();

	/*
	 * Core hides a provider from applications that ask for a newer version than the provider
	 * has.
	 */
	verve_prov.fi_version = FI_VERSION_GE(running, built) ? running : built;
	verve_log_load(&verve_prov);
	verve_config_load(&verve_prov);
	return &verve_prov;
}

/* Weak, because a shared object with another name has an entry point of its own (api/as_rxm.c). */
__attribute__((weak)) FI_EXT_INI
{
	return verve_prov_load();
}
