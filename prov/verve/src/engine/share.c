/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Share: a device's queue pairs and the host's memory, divided among the host's processes. */
#include "engine/share.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/config.h"
#include "net/device.h"
#include "xport/xport.h"

enum {
	CONNS_MIN = 16,
	CONNS_MAX = 4096,
	BUFFERS_MIN = 1024,
	BESIDES = 32, /* for packets that cost no credit */
	OF_MEMORY = 32, /* all processes together take this part of the memory at most */
	PROCESSES_MAX = 65536,
};

_Static_assert((int)BESIDES >= 2 * (int)VERVE_POLL_BATCH,
	       "one batch is posted while another one is handled");

/* Each is a number; of Slurm's, such as "128(x2)", the number of the first nodes. */
static const char *const of_launchers[] = {
	"OMPI_COMM_WORLD_LOCAL_SIZE",
	"MPI_LOCALNRANKS",
	"PALS_LOCAL_SIZE",
	"MV2_COMM_WORLD_LOCAL_SIZE",
	"SLURM_STEP_TASKS_PER_NODE",
	"SLURM_TASKS_PER_NODE",
};

uint32_t verve_share_processes(void)
{
	long processors;

	for (size_t i = 0; i < sizeof(of_launchers) / sizeof(of_launchers[0]); i++) {
		const char *text = getenv(of_launchers[i]);
		unsigned long value = text ? strtoul(text, NULL, 10) : 0;

		if (value && value <= PROCESSES_MAX)
			return value;
	}
	processors = sysconf(_SC_NPROCESSORS_ONLN);
	return processors > 0 ? processors : 1;
}

uint32_t verve_share_conns(const struct verve_net_limits *limits)
{
	uint32_t share;

	if (!verve_config_is_auto(verve_config.max_conns))
		return verve_config.max_conns;
	share = limits->qp / 4 * 3 / verve_share_processes();
	if (share < CONNS_MIN)
		return CONNS_MIN;
	return share < CONNS_MAX ? share : CONNS_MAX;
}

uint32_t verve_share_buffers(size_t size)
{
	uint64_t share;

	if (!verve_config_is_auto(verve_config.rx_limit))
		return verve_config.rx_limit;
	share = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / OF_MEMORY /
		verve_share_processes() / size;
	if (share < BUFFERS_MIN)
		share = BUFFERS_MIN;
	if (share > VERVE_CONFIG_RX_LIMIT_AUTO)
		share = VERVE_CONFIG_RX_LIMIT_AUTO;
	if (verve_config.locked != SIZE_MAX && share > verve_config.locked / size)
		share = verve_config.locked / size;
	return share < VERVE_CONFIG_RX_BUFFERS_MIN ? VERVE_CONFIG_RX_BUFFERS_MIN : share;
}

uint32_t verve_share_uncredited_buffers(uint32_t limit)
{
	if (!verve_config_is_auto(verve_config.rx_buffers))
		return verve_config.rx_buffers;
	return limit < VERVE_CONFIG_RX_BUFFERS_AUTO ? limit : VERVE_CONFIG_RX_BUFFERS_AUTO;
}

uint32_t verve_share_first_buffers(uint32_t window, uint32_t uncredited)
{
	uint64_t first = (uint64_t)window + BESIDES;

	if (!verve_config_is_auto(verve_config.rx_buffers) || first > uncredited)
		return uncredited;
	return first;
}
