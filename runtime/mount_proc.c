// SPDX-License-Identifier: Apache-2.0
#include "runtime/mount.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

int mount_proc(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd =
		mount_fs("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	struct statfs fs;
	int r;

	(void)i;
	if (fd < 0)
		return take_fd(fd);
	r = mount_attach(s, fd, op, true);
	if (r < 0)
		return r;
	s->proc = sys_openat2(s->root, op->target + 1, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (s->proc < 0 || fstatfs(s->proc, &fs) < 0)
		return -errno;
	if (fs.f_type != PROC_SUPER_MAGIC)
		return -ENOTDIR;
	/* Before a read-only mount covers it: limits of namespaces are set through it. */
	s->proc_sys = sys_openat2(s->proc, "sys", O_PATH | O_DIRECTORY,
				  RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	return s->proc_sys < 0 ? -errno : 0;
}

/* An object of /proc itself: reached without links and without leaving that mount. What is there
 * could only be something else if the mount were not ours, and then nothing is masked (the lesson of
 * CVE-2025-31133 and its sisters). */
static int proc_open(struct setup *s, const char *name)
{
	int fd;

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

/* The mask has no permissions and belongs to the host's root, so no mount flag is needed on it. */
int mount_proc_mask(struct setup *s, const struct root_op *op, size_t i)
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

int mount_proc_ro(struct setup *s, const struct root_op *op, size_t i)
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
