// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/recorder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define COMMIT_AT  (1 << 20) /* bytes that wait, or: */
#define COMMIT_NS  (200 * NSEC_PER_MSEC)
#define IDLE_NS	   (250 * NSEC_PER_MSEC) /* of silence: what waits for its line to end is told */
#define OTHERS_MAX (1 << 20)		 /* keys and sizes; a person gets nowhere near */

struct stream {
	uint64_t head;	  /* bytes kept of the first half */
	uint64_t dropped; /* between the halves */
	uint64_t lost;	  /* for the disk, not told yet */
	uint64_t last;	  /* when it said something, mono */
	struct buf tail;  /* the last half: u32 length, record; oldest first */
	size_t tail_at;	  /* of tail: the oldest that counts */
};

struct recorder {
	struct recorder_options opt;
	int event;
	pthread_t thread;
	bool started, joined;
	struct terminal_log *log; /* NULL until something is said */
	struct stream s[TERMINAL_STREAMS];
	struct buf filtered, record;
	uint64_t deadline; /* CLOCK_MONOTONIC; 0 = nothing waits */
	uint64_t idle_at;  /* likewise: the filter may hold something back */
	uint64_t lost;	   /* bytes, in all */
	uint64_t redacted; /* places, told with a mark */
	uint64_t input;	   /* bytes kept of what was typed */
	uint64_t others;   /* records that are not output */

	pthread_mutex_t lock; /* of what follows */
	struct terminal_mark mark;
	int error;
};

/* ---- to the log ---- */

static int append(struct recorder *r, const struct terminal_record *rec)
{
	int e = 0;

	if (!r->log) {
		const struct journal_options jo = { .session = r->opt.session };

		e = terminal_log_create(&r->log, r->opt.bundle_fd, &jo, NULL);
	}
	if (e == 0)
		e = terminal_log_append(r->log, rec);
	if (!r->deadline)
		r->deadline = clock_ns(CLOCK_MONOTONIC) + COMMIT_NS;
	return e;
}

static bool was_taken(int e)
{
	return e != -ENOBUFS && e != -ENOMEM && e != -EMSGSIZE && e != -EROFS;
}

/* What the disk did not take is told before what it takes again. */
static void keep(struct recorder *r, const struct terminal_record *rec)
{
	struct stream *s = &r->s[rec->stream];
	struct terminal_record cut = {
		.type = TERMINAL_CUT,
		.stream = rec->stream,
		.reason = TERMINAL_FOR_DISK,
		.mono = rec->mono,
		.bytes = s->lost,
	};

	if (s->lost && r->log && was_taken(append(r, &cut)))
		s->lost = 0;
	if (!s->lost && (was_taken(append(r, rec)) && r->log))
		return;
	s->lost += rec->data.n;
	r->lost += rec->data.n;
}

static void drop_oldest(struct stream *s)
{
	struct terminal_record rec;
	uint32_t n;

	memcpy(&n, s->tail.p + s->tail_at, sizeof(n));
	if (!terminal_record_decode(&rec, (struct str){ s->tail.p + s->tail_at + sizeof(n), n }))
		s->dropped += rec.data.n;
	s->tail_at += sizeof(n) + n;
	if (s->tail_at > s->tail.n / 2) {
		buf_consume(&s->tail, s->tail_at);
		s->tail_at = 0;
	}
}

static void keep_last(struct recorder *r, struct stream *s, const struct terminal_record *rec)
{
	uint64_t half = r->opt.limit / 2;
	uint32_t n;

	buf_reset(&r->record);
	if (terminal_record_encode(&r->record, rec) < 0)
		return;
	n = (uint32_t)r->record.n;
	if (n > half) {
		s->dropped += rec->data.n;
		return;
	}
	while (s->tail.n > s->tail_at && s->tail.n - s->tail_at + n > half)
		drop_oldest(s);
	if (buf_reserve(&s->tail, sizeof(n) + n) < 0) {
		s->tail.failed = false;
		s->dropped += rec->data.n;
		return;
	}
	buf_add(&s->tail, &n, sizeof(n));
	buf_add(&s->tail, r->record.p, n);
}

/* Within the limit: the first half at once, of the rest the last half in the end. */
static void take_data(struct recorder *r, struct terminal_record rec, struct str data)
{
	struct stream *s = &r->s[rec.stream];

	while (data.n) {
		uint64_t room = r->opt.limit / 2 - s->head;
		size_t n = MIN(data.n, (size_t)TERMINAL_DATA_MAX);

		/* The last half goes away in pieces: small ones, where it is small itself. */
		n = (size_t)MIN((uint64_t)n, room ? room : MAX(r->opt.limit / 16, 1));
		rec.data = (struct str){ data.p, n };
		if (room) {
			s->head += n;
			keep(r, &rec);
		} else {
			keep_last(r, s, &rec);
		}
		data.p += n;
		data.n -= n;
	}
}

