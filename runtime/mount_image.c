// SPDX-License-Identifier: Apache-2.0
/* The root as an overlay. Below it, out of the payload's sight: one tmpfs with the image's mount and the sandbox's scratch
 * file system, in which the upper layer lies, so that its size is limited with that. */
#include "runtime/mount.h"

#include <errno.h>
#include <sys/stat.h>

#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

#define LOWER	"image"
#define SCRATCH "scratch"
#define UPPER	"upper"
#define WORK	"work"

/* The image's files as the payload's. Mounts that lie in a directory of the operator's stay out. */
static int attach_lower(struct setup *s, const struct root_op *op)
{
	auto_close int src =
		sys_openat2(AT_FDCWD, op->source, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV };
	auto_close int fd = -1;

	setup_at(s, op->source);
	if (src < 0)
		return -errno;
	fd = open_tree(src, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (fd < 0)
		return -errno;
	if (s->ids[0] >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)s->ids[0];
	}
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ||
	    mkdirat(s->root, LOWER, 0700) < 0 ||
	    move_mount(fd, "", s->root, LOWER, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int mount_image_below(struct setup *s)
{
	const struct root_op *op = &s->plan->root[0];
	const struct root_op scratch = { .target = "/" SCRATCH };
	int r = attach_lower(s, op);

	if (r < 0)
		return r;
	r = mount_scratch(s, &scratch);
	if (r < 0)
		return r;
	setup_at(s, "/");
	s->stage = s->root;
	if (mkdirat(s->scratch, UPPER, 0755) < 0 || mkdirat(s->scratch, WORK, 0700) < 0 ||
	    mkdirat(s->scratch, "dev", 0755) < 0)
		return -errno;
	if (plan_root_is_payloads(s->plan) &&
	    fchownat(s->scratch, UPPER, s->host_id, s->host_id, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* What the plan puts into the root is put here. */
	s->root = sys_openat2(s->scratch, UPPER, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	s->dev = s->scratch;
	return s->root < 0 ? -errno : 0;
}

int mount_image_join(struct setup *s)
{
	static const char *const opts[][2] = {
		{ "lowerdir", LOWER },
		{ "upperdir", SCRATCH "/" UPPER },
		{ "workdir", SCRATCH "/" WORK },
		/* The host's defaults do not matter here: each of these trusts what lies in a layer. */
		{ "redirect_dir", "off" },
		{ "metacopy", "off" },
		{ "index", "off" },
	};
	int fd;

	setup_at(s, "overlay");
	if (fchdir(s->stage) < 0)
		return -errno;
	fd = mount_fs("overlay", opts, ARRAY_SIZE(opts), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return fd;
	close(s->root);
	s->root = fd;
	mount_is_ours(s, fd);
	return move_mount(fd, "", s->stage, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) <
			       0
		       ? -errno
		       : 0;
}
