// SPDX-License-Identifier: Apache-2.0
/* Processes of the guest that are written down, and go on here or in another sandbox. GVisor's own stop is not kept with
 * them: restored ones would run before anybody has looked. A SIGSTOP is. */
#include "runtime/gvisor/keeper/keeper.h"

#include <linux/errno.h>
#include <asm/signal.h>

#define PROCESSES_MAX (16u << 20) /* bytes of what is told of them */

int checkpoint_begin(const struct sentry *s, const char *id, int to)
{
	int fd, r;

	sentry_signal(s, id, 0, SIGSTOP, 1);
	fd = sentry_dial(s);
	if (fd < 0)
		return fd;
	/* Else the sentry ends with what it has written, even where that failed. */
	r = sentry_ask(fd, MANAGER "Checkpoint", "{\"Resume\":true}", to);
	if (r < 0)
		SYS(close, fd, 0, 0, 0, 0, 0);
	return r < 0 ? r : fd;
}

/* The text of an answer's error. */
static void copy_error(const char *text, size_t n, char *why, size_t max)
{
	size_t at, have = 0;

	if (text_find(text, n, "\"err\":\"", &at))
		at = n;
	for (; at < n && have < max - 1 && text[at] != '"' && text[at] != '\\'; at++)
		why[have++] = text[at];
	why[have] = 0;
}

static long result(int fd, int timeout_ms, char *why, size_t max)
{
	static char answer[TEXT_MAX];
	long n = sentry_answer(fd, answer, sizeof(answer), timeout_ms);
	size_t at;

	why[0] = 0;
	if (n <= 0)
		return n ? n : -ECONNRESET;
	if (sentry_result(answer, (size_t)n, &at) == 0)
		return 0;
	copy_error(answer, (size_t)n, why, max);
	return -EIO;
}

long checkpoint_end(int fd, char *why, size_t max)
{
	return result(fd, SIGNAL_MS, why, max);
}

void checkpoint_go_on(const struct sentry *s, const char *id)
{
	sentry_signal(s, id, 0, SIGCONT, 1);
}

long checkpoint_restore(const struct sentry *s, int from, char *why, size_t max)
{
	int fd = sentry_dial(s);
	long r = fd;

	why[0] = 0;
	if (fd < 0)
		return r;
	r = sentry_ask(fd, MANAGER "Restore", "{}", from);
	if (r == 0)
		r = result(fd, ANSWER_MS, why, max);
	SYS(close, fd, 0, 0, 0, 0, 0);
	return r;
}

int checkpoint_processes(const struct sentry *s)
{
	long to = SYS(memfd_create, "processes", 1 /* MFD_CLOEXEC */, 0, 0, 0, 0), r = to;
	int fd = to < 0 ? -1 : sentry_dial(s);

	if (to >= 0)
		r = fd < 0 ? fd : sentry_ask(fd, MANAGER "ProcfsDump", "null", -1);
	if (r == 0)
		r = sentry_copy(fd, (int)to, PROCESSES_MAX, ANSWER_MS);
	if (fd >= 0)
		SYS(close, fd, 0, 0, 0, 0, 0);
	if (r < 0 && to >= 0)
		SYS(close, to, 0, 0, 0, 0, 0);
	return r < 0 ? (int)r : (int)to;
}
