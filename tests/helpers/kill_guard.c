/* SPDX-License-Identifier: Apache-2.0 */
// ours: capture
/* Asks the root part to end what it must never end (capture_kill_process): pid 1, ourselves, a process of the host,
 * the sandbox's init, a number that another process has now, one of another sandbox. And, last, what it may. Prints
 * a line of JSON for each: what was asked, the answer, and whether that process still lives. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bpf/abi/wire.h"
#include "userspace/base/auto.h"
#include "userspace/capture/capture.h"

#define SANDBOX 7
#define SELF_IN 9 /* a second one, that this program itself is in for a moment */

static struct capture *c;

struct found {
	pid_t pid; /* of the payload */
	uint64_t start;
};

static void die(const char *what)
{
	perror(what);
	exit(3);
}

static int leaf_make(const char *v2, const char *name, char *path, size_t n)
{
	int fd = -1;

	snprintf(path, n, "%s/warder-guard-%s-%d", v2, name, getpid());
	if (mkdir(path, 0755) < 0 || (fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		die(path);
	return fd;
}

static void enter(const char *dir, pid_t pid)
{
	char path[512], text[32];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	snprintf(text, sizeof(text), "%d", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static int look(void *arg, const void *rec, size_t len)
{
	const struct wire_hdr *h = rec;
	struct found *f = arg;

	if (len < sizeof(*h) || h->sandbox != SANDBOX || h->kind != WIRE_EXEC)
		return 0;
	f->pid = (pid_t)h->tgid;
	f->start = h->start;
	return 0;
}

/* One that was killed is waited for. */
static bool lives(pid_t pid, bool killed)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&pfd, 1, killed ? 60000 : 0) == 0;
}

static void ask(const char *what, uint32_t sandbox, uint32_t pid, uint64_t start)
{
	int r = capture_kill_process(c, sandbox, pid, start);

	printf("{\"what\":\"%s\",\"answer\":%d,\"lives\":%s}\n", what, r,
	       (pid_t)pid > 0 && lives((pid_t)pid, r == 0) ? "true" : "false");
	fflush(stdout);
}

static pid_t sleeper(int leaf)
{
	struct clone_args args = { .flags = leaf >= 0 ? CLONE_INTO_CGROUP : 0,
				   .exit_signal = SIGCHLD,
				   .cgroup = leaf >= 0 ? (uint64_t)leaf : 0 };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		die("clone3");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (leaf >= 0 && fork() == 0) { /* the payload; its parent is the sandbox's init */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(127);
	}
	for (;;)
		pause();
}

static void watch(int leaf, uint32_t id, uint32_t flags)
{
	struct sandbox_cfg cfg = { .id = id, .flags = flags };
	struct err err = { 0 };

	if (capture_watch(c, leaf, &cfg, &err) < 0) {
		fprintf(stderr, "kill_guard: %s\n", err_text(&err));
		exit(3);
	}
}

int main(int argc, char **argv)
{
	const struct capture_options co = { .quiet_libbpf = true };
	const char *v2 = argc > 1 ? argv[1] : "/sys/fs/cgroup";
	char box[300], own[300];
	struct found f = { 0 };
	struct err err = { 0 };
	int leaf, own_leaf;
	pid_t host, init;
	size_t held;

	if (capture_open(&c, &co, &err) < 0) {
		fprintf(stderr, "kill_guard: %s\n", err_text(&err));
		return 3;
	}
	leaf = leaf_make(v2, "box", box, sizeof(box));
	own_leaf = leaf_make(v2, "own", own, sizeof(own));
	watch(leaf, SANDBOX, 0);
	watch(own_leaf, SELF_IN, SANDBOX_F_WATCH);
	host = sleeper(-1);
	init = sleeper(leaf);
	while (!f.pid) {
		struct pollfd pfd = { .fd = capture_fd(c), .events = POLLIN };

		poll(&pfd, 1, CAPTURE_TICK_MS);
		if (capture_drain(c, false, look, &f, &held) < 0)
			die("capture_drain");
	}
	ask("nobody", SANDBOX, 0, f.start);
	ask("all", SANDBOX, UINT32_MAX, f.start);
	ask("pid 1", SANDBOX, 1, f.start);
	ask("ourselves", SANDBOX, (uint32_t)getpid(), f.start);
	ask("our parent", SANDBOX, (uint32_t)getppid(), f.start);
	ask("a process of the host", SANDBOX, (uint32_t)host, f.start);
	ask("the sandbox's init", SANDBOX, (uint32_t)init, f.start);
	ask("another sandbox's", SANDBOX + 1, (uint32_t)f.pid, f.start);
	ask("a number used again", SANDBOX, (uint32_t)f.pid, f.start + 1);
	/* Whoever gets us into a sandbox's cgroup still gets nothing. */
	enter(own, getpid());
	ask("ourselves inside", SELF_IN, (uint32_t)getpid(), f.start);
	enter(v2, getpid());
	/* Out of its cgroup it is still the sandbox's. */
	enter(v2, f.pid);
	ask("one that left", SANDBOX, (uint32_t)f.pid, f.start);
	kill(init, SIGKILL);
	kill(host, SIGKILL);
	waitpid(init, NULL, 0);
	waitpid(host, NULL, 0);
	capture_unwatch(c, leaf);
	capture_unwatch(c, own_leaf);
	capture_close(c);
	/* A zombie that init left to us counts as being in there until it is reaped. */
	for (int i = 0; i < 1000 && rmdir(box) < 0 && errno == EBUSY; i++)
		usleep(10000);
	return rmdir(own) < 0;
}
