// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/replay_ui.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/plain.h"
#include "userspace/base/term.h"
#include "userspace/cli/replay_view.h"

DEFINE_AUTO(playback, playback_free)

#define FRAME_NS    (33 * NSEC_PER_MSEC)
#define SLICE_NS    (15 * NSEC_PER_MSEC) /* of searching, between two looks at the keys */
#define STEP_BUDGET 16384
#define SPEED_MIN   62 /* thousandths */
#define SPEED_MAX   1024000

/* No alternate screen of the terminal is left, and lines wrap again. */
#define ENTER "\033[?1049h\033[?25l\033[?7l\033[2J"
#define LEAVE "\033[0m\033[?7h\033[?25h\033[?1049l"

enum ask { ASK_NOTHING, ASK_TIME, ASK_TEXT };

struct ui {
	const struct replay_ui *opt;
	struct playback *p;
	struct view view;
	bool playing, help, quit, searching;
	bool stop_at; /* an exact way to `target`, not done yet */
	uint64_t target;
	uint64_t speed;
	uint64_t clock; /* CLOCK_MONOTONIC when playing last moved on */
	uint64_t heard; /* playback time of the last record, for silences */
	enum ask ask;
	char typed[PLAYBACK_TEXT_MAX + 1], text[PLAYBACK_TEXT_MAX + 1];
	char message[200];
	bool broken; /* the record cannot be read further */
};

static volatile sig_atomic_t ended, resized = 1;

static void on_end(int sig)
{
	ended = sig;
}

static void on_change(int sig)
{
	resized = sig;
}

static const int ENDS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
static const int CHANGES[] = { SIGWINCH, SIGCONT };

/* They come in poll only: no look at a flag can be too early. */
static void catch_signals(sigset_t *ret_old)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(ENDS); i++) {
		sigaction(ENDS[i], &(struct sigaction){ .sa_handler = on_end }, NULL);
		sigaddset(&set, ENDS[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(CHANGES); i++) {
		sigaction(CHANGES[i], &(struct sigaction){ .sa_handler = on_change }, NULL);
		sigaddset(&set, CHANGES[i]);
	}
	sigprocmask(SIG_BLOCK, &set, ret_old);
}

static void say(struct ui *ui, const char *text)
{
	snprintf(ui->message, sizeof(ui->message), "%s", text);
	plain_text(ui->message, '?', "");
}

static void fail(struct ui *ui, const struct err *err)
{
	ui->playing = ui->searching = ui->stop_at = false;
	ui->broken = true;
	say(ui, err_text(err));
}

/* ---- in time ---- */

static void go_to(struct ui *ui, uint64_t to)
{
	struct err err = { 0 };

	ui->stop_at = ui->searching = ui->broken = false;
	if (playback_seek(ui->p, to, false, &err) < 0)
		fail(ui, &err);
	ui->heard = playback_now(ui->p);
	ui->clock = clock_ns(CLOCK_MONOTONIC);
}

static void move(struct ui *ui, int64_t ns)
{
	uint64_t now = playback_now(ui->p), back = (uint64_t)-ns;

	go_to(ui, ns >= 0 ? now + (uint64_t)ns : now > back ? now - back : 0);
}

/* The screen as it really was: all from the start, as far as this moment. */
static void rebuild(struct ui *ui)
{
	struct err err = { 0 };

	ui->target = playback_now(ui->p);
	if (playback_seek(ui->p, 0, true, &err) < 0)
		fail(ui, &err);
	else
		ui->stop_at = true;
}

static void step(struct ui *ui, uint64_t to)
{
	struct err err = { 0 };
	uint64_t next = playback_next(ui->p);
	int r = playback_step(ui->p, to, STEP_BUDGET, &err);

	if (next <= to)
		ui->heard = playback_now(ui->p);
	if (r < 0)
		fail(ui, &err);
	if (r == 0 && ui->stop_at && to == ui->target)
		ui->stop_at = false;
}

static void play(struct ui *ui)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), at = playback_now(ui->p), to, next, end;

	if (ui->stop_at) {
		step(ui, ui->target);
		ui->clock = now;
		return;
	}
	if (!ui->playing)
		return;
	to = at + (now - ui->clock) * ui->speed / 1000;
	next = playback_next(ui->p);
	ui->clock = now;
	end = MAX(playback_length(ui->p), next == PLAYBACK_NEVER ? at : next);
	to = MIN(to, end);
	if (next == PLAYBACK_NEVER) {
		ui->playing = to < end;
	} else if (ui->opt->idle_ns && next > to && to - MIN(to, ui->heard) >= ui->opt->idle_ns) {
		to = next; /* nothing but silence until then */
	}
	step(ui, to);
}

/* ---- searching ---- */

