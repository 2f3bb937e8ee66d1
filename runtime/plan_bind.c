// SPDX-License-Identifier: Apache-2.0
/* Host files that the operator hands in. The path is resolved here, once; when it is bound, no link
 * may be on the way any more. */
#include "runtime/plan.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "userspace/base/auto.h"

/* Places whose files are sockets, devices and switches of the host. */
static const char *const never[] = { "/proc", "/sys", "/dev", "/run", "/boot" };

static const struct {
	long magic;
	const char *name;
} never_fs[] = {
	{ PROC_SUPER_MAGIC, "proc" },	  { SYSFS_MAGIC, "sysfs" },
	{ CGROUP_SUPER_MAGIC, "cgroup" }, { CGROUP2_SUPER_MAGIC, "cgroup2" },
	{ DEBUGFS_MAGIC, "debugfs" },	  { TRACEFS_MAGIC, "tracefs" },
	{ BPF_FS_MAGIC, "bpf" },	  { SECURITYFS_MAGIC, "securityfs" },
	{ DEVPTS_SUPER_MAGIC, "devpts" }, { EFIVARFS_MAGIC, "efivarfs" },
};

/* Targets that are ours alone: the payload's view of itself depends on them. */
static const char *const targets_ours[] = { "/proc", "/dev", "/sys" };

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

/* A container tool keeps what it makes for a container below /run; one plain file of it is no way to others. */
static bool may_be_shared(const struct sandbox_plan *p, const char *real)
{
	struct stat st;

	return p && p->container && is_below(real, "/run") && lstat(real, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

int plan_check_source(const struct sandbox_plan *p, const char *asked, const char *real,
		      struct stat *st, struct err *err)
{
	struct statfs fs;

	if (!strcmp(real, "/"))
		return err_set(err, EPERM, "bind '%s': the whole host is not shared", asked);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (is_below(real, never[i]) && !may_be_shared(p, real))
			return err_set(err, EPERM,
				       "bind '%s': nothing below %s is shared, it holds devices, "
				       "sockets or switches of the host",
				       asked, never[i]);
	if (stat(real, st) < 0 || statfs(real, &fs) < 0)
		return err_set(err, errno, "bind '%s': %m", asked);
	for (size_t i = 0; i < ARRAY_SIZE(never_fs); i++)
		if ((long)fs.f_type == never_fs[i].magic)
			return err_set(err, EPERM, "bind '%s': a %s file system is not shared",
				       asked, never_fs[i].name);
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode))
		return err_set(err, EPERM,
			       "bind '%s': neither file nor directory (sockets, devices and fifos "
			       "would reach out of the sandbox)",
			       asked);
	return 0;
}

/* `what` is mounted at `target`. */
static int check_target(const struct sandbox_plan *p, const char *what, const char *target,
			struct err *err)
{
	if (!plan_path_is_clean(target))
		return err_set(err, EINVAL, "%s '%s': expected an absolute path without . and ..",
			       what, target);
	for (size_t i = 0; i < ARRAY_SIZE(targets_ours); i++)
		if (is_below(target, targets_ours[i]))
			return err_set(err, EPERM, "%s '%s': %s cannot be changed", what, target,
				       targets_ours[i]);
	if (p->secrets_n && (is_below(target, SECRET_DIR) || is_below(SECRET_DIR, target)))
		return err_set(err, EPERM, "%s '%s': the secrets are there", what, target);
	return 0;
}

int plan_bind(struct sandbox_plan *p, const char *source, const char *target, bool writable,
	      struct err *err)
{
	char real[PATH_MAX];
	const char *kept, *inside;
	struct root_op *op;
	struct stat st;
	int r = check_target(p, "bind target", target, err);

	if (r < 0)
		return r;
	if (!realpath(source, real))
		return err_set(err, errno, "bind '%s': %m", source);
	r = plan_check_source(p, source, real, &st, err);
	if (r < 0)
		return r;
	kept = arena_strndup(&p->mem, real, strlen(real)).p;
	inside = arena_strndup(&p->mem, target, strlen(target)).p;
	op = kept && inside ? plan_root_add(p, ROOT_BIND, inside, kept) : NULL;
	if (!op)
		return err_set(err, ENOSPC, "bind '%s': no room left in the plan", source);
	op->is_dir = S_ISDIR(st.st_mode);
	op->exec = op->foreign = true;
	op->writable = writable;
	op->owner = st.st_uid;
	op->group = st.st_gid;
	if (writable) {
		op->ids = p->userns || st.st_uid != p->uid;
		p->deny_suid = true;
	}
	return 0;
}

static int by_depth(const void *a, const void *b)
{
	const struct root_op *x = a, *y = b;
	size_t nx = strlen(x->target), ny = strlen(y->target);

	return nx < ny ? -1 : nx > ny;
}

static int add_tmpfs(struct sandbox_plan *p, struct err *err)
{
	const struct sandbox_container *c = p->container;

	for (size_t i = 0; c && i < c->tmpfs_n; i++) {
		const char *target = c->tmpfs[i].target;
		int r = check_target(p, "tmpfs", target, err);
		struct root_op *op;

		if (r < 0)
			return r;
		op = plan_root_add(p, ROOT_TMPFS, target, NULL);
		if (!op)
			return err_set(err, ENOSPC, "tmpfs '%s': no room left in the plan", target);
		op->size = c->tmpfs[i].size ? c->tmpfs[i].size : p->limits.tmp_bytes;
		op->exec = c->tmpfs[i].exec;
		op->writable = !c->tmpfs[i].readonly;
		op->foreign = true;
	}
	return 0;
}

static bool may_exec(const struct sandbox_plan *p, const char *target)
{
	for (size_t i = 0; p->container && target && i < p->container->noexec_n; i++)
		if (!strcmp(p->container->noexec[i], target))
			return false;
	return true;
}

int plan_binds(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	size_t first = p->root_n;
	int r = add_tmpfs(p, err);

	if (r < 0)
		return r;

	if (spec->binds_n > SANDBOX_MOUNTS_MAX)
		return err_set(err, E2BIG, "%zu binds, at most %d", spec->binds_n,
			       SANDBOX_MOUNTS_MAX);
	for (size_t i = 0; i < spec->binds_n; i++) {
		const struct sandbox_bind *b = &spec->binds[i];

		r = plan_bind(p, b->source, b->target ? b->target : b->source, b->writable, err);
		if (r < 0)
			return r;
		p->root[p->root_n - 1].exec = may_exec(p, b->target);
	}
	/* A directory before what lies in it, or it would cover that again. */
	qsort(p->root + first, p->root_n - first, sizeof(p->root[0]), by_depth);
	return 0;
}
