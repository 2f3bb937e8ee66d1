// SPDX-License-Identifier: Apache-2.0
/* The payload's user namespace is entered last and owns nothing: the mount, pid, network and other
 * namespaces stay the host's, so that even full capabilities inside would be worth nothing there. */
#include "runtime/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sys.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

static const char *const ns_limits[] = {
	"user/max_user_namespaces",   "user/max_mnt_namespaces",  "user/max_pid_namespaces",
	"user/max_ipc_namespaces",    "user/max_uts_namespaces",  "user/max_net_namespaces",
	"user/max_cgroup_namespaces", "user/max_time_namespaces",
};

static int map_write(int dir, const char *file, uint32_t inner, uint32_t outer)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u 1\n", inner, outer);
	return file_write_at(dir, file, text);
}

int userns_map(pid_t pid, uint32_t uid, uint32_t gid, uint32_t host_id)
{
	char path[32];
	auto_close int dir = -1;
	int r;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	r = file_write_at(dir, "setgroups", "deny");
	if (r == 0)
		r = map_write(dir, "gid_map", gid, host_id);
	return r < 0 ? r : map_write(dir, "uid_map", uid, host_id);
}

int userns_map_ids(pid_t pid, const struct userns_id *ids, size_t n)
{
	char path[32], text[8 * 40];
	auto_close int dir = -1;
	size_t at = 0;
	int r;

	for (size_t i = 0; i < n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%u %u 1\n", ids[i].inner,
				       ids[i].outer);
	if (at >= sizeof(text))
		return -E2BIG;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	r = file_write_at(dir, "gid_map", text); /* who has several may change groups, too */
	return r < 0 ? r : file_write_at(dir, "uid_map", text);
}

int setup_userns(struct setup *s)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = FRAME_USERNS };
	ssize_t n;

	setup_at(s, "setgroups");
	if (sys_setgroups_none() < 0)
		return -errno;
	if (!s->plan->userns)
		return 0;
	setup_at(s, "unshare");
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	setup_at(s, "maps");
	if (send(s->control, &f, sizeof(f), MSG_NOSIGNAL) != (ssize_t)sizeof(f))
		return -errno;
	do {
		n = recv(s->control, &f, sizeof(f), 0);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(f) && f.type == FRAME_MAPPED ? 0 : -EPIPE;
}

/* No namespace of any kind can be made from here on, whatever a filter may let through. */
int setup_ns_limits(struct setup *s)
{
	if (!s->plan->userns)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ns_limits); i++) {
		int r;

		setup_at(s, ns_limits[i]);
		r = file_write_at(s->proc_sys, ns_limits[i], "0");
		if (r < 0 && !(r == -ENOENT && strstr(ns_limits[i], "time")))
			return r;
	}
	return 0;
}

int setup_ids(struct setup *s)
{
	bool own = s->plan->userns;

	setup_at(s, "setresgid");
	if (sys_setresgid(own ? s->plan->gid : s->host_id) < 0)
		return -errno;
	setup_at(s, "setresuid");
	return sys_setresuid(own ? s->plan->uid : s->host_id) < 0 ? -errno : 0;
}

/* All others are who they are. */
static int map_all(int dir, const char *file, uint32_t inner, uint32_t outer)
{
	char text[160];
	size_t n = 0;

	if (inner)
		n = (size_t)snprintf(text, sizeof(text), "0 0 %u\n", inner);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%u %u 1\n", inner, outer);
	if (inner < PLAN_INNER_MAX)
		snprintf(text + n, sizeof(text) - n, "%u %u %u\n", inner + 1, inner + 1,
			 PLAN_INNER_MAX - inner);
	return file_write_at(dir, file, text);
}

static int map_mount(int dir, const char *file, uint32_t inner, uint32_t outer, uint32_t self)
{
	char text[96];

	if (self == USERNS_OTHERS)
		return map_all(dir, file, inner, outer);
	if (!self)
		return map_write(dir, file, inner, outer);
	snprintf(text, sizeof(text), "%u %u 1\n%u %u 1\n", inner, outer, self, self);
	return file_write_at(dir, file, text);
}

int userns_for_mount(uint32_t owner, uint32_t group, uint32_t host_id, uint32_t self, int *ret_fd)
{
	int pidfd = -1, pair[2], fd = -1, r = 0;
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	char path[64];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid = sys_clone3(&args);
	if (pid == 0) {
		char c;

		close(pair[1]);
		(void)!read(pair[0], &c, 1); /* until the launcher is done, or gone */
		_exit(0);
	}
	if (pid < 0) {
		r = -errno;
	} else {
		snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			r = -errno;
	}
	if (r == 0) {
		snprintf(path, sizeof(path), "/proc/%d", (int)pid);
		auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (dir < 0)
			r = -errno;
		if (r == 0)
			r = map_mount(dir, "gid_map", group, host_id, self);
		if (r == 0)
			r = map_mount(dir, "uid_map", owner, host_id, self);
	}
	close(pair[0]);
	close(pair[1]);
	if (pid > 0) {
		while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
			;
		close(pidfd);
	}
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}
