// SPDX-License-Identifier: Apache-2.0
/* Applying the root part of a plan with the descriptor-based mount calls: no path of the host is
 * walked twice, and no target is found through a link. */
#include "runtime/setup.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "runtime/sys.h"
#include "userspace/base/auto.h"

#define ROOT_BYTES (1u << 20) /* what we put there ourselves */
#define PTYS_MAX   "64"
#define BLOCK	   4096

static int make_fs(const char *type, const char *const (*opts)[2], size_t n, unsigned attrs)
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
static int make_tmpfs(uint64_t bytes, unsigned attrs)
{
	char size[32], inodes[32];
	const char *opts[][2] = { { "size", size }, { "nr_inodes", inodes }, { "mode", "0755" } };

	snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)(bytes / BLOCK + 16));
	return make_fs("tmpfs", opts, ARRAY_SIZE(opts), attrs);
}

static bool is_tmpfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* Opens `path` (absolute inside) for use as a mount point or parent, making what is missing. Only in
 * file systems of ours: a missing target below a host directory is the operator's mistake. */
static int target_open(struct setup *s, const char *path, bool dir, bool make)
{
	char part[HOST_PATH_MAX];
	int at = fcntl(s->root, F_DUPFD_CLOEXEC, 3);

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
		if (fd < 0 && errno == ENOENT && make && is_tmpfs(at)) {
			int r = 0;

			if (!last || dir)
				r = mkdirat(at, part, 0755);
			else
				r = mknodat(at, part, S_IFREG | 0644, 0);
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
static int point_make(struct setup *s, const char *path, bool dir, mode_t mode)
{
	int r = dir ? mkdirat(s->root, path + 1, mode)
		    : mknodat(s->root, path + 1, S_IFREG | 0644, 0);

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
static int attach(struct setup *s, int fd, const struct root_op *op, bool dir)
{
	auto_close int target = -1;
	int r;

	if (!op->foreign) {
		r = point_make(s, op->target, dir, 0755);
		if (r < 0)
			return r;
		return move_mount(fd, "", s->root, op->target + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0
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
static int parent_make(struct setup *s, const char *path)
{
	char dir[HOST_PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || !slash[1] || (size_t)(slash - path) >= sizeof(dir))
		return -EINVAL;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = 0;
	return point_make(s, dir, true, 0755);
}

static int do_dir(struct setup *s, const struct root_op *op, size_t i)
{
	(void)i;
	return point_make(s, op->target, true, op->mode);
}

static int do_link(struct setup *s, const struct root_op *op, size_t i)
{
	int r;

	(void)i;
	if (symlinkat(op->source, s->root, op->target + 1) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	r = parent_make(s, op->target);
	if (r < 0)
		return r;
	return symlinkat(op->source, s->root, op->target + 1) < 0 ? -errno : 0;
}

static int do_file(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = openat(s->root, op->target + 1,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	size_t n = strlen(op->source);
	ssize_t w;

	(void)i;
	if (fd < 0)
		return -errno;
	w = write(fd, op->source, n);
	if (w < 0)
		return -errno;
	return (size_t)w == n ? 0 : -ENOSPC;
}

/* A small file of the host, as it is now. */
static int do_copy(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int src = open(op->source, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	auto_close int dst = -1;
	char text[PLAN_COPY_MAX];
	ssize_t n;

	(void)i;
	if (src < 0)
		return errno == ENOENT ? 0 : -errno;
	n = read(src, text, sizeof(text));
	if (n < 0)
		return -errno;
	dst = openat(s->root, op->target + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		     0644);
	if (dst < 0 && errno == ENOENT) {
		int r = parent_make(s, op->target);

		if (r < 0)
			return r;
		dst = openat(s->root, op->target + 1,
			     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	}
	if (dst < 0)
		return -errno;
	return write(dst, text, (size_t)n) == n ? 0 : -ENOSPC;
}

static unsigned long bind_attrs(const struct root_op *op)
{
	return MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (op->writable ? 0 : MOUNT_ATTR_RDONLY) |
	       (op->exec ? 0 : MOUNT_ATTR_NOEXEC);
}

/* A clone of the source's mount, checked to be what the plan saw. The operator's path was resolved
 * when the plan was made, so a link on it now is somebody's trick. */
static int source_clone(const struct root_op *op)
{
	const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
	auto_close int src = -1;
	auto_close int fd = -1;
	struct stat st;

	if (op->foreign) {
		src = sys_openat2(AT_FDCWD, op->source, O_PATH, RESOLVE_NO_SYMLINKS);
		if (src < 0)
			return -errno;
		fd = open_tree(src, "", flags | AT_EMPTY_PATH);
	} else {
		fd = open_tree(AT_FDCWD, op->source, flags);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (op->is_dir ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
		return -ESTALE;
	return take_fd(fd);
}

static int bind_clone(const struct root_op *op, int ids)
{
	struct mount_attr attr = { .attr_set = bind_attrs(op) };
	auto_close int fd = source_clone(op);

	if (fd < 0)
		return take_fd(fd);
	if (ids >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)ids;
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	return take_fd(fd);
}

static int do_bind(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = bind_clone(op, s->ids[i]);

	if (fd == -ENOENT && op->optional)
		return 0;
	if (fd < 0)
		return take_fd(fd);
	setup_at(s, op->target);
	return attach(s, fd, op, op->is_dir);
}

static int do_tmpfs(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = make_tmpfs(op->size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
							 (op->exec ? 0 : MOUNT_ATTR_NOEXEC));

	(void)i;
	if (fd < 0)
		return take_fd(fd);
	if (fchownat(fd, "", s->host_id, s->host_id, AT_EMPTY_PATH) < 0)
		return -errno;
	return attach(s, fd, op, true);
}

/* A directory of the root's own file system, mounted over itself: writable here, while the root is
 * not. One superblock less, and nothing that is cloned while detached (Linux 6.15). */
static int do_scratch(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = open_tree(s->root, op->target + 1, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	int r;

	(void)i;
	if (fd < 0)
		return -errno;
	r = sys_mount_attr(
		fd, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (op->exec ? 0 : MOUNT_ATTR_NOEXEC),
		MOUNT_ATTR_RDONLY | (op->exec ? MOUNT_ATTR_NOEXEC : 0));
	return r < 0 ? r : attach(s, fd, op, true);
}

/* The host's node, after a look that it is what its name says. */
static int device_bind(struct setup *s, const struct root_op *op)
{
	auto_close int fd = open_tree(AT_FDCWD, op->source,
				      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISCHR(st.st_mode) || major(st.st_rdev) != op->dev_major ||
	    minor(st.st_rdev) != op->dev_minor)
		return -ENODEV;
	r = sys_mount_attr(fd, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, MOUNT_ATTR_RDONLY);
	return r < 0 ? r : attach(s, fd, op, false);
}

static int do_device(struct setup *s, const struct root_op *op, size_t i)
{
	(void)i;
	if (mknodat(s->root, op->target + 1, S_IFCHR | 0666,
		    makedev(op->dev_major, op->dev_minor)) == 0)
		return 0;
	return errno == EPERM ? device_bind(s, op) : -errno;
}

/* Device nodes work in this mount of the directory only: all file systems around it are nodev. */
static int do_dev(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = open_tree(s->root, op->target + 1,
				      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int r;

	(void)i;
	if (fd < 0)
		return -errno;
	r = sys_mount_attr(fd, 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
			   MOUNT_ATTR_NODEV);
	if (r < 0)
		return r;
	if (move_mount(fd, "", s->root, op->target + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int do_proc(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd =
		make_fs("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	(void)i;
	if (fd < 0)
		return take_fd(fd);
	return attach(s, fd, op, true);
}

/* An object of /proc itself: reached without links and without leaving that mount. What is there
 * could only be something else if the mount were not ours, and then nothing is masked (the lesson of
 * CVE-2025-31133 and its sisters). */
static int proc_open(struct setup *s, const char *name)
{
	struct statfs fs;
	int fd;

	if (s->proc < 0) {
		s->proc = sys_openat2(s->root, "proc", O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
		if (s->proc < 0)
			return -errno;
		if (fstatfs(s->proc, &fs) < 0)
			return -errno;
		if (fs.f_type != PROC_SUPER_MAGIC)
			return -ENOTDIR;
	}
	fd = sys_openat2(s->proc, name, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	return fd < 0 ? -errno : fd;
}

/* Hangs `fd` over an object of /proc that proc_open found. */
static int cover(int fd, int target)
{
	return move_mount(fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

/* An empty file and an empty directory without any permission, in no directory. */
static int masks_make(struct setup *s)
{
	if (mknodat(s->root, ".mask", S_IFREG, 0) < 0 || mkdirat(s->root, ".maskd", 0) < 0)
		return -errno;
	s->mask_file = sys_openat2(s->root, ".mask", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	s->mask_dir = sys_openat2(s->root, ".maskd", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	return s->mask_file < 0 || s->mask_dir < 0 ? -errno : 0;
}

/* The mask has no permissions and belongs to the host's root, so no mount flag is needed on it. */
static int do_proc_mask(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int target = proc_open(s, op->source);
	auto_close int fd = -1;
	struct stat st;

	(void)i;
	if (target == -ENOENT)
		return 0;
	if (target < 0)
		return take_fd(target);
	if (fstat(target, &st) < 0)
		return -errno;
	fd = open_tree(S_ISDIR(st.st_mode) ? s->mask_dir : s->mask_file, "",
		       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	return fd < 0 ? -errno : cover(fd, target);
}

static int do_proc_ro(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int target = proc_open(s, op->source);
	auto_close int fd = -1;
	int r;

	(void)i;
	if (target == -ENOENT)
		return 0;
	if (target < 0)
		return take_fd(target);
	fd = open_tree(target, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (fd < 0)
		return -errno;
	r = sys_mount_attr(fd, 0, MOUNT_ATTR_RDONLY, 0);
	return r < 0 ? r : cover(fd, target);
}

static int do_devpts(struct setup *s, const struct root_op *op, size_t i)
{
	static const char *const opts[][2] = { { "mode", "0600" },
					       { "ptmxmode", "0666" },
					       { "max", PTYS_MAX } };
	auto_close int fd =
		make_fs("devpts", opts, ARRAY_SIZE(opts), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	(void)i;
	if (fd < 0)
		return take_fd(fd);
	return attach(s, fd, op, true);
}

static int (*const apply[ROOT_KIND_COUNT])(struct setup *, const struct root_op *, size_t) = {
	[ROOT_DIR] = do_dir,
	[ROOT_LINK] = do_link,
	[ROOT_FILE] = do_file,
	[ROOT_COPY] = do_copy,
	[ROOT_BIND] = do_bind,
	[ROOT_TMPFS] = do_tmpfs,
	[ROOT_SCRATCH] = do_scratch,
	[ROOT_DEV] = do_dev,
	[ROOT_DEVICE] = do_device,
	[ROOT_PROC] = do_proc,
	[ROOT_PROC_MASK] = do_proc_mask,
	[ROOT_PROC_RO] = do_proc_ro,
	[ROOT_DEVPTS] = do_devpts,
};

/* The new root is mounted over the old one of this namespace only. */
static int root_make(struct setup *s)
{
	setup_at(s, "/");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	s->proc_sys = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->proc_sys < 0)
		return -errno;
	s->root = make_tmpfs(s->plan->limits.tmp_bytes + ROOT_BYTES,
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->root < 0)
		return s->root;
	if (move_mount(s->root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return masks_make(s);
}

int setup_root(struct setup *s)
{
	const struct sandbox_plan *p = s->plan;
	mode_t old = umask(0);
	int r;

	r = root_make(s);
	for (size_t i = 0; r == 0 && i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];

		setup_at(s, op->source && op->kind == ROOT_BIND ? op->source : op->target);
		r = apply[op->kind](s, op, i);
	}
	umask(old);
	return r;
}

int setup_pivot(struct setup *s)
{
	int r;

	setup_at(s, "/");
	unlinkat(s->root, ".mask", 0);
	unlinkat(s->root, ".maskd", AT_REMOVEDIR);
	r = sys_mount_attr(s->root, 0, MOUNT_ATTR_RDONLY, 0);
	if (r < 0)
		return r;
	if (fchdir(s->root) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return -errno;
	return 0;
}
