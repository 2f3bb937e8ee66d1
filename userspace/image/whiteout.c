// SPDX-License-Identifier: Apache-2.0
/* Files of a layer that say what of the layers below is gone (OCI image-spec, layer.md: Whiteouts). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/image/internal.h"

#define PREFIX	    ".wh."
#define PREFIX_N    4
#define OPAQUE	    ".wh..wh..opq"
#define AUFS_PREFIX ".wh..wh."

enum whiteout whiteout_kind(const char *base, const char **ret_name)
{
	const char *name = base + PREFIX_N;

	if (strncmp(base, PREFIX, PREFIX_N) != 0)
		return WHITEOUT_NO;
	if (!strcmp(base, OPAQUE))
		return WHITEOUT_OPAQUE;
	if (!strncmp(base, AUFS_PREFIX, strlen(AUFS_PREFIX)))
		return WHITEOUT_IGNORE; /* book-keeping of an old storage driver */
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return WHITEOUT_BAD;
	*ret_name = name;
	return WHITEOUT_NAME;
}

bool whiteout_in_path(const char *path)
{
	for (const char *c = path; c; c = strchr(c, '/')) {
		c += *c == '/';
		if (!strncmp(c, PREFIX, PREFIX_N))
			return true;
	}
	return false;
}

/* ---- a set of inode numbers ---- */

static size_t slot_of(const struct inodes *s, uint64_t ino)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15ull >> 20) & (s->room - 1);

	while (s->v[i] && s->v[i] != ino)
		i = (i + 1) & (s->room - 1);
	return i;
}

int inodes_add(struct inodes *s, uint64_t ino)
{
	if (s->n * 2 >= s->room) {
		struct inodes more = { .room = s->room ? s->room * 2 : 1024 };

		more.v = calloc(more.room, sizeof(*more.v));
		if (!more.v)
			return -ENOMEM;
		for (size_t i = 0; i < s->room; i++)
			if (s->v[i])
				more.v[slot_of(&more, s->v[i])] = s->v[i];
		more.n = s->n;
		free(s->v);
		*s = more;
	}
	if (!inodes_have(s, ino)) {
		s->v[slot_of(s, ino)] = ino;
		s->n++;
	}
	return 0;
}

bool inodes_have(const struct inodes *s, uint64_t ino)
{
	return s->room && s->v[slot_of(s, ino)] == ino;
}

/* ---- removing ---- */

/* `touched` NULL: nothing is spared. */
static int remove_below(const struct inodes *touched, int dir, const char *name, unsigned depth);

static int remove_children(const struct inodes *touched, int fd, unsigned depth)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d)
		return -errno;
	if (depth > IMAGE_DEPTH_MAX + 8)
		return -ELOOP;
	while (r == 0 && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			r = remove_below(touched, fd, de->d_name, depth + 1);
	return r;
}

static int remove_below(const struct inodes *touched, int dir, const char *name, unsigned depth)
{
	auto_close int fd = -1;
	struct stat st;
	bool spared;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	spared = touched && inodes_have(touched, st.st_ino);
	if (!S_ISDIR(st.st_mode))
		return spared || unlinkat(dir, name, 0) == 0 ? 0 : -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = remove_children(touched, fd, depth);
	if (r < 0 || spared)
		return r;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || (touched && errno == ENOTEMPTY) ? 0
											 : -errno;
}

int tree_remove(int dir, const char *name)
{
	return remove_below(NULL, dir, name, 0);
}

int whiteout_apply(const struct inodes *touched, int dir, const char *name)
{
	return remove_below(touched, dir, name, 0);
}

int whiteout_opaque(const struct inodes *touched, int dir)
{
	return remove_children(touched, dir, 0);
}
