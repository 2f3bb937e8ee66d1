// SPDX-License-Identifier: Apache-2.0
/* One request and one answer a connection, of a socket that only root can reach. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/option.h"
#include "userspace/cli/oci.h"

#define DOOR	 "door"
#define ANSWER_S 60 /* a start may wait for a slow set-up */
#define HEAR_S	 2  /* for who knocks and says nothing */

/* By way of the descriptor: a path may be longer than a socket's can be. */
static void address(struct sockaddr_un *ret, int dir)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" DOOR, dir);
}

int oci_door_listen(int *ret_fd, int dir)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at;
	mode_t old = umask(0177);
	int r = 0;

	address(&at, dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 16) < 0)
		r = -errno;
	umask(old);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

static void set_timeout(int fd, int seconds)
{
	const struct timeval wait = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

int oci_door_ask(int dir, const char *request, struct err *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char text[OCI_TEXT];
	struct sockaddr_un at;
	ssize_t n = -1;
	char *rest;
	long code;

	address(&at, dir);
	if (fd >= 0)
		set_timeout(fd, ANSWER_S);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    send(fd, request, strlen(request), MSG_NOSIGNAL) < 0 ||
	    (n = recv(fd, text, sizeof(text) - 1, 0)) < 0)
		return err_set(err, errno == ECONNREFUSED ? ESRCH : errno,
			       "the container's keeper does not answer: %m");
	if (n == 0)
		return err_set(err, ESRCH, "the container's keeper has gone");
	text[n] = 0;
	code = strtol(text, &rest, 10);
	if (code <= 0 || code > 4095)
		return 0;
	return err_set(err, (int)code, "%s", rest + (*rest == ' '));
}

void oci_door_answer(int fd, int code, const char *text)
{
	char line[OCI_TEXT];
	size_t n;

	if (fd < 0)
		return;
	snprintf(line, sizeof(line), "%d %s", code, text ? text : "");
	n = strlen(line);
	(void)!send(fd, line, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

int oci_door_accept(int listen, char ret[OCI_TEXT])
{
	auto_close int fd = accept4(listen, NULL, NULL, SOCK_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	set_timeout(fd, HEAR_S);
	n = recv(fd, ret, OCI_TEXT - 1, 0);
	if (n <= 0)
		return -1;
	ret[n] = 0;
	return take_fd(fd);
}
