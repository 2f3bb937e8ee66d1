// SPDX-License-Identifier: Apache-2.0
#include "userspace/workspace/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/arena.h"
#include "userspace/base/auto.h"
#include "userspace/base/openat2.h"

#define PIECE	(256u << 10)
#define MEMORY	(64u << 20)
#define PLACE_N 32

/* Its mode and time come last: what is in it has to be made first. */
struct late_dir {
	const char *path; /* in the archive */
	mode_t mode;
	struct timespec mtime;
};

struct unpack {
	struct archive *a;
	const struct workspace_place *places;
	size_t places_n;
	struct archive_facts facts;
	crypto_hash_sha256_state hash;
	int in, read_error;
	struct late_dir *dirs;
	size_t dirs_n, dirs_room;
	struct arena mem;
	int parent; /* the last one; -1 */
	char parent_path[WORKSPACE_PATH_MAX + 64];
	char *piece;
};

/* Beneath its place, by its name there. */
struct where {
	int place;
	const char *path; /* "" = the place itself */
};

static la_ssize_t give(struct archive *a, void *arg, const void **ret)
{
	struct unpack *u = arg;
	ssize_t n;

	do {
		n = read(u->in, u->piece, PIECE);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		u->read_error = -errno;
		archive_set_error(a, errno, "reading it");
		return -1;
	}
	crypto_hash_sha256_update(&u->hash, (const unsigned char *)u->piece, (size_t)n);
	u->facts.stored += (uint64_t)n;
	*ret = u->piece;
	return n;
}

static int bad(struct err *err, const char *path, const char *why)
{
	return err_set(err, EBADMSG, "snapshot: '%.200s': %s", path, why);
}

static bool is_clean(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

static int find(struct where *ret, const struct unpack *u, const char *path, struct err *err)
{
	size_t len = path ? strlen(path) : 0;

	if (!len || len > WORKSPACE_PATH_MAX + PLACE_N)
		return bad(err, path ? path : "", "no path, or one that is too long");
	for (size_t i = 0; i < u->places_n; i++) {
		const char *place = u->places[i].inside + 1;
		size_t n = strlen(place);

		if (strncmp(path, place, n) != 0 || path[n] != '/' || !is_clean(path + n + 1))
			continue;
		*ret = (struct where){ u->places[i].fd, path + n + 1 };
		return 0;
	}
	return bad(err, path, "not a path of a place that is restored");
}

/* The directory that holds it: must be there. *ret_name is of `path`. */
static int open_parent(struct unpack *u, const struct where *w, const char *path,
		       const char **ret_name)
{
	const char *slash = strrchr(w->path, '/');
	size_t n = (size_t)(w->path - path) + (slash ? (size_t)(slash - w->path) : 0);
	char dir[WORKSPACE_PATH_MAX + 1] = ".";

	*ret_name = slash ? slash + 1 : w->path;
	if (u->parent >= 0 && strlen(u->parent_path) == n && !strncmp(u->parent_path, path, n))
		return 0;
	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - w->path), w->path);
	if (u->parent >= 0)
		close(take_fd(u->parent));
	u->parent =
		sys_openat2(w->place, dir, O_PATH | O_DIRECTORY, RESOLVE_INSIDE | RESOLVE_NO_XDEV);
	if (u->parent < 0)
		return -errno;
	snprintf(u->parent_path, sizeof(u->parent_path), "%.*s", (int)n, path);
	return 0;
}

/* ---- one entry ---- */

static struct timespec mtime_of(struct archive_entry *ae)
{
	return (struct timespec){ .tv_sec = archive_entry_mtime(ae),
				  .tv_nsec = archive_entry_mtime_nsec(ae) };
}

