// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define ANSWER_WAIT_MS 10000

/* By way of the descriptor: a path of the run directory may be longer than a socket's can be. */
static void address(struct sockaddr_un *ret, int dirfd)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET, dirfd);
}

int control_listen(int *ret_fd, int dirfd, uid_t uid, gid_t gid, struct err *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at;
	mode_t old;
	int r;

	if (fd < 0)
		return err_set(err, errno, "control socket: %m");
	address(&at, dirfd);
	old = umask(0177); /* never open to others, not even for a moment */
	r = bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	umask(old);
	if (r < 0)
		return err_set(err, r, "control socket: %m");
	if (fchownat(dirfd, CONTROL_SOCKET, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    listen(fd, CONTROL_CLIENTS) < 0)
		return err_set(err, errno, "control socket: %m");
	*ret_fd = take_fd(fd);
	return 0;
}

void control_init(struct control *c, int listen_fd, uid_t uid)
{
	c->listen_fd = listen_fd;
	c->uid = uid;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		c->client[i] = -1;
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void control_done(struct control *c)
{
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		drop(&c->client[i]);
	drop(&c->listen_fd);
}

void control_poll(const struct control *c, struct pollfd *ret)
{
	bool room = false;

	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		ret[1 + i] = (struct pollfd){ .fd = c->client[i], .events = POLLIN };
		room |= c->client[i] < 0;
	}
	ret[0] = (struct pollfd){ .fd = room ? c->listen_fd : -1, .events = POLLIN };
}

static void take_client(struct control *c)
{
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (int i = 0; fd >= 0 && i < CONTROL_CLIENTS; i++)
		if (c->client[i] < 0) {
			c->client[i] = fd;
			return;
		}
	drop(&fd);
}

static long login_uid(pid_t pid)
{
	auto_free char *text = NULL;
	char path[64];
	unsigned long uid;

	snprintf(path, sizeof(path), "/proc/%d/loginuid", (int)pid);
	if (file_read_at(AT_FDCWD, path, 64, &text, NULL) < 0)
		return -1;
	uid = strtoul(text, NULL, 10);
	return uid == UINT32_MAX ? -1 : (long)uid;
}

/* Who it is, as the kernel noted when it connected; false: not to be listened to. */
static bool identify(const struct control *c, int fd, char *ret, size_t n)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	long login;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    (peer.uid != 0 && peer.uid != c->uid))
		return false;
	login = login_uid(peer.pid);
	if (login >= 0)
		snprintf(ret, n, "uid %u, login uid %ld, pid %d", peer.uid, login, (int)peer.pid);
	else
		snprintf(ret, n, "uid %u, pid %d", peer.uid, (int)peer.pid);
	return true;
}

static void serve(struct control *c, int fd, control_fn fn, void *arg)
{
	struct control_answer a = { .result = -EPERM, .text = "not allowed" };
	char text[CONTROL_TEXT], who[96], *argument;
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return;
	text[n] = 0;
	argument = strchr(text, ' ');
	if (argument)
		*argument++ = 0;
	if (identify(c, fd, who, sizeof(who))) {
		a.text[0] = 0;
		fn(arg, text, argument ? argument : "", who, &a);
	}
	(void)!send(fd, &a, sizeof(a), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void control_serve(struct control *c, const struct pollfd *fds, control_fn fn, void *arg)
{
	for (int i = 0; i < CONTROL_CLIENTS; i++) {
		if (c->client[i] < 0 || fds[1 + i].fd != c->client[i] || !fds[1 + i].revents)
			continue;
		serve(c, c->client[i], fn, arg);
		drop(&c->client[i]);
	}
	if (c->listen_fd >= 0 && fds[0].fd == c->listen_fd && fds[0].revents)
		take_client(c);
}

int control_ask(int dirfd, const char *request, struct control_answer *ret)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;
	struct pollfd pfd;

	address(&at, dirfd);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
		return -errno;
	pfd = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (poll(&pfd, 1, ANSWER_WAIT_MS) <= 0)
		return -ETIMEDOUT;
	if (recv(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
		return -EPIPE;
	ret->text[sizeof(ret->text) - 1] = 0;
	return 0;
}
