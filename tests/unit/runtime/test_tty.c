// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/tty.h"

static void test_only_a_master(void **state)
{
	int master, slave, pair[2], null = open("/dev/null", O_RDWR);

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(tty_check(master), 0);
	assert_true(fcntl(master, F_GETFL) & O_NONBLOCK);
	assert_int_equal(tty_check(slave), -ENOTTY);
	assert_int_equal(tty_check(null), -ENOTTY);
	assert_int_equal(tty_check(pair[0]), -ENOTTY);
	assert_int_equal(tty_check(-1), -ENOTTY);
	close(master);
	close(slave);
	close(null);
	close(pair[0]);
	close(pair[1]);
}

static void send_with(int sock, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(4 * sizeof(int))];
	} control = { 0 };
	char text[] = "frame";
	struct iovec iov = { text, sizeof(text) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
						       .cmsg_level = SOL_SOCKET,
						       .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, n * sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &m, 0), sizeof(text));
}

/* The lowest free number: the same before and after when nothing was left open. */
static int lowest(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void test_one_descriptor_or_none(void **state)
{
	int pair[2], fd = -1, before, many[4] = { 0, 0, 0, 0 };
	char text[16];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	before = lowest();
	send_with(pair[0], many, 0);
	assert_int_equal(tty_recv(pair[1], text, sizeof(text), 0, &fd), 6);
	assert_int_equal(fd, -1);
	send_with(pair[0], many, 1);
	assert_int_equal(tty_recv(pair[1], text, sizeof(text), 0, &fd), 6);
	assert_true(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	send_with(pair[0], many, 4); /* more than there is room for */
	assert_int_equal(tty_recv(pair[1], text, sizeof(text), 0, &fd), 6);
	assert_int_equal(fd, -1);
	assert_int_equal(lowest(), before);
	assert_int_equal(tty_recv(pair[1], text, sizeof(text), MSG_DONTWAIT, &fd), -1);
	assert_int_equal(fd, -1);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_a_master),
		cmocka_unit_test(test_one_descriptor_or_none),
	};

	return cmocka_run_group_tests_name("runtime/tty", tests, NULL, NULL);
}
