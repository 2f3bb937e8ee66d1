// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/listen.h"

#include <linux/errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <asm/signal.h>

#include "runtime/init/process1.h"
#include "runtime/init/sys.h"

static long install(const struct sock_fprog *filter, unsigned flags)
{
	return SYS(seccomp, SECCOMP_SET_MODE_FILTER, flags, filter, 0, 0, 0);
}

/* What would be notified gets the same answer at once. */
static void refuse_instead(struct sock_fprog *filter)
{
	for (unsigned i = 0; i < filter->len; i++)
		if (filter->filter[i].code == (BPF_RET | BPF_K) &&
		    filter->filter[i].k == SECCOMP_RET_USER_NOTIF)
			filter->filter[i].k = SECCOMP_RET_ERRNO | EPERM;
}

/* The descriptor, or why there is none. */
static long tell(int fd)
{
	const struct init_frame f = { .magic = INIT_FRAME_MAGIC,
				      .type = FRAME_LISTENER,
				      .code = fd < 0 ? -fd : 0 };
	long n = process1_send(&f, fd);

	return n < 0 ? n : 0;
}

/* A task that shares our descriptors and not our filter: it hears of the listener's number and sends it. */
static long helper_start(int is_init, int say[2], int answer[2])
{
	long pid = SYS(clone, CLONE_FILES | (is_init ? 0 : CLONE_PARENT) | SIGCHLD, 0, 0, 0, 0, 0);
	int fd;
	long r;

	if (pid)
		return pid;
	do {
		r = SYS(read, say[0], &fd, sizeof(fd), 0, 0, 0);
	} while (r == -EINTR);
	if (r == (long)sizeof(fd))
		r = tell(fd);
	else if (r >= 0)
		r = -EIO;
	/* Always: who waits for it holds the pipe's other end, too, and would never see its end. */
	SYS(write, answer[1], &r, sizeof(r), 0, 0, 0);
	exit_now(0);
	return -1;
}

static long helper_ask(int fd, int say, int answer)
{
	long r = SYS(write, say, &fd, sizeof(fd), 0, 0, 0), n;

	if (r != (long)sizeof(fd))
		return r < 0 ? r : -EIO;
	do {
		n = SYS(read, answer, &r, sizeof(r), 0, 0, 0);
	} while (n == -EINTR);
	return n == (long)sizeof(r) ? r : n < 0 ? n : -EIO;
}

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n && fds[i] >= 0; i++)
		SYS(close, fds[i], 0, 0, 0, 0, 0);
}

/* The helper is gone by the time it has answered, or soon after: process 1 reaps it. */
static long install_with_helper(struct sock_fprog *filter, int is_init)
{
	int pipes[4] = { -1, -1, -1, -1 };
	long fd, r;

	r = SYS(pipe2, pipes, O_CLOEXEC, 0, 0, 0, 0);
	if (r < 0)
		return r;
	r = SYS(pipe2, pipes + 2, O_CLOEXEC, 0, 0, 0, 0);
	if (r >= 0)
		r = helper_start(is_init, pipes, pipes + 2);
	if (r < 0) {
		close_all(pipes, 4);
		return r;
	}
	fd = install(filter, SECCOMP_LISTENER_FLAGS);
	r = helper_ask((int)fd, pipes[1], pipes[2]);
	close_all(pipes, 4);
	if (fd >= 0)
		SYS(close, fd, 0, 0, 0, 0, 0);
	else if (r == 0) {
		refuse_instead(filter);
		r = install(filter, 0);
	}
	return r;
}

long filter_install(struct sock_fprog *filter, enum init_notify how, int is_init)
{
	long fd, r;

	if (how == INIT_NOTIFY_NONE)
		return install(filter, 0);
	if (how == INIT_NOTIFY_HELPER)
		return install_with_helper(filter, is_init);
	fd = install(filter, SECCOMP_LISTENER_FLAGS);
	r = tell((int)fd);
	if (fd >= 0) {
		SYS(close, fd, 0, 0, 0, 0, 0);
		return r;
	}
	refuse_instead(filter);
	return r < 0 ? r : install(filter, 0);
}
