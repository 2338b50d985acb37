/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys: auth_key of fi_domain(3) and fi_endpoint(3), and FI_VERVE_AUTH_KEY_FILE. The
 * endpoint's own goes before the domain's, the domain's before the file's. All are secrets of any
 * bytes; equal ones make peers, wherever each has it from. Plain functions; any thread.
 */
#ifndef VERVE_API_AUTH_H
#define VERVE_API_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "conn/auth.h"

/* NULL, or why it cannot be a key. size in bytes, not 0. */
const char *verve_auth_attr_error(const void *auth_key, size_t size);
/* -FI_EINVAL: it cannot be one; logs that under the name of what it belongs to. */
int verve_auth_from_attr(const char *name, const void *auth_key, size_t size,
			 struct verve_auth_key *key);
/*
 * The whole file, byte for byte, is the secret. It belongs to the user or to root, nobody else may
 * write it, and nobody outside its group may read it. Logs. -FI_EACCES: that is not so; -FI_EINVAL:
 * not a file, or too short or long; or why it cannot be read.
 */
int verve_auth_from_file(const char *path, struct verve_auth_key *key);

#endif
