// SPDX-License-Identifier: Apache-2.0
/* The payload's own directories: opened while it lives, or made and filled before it does. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "runtime/mount.h"
#include "runtime/sandbox_priv.h"
#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

static const char *const insides[SANDBOX_DIRS_MAX] = { "/workspace", "/tmp", "/var/tmp" };

void dirs_init(struct sandbox *s)
{
	for (size_t i = 0; i < SANDBOX_DIRS_MAX; i++)
		s->dirs[i] = -1;
	s->made.workspace = s->made.scratch = -1;
}

void dirs_done(struct sandbox *s)
{
	for (size_t i = 0; i < SANDBOX_DIRS_MAX; i++)
		if (s->dirs[i] >= 0)
			close(take_fd(s->dirs[i]));
	if (s->made.workspace >= 0)
		close(take_fd(s->made.workspace));
	if (s->made.scratch >= 0)
		close(take_fd(s->made.scratch));
}

/* Its root is built, and nothing of the payload runs yet. */
void dirs_hold(struct sandbox *s)
{
	auto_close int root = -1;
	char path[64];

	if (s->dirs[0] >= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)s->pid, s->plan->backend->root);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; root >= 0 && i < SANDBOX_DIRS_MAX; i++)
		s->dirs[i] = sys_openat2(root, insides[i] + 1, O_PATH | O_DIRECTORY,
					 RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
}

size_t sandbox_dirs(const struct sandbox *s, struct sandbox_dir ret[SANDBOX_DIRS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < SANDBOX_DIRS_MAX; i++)
		if (s->dirs[i] >= 0)
			ret[n++] = (struct sandbox_dir){ insides[i], s->dirs[i] };
	return n;
}

/* ---- before the start ---- */

static int make_workspace(struct sandbox *s, const struct root_op *op, struct sandbox_dir *ret)
{
	s->made.workspace = mount_tmpfs(op->size, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->made.workspace < 0)
		return s->made.workspace;
	if (fchownat(s->made.workspace, "", s->host_id, s->host_id, AT_EMPTY_PATH) < 0)
		return -errno;
	*ret = (struct sandbox_dir){ op->target, s->made.workspace };
	return 0;
}

/* One directory of the file system that they share. */
static int make_scratch(struct sandbox *s, const struct root_op *op, struct sandbox_dir *ret)
{
	if (s->made.scratch < 0)
		s->made.scratch = mount_tmpfs(s->plan->limits.tmp_bytes,
					      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (s->made.scratch < 0)
		return s->made.scratch;
	if (mkdirat(s->made.scratch, op->source, op->mode) < 0)
		return -errno;
	ret->inside = op->target;
	ret->fd = openat(s->made.scratch, op->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return ret->fd < 0 ? -errno : 0;
}

static int make_dirs(struct sandbox *s, struct sandbox_dir *ret, size_t *ret_n)
{
	mode_t old = umask(0);
	int r = 0;

	for (size_t i = 0; i < s->plan->root_n && r == 0; i++) {
		const struct root_op *op = &s->plan->root[i];

		for (size_t k = 0; k < SANDBOX_DIRS_MAX && r == 0; k++) {
			if (strcmp(op->target, insides[k]) != 0)
				continue;
			if (op->kind == ROOT_TMPFS)
				r = make_workspace(s, op, &ret[*ret_n]);
			else if (op->kind == ROOT_SCRATCH)
				r = make_scratch(s, op, &ret[*ret_n]);
			else
				continue;
			*ret_n += r == 0;
		}
	}
	umask(old);
	return r;
}

/* What it writes is the sandbox's memory. The control group is watched by nobody yet. */
static int join(const struct sandbox *s)
{
	int r = file_write_at(s->cgroup.leaf, "cgroup.procs", "0");

	for (int i = 0; i < CONTROLLER_COUNT && r == 0; i++)
		if (s->cgroup.v1_tasks[i] >= 0 && write(s->cgroup.v1_tasks[i], "0", 1) != 1)
			r = -errno;
	return r;
}

/* As the payload's user, with nothing but these directories. */
static int become(const struct sandbox *s, const struct sandbox_dir *dirs, size_t n, int in)
{
	const struct rlimit no_core = { 0, 0 };
	int keep[SANDBOX_DIRS_MAX + 1], r;

	r = join(s);
	for (size_t i = 0; i < n; i++)
		keep[i] = dirs[i].fd;
	keep[n] = in;
	if (r == 0)
		r = fd_keep_only(keep, n + 1);
	if (r < 0)
		return r;
	umask(0);
	if (setgroups(0, NULL) < 0 || setresgid(s->host_id, s->host_id, s->host_id) < 0 ||
	    setresuid(s->host_id, s->host_id, s->host_id) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return getuid() == s->host_id && setresuid((uid_t)-1, 0, (uid_t)-1) < 0 ? 0 : -EPERM;
}

static int await(pid_t pid, int timeout_ms, struct err *err)
{
	auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int status = 0, r;

	do {
		r = fd < 0 ? 0 : poll(&p, 1, timeout_ms);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (r <= 0)
		return err_set(err, ETIMEDOUT, "filling the sandbox: %m");
	if (WIFSIGNALED(status))
		return err_set(err, ENOMEM,
			       "filling the sandbox: killed by signal %d: its memory "
			       "limit may be too small",
			       WTERMSIG(status));
	return WEXITSTATUS(status) ? -WEXITSTATUS(status) : 0;
}

int sandbox_fill(struct sandbox *s, sandbox_fill_fn fn, void *arg, int in, int timeout_ms,
		 struct err *err)
{
	struct sandbox_dir dirs[SANDBOX_DIRS_MAX];
	size_t n = 0;
	pid_t pid;
	int r;

	if (s->stage != STAGE_CREATED)
		return err_set(err, EBUSY, "filling the sandbox: it runs already");
	r = make_dirs(s, dirs, &n);
	if (r < 0)
		return err_set(err, -r, "filling the sandbox: its file systems: %m");
	pid = fork();
	if (pid == 0) {
		r = become(s, dirs, n, in);
		if (r == 0)
			r = fn(arg, dirs, n);
		_exit(r < 0 ? MIN(-r, 255) : 0);
	}
	r = pid < 0 ? err_set(err, errno, "filling the sandbox: fork: %m")
		    : await(pid, timeout_ms, err);
	for (size_t i = 0; i < n; i++)
		if (dirs[i].fd != s->made.workspace)
			close(dirs[i].fd);
	return r;
}
