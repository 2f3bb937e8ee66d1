// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/seats.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "userspace/base/clock.h"

static struct seats s;

static void nobody_takes_all(void **state)
{
	int n = 0;

	(void)state;
	seats_init(&s);
	for (; n < API_OF_ONE_UID_MAX; n++)
		assert_int_equal(seats_take(&s, n, 7, 1, 0), 0);
	assert_int_equal(seats_take(&s, n, 7, 1, 0), -EUSERS);
	for (; n < API_CONNECTIONS_MAX - API_FOR_ROOT; n++)
		assert_int_equal(seats_take(&s, n, 100 + (uid_t)n / 50, 1, 0), 0);
	assert_int_equal(seats_take(&s, n, 8, 1, 0), -EBUSY);
	for (; n < API_CONNECTIONS_MAX; n++)
		assert_int_equal(seats_take(&s, n, 0, 1, 0), 0);
	assert_int_equal(seats_take(&s, n, 0, 1, 0), -EBUSY);
	seats_leave(&s, 3);
	assert_int_equal(seats_take(&s, 3, 0, 1, 0), 0);
}

static bool is_shut(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static void who_lets_wait_is_shut_down(void **state)
{
	int head[2], body[2], works[2];
	uid_t uid;
	pid_t pid;

	(void)state;
	seats_init(&s);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, head), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, body), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, works), 0);
	seats_take(&s, head[0], 5, 6, 0);
	seats_take(&s, body[0], 5, 6, 0);
	seats_take(&s, works[0], 5, 6, 0);
	assert_true(seats_who(&s, works[0], &uid, &pid));
	assert_true(uid == 5 && pid == 6);
	seats_set(&s, body[0], SEAT_BODY, NSEC_PER_SEC);
	seats_set(&s, works[0], SEAT_WORKS, 0);
	assert_int_equal(seats_look(&s, API_HEAD_MS * NSEC_PER_MSEC, false), 3);
	assert_false(is_shut(head[1]) || is_shut(body[1]));
	seats_look(&s, (API_HEAD_MS + 1) * NSEC_PER_MSEC, false);
	assert_true(is_shut(head[1]) && !is_shut(body[1]));
	seats_look(&s, NSEC_PER_SEC + (API_BODY_MS + 1) * NSEC_PER_MSEC, true);
	assert_true(is_shut(body[1]) && !is_shut(works[1]));
	seats_set(&s, works[0], SEAT_HEAD, 1000 * NSEC_PER_SEC);
	seats_look(&s, 1000 * NSEC_PER_SEC, true);
	assert_true(is_shut(works[1]));
	seats_leave(&s, works[0]);
	assert_false(seats_who(&s, works[0], &uid, &pid));
	for (int i = 0; i < 2; i++) {
		close(head[i]);
		close(body[i]);
		close(works[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_takes_all),
		cmocka_unit_test(who_lets_wait_is_shut_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
