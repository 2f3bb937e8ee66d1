// SPDX-License-Identifier: Apache-2.0
#include "userspace/scenarios/payload/payload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

#define WAIT_S 30 /* for a kill that user space decides: it is there in milliseconds */

int words_n;
char **words;
static bool waits;

static const struct attempt *const tables[] = { mount_attempts, kernel_attempts, file_attempts,
						net_attempts, abuse_attempts };
#define TABLES (sizeof(tables) / sizeof(tables[0]))

unsigned long long word_u64(int i, unsigned long long otherwise)
{
	return i < words_n ? strtoull(words[i], NULL, 10) : otherwise;
}

/* ---- what came of it ---- */

/* One write a line: it may be the last that this process does. */
static void say(const char *verdict, int e, const char *what, va_list ap)
{
	const char *name = e ? strerrorname_np(e) : "-";
	char line[600];
	int n, m;

	n = snprintf(line, sizeof(line), "step %s %s ", verdict, name ? name : "?");
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, what, ap);
	if (m > (int)sizeof(line) - n - 2)
		m = (int)sizeof(line) - n - 2;
	line[n + m] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)(n + m + 1)) < 0)
		_exit(3);
}

/* What a wall answers. Every other error is the kernel's on the arguments, behind the walls. */
static const char *verdict_of(int e)
{
	switch (e) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case ENOTDIR:
		return "absent";
	case EPERM:
	case EACCES:
	case EROFS:
	case ENOSYS:
	case ESRCH:
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case ENOMEM:
	case ETXTBSY:
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case ECONNREFUSED:
	case ECONNRESET:
	case ETIMEDOUT:
	case EAFNOSUPPORT:
	case EPFNOSUPPORT:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
	case EOPNOTSUPP:
		return "blocked";
	}
	return "open";
}

bool tried(long r, const char *what, ...)
{
	int e = r < 0 ? errno : 0;
	const char *verdict = e ? verdict_of(e) : "open";
	va_list ap;

	va_start(ap, what);
	say(verdict, e, what, ap);
	va_end(ap);
	return !strcmp(verdict, "open");
}

void blocked(bool is, const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	say(is ? "blocked" : "open", 0, what, ap);
	va_end(ap);
}

bool did(long r, const char *what, ...)
{
	int e = r < 0 ? errno : 0;
	va_list ap;

	va_start(ap, what);
	say(r < 0 ? "cannot" : "did", e, what, ap);
	va_end(ap);
	return r >= 0;
}

void absent(const char *what)
{
	errno = ENOENT;
	tried(-1, "%s", what);
}

/* ---- steps that many take ---- */

void try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);

	tried(fd, "open %s", path);
	if (fd >= 0)
		close(fd);
}

void try_rewrite(const char *path)
{
	char now[4096];
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		n = read(fd, now, sizeof(now));
		close(fd);
	}
	fd = open(path, O_WRONLY | O_CLOEXEC);
	tried(fd, "open %s for writing", path);
	if (fd < 0)
		return;
	if (n > 0)
		tried(write(fd, now, (size_t)n), "write %s as it is", path);
	close(fd);
}

void try_read(const char *path)
{
	char b[64];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0) {
		tried(-1, "read %s", path);
		return;
	}
	n = read(fd, b, sizeof(b));
	if (n < 0)
		tried(-1, "read %s", path);
	else
		blocked(n == 0, "read %s: %s", path, n ? "something" : "nothing");
	close(fd);
}

int try_connect(const char *ip, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	bool six = strchr(ip, ':') != NULL;
	int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(int);
	int r, e = 0;

	inet_pton(six ? AF_INET6 : AF_INET, ip,
		  six ? (void *)&in6.sin6_addr : (void *)&in.sin_addr);
	r = six ? connect(fd, (void *)&in6, sizeof(in6)) : connect(fd, (void *)&in, sizeof(in));
	if (r < 0 && errno == EINPROGRESS) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		e = ETIMEDOUT;
		if (poll(&p, 1, 1000) > 0)
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len);
		r = e ? -1 : 0;
		errno = e;
	}
	e = r < 0 ? -errno : 0;
	tried(r, "connect %s port %d", ip, port);
	close(fd);
	return e;
}

