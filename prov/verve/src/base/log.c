/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Log: the provider that messages are filed under. */
#include "base/log.h"

const struct fi_provider *verve_log_provider;
