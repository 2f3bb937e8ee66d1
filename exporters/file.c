// SPDX-License-Identifier: Apache-2.0
/* JSON lines in a file, a pipe, or on stdout. Lines are collected and written together; a record is
 * acknowledged when its line is written (and, for a regular file, on the disk). A line is whole or
 * absent: what a full disk cut off is cut back, under a lock that other wardens of the file respect. */
#include "exporters/exporter.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/classes.h"
#include "exporters/rotate.h"
#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

/* Lines wait here until poll, or until this much is there. */
#define FILE_FLUSH_BYTES (256 * 1024)
/* Records that can never be written as one line. */
#define FILE_RECORD_MAX (16 * 1024 * 1024)
/* Look again whether a slow reader made room. */
#define FILE_SLOW_MS 5
/* The same for a lock that somebody sits on. */
#define FILE_LOCKED_MS 200
/* How far back the end of the last whole line is searched for after a crash cut one. */
#define FILE_TORN_MAX	     FILE_RECORD_MAX
#define FILE_ROTATE_RETRY_NS (60 * NSEC_PER_SEC)
/* How often and how far apart the lock is tried in one go; when its holder is told of. */
#define FILE_LOCK_LOOKS	      5
#define FILE_LOCK_LOOK_NS     200000
#define FILE_LOCK_PATIENCE_NS NSEC_PER_SEC

struct file_sink {
	struct exporter x;
	char *path;	  /* NULL = stdout */
	int fd;		  /* -1 = not open now */
	bool regular;	  /* can be cut back and synced */
	bool owned;	  /* regular, and ours to lock and to cut: not stdout */
	bool sync;	  /* fdatasync before acknowledging */
	bool mid_line;	  /* the start of the buffer continues a line that is half out */
	struct buf buf;	  /* lines that are not out */
	uint64_t buf_seq; /* last record in buf */
	uint64_t acked;
	struct rotate rotate;
	struct rotate_seen seen;
	uint64_t locked_out_since; /* CLOCK_MONOTONIC ns; 0 = it has, or got, the lock */
	uint64_t rotate_at;	   /* CLOCK_MONOTONIC ns: not before that, after a failure */
	char rotate_text[256];
	char text[256];
};

static void set_text(struct file_sink *s, const char *what, int code)
{
	struct err err = { 0 };

	err_set(&err, code, "%s '%s': %m", what, s->path ? s->path : "stdout");
	snprintf(s->text, sizeof(s->text), "%.250s", err.text);
}

static void close_file(struct file_sink *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static int open_file(struct file_sink *s)
{
	struct stat st;
	int fd;

	/* A pipe without a reader must not hold us up: ENXIO, tried again later. */
	fd = s->path ? open(s->path,
			    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0640)
		     : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return -EIO;
	}
	s->fd = fd;
	s->regular = S_ISREG(st.st_mode);
	s->owned = s->regular && s->path;
	return 0;
}

/* Whoever can open the file can hold its lock, for ever: nobody waits for it longer than a write may take
 * anyway. -EAGAIN: later. */
static int lock_file(struct file_sink *s)
{
	const struct timespec moment = { .tv_nsec = FILE_LOCK_LOOK_NS };

	for (int i = 0; i < FILE_LOCK_LOOKS; i++) {
		if (flock(s->fd, LOCK_EX | LOCK_NB) == 0) {
			s->locked_out_since = 0;
			return 0;
		}
		if (errno != EINTR && errno != EWOULDBLOCK)
			return -errno;
		nanosleep(&moment, NULL);
	}
	if (!s->locked_out_since)
		s->locked_out_since = clock_ns(CLOCK_MONOTONIC);
	return -EAGAIN;
}

/* Somebody moved or removed the file (log rotation): go on in a new one. Where we may not make one, the
 * moved file serves, but a removed one would swallow what is written. */
