// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *c = p;

	while (n) {
		ssize_t w = write(fd, c, n);

		if (w < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		c += w;
		n -= (size_t)w;
	}
	return 0;
}

ssize_t fd_read_full(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)p + got, n - got);

		if (r < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int fd_read_rest(int fd, struct buf *b)
{
	for (;;) {
		ssize_t got;
		int r;

		r = buf_reserve(b, 1);
		if (r < 0)
			return r == -EMSGSIZE ? -EFBIG : r;
		got = read(fd, b->p + b->n, b->cap - b->n);
		if (got < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (got == 0)
			return 0;
		b->n += (size_t)got;
	}
}

int file_read_at(int dirfd, const char *path, size_t max, char **ret_text, size_t *ret_n)
{
	auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFL,
	      0); /* only the open must not wait, as it does for a FIFO that nobody writes to */
	return fd_read_text(fd, max, ret_text, ret_n);
}

int fd_read_text(int fd, size_t max, char **ret_text, size_t *ret_n)
{
	auto_buf struct buf b = { 0 };
	int r;

	buf_init(&b, max + 1);
	r = fd_read_rest(fd, &b);
	if (r < 0)
		return r;
	r = buf_addc(&b, 0);
	if (r < 0)
		return r == -EMSGSIZE ? -EFBIG : r;
	if (ret_n)
		*ret_n = b.n - 1;
	*ret_text = take_ptr(b.p);
	return 0;
}

int file_write_at(int dirfd, const char *path, const char *text)
{
	auto_close int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);
	ssize_t w;

	if (fd < 0)
		return -errno;
	do {
		w = write(fd, text, n);
	} while (w < 0 && errno == EINTR);
	if (w < 0)
		return -errno;
	return (size_t)w == n ? 0 : -EIO;
}

int file_replace_at(int dirfd, const char *name, const void *p, size_t n, mode_t mode)
{
	char tmp[NAME_MAX + 1];
	auto_close int fd = -1;
	int r;

	if ((size_t)snprintf(tmp, sizeof(tmp), ".%s.tmp", name) >= sizeof(tmp))
		return -ENAMETOOLONG;
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, p, n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dirfd, tmp, 0);
		return r;
	}
	if (dirfd != AT_FDCWD)
		fsync(dirfd); /* the name, too, must survive a power cut; nothing to do if not */
	return 0;
}

int dir_make_all(const char *path, mode_t mode)
{
	char tmp[PATH_MAX];
	size_t n = strlen(path);

	if (n == 0 || n >= sizeof(tmp))
		return -ENAMETOOLONG;
	memcpy(tmp, path, n + 1);
	for (char *p = tmp + 1;; p++) {
		char c = *p;

		if (c != '/' && c != 0)
			continue;
		*p = 0;
		if (mkdir(tmp, mode) < 0 && errno != EEXIST)
			return -errno;
		if (c == 0)
			return 0;
		*p = c;
	}
}

ssize_t fd_send(int sock, const void *p, size_t n, const int *fds, size_t count, int flags)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(FD_SEND_MAX * sizeof(int))];
	} control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)p, n };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (count > FD_SEND_MAX)
		return -EINVAL;
	if (count) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, count * sizeof(int));
	}
	sent = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

static size_t passed_fds(struct msghdr *m, int fds[FD_SEND_MAX])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t size = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size = MIN(size, (FD_SEND_MAX - n) * sizeof(int));
		memcpy(fds + n, CMSG_DATA(c), size);
		n += size / sizeof(int);
	}
	return n;
}

ssize_t fd_recv(int sock, void *p, size_t n, int *ret_fds, size_t count, int flags)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(FD_SEND_MAX * sizeof(int))];
	} control;
	struct iovec iov = { p, n };
	/* The length without padding, in which there would be room for one more. */
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = count ? &control : NULL,
			    .msg_controllen = count ? CMSG_LEN(count * sizeof(int)) : 0 };
	int fds[FD_SEND_MAX];
	size_t came;
	ssize_t got;

	for (size_t i = 0; i < count; i++)
		ret_fds[i] = -1;
	if (count > FD_SEND_MAX)
		return -EINVAL;
	got = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
	if (got < 0)
		return -errno;
	came = passed_fds(&m, fds);
	if (came == count && !(m.msg_flags & MSG_CTRUNC)) {
		memcpy(ret_fds, fds, count * sizeof(int));
		return got;
	}
	for (size_t i = 0; i < came; i++)
		close(fds[i]);
	return got;
}
