// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/console.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/term.h"
#include "userspace/store/terminal.h"

#define READ_MAX   4096
#define RETRY_MS   500 /* a pty that is full does not always tell when it has room */
#define CTRL_C	   3
#define CTRL_SLASH 28

struct console {
	struct console_options opt;
	int slave;	/* held, so that the pty lives while no process has it open; -1 */
	int wake, tell; /* eventfds: for the thread, for the caller */
	pthread_t thread;
	bool started;
	atomic_bool stop, resized, frozen, interrupt, gone;
	bool in_closed;
	char queue[CONSOLE_QUEUE_MAX];
	size_t at, n;	   /* what waits: from `at` to `n` */
	uint64_t withheld; /* typed unseen, not told yet */
	struct buf packet;
};

/* ---- to the recorder ---- */

static void record(struct console *c, struct terminal_record *rec)
{
	ssize_t w;

	rec->stream = TERMINAL_TTY;
	rec->mono = clock_boot_ns();
	buf_reset(&c->packet);
	if (c->opt.copy < 0 || terminal_record_encode(&c->packet, rec) < 0)
		return;
	do {
		w = send(c->opt.copy, c->packet.p, c->packet.n, MSG_NOSIGNAL);
	} while (w < 0 && errno == EINTR);
	if (w < 0)
		close(take_fd(c->opt.copy));
}

/* At once for all of it: when each key was struck says something about a password. */
static void tell_withheld(struct console *c)
{
	struct terminal_record rec = { .type = TERMINAL_WITHHELD, .bytes = c->withheld };

	if (c->withheld)
		record(c, &rec);
	c->withheld = 0;
}

static void record_input(struct console *c, const char *p, size_t n, bool seen)
{
	struct terminal_record rec = { .type = TERMINAL_INPUT, .data = { p, n } };

	if (!c->opt.record_input)
		return;
	if (!seen) {
		c->withheld += n;
		return;
	}
	tell_withheld(c);
	record(c, &rec);
}

/* ---- the size ---- */

static void pass_size(struct console *c)
{
	struct terminal_record rec = { .type = TERMINAL_RESIZE };
	struct winsize ws;

	if (ioctl(c->opt.in, TIOCGWINSZ, &ws) < 0)
		return;
	ioctl(c->opt.master, TIOCSWINSZ, &ws); /* tells the payload's foreground group */
	rec.rows = ws.ws_row;
	rec.cols = ws.ws_col;
	if (rec.rows && rec.cols)
		record(c, &rec);
}

/* ---- what is typed ---- */

static void raise_event(struct console *c, atomic_bool *what)
{
	atomic_store(what, true);
	eventfd_write(c->tell, 1);
}

/* A pty that takes nothing would hold ^C back with everything before it. The kernel's own rule for a full
 * terminal: the signal goes out, and what came before is dropped. Returns how much of the new bytes is. */
static size_t look_for_signals(struct console *c, const char *p, size_t n)
{
	struct termios t;
	size_t dropped = 0;

	if (atomic_load(&c->frozen))
		for (size_t i = 0; i < n; i++)
			if (p[i] == CTRL_C || p[i] == CTRL_SLASH)
				raise_event(c, &c->interrupt);
	if (c->at == c->n || tcgetattr(c->opt.master, &t) < 0 || !(t.c_lflag & ISIG))
		return 0;
	for (size_t i = 0; i < n; i++) {
		cc_t key = (cc_t)p[i];
		int sig = key == t.c_cc[VINTR]	 ? SIGINT
			  : key == t.c_cc[VQUIT] ? SIGQUIT
			  : key == t.c_cc[VSUSP] ? SIGTSTP
						 : 0;

		if (!sig || !key)
			continue;
		dropped = i + 1;
		ioctl(c->opt.master, TIOCSIG, sig);
	}
	return dropped;
}

static void read_keys(struct console *c)
{
	char *p = c->queue + c->n;
	size_t dropped;
	ssize_t n = read(c->opt.in, p, READ_MAX);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		c->in_closed = true;
		raise_event(c, &c->gone);
		return;
	}
	dropped = look_for_signals(c, p, (size_t)n);
	if (dropped)
		c->at = c->n + dropped;
	c->n += (size_t)n;
}

static bool echoes(const struct console *c)
{
	struct termios t;

	return tcgetattr(c->opt.master, &t) == 0 && t.c_lflag & ECHO;
}