static int follow_move(struct file_sink *s)
{
	struct stat have, named;
	int old = s->fd, r;

	if (!s->owned || s->mid_line || fstat(s->fd, &have) < 0)
		return 0;
	if (stat(s->path, &named) == 0 && have.st_ino == named.st_ino &&
	    have.st_dev == named.st_dev)
		return 0;
	r = open_file(s);
	if (r == 0)
		close(old);
	else if (have.st_nlink)
		r = 0;
	return r;
}

/* Move the file away when it is large or old enough. What fails (the directory may not be ours) is told,
 * and writing goes on. */
static int rotate(struct file_sink *s)
{
	uint64_t real = clock_real_ns(), now = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (!s->owned || s->mid_line || now < s->rotate_at)
		return 0;
	r = lock_file(s);
	if (r < 0)
		return r;
	r = rotate_is_due(&s->rotate, &s->seen, s->fd, s->buf.n, real, now);
	if (r > 0)
		r = rotate_now(&s->rotate, s->path, s->fd, real);
	flock(s->fd, LOCK_UN);
	if (r < 0) {
		struct err err = { 0 };

		err_set(&err, r, "cannot rotate '%s', writing goes on: %m", s->path);
		snprintf(s->rotate_text, sizeof(s->rotate_text), "%.250s", err.text);
		s->rotate_at = now + FILE_ROTATE_RETRY_NS;
		return 0;
	}
	s->rotate_text[0] = 0;
	return r ? follow_move(s) : 0;
}

/* Length of the file up to the end of its last whole line; `size` when no line end is near. */
static off_t whole_lines(int fd, off_t size)
{
	char block[4096];
	off_t end = size;

	while (end > 0 && size - end < FILE_TORN_MAX) {
		size_t n = (size_t)MIN(end, (off_t)sizeof(block));
		ssize_t got = pread(fd, block, n, end - (off_t)n);
		const char *nl;

		if (got != (ssize_t)n)
			return size;
		nl = memrchr(block, '\n', n);
		if (nl)
			return end - (off_t)n + (nl - block) + 1;
		end -= (off_t)n;
	}
	return end == 0 ? 0 : size;
}

/* The lock is held. Remove half a line that a crash or a power cut left at the end. */
static int cut_torn_line(struct file_sink *s, off_t *ret_size)
{
	auto_close int rd = -1;
	struct stat st;
	char last = '\n';
	off_t whole;

	if (fstat(s->fd, &st) < 0)
		return -errno;
	*ret_size = st.st_size;
	if (!st.st_size)
		return 0;
	rd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (rd < 0 || pread(rd, &last, 1, st.st_size - 1) != 1 || last == '\n')
		return 0; /* whole, or not ours to read: append */
	whole = whole_lines(rd, st.st_size);
	if (whole < st.st_size && ftruncate(s->fd, whole) < 0)
		return -errno;
	*ret_size = whole;
	return 0;
}

/* Regular file of ours: all of the buffer or nothing. */
static int write_whole(struct file_sink *s)
{
	size_t done = 0;
	off_t start = 0;
	int r;

	r = lock_file(s);
	if (r < 0)
		return r;
	if (!s->mid_line)
		r = cut_torn_line(s, &start);
	while (r == 0 && done < s->buf.n) {
		ssize_t w = write(s->fd, s->buf.p + done, s->buf.n - done);

		if (w < 0 && errno != EINTR)
			r = -errno;
		else if (w == 0)
			r = -EIO; /* never seen; not for ever, either */
		else if (w > 0)
			done += (size_t)w;
	}
	if (r < 0 && done && !s->mid_line && ftruncate(s->fd, start) == 0)
		done = 0;
	/* An append-only file cannot be cut: the rest of the line follows later. */
	if (done)
		s->mid_line = s->buf.p[done - 1] != '\n';
	buf_consume(&s->buf, done);
	flock(s->fd, LOCK_UN);
	return r;
}

