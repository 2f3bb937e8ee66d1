// SPDX-License-Identifier: Apache-2.0
#include "userspace/workspace/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define SNAPSHOT_MAGIC 0x31504e5352415721ull
#define SNAPSHOT_MAX   (192u << 20)
#define FLUSH_AT       (256u << 10)

struct head {
	uint64_t magic, real_ns, complete, n;
};

struct row {
	uint64_t size, ino;
	int64_t mtime, ctime;
	uint32_t mode, path_n, target_n, text_n; /* UINT32_MAX: no text */
	uint16_t place, has_hash, pad[2];
	uint8_t hash[HASH_LEN];
};

static int flush(struct buf *b, int fd)
{
	int r = b->failed ? -ENOMEM : fd_write_all(fd, b->p, b->n);

	buf_reset(b);
	return r;
}

int snapshot_write(const struct tree *t, uint64_t real_ns, int fd)
{
	const struct head h = { SNAPSHOT_MAGIC, real_ns, !t->why_n, t->n };
	auto_buf struct buf b = { 0 };
	int r = 0;

	buf_add(&b, &h, sizeof(h));
	for (size_t i = 0; i < t->n && r == 0; i++) {
		const struct entry *e = t->v[i];
		struct row row = {
			.size = e->size,
			.ino = e->ino,
			.mtime = e->mtime,
			.ctime = e->ctime,
			.mode = e->mode,
			.path_n = (uint32_t)e->path.n,
			.target_n = (uint32_t)e->target.n,
			.text_n = e->text.p ? (uint32_t)e->text.n : UINT32_MAX,
			.place = e->place,
			.has_hash = e->has_hash,
		};

		memcpy(row.hash, e->hash, sizeof(row.hash));
		buf_add(&b, &row, sizeof(row));
		buf_add(&b, e->path.p, e->path.n);
		buf_add(&b, e->target.p ? e->target.p : "", e->target.n);
		buf_add(&b, e->text.p ? e->text.p : "", e->text.n);
		if (b.n >= FLUSH_AT)
			r = flush(&b, fd);
	}
	return r < 0 ? r : flush(&b, fd);
}

static bool take(const char **at, const char *end, size_t n, struct str *ret)
{
	if ((size_t)(end - *at) < n)
		return false;
	*ret = (struct str){ *at, n };
	*at += n;
	return true;
}

static bool read_row(struct entry *e, const char **at, const char *end, size_t places_n)
{
	struct str bytes;
	struct row row;

	if (!take(at, end, sizeof(row), &bytes))
		return false;
	memcpy(&row, bytes.p, sizeof(row));
	*e = (struct entry){
		.size = row.size,
		.ino = row.ino,
		.mtime = row.mtime,
		.ctime = row.ctime,
		.mode = row.mode,
		.place = row.place,
		.has_hash = row.has_hash,
	};
	memcpy(e->hash, row.hash, sizeof(e->hash));
	if (row.place >= places_n || row.path_n > WORKSPACE_PATH_MAX ||
	    !take(at, end, row.path_n, &e->path) || !take(at, end, row.target_n, &e->target))
		return false;
	return row.text_n == UINT32_MAX || take(at, end, row.text_n, &e->text);
}

int snapshot_read(struct snapshot *ret, int fd, size_t places_n)
{
	struct snapshot s = { 0 };
	const char *at, *end;
	struct head h;
	off_t size = lseek(fd, 0, SEEK_END);

	if (size < (off_t)sizeof(h) || size > (off_t)SNAPSHOT_MAX || lseek(fd, 0, SEEK_SET) < 0)
		return -EBADMSG;
	s.bytes = malloc((size_t)size);
	if (!s.bytes)
		return -ENOMEM;
	if (fd_read_full(fd, s.bytes, (size_t)size) != size)
		goto bad;
	memcpy(&h, s.bytes, sizeof(h));
	at = s.bytes + sizeof(h);
	end = s.bytes + size;
	if (h.magic != SNAPSHOT_MAGIC || h.n > (size_t)size / sizeof(struct row))
		goto bad;
	s.real_ns = h.real_ns;
	s.complete = h.complete;
	s.v = calloc(h.n + 1, sizeof(*s.v));
	if (!s.v) {
		snapshot_done(&s);
		return -ENOMEM;
	}
	for (; s.n < h.n; s.n++)
		if (!read_row(&s.v[s.n], &at, end, places_n) ||
		    (s.n && entry_compare(&s.v[s.n - 1], &s.v[s.n]) >= 0))
			goto bad;
	*ret = s;
	return 0;
bad:
	snapshot_done(&s);
	return -EBADMSG;
}

void snapshot_done(struct snapshot *s)
{
	free(s->bytes);
	free(s->v);
	s->bytes = NULL;
	s->v = NULL;
}

int workspace_snapshot(const struct workspace_place *places, size_t n,
		       const struct workspace_limits *limits, int out_fd)
{
	uint64_t now = clock_real_ns();
	struct tree t;
	int r = tree_init(&t, places, n, limits);

	if (r == 0)
		r = tree_walk(&t);
	for (size_t i = 0; i < t.n && r == 0; i++)
		if ((t.v[i]->mode & S_IFMT) == S_IFREG)
			(void)tree_hash(&t, t.v[i], &t.v[i]->text); /* without: times must do */
	if (r == 0)
		r = snapshot_write(&t, now, out_fd);
	tree_done(&t);
	return r;
}