/* Echo is decided on when the pty takes a byte, so that is when it is asked. */
static void pass_keys(struct console *c)
{
	bool seen = c->opt.record_input && echoes(c);
	const char *p = c->queue + c->at;
	ssize_t n = write(c->opt.master, p, MIN(c->n - c->at, (size_t)READ_MAX));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) { /* its terminal is gone */
		c->at = c->n;
		return;
	}
	if (c->opt.record_input && n)
		record_input(c, p, (size_t)n, seen && echoes(c));
	c->at += (size_t)n;
}

/* Is there room to read into? What waits moves to the front when there is not behind it. */
static bool has_room(struct console *c)
{
	if (c->at && (c->at == c->n || c->at >= sizeof(c->queue) / 2)) {
		memmove(c->queue, c->queue + c->at, c->n - c->at);
		c->n -= c->at;
		c->at = 0;
	}
	return sizeof(c->queue) - c->n >= READ_MAX;
}

static void *run(void *arg)
{
	struct console *c = arg;

	for (;;) {
		bool room = !c->in_closed && has_room(c), waits = c->at < c->n;
		struct pollfd fds[] = {
			{ .fd = c->wake, .events = POLLIN },
			{ .fd = room ? c->opt.in : -1, .events = POLLIN },
			{ .fd = waits ? c->opt.master : -1, .events = POLLOUT },
		};
		eventfd_t n;

		if (poll(fds, ARRAY_SIZE(fds), waits ? RETRY_MS : -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			eventfd_read(c->wake, &n);
		if (atomic_load(&c->stop))
			break;
		if (atomic_exchange(&c->resized, false))
			pass_size(c);
		if (fds[1].revents)
			read_keys(c);
		if (c->at < c->n)
			pass_keys(c);
	}
	tell_withheld(c);
	return NULL;
}

/* ---- for the caller ---- */

static int open_all(struct console *c)
{
	if (c->opt.copy >= 0) {
		c->opt.copy = fcntl(c->opt.copy, F_DUPFD_CLOEXEC, 3);
		if (c->opt.copy < 0)
			return -errno;
	}
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->tell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->slave = ioctl(c->opt.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return c->wake < 0 || c->tell < 0 || c->slave < 0 ? -errno : 0;
}

int console_start(struct console **ret, const struct console_options *opt, struct err *err)
{
	struct console *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(err, ENOMEM, "terminal: %m");
	c->opt = *opt;
	c->slave = c->wake = c->tell = -1;
	r = open_all(c);
	if (r == 0)
		r = term_raw(opt->in);
	if (r == 0) {
		log_set_newline(isatty(STDERR_FILENO) ? "\r\n" : "\n");
		pass_size(c);
		r = -pthread_create(&c->thread, NULL, run, c);
	}
	if (r < 0) {
		console_free(c, false);
		return err_set(err, r, "terminal: %m");
	}
	c->started = true;
	*ret = c;
	return 0;
}

int console_fd(const struct console *c)
{
	return c->tell;
}

enum console_event console_event(struct console *c)
{
	eventfd_t n;

	eventfd_read(c->tell, &n);
	if (atomic_exchange(&c->interrupt, false)) {
		eventfd_write(c->tell, 1); /* there may be more */
		return CONSOLE_INTERRUPT;
	}
	return atomic_exchange(&c->gone, false) ? CONSOLE_GONE : CONSOLE_NOTHING;
}

void console_resize(struct console *c)
{
	atomic_store(&c->resized, true);
	eventfd_write(c->wake, 1);
}

void console_frozen(struct console *c, bool frozen)
{
	atomic_store(&c->frozen, frozen);
}

void console_stop(struct console *c)
{
	if (c->started) {
		atomic_store(&c->stop, true);
		eventfd_write(c->wake, 1);
		pthread_join(c->thread, NULL);
		c->started = false;
	}
	if (c->opt.copy >= 0) /* the recorder waits for its end */
		close(take_fd(c->opt.copy));
	if (c->slave >= 0)
		close(take_fd(c->slave));
}

void console_free(struct console *c, bool killed)
{
	if (!c)
		return;
	console_stop(c);
	if (killed && term_is_raw() && isatty(STDOUT_FILENO))
		term_on_restore(STDOUT_FILENO, TERM_RESET "\r\n");
	term_restore();
	log_set_newline("\n");
	if (c->wake >= 0)
		close(c->wake);
	if (c->tell >= 0)
		close(c->tell);
	buf_done(&c->packet);
	free(c);
}
