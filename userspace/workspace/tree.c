// SPDX-License-Identifier: Apache-2.0
#include "userspace/workspace/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/openat2.h"
#include "userspace/base/clock.h"

#define MEMORY_MAX (96u << 20)
#define LOOK_EVERY 64 /* entries between two looks at the clock */

const struct workspace_limits workspace_limits_before = {
	.files = 100000,
	.depth = 64,
	.file_bytes = 1u << 20,
	.bytes = 128u << 20,
	.time_ns = 2 * NSEC_PER_SEC,
};

const struct workspace_limits workspace_limits_after = {
	.files = 100000,
	.depth = 64,
	.file_bytes = 256u << 20,
	.bytes = 1u << 30,
	.time_ns = 10 * NSEC_PER_SEC,
	.changes = 20000,
};

struct walk {
	struct tree *t;
	uint16_t place;
	char path[WORKSPACE_PATH_MAX + 1];
};

int tree_init(struct tree *t, const struct workspace_place *places, size_t n,
	      const struct workspace_limits *limits)
{
	*t = (struct tree){ .places = places, .places_n = n, .limits = limits };
	if (n > WORKSPACE_PLACES_MAX)
		return -E2BIG;
	t->end = clock_ns(CLOCK_MONOTONIC) + limits->time_ns;
	arena_init(&t->mem, MEMORY_MAX);
	return 0;
}

void tree_done(struct tree *t)
{
	arena_done(&t->mem);
	free(t->v);
	free(t->buffer);
}

void tree_skip(struct tree *t, uint64_t count, const char *word)
{
	t->skipped += count;
	for (size_t i = 0; i < t->why_n; i++)
		if (!strcmp(t->why[i], word))
			return;
	if (t->why_n < WORKSPACE_WHY_MAX)
		t->why[t->why_n++] = word;
}

bool tree_is_late(const struct tree *t)
{
	return clock_ns(CLOCK_MONOTONIC) > t->end;
}

struct entry *tree_add(struct tree *t)
{
	struct entry *e, **v;

	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 256;

		v = realloc(t->v, room * sizeof(struct entry *));
		if (!v)
			return NULL;
		t->v = v;
		t->room = room;
	}
	e = arena_zalloc(&t->mem, sizeof(*e));
	if (e)
		t->v[t->n++] = e;
	return e;
}

int entry_compare(const struct entry *a, const struct entry *b)
{
	int r;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	r = memcmp(a->path.p, b->path.p, MIN(a->path.n, b->path.n));
	if (r)
		return r;
	return (a->path.n > b->path.n) - (a->path.n < b->path.n);
}

static int by_path(const void *a, const void *b)
{
	return entry_compare(*(struct entry *const *)a, *(struct entry *const *)b);
}

static int64_t time_ns(struct timespec ts)
{
	return (int64_t)ts.tv_sec * (int64_t)NSEC_PER_SEC + ts.tv_nsec;
}

/* False: there is no room for it. */
static bool note(struct walk *w, size_t path_n, int dirfd, const char *name, const struct stat *st)
{
	struct tree *t = w->t;
	struct entry *e = tree_add(t);
	char target[WORKSPACE_PATH_MAX + 1];
	ssize_t n;

	if (!e)
		return false;
	e->place = w->place;
	e->mode = st->st_mode;
	e->size = (uint64_t)st->st_size;
	e->ino = st->st_ino;
	e->mtime = time_ns(st->st_mtim);
	e->ctime = time_ns(st->st_ctim);
	e->path = arena_strndup(&t->mem, w->path, path_n);
	if (e->path.p && S_ISLNK(st->st_mode)) {
		n = readlinkat(dirfd, name, target, sizeof(target));
		if (n > 0)
			e->target = arena_strndup(&t->mem, target, (size_t)n);
	}
	if (!e->path.p)
		t->n--;
	return e->path.p;
}

static void walk_dir(struct walk *w, int fd, size_t path_n, uint32_t depth);

