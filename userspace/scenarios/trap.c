// SPDX-License-Identifier: Apache-2.0
#include "userspace/scenarios/trap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"

#define OUTSIDE "/tmp" /* where the link of a bind's target leads */

static int make_links(const char *dir, const char *const (*rows)[2])
{
	auto_close int fd = -1;

	if (mkdir(dir, 0777) < 0 || chmod(dir, 0777) < 0)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && rows[i][0]; i++)
		if (symlinkat(rows[i][1], fd, rows[i][0]) < 0)
			return -errno;
	return fd < 0 ? -errno : 0;
}

/* By a descriptor: a scratch directory's path can be longer than an address may be. */
static int make_socket(struct trap *t)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	auto_close int fd = -1;

	if (mkdir(t->place, 0777) < 0 || chmod(t->place, 0777) < 0)
		return -errno;
	fd = open(t->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/docker.sock", fd);
	t->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || t->listen_fd < 0 || bind(t->listen_fd, (void *)&a, sizeof(a)) < 0 ||
	    listen(t->listen_fd, 8) < 0 || chmod(a.sun_path, 0777) < 0)
		return -errno;
	return 0;
}

/* Nobody need accept: a connection is made when it waits to be. */
static int make_service(struct trap *t)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	t->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->listen_fd < 0 || bind(t->listen_fd, (void *)&a, sizeof(a)) < 0 ||
	    listen(t->listen_fd, 8) < 0 || getsockname(t->listen_fd, (void *)&a, &n) < 0)
		return -errno;
	snprintf(t->place, sizeof(t->place), TRAP_NAME ":4444=127.0.0.1:%u", ntohs(a.sin_port));
	return 0;
}

int trap_set(struct trap *ret, enum scenario_trap kind, const char *dir, struct err *err)
{
	static const char *const dev[][2] = { { "null", "/etc/passwd" },
					      { "zero", "/proc/sys/kernel/core_pattern" },
					      { "console", "/proc/sysrq-trigger" },
					      { "pts", "/etc" },
					      { NULL, NULL } };
	static const char *const proc[][2] = {
		{ "planted", "/etc/passwd" }, { "self", "/etc" }, { "sys", "/etc" }, { NULL, NULL }
	};
	static const char *const out[][2] = { { "out", OUTSIDE }, { NULL, NULL } };
	int r = 0;

	*ret = (struct trap){ .kind = kind, .give_fd = -1, .listen_fd = -1 };
	snprintf(ret->place, sizeof(ret->place), "%.560s/trap", dir);
	snprintf(ret->planted, sizeof(ret->planted), "warder-planted-%d-%d", (int)getpid(),
		 (int)gettid());
	switch (kind) {
	case TRAP_NONE:
		break;
	case TRAP_CWD_FD:
		ret->give_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = ret->give_fd < 0 ? -errno : 0;
		break;
	case TRAP_DEV_LINK:
		r = make_links(ret->place, dev);
		break;
	case TRAP_PROC_LINK:
		r = make_links(ret->place, proc);
		break;
	case TRAP_TARGET_LINK:
		r = make_links(ret->place, out);
		break;
	case TRAP_SOCKET:
		r = make_socket(ret);
		break;
	case TRAP_SERVICE:
		r = make_service(ret);
		break;
	}
	if (r < 0) {
		trap_end(ret);
		return err_set(err, r, "setting a trap at '%s': %s", ret->place, strerror(-r));
	}
	return 0;
}

bool trap_end(struct trap *t)
{
	char path[sizeof(t->planted) + 8];

	if (t->give_fd >= 0)
		close(t->give_fd);
	if (t->listen_fd >= 0)
		close(t->listen_fd);
	snprintf(path, sizeof(path), OUTSIDE "/%s", t->planted);
	return t->kind == TRAP_TARGET_LINK && unlink(path) == 0;
}
