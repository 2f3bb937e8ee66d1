// SPDX-License-Identifier: Apache-2.0
/* A sink, and what comes in place of a sentry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/gvisor/guest.h"
#include "runtime/gvisor/points.h"
#include "runtime/gvisor/sink.h"
#include "userspace/base/auto.h"
#include "userspace/event/seccheck.h"

#define PATIENCE_MS 60000

struct bed {
	char dir[64], sub[80];
	struct gvisor_guest *guest;
	struct gvisor_sink *sink;
};

static void set_up(struct bed *b, const char *cgroup, size_t ring, int handshake_ms)
{
	struct gvisor_sink_options opt;
	struct err err = { 0 };

	snprintf(b->dir, sizeof(b->dir), "/tmp/sink-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->sub, sizeof(b->sub), "%s/g", b->dir);
	assert_int_equal(gvisor_guest_new(&b->guest, b->sub, 50, &err), 0);
	opt = (struct gvisor_sink_options){ .listen_fd = dup(gvisor_guest_listen_fd(b->guest)),
					    .news_fd = dup(gvisor_guest_news_fd(b->guest)),
					    .ring = ring,
					    .cgroup = cgroup,
					    .handshake_ms = handshake_ms };
	gvisor_guest_given(b->guest);
	assert_int_equal(gvisor_sink_start(&b->sink, &opt, &err), 0);
}

static void tear_down(struct bed *b)
{
	gvisor_sink_free(b->sink);
	gvisor_guest_free(b->guest);
	assert_int_equal(access(b->sub, F_OK), -1);
	assert_int_equal(rmdir(b->dir), 0);
}

static int dial(const struct bed *b)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/sink.sock", b->sub);
	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		return -errno;
	}
	return fd;
}

static int dial_and_greet(const struct bed *b)
{
	char answer[8];
	int fd = dial(b);

	assert_true(fd >= 0);
	assert_int_equal(send(fd, "\x08\x01", 2, 0), 2);
	assert_int_equal(recv(fd, answer, sizeof(answer), 0), 2);
	assert_memory_equal(answer, "\x08\x01", 2);
	return fd;
}

static void wait_readable(const struct bed *b)
{
	struct pollfd pfd = { .fd = gvisor_sink_fd(b->sink), .events = POLLIN };

	assert_int_equal(poll(&pfd, 1, PATIENCE_MS), 1);
}

static struct gvisor_packet next_packet(struct bed *b)
{
	struct gvisor_packet p;

	while (!gvisor_sink_next(b->sink, &p))
		wait_readable(b);
	return p;
}

static struct gvisor_sink_stats stats_of(const struct bed *b)
{
	struct gvisor_sink_stats st;

	gvisor_sink_stats(b->sink, &st);
	return st;
}

static void wait_state(struct bed *b, enum gvisor_sink_state state)
{
	struct gvisor_packet p;

	for (;;) {
		assert_false(gvisor_sink_next(b->sink, &p));
		if (stats_of(b).state == state)
			return;
		wait_readable(b);
	}
}

/* The other end was closed: nothing of it is kept. */
static void expect_hung_up(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, 0);

	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
	close(fd);
}

static void test_packets_come_whole_and_in_order(void **state)
{
	struct bed b;
	char text[64];
	int fd;

	(void)state;
	set_up(&b, NULL, 0, 0);
	fd = dial_and_greet(&b);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "packet %d", i);
		assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
		if (i % 7 == 6)
			for (int k = i - 6; k <= i; k++) {
				struct gvisor_packet p = next_packet(&b);

				snprintf(text, sizeof(text), "packet %d", k);
				assert_int_equal(p.bytes.n, strlen(text));
				assert_memory_equal(p.bytes.p, text, p.bytes.n);
				assert_true(p.boot_ns > 0);
			}
	}
	for (int k = 994; k < 1000; k++)
		next_packet(&b);
	close(fd);
	wait_state(&b, GVISOR_SINK_CLOSED);
	assert_int_equal(stats_of(&b).packets, 1000);
	tear_down(&b);
}