static int set_time(int dirfd, const char *name, struct timespec mtime)
{
	const struct timespec times[] = { mtime, mtime };

	return utimensat(dirfd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int make_dir(struct unpack *u, const char *name, const char *path, struct archive_entry *ae)
{
	struct late_dir *d;

	if (u->dirs_n == u->dirs_room) {
		size_t room = u->dirs_room ? 2 * u->dirs_room : 64;
		struct late_dir *v = realloc(u->dirs, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		u->dirs = v;
		u->dirs_room = room;
	}
	d = &u->dirs[u->dirs_n];
	*d = (struct late_dir){ .path = arena_strndup(&u->mem, path, strlen(path)).p,
				.mode = archive_entry_perm(ae) & 01777,
				.mtime = mtime_of(ae) };
	if (!d->path)
		return -ENOMEM;
	if (mkdirat(u->parent, name, 0700) < 0)
		return -errno;
	u->dirs_n++;
	return 0;
}

static int write_at(int fd, const char *p, size_t n, off_t at)
{
	while (n) {
		ssize_t w = pwrite(fd, p, n, at);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return w ? -errno : -EIO;
		p += w;
		n -= (size_t)w;
		at += w;
	}
	return 0;
}

static int fill_file(struct unpack *u, int fd, struct archive_entry *ae)
{
	la_int64_t size = archive_entry_size(ae), at;
	const void *p;
	size_t n;
	int r;

	if (size < 0 || (uint64_t)size > ARCHIVE_LOGICAL_MAX)
		return -EBADMSG;
	while ((r = archive_read_data_block(u->a, &p, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || at > size || n > (size_t)(size - at))
			return -EBADMSG;
		u->facts.bytes += n;
		if (u->facts.bytes > ARCHIVE_BYTES_MAX)
			return -EFBIG;
		r = write_at(fd, p, n, at);
		if (r < 0)
			return r;
	}
	if (r != ARCHIVE_EOF)
		return -EBADMSG;
	return ftruncate(fd, size) < 0 ? -errno : 0;
}

static int make_file(struct unpack *u, const char *name, struct archive_entry *ae)
{
	auto_close int fd =
		openat(u->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const struct timespec times[] = { mtime_of(ae), mtime_of(ae) };
	int r = fd < 0 ? -errno : fill_file(u, fd, ae);

	if (r == 0 && (fchmod(fd, archive_entry_perm(ae) & 0777) < 0 || futimens(fd, times) < 0))
		r = -errno;
	return r;
}

static int make_link(struct unpack *u, const char *name, const char *target, struct err *err)
{
	auto_close int dir = -1;
	struct where w;
	const char *slash;
	char path[WORKSPACE_PATH_MAX + 1] = ".";
	int r = find(&w, u, target, err);

	if (r < 0)
		return r;
	slash = strrchr(w.path, '/');
	if (slash)
		snprintf(path, sizeof(path), "%.*s", (int)(slash - w.path), w.path);
	dir = sys_openat2(w.place, path, O_PATH | O_DIRECTORY, RESOLVE_INSIDE | RESOLVE_NO_XDEV);
	if (dir < 0 || linkat(dir, slash ? slash + 1 : w.path, u->parent, name, 0) < 0)
		return -errno;
	return 0;
}

static int make_symlink(struct unpack *u, const char *name, struct archive_entry *ae)
{
	const char *target = archive_entry_symlink(ae);

	if (!target || symlinkat(target, u->parent, name) < 0)
		return target ? -errno : -EBADMSG;
	return set_time(u->parent, name, mtime_of(ae));
}

static int make_fifo(struct unpack *u, const char *name, struct archive_entry *ae)
{
	if (mknodat(u->parent, name, S_IFIFO | (archive_entry_perm(ae) & 0777), 0) < 0)
		return -errno;
	return set_time(u->parent, name, mtime_of(ae));
}

static int make(struct unpack *u, struct archive_entry *ae, struct err *err)
{
	const char *path = archive_entry_pathname(ae), *link = archive_entry_hardlink(ae), *name;
	auto_free char *own = path ? strdup(path) : NULL;
	struct where w;
	size_t n;
	int r;

	if (path && !own)
		return err_set(err, ENOMEM, "snapshot: %m");
	n = own ? strlen(own) : 0;
	if (n && own[n - 1] == '/') /* a directory's */
		own[n - 1] = 0;
	r = find(&w, u, own, err);
	if (r < 0)
		return r;
	if (++u->facts.files > ARCHIVE_FILES_MAX)
		return err_set(err, E2BIG, "snapshot: more than %d files", ARCHIVE_FILES_MAX);
	r = open_parent(u, &w, own, &name);
	if (r == 0 && link)
		r = make_link(u, name, link, err);
	else if (r == 0)
		switch (archive_entry_filetype(ae)) {
		case AE_IFDIR:
			r = make_dir(u, name, own, ae);
			break;
		case AE_IFREG:
			r = make_file(u, name, ae);
			break;
		case AE_IFLNK:
			r = make_symlink(u, name, ae);
			break;
		case AE_IFIFO:
			r = make_fifo(u, name, ae);
			break;
		default:
			return bad(err, own, "of a type that is not restored");
		}
	if (r == -ENOSPC || r == -EDQUOT)
		return err_set(err, ENOSPC,
			       "snapshot: '%.200s': no room for it: the new sandbox's "
			       "--disk, --tmp or memory is too small",
			       own);
	return r < 0 && !(err && err->code) ? err_set(err, r, "snapshot: '%.200s': %m", own) : r;
}

/* The deepest first. */
static int finish_dirs(struct unpack *u, struct err *err)
{
	for (size_t i = u->dirs_n; i--;) {
		const struct late_dir *d = &u->dirs[i];
		auto_close int fd = -1;
		struct where w;
		int r = find(&w, u, d->path, err);

		if (r < 0)
			return r;
		fd = sys_openat2(w.place, w.path, O_RDONLY | O_DIRECTORY,
				 RESOLVE_INSIDE | RESOLVE_NO_XDEV);
		if (fd < 0 || fchmod(fd, d->mode) < 0 ||
		    futimens(fd, (const struct timespec[]){ d->mtime, d->mtime }) < 0)
			return err_set(err, errno, "snapshot: '%.200s': %m", d->path);
	}
	return 0;
}

static int open_reader(struct unpack *u, struct err *err)
{
	struct archive *a = u->a = archive_read_new();

	if (!a || archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_open(a, u, NULL, give, NULL) != ARCHIVE_OK)
		return err_set(err, EBADMSG, "snapshot: %s",
			       a ? archive_error_string(a) : "out of memory");
	return 0;
}

static int make_all(struct unpack *u, const uint8_t sha256[32], struct err *err)
{
	struct archive_entry *ae;
	uint8_t have[32];
	const void *rest;
	int r = open_reader(u, err), got = ARCHIVE_EOF;
	la_ssize_t n;

	while (r == 0 && (got = archive_read_next_header(u->a, &ae)) == ARCHIVE_OK)
		r = make(u, ae, err);
	if (r == 0 && got != ARCHIVE_EOF)
		r = err_set(err, EBADMSG, "snapshot: %s", archive_error_string(u->a));
	while (r == 0 && (n = give(u->a, u, &rest)) != 0)
		r = n < 0 ? err_set(err, -u->read_error, "snapshot: %m") : 0;
	if (r < 0)
		return r;
	crypto_hash_sha256_final(&u->hash, have);
	if (memcmp(have, sha256, sizeof(have)) != 0)
		return err_set(err, EBADMSG,
			       "snapshot: its bytes are not those that were kept: "
			       "altered, or damaged");
	memcpy(u->facts.sha256, have, sizeof(have));
	return finish_dirs(u, err);
}

int archive_unpack(struct archive_facts *ret, const struct workspace_place *places, size_t n,
		   const uint8_t sha256[32], int in_fd, struct err *err)
{
	struct unpack u = { .places = places, .places_n = n, .in = in_fd, .parent = -1 };
	int r;

	crypto_hash_sha256_init(&u.hash);
	arena_init(&u.mem, MEMORY);
	u.piece = malloc(PIECE);
	r = u.piece ? make_all(&u, sha256, err) : err_set(err, ENOMEM, "snapshot: %m");
	if (r == 0)
		*ret = u.facts;
	if (u.parent >= 0)
		close(u.parent);
	archive_read_free(u.a);
	arena_done(&u.mem);
	free(u.dirs);
	free(u.piece);
	return r;
}
