// SPDX-License-Identifier: Apache-2.0
/* Where an image comes from. A layout is read by names that its own JSON gives, so it must be seekable: what is not, or is
 * packed, is written down first. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/openat2.h"
#include "userspace/base/fd.h"
#include "userspace/image/internal.h"

#define SPOOL	  "spool"
#define LINK_HOPS 4

const char *const source_kind_names[] = {
	[SOURCE_OCI] = "oci", [SOURCE_DOCKER] = "docker", [SOURCE_ROOTFS] = "rootfs"
};

ssize_t source_read(void *source, void *p, size_t n, struct err *err)
{
	struct source *s = source;
	ssize_t k;

	do {
		k = read(s->fd, p, n);
	} while (k < 0 && errno == EINTR);
	return k < 0 ? err_set(err, errno, "archive: %m") : k;
}

static bool is_seekable(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0;
}

static int spool_new(struct source *s, struct err *err)
{
	int fd = openat(s->spool_dir, SPOOL, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || unlinkat(s->spool_dir, SPOOL, 0) < 0) {
		if (fd >= 0)
			close(fd);
		return err_set(err, errno, "room for the archive: %m");
	}
	return fd;
}

static int spool_write(int fd, const void *p, size_t n, struct err *err)
{
	int r = fd_write_all(fd, p, n);

	return r < 0 ? err_set(err, r, "keeping the archive while it is read: %m") : 0;
}

static int use_spool(struct source *s, int fd, struct err *err)
{
	close(s->fd);
	s->fd = fd;
	return lseek(fd, 0, SEEK_SET) < 0 ? err_set(err, errno, "archive: %m") : 0;
}

/* What can be read once. */
static int spool_raw(struct source *s, struct err *err)
{
	auto_free char *buffer = malloc(STREAM_OUT);
	auto_close int fd = spool_new(s, err);
	uint64_t all = 0;
	ssize_t n;

	if (!buffer || fd < 0)
		return fd < 0 ? take_fd(fd) : -ENOMEM;
	while ((n = source_read(s, buffer, STREAM_OUT, err)) > 0) {
		int r = spool_write(fd, buffer, (size_t)n, err);

		if (r < 0)
			return r;
		all += (uint64_t)n;
		if (all > s->limits->bytes)
			return err_set(err, EFBIG, "archive: larger than %llu bytes (--max-size)",
				       (unsigned long long)s->limits->bytes);
	}
	return n < 0 ? (int)n : use_spool(s, take_fd(fd), err);
}

static int spool_unpacked(struct source *s, struct err *err)
{
	auto_close int fd = spool_new(s, err);
	struct stream in;
	const void *p;
	ssize_t n;
	int r;

	if (fd < 0)
		return take_fd(fd);
	r = stream_open(&in, source_read, s, "archive", s->limits, err);
	if (r < 0)
		return r;
	while ((n = stream_next(&in, &p)) > 0 && r == 0)
		r = spool_write(fd, p, (size_t)n, err);
	stream_done(&in);
	r = n < 0 ? (int)n : r;
	return r < 0 ? r : use_spool(s, take_fd(fd), err);
}

static int add_file(struct source *s, const char *name, const char *link, uint64_t at,
		    uint64_t size, struct err *err)
{
	struct source_file *f;

	if (s->files_n >= SOURCE_FILES_MAX)
		return err_set(err, E2BIG, "archive: an image layout of more than %d files",
			       SOURCE_FILES_MAX);
	if (s->files_n == s->files_room) {
		size_t room = s->files_room ? s->files_room * 2 : 64;

		f = realloc(s->files, room * sizeof(*f));
		if (!f)
			return err_set(err, ENOMEM, "archive: %m");
		s->files = f;
		s->files_room = room;
	}
	f = &s->files[s->files_n];
	*f = (struct source_file){
		.name = strdup(name), .link = link ? strdup(link) : NULL, .at = at, .size = size
	};
	s->files_n++;
	return f->name && (!link || f->link) ? 0 : err_set(err, ENOMEM, "archive: %m");
}

/* Where it leads to, seen from the directory that it lies in: names only, of this archive. */
static int link_name(const char *name, const char *to, char ret[SOURCE_NAME_MAX + 1])
{
	const char *slash = strrchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;

	while (!strncmp(to, "../", 3)) {
		if (n == 0)
			return -EPERM;
		while (n && name[n - 1] != '/')
			n--;
		n -= n > 0;
		to += 3;
	}
	if (to[0] == '/' || strstr(to, ".."))
		return -EPERM;
	return snprintf(ret, SOURCE_NAME_MAX + 1, "%.*s%s%s", (int)n, name, n ? "/" : "", to) >
			       SOURCE_NAME_MAX
		       ? -ENAMETOOLONG
		       : 0;
}

