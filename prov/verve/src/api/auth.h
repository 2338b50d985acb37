/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys: auth_key of fi_domain(3) and fi_endpoint(3), and FI_VERVE_AUTH_KEY_FILE. An
 * endpoint uses its own key; without one, the domain's key; without that, the file's key. A key is
 * a secret of VERVE_AUTH_SECRET_MIN to VERVE_AUTH_SECRET_MAX bytes of any value. Two endpoints can
 * be peers if their secrets are equal, wherever each secret comes from. No state; any thread.
 */
#ifndef VERVE_API_AUTH_H
#define VERVE_API_AUTH_H

#include <stddef.h>
#include <stdint.h>

#include "conn/auth.h"

/* NULL if auth_key can be a key, else a constant text that says why not. size: bytes, not 0. */
const char *verve_auth_attr_error(const void *auth_key, size_t size);
/*
 * Makes *key from the secret auth_key, which stays the caller's. size: bytes, not 0. name: domain
 * or endpoint, for the log. -FI_EINVAL: the secret cannot be a key. Logs.
 */
int verve_auth_from_attr(const char *name, const void *auth_key, size_t size,
			 struct verve_auth_key *key);
/*
 * Makes *key from the file's whole content, byte for byte. The file must belong to the user or to
 * root; only its owner may write it, and only its owner and its group may read it. -FI_EACCES: the
 * file's owner or mode is another; -FI_EINVAL: the path is not a regular file, or the content is
 * too short or too long; -errno: the file cannot be read. Logs.
 */
int verve_auth_from_file(const char *path, struct verve_auth_key *key);

#endif
