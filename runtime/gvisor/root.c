// SPDX-License-Identifier: Apache-2.0
/* In the set-up task: the plan's root as a tree in a small root, in which the keeper, runsc, the gofer and the sentry
 * live. It holds nothing of the host but runsc itself: what breaks out of the guest finds the guest's own files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/gvisor/gvisor.h"
#include "runtime/gvisor/keeper/config.h"
#include "runtime/mount.h"
#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

#define STATE_BYTES (8u << 20) /* runsc's state and log */

/* What programs of the small root need of /dev and /proc; the guest's own are the sentry's. */
static const struct root_op own_ops[] = {
	{ .kind = ROOT_DIR,
	  .target = "/tmp",
	  .mode = 0755 }, /* the sentry's own root is hung there */
	{ .kind = ROOT_DIR, .target = "/dev", .mode = 0755 },
	{ .kind = ROOT_DIR, .target = "/dev/pts", .mode = 0755 },
	{ .kind = ROOT_DEVICE,
	  .target = "/dev/null",
	  .source = "/dev/null",
	  .dev_major = 1,
	  .dev_minor = 3 },
	{ .kind = ROOT_DEVICE,
	  .target = "/dev/urandom",
	  .source = "/dev/urandom",
	  .dev_major = 1,
	  .dev_minor = 9 },
	{ .kind = ROOT_LINK, .target = "/dev/ptmx", .source = "pts/ptmx" },
	{ .kind = ROOT_DEV, .target = "/dev" },
	{ .kind = ROOT_DEVPTS, .target = "/dev/pts" },
	{ .kind = ROOT_PROC, .target = "/proc" },
};

static int make_own(struct setup *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(own_ops); i++)
		r = mount_op(s, &own_ops[i], 0);
	return r;
}

static int bind_file(struct setup *s, const char *source, const char *target, uint64_t attrs)
{
	const struct root_op op = { .target = target };
	auto_close int fd = -1;
	int r;

	setup_at(s, source);
	fd = open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = sys_mount_attr(fd, 0, attrs, 0);
	return r < 0 ? r : mount_attach(s, fd, &op, false);
}

