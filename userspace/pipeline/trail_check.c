// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/trail_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/ulid.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/trail.h"
#include "userspace/store/format.h"
#include "userspace/store/manifest.h"

#define HEX	(2 * STORE_HASH_LEN)
#define BUCKETS (1u << 16)

struct ended {
	char id[ULID_LEN + 1];
	char head[HEX + 1];
	bool ended, pruned, elsewhere;
	size_t next; /* in the same bucket: index + 1 */
};

struct collect {
	struct ended *v;
	size_t n, cap;
	size_t bucket[BUCKETS]; /* index + 1 of the newest in it; 0 = none */
	char below[4096];	/* <state>/sessions/ */
	int error;
};

/* One string member of an entry's data, which we wrote: no escapes in what is asked for. */
static struct str member(struct str data, const char *key)
{
	char quoted[32];
	size_t n = (size_t)snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
	const char *p = memmem(data.p, data.n, quoted, n), *end;

	if (!p)
		return (struct str){ 0 };
	p += n;
	end = memchr(p, '"', data.n - (size_t)(p - data.p));
	return end ? (struct str){ p, (size_t)(end - p) } : (struct str){ 0 };
}

/* FNV-1a over the id. Whoever writes the log as root could make them collide, and would only slow himself. */
static size_t bucket_of(const char *id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < ULID_LEN; i++)
		h = (h ^ (uint8_t)id[i]) * 16777619u;
	return h % BUCKETS;
}

/* `id`: ULID_LEN bytes. */
static struct ended *find(struct collect *c, const char *id)
{
	for (size_t i = c->bucket[bucket_of(id)]; i; i = c->v[i - 1].next)
		if (memcmp(c->v[i - 1].id, id, ULID_LEN) == 0)
			return &c->v[i - 1];
	return NULL;
}

static int add(struct collect *c, const struct hostlog_line *l)
{
	struct str head = member(l->data, "head"), bundle = member(l->data, "bundle");
	struct ended *e = find(c, l->session.p);
	size_t *bucket = &c->bucket[bucket_of(l->session.p)];

	if (e && head.n == HEX) { /* its start was told before */
		memcpy(e->head, head.p, HEX);
		e->ended = true;
		return 0;
	}
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 256;
		void *p = cap > 2 * TRAIL_SESSIONS_MAX ? NULL
						       : reallocarray(c->v, cap, sizeof(*c->v));

		c->error = p ? 0 : cap > 2 * TRAIL_SESSIONS_MAX ? -E2BIG : -ENOMEM;
		if (!p)
			return c->error;
		c->v = p;
		c->cap = cap;
	}
	e = &c->v[c->n++];
	*e = (struct ended){ .elsewhere = !str_starts(bundle, str_from(c->below)),
			     .next = *bucket };
	*bucket = c->n;
	memcpy(e->id, l->session.p, ULID_LEN);
	e->ended = head.n == HEX;
	if (e->ended)
		memcpy(e->head, head.p, HEX);
	return 0;
}

static int collect_line(void *arg, const struct hostlog_line *l)
{
	struct collect *c = arg;
	struct ended *e;

	if (l->session.n != ULID_LEN)
		return 0;
	if (str_eqz(l->kind, "start") || str_eqz(l->kind, "session"))
		return add(c, l);
	e = str_eqz(l->kind, "prune") ? find(c, l->session.p) : NULL;
	if (e)
		e->pruned = true;
	return 0;
}

static void check_one(int sessions_fd, const struct ended *e, trail_fault_fn fn, void *arg,
		      struct trail_check *ret)
{
	auto_close int fd = -1;
	auto_buf struct buf text = { 0 };
	struct manifest_info m;

	ret->sessions++;
	if (e->elsewhere || e->pruned) {
		ret->elsewhere += e->elsewhere;
		ret->pruned += !e->elsewhere;
		return;
	}
	if (sessions_fd >= 0)
		fd = openat(sessions_fd, e->id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		ret->missing++;
		fn(arg, TRAIL_MISSING, e->id);
		return;
	}
	buf_init(&text, MANIFEST_MAX);
	if (!e->ended) {
		ret->unended++;
		return;
	}
	if (manifest_load(fd, &text) < 0 ||
	    manifest_parse((struct str){ text.p, text.n }, &m) < 0 ||
	    strcmp(m.head, e->head) != 0 || strcmp(m.session, e->id) != 0) {
		ret->other++;
		fn(arg, TRAIL_OTHER, e->id);
		return;
	}
	ret->present++;
}

/* Records that lie among the others and of which the log knows nothing. */
static int find_unlogged(struct collect *c, int sessions_fd, trail_fault_fn fn, void *arg,
			 struct trail_check *ret, struct err *err)
{
	int fd =
		sessions_fd < 0 ? -1 : openat(sessions_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *de;

	if (sessions_fd < 0)
		return 0;
	if (!d) {
		int r = err_set(err, errno, "sessions: %m");

		if (fd >= 0)
			close(fd);
		return r;
	}
	for (errno = 0; (de = readdir(d)); errno = 0) {
		auto_close int bundle = -1;

		if (strlen(de->d_name) != ULID_LEN || !session_is_valid(de->d_name) ||
		    find(c, de->d_name))
			continue;
		bundle = openat(sessions_fd, de->d_name,
				O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (bundle < 0 ||
		    faccessat(bundle, "events.0001.seg", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* no record */
		ret->unlogged++;
		fn(arg, TRAIL_UNLOGGED, de->d_name);
	}
	return errno ? err_set(err, errno, "sessions: %m") : 0;
}

static int verify_all(struct collect *c, int dirfd, trail_fault_fn fn, void *arg,
		      struct trail_check *ret, struct err *err)
{
	auto_close int sessions_fd = openat(dirfd, "sessions", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < c->n; i++)
		check_one(sessions_fd, &c->v[i], fn, arg, ret);
	return find_unlogged(c, sessions_fd, fn, arg, ret, err);
}

int trail_verify(const struct verify_options *opt, trail_fault_fn fn, void *arg,
		 struct trail_check *ret, struct err *err)
{
	auto_free struct collect *c = calloc(1, sizeof(*c));
	auto_close int dirfd = -1;
	int r = c ? trail_open(&dirfd, err) : err_set(err, ENOMEM, "%m");

	*ret = (struct trail_check){ 0 };
	if (r < 0)
		return r;
	snprintf(c->below, sizeof(c->below), "%s/sessions/", state_dir());
	r = hostlog_walk(dirfd, opt, collect_line, c, &ret->log, err);
	if (r == 0)
		r = verify_all(c, dirfd, fn, arg, ret, err);
	else if (c->error == -E2BIG)
		r = err_set(err, E2BIG, "host log: more than %d sessions", TRAIL_SESSIONS_MAX);
	free(c->v);
	return r;
}
