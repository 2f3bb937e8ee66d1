// SPDX-License-Identifier: Apache-2.0
#include "runtime/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PTMX_MAJOR 5
#define PTMX_MINOR 2

/* The first descriptor of what came, the others closed. */
static int take_first(struct msghdr *m)
{
	int first = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				close(fd);
		}
	}
	return first;
}

ssize_t tty_recv(int sock, void *p, size_t n, int flags, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { p, n };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(sock, &m, flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	int fd = got < 0 ? -1 : take_first(&m);

	if (fd >= 0 && m.msg_flags & MSG_CTRUNC) {
		close(fd);
		fd = -1;
	}
	*ret_fd = fd;
	return got;
}

int tty_check(int fd)
{
	struct stat st;
	int number, flags;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -ENOTTY;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(PTMX_MAJOR, PTMX_MINOR) ||
	    ioctl(fd, TIOCGPTN, &number) < 0)
		return -ENOTTY;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}