int copy_self(const char *to)
{
	int from = open(SELF, O_RDONLY | O_CLOEXEC);
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	struct stat st;
	int r = 0;

	if (from < 0 || fd < 0 || fstat(from, &st) < 0)
		r = -errno;
	for (off_t at = 0; r == 0 && at < st.st_size;)
		if (sendfile(fd, from, &at, (size_t)(st.st_size - at)) <= 0)
			r = -EIO;
	if (from >= 0)
		close(from);
	if (fd >= 0)
		close(fd);
	errno = -r;
	return r;
}

static int wait_for(pid_t pid)
{
	int st = 0;

	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

int run(const char *path, char *const argv[])
{
	int told[2], e = 0, r;
	pid_t pid;

	if (pipe2(told, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		execvp(path, argv);
		e = errno;
		if (write(told[1], &e, sizeof(e)) < 0)
			_exit(4);
		_exit(127);
	}
	close(told[1]);
	r = pid < 0 ? -errno : wait_for(pid);
	if (read(told[0], &e, sizeof(e)) == sizeof(e))
		r = -e;
	close(told[0]);
	errno = r < 0 ? -r : 0;
	return r;
}

int in_child(int (*fn)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn() & 255);
	return pid < 0 ? -errno : wait_for(pid);
}

bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* ---- which ---- */

static const struct attempt *find(const char *id)
{
	for (size_t t = 0; t < TABLES; t++)
		for (const struct attempt *a = tables[t]; a->id; a++)
			if (!strcmp(a->id, id))
				return a;
	return NULL;
}

static int act(const char *id, bool twin)
{
	const struct attempt *a = find(id);

	if (!a || (twin && !a->twin)) {
		dprintf(STDERR_FILENO, "payload: no such scenario: %s\n", id);
		return 2;
	}
	(twin ? a->twin : a->run)();
	if (waits)
		sleep(WAIT_S);
	if (write(STDOUT_FILENO, "end\n", 4) != 4)
		return 3;
	return 0;
}

/* Each is a process of its own and called by its name, so that what is told of it can be told apart. */
static int all_twins(void)
{
	char *argv[] = { "payload", NULL, "twin", NULL };

	for (size_t t = 0; t < TABLES; t++)
		for (const struct attempt *a = tables[t]; a->id; a++) {
			pid_t pid;

			if (!a->twin)
				continue;
			argv[1] = (char *)a->id;
			dprintf(STDOUT_FILENO, "twin %s\n", a->id);
			pid = fork();
			if (pid == 0) {
				execv(SELF, argv);
				_exit(127);
			}
			if (pid < 0 || wait_for(pid) != 0)
				dprintf(STDOUT_FILENO, "step cannot - %s: twin did not end well\n",
					a->id);
		}
	dprintf(STDOUT_FILENO, "end\n");
	return 0;
}

int main(int argc, char **argv)
{
	const char *base = strrchr(argv[0], '/');

	base = base ? base + 1 : argv[0];
	if (!strcmp(base, "nothing") || base[0] == '[') /* a copy that was run as something else */
		return 0;
	if (!strcmp(base, "whoami")) /* has it gained anything? */
		return geteuid() == 0 || geteuid() != getuid();
	if (argc > 2 && !strcmp(argv[1], "-w")) {
		waits = true;
		argv++;
		argc--;
	}
	if (argc < 2) {
		dprintf(STDERR_FILENO, "usage: payload [-w] P01 ... P60 [twin] | twins\n");
		return 2;
	}
	if (!strcmp(argv[1], "twins"))
		return all_twins();
	words = argv + 2;
	words_n = argc - 2;
	return act(argv[1], argc > 2 && !strcmp(argv[2], "twin"));
}
