// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/replay_tty.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/event/event.h"
#include "userspace/replay/neutral.h"
#include "userspace/store/terminal.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(terminal_reader, terminal_reader_free)

#define EVENT_MAX (8u << 20)

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	stopped = sig;
}

static void catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction sa = { .sa_handler = on_signal };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &sa, NULL);
}

static int session_start(int bundle, uint64_t *ret, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *r = NULL;
	static struct event ev;
	struct arena arena;
	struct str rec;
	uint64_t seq;
	int s = journal_reader_open(&r, bundle, err);

	if (s == 0)
		s = journal_reader_next(r, &rec, &seq, err);
	if (s <= 0)
		return s;
	arena_init(&arena, EVENT_MAX);
	s = event_from_json(&ev, &arena, rec, err);
	if (s == 0)
		*ret = event_u64(&ev, F_MONO);
	arena_done(&arena);
	return s;
}

static void pace(const struct replay_tty *opt, uint64_t ns)
{
	struct timespec ts;

	if (!opt->paced)
		return;
	ns = ns / opt->speed * 1000;
	ns = MIN(ns, opt->idle_ns);
	ts = (struct timespec){ (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };
	fflush(stdout);
	nanosleep(&ts, NULL);
}

static void show(struct neutral *screen, const struct terminal_record *rec, struct buf *text)
{
	buf_reset(text);
	if (rec->type == TERMINAL_OUTPUT)
		neutral_feed(screen, rec->data, text);
	else if (rec->type == TERMINAL_CUT)
		buf_printf(text, "\r\n[%llu bytes not recorded]\r\n",
			   (unsigned long long)rec->bytes);
	fwrite(text->p, 1, text->n, stdout);
}

static int play(const struct replay_tty *opt, struct terminal_reader *r, uint64_t start,
		struct neutral *screen, struct err *err)
{
	auto_buf struct buf text = { 0 };
	uint64_t last = start + opt->from;
	struct terminal_record rec;
	int s = opt->from ? terminal_reader_seek_time(r, last, err) : 0;

	while (s >= 0 && !stopped && !ferror(stdout) &&
	       (s = terminal_reader_next(r, &rec, NULL, err)) == 1) {
		if (opt->to && rec.mono > start + opt->to)
			break;
		if (rec.mono > last)
			pace(opt, rec.mono - last);
		last = MAX(last, rec.mono);
		if (!stopped)
			show(&screen[rec.stream], &rec, &text);
	}
	return s < 0 ? s : 0;
}

int replay_tty(const struct replay_tty *opt, int bundle, struct err *err)
{
	AUTO(terminal_reader) struct terminal_reader *r = NULL;
	struct neutral screen[TERMINAL_STREAMS] = { 0 };
	uint64_t start = 0;
	int s = session_start(bundle, &start, err);

	if (s == 0)
		s = terminal_reader_open(&r, bundle, err);
	if (s < 0)
		return s;
	catch_signals();
	s = play(opt, r, start, screen, err);
	for (int i = 0; i < TERMINAL_STREAMS; i++) {
		auto_buf struct buf text = { 0 };

		neutral_end(&screen[i], &text);
		fwrite(text.p, 1, text.n, stdout);
	}
	fflush(stdout);
	if (stopped) {
		signal(stopped, SIG_DFL);
		raise(stopped);
	}
	return s;
}
