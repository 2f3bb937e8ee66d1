// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/store/terminal.h"

#define READ_MAX  65536
#define WRITE_MAX 4096 /* PIPE_BUF: what a pipe that polls writable takes without blocking */
#define PIPE_SIZE (256 * 1024) /* of the payload's pipes, where it is allowed */
#define STREAMS	  2

static const char *const stream_names[STREAMS] = { "stdout", "stderr" };

struct stream {
	int from, to; /* -1 = closed: nobody writes, nobody reads */
	int own;      /* `to` opened anew, so that we may not block on it; -1 = it could not be */
	size_t write_max;
	uint64_t bytes;
	uint64_t last; /* ending: all of it when the writer ended */
	size_t at, n;  /* of buf: not yet passed on */
	char buf[READ_MAX];
};

struct relay {
	uint64_t cap;
	int copy;	   /* the recorder's; -1 = none */
	int give[STREAMS]; /* the payload's ends, until the start */
	int event, stop;   /* eventfds: cap reached; finish */
	pthread_t thread;
	bool started, joined, tty;
	bool ending; /* atomic; relay_end */
	bool owns;   /* what it writes to: closed with its source */
	int hit;     /* stream + 1 */
	uint64_t hit_bytes;
	bool cut;
	int wait_ms; /* at the end, for a reader that takes nothing */
	struct buf packet;
	struct stream s[STREAMS];
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A pipe or terminal shares its O_NONBLOCK with whoever else holds it. Opened anew it is ours alone, and
 * takes as much as it has room for; a file takes all. */
static void open_reader(struct stream *s, int fd)
{
	struct stat st;
	char path[32];

	s->to = fd;
	s->write_max = WRITE_MAX;
	if (fstat(fd, &st) < 0)
		return;
	if (S_ISREG(st.st_mode))
		s->write_max = READ_MAX;
	if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	s->own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->own < 0)
		return;
	s->to = s->own;
	s->write_max = READ_MAX;
}

static const int ours[STREAMS] = { STDOUT_FILENO, STDERR_FILENO };

static void open_output(const struct relay *r, struct stream *s, int fd)
{
	int flags;

	if (!r->owns) {
		open_reader(s, fd);
		return;
	}
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	s->own = s->to = fd;
	s->write_max = READ_MAX;
}

/* ret_fds NULL: for a terminal. */
static int new_relay(struct relay **ret, uint64_t cap, const int to[2], bool owns, int ret_fds[2],
		     struct err *err)
{
	struct relay *r = calloc(1, sizeof(*r));
	int pair[2], e;

	if (!r) {
		for (int i = 0; owns && i < STREAMS; i++)
			if (to[i] >= 0)
				close(to[i]);
		return err_set(err, ENOMEM, "output: %m");
	}
	r->cap = cap;
	r->tty = !ret_fds;
	r->owns = owns;
	r->event = r->stop = r->copy = -1;
	for (int i = 0; i < STREAMS; i++)
		r->s[i].from = r->s[i].own = r->give[i] = -1;
	for (int i = 0; i < (r->tty ? 1 : STREAMS); i++)
		open_output(r, &r->s[i], to[i]);
	for (int i = 0; ret_fds && i < STREAMS; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			goto failed;
		(void)fcntl(pair[0], F_SETPIPE_SZ, PIPE_SIZE);
		r->s[i].from = pair[0];
		r->give[i] = ret_fds[i] = pair[1];
	}
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->event < 0 || r->stop < 0)
		goto failed;
	*ret = r;
	return 0;
failed:
	e = errno;
	relay_free(r);
	return err_set(err, e, "output: %m");
}

int relay_new(struct relay **ret, uint64_t cap, int ret_fds[2], struct err *err)
{
	return new_relay(ret, cap, ours, false, ret_fds, err);
}

int relay_new_on(struct relay **ret, uint64_t cap, const int on[2], int ret_fds[2], struct err *err)
{
	return new_relay(ret, cap, on, false, ret_fds, err);
}

int relay_new_tty(struct relay **ret, uint64_t cap, struct err *err)
{
	return new_relay(ret, cap, ours, false, NULL, err);
}