/* Large packets of sizes that do not divide the ring: it wraps many times, and is often full. */
static void test_ring_wraps_and_fills(void **state)
{
	size_t total = 0, n = 1;
	struct bed b;
	pid_t pid;
	int fd;

	(void)state;
	set_up(&b, NULL, 1 << 20, 0);
	fd = dial_and_greet(&b);
	pid = fork();
	if (pid == 0) {
		char *big = malloc(200000);

		for (size_t i = 0; i < 400; i++) {
			size_t k = i * 7919 % 190000 + 1;

			memset(big, (int)(i & 0xff), k);
			if (send(fd, big, k, 0) != (ssize_t)k)
				_exit(1);
		}
		_exit(0);
	}
	close(fd);
	while (stats_of(&b).full == 0) /* nobody reads: it must stop by itself */
		wait_readable(&b);
	for (size_t i = 0; i < 400; i++) {
		struct gvisor_packet p = next_packet(&b);

		n = i * 7919 % 190000 + 1;
		assert_int_equal(p.bytes.n, n);
		assert_int_equal((unsigned char)p.bytes.p[0], i & 0xff);
		assert_int_equal((unsigned char)p.bytes.p[n - 1], i & 0xff);
		total += n;
	}
	wait_state(&b, GVISOR_SINK_CLOSED);
	assert_int_equal(stats_of(&b).bytes, total);
	tear_down(&b);
}

static void test_nobody_else_may_connect(void **state)
{
	struct bed b;
	int fd;

	(void)state;
	set_up(&b, "of-somebody-else", 0, 0);
	fd = dial(&b);
	assert_true(fd >= 0);
	expect_hung_up(fd);
	assert_int_equal(stats_of(&b).strangers, 1);
	assert_int_equal(stats_of(&b).state, GVISOR_SINK_WAITING);
	tear_down(&b);
}

static void test_a_thousand_connections(void **state)
{
	int fd, refused = 0, closed = 0;
	struct bed b;

	(void)state;
	set_up(&b, NULL, 0, 0);
	fd = dial_and_greet(&b);
	for (int i = 0; i < 1000; i++) {
		int other = dial(&b);

		if (other < 0) {
			refused++;
			continue;
		}
		expect_hung_up(other);
		closed++;
	}
	assert_int_equal(stats_of(&b).strangers, GVISOR_STRANGERS_MAX);
	assert_in_range(closed, GVISOR_STRANGERS_MAX, GVISOR_STRANGERS_MAX + GVISOR_BACKLOG + 1);
	assert_int_equal(refused + closed, 1000);
	/* the first one goes on */
	assert_int_equal(send(fd, "x", 1, 0), 1);
	assert_int_equal(next_packet(&b).bytes.n, 1);
	close(fd);
	tear_down(&b);
}

static void bad_hello(const void *p, size_t n)
{
	struct bed b;
	int fd;

	set_up(&b, NULL, 0, 200);
	fd = dial(&b);
	assert_true(fd >= 0);
	if (n)
		assert_int_equal(send(fd, p, n, 0), (ssize_t)n);
	expect_hung_up(fd);
	wait_state(&b, GVISOR_SINK_CLOSED);
	assert_int_equal(stats_of(&b).bad_hello, 1);
	tear_down(&b);
}

static void test_bad_hellos(void **state)
{
	static const char big[4096];

	(void)state;
	bad_hello(NULL, 0); /* none at all */
	bad_hello("\x08\x02", 2);
	bad_hello("\x08", 1);
	bad_hello("GET / HTTP/1.1", 14);
	bad_hello(big, sizeof(big));
}

static void test_closing_early(void **state)
{
	struct bed b;
	int fd;

	(void)state;
	set_up(&b, NULL, 0, 0);
	close(dial(&b));
	wait_state(&b, GVISOR_SINK_CLOSED);
	assert_int_equal(stats_of(&b).bad_hello, 1);
	fd = dial(&b); /* there is no second chance */
	assert_true(fd >= 0);
	expect_hung_up(fd);
	tear_down(&b);
}

