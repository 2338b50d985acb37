/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log: the provider whose name the messages carry. */
#include "base/log.h"

const struct fi_provider *verve_log_provider;
