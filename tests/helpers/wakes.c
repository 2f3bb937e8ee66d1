/* SPDX-License-Identifier: Apache-2.0 */
// ours: capture
/* What wakes the reader of the rings? A process in a sandbox acts, and it is looked whether that made capture_fd readable:
 *
 *   wakes
 *
 * In the current directory. One JSON object: for each act whether it woke a reader that looks by itself soon ("nap"), or
 * one that sleeps for good ("deep"). */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/helpers/v2_mount.h"
#include "userspace/base/auto.h"
#include "userspace/capture/capture.h"

#define MUCH	4000  /* opens: more than 256 KiB of records */
#define AT_ALL	60000 /* ms after which a wake-up counts as missing */
#define NO_MORE 100   /* ms in which one that should not be would be there */

static void die(const char *what)
{
	fprintf(stderr, "wakes: %s: %s\n", what, strerror(errno));
	exit(3);
}

/* In the sandbox: a letter in, the act, a letter back. */
static void act(int in, int out)
{
	char what;

	while (read(in, &what, 1) == 1) {
		int n = what == 'm' ? MUCH : what == 'o';

		for (int i = 0; i < n; i++)
			close(open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		if (what == 'e')
			setns(-1, 0);
		for (int i = 0; what == 'n' && i < 1000; i++)
			syscall(SYS_getppid);
		if (write(out, &what, 1) != 1)
			break;
	}
	_exit(0);
}

static int drop(void *arg, const void *rec, size_t len)
{
	(void)arg;
	(void)rec;
	(void)len;
	return 0;
}

static bool woken(struct capture *c, int in, int out, char what, bool deep, bool expected)
{
	struct pollfd p = { .fd = capture_fd(c), .events = POLLIN };
	size_t held;

	capture_sleep(c, deep);
	do { /* until nothing is there that could wake */
		if (capture_drain(c, false, drop, NULL, &held) < 0)
			die("drain");
	} while (held || poll(&p, 1, 0) > 0);
	if (write(out, &what, 1) != 1 || read(in, &what, 1) != 1)
		die("the process in the sandbox");
	return poll(&p, 1, expected ? AT_ALL : NO_MORE) > 0;
}

int main(void)
{
	const struct capture_options opt = { .quiet_libbpf = true };
	const struct sandbox_cfg cfg = { .id = 1, .flags = SANDBOX_F_WATCH };
	static const struct {
		const char *name;
		char what;
		bool deep, expected;
	} rows[] = {
		{ "nap_open", 'o', false, false },    { "nap_escape", 'e', false, true },
		{ "nap_much", 'm', false, true },     { "nap_nothing", 'n', false, false },
		{ "deep_nothing", 'n', true, false }, { "deep_open", 'o', true, true },
		{ "deep_escape", 'e', true, true },
	};
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	struct capture *c = NULL;
	struct err err = { 0 };
	int to[2], from[2], fd;
	char leaf[512];
	pid_t pid;

	if (capture_open(&c, &opt, &err) < 0) {
		fprintf(stderr, "wakes: %s\n", err_text(&err));
		return 3;
	}
	snprintf(leaf, sizeof(leaf), "%s/warder-wakes-%d", v2_mount(), getpid());
	if (mkdir(leaf, 0755) < 0 || pipe(to) < 0 || pipe(from) < 0)
		die(leaf);
	fd = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || capture_watch(c, fd, &cfg, &err) < 0)
		die(err_text(&err));
	args.cgroup = (uint64_t)fd;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		die("clone3");
	if (pid == 0) {
		close(to[1]);
		act(to[0], from[1]);
	}
	close(to[0]);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		printf("%s\"%s\": %s", i ? ", " : "{ ", rows[i].name,
		       woken(c, from[0], to[1], rows[i].what, rows[i].deep, rows[i].expected)
			       ? "true"
			       : "false");
	printf(" }\n");
	close(to[1]);
	waitpid(pid, NULL, 0);
	capture_unwatch(c, fd);
	capture_close(c);
	for (int n = 0; n < 500 && rmdir(leaf) < 0 && errno == EBUSY; n++)
		usleep(10000);
	return 0;
}