/* Larger than any buffer of a sender is by default: it is dropped, and counted. */
static void test_oversize(void **state)
{
	size_t n = SECCHECK_PACKET_MAX + 1;
	int size = 1 << 20, fd;
	char *big = calloc(1, n);
	struct bed b;

	(void)state;
	set_up(&b, NULL, 0, 0);
	fd = dial_and_greet(&b);
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0) {
		close(fd);
		free(big);
		tear_down(&b);
		print_message("larger socket buffers are root's: not tried\n");
		skip();
	}
	assert_int_equal(send(fd, big, n, 0), (ssize_t)n);
	assert_int_equal(send(fd, big, n - 1, 0), (ssize_t)n - 1);
	assert_int_equal(next_packet(&b).bytes.n, n - 1);
	assert_int_equal(stats_of(&b).oversize, 1);
	close(fd);
	free(big);
	tear_down(&b);
}

/* ---- what root waits for ---- */

static const char good[] = "SESSIONS (1)\n\"Default\"\n\tSink: \"remote\", dropped: 0\n";

static int gate(struct bed *b, const char *sessions, struct err *err)
{
	const struct sandbox_guest *view = gvisor_guest_view(b->guest);

	return view->gate(view->arg, sessions, strlen(sessions), err);
}

static void wait_closed(struct bed *b)
{
	bool closed;

	for (;;) {
		struct pollfd pfd = { .fd = gvisor_guest_fd(b->guest), .events = POLLIN };
		struct gvisor_packet p;

		while (b->sink && gvisor_sink_next(b->sink, &p))
			;
		gvisor_guest_has_started(b->guest, &closed);
		if (closed)
			return;
		poll(&pfd, 1, 1);
	}
}

static void test_gate(void **state)
{
	struct err err = { 0 };
	bool closed;
	struct bed b;
	int fd;

	(void)state;
	set_up(&b, NULL, 0, 0);
	/* gVisor went on without us */
	assert_int_equal(gate(&b, good, &err), -ETIMEDOUT);
	fd = dial_and_greet(&b);
	assert_int_equal(gate(&b, good, &err), 0);
	assert_int_equal(gate(&b, "SESSIONS (0)\n", &err), -ENOENT);
	/* and no event has come */
	assert_false(gvisor_guest_has_started(b.guest, &closed));
	assert_false(closed);
	gvisor_sink_tell(b.sink, GVISOR_NEWS_STARTED, 0);
	assert_true(gvisor_guest_has_started(b.guest, &closed));
	assert_false(closed);
	close(fd);
	wait_closed(&b);
	tear_down(&b);
}

static void test_gate_of_one_that_went(void **state)
{
	struct err err = { 0 };
	struct bed b;

	(void)state;
	set_up(&b, NULL, 0, 0);
	close(dial(&b));
	wait_closed(&b);
	assert_int_equal(gate(&b, good, &err), -EPIPE);
	tear_down(&b);
	set_up(&b, NULL, 0, 0);
	gvisor_sink_free(take_ptr(b.sink)); /* the engine is gone */
	assert_int_equal(gate(&b, good, &err), -EPIPE);
	wait_closed(&b);
	tear_down(&b);
}

static void test_trace_list(void **state)
{
	struct err err = { 0 };
	uint64_t n = 7;

	(void)state;
	assert_int_equal(
		gvisor_trace_list_parse(
			STR("SESSIONS (1)\n\"Default\"\n\tSink: \"remote\", dropped: 12\n"), &n,
			&err),
		0);
	assert_int_equal(n, 12);
	assert_int_equal(gvisor_trace_list_parse(STR(""), &n, &err), -ENOENT);
	assert_int_equal(gvisor_trace_list_parse(STR("SESSIONS (0)\n"), &n, &err), -ENOENT);
	assert_int_equal(gvisor_trace_list_parse(STR("SESSIONS (1)\n\"Other\"\n"), &n, &err),
			 -ENOENT);
	assert_int_equal(gvisor_trace_list_parse(STR("SESSIONS (1)\n\"Default\"\n"), &n, &err),
			 -ENOENT);
	assert_int_equal(
		gvisor_trace_list_parse(
			STR("SESSIONS (1)\n\"Default\"\n\tSink: \"null\", dropped: 0\n"), &n, &err),
		-ENOENT);
	assert_int_equal(gvisor_trace_list_parse(
				 STR("SESSIONS (1)\n\"Default\"\n\tSink: \"remote\", dropped: x\n"),
				 &n, &err),
			 -EBADMSG);
	assert_int_equal(n, 12);
}

