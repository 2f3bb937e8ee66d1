// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/workspace/tree.h"

#define READ_BYTES (256u << 10)

static bool is_text(struct str s)
{
	return !(s.n && memchr(s.p, 0, s.n)) && utf8_is_valid(s);
}

static void keep_text(struct tree *t, struct str s, struct str *ret)
{
	const struct workspace_limits *l = t->limits;

	if (s.n > l->text_file || t->texts + s.n > l->text_bytes || !is_text(s))
		return;
	*ret = arena_strndup(&t->mem, s.n ? s.p : "", s.n);
	if (ret->p)
		t->texts += s.n;
}

static const char *read_all(struct tree *t, struct entry *e, int fd, struct str *ret_text)
{
	const struct workspace_limits *l = t->limits;
	crypto_hash_sha256_state sha;
	uint64_t done = 0;
	ssize_t n;

	crypto_hash_sha256_init(&sha);
	for (;;) {
		/* What may be kept as a text stays in the buffer, however short the reads are. */
		size_t at = done < READ_BYTES ? (size_t)done : 0;

		n = read(fd, t->buffer + at, READ_BYTES - at);
		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return "unreadable";
		crypto_hash_sha256_update(&sha, (unsigned char *)t->buffer + at, (size_t)n);
		done += (uint64_t)n;
		t->hashed += (uint64_t)n;
		if (done > l->file_bytes) /* it grows */
			return "size";
		if (t->hashed > l->bytes)
			return "budget";
		if (tree_is_late(t))
			return "time";
	}
	crypto_hash_sha256_final(&sha, e->hash);
	e->has_hash = true;
	e->size = done; /* what was hashed */
	if (ret_text && done <= READ_BYTES)
		keep_text(t, (struct str){ t->buffer, (size_t)done }, ret_text);
	return NULL;
}

const char *tree_hash(struct tree *t, struct entry *e, struct str *ret_text)
{
	auto_close int fd = -1;

	if (e->size > t->limits->file_bytes)
		return "size";
	if (t->hashed + e->size > t->limits->bytes)
		return "budget";
	if (tree_is_late(t))
		return "time";
	if (!t->buffer)
		t->buffer = malloc(READ_BYTES);
	if (!t->buffer)
		return "memory";
	fd = tree_open_regular(t, e);
	return fd < 0 ? "unreadable" : read_all(t, e, fd, ret_text);
}