int relay_new_to(struct relay **ret, uint64_t cap, const int to[2], int ret_fds[2], struct err *err)
{
	return new_relay(ret, cap, to, true, ret_fds, err);
}

int relay_new_tty_to(struct relay **ret, uint64_t cap, int to, struct err *err)
{
	return new_relay(ret, cap, (const int[]){ to, -1 }, true, NULL, err);
}

int relay_tty(struct relay *r, int master, struct err *err)
{
	r->s[0].from = fcntl(master, F_DUPFD_CLOEXEC, 3);
	return r->s[0].from < 0 ? err_set(err, errno, "output: %m") : 0;
}

static void note_cap(struct relay *r, int i)
{
	if (r->hit)
		return;
	r->hit_bytes = r->s[i].bytes;
	__atomic_store_n(&r->hit, i + 1, __ATOMIC_RELEASE);
	eventfd_write(r->event, 1);
}

/* Waits for a recorder that is behind, and so does the payload. One that is gone keeps nobody waiting. */
static void copy(struct relay *r, int i, size_t n)
{
	struct terminal_record rec = {
		.type = TERMINAL_OUTPUT,
		.stream = r->tty ? TERMINAL_TTY
			  : i	 ? TERMINAL_STDERR
				 : TERMINAL_STDOUT,
		.mono = clock_boot_ns(),
		.data = { r->s[i].buf, n },
	};
	ssize_t w;

	buf_reset(&r->packet);
	if (r->copy < 0 || terminal_record_encode(&r->packet, &rec) < 0)
		return;
	do {
		w = send(r->copy, r->packet.p, r->packet.n, MSG_NOSIGNAL);
	} while (w < 0 && errno == EINTR);
	if (w < 0)
		close_fd(&r->copy);
}

/* Count, and keep what is still within the cap. */
static void take(struct relay *r, int i)
{
	struct stream *s = &r->s[i];
	uint64_t left = s->bytes < r->cap ? r->cap - s->bytes : 0;
	ssize_t n = read(s->from, s->buf, sizeof(s->buf));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) { /* of a pty that nobody has open: EIO */
		close_fd(&s->from);
		if (r->owns) {
			close_fd(&s->own);
			s->to = -1;
		}
		return;
	}
	__atomic_store_n(&s->bytes, s->bytes + (uint64_t)n, __ATOMIC_RELAXED);
	copy(r, i, (size_t)n);
	s->at = 0;
	s->n = (size_t)MIN((uint64_t)n, left);
	if ((uint64_t)n > left && r->cap) {
		r->cut = true;
		note_cap(r, i);
	}
}

static void pass_on(struct stream *s)
{
	ssize_t n = write(s->to, s->buf + s->at, MIN(s->n - s->at, s->write_max));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) {
		/* Nobody reads any more: the payload gets its SIGPIPE as without us. */
		s->n = s->at = 0;
		close_fd(&s->from);
		return;
	}
	s->at += (size_t)n;
}

/* Alternately: read when all is passed on, write when it is not. Returns the number of open streams. */
static int poll_set(const struct relay *r, struct pollfd fds[STREAMS + 1])
{
	int open = 0;

	for (int i = 0; i < STREAMS; i++) {
		const struct stream *s = &r->s[i];
		bool full = s->at < s->n;

		fds[i] = (struct pollfd){ .fd = full ? s->to : s->from,
					  .events = full ? POLLOUT : POLLIN };
		open += fds[i].fd >= 0;
	}
	return open;
}

static bool is_full(const struct relay *r)
{
	for (int i = 0; i < STREAMS; i++)
		if (r->s[i].at < r->s[i].n)
			return true;
	return false;
}

/* What lies in the pipes now; others may go on writing. */
static void note_last(struct relay *r)
{
	for (int i = 0; i < STREAMS; i++) {
		struct stream *s = &r->s[i];
		int n = 0;

		if (s->from >= 0 && ioctl(s->from, FIONREAD, &n) < 0)
			n = 0;
		s->last = s->bytes + (uint64_t)MAX(n, 0);
	}
}

static bool has_last(const struct relay *r)
{
	for (int i = 0; i < STREAMS; i++)
		if (r->s[i].from >= 0 && r->s[i].bytes < r->s[i].last)
			return false;
	return !is_full(r);
}

