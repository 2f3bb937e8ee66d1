// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/store/format.h"
#include "userspace/store/manifest.h"
#include "userspace/store/segment.h"

#define BLOB_NAME_LEN (2 * STORE_HASH_LEN)

static int visit(int dir, const char *name, store_file_fn fn, void *arg)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return S_ISREG(st.st_mode) ? fn(arg, dir, name, &st) : 0;
}

static bool is_blob(const char *name)
{
	return strlen(name) == BLOB_NAME_LEN && strspn(name, "0123456789abcdef") == BLOB_NAME_LEN;
}

/* ".manifest.json.tmp": file_replace_at was killed before its rename. */
static bool is_half_made(const char *name)
{
	size_t n = strlen(name);

	return name[0] == '.' && n > 5 && strcmp(name + n - 4, ".tmp") == 0;
}

static int visit_dir(int bundle_fd, const char *path, bool blobs, store_file_fn fn, void *arg)
{
	int fd = openat(bundle_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	auto_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r == -ENOENT || r == -ENOTDIR || r == -ELOOP ? 0 : r;
	}
	for (errno = 0; r == 0 && (e = readdir(d)); errno = 0)
		if (is_half_made(e->d_name) || (blobs && is_blob(e->d_name)))
			r = visit(dirfd(d), e->d_name, fn, arg);
	return r == 0 ? -errno : r;
}

int store_files(int bundle_fd, store_file_fn fn, void *arg)
{
	static const char *const names[] = { "checkpoints.log", "manifest.json" };
	static const enum segment_kind kinds[] = { SEGMENT_TTY, SEGMENT_EVENTS };
	char name[SEGMENT_NAME_LEN + 1];
	struct segment_list list;
	struct err err = { 0 };
	int r = segment_list(bundle_fd, &list, &err);

	if (r == 0)
		r = visit_dir(bundle_fd, "blobs", true, fn, arg);
	if (r == 0)
		r = visit_dir(bundle_fd, ".", false, fn, arg);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		unsigned n = kinds[i] == SEGMENT_TTY ? list.tty_max : list.max;

		for (; r == 0 && n; n--) {
			segment_kind_name(name, kinds[i], n);
			r = visit(bundle_fd, name, fn, arg);
		}
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(names); i++)
		r = visit(bundle_fd, names[i], fn, arg);
	return r;
}

struct size {
	uint64_t bytes, mark;
};

static int add_size(void *arg, int dir, const char *name, const struct stat *st)
{
	struct size *s = arg;

	(void)dir;
	(void)name;
	s->bytes += (uint64_t)st->st_size;
	/* A sum: the order in which a directory is read does not matter. */
	s->mark +=
		((uint64_t)st->st_mtim.tv_sec * 1000000007 + (uint64_t)st->st_mtim.tv_nsec) * 31 +
		st->st_ino * 2654435761u + (uint64_t)st->st_size;
	return 0;
}

int store_size(int bundle_fd, uint64_t *ret_bytes, uint64_t *ret_mark)
{
	struct size s = { 0 };
	int r = store_files(bundle_fd, add_size, &s);

	*ret_bytes = s.bytes;
	*ret_mark = s.mark;
	return r;
}

bool store_has_writer(int bundle_fd)
{
	auto_close int dir = openat(bundle_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir >= 0 && flock(dir, LOCK_SH | LOCK_NB) < 0;
}

/* What is there of one kind, and what the manifest tells. */
struct told {
	const char *what;
	enum segment_kind kind;
	unsigned count, max; /* files; the highest number */
	uint64_t segments, bytes;
};

static int check_told(int bundle_fd, const struct told *t, struct err *err)
{
	char name[SEGMENT_NAME_LEN + 1];
	uint64_t bytes = 0;
	struct stat st;

	if (t->count != t->segments || t->max != t->segments)
		return err_set(err, EBADMSG,
			       "%s has %u of %llu segments: it was %s; see `warder verify`",
			       t->what, t->count, (unsigned long long)t->segments,
			       t->count > t->segments || t->max > t->segments ? "added to" : "cut");
	for (unsigned i = 1; i <= t->count; i++) {
		segment_kind_name(name, t->kind, i);
		if (fstatat(bundle_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	}
	if (bytes != t->bytes)
		return err_set(err, EBADMSG,
			       "%s has %llu of %llu bytes: it was %s; see `warder verify`", t->what,
			       (unsigned long long)bytes, (unsigned long long)t->bytes,
			       bytes > t->bytes ? "added to" : "cut");
	return 0;
}

int store_check_sizes(int bundle_fd, const struct manifest_info *m, bool tty_only, struct err *err)
{
	struct segment_list list;
	int r = segment_list(bundle_fd, &list, err);

	if (r < 0)
		return r;
	if (list.foreign[0])
		return err_set(
			err, EBADMSG,
			"a file '%s...' is none of a record: it was added; see `warder verify`",
			list.foreign);
	if (!tty_only)
		r = check_told(bundle_fd,
			       &(struct told){ "the record", SEGMENT_EVENTS, list.count, list.max,
					       m->segments, m->bytes },
			       err);
	return r < 0 ? r
		     : check_told(bundle_fd,
				  &(struct told){ "the terminal's recording", SEGMENT_TTY,
						  list.tty_count, list.tty_max, m->tty_segments,
						  m->tty_bytes },
				  err);
}

static int remove_file(void *arg, int dir, const char *name, const struct stat *st)
{
	(void)arg;
	(void)st;
	return unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int store_remove(int parent_fd, const char *name, struct err *err)
{
	auto_close int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(err, errno, "session %s: %m", name);
	r = store_files(fd, remove_file, NULL);
	if (r < 0)
		return err_set(err, r, "session %s: %m", name);
	/* With something else in it, it stays, and so does what it is in. */
	if (unlinkat(fd, "blobs", AT_REMOVEDIR) < 0 && errno != ENOENT && errno != ENOTDIR &&
	    errno != ENOTEMPTY)
		return err_set(err, errno, "session %s: blobs: %m", name);
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_set(err, errno, "session %s: %m", name);
	return 0;
}
