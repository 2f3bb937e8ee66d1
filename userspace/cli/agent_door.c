// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/agent_door.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/api/front.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run_status.h"

#define BACKLOG	 64
#define AGAIN_NS NSEC_PER_SEC /* between two starts */

int door_listen(struct agent_door *d, struct err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	auto_close int fd = -1;

	if ((size_t)snprintf(at.sun_path, sizeof(at.sun_path), "%s/" API_SOCKET, run_dir()) >=
	    sizeof(at.sun_path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(at.sun_path); /* ours alone: the agent holds its lock */
	/* Who may is asked of the kernel, with each request. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    chmod(at.sun_path, 0666) < 0 || listen(fd, BACKLOG) < 0)
		return err_set(err, errno, "API socket '%s': %m", at.sun_path);
	d->listen = take_fd(fd);
	return 0;
}

void door_start(struct agent_door *d, void (*in_child)(void *arg), void *arg)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int pair[2], listen = d->listen;
	uid_t uid;
	gid_t gid;
	pid_t pid;

	if (d->listen < 0 || d->pid || (d->started && now - d->started < AGAIN_NS))
		return;
	d->started = now;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		log_error("api: socketpair: %m");
		return;
	}
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		listen = dup(listen); /* what a child lets go of is the agent's own */
		in_child(arg);
		engine_ids(&uid, &gid);
		front_run(listen, pair[1], uid, gid);
	}
	close(pair[1]);
	if (pid < 0) {
		log_error("api: fork: %m");
		close(pair[0]);
		return;
	}
	d->channel = pair[0];
	d->pid = pid;
}

bool door_forget(struct agent_door *d, pid_t pid)
{
	if (!d->pid || pid != d->pid)
		return false;
	log_warn("api: the process that serves it has ended; another one takes its place");
	close(d->channel);
	d->channel = -1;
	d->pid = 0;
	return true;
}

void door_close(struct agent_door *d)
{
	if (d->listen >= 0)
		close(d->listen);
	if (d->channel >= 0)
		close(d->channel);
	d->listen = d->channel = -1;
}
