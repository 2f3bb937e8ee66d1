// SPDX-License-Identifier: Apache-2.0
/* Rows for `warder doctor`: what a sandbox needs here, asked from the kernel. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/gvisor/gvisor.h"
#include "runtime/host.h"
#include "runtime/init/frame.h"
#include "runtime/sandbox.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"

static const char *const where_text[] = {
	[CONTROLLER_ABSENT] = "absent: the limit falls back to rlimits or is not enforced",
	[CONTROLLER_V2] = "in the v2 hierarchy",
	[CONTROLLER_V1] = "on cgroup v1: directories of our own under our own path",
};

static struct sandbox_feature *row(struct sandbox_feature *rows, size_t max, size_t *n,
				   const char *name, const char *what, bool required, bool ok)
{
	static struct sandbox_feature spare;
	struct sandbox_feature *f = *n < max ? &rows[(*n)++] : &spare;

	*f = (struct sandbox_feature){ .name = name, .what = what, .required = required, .ok = ok };
	return f;
}

#define DETAIL(f, ...) snprintf((f)->detail, sizeof((f)->detail), __VA_ARGS__)

/* Does the kernel know this system call? Called so that it must fail. */
static bool knows(long nr)
{
	return syscall(nr, -1L, 0L, 0L, 0L, 0L, 0L) >= 0 || errno != ENOSYS;
}

static bool namespaces_work(char *detail, size_t max)
{
	struct clone_args args = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
			 CLONE_NEWCGROUP,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = sys_clone3(&args);

	if (pid == 0)
		_exit(0);
	if (pid < 0) {
		snprintf(detail, max, "clone3: %s", strerror(errno));
		return false;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	snprintf(detail, max, "mount, pid, ipc, uts, net and cgroup namespaces");
	return true;
}

/* Tried, in a child that keeps the filter: under a listener of somebody else's there is none for us. */
static bool listener_works(char *detail, size_t max)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };
	int status = 0, e;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_LISTENER_FLAGS, &prog) <
				      0
			      ? errno
			      : 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	e = pid < 0 ? errno : WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	if (!e)
		snprintf(detail, max, "user notification: calls that no hook looks at are told");
	else
		snprintf(detail, max, "%s: those calls are refused, and nobody is told",
			 e == EBUSY    ? "we are under a listener of somebody else's"
			 : e == EINVAL ? "kernel before 5.19"
				       : strerror(e));
	return !e;
}

static void cgroup_rows(const struct host *h, struct sandbox_feature *rows, size_t max, size_t *n)
{
	static const char *const names[] = { "limit.memory", "limit.pids", "limit.cpu" };
	struct sandbox_feature *f;

	f = row(rows, max, n, "cgroup2", "identity, kill and freeze of a sandbox", true,
		h->v2[0] != 0);
	DETAIL(f, "%.100s",
	       h->v2[0] ? h->v2 : "not mounted: mount -t cgroup2 none /sys/fs/cgroup/unified");
	f = row(rows, max, n, "cgroup2.write", "making the sandbox's own cgroup", true,
		h->v2[0] && access(h->v2, W_OK) == 0);
	DETAIL(f, "%s", f->ok ? "writable" : "not writable: mounted read-only, or not root");
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		f = row(rows, max, n, names[i], "limit for the whole sandbox", false,
			h->controller[i] != CONTROLLER_ABSENT);
		DETAIL(f, "%s", where_text[h->controller[i]]);
	}
}

size_t sandbox_features(struct sandbox_feature *rows, size_t max)
{
	struct sandbox_feature *f;
	struct host h;
	size_t n = 0;
	bool ok;

	host_probe(&h);
	f = row(rows, max, &n, "root", "sandboxes are made by root", true, geteuid() == 0);
	DETAIL(f, "%s", f->ok ? "yes" : "run as root");
	cgroup_rows(&h, rows, max, &n);
	f = row(rows, max, &n, "namespaces", "the walls of the sandbox", true, false);
	f->ok = namespaces_work(f->detail, sizeof(f->detail));
	ok = knows(SYS_mount_setattr) && knows(SYS_open_tree) && knows(SYS_move_mount) &&
	     knows(SYS_openat2);
	f = row(rows, max, &n, "mount-api", "building the root by descriptor", true, ok);
	DETAIL(f, "%s",
	       ok ? "open_tree, move_mount, mount_setattr, openat2" : "kernel before 5.12");
	f = row(rows, max, &n, "userns", "the payload's user namespace", false, h.userns);
	DETAIL(f, "%s",
	       h.userns
		       ? "one id, nothing owned"
		       : "switched off (user.max_user_namespaces): a private host id alone is used");
	f = row(rows, max, &n, "seccomp", "system call filter", true, h.seccomp);
	DETAIL(f, "%s", h.seccomp ? "filters" : "CONFIG_SECCOMP_FILTER is missing");
	f = row(rows, max, &n, "seccomp.notify", "attempts that no probe sees", false, false);
	f->ok = listener_works(f->detail, sizeof(f->detail));
	f = row(rows, max, &n, "landlock", "second wall for files", false, h.landlock_abi > 0);
	if (h.landlock_abi > 0)
		DETAIL(f, "ABI %d", h.landlock_abi);
	else
		DETAIL(f, "not in the active LSM list (boot with lsm=landlock,...)");
	return n + gvisor_features(rows + n, max - n);
}