struct look {
	bool oci, index, docker;
};

static int look_entry(struct source *s, struct archive *tar, struct archive_entry *e,
		      struct look *look, bool keep, struct err *err)
{
	const char *said = archive_entry_pathname(e), *problem;
	char path[IMAGE_PATH_MAX + 2], link[SOURCE_NAME_MAX + 1];

	if (!said || strlen(said) > SOURCE_NAME_MAX)
		return 0;
	snprintf(path, sizeof(path), "%s", said);
	if (path_clean(path, &problem) < 0)
		return 0;
	look->oci |= !strcmp(path, "oci-layout");
	look->index |= !strcmp(path, "index.json");
	look->docker |= !strcmp(path, "manifest.json");
	if (!keep)
		return 0;
	if (archive_entry_symlink(e) || archive_entry_hardlink(e)) {
		const char *to = archive_entry_symlink(e);
		int r = to ? link_name(path, to, link)
			: snprintf(link, sizeof(link), "%s", archive_entry_hardlink(e)) <
					SOURCE_NAME_MAX
				? 0
				: -ENAMETOOLONG;

		return r < 0 ? 0 : add_file(s, path, link, 0, 0, err);
	}
	if (archive_entry_filetype(e) != AE_IFREG)
		return 0;
	return add_file(s, path, NULL, (uint64_t)archive_read_header_position(tar),
			(uint64_t)archive_entry_size(e), err);
}

/* A walk over all names; `keep`: and where they are. */
static int look_over(struct source *s, struct look *ret, bool keep, enum packing *ret_packing,
		     struct err *err)
{
	struct archive_entry *e = NULL;
	struct archive *tar;
	struct stream in;
	uint64_t seen = 0;
	int r = stream_open(&in, source_read, s, "archive", s->limits, err);

	if (r < 0)
		return r;
	tar = tar_open(&in);
	r = tar ? 1 : in.failed ? in.failed : -ENOMEM;
	while (r > 0) {
		r = tar_next(tar, &e, &in, err);
		if (r > 0 && ++seen > s->limits->entries)
			r = err_set(err, EFBIG, "archive: more than %llu entries (--max-files)",
				    (unsigned long long)s->limits->entries);
		if (r > 0) {
			r = look_entry(s, tar, e, ret, keep, err);
			r = r < 0 ? r : 1;
		}
		if (!keep && ((ret->oci && ret->index) || ret->docker))
			break;
	}
	*ret_packing = in.packing;
	if (tar)
		archive_read_free(tar);
	stream_done(&in);
	return r < 0 ? r : lseek(s->fd, 0, SEEK_SET) < 0 ? err_set(err, errno, "archive: %m") : 0;
}

static int open_tar(struct source *s, struct err *err)
{
	enum packing packing;
	struct look look = { 0 }, again = { 0 };
	int r = 0;

	if (!is_seekable(s->fd))
		r = spool_raw(s, err);
	if (r == 0)
		r = look_over(s, &look, false, &packing, err);
	if (r < 0)
		return r;
	s->kind = look.oci || look.docker ? SOURCE_OCI : SOURCE_ROOTFS;
	if (s->kind == SOURCE_ROOTFS)
		return 0;
	if (packing)
		r = spool_unpacked(s, err);
	if (r == 0)
		r = look_over(s, &again, true, &packing, err);
	/* Docker's own archives are both since version 25: the layout says more. */
	s->kind = again.oci && again.index ? SOURCE_OCI : SOURCE_DOCKER;
	if (r == 0 && s->kind == SOURCE_DOCKER && !again.docker)
		return err_set(err, EBADMSG, "archive: has oci-layout, but no index.json");
	return r;
}

static int open_in(int dir, const char *name)
{
	int fd = sys_openat2(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return fd < 0 ? -errno : fd;
}

static int open_dir(struct source *s, struct err *err)
{
	auto_close int layout = open_in(s->dir, "oci-layout");
	auto_close int docker = open_in(s->dir, "manifest.json");

	if (layout >= 0)
		s->kind = SOURCE_OCI;
	else if (docker >= 0)
		s->kind = SOURCE_DOCKER;
	else
		return err_set(
			err, EBADMSG,
			"the directory holds neither oci-layout nor manifest.json; one that is "
			"a root itself needs no import: run --root DIR");
	return 0;
}

int source_open(struct source *s, int fd, int spool_dir, const struct image_limits *limits,
		struct err *err)
{
	struct stat st;

	*s = (struct source){ .dir = -1, .fd = fd, .limits = limits, .spool_dir = spool_dir };
	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "archive: %m");
	if (!S_ISDIR(st.st_mode))
		return open_tar(s, err);
	s->dir = fd;
	s->fd = -1;
	return open_dir(s, err);
}