static void find(struct ui *ui, enum playback_find what, const char *text)
{
	struct err err = { 0 };

	if (playback_find(ui->p, what, text, &err) < 0) {
		say(ui, err_text(&err));
		return;
	}
	ui->playing = ui->stop_at = false;
	ui->searching = true;
}

static void search(struct ui *ui)
{
	struct err err = { 0 };
	uint64_t at = 0;
	char text[24], line[64];
	int r;

	if (!ui->searching) {
		playback_index(ui->p, SLICE_NS);
		return;
	}
	r = playback_find_more(ui->p, SLICE_NS, &at, &err);
	if (r == -EAGAIN) {
		snprintf(line, sizeof(line), "searching at %s, any key ends it",
			 view_time(playback_find_at(ui->p), text));
		say(ui, line);
		return;
	}
	ui->searching = false;
	if (r == 1) {
		say(ui, "");
		go_to(ui, at);
	} else {
		say(ui, r < 0 ? err_text(&err) : "not found");
	}
}

/* ---- keys ---- */

/* "90" seconds, "1:30", "1:02:03.5", "50%". False: none of these. */
static bool parse_time(const char *text, uint64_t length, uint64_t *ret)
{
	double v = 0;
	char *end;

	if (!*text)
		return false;
	for (int i = 0; i < 3; i++) {
		double part = strtod(text, &end);

		if (end == text || !(part >= 0) || part > 1e9)
			return false;
		v = v * 60 + part;
		if (*end != ':')
			break;
		text = end + 1;
	}
	if (*end == '%' && !end[1] && v <= 100) {
		*ret = (uint64_t)((double)length / 100 * v);
		return true;
	}
	*ret = (uint64_t)(v * 1e9);
	return !*end;
}

static void answer(struct ui *ui)
{
	enum ask ask = ui->ask;
	uint64_t to;

	ui->ask = ASK_NOTHING;
	if (ask == ASK_TIME) {
		if (parse_time(ui->typed, playback_length(ui->p), &to))
			go_to(ui, to);
		else if (ui->typed[0])
			say(ui, "no time: 90, 1:30 or 50%");
		return;
	}
	if (ui->typed[0])
		snprintf(ui->text, sizeof(ui->text), "%s", ui->typed);
	if (ui->text[0])
		find(ui, PLAYBACK_FIND_TEXT, ui->text);
}

static void edit(struct ui *ui, unsigned char c)
{
	size_t n = strlen(ui->typed);

	if (c == '\r' || c == '\n')
		answer(ui);
	else if (c == 0x1b || c == 3)
		ui->ask = ASK_NOTHING;
	else if ((c == 0x7f || c == 8) && n)
		ui->typed[n - 1] = 0;
	else if (c >= 0x20 && c < 0x7f && n + 1 < sizeof(ui->typed)) {
		ui->typed[n] = (char)c;
		ui->typed[n + 1] = 0;
	}
}

static void ask(struct ui *ui, enum ask what)
{
	ui->ask = what;
	ui->typed[0] = 0;
}

static void set_speed(struct ui *ui, uint64_t speed)
{
	ui->speed = MIN(MAX(speed, (uint64_t)SPEED_MIN), (uint64_t)SPEED_MAX);
	ui->clock = clock_ns(CLOCK_MONOTONIC);
}

static void toggle(struct ui *ui)
{
	if (!ui->playing && playback_next(ui->p) == PLAYBACK_NEVER && !ui->broken)
		go_to(ui, 0); /* at the end: once more */
	ui->playing = !ui->playing && !ui->broken;
	ui->clock = clock_ns(CLOCK_MONOTONIC);
	ui->heard = playback_now(ui->p);
}

static void press(struct ui *ui, int key)
{
	ui->help = key == '?' && !ui->help;
	switch (key) {
	case 'q':
	case 3:
		ui->quit = true;
		break;
	case ' ':
		toggle(ui);
		break;
	case '.':
		ui->playing = false;
		if (playback_next(ui->p) != PLAYBACK_NEVER)
			step(ui, playback_next(ui->p));
		break;
	case ',':
		ui->playing = false;
		move(ui, -(int64_t)NSEC_PER_SEC / 10);
		break;
	case '+':
	case '=':
		set_speed(ui, ui->speed * 2);
		break;
	case '-':
		set_speed(ui, ui->speed / 2);
		break;
	case '1':
		set_speed(ui, 1000);
		break;
	case ']':
		move(ui, 60 * (int64_t)NSEC_PER_SEC);
		break;
	case '[':
		move(ui, -60 * (int64_t)NSEC_PER_SEC);
		break;
	case 'g':
		ask(ui, ASK_TIME);
		break;
	case '/':
		ask(ui, ASK_TEXT);
		break;
	case 'n':
		find(ui, PLAYBACK_FIND_NEXT, NULL);
		break;
	case 'N':
		find(ui, PLAYBACK_FIND_PREVIOUS, NULL);
		break;
	case 'r':
		rebuild(ui);
		break;
	default:
		break;
	}
}