/* Of what is typed the first part, up to the limit: a paste can be long, too. */
static void take_input(struct recorder *r, struct terminal_record rec, struct str data)
{
	while (data.n) {
		rec.data = (struct str){ data.p, MIN(data.n, (size_t)TERMINAL_DATA_MAX) };
		if (rec.data.n > r->opt.limit - r->input || r->others >= OTHERS_MAX) {
			r->s[rec.stream].dropped += data.n;
			return;
		}
		r->input += rec.data.n;
		r->others++;
		keep(r, &rec);
		data.p += rec.data.n;
		data.n -= rec.data.n;
	}
}

/* One that has bytes, with those that are left of them. */
static void take_bytes(struct recorder *r, const struct terminal_record *rec, struct str data)
{
	if (rec->type == TERMINAL_INPUT)
		take_input(r, *rec, data);
	else
		take_data(r, *rec, data);
}

static void take_record(struct recorder *r, struct terminal_record *rec)
{
	const struct output_filter *f = r->opt.filter;
	struct stream *s = &r->s[rec->stream];
	bool typed = rec->type == TERMINAL_INPUT;

	/* What is typed and what is shown come from two threads. */
	rec->mono = s->last = MAX(rec->mono, s->last);
	if (rec->type != TERMINAL_OUTPUT && !typed) {
		if (r->others++ < OTHERS_MAX)
			keep(r, rec);
		return;
	}
	if (!f) {
		take_bytes(r, rec, rec->data);
		return;
	}
	buf_reset(&r->filtered);
	if (f->feed(f->arg, typed ? RECORDER_TYPED : (int)rec->stream, rec->data, &r->filtered) < 0)
		r->lost += rec->data.n;
	else
		take_bytes(r, rec, (struct str){ r->filtered.p, r->filtered.n });
	r->idle_at = clock_ns(CLOCK_MONOTONIC) + IDLE_NS;
}

/* What a filter tells of a channel besides what was fed. */
static struct terminal_record late_record(const struct recorder *r, int channel)
{
	bool typed = channel == RECORDER_TYPED;
	enum terminal_stream stream = typed ? TERMINAL_TTY : (enum terminal_stream)channel;

	return (struct terminal_record){
		.type = typed ? TERMINAL_INPUT : TERMINAL_OUTPUT,
		.stream = stream,
		.mono = r->s[stream].last,
	};
}

static void look_idle(struct recorder *r)
{
	const struct output_filter *f = r->opt.filter;

	r->idle_at = 0;
	/* What is typed waits for the end of its line: what was typed may still be rubbed out. */
	for (int i = 0; f && i < TERMINAL_STREAMS; i++) {
		const struct terminal_record rec = late_record(r, i);

		buf_reset(&r->filtered);
		if (f->idle(f->arg, i, &r->filtered) == 0)
			take_bytes(r, &rec, (struct str){ r->filtered.p, r->filtered.n });
	}
}

/* Everything is there: what was held back goes as well. */
static void flush_filter(struct recorder *r)
{
	const struct output_filter *f = r->opt.filter;

	for (int i = RECORDER_CHANNELS; f && i-- > 0;) {
		const struct terminal_record rec = late_record(r, i);

		buf_reset(&r->filtered);
		if (f->flush(f->arg, i, &r->filtered) == 0)
			take_bytes(r, &rec, (struct str){ r->filtered.p, r->filtered.n });
	}
}

static void commit(struct recorder *r)
{
	struct terminal_mark m;
	int e;

	r->deadline = 0;
	if (!r->log)
		return;
	e = terminal_log_commit(r->log, &m);
	if (e < 0)
		r->deadline = clock_ns(CLOCK_MONOTONIC) + COMMIT_NS;
	pthread_mutex_lock(&r->lock);
	r->error = e;
	if (e == 0 && m.last >= m.first) {
		if (!r->mark.first)
			r->mark.first = m.first;
		r->mark.last = m.last;
		r->mark.bytes += m.bytes;
		if (r->opt.filter) {
			uint64_t n = r->opt.filter->places(r->opt.filter->arg);

			r->mark.redactions += n - r->redacted;
			r->redacted = n;
		}
		memcpy(r->mark.head, m.head, sizeof(m.head));
		eventfd_write(r->event, 1);
	}
	pthread_mutex_unlock(&r->lock);
}

/* ---- the thread ---- */

