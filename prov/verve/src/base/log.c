/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log: the provider whose name the messages carry. */
#include "base/log.h"

const struct fi_provider *verve_log_provider;
bool verve_log_traces;

void verve_log_load(const struct fi_provider *provider)
{
	verve_log_provider = provider;
	for (int subsys = 0; subsys <= FI_LOG_CNTR; subsys++)
		verve_log_traces |= fi_log_enabled(provider, FI_LOG_TRACE, subsys);
}