/* Behind ESC [ or ESC O. */
static void press_special(struct ui *ui, char final)
{
	switch (final) {
	case 'C':
		move(ui, 5 * (int64_t)NSEC_PER_SEC);
		break;
	case 'D':
		move(ui, -5 * (int64_t)NSEC_PER_SEC);
		break;
	case 'H':
		go_to(ui, 0);
		break;
	case 'F':
		go_to(ui, playback_length(ui->p));
		break;
	default:
		break;
	}
}

static void read_keys(struct ui *ui)
{
	char keys[64];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		ui->quit = true;
		return;
	}
	if (ui->searching) {
		ui->searching = false;
		say(ui, "");
		return;
	}
	say(ui, "");
	for (ssize_t i = 0; i < n && !ui->quit; i++) {
		if (keys[i] == 0x1b && i + 2 < n && (keys[i + 1] == '[' || keys[i + 1] == 'O')) {
			i += 2;
			while (i < n && !(keys[i] >= 0x40 && keys[i] <= 0x7e))
				i++;
			if (i < n && ui->ask == ASK_NOTHING)
				press_special(ui, keys[i]);
		} else if (ui->ask != ASK_NOTHING) {
			edit(ui, (unsigned char)keys[i]);
		} else {
			press(ui, (unsigned char)keys[i]);
		}
	}
}

/* ---- the loop ---- */

static int draw(struct ui *ui)
{
	static const char *const prompts[] = { [ASK_TIME] = "go to: ", [ASK_TEXT] = "/" };
	const struct view_state st = {
		.playing = ui->playing || ui->stop_at,
		.help = ui->help,
		.searching = ui->searching,
		.speed = ui->speed,
		.prompt = ui->ask ? prompts[ui->ask] : NULL,
		.typed = ui->typed,
		.message = ui->message,
	};
	uint16_t rows = 0, cols = 0;

	if (resized) {
		resized = 0;
		term_raw_again();
		term_size(STDOUT_FILENO, &rows, &cols);
		ui->view.rows = rows ? rows : 24;
		ui->view.cols = cols ? cols : 80;
		view_forget(&ui->view);
		(void)!write(STDOUT_FILENO, "\033[2J", 4);
	}
	return view_draw(&ui->view, ui->p, &st);
}

static uint64_t wait_ns(const struct ui *ui)
{
	uint64_t next = playback_next(ui->p), now = playback_now(ui->p), ns;

	if (ui->searching || ui->stop_at || playback_index(ui->p, 0))
		return 0;
	if (!ui->playing)
		return UINT64_MAX;
	if (next == PLAYBACK_NEVER || next <= now)
		return 0;
	/* often enough for the clock on the screen */
	ns = (next - now) / ui->speed * 1000;
	return MIN(MAX(ns, NSEC_PER_MSEC), FRAME_NS);
}

static int loop(struct ui *ui, const sigset_t *mask)
{
	int r = 0;

	ui->clock = clock_ns(CLOCK_MONOTONIC);
	while (r == 0 && !ui->quit && !ended) {
		struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };
		struct timespec ts;
		uint64_t ns;

		play(ui);
		search(ui);
		r = draw(ui);
		ns = wait_ns(ui);
		ts = (struct timespec){ (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };
		if (ppoll(&pfd, 1, ns == UINT64_MAX ? NULL : &ts, mask) > 0)
			read_keys(ui);
	}
	return r;
}

int replay_ui(const struct replay_ui *opt, int bundle, struct err *err)
{
	AUTO(playback) struct playback *p = NULL;
	static struct ui ui;
	sigset_t mask;
	int r;

	r = playback_open(&p, bundle, &opt->playback, err);
	if (r < 0)
		return r;
	ui = (struct ui){ .opt = opt, .p = p, .speed = opt->speed, .playing = true };
	ui.view.colour = opt->playback.colour;
	catch_signals(&mask);
	r = term_raw(STDIN_FILENO);
	if (r < 0)
		return err_set(err, r, "terminal: %m");
	term_on_restore(STDOUT_FILENO, LEAVE);
	r = fd_write_all(STDOUT_FILENO, ENTER, sizeof(ENTER) - 1);
	if (opt->from)
		go_to(&ui, opt->from);
	if (r == 0)
		r = loop(&ui, &mask);
	term_restore();
	view_done(&ui.view);
	if (ended) {
		signal(ended, SIG_DFL);
		sigprocmask(SIG_SETMASK, &mask, NULL);
		raise(ended);
	}
	return r < 0 ? err_set(err, r, "terminal: %m") : 0;
}