static void close_outputs(struct relay *r)
{
	for (int i = 0; i < STREAMS; i++) {
		close_fd(&r->s[i].from);
		close_fd(&r->s[i].own);
		r->s[i].to = -1;
	}
}

static void *run(void *arg)
{
	struct relay *r = arg;
	uint64_t end = 0;
	bool dropping = false, ending = false;

	for (;;) {
		struct pollfd fds[STREAMS + 1];
		int timeout = -1, n;

		if (!poll_set(r, fds))
			return NULL;
		fds[STREAMS] = (struct pollfd){ .fd = end ? -1 : r->stop, .events = POLLIN };
		if (end) {
			uint64_t now = clock_ns(CLOCK_MONOTONIC);

			timeout = end > now ? (int)((end - now) / NSEC_PER_MSEC) + 1 : 0;
		}
		if (ending && has_last(r)) {
			close_outputs(r);
			return NULL;
		}
		n = poll(fds, STREAMS + 1, timeout);
		if (n < 0 && errno != EINTR)
			return NULL;
		if (n > 0 && fds[STREAMS].revents && !ending &&
		    __atomic_load_n(&r->ending, __ATOMIC_ACQUIRE)) {
			eventfd_t stops;

			eventfd_read(r->stop, &stops);
			note_last(r);
			ending = true;
			continue;
		}
		if (n == 0) { /* finish was asked for, and the reader takes nothing: only count */
			if (dropping)
				return NULL;
			dropping = r->cut = true;
			r->cap = 0;
			for (int i = 0; i < STREAMS; i++)
				r->s[i].at = r->s[i].n = 0;
			end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)r->wait_ms * NSEC_PER_MSEC;
			continue;
		}
		for (int i = 0; n > 0 && i < STREAMS; i++) {
			struct stream *s = &r->s[i];

			if (!fds[i].revents)
				continue;
			if (s->at < s->n)
				pass_on(s);
			else
				take(r, i);
			if (end)
				end = clock_ns(CLOCK_MONOTONIC) +
				      (uint64_t)r->wait_ms * NSEC_PER_MSEC;
		}
		if (n > 0 && fds[STREAMS].revents)
			end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)r->wait_ms * NSEC_PER_MSEC;
	}
}

void relay_copy_to(struct relay *r, int socket)
{
	r->copy = socket;
}

int relay_start(struct relay *r, struct err *err)
{
	int e;

	for (int i = 0; i < STREAMS; i++)
		close_fd(&r->give[i]);
	e = pthread_create(&r->thread, NULL, run, r);
	if (e)
		return err_set(err, e, "output: thread: %m");
	r->started = true;
	return 0;
}

int relay_fd(const struct relay *r)
{
	return r->event;
}

const char *relay_hit(const struct relay *r, uint64_t *ret_bytes)
{
	int hit = __atomic_load_n(&r->hit, __ATOMIC_ACQUIRE);

	if (!hit)
		return NULL;
	*ret_bytes = r->hit_bytes;
	return stream_names[hit - 1];
}

void relay_end(struct relay *r)
{
	__atomic_store_n(&r->ending, true, __ATOMIC_RELEASE);
	eventfd_write(r->stop, 1);
}

void relay_finish(struct relay *r, int wait_ms, struct relay_counts *ret)
{
	if (r->started && !r->joined) {
		r->wait_ms = wait_ms;
		eventfd_write(r->stop, 1);
		pthread_join(r->thread, NULL);
		r->joined = true;
	}
	close_fd(&r->copy); /* all was said */
	*ret = (struct relay_counts){ r->s[0].bytes, r->s[1].bytes, r->cut };
}

void relay_free(struct relay *r)
{
	struct relay_counts counts;

	if (!r)
		return;
	for (int i = 0; i < STREAMS; i++)
		close_fd(&r->give[i]);
	relay_finish(r, 0, &counts);
	for (int i = 0; i < STREAMS; i++)
		close_fd(&r->s[i].from);
	for (int i = 0; i < STREAMS; i++)
		close_fd(&r->s[i].own);
	buf_done(&r->packet);
	close_fd(&r->event);
	close_fd(&r->stop);
	free(r);
}