/* Pipe, terminal, stdout: as much as it takes without blocking. -EAGAIN: more later. */
static int write_some(struct file_sink *s)
{
	size_t done = 0;
	int r = 0;

	while (r == 0 && done < s->buf.n) {
		struct pollfd pfd = { .fd = s->fd, .events = POLLOUT };
		/* A pipe that polls writable takes PIPE_BUF bytes at once: so stdout, which we
		 * may not make non-blocking for all who share it, never holds us up either. */
		size_t n = MIN(s->buf.n - done, (size_t)PIPE_BUF);
		ssize_t w;

		if (!s->regular && poll(&pfd, 1, 0) <= 0) {
			r = -EAGAIN;
			break;
		}
		w = write(s->fd, s->buf.p + done, n);
		if (w < 0 && errno != EINTR)
			r = -errno;
		else if (w == 0)
			r = -EIO; /* never seen; not for ever, either */
		else if (w > 0)
			done += (size_t)w;
	}
	if (done)
		s->mid_line = s->buf.p[done - 1] != '\n';
	buf_consume(&s->buf, done);
	return r;
}

/* A slow reader, another writer: no error until it lasts. */
static int come_back(struct file_sink *s)
{
	uint64_t out_ns = s->locked_out_since ? clock_ns(CLOCK_MONOTONIC) - s->locked_out_since : 0;

	s->x.poll_in_ms = FILE_SLOW_MS;
	if (out_ns < FILE_LOCK_PATIENCE_NS)
		return -EAGAIN;
	s->x.poll_in_ms = FILE_LOCKED_MS;
	snprintf(s->text, sizeof(s->text), "'%.200s' is locked by another process (flock)",
		 s->path);
	return -EAGAIN;
}

/* 0 when the buffer is empty and all of it acknowledged. */
static int flush(struct file_sink *s)
{
	int r;

	s->x.poll_in_ms = 0;
	r = s->fd < 0 ? open_file(s) : follow_move(s);
	if (r == 0 && (s->rotate.size || s->rotate.age_ns))
		r = rotate(s);
	if (r == -EAGAIN)
		return come_back(s);
	if (r < 0) {
		set_text(s, "cannot open", r);
		return r;
	}
	r = s->owned ? write_whole(s) : write_some(s);
	if (r == -EAGAIN)
		return come_back(s);
	if (r < 0) {
		set_text(s, "cannot write", r);
		if (r == -EPIPE && s->path) { /* the reader went: the next one gets whole lines */
			close_file(s);
			s->mid_line = false;
			buf_reset(&s->buf);
			s->x.rewind = true;
		}
		return r;
	}
	if (s->sync && s->regular && s->buf_seq > s->acked && fdatasync(s->fd) < 0) {
		/* The kernel reports lost pages once and then forgets them: write them again. */
		set_text(s, "cannot sync", errno);
		s->x.rewind = true;
		return -EIO;
	}
	s->acked = s->buf_seq;
	s->text[0] = 0;
	return 0;
}

static enum export_result file_write(struct exporter *x, const struct export_record *rec)
{
	struct file_sink *s = (struct file_sink *)x;
	struct str text = export_text(rec);

	if (text.n > FILE_RECORD_MAX) {
		x->why = "larger than a line may be";
		return EXPORT_POISON;
	}
	if (memchr(text.p, '\n', text.n)) {
		x->why = "holds a line end";
		return EXPORT_POISON;
	}
	if (s->buf.n >= FILE_FLUSH_BYTES && (flush(s) < 0 || x->rewind))
		return EXPORT_FULL;
	if (buf_reserve(&s->buf, text.n + 1) < 0)
		return EXPORT_FULL;
	buf_add(&s->buf, text.p, text.n);
	buf_addc(&s->buf, '\n');
	s->buf_seq = rec->seq;
	return EXPORT_OK;
}

static uint64_t file_poll(struct exporter *x, int timeout_ms)
{
	struct file_sink *s = (struct file_sink *)x;

	(void)timeout_ms; /* nothing answers later */
	if (s->buf.n || s->buf_seq > s->acked)
		flush(s);
	if (x->rewind) {
		buf_reset(&s->buf);
		s->buf_seq = s->acked;
	}
	return s->acked;
}

