// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/keeper/keeper.h"

#include <linux/close_range.h>
#include <linux/errno.h>
#include <asm/signal.h>

#define LOG_TAIL 4096
#define FD_SAFE	 20 /* descriptors move here first, so that none is overwritten on its way */

static void child(char *const *argv, const int *from, size_t n)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *const env[] = { path, NULL };
	uint64_t none = 0;
	int fd[5];

	for (size_t i = 0; i < n; i++) {
		fd[i] = from[i];
		if (fd[i] >= 0)
			fd[i] = (int)SYS(fcntl, fd[i], F_DUPFD_CLOEXEC, FD_SAFE, 0, 0, 0);
		if (from[i] >= 0 && fd[i] < 0)
			exit_now(125);
	}
	for (int i = 0; i < (int)n; i++) {
		int to = i < 3 ? i : GVISOR_EXEC_FD + i - 3;

		if (fd[i] < 0)
			SYS(close, to, 0, 0, 0, 0, 0);
		else if (SYS(dup3, fd[i], to, 0, 0, 0, 0) < 0)
			exit_now(125);
	}
	SYS(close, INIT_CONTROL_FD, 0, 0, 0, 0, 0);
	SYS(close_range, GVISOR_BEGUN_FD + 1, ~0u, 0, 0, 0, 0);
	SYS(rt_sigprocmask, SIG_SETMASK, &none, 0, SIGSET_SIZE, 0, 0);
	SYS(execve, GVISOR_RUNSC, argv, env, 0, 0, 0);
	exit_now(125);
}

long runsc_spawn(char *const *argv, const int *stdio, int process, int begun)
{
	const int from[] = { stdio[0], stdio[1], stdio[2], process, begun };
	long pid = SYS(clone, SIGCHLD, 0, 0, 0, 0, 0);

	if (pid == 0)
		child(argv, from, sizeof(from) / sizeof(from[0]));
	return pid;
}

long file_text(const char *path, char *to, size_t max)
{
	long fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0, 0, 0), n = 0;
	size_t have = 0;

	if (fd < 0)
		return fd;
	while (have < max - 1) {
		n = SYS(read, fd, to + have, max - 1 - have, 0, 0, 0);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	SYS(close, fd, 0, 0, 0, 0, 0);
	to[have] = 0;
	return n < 0 ? n : (long)have;
}

int runsc_error(const char *text, size_t n)
{
	static const struct {
		const char *words;
		int code;
	} known[] = {
		{ "exec format error", ENOEXEC }, { "permission denied", EACCES },
		{ "is a directory", EACCES },	  { "no such file or directory", ENOENT },
		{ "not a directory", ENOENT },
	};
	size_t k;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!text_find(text, n, known[i].words, &k))
			return known[i].code;
	return EIO;
}

/* The log is JSON, an object a line; the last message is what went wrong. */
size_t runsc_last_words(char *to, size_t max)
{
	static char text[TEXT_MAX];
	long n = file_text(GVISOR_LOG, text, sizeof(text));
	size_t at = 0, k, have = 0;

	if (n <= 0)
		return 0;
	while (!text_find(text + at, (size_t)n - at, "\"msg\":\"", &k))
		at += k;
	for (; at < (size_t)n && have < max - 1 && text[at] != '"'; at++) {
		if (text[at] == '\\' && at + 1 < (size_t)n)
			at++;
		to[have++] = (unsigned char)text[at] < 32 ? '?' : text[at];
	}
	to[have] = 0;
	return have;
}
