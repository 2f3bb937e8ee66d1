// SPDX-License-Identifier: Apache-2.0
/* A root that is the operator's: an imported image, or a directory. It is the lower layer of an overlay whose upper one is
 * the sandbox's own, and hostile: every place where something of ours goes is made in the upper layer before the two are
 * joined, so that no link of the image is ever on the way to it. */
#include "runtime/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

/* A user that the image does not have. */
static const struct {
	const char *path;
	const char *text;
} if_absent[] = {
	{ "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
			 "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
			 "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n" },
	{ "/etc/group", "root:x:0:\ntty:x:5:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
};

static int full(struct err *err)
{
	return err_set(err, ENOSPC, "plan: more than %d steps to build the root", PLAN_ROOT_MAX);
}

/* Can files on this file system be shown as another user's? Asked once for each: it costs a process. */
static bool can_map(int dir, const struct stat *st)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static dev_t known;
	static int answer; /* 0 = not asked */
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
	auto_close int tree = -1, ns = -1;
	int fd = -1, r = 1;

	pthread_mutex_lock(&lock);
	if (!answer || known != st->st_dev) {
		tree = open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
		/* Who may not ask, makes a plan only to look at it. */
		if (tree >= 0 && userns_for_mount(1, 1, PLAN_HOST_IDS, 0, &fd) == 0) {
			ns = fd;
			attr.userns_fd = (uint64_t)ns;
			if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
				r = errno == EPERM ? 1 : -1;
		}
		known = st->st_dev;
		answer = r;
	}
	r = answer;
	pthread_mutex_unlock(&lock);
	return r > 0;
}

static bool is_in(int root, const char *path)
{
	auto_close int fd = sys_openat2(root, path + 1, O_PATH | O_NOFOLLOW,
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return fd >= 0;
}

static int add_lower(struct sandbox_plan *p, const struct sandbox_spec *spec, int *ret_dir,
		     struct err *err)
{
	const char *what = spec->image ? "image" : "root";
	auto_close int dir = -1;
	char real[PATH_MAX];
	struct root_op *op;
	const char *kept;
	struct stat st;
	int r;

	if (!realpath(spec->root, real))
		return err_set(err, errno, "%s '%s': %m", what, spec->root);
	r = plan_check_source(p, spec->root, real, &st, err);
	if (r < 0)
		return err_wrap(err, r, "%s", what);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%s '%s': %m", what, spec->root);
	kept = arena_strndup(&p->mem, real, strlen(real)).p;
	op = kept ? plan_root_add(p, ROOT_IMAGE, "/", kept) : NULL;
	if (!op)
		return full(err);
	op->is_dir = op->exec = op->writable = op->foreign = true;
	dir = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_set(err, errno, "%s '%s': %m", what, spec->root);
	if (spec->image) {
		p->image = arena_strndup(&p->mem, spec->image, strlen(spec->image)).p;
		if (!p->image)
			return err_set(err, ENOMEM, "image: %m");
		op->owner = op->group = st.st_uid;
		op->ids = can_map(dir, &st);
		if (!op->ids)
			plan_degrade(p, "root.ids");
	}
	if (p->container) {
		/* Its root is whoever is root in it; the others stay who they are. */
		op->writable = !p->container->readonly;
		op->owner = p->uid;
		op->group = p->gid;
		op->ids = p->userns && can_map(dir, &st);
		if (!op->ids)
			plan_degrade(p, "root.ids");
	}
	*ret_dir = take_fd(dir);
	return 0;
}

bool plan_root_is_payloads(const struct sandbox_plan *p)
{
	const struct root_op *op = &p->root[0];

	return op->kind == ROOT_IMAGE && op->ids && (!p->container || !p->uid);
}

static int add_file(struct sandbox_plan *p, const char *path, const char *text, struct err *err)
{
	return plan_root_add(p, ROOT_FILE, path, text) ? 0 : full(err);
}

int plan_image(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	auto_close int dir = -1;
	int r = add_lower(p, spec, &dir, err);

	if (r == 0)
		r = plan_root_points(p, err);
	if (p->container) /* what there is in it is not ours to change */
		return r;
	if (r == 0 && !plan_root_add(p, ROOT_DIR, "/etc", NULL))
		r = full(err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(if_absent); i++)
		if (!is_in(dir, if_absent[i].path))
			r = add_file(p, if_absent[i].path, if_absent[i].text, err);
	/* A bind goes over a file of ours, wherever the image's own may lead. */
	if (r == 0 && p->net == SANDBOX_NET_HOST)
		r = add_file(p, "/etc/resolv.conf", "", err);
	return r < 0 ? r : plan_root_names(p, err);
}
