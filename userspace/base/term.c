// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/term.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "userspace/base/auto.h"

static const int CRASHES[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };

static struct {
	int fd;
	pid_t pid; /* a child that exits must not restore what its parent still uses */
	volatile sig_atomic_t raw;
	struct termios before, wanted;
	int reset_fd;
	const char *reset;
} term;

static void on_crash(int sig)
{
	term_restore();
	raise(sig); /* the handler is reset already: ends us as without it */
}

static void catch_crashes(void)
{
	static bool at_exit;
	struct sigaction sa = { .sa_handler = on_crash,
				.sa_flags = (int)(SA_RESETHAND | SA_NODEFER) };

	for (size_t i = 0; i < ARRAY_SIZE(CRASHES); i++) {
		struct sigaction old;

		/* a sanitizer's own handler has more to say */
		if (sigaction(CRASHES[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			sigaction(CRASHES[i], &sa, NULL);
	}
	if (!at_exit)
		at_exit = atexit(term_restore) == 0;
}

int term_raw(int fd)
{
	if (term.raw)
		return -EBUSY;
	if (tcgetattr(fd, &term.before) < 0)
		return -ENOTTY;
	catch_crashes();
	term.wanted = term.before;
	cfmakeraw(&term.wanted);
	term.wanted.c_cc[VMIN] = 1;
	term.wanted.c_cc[VTIME] = 0;
	term.fd = fd;
	term.pid = getpid();
	term.reset = NULL;
	term.raw = 1;
	if (tcsetattr(fd, TCSANOW, &term.wanted) < 0) {
		term.raw = 0;
		return -errno;
	}
	return 0;
}

void term_raw_again(void)
{
	if (term.raw)
		tcsetattr(term.fd, TCSANOW, &term.wanted);
}

bool term_is_raw(void)
{
	return term.raw;
}

void term_on_restore(int fd, const char *bytes)
{
	term.reset_fd = fd;
	term.reset = bytes;
}

void term_restore(void)
{
	int e = errno;

	if (!term.raw || term.pid != getpid())
		return;
	term.raw = 0;
	if (term.reset)
		(void)!write(term.reset_fd, term.reset, strlen(term.reset));
	/* The flush apart: TCSAFLUSH would wait for output that a stopped terminal does not take. */
	tcflush(term.fd, TCIFLUSH);
	tcsetattr(term.fd, TCSANOW, &term.before);
	errno = e;
}

int term_size(int fd, uint16_t *ret_rows, uint16_t *ret_cols)
{
	struct winsize ws;

	if (ioctl(fd, TIOCGWINSZ, &ws) < 0)
		return -ENOTTY;
	*ret_rows = ws.ws_row;
	*ret_cols = ws.ws_col;
	return 0;
}