void source_done(struct source *s)
{
	for (size_t i = 0; i < s->files_n; i++) {
		free(s->files[i].name);
		free(s->files[i].link);
	}
	free(s->files);
	if (s->dir >= 0)
		close(s->dir);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct source){ .dir = -1, .fd = -1 };
}

/* ---- one file of it ---- */

/* The last of its name, as tar unpacks. */
static const struct source_file *find(const struct source *s, const char *name)
{
	for (int hop = 0; hop < LINK_HOPS; hop++) {
		const struct source_file *f = NULL;

		for (size_t i = s->files_n; i-- && !f;)
			if (!strcmp(s->files[i].name, name))
				f = &s->files[i];
		if (!f || !f->link)
			return f;
		name = f->link;
	}
	return NULL;
}

static int blob_in_tar(struct blob *b, const char *name, struct err *err)
{
	const struct source_file *f = find(b->source, name);
	struct archive_entry *e;
	int r;

	if (!f)
		return err_set(err, ENOENT, "'%.200s' is not in the archive", name);
	if (lseek(b->source->fd, (off_t)f->at, SEEK_SET) < 0)
		return err_set(err, errno, "archive: %m");
	r = stream_open(&b->outer, source_read, b->source, "archive", b->source->limits, err);
	if (r < 0)
		return r;
	b->tar = tar_open(&b->outer);
	r = b->tar ? tar_next(b->tar, &e, &b->outer, err) : b->outer.failed;
	if (r <= 0)
		return r < 0 ? r : err_set(err, EBADMSG, "'%.200s': archive ends", name);
	b->size = (int64_t)f->size;
	return 0;
}

static int blob_in_dir(struct blob *b, const char *name, struct err *err)
{
	struct stat st;

	b->fd = open_in(b->source->dir, name);
	if (b->fd < 0)
		return err_set(err, -b->fd, "'%.200s': %m", name);
	if (fstat(b->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EBADMSG, "'%.200s' is no regular file", name);
	b->size = st.st_size;
	return 0;
}

int blob_open(struct blob *b, struct source *s, const char *name, struct err *err)
{
	char path[SOURCE_NAME_MAX + 1];
	const char *problem;
	int r;

	*b = (struct blob){ .fd = -1, .source = s, .err = err };
	if ((size_t)snprintf(path, sizeof(path), "%s", name) >= sizeof(path) ||
	    path_clean(path, &problem) < 0 || !*path)
		return err_set(err, EBADMSG, "'%.200s' is no name of a blob", name);
	r = s->dir >= 0 ? blob_in_dir(b, path, err) : blob_in_tar(b, path, err);
	if (r < 0)
		blob_done(b);
	return r;
}

static ssize_t read_tar(struct blob *b, void *p, size_t n, struct err *err)
{
	la_ssize_t k = archive_read_data(b->tar, p, n);

	if (k >= 0)
		return k;
	if (b->outer.failed)
		return b->outer.failed;
	return err_set(err, EBADMSG, "archive: %s",
		       archive_error_string(b->tar) ? archive_error_string(b->tar) : "damaged");
}

ssize_t blob_read(void *blob, void *p, size_t n, struct err *err)
{
	struct blob *b = blob;
	ssize_t k;

	if (b->tar)
		return read_tar(b, p, n, err);
	do {
		k = read(b->fd, p, n);
	} while (k < 0 && errno == EINTR);
	return k < 0 ? err_set(err, errno, "blob: %m") : k;
}

void blob_done(struct blob *b)
{
	if (b->tar) {
		archive_read_free(b->tar);
		b->tar = NULL;
	}
	stream_done(&b->outer);
	if (b->fd >= 0)
		close(take_fd(b->fd));
}

int blob_text(struct source *s, const char *name, struct str *ret, struct arena *mem,
	      struct err *err)
{
	struct blob b;
	size_t n = 0;
	char *text;
	ssize_t k = 1;
	int r = blob_open(&b, s, name, err);

	if (r < 0)
		return r;
	if (b.size > SOURCE_BLOB_MAX) {
		r = err_set(err, EFBIG, "'%.200s': more than %u bytes of JSON", name,
			    SOURCE_BLOB_MAX);
		blob_done(&b);
		return r;
	}
	text = arena_alloc(mem, (size_t)b.size + 1);
	if (!text)
		k = err_set(err, ENOMEM, "'%.200s': %m", name);
	while (text && k > 0 && n < (size_t)b.size) {
		k = blob_read(&b, text + n, (size_t)b.size - n, err);
		n += k > 0 ? (size_t)k : 0;
	}
	blob_done(&b);
	if (k < 0)
		return (int)k;
	text[n] = 0;
	*ret = (struct str){ text, n };
	return 0;
}
