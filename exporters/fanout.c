// SPDX-License-Identifier: Apache-2.0
/* One thread that reads the journal for every sink. Nobody else touches a sink after
 * fanout_start; callers see copies of its counters. */
#include "exporters/exporter.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "exporters/sink.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define DRAIN_LOOK_NS (50 * NSEC_PER_MSEC)

struct fanout {
	struct fanout_options opt;
	char *session;
	int cursor_dirfd; /* ours, -1 = none */
	int wake_fd;
	atomic_bool kicked; /* wake_fd is readable, or about to be */
	atomic_bool stop;
	atomic_bool reopen;
	atomic_int drainers;
	atomic_uint turns; /* of the thread: everything was looked at so often */

	struct sink *sinks[FANOUT_SINKS_MAX]; /* the thread's once it runs */
	size_t sinks_n;
	pthread_t thread;
	bool started;

	pthread_mutex_t lock; /* rows */
	pthread_cond_t moved; /* some cursor moved; CLOCK_MONOTONIC */
	struct fanout_status rows[FANOUT_SINKS_MAX];
};

static void publish(struct fanout *f)
{
	bool moved = false;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->sinks_n; i++) {
		uint64_t old = f->rows[i].acked;

		sink_status(f->sinks[i], &f->rows[i]);
		moved |= f->rows[i].acked != old;
	}
	if (moved || atomic_load(&f->drainers) > 0)
		pthread_cond_broadcast(&f->moved);
	pthread_mutex_unlock(&f->lock);
}

static void sleep_until(struct fanout *f, uint64_t deadline)
{
	struct pollfd pfds[1 + FANOUT_SINKS_MAX] = { { .fd = f->wake_fd, .events = POLLIN } };
	uint64_t now = clock_ns(CLOCK_MONOTONIC), left = deadline > now ? deadline - now : 0, n;
	struct timespec ts = { .tv_sec = (time_t)(left / NSEC_PER_SEC),
			       .tv_nsec = (long)(left % NSEC_PER_SEC) };
	nfds_t used = 1;

	for (size_t i = 0; i < f->sinks_n; i++) {
		const struct exporter *x = f->sinks[i]->x;

		if (x->fd_events)
			pfds[used++] = (struct pollfd){ .fd = x->fd, .events = x->fd_events };
	}
	ppoll(pfds, used, deadline == SINK_NEVER ? NULL : &ts, NULL);
	if (pfds[0].revents & POLLIN && read(f->wake_fd, &n, sizeof(n)) < 0)
		n = 0; /* EAGAIN: somebody was faster, nothing is lost */
	/* Behind the read, or it would take a later kick's byte and leave its mark, and nobody could wake us
	 * again; and before the sources are read again: what is committed from here on kicks anew. */
	atomic_store(&f->kicked, false);
}

/* In the fan-out's thread where there is one: its signals are blocked, SIGPIPE included. */
static void close_sinks(struct fanout *f)
{
	for (size_t i = 0; i < f->sinks_n; i++) {
		sink_store_cursor(f->sinks[i], clock_ns(CLOCK_MONOTONIC));
		sink_close(f->sinks[i]);
		free(f->sinks[i]);
	}
	f->sinks_n = 0;
}

static void *fanout_thread(void *arg)
{
	struct fanout *f = arg;

	while (!atomic_load(&f->stop)) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC), deadline = SINK_NEVER;
		bool reopen = atomic_exchange(&f->reopen, false), more = false;
		bool hurry = atomic_load(&f->drainers) > 0;

		for (size_t i = 0; i < f->sinks_n; i++) {
			struct sink *s = f->sinks[i];
			uint64_t at;

			if (reopen && s->class->reopen)
				s->class->reopen(s->x);
			more |= sink_turn(s, now, hurry, &at);
			deadline = MIN(deadline, at);
		}
		atomic_fetch_add(&f->turns, 1);
		publish(f);
		if (!more)
			sleep_until(f, deadline);
	}
	close_sinks(f);
	return NULL;
}

