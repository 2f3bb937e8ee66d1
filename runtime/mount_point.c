// SPDX-License-Identifier: Apache-2.0
/* File systems of our own, and the places where they are hung. */
#include "runtime/mount.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

#define BLOCK 4096

int mount_fs(const char *type, const char *const (*opts)[2], size_t n, unsigned attrs)
{
	auto_close int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	for (size_t i = 0; i < n; i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, opts[i][0], opts[i][1], 0) < 0)
			return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	return fd < 0 ? -errno : fd;
}

/* An inode a page: the default count lets one loop eat memory that `size` does not show. */
int mount_tmpfs(uint64_t bytes, unsigned attrs)
{
	char size[32], inodes[32];
	const char *opts[][2] = { { "size", size }, { "nr_inodes", inodes }, { "mode", "0755" } };

	snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)(bytes / BLOCK + 16));
	return mount_fs("tmpfs", opts, ARRAY_SIZE(opts), attrs);
}

void mount_is_ours(struct setup *s, int fd)
{
	struct stat st;

	if (s->ours_n < OURS_MAX && fstat(fd, &st) == 0)
		s->ours[s->ours_n++] = st.st_dev;
}

/* A tmpfs of the host is not. */
static bool is_ours(const struct setup *s, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < s->ours_n; i++)
		if (s->ours[i] == st.st_dev)
			return true;
	return false;
}

int mount_base(const struct setup *s, const char *path)
{
	return s->dev >= 0 && !strncmp(path, "/dev/", 5) ? s->dev : s->root;
}

/* Opens `path` (absolute inside) for use as a mount point or parent, making what is missing. Only in
 * file systems of ours: a missing target below a host directory is the operator's mistake. */
static int target_open(struct setup *s, const char *path, bool dir, bool make)
{
	char part[HOST_PATH_MAX];
	int at = fcntl(mount_base(s, path), F_DUPFD_CLOEXEC, 3);

	if (at < 0)
		return -errno;
	while (*path == '/')
		path++;
	while (*path) {
		size_t n = strcspn(path, "/");
		bool last = path[n] == 0;
		int fd;

		if (n >= sizeof(part)) {
			close(at);
			return -ENAMETOOLONG;
		}
		memcpy(part, path, n);
		part[n] = 0;
		fd = sys_openat2(at, part, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
		if (fd < 0 && errno == ENOENT && make && is_ours(s, at)) {
			int r = 0;

			if (!last || dir)
				r = mkdirat(at, part, 0755);
			else
				r = mknodat(at, part, S_IFREG | 0644, 0);
			if (r == 0)
				r = fchownat(at, part, s->host_id, s->host_id, AT_SYMLINK_NOFOLLOW);
			if (r == 0)
				fd = sys_openat2(at, part, O_PATH | O_NOFOLLOW,
						 RESOLVE_NO_SYMLINKS);
		}
		if (fd < 0) {
			int r = -errno;

			close(at);
			return r;
		}
		close(at);
		at = fd;
		path += n + !last;
	}
	return at;
}

/* Makes `path` of our own root, in one call where its parent exists. These are names of the plan, in a
 * file system that nobody else has seen yet: no link of a stranger can be on the way. */
int mount_point(struct setup *s, const char *path, bool dir, mode_t mode)
{
	int base = mount_base(s, path);
	int r = dir ? mkdirat(base, path + 1, mode) : mknodat(base, path + 1, S_IFREG | 0644, 0);

	if (r == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return -errno;
	r = target_open(s, path, dir, true);
	if (r < 0)
		return r;
	close(r);
	return 0;
}

/* Hangs the mount `fd` at the target. Closes nothing. */
int mount_attach(struct setup *s, int fd, const struct root_op *op, bool dir)
{
	auto_close int target = -1;
	int r;

	if (!op->foreign) {
		r = mount_point(s, op->target, dir, 0755);
		if (r < 0)
			return r;
		return move_mount(fd, "", mount_base(s, op->target), op->target + 1,
				  MOVE_MOUNT_F_EMPTY_PATH) < 0
			       ? -errno
			       : 0;
	}
	target = target_open(s, op->target, dir, true);
	if (target < 0)
		return take_fd(target);
	if (move_mount(fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* The directory that holds `path` inside. */
int mount_parent(struct setup *s, const char *path)
{
	char dir[HOST_PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || !slash[1] || (size_t)(slash - path) >= sizeof(dir))
		return -EINVAL;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = 0;
	return mount_point(s, dir, true, 0755);
}