static void test_directory_is_ours_alone(void **state)
{
	struct gvisor_guest *g = NULL;
	char dir[] = "/tmp/sink-XXXXXX", sub[64];
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/g", dir);
	assert_int_equal(gvisor_guest_new(&g, dir, 0, &err), -EEXIST); /* somebody else's */
	assert_int_equal(access(dir, F_OK), 0);
	assert_int_equal(gvisor_guest_new(&g, sub, 0, &err), 0);
	assert_int_equal(stat(sub, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(gvisor_guest_view(g)->sink, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_non_null(strstr(gvisor_guest_view(g)->pod_init, "\"" SANDBOX_GUEST_SINK "\""));
	gvisor_guest_free(g);
	assert_int_equal(rmdir(dir), 0);
}

static void test_sweep(void **state)
{
	char dir[] = "/tmp/sink-XXXXXX", live[64], dead[64];
	struct gvisor_guest *g = NULL, *other = NULL;
	struct err err = { 0 };
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(live, sizeof(live), "%s/live", dir);
	snprintf(dead, sizeof(dead), "%s/dead", dir);
	assert_int_equal(gvisor_guest_new(&g, live, 0, &err), 0);
	pid = fork();
	if (pid == 0)
		_exit(gvisor_guest_new(&other, dead, 0, &err) != 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(access(dead, F_OK), 0);
	assert_int_equal(gvisor_guest_sweep(dir), 1);
	assert_int_equal(access(dead, F_OK), -1);
	assert_int_equal(access(live, F_OK), 0);
	gvisor_guest_free(g);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(gvisor_guest_sweep(dir), 0);
}

/* They wait for who sweeps, and not for each other. */
static void test_many_are_made_at_once(void **state)
{
	char dir[] = "/tmp/sink-XXXXXX", sub[64];
	struct gvisor_guest *g = NULL;
	struct err err = { 0 };
	int maker;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/g", dir);
	maker = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(maker, LOCK_SH), 0);
	alarm(PATIENCE_MS / 1000); /* else it would hang */
	assert_int_equal(gvisor_guest_new(&g, sub, 0, &err), 0);
	alarm(0);
	gvisor_guest_free(g);
	close(maker);
	assert_int_equal(rmdir(dir), 0);
}

static void test_points(void **state)
{
	auto_buf struct buf json = { 0 };

	(void)state;
	assert_int_equal(gvisor_points_json(&json, "/run/\"x/sink.sock"), 0);
	assert_int_equal(buf_addc(&json, 0), 0);
	assert_non_null(strstr(json.p, "\"endpoint\":\"/run/\\\"x/sink.sock\""));
	assert_non_null(strstr(json.p, "\"ignore_setup_error\":false"));
	assert_non_null(strstr(json.p, "\"syscall/sysno/59/enter\""));
	assert_null(strstr(json.p, "\"syscall/sysno/59/exit\""));
	/* the exit of a raw call takes its context from the enter */
	assert_non_null(strstr(json.p, "\"syscall/sysno/82/enter\""));
	assert_non_null(strstr(json.p, "\"syscall/sysno/82/exit\""));
	assert_true(gvisor_points_raw(82));
	assert_false(gvisor_points_raw(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packets_come_whole_and_in_order),
		cmocka_unit_test(test_ring_wraps_and_fills),
		cmocka_unit_test(test_nobody_else_may_connect),
		cmocka_unit_test(test_a_thousand_connections),
		cmocka_unit_test(test_bad_hellos),
		cmocka_unit_test(test_closing_early),
		cmocka_unit_test(test_oversize),
		cmocka_unit_test(test_gate),
		cmocka_unit_test(test_gate_of_one_that_went),
		cmocka_unit_test(test_trace_list),
		cmocka_unit_test(test_directory_is_ours_alone),
		cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_many_are_made_at_once),
		cmocka_unit_test(test_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