static void kick(struct fanout *f)
{
	const uint64_t one = 1;

	/* A full counter is readable as well; nothing else can fail here. */
	if (!atomic_exchange(&f->kicked, true) && write(f->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* Many threads that allocate (librdkafka has one a broker) would each get a heap of their own, full of holes after an
 * outage; and large buffers would join them, once glibc has seen one freed. Two heaps for all, and what is large goes
 * back to the system: memory stays flat over days of outages (tests/export/test_soak.py). */
static void keep_heap_small(void)
{
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
}

int fanout_new(struct fanout **ret, const struct fanout_options *opt, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct fanout *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;

	pthread_once(&once, keep_heap_small);
	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	f->cursor_dirfd = f->wake_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->moved, &attr);
	pthread_condattr_destroy(&attr);

	f->session = strdup(opt->session);
	f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (opt->cursor_dirfd >= 0)
		f->cursor_dirfd = fcntl(opt->cursor_dirfd, F_DUPFD_CLOEXEC, 3);
	if (!f->session || f->wake_fd < 0 || (opt->cursor_dirfd >= 0 && f->cursor_dirfd < 0)) {
		int code = f->session ? errno : ENOMEM;

		fanout_free(f);
		return err_set(err, code, "export: cannot set up the fan-out: %m");
	}
	f->opt = *opt;
	f->opt.session = f->session;
	f->opt.cursor_dirfd = f->cursor_dirfd;
	*ret = f;
	return 0;
}

static int add(struct fanout *f, const struct exporter_config *cfg,
	       const struct fanout_options *opt, bool own_seq, struct err *err)
{
	struct sink *s;
	int r;

	if (f->started)
		return err_set(err, EBUSY, "export: sink '%s' added after the start", cfg->name);
	if (f->sinks_n == FANOUT_SINKS_MAX)
		return err_set(err, E2BIG, "export: more than %d sinks", FANOUT_SINKS_MAX);
	for (size_t i = 0; i < f->sinks_n; i++)
		if (!strcmp(f->sinks[i]->name, cfg->name))
			return err_set(err, EEXIST,
				       "export: two sinks named '%s': give one of them a 'name='",
				       cfg->name);
	s = malloc(sizeof(*s));
	if (!s)
		return err_set(err, ENOMEM, "out of memory");
	r = sink_open(s, cfg, opt, f->wake_fd, err);
	if (r < 0) {
		free(s);
		return r;
	}
	s->host.fanout = f;
	s->own_seq = own_seq;
	f->sinks[f->sinks_n++] = s;
	publish(f);
	return 0;
}

int fanout_add(struct fanout *f, const struct exporter_config *cfg, struct err *err)
{
	return add(f, cfg, &f->opt, false, err);
}

int fanout_add_stream(struct fanout *f, const struct exporter_config *cfg,
		      export_source_fn open_source, void *arg, struct err *err)
{
	struct fanout_options opt = f->opt;

	opt.open_source = open_source;
	opt.open_source_arg = arg;
	return add(f, cfg, &opt, true, err);
}

int fanout_start(struct fanout *f, struct err *err)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&f->thread, NULL, fanout_thread, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return err_set(err, r, "export: cannot start the fan-out thread: %m");
	pthread_setname_np(f->thread, "warder-fanout");
	f->started = true;
	return 0;
}

void fanout_notify(struct fanout *f)
{
	kick(f);
}

void fanout_reopen(struct fanout *f)
{
	atomic_store(&f->reopen, true);
	kick(f);
}

/* `turn`: from then on the thread has seen what was there when the caller began to wait. */
static int behind(const struct fanout *f, uint64_t seq, unsigned turn)
{
	bool seen = (int)(atomic_load(&f->turns) - turn) >= 0;
	int n = 0;

	for (size_t i = 0; i < f->sinks_n; i++) {
		const struct fanout_status *row = &f->rows[i];

		n += row->own_seq ? !seen || !row->at_end || row->acked < row->sent
				  : row->acked < seq;
	}
	return n;
}

static bool has_streams(const struct fanout *f)
{
	for (size_t i = 0; i < f->sinks_n; i++)
		if (f->rows[i].own_seq)
			return true;
	return false;
}

int fanout_drain(struct fanout *f, uint64_t seq, int timeout_ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)MAX(timeout_ms, 0) * NSEC_PER_MSEC;
	unsigned turn = atomic_load(&f->turns) + 2; /* the one that runs may have looked before */
	uint64_t now;
	int n;

	atomic_fetch_add(&f->drainers, 1);
	kick(f);
	pthread_mutex_lock(&f->lock);
	while ((n = behind(f, seq, turn)) && f->started &&
	       (now = clock_ns(CLOCK_MONOTONIC)) < end) {
		uint64_t at = has_streams(f) ? MIN(end, now + DRAIN_LOOK_NS) : end;
		struct timespec ts = { .tv_sec = (time_t)(at / NSEC_PER_SEC),
				       .tv_nsec = (long)(at % NSEC_PER_SEC) };

		pthread_cond_timedwait(&f->moved, &f->lock, &ts);
		if (has_streams(f))
			kick(f); /* its source is asked again */
	}
	pthread_mutex_unlock(&f->lock);
	atomic_fetch_sub(&f->drainers, 1);
	return n;
}

size_t fanout_status(struct fanout *f, struct fanout_status *rows, size_t max)
{
	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->sinks_n && i < max; i++)
		rows[i] = f->rows[i];
	pthread_mutex_unlock(&f->lock);
	return f->sinks_n;
}

const struct exporter_gauge *fanout_gauges(const struct fanout *f, size_t *ret_n)
{
	*ret_n = f->opt.gauges_n;
	return f->opt.gauges;
}

void fanout_free(struct fanout *f)
{
	if (!f)
		return;
	if (f->started) {
		atomic_store(&f->stop, true);
		kick(f);
		pthread_join(f->thread, NULL);
	}
	close_sinks(f);
	pthread_cond_destroy(&f->moved);
	pthread_mutex_destroy(&f->lock);
	if (f->cursor_dirfd >= 0)
		close(f->cursor_dirfd);
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	free(f->session);
	free(f);
}
