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

int sentry_ask(int fd, const char *method, const char *arg)
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
	r = SYS(sendto, fd, text, n, MSG_NOSIGNAL, 0, 0);
	return r == (long)n ? 0 : r < 0 ? (int)r : -EIO;
}

/* An answer is one JSON object: it is complete when its braces are, strings aside. */
static int is_whole(const char *text, size_t n)
{
	int depth = 0, quoted = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && (c == '{' || c == '['))
			depth++;
		else if (!quoted && (c == '}' || c == ']') && --depth <= 0)
			return 1;
	}
	return 0;
}

long sentry_answer(int fd, char *to, size_t max, int timeout_ms)
{
	struct __kernel_timespec left = { .tv_sec = timeout_ms / 1000,
					  .tv_nsec = timeout_ms % 1000 * 1000000L };
	size_t have = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long r = SYS(ppoll, &p, 1, &left, 0, 0, 0); /* the kernel counts it down */

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? r : -EAGAIN;
		r = SYS(recvfrom, fd, to + have, max - 1 - have, MSG_DONTWAIT, 0, 0);
		if (r == -EAGAIN || r == -EINTR)
			continue;
		if (r <= 0)
			return r == -ECONNRESET ? 0 : r;
		have += (size_t)r;
		to[have] = 0;
		if (is_whole(to, have))
			return (long)have;
		if (have == max - 1)
			return -EMSGSIZE;
	}
}

int sentry_result(const char *text, size_t n, size_t *ret_at)
{
	size_t k;

	if (text_find(text, n, "\"success\":true", &k) || text_find(text, n, "\"result\":", ret_at))
		return -EPROTO;
	return 0;
}