static int put_file(struct setup *s, const char *path, const struct buf *b)
{
	auto_close int fd = openat(s->root, path + 1,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	size_t at = 0;

	setup_at(s, path);
	if (fd < 0)
		return -errno;
	while (at < b->n) {
		ssize_t n = write(fd, b->p + at, b->n - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int make_bundle(struct setup *s)
{
	const struct gvisor_setup *g = s->gvisor;
	int r;

	setup_at(s, GVISOR_BUNDLE);
	r = mount_point(s, GVISOR_BUNDLE, true, 0755);
	if (r == 0)
		r = put_file(s, GVISOR_BUNDLE "/config.json", &g->config);
	if (r == 0 && g->pod_init.n)
		r = put_file(s, GVISOR_BUNDLE "/pod-init.json", &g->pod_init);
	if (r == 0)
		r = bind_file(s, g->runsc, GVISOR_RUNSC,
			      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (r == 0 && g->sink)
		r = bind_file(s, g->sink, SANDBOX_GUEST_SINK,
			      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return r;
}

static int make_state(struct setup *s)
{
	static const struct root_op op = { .target = GVISOR_STATE };
	auto_close int fd =
		mount_tmpfs(STATE_BYTES, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	setup_at(s, GVISOR_STATE);
	if (fd < 0)
		return take_fd(fd);
	if (fchownat(fd, "", s->gvisor->root_id, s->gvisor->root_id, AT_EMPTY_PATH) < 0 ||
	    fchmodat(fd, ".", 0700, 0) < 0)
		return -errno;
	return mount_attach(s, fd, &op, true);
}

/* Devices and /proc are the sentry's. */
static bool is_of_tree(const struct root_op *op)
{
	switch (op->kind) {
	case ROOT_DEV:
	case ROOT_DEVICE:
	case ROOT_DEVPTS:
	case ROOT_PROC:
	case ROOT_PROC_MASK:
	case ROOT_PROC_RO:
	case ROOT_IMAGE:
		return false;
	case ROOT_LINK:
		return strncmp(op->target, "/dev/", 5) != 0;
	default:
		return true;
	}
}

static int apply(struct setup *s, bool first, bool both)
{
	const struct sandbox_plan *p = s->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->root_n; i++)
		if (is_of_tree(&p->root[i]) && (both || mount_is_first(s, &p->root[i]) == first))
			r = mount_op(s, &p->root[i], i);
	return r;
}

/* The image's own files below, as in a sandbox of the other backend. */
static int fill_image(struct setup *s)
{
	int r = mount_image_below(s);

	s->dev = -1; /* the guest's devices are the sentry's */
	if (r == 0)
		r = apply(s, true, false);
	if (r == 0)
		r = mount_image_join(s);
	return r < 0 ? r : apply(s, false, false);
}

static int fill(struct setup *s)
{
	static const struct root_op under_proc = { .target = "/proc" };
	int r = mount_scratch(s, &under_proc);

	if (r == 0)
		r = apply(s, true, true);
	return r < 0 ? r : sys_mount_attr(s->root, 0, MOUNT_ATTR_RDONLY, 0);
}

static int make_tree(struct setup *s)
{
	static const struct root_op op = { .target = GVISOR_TREE };
	int outer = s->root, tree, r;

	setup_at(s, GVISOR_TREE);
	s->root = mount_tmpfs(1u << 20, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->root < 0)
		return s->root;
	mount_is_ours(s, s->root);
	/* Hung up first: nothing can be mounted in what hangs nowhere. */
	tree = s->root;
	s->root = outer;
	r = mount_attach(s, tree, &op, true);
	s->root = tree;
	s->image = s->plan->root_n && s->plan->root[0].kind == ROOT_IMAGE;
	if (r == 0)
		r = s->image ? fill_image(s) : fill(s);
	s->image = false; /* of the keeper's own root there is one layer */
	s->root = outer;
	return r;
}

static int make_root(struct setup *s)
{
	mode_t old = umask(0);
	int r = mount_root(s);

	if (r == 0)
		r = make_own(s);
	if (r == 0)
		r = make_state(s);
	if (r == 0)
		r = make_bundle(s);
	if (r == 0)
		r = make_tree(s);
	umask(old);
	return r;
}

/* Root of the keeper's user namespace, where there is one. */
static int set_ids(struct setup *s)
{
	setup_at(s, "setresgid");
	if (sys_setresgid(0) < 0)
		return -errno;
	setup_at(s, "setresuid");
	return sys_setresuid(0) < 0 ? -errno : 0;
}

/* What runsc gives to the gofer and the sentry, and what it needs to build their walls. */
static bool is_kept(int cap)
{
	static const int kept[] = {
		CAP_CHOWN,     CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
		CAP_FSETID,    CAP_KILL,	 CAP_SETGID,	      CAP_SETUID,
		CAP_SETPCAP,   CAP_SYS_CHROOT,	 CAP_SYS_PTRACE,      CAP_SYS_ADMIN,
		CAP_NET_ADMIN, CAP_NET_RAW,	 CAP_MKNOD,	      CAP_NET_BIND_SERVICE,
		CAP_SETFCAP,   CAP_AUDIT_WRITE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (kept[i] == cap)
			return true;
	return false;
}

static int bound_caps(struct setup *s)
{
	setup_at(s, "PR_CAPBSET_DROP");
	for (int cap = 0; cap < 64; cap++) {
		if (is_kept(cap) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > CAP_SETFCAP)
			break;
		return -errno;
	}
	return 0;
}

/* The sentry keeps a descriptor for each file the guest has open, and the gofer another one. */
static int raise_files(struct setup *s)
{
	const struct rlimit no_core = { 0, 0 };
	struct rlimit files;

	setup_at(s, "RLIMIT_CORE");
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

const struct setup_step gvisor_steps[] = {
	{ "cgroup", setup_v1 },
	{ "root", make_root },
	{ "network", setup_net },
	{ "pivot", setup_pivot },
	{ "keyring", setup_keyring },
	{ "user namespace", setup_userns },
	{ "umask", setup_umask },
	{ "scheduling", setup_scheduling },
	{ "ids", set_ids },
	{ "bounding set", bound_caps },
	{ "no new privileges", setup_no_new_privs },
	{ "descriptors", setup_fds },
	{ "resource limit", raise_files },
	{ "exec of the keeper", setup_exec },
	{ NULL, NULL },
};
