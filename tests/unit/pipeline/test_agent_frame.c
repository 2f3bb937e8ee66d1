// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/pipeline/agent_frame.h"

static struct arena arena;

static int parse(struct agent_request *q, const char *text, struct err *err)
{
	arena_done(&arena);
	arena_init(&arena, 1 << 20);
	return agent_request_parse(q, &arena, str_from(text), err);
}

static void test_requests(void **state)
{
	struct agent_request q;

	(void)state;
	assert_int_equal(
		parse(&q,
		      " { \"op\" : \"exec\", \"sandbox\":\"b\\u00e9\", \"argv\":[\"a\",\"\"],"
		      "\"env\":[\"K=V\"],\"tty\":true,\"rows\":65535,\"signal\":64 } ",
		      NULL),
		0);
	assert_int_equal(q.op, AGENT_EXEC);
	assert_string_equal(q.sandbox, "bé");
	assert_int_equal(q.argc, 2);
	assert_string_equal(q.argv[0], "a");
	assert_string_equal(q.argv[1], "");
	assert_null(q.argv[2]);
	assert_int_equal(q.env_n, 1);
	assert_true(q.tty);
	assert_int_equal(q.rows, 65535);
	assert_int_equal(q.signal, 64);
	arena_done(&arena);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"op\":\"\"}",
		"{\"op\":\"fly\"}",
		"{\"op\":\"ps\"",
		"{\"op\":\"ps\"}}",
		"{\"op\":\"ps\",}",
		"{\"op\":\"ps\",\"x\":1}",
		"{\"op\":\"exec\",\"rows\":65536}",
		"{\"op\":\"exec\",\"signal\":65}",
		"{\"op\":\"exec\",\"rows\":-1}",
		"{\"op\":\"exec\",\"argv\":\"a\"}",
		"{\"op\":\"exec\",\"argv\":[1]}",
		"{\"op\":\"exec\",\"argv\":[\"a\\u0000b\"]}",
		"{\"op\":\"exec\",\"tty\":1}",
		"{\"op\":1}",
		"{\"op\":\"ps\"}\n{\"op\":\"ps\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct agent_request q;
		struct err err = { 0 };

		if (parse(&q, bad[i], &err) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(strstr(err_text(&err), "request: "));
	}
	arena_done(&arena);
}

static void test_too_many_words(void **state)
{
	auto_buf struct buf text = { 0 };
	struct agent_request q;

	(void)state;
	buf_addz(&text, "{\"op\":\"exec\",\"argv\":[\"\"");
	for (int i = 1; i < AGENT_WORDS_MAX; i++)
		buf_addz(&text, ",\"\"");
	buf_addz(&text, "]}");
	buf_addc(&text, 0);
	assert_int_equal(parse(&q, text.p, NULL), 0);
	assert_int_equal(q.argc, AGENT_WORDS_MAX);
	text.n -= 3;
	buf_addz(&text, ",\"\"]}");
	buf_addc(&text, 0);
	assert_int_equal(parse(&q, text.p, NULL), -EBADMSG);
	arena_done(&arena);
}

static void test_packets(void **state)
{
	static char in[AGENT_FRAME_MAX], out[AGENT_FRAME_MAX + 1];
	int pair[2], pipe_fd[2], fd = -1;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(pipe(pipe_fd), 0);
	assert_int_equal(agent_recv(pair[1], in, &fd, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(agent_send(pair[0], "abc", 3, pipe_fd[1], 0), 0);
	assert_int_equal(agent_recv(pair[1], in, &fd, 0), 3);
	assert_memory_equal(in, "abc", 3);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	/* With nobody to take it, a descriptor is closed. */
	assert_int_equal(agent_send(pair[0], "abc", 3, pipe_fd[1], 0), 0);
	assert_int_equal(agent_recv(pair[1], in, NULL, 0), 3);
	fd = -1;
	assert_int_equal(agent_send(pair[0], out, sizeof(out), -1, 0), 0);
	assert_int_equal(agent_recv(pair[1], in, &fd, 0), -EMSGSIZE);
	assert_int_equal(fd, -1);
	/* What was said before the other side went without reading comes first. */
	assert_int_equal(agent_send(pair[1], "unread", 6, -1, 0), 0);
	assert_int_equal(agent_send(pair[0], "last", 4, -1, 0), 0);
	close(pair[0]);
	assert_int_equal(agent_recv(pair[1], in, NULL, 0), 4);
	assert_int_equal(agent_recv(pair[1], in, NULL, 0), 0);
	close(pair[1]);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_many_words),
		cmocka_unit_test(test_packets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
