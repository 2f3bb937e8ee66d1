// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/base/service.h"

static int listener(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), n;
	char name[64];

	n = snprintf(name, sizeof(name), "@warder-test-service-%d", (int)getpid());
	memcpy(at.sun_path, name, (size_t)n);
	at.sun_path[0] = 0;
	assert_int_equal(bind(fd, (struct sockaddr *)&at,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)n)),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void expect(int fd, const char *text)
{
	char got[256] = "";

	assert_int_equal(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), strlen(text));
	assert_string_equal(got, text);
}

static void expect_nothing(int fd)
{
	char got[256];

	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), -1);
}

static void test_told_and_alive(void **state)
{
	int fd = listener();
	struct service s;
	(void)state;

	setenv("WATCHDOG_USEC", "2000", 1);
	unsetenv("WATCHDOG_PID");
	service_init(&s);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	service_tell(&s, "READY=1");
	expect(fd, "READY=1");
	assert_int_equal(service_alive(&s, 5000000), 6000000);
	expect(fd, "WATCHDOG=1");
	assert_int_equal(service_alive(&s, 5999999), 6000000);
	expect_nothing(fd);
	assert_int_equal(service_alive(&s, 6000000), 7000000);
	expect(fd, "WATCHDOG=1");
	close(fd);
	service_tell(&s, "STOPPING=1"); /* nobody is there: nothing happens */
	service_done(&s);
}

static void test_not_asked(void **state)
{
	static const char *const no_time[] = {
		"", "0", "abc", "-5", "12x", "99999999999999999999"
	};
	struct service s;
	int fd;
	(void)state;

	unsetenv("NOTIFY_SOCKET");
	setenv("WATCHDOG_USEC", "1000", 1);
	service_init(&s);
	assert_int_equal(s.fd, -1);
	assert_int_equal(service_alive(&s, 1), UINT64_MAX);
	service_tell(&s, "READY=1");
	for (size_t i = 0; i < sizeof(no_time) / sizeof(*no_time); i++) {
		fd = listener();
		setenv("WATCHDOG_USEC", no_time[i], 1);
		service_init(&s);
		assert_int_equal(service_alive(&s, 1), UINT64_MAX);
		service_done(&s);
		close(fd);
	}
	fd = listener(); /* another process is asked */
	setenv("WATCHDOG_USEC", "1000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	service_init(&s);
	assert_int_equal(service_alive(&s, 1), UINT64_MAX);
	service_done(&s);
	close(fd);
	setenv("NOTIFY_SOCKET", "relative/path", 1);
	service_init(&s);
	assert_int_equal(s.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_and_alive),
		cmocka_unit_test(test_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