static void enter(struct walk *w, int dirfd, const char *name, size_t path_n, uint32_t depth)
{
	int fd;

	if (depth == w->t->limits->depth) {
		tree_skip(w->t, 1, "depth");
		return;
	}
	fd = sys_openat2(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
			 RESOLVE_INSIDE | RESOLVE_NO_XDEV);
	if (fd < 0)
		tree_skip(w->t, 1, errno == EXDEV ? "mount" : "unreadable");
	else
		walk_dir(w, fd, path_n, depth + 1);
}

/* False: enough. */
static bool visit(struct walk *w, int dirfd, const char *name, size_t path_n, uint32_t depth)
{
	struct tree *t = w->t;
	size_t k = strlen(name), n = path_n + (path_n > 0) + k;
	struct stat st;

	t->looked++;
	if (t->looked % LOOK_EVERY == 0 && tree_is_late(t)) {
		tree_skip(t, 1, "time");
		return false;
	}
	if (t->n >= t->limits->files) {
		tree_skip(t, 1, "files");
		return false;
	}
	if (n > WORKSPACE_PATH_MAX) {
		tree_skip(t, 1, "path");
		return true;
	}
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
		if (errno != ENOENT) /* gone meanwhile */
			tree_skip(t, 1, "unreadable");
		return true;
	}
	if (path_n)
		w->path[path_n] = '/';
	memcpy(w->path + n - k, name, k);
	if (!note(w, n, dirfd, name, &st)) {
		tree_skip(t, 1, "memory");
		return false;
	}
	if (S_ISDIR(st.st_mode))
		enter(w, dirfd, name, n, depth);
	return true;
}

/* Takes fd. */
static void walk_dir(struct walk *w, int fd, size_t path_n, uint32_t depth)
{
	auto_dir DIR *dir = fdopendir(fd);
	struct dirent *de;

	if (!dir) {
		close(fd);
		tree_skip(w->t, 1, "unreadable");
		return;
	}
	while ((de = readdir(dir))) {
		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		if (!visit(w, dirfd(dir), de->d_name, path_n, depth))
			return;
	}
}

static void walk_place(struct tree *t, size_t i)
{
	struct walk *w = calloc(1, sizeof(*w));
	int fd = -1;
	struct stat st;

	if (!w || fstat(t->places[i].fd, &st) < 0) {
		free(w);
		tree_skip(t, 1, "unreadable");
		return;
	}
	w->t = t;
	w->place = (uint16_t)i;
	if (!S_ISDIR(st.st_mode)) {
		if (!note(w, 0, -1, "", &st))
			tree_skip(t, 1, "memory");
	} else {
		fd = sys_openat2(t->places[i].fd, ".", O_RDONLY | O_DIRECTORY,
				 RESOLVE_INSIDE | RESOLVE_NO_XDEV);
		if (fd < 0)
			tree_skip(t, 1, "unreadable");
		else
			walk_dir(w, fd, 0, 0);
	}
	free(w);
}

int tree_walk(struct tree *t)
{
	for (size_t i = 0; i < t->places_n; i++)
		walk_place(t, i);
	if (t->n)
		qsort(t->v, t->n, sizeof(struct entry *), by_path);
	return 0;
}

/* ---- one path again ---- */

static int open_path(const struct tree *t, const struct entry *e)
{
	int at = t->places[e->place].fd;

	return e->path.n ? sys_openat2(at, e->path.p, O_PATH | O_NOFOLLOW,
				       RESOLVE_INSIDE | RESOLVE_NO_XDEV)
			 : fcntl(at, F_DUPFD_CLOEXEC, 3);
}

bool tree_is_gone(struct tree *t, const struct entry *e)
{
	auto_close int fd = open_path(t, e);

	return fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
}

uint64_t tree_birth(struct tree *t, const struct entry *e)
{
	auto_close int fd = open_path(t, e);
	struct statx st;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &st) < 0 ||
	    !(st.stx_mask & STATX_BTIME))
		return 0;
	return (uint64_t)st.stx_btime.tv_sec * NSEC_PER_SEC + st.stx_btime.tv_nsec;
}

/* By way of the descriptor of the path, so that what is opened is what fstat has seen. */
int tree_open_regular(const struct tree *t, const struct entry *e)
{
	auto_close int at = open_path(t, e);
	char name[32];
	struct stat st;

	if (at < 0 || fstat(at, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", at);
	return open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}
