/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Key table: a hash with lists in its buckets. */
#include "mr/keytab.h"

#include <assert.h>
#include <rdma/fi_errno.h>

void verve_mr_keytab_init(struct verve_mr_keytab *tab)
{
	pthread_rwlockattr_t attr;

	/*
	 * Prefer writers: endpoints that read all the time must not delay the closing of a region.
	 */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&tab->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	tab->generation = 0;
	for (int i = 0; i < VERVE_MR_KEYTAB_BUCKETS; i++)
		LIST_INIT(&tab->buckets[i]);
}

void verve_mr_keytab_fini(struct verve_mr_keytab *tab)
{
	for (int i = 0; i < VERVE_MR_KEYTAB_BUCKETS; i++)
		assert(LIST_EMPTY(&tab->buckets[i]));
	pthread_rwlock_destroy(&tab->lock);
}

/* A multiplicative hash, because rkeys of a device differ only in some of their bits. */
static struct verve_mr_bucket *bucket_of(struct verve_mr_keytab *tab, uint64_t key)
{
	_Static_assert(VERVE_MR_KEYTAB_BUCKETS == 1 << 10, "the upper 10 bits of the product");

	return &tab->buckets[key * 0x9e3779b97f4a7c15u >> 54];
}

/* The lock is held. */
static int key_insert(struct verve_mr_keytab *tab, struct verve_mr_key *key)
{
	if (verve_mr_keytab_find(tab, key->key))
		return -FI_ENOKEY;
	LIST_INSERT_HEAD(bucket_of(tab, key->key), key, link);
	return 0;
}

int verve_mr_keytab_add(struct verve_mr_keytab *tab, struct verve_mr_key *key)
{
	int ret;

	pthread_rwlock_wrlock(&tab->lock);
	key->generation = ++tab->generation;
	ret = key_insert(tab, key);
	pthread_rwlock_unlock(&tab->lock);
	return ret;
}

void verve_mr_keytab_add_made(struct verve_mr_keytab *tab, struct verve_mr_key *key)
{
	int ret;

	pthread_rwlock_wrlock(&tab->lock);
	key->generation = ++tab->generation;
	key->key = VERVE_MR_KEY_EXPORTED | key->generation;
	ret = key_insert(tab, key);
	pthread_rwlock_unlock(&tab->lock);
	assert(!ret);
	(void)ret;
}

void verve_mr_keytab_remove(struct verve_mr_keytab *tab, struct verve_mr_key *key)
{
	pthread_rwlock_wrlock(&tab->lock);
	LIST_REMOVE(key, link);
	pthread_rwlock_unlock(&tab->lock);
}

void verve_mr_keytab_count(struct verve_mr_keytab *tab, struct verve_mr_key *key,
			   struct verve_comp_counter *read, struct verve_comp_counter *write)
{
	pthread_rwlock_wrlock(&tab->lock);
	if (read)
		key->read = read;
	if (write)
		key->write = write;
	pthread_rwlock_unlock(&tab->lock);
}

void verve_mr_keytab_lock(struct verve_mr_keytab *tab)
{
	pthread_rwlock_rdlock(&tab->lock);
}

void verve_mr_keytab_unlock(struct verve_mr_keytab *tab)
{
	pthread_rwlock_unlock(&tab->lock);
}

struct verve_mr_key *verve_mr_keytab_find(struct verve_mr_keytab *tab, uint64_t wanted)
{
	struct verve_mr_key *key;

	LIST_FOREACH(key, bucket_of(tab, wanted), link)
		if (key->key == wanted)
			return key;
	return NULL;
}
