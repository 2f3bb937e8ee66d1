// SPDX-License-Identifier: Apache-2.0
/* The texts that records name (FORMAT.md section 1): each is there, and its hash is its name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/store/verify.h"

#define BLOB_MAX    (64u << 10)
#define NAMES_MAX   (1u << 20)
#define KIND_WITHIN 256 /* FORMAT.md: where in a record its kind stands */

static int add_name(struct verify_blobs *b, const uint8_t name[STORE_HASH_LEN])
{
	if (b->n == b->cap) {
		size_t cap = b->cap ? 2 * b->cap : 64;
		void *p = cap > NAMES_MAX ? NULL : reallocarray(b->v, cap, sizeof(*b->v));

		if (!p)
			return cap > NAMES_MAX ? -E2BIG : -ENOMEM;
		b->v = p;
		b->cap = cap;
	}
	memcpy(b->v[b->n++], name, STORE_HASH_LEN);
	return 0;
}

/* In JSON no text holds an unescaped quote, so what is found is the member and no part of a file's name. */
static int find_name(struct verify *v, struct str rec, const char *member)
{
	uint8_t name[STORE_HASH_LEN];
	const char *at = memmem(rec.p, rec.n, member, strlen(member));
	struct str s;

	if (!at)
		return 0;
	at += strlen(member);
	s = (struct str){ at, (size_t)(rec.p + rec.n - at) };
	if (!verify_scan_hash(&s, name) || !s.n || s.p[0] != '"')
		return 0; /* no name of a blob: nobody looks for it */
	return add_name(&v->blobs, name);
}

int verify_blobs_records(struct verify *v, const uint8_t *raw, size_t n)
{
	static const char kind[] = "\"kind\":\"workspace.change\"";
	int r = 0;

	for (size_t at = 0; r == 0 && at < n;) {
		uint32_t len = get_le32(raw + at); /* chain_records has judged it */
		struct str rec = { (const char *)raw + at + 4, len };

		at += 4 + (size_t)len;
		if (!memmem(rec.p, MIN(rec.n, (size_t)KIND_WITHIN), kind, sizeof(kind) - 1))
			continue;
		r = find_name(v, rec, "\"text\":\"");
		if (r == 0)
			r = find_name(v, rec, "\"text_before\":\"");
	}
	return r;
}

/* NULL, or what is wrong with it. */
static const char *check_blob(struct verify *v, int dir, const char *name,
			      const uint8_t hash[STORE_HASH_LEN])
{
	auto_close int fd =
		dir < 0 ? -1
			: openat(dir, name,
				 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	auto_buf struct buf text = { 0 };
	uint8_t got[STORE_HASH_LEN];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "is missing, though a record names it";
	buf_init(&text, BLOB_MAX);
	if (st.st_size > BLOB_MAX || fd_read_rest(fd, &text) < 0 ||
	    chain_hash(v->chain, got, text.n ? text.p : "", text.n, NULL, 0) < 0 ||
	    memcmp(got, hash, sizeof(got)) != 0)
		return "was changed: its hash is not its name";
	return NULL;
}

static int compare_names(const void *a, const void *b)
{
	return memcmp(a, b, STORE_HASH_LEN);
}

int verify_blobs_end(struct verify *v)
{
	auto_close int dir =
		openat(v->dirfd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	char name[2 * STORE_HASH_LEN + 1];

	if (v->blobs.n)
		qsort(v->blobs.v, v->blobs.n, sizeof(*v->blobs.v), compare_names);
	for (size_t i = 0; i < v->blobs.n; i++) {
		const char *why;

		if (i && memcmp(v->blobs.v[i - 1], v->blobs.v[i], STORE_HASH_LEN) == 0)
			continue;
		hash_to_hex(name, v->blobs.v[i]);
		why = check_blob(v, dir, name, v->blobs.v[i]);
		if (why)
			return verify_finding(v, VERIFY_ALTERED,
					      "altered: blobs/%s %s; the records are as they were",
					      name, why);
	}
	return WALK_ON;
}

void verify_blobs_done(struct verify_blobs *b)
{
	free(b->v);
	*b = (struct verify_blobs){ 0 };
}
