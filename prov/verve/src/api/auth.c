/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Authorization keys: checks secrets, and reads the file. */
#include "api/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/fi_errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

const char *verve_auth_attr_error(const void *auth_key, size_t size)
{
	/* FI_AV_AUTH_KEY of libfabric 1.20 and later. */
	if (size == SIZE_MAX)
		return "keys of an address vector are not offered";
	if (!auth_key)
		return "there is no key";
	if (size < VERVE_AUTH_SECRET_MIN || size > VERVE_AUTH_SECRET_MAX)
		return "it must have 16 to 4096 bytes";
	return NULL;
}

int verve_auth_from_attr(const char *name, const void *auth_key, size_t size,
			 struct verve_auth_key *key)
{
	const char *error = verve_auth_attr_error(auth_key, size);

	if (error) {
		VERVE_WARN(EP_CTRL, "%s: auth_key of %zu bytes: %s\n", name, size, error);
		return -FI_EINVAL;
	}
	verve_auth_key_make(key, auth_key, size);
	return 0;
}

static int auth_refuse(const char *path, int error, const char *why)
{
	VERVE_WARN(DOMAIN, "FI_VERVE_AUTH_KEY_FILE=%s: %s\n", path, why);
	return -error;
}

static int check_file(const char *path, int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return auth_refuse(path, errno, strerror(errno));
	if (!S_ISREG(stat.st_mode))
		return auth_refuse(path, FI_EINVAL, "it is not a file");
	if (stat.st_uid && stat.st_uid != geteuid())
		return auth_refuse(path, FI_EACCES, "it belongs to another user: chown it");
	if (stat.st_mode & (S_IWGRP | S_IRWXO))
		return auth_refuse(path, FI_EACCES,
				   "others may read it, or the group write it: chmod 600 it");
	return 0;
}

static int read_file(const char *path, int fd, struct verve_auth_key *key)
{
	uint8_t secret[VERVE_AUTH_SECRET_MAX + 1];
	size_t len = 0;
	ssize_t got;

	do {
		got = read(fd, secret + len, sizeof(secret) - len);
		if (got > 0)
			len += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0) {
		int error = errno;

		sodium_memzero(secret, sizeof(secret));
		return auth_refuse(path, error, strerror(error));
	}
	if (len >= VERVE_AUTH_SECRET_MIN && len <= VERVE_AUTH_SECRET_MAX)
		verve_auth_key_make(key, secret, len);
	sodium_memzero(secret, sizeof(secret));
	if (!key->is_set)
		return auth_refuse(path, FI_EINVAL,
				   "it must have 16 to 4096 bytes: "
				   "head -c 32 /dev/urandom makes some");
	return 0;
}

int verve_auth_from_file(const char *path, struct verve_auth_key *key)
{
	int fd, ret;

	memset(key, 0, sizeof(*key));
	/* The open must not wait if the path is a FIFO that nobody writes. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return auth_refuse(path, errno, strerror(errno));
	ret = check_file(path, fd);
	if (!ret)
		ret = read_file(path, fd, key);
	close(fd);
	return ret;
}