static const char *file_status(const struct exporter *x)
{
	const struct file_sink *s = (const struct file_sink *)x;

	return s->text[0] ? s->text : s->rotate_text;
}

static void file_said(const struct exporter *x, char *ret, size_t size)
{
	const struct file_sink *s = (const struct file_sink *)x;

	snprintf(ret, size, "%s%.150s", s->sync && s->regular ? "on the disk: " : "written: ",
		 s->path ? s->path : "stdout");
}

/* Moved files are noticed anyway; this makes it certain, now. */
static void file_reopen(struct exporter *x)
{
	struct file_sink *s = (struct file_sink *)x;

	if (s->owned && !s->mid_line)
		close_file(s);
}

static void file_close(struct exporter *x)
{
	struct file_sink *s = (struct file_sink *)x;

	close_file(s);
	buf_done(&s->buf);
	free(s->path);
	free(s);
}

static int read_rotation(struct rotate *r, const struct exporter_config *cfg, struct err *err)
{
	const char *size = exporter_config_get(cfg, "rotate-size");
	const char *age = exporter_config_get(cfg, "rotate-age");
	const char *keep = exporter_config_get(cfg, "keep");

	if (*size && parse_size(size, &r->size) < 0)
		return err_set(err, EINVAL, "property 'rotate-size': '%s' is no size such as 100M",
			       size);
	if (*age && parse_duration_ns(age, &r->age_ns) < 0)
		return err_set(err, EINVAL,
			       "property 'rotate-age': '%s' is no duration such as 24h", age);
	if (*keep && (parse_u64(keep, &r->keep) < 0 || !r->keep))
		return err_set(
			err, EINVAL,
			"property 'keep': '%s' is no number of files; without it all are kept",
			keep);
	return 0;
}

static int file_open(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	const char *path = exporter_config_get(cfg, "path");
	const char *sync = exporter_config_get(cfg, "sync");
	struct rotate rotation = { 0 };
	struct file_sink *s;
	int r;

	r = read_rotation(&rotation, cfg, err);
	if (r < 0)
		return r;
	if (strcmp(sync, "yes") && strcmp(sync, "no"))
		return err_set(err, EINVAL, "property 'sync': '%s' is not yes or no", sync);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	s->x.class = &file_exporter;
	s->fd = -1;
	s->sync = !strcmp(sync, "yes");
	s->rotate = rotation;
	buf_init(&s->buf, FILE_FLUSH_BYTES + FILE_RECORD_MAX + 1);
	if (strcmp(path, "-")) {
		s->path = strdup(path);
		if (!s->path) {
			file_close(&s->x);
			return err_set(err, ENOMEM, "out of memory");
		}
	}
	r = open_file(s);
	if (r == -ENXIO || r == -ENOSPC || r == -EDQUOT) { /* will pass: the fan-out tries again */
		set_text(s, "cannot open", r);
	} else if (r < 0) {
		file_close(&s->x);
		return err_set(err, r, "cannot open '%s': %m", path);
	}
	*ret = &s->x;
	return 0;
}

static const struct exporter_property properties[] = {
	{ "path", "PATH", NULL, "file to append to; - = stdout", true },
	{ "rotate-size", "SIZE", "", "move the file away before it grows past this", false },
	{ "rotate-age", "DURATION", "", "move the file away when it is so old", false },
	{ "keep", "N", "", "how many moved files to keep; default: all", false },
	{ "sync", "yes|no", "yes", "acknowledge only what is on the disk (fdatasync)", false },
	{ 0 },
};

const struct exporter_class file_exporter = {
	.name = "file",
	.doc = "JSON lines in a file, a pipe or on stdout",
	.properties = properties,
	.open = file_open,
	.write = file_write,
	.poll = file_poll,
	.status = file_status,
	.said = file_said,
	.close = file_close,
	.reopen = file_reopen,
};
