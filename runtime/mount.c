// SPDX-License-Identifier: Apache-2.0
/* Applying the root part of a plan with the descriptor-based mount calls: no path of the host is
 * walked twice, and no target is found through a link. */
#include "runtime/mount.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

#define ROOT_BYTES (1u << 20) /* what we put there ourselves */
#define PTYS_MAX   "64"

/* What is in both layers is as the upper one says: a directory of the image stays the payload's. */
static bool is_payloads(const struct setup *s)
{
	return s->image && plan_root_is_payloads(s->plan);
}

static int do_dir(struct setup *s, const struct root_op *op, size_t i)
{
	int r = mount_point(s, op->target, true, op->mode);

	(void)i;
	if (r == 0 && is_payloads(s) &&
	    fchownat(mount_base(s, op->target), op->target + 1, s->host_id, s->host_id,
		     AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return r;
}

static int do_link(struct setup *s, const struct root_op *op, size_t i)
{
	int base = mount_base(s, op->target), r;

	(void)i;
	if (symlinkat(op->source, base, op->target + 1) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	r = mount_parent(s, op->target);
	if (r < 0)
		return r;
	return symlinkat(op->source, base, op->target + 1) < 0 ? -errno : 0;
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
	if ((size_t)w != n)
		return -ENOSPC;
	return is_payloads(s) && fchown(fd, s->host_id, s->host_id) < 0 ? -errno : 0;
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
		int r = mount_parent(s, op->target);

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

/* Overlay, network and old file systems. Without a map the files' owner is nobody inside, and making
 * them the payload's by chown would be the host's problem afterwards. */
static void no_id_map(struct setup *s, const struct root_op *op)
{
	snprintf(s->at, sizeof(s->at),
		 "%.120s (writable, but its file system has no id-mapped mounts)", op->source);
}

static int do_bind(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = bind_clone(op, s->ids[i]);

	if (fd == -ENOENT && op->optional)
		return 0;
	if (fd == -EINVAL && s->ids[i] >= 0) {
		no_id_map(s, op);
		return -EOPNOTSUPP;
	}
	if (fd < 0)
		return take_fd(fd);
	setup_at(s, op->target);
	return mount_attach(s, fd, op, op->is_dir);
}

static int do_tmpfs(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd =
		s->made_workspace >= 0 && !strcmp(op->target, "/workspace")
			? fcntl(s->made_workspace, F_DUPFD_CLOEXEC, 3)
			: mount_tmpfs(op->size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
							(op->exec ? 0 : MOUNT_ATTR_NOEXEC));

	(void)i;
	if (fd < 0)
		return take_fd(fd);
	if (fchownat(fd, "", s->host_id, s->host_id, AT_EMPTY_PATH) < 0)
		return -errno;
	mount_is_ours(s, fd);
	return mount_attach(s, fd, op, true);
}

/* What lasts as long as the sandbox lies in one file system: a superblock costs more than all these
 * mounts together. It hangs where /proc will cover it, since parts of a detached one can be cloned only
 * from Linux 6.15 on. The masks of /proc are files of it, too. */
int mount_scratch(struct setup *s, const struct root_op *at)
{
	int r;

	setup_at(s, "scratch");
	s->scratch = s->made_scratch >= 0 ? s->made_scratch
					  : mount_tmpfs(s->plan->limits.tmp_bytes,
							MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->scratch < 0)
		return s->scratch;
	mount_is_ours(s, s->scratch);
	r = mount_attach(s, s->scratch, at, true);
	if (r < 0)
		return r;
	if (mknodat(s->scratch, "mask", S_IFREG, 0) < 0 || mkdirat(s->scratch, "maskd", 0) < 0)
		return -errno;
	s->mask_file = sys_openat2(s->scratch, "mask", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	s->mask_dir = sys_openat2(s->scratch, "maskd", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
	return s->mask_file < 0 || s->mask_dir < 0 ? -errno : 0;
}

static int do_scratch(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = -1;
	int r;

	(void)i;
	if (mkdirat(s->scratch, op->source, op->mode) < 0 &&
	    (errno != EEXIST || s->made_scratch < 0)) /* it is filled */
		return -errno;
	fd = open_tree(s->scratch, op->source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = op->exec ? 0 : sys_mount_attr(fd, 0, MOUNT_ATTR_NOEXEC, 0);
	return r < 0 ? r : mount_attach(s, fd, op, true);
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
	return r < 0 ? r : mount_attach(s, fd, op, false);
}

static int do_device(struct setup *s, const struct root_op *op, size_t i)
{
	(void)i;
	if (mknodat(mount_base(s, op->target), op->target + 1, S_IFCHR | 0666,
		    makedev(op->dev_major, op->dev_minor)) == 0)
		return 0;
	return errno == EPERM ? device_bind(s, op) : -errno;
}

/* Device nodes work in this mount of the directory only: all file systems around it are nodev. */
static int do_dev(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int fd = open_tree(s->dev >= 0 ? s->dev : s->root, op->target + 1,
				      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int r;

	(void)i;
	s->dev = -1;
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

static int do_devpts(struct setup *s, const struct root_op *op, size_t i)
{
	static const char *const opts[][2] = { { "mode", "0600" },
					       { "ptmxmode", "0666" },
					       { "max", PTYS_MAX } };
	auto_close int fd =
		mount_fs("devpts", opts, ARRAY_SIZE(opts), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

	(void)i;
	if (fd < 0)
		return take_fd(fd);
	return mount_attach(s, fd, op, true);
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
	[ROOT_PROC] = mount_proc,
	[ROOT_PROC_MASK] = mount_proc_mask,
	[ROOT_PROC_RO] = mount_proc_ro,
	[ROOT_DEVPTS] = do_devpts,
	[ROOT_SECRETS] = setup_secrets,
};

int mount_op(struct setup *s, const struct root_op *op, size_t i)
{
	setup_at(s, op->source && op->kind == ROOT_BIND ? op->source : op->target);
	return apply[op->kind](s, op, i);
}

bool root_op_is_shared(const struct root_op *op)
{
	switch (op->kind) {
	case ROOT_DIR:
	case ROOT_LINK:
	case ROOT_FILE:
	case ROOT_COPY:
	case ROOT_DEVICE:
	case ROOT_DEV:
		return true;
	case ROOT_BIND:
		return !op->foreign;
	default:
		return false;
	}
}

/* The new root is mounted over the old one of this namespace only. */
int mount_root(struct setup *s)
{
	setup_at(s, "/");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	s->root = mount_tmpfs(ROOT_BYTES, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->root < 0)
		return s->root;
	mount_is_ours(s, s->root);
	if (move_mount(s->root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* Under an image the first pass is what goes into its upper layer, the second what is mounted on both. */
bool mount_is_first(const struct setup *s, const struct root_op *op)
{
	return root_op_is_shared(op) &&
	       !(s->image && (op->kind == ROOT_DEV || op->kind == ROOT_BIND));
}

static int apply_ops(struct setup *s, bool first)
{
	const struct sandbox_plan *p = s->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];

		if (op->kind == ROOT_IMAGE || mount_is_first(s, op) != first)
			continue;
		r = mount_op(s, op, i);
	}
	return r;
}

int setup_root(struct setup *s)
{
	static const struct root_op under_proc = { .target = "/proc" };
	mode_t old = umask(0);
	int r;

	s->image = s->plan->root_n && s->plan->root[0].kind == ROOT_IMAGE;
	if (s->templated) {
		setup_at(s, "/");
		s->root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = s->root < 0 ? -errno : 0;
	} else {
		r = mount_root(s);
		if (r == 0 && s->image)
			r = mount_image_below(s);
		if (r == 0)
			r = apply_ops(s, true);
	}
	if (r == 0)
		r = s->image ? mount_image_join(s) : mount_scratch(s, &under_proc);
	if (r == 0)
		r = apply_ops(s, false);
	umask(old);
	return r;
}

int setup_pivot(struct setup *s)
{
	int r;

	setup_at(s, "/");
	if (s->templated) /* read-only, and the only root there is */
		return fchdir(s->root) < 0 ? -errno : 0;
	r = s->image && s->plan->root[0].writable
		    ? 0
		    : sys_mount_attr(s->root, 0, MOUNT_ATTR_RDONLY, 0);
	if (r < 0)
		return r;
	if (fchdir(s->root) < 0 || sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    /* Above the old root lay what is below the overlay: first that went. */
	    (s->image && umount2(".", MNT_DETACH) < 0) || chdir("/") < 0)
		return -errno;
	return 0;
}

int root_template(struct setup *s)
{
	mode_t old = umask(0);
	int r;

	r = mount_root(s);
	if (r == 0)
		r = apply_ops(s, true);
	if (r == 0)
		r = setup_pivot(s);
	umask(old);
	return r;
}