/* 1: one record taken; 0: nothing there; -1: the other end is closed. */
static int receive(struct recorder *r)
{
	static _Thread_local char packet[TERMINAL_RECORD_MAX];
	struct terminal_record rec;
	ssize_t n = recv(r->opt.fd, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	if (!terminal_record_decode(&rec, (struct str){ packet, (size_t)n }))
		take_record(r, &rec);
	return 1;
}

static int wait_ms(const struct recorder *r)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), at = r->deadline;

	if (r->idle_at && (!at || r->idle_at < at))
		at = r->idle_at;
	if (!at)
		return -1;
	return at > now ? (int)((at - now) / NSEC_PER_MSEC) + 1 : 0;
}

static bool is_due(uint64_t at)
{
	return at && at <= clock_ns(CLOCK_MONOTONIC);
}

static void end_streams(struct recorder *r)
{
	for (int i = 0; i < TERMINAL_STREAMS; i++) {
		struct stream *s = &r->s[i];
		struct terminal_record rec = {
			.type = TERMINAL_OUTPUT,
			.stream = (enum terminal_stream)i,
			.mono = s->last,
		};
		uint32_t n;

		if (s->dropped) {
			rec.type = TERMINAL_CUT;
			rec.reason = TERMINAL_FOR_LIMIT;
			rec.bytes = s->dropped;
			keep(r, &rec);
		}
		for (; s->tail_at < s->tail.n; s->tail_at += sizeof(n) + n) {
			memcpy(&n, s->tail.p + s->tail_at, sizeof(n));
			if (!terminal_record_decode(
				    &rec, (struct str){ s->tail.p + s->tail_at + sizeof(n), n }))
				keep(r, &rec);
		}
	}
}

static void *run(void *arg)
{
	struct recorder *r = arg;
	int got = 0;

	while (got >= 0) {
		struct pollfd pfd = { .fd = r->opt.fd, .events = POLLIN };

		poll(&pfd, 1, wait_ms(r));
		while ((got = receive(r)) == 1)
			if (r->log && terminal_log_behind(r->log) >= COMMIT_AT)
				break;
		if (is_due(r->idle_at))
			look_idle(r);
		if (r->deadline &&
		    (is_due(r->deadline) || (r->log && terminal_log_behind(r->log) >= COMMIT_AT)))
			commit(r);
	}
	flush_filter(r);
	end_streams(r);
	commit(r);
	return NULL;
}

/* ---- for the engine ---- */

int recorder_start(struct recorder **ret, const struct recorder_options *opt, struct err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return err_set(err, ENOMEM, "recording output: %m");
	r->opt = *opt;
	if (!r->opt.limit)
		r->opt.limit = RECORDER_LIMIT_DEFAULT;
	pthread_mutex_init(&r->lock, NULL);
	buf_init(&r->record, TERMINAL_RECORD_MAX);
	for (int i = 0; i < TERMINAL_STREAMS; i++)
		buf_init(&r->s[i].tail, (size_t)RECORDER_LIMIT_MAX);
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e = r->event < 0 ? errno : pthread_create(&r->thread, NULL, run, r);
	if (e) {
		recorder_free(r);
		return err_set(err, e, "recording output: %m");
	}
	r->started = true;
	*ret = r;
	return 0;
}

int recorder_fd(const struct recorder *r)
{
	return r ? r->event : -1;
}

bool recorder_mark(struct recorder *r, struct terminal_mark *ret)
{
	eventfd_t n;
	bool there;

	eventfd_read(r->event, &n);
	pthread_mutex_lock(&r->lock);
	there = r->mark.first != 0;
	*ret = r->mark;
	pthread_mutex_unlock(&r->lock);
	return there;
}

void recorder_told(struct recorder *r, const struct terminal_mark *mark)
{
	pthread_mutex_lock(&r->lock);
	r->mark.first = r->mark.last == mark->last ? 0 : mark->last + 1;
	r->mark.bytes -= mark->bytes;
	r->mark.redactions -= mark->redactions;
	pthread_mutex_unlock(&r->lock);
}

int recorder_error(struct recorder *r)
{
	int e;

	pthread_mutex_lock(&r->lock);
	e = r->error;
	pthread_mutex_unlock(&r->lock);
	return e;
}

static void join(struct recorder *r)
{
	if (r->started && !r->joined)
		pthread_join(r->thread, NULL);
	r->joined = true;
}

int recorder_finish(struct recorder *r, struct terminal_end *ret, uint64_t *ret_lost)
{
	join(r);
	*ret_lost = r->lost;
	if (!r->log || r->error)
		return r->error;
	terminal_log_end(r->log, ret);
	return 1;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	if (r->started && !r->joined)
		shutdown(r->opt.fd, SHUT_RDWR);
	join(r);
	for (int i = 0; i < TERMINAL_STREAMS; i++)
		buf_done(&r->s[i].tail);
	buf_done(&r->filtered);
	buf_done(&r->record);
	terminal_log_free(r->log);
	if (r->event >= 0)
		close(r->event);
	close(r->opt.fd);
	pthread_mutex_destroy(&r->lock);
	free(r);
}
