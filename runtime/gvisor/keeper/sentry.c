// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/keeper/keeper.h"

#include <linux/errno.h>
#include <linux/poll.h>
#include <linux/socket.h>
#include <linux/un.h>

#define SOCK_STREAM  1
#define SOCK_CLOEXEC 02000000
#define AF_UNIX	     1
#define ACCEPTS	     "00010000" /* __SO_ACCEPTCON, as /proc/net/unix writes it */

/* Where the sentry listens differs between versions (abstract, or a file of --root): the kernel tells. In this network
 * namespace there is no other socket with this id in its name. */
int sentry_find(struct sentry *s, const char *id)
{
	static char text[TEXT_MAX];
	long n = file_text("/proc/net/unix", text, sizeof(text));
	size_t at = 0, end;

	if (n < 0)
		return (int)n;
	for (; at < (size_t)n; at = end + 1) {
		size_t k, name;

		for (end = at; end < (size_t)n && text[end] != '\n'; end++)
			;
		if (text_find(text + at, end - at, " " ACCEPTS " ", &k) ||
		    text_find(text + at, end - at, id, &k))
			continue;
		for (name = end; name > at && text[name - 1] != ' '; name--)
			;
		s->name_n = end - name;
		if (!s->name_n || s->name_n >= sizeof(s->name))
			continue;
		copy(s->name, text + name, s->name_n);
		if (s->name[0] != '@') {
			s->name[s->name_n++] = 0;
			return 0;
		}
		for (k = 0; k < s->name_n; k++)
			if (s->name[k] == '@')
				s->name[k] = 0;
		return 0;
	}
	return -ENOENT;
}

int sentry_dial(const struct sentry *s)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	long fd, r;

	if (s->name_n > sizeof(to.sun_path))
		return -ENAMETOOLONG;
	copy(to.sun_path, s->name, s->name_n);
	fd = SYS(socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return (int)fd;
	r = SYS(connect, fd, &to, offsetof(struct sockaddr_un, sun_path) + s->name_n, 0, 0, 0);
	if (r < 0)
		SYS(close, fd, 0, 0, 0, 0, 0);
	return (int)(r < 0 ? r : fd);
}

static size_t put(char *to, size_t at, size_t max, const char *z)
{
	size_t n = length(z, max);

	if (at + n > max)
		return max + 1;
	copy(to + at, z, n);
	return at + n;
}

int sentry_ask(int fd, const char *method, const char *arg, int pass)
{
	char text[1024];
	size_t n = put(text, 0, sizeof(text), "{\"method\":\"");
	long r;

	n = put(text, n, sizeof(text), method);
	n = put(text, n, sizeof(text), "\",\"arg\":");
	n = put(text, n, sizeof(text), arg);
	n = put(text, n, sizeof(text), "}");
	if (n > sizeof(text))
		return -E2BIG;
	r = process1_send_to(fd, text, n, pass);
	return r == (long)n ? 0 : r < 0 ? (int)r : -EIO;
}

/* An answer is one JSON object: it is complete when its braces are, strings aside. It comes in pieces. */
struct braces {
	int depth, quoted, escaped;
};

static int is_whole(struct braces *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (b->escaped)
			b->escaped = 0;
		else if (b->quoted && c == '\\')
			b->escaped = 1;
		else if (c == '"')
			b->quoted = !b->quoted;
		else if (!b->quoted && (c == '{' || c == '['))
			b->depth++;
		else if (!b->quoted && (c == '}' || c == ']') && --b->depth <= 0)
			return 1;
	}
	return 0;
}

/* What has come, at least one byte; 0 when the sentry is gone. The kernel counts `left` down. */
static long receive(int fd, char *to, size_t max, struct __kernel_timespec *left)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long r = SYS(ppoll, &p, 1, left, 0, 0, 0);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? r : -EAGAIN;
		r = SYS(recvfrom, fd, to, max, MSG_DONTWAIT, 0, 0);
		if (r == -EAGAIN || r == -EINTR)
			continue;
		return r == -ECONNRESET ? 0 : r;
	}
}

static struct __kernel_timespec time_of(int ms)
{
	return (struct __kernel_timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
}

long sentry_answer(int fd, char *to, size_t max, int timeout_ms)
{
	struct __kernel_timespec left = time_of(timeout_ms);
	struct braces b = { 0 };
	size_t have = 0;

	while (have < max - 1) {
		long r = receive(fd, to + have, max - 1 - have, &left);

		if (r <= 0)
			return r;
		have += (size_t)r;
		to[have] = 0;
		if (is_whole(&b, to + have - r, (size_t)r))
			return (long)have;
	}
	return -EMSGSIZE;
}

long sentry_copy(int fd, int to, size_t max, int timeout_ms)
{
	struct __kernel_timespec left = time_of(timeout_ms);
	static char piece[TEXT_MAX];
	struct braces b = { 0 };
	size_t have = 0, k;

	for (;;) {
		long r = receive(fd, piece, sizeof(piece), &left);

		if (r <= 0)
			return r < 0 ? r : -ECONNRESET;
		/* Its first member; an error's text comes behind it. */
		if (!have && text_find(piece, (size_t)r, "{\"success\":true", &k))
			return -EPROTO;
		have += (size_t)r;
		if (have > max)
			return -EMSGSIZE;
		if (SYS(write, to, piece, r, 0, 0, 0) != r)
			return -EIO;
		if (is_whole(&b, piece, (size_t)r))
			return (long)have;
	}
}

int sentry_result(const char *text, size_t n, size_t *ret_at)
{
	size_t k;

	if (text_find(text, n, "\"success\":true", &k) || text_find(text, n, "\"result\":", ret_at))
		return -EPROTO;
	return 0;
}

static size_t put_number(char *to, size_t at, size_t max, long v)
{
	char digits[24];
	size_t d = sizeof(digits);

	digits[--d] = 0;
	do {
		digits[--d] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	return put(to, at, max, digits + d);
}

void sentry_signal(const struct sentry *s, const char *id, long pid, int sig, int all)
{
	char arg[256], answer[1024];
	size_t n = put(arg, 0, sizeof(arg), "{\"CID\":\"");
	int fd;

	n = put(arg, n, sizeof(arg), id);
	n = put(arg, n, sizeof(arg), "\",\"Signo\":");
	n = put_number(arg, n, sizeof(arg), sig);
	n = put(arg, n, sizeof(arg), ",\"PID\":");
	n = put_number(arg, n, sizeof(arg), pid);
	n = put(arg, n, sizeof(arg), all ? ",\"Mode\":1}" : ",\"Mode\":0}");
	if (n >= sizeof(arg))
		return;
	arg[n] = 0;
	fd = sentry_dial(s);
	if (fd < 0)
		return;
	if (sentry_ask(fd, MANAGER "Signal", arg, -1) == 0)
		sentry_answer(fd, answer, sizeof(answer), SIGNAL_MS);
	SYS(close, fd, 0, 0, 0, 0, 0);
}
