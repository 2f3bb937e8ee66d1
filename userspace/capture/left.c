// SPDX-License-Identifier: Apache-2.0
/* Tasks that left their sandbox's cgroup: neither its limits nor cgroup.kill reach them. The kernel side
 * knows each by its membership, which ends with the task only. */
#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "warder.skel.h"

#define PASSES 8 /* what is killed may have forked meanwhile */

/* Kills the process if it is of this sandbox. By descriptor: between look and kill nobody else can get the
 * number. */
static bool kill_if_of(int tasks_fd, pid_t pid, uint32_t sandbox)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct task_state st;

	if (pidfd < 0 || bpf_map_lookup_elem(tasks_fd, &pidfd, &st) < 0 || st.sandbox != sandbox)
		return false;
	return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0;
}

int capture_kill_process(struct capture *c, uint32_t sandbox, uint32_t tgid, uint64_t start)
{
	auto_close int pidfd = -1;
	struct task_state st;

	if (tgid <= 1 || (pid_t)tgid == getpid())
		return -EXDEV;
	pidfd = (int)syscall(SYS_pidfd_open, tgid, 0);
	if (pidfd < 0)
		return -errno;
	if (bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.tasks), &pidfd, &st) < 0 ||
	    st.sandbox != sandbox || st.role != ROLE_PAYLOAD)
		return -EXDEV;
	if (st.start != start) /* another one has the number now */
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0 ? 0 : -errno;
}

static int kill_pass(int tasks_fd, uint32_t sandbox)
{
	auto_dir DIR *dir = opendir("/proc");
	struct dirent *de;
	int n = 0;

	while (dir && (de = readdir(dir)))
		if (isdigit((unsigned char)de->d_name[0]))
			n += kill_if_of(tasks_fd, (pid_t)strtol(de->d_name, NULL, 10), sandbox);
	return n;
}

int capture_kill_left(struct capture *c, int cgroup_fd)
{
	struct sandbox_cfg cfg;
	uint64_t cgid;
	int all = 0;

	if (cgroup_id(cgroup_fd, &cgid, NULL) < 0 ||
	    bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.sandboxes), &cgid, &cfg) < 0 || !cfg.left)
		return 0;
	for (int i = 0; i < PASSES; i++) {
		int n = kill_pass(bpf_map__fd(c->skel->maps.tasks), cfg.id);

		all += n;
		if (!n)
			break;
		usleep(1000); /* a killed one is found until it is gone */
	}
	return all;
}
