// SPDX-License-Identifier: Apache-2.0
/* One layer onto the root. Runs without privilege: all files are the process's own, so no entry can say whose they are. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/image/internal.h"

#define LINK_MAX_LEN 4095
#define TIME_MAX     0xffffffffll /* 2106 */

/* An entry being worked on. */
struct item {
	struct unpacker *u;
	struct archive *tar;
	struct stream *from;
	struct archive_entry *e;
	char text[IMAGE_PATH_MAX + 2];
	const char *path; /* clean */
	const char *base;
	int parent;
	struct err *err;
};

static int bad(const struct item *it, int code, const char *what)
{
	return err_set(it->err, code, "entry '%.200s': %s", it->path, what);
}

static int failed(const struct item *it, int code)
{
	switch (code) {
	case ELOOP:
		return bad(it, EPERM, "its directory is a symbolic link, which is not followed");
	case ENOTDIR:
		return bad(it, EPERM, "its directory is no directory");
	case ENOSPC:
	case EDQUOT:
		return bad(it, code, "the disk is full");
	default:
		return err_set(it->err, code, "entry '%.200s': %m", it->path);
	}
}

static int touch(const struct item *it, int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
		return -errno;
	return inodes_add(&it->u->touched, st.st_ino);
}

/* The directories of `path` belong to this layer, too: they were listed, or came with what is in them. */
static int touch_above(const struct item *it)
{
	char dir[IMAGE_PATH_MAX + 1];
	const char *base;

	snprintf(dir, sizeof(dir), "%s", it->path);
	for (char *slash = strrchr(dir, '/'); slash; slash = strrchr(dir, '/')) {
		auto_close int fd = -1;
		int r;

		*slash = 0;
		fd = path_parent(it->u->root, dir, false, &base);
		r = fd < 0 ? fd : touch(it, fd, base);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Most entries lie where the one before lay. */
static int open_parent(struct item *it)
{
	struct unpacker *u = it->u;
	const char *slash = strrchr(it->path, '/');
	size_t n = slash ? (size_t)(slash - it->path) : 0;
	int r;

	it->base = slash ? slash + 1 : it->path;
	if (u->parent >= 0 && strlen(u->parent_path) == n && !memcmp(u->parent_path, it->path, n)) {
		it->parent = u->parent;
		return 0;
	}
	if (u->parent >= 0)
		close(take_fd(u->parent));
	r = path_parent(u->root, it->path, true, &it->base);
	if (r < 0)
		return failed(it, -r);
	u->parent = it->parent = r;
	memcpy(u->parent_path, it->path, n);
	u->parent_path[n] = 0;
	r = touch_above(it);
	return r < 0 ? failed(it, -r) : 0;
}

/* Whatever is at the name gives way, but a directory to a directory. */
static int clear(struct item *it, bool for_dir, bool *ret_there)
{
	struct stat st;
	int r;

	*ret_there = false;
	if (fstatat(it->parent, it->base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(it, errno);
	if (for_dir && S_ISDIR(st.st_mode)) {
		*ret_there = true;
		return 0;
	}
	r = tree_remove(it->parent, it->base);
	return r < 0 ? failed(it, -r) : 0;
}

static void set_times(const struct item *it, int fd)
{
	int64_t t = archive_entry_mtime_is_set(it->e) ? archive_entry_mtime(it->e) : 0;
	struct timespec ts[2];

	t = t < 0 ? 0 : MIN(t, TIME_MAX);
	ts[0] = (struct timespec){ .tv_sec = t, .tv_nsec = archive_entry_mtime_nsec(it->e) };
	if (ts[0].tv_nsec < 0 || ts[0].tv_nsec > 999999999)
		ts[0].tv_nsec = 0;
	ts[1] = ts[0];
	if (fd >= 0)
		(void)futimens(fd, ts);
	else
		(void)utimensat(it->parent, it->base, ts, AT_SYMLINK_NOFOLLOW);
}

static int make_dir(struct item *it)
{
	/* We and the payload, whose it will be, must get into it whatever the archive says. */
	mode_t mode = (archive_entry_perm(it->e) & 01777) | 0700;
	bool there;
	int r = clear(it, true, &there);

	if (r < 0)
		return r;
	if (!there && mkdirat(it->parent, it->base, mode) < 0)
		return failed(it, errno);
	if (fchmodat(it->parent, it->base, mode, 0) < 0)
		return failed(it, errno);
	return 0;
}

static int write_block(const struct item *it, int fd, const char *p, size_t n, int64_t at)
{
	while (n) {
		ssize_t k = pwrite(fd, p, n, at);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return failed(it, errno);
		p += k;
		n -= (size_t)k;
		at += k;
	}
	return 0;
}

static int too_much(const struct item *it)
{
	return err_set(it->err, EFBIG, "entry '%.200s': more than %llu bytes in all (--max-size)",
		       it->path, (unsigned long long)it->u->limits->bytes);
}

/* A sparse file counts as what it says it is. */
static int write_data(struct item *it, int fd)
{
	uint64_t size = archive_entry_size(it->e) < 0 ? 0 : (uint64_t)archive_entry_size(it->e);
	uint64_t left = it->u->limits->bytes - it->u->bytes;
	const void *p;
	size_t n;
	la_int64_t at;
	int r;

	if (size > left)
		return too_much(it);
	for (;;) {
		r = archive_read_data_block(it->tar, &p, &n, &at);
		if (r == ARCHIVE_EOF)
			break;
		if (it->from->failed) /* it knows better why */
			return it->from->failed;
		if (r != ARCHIVE_OK)
			return bad(it, EBADMSG, "its data is damaged or cut off");
		if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
			return bad(it, EBADMSG, "more data than it says");
		r = write_block(it, fd, p, n, at);
		if (r < 0)
			return r;
	}
	if (ftruncate(fd, (off_t)size) < 0)
		return failed(it, errno);
	it->u->bytes += size;
	return 0;
}

static int make_file(struct item *it)
{
	mode_t perm = archive_entry_perm(it->e);
	auto_close int fd = -1;
	bool there;
	int r = clear(it, false, &there);

	if (r < 0)
		return r;
	fd = openat(it->parent, it->base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return failed(it, errno);
	it->u->stripped += (perm & (S_ISUID | S_ISGID)) != 0;
	r = write_data(it, fd);
	if (r < 0)
		return r;
	if (fchmod(fd, (perm & 0777) | 0400) < 0)
		return failed(it, errno);
	set_times(it, fd);
	return 0;
}

static int make_symlink(struct item *it)
{
	const char *to = archive_entry_symlink(it->e);
	bool there;
	int r;

	if (!to || !*to || strlen(to) > LINK_MAX_LEN)
		return bad(it, EBADMSG, "a symbolic link that leads to nothing, or too far");
	r = clear(it, false, &there);
	if (r < 0)
		return r;
	if (symlinkat(to, it->parent, it->base) < 0)
		return failed(it, errno);
	set_times(it, -1);
	return 0;
}

static int make_hardlink(struct item *it)
{
	const char *said = archive_entry_hardlink(it->e), *base, *problem;
	char to[IMAGE_PATH_MAX + 2];
	auto_close int dir = -1;
	struct stat st;
	bool there;
	int r;

	if ((size_t)snprintf(to, sizeof(to), "%s", said) >= sizeof(to))
		return bad(it, ENAMETOOLONG, "the target of a hard link is too long");
	if (path_clean(to, &problem) < 0 || !*to)
		return err_set(it->err, EPERM, "entry '%.200s': the target of a hard link %s",
			       it->path, *to ? problem : "is the root");
	if (whiteout_in_path(to))
		return bad(it, EPERM, "a hard link to a whiteout");
	if (!strcmp(to, it->path))
		return 0;
	dir = path_parent(it->u->root, to, false, &base);
	if (dir < 0 || fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(it->err, EPERM,
			       "entry '%.200s': hard link to '%.200s', which is not in the image "
			       "or behind a link",
			       it->path, to);
	if (S_ISDIR(st.st_mode))
		return bad(it, EPERM, "a hard link to a directory");
	r = clear(it, false, &there);
	if (r < 0)
		return r;
	return linkat(dir, base, it->parent, it->base, 0) < 0 ? failed(it, errno) : 0;
}

static int make(struct item *it)
{
	int r;

	if (archive_entry_hardlink(it->e))
		r = make_hardlink(it);
	else if (archive_entry_filetype(it->e) == AE_IFDIR)
		r = make_dir(it);
	else if (archive_entry_filetype(it->e) == AE_IFREG)
		r = make_file(it);
	else if (archive_entry_filetype(it->e) == AE_IFLNK)
		r = make_symlink(it);
	else {
		it->u->left_out++; /* devices, pipes, sockets: a sandbox has its own */
		return 0;
	}
	if (r < 0)
		return r;
	it->u->attributes += archive_entry_xattr_count(it->e) > 0 || archive_entry_acl_types(it->e);
	r = touch(it, it->parent, it->base);
	return r < 0 ? failed(it, -r) : 0;
}

static int whiteout(struct item *it, enum whiteout kind, const char *name)
{
	auto_close int dir = -1;
	int r;

	if (kind == WHITEOUT_IGNORE)
		return 0;
	if (kind == WHITEOUT_BAD)
		return bad(it, EPERM, "a whiteout of nothing, '.' or '..'");
	if (kind == WHITEOUT_NAME) {
		r = whiteout_apply(&it->u->touched, it->parent, name);
	} else {
		dir = openat(it->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = dir < 0 ? -errno : whiteout_opaque(&it->u->touched, dir);
	}
	return r < 0 ? failed(it, -r) : 0;
}

static int unpack_entry(struct item *it)
{
	struct unpacker *u = it->u;
	const char *said = archive_entry_pathname(it->e), *problem, *name = NULL;
	char *path = it->text;
	enum whiteout kind;
	int r;

	it->path = "";
	if (++u->seen > u->limits->entries)
		return err_set(it->err, EFBIG, "more than %llu entries (--max-files)",
			       (unsigned long long)u->limits->entries);
	if (!said)
		return err_set(it->err, EBADMSG, "entry %llu: its name is no text",
			       (unsigned long long)u->seen);
	it->path = said;
	if ((size_t)snprintf(path, sizeof(it->text), "%s", said) >= sizeof(it->text))
		return bad(it, ENAMETOOLONG, "its name is longer than 4095 bytes");
	r = path_clean(path, &problem);
	if (r < 0)
		return err_set(it->err, -r, "entry '%.200s': its name %s", said, problem);
	it->path = path;
	if (!*path) /* "./" */
		return 0;
	r = open_parent(it);
	if (r < 0)
		return r;
	kind = whiteout_kind(it->base, &name);
	if (kind == WHITEOUT_NO && whiteout_in_path(path))
		return bad(it, EPERM, "lies in a whiteout");
	return kind == WHITEOUT_NO ? make(it) : whiteout(it, kind, name);
}

int unpack_layer(struct unpacker *u, struct stream *s, struct err *err)
{
	struct archive *tar = tar_open(s);
	struct item it = { .u = u, .tar = tar, .from = s, .err = err };
	int r = 1;

	if (!tar)
		return s->failed ? s->failed : err_set(err, ENOMEM, "%s: %m", s->name);
	free(u->touched.v);
	u->touched = (struct inodes){ 0 };
	while (r > 0) {
		r = tar_next(tar, &it.e, s, err);
		if (r > 0) {
			r = unpack_entry(&it);
			r = r < 0 ? r : 1;
		}
	}
	if (r < 0 && !s->failed)
		err_wrap(err, r, "%s", s->name);
	archive_read_free(tar);
	if (u->parent >= 0)
		close(take_fd(u->parent));
	return r;
}

void unpack_done(struct unpacker *u)
{
	free(u->touched.v);
	if (u->parent >= 0)
		close(u->parent);
	u->parent = -1;
	u->touched = (struct inodes){ 0 };
}
