// SPDX-License-Identifier: Apache-2.0
/* The terminal of what an agent runs: bytes in, bytes out, signals and sizes. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/base/plain.h"
#include "userspace/base/term.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/agent_json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"

#define GONE	      "the agent, or the sandbox's keeper, has gone away"
#define DETACH_FIRST  16 /* ^P ^Q */
#define DETACH_SECOND 17

struct talk {
	int sock, signals;
	bool raw, in_open, pressed, ended;
	bool stays; /* no keys of ours */
	bool as_json;
	struct agent_json json;
	void (*line)(struct str row);
	void (*began)(void *arg, int code, const char *why);
	void *arg;
	uint64_t sent, got; /* bytes of input and output */
	int code;
	char packet[AGENT_FRAME_MAX];
};

static const int PASSED[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH };

bool agent_is_there(void)
{
	auto_close int fd = -1;

	return agent_connect(&fd) == 0;
}

static int send_order(struct talk *t, const struct agent_request *q)
{
	auto_buf struct buf text = { 0 };
	int r = agent_request_print(&text, q);

	return r < 0 ? r : agent_send(t->sock, text.p, text.n, -1, 0);
}

static void send_size(struct talk *t)
{
	struct agent_request q = { .op = AGENT_RESIZE };

	if (term_size(STDIN_FILENO, &q.rows, &q.cols) == 0 && q.rows && q.cols)
		send_order(t, &q);
}

/* ---- what comes ---- */

static void tell_began(struct talk *t, int code, const char *why)
{
	if (t->began)
		t->began(t->arg, code, why);
	t->began = NULL;
}

static void take_error(struct talk *t, const char *why, int code)
{
	term_restore();
	log_set_newline("\n");
	if (t->began)
		tell_began(t, code, why);
	else if (t->as_json)
		agent_json_error(&t->json, why);
	else
		log_error("%s", why);
	t->code = code;
	t->ended = true;
}

static void take_answer(struct talk *t, struct str text)
{
	char word[1024], number[64];
	uint64_t code;
	struct str v;

	cli_member(text, "error", word, sizeof(word));
	if (*word) {
		cli_member(text, "code", number, sizeof(number));
		take_error(t, word,
			   parse_u64(number, &code) == 0 && code && code < 256 ? (int)code
									       : EXIT_WARDER);
		return;
	}
	if (scan_find(text, "started", &v))
		tell_began(t, 0, NULL);
	if (scan_find(text, "line", &v) && t->line) /* a row of a list */
		t->line(v);
	else if (scan_find(text, "line", &v))
		printf("%.*s\n", (int)v.n, v.p);
	cli_member(text, "session", word, sizeof(word));
	if (*word && !t->as_json)
		printf("%s\n", word);
	cli_member(text, "detached", word, sizeof(word));
	if (*word) {
		t->ended = true;
		t->code = 0;
	}
	cli_member(text, "exit", word, sizeof(word));
	if (*word) {
		t->code = parse_u64(word, &code) == 0 && code < 256 ? (int)code : EXIT_WARDER;
		t->ended = true;
	}
}

static void hear(struct talk *t)
{
	ssize_t n = agent_recv(t->sock, t->packet, NULL, 0);

	if (n <= 0) {
		take_error(t, GONE, EXIT_WARDER);
	} else if (t->packet[0] == '{') {
		take_answer(t, (struct str){ t->packet, (size_t)n });
	} else if (t->packet[0] == 'o' || t->packet[0] == 'e') {
		int r;

		t->got += (uint64_t)n - 1;
		fflush(stdout);
		r = t->as_json ? agent_json_data(&t->json, t->packet[0] == 'e',
						 (struct str){ t->packet + 1, (size_t)n - 1 })
			       : fd_write_all(t->packet[0] == 'o' ? STDOUT_FILENO : STDERR_FILENO,
					      t->packet + 1, (size_t)n - 1);
		if (r < 0) {
			t->ended = true; /* nobody reads: the command gets its SIGPIPE by our end */
			t->code = 128 + SIGPIPE;
		}
	}
}

/* ---- what goes ---- */

/* ^P ^Q leaves, one ^P waits for the key after it. Returns the bytes to send. */
static size_t look_for_detach(struct talk *t, char *p, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (t->pressed && c == DETACH_SECOND) {
			send_order(t, &(struct agent_request){ .op = AGENT_DETACH });
			return 0;
		}
		t->pressed = c == DETACH_FIRST && !t->pressed;
		if (!t->pressed)
			p[out++] = c;
	}
	return out;
}

static void read_input(struct talk *t)
{
	ssize_t n = read(STDIN_FILENO, t->packet + 1, AGENT_DATA_MAX);
	size_t len;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		t->in_open = false;
	len = n > 0 ? (size_t)n : 0;
	if (n > 0 && t->raw)
		len = look_for_detach(t, t->packet + 1, len);
	if (n > 0 && !len)
		return;
	t->packet[0] = 'i';
	t->sent += len;
	agent_send(t->sock, t->packet, 1 + len, -1, 0);
}

static void pass_signals(struct talk *t)
{
	struct signalfd_siginfo si;

	while (read(t->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGWINCH)
			send_size(t);
		else
			send_order(t, &(struct agent_request){ .op = AGENT_SIGNAL,
							       .signal = (int)si.ssi_signo });
	}
}

static int catch_signals(struct talk *t)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(PASSED); i++)
		sigaddset(&set, PASSED[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return t->signals < 0 ? -errno : 0;
}

/* Input waits while the socket takes none: what comes back has to be read meanwhile. */
static void loop(struct talk *t)
{
	while (!t->ended) {
		struct pollfd room = { .fd = t->sock, .events = POLLOUT };
		bool can_send = poll(&room, 1, 0) == 1 && room.revents & POLLOUT;
		struct pollfd fds[] = {
			{ .fd = t->sock,
			  .events = (short)(POLLIN | (can_send || !t->in_open ? 0 : POLLOUT)) },
			{ .fd = t->signals, .events = POLLIN },
			{ .fd = t->in_open && can_send ? STDIN_FILENO : -1, .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
			hear(t);
		if (fds[1].revents)
			pass_signals(t);
		if (fds[2].revents)
			read_input(t);
	}
}

static bool takes_input(enum agent_op op)
{
	return op == AGENT_RUN || op == AGENT_EXEC || op == AGENT_ATTACH;
}

static struct talk talk; /* one a process */

static int refuse(struct talk *t, const char *text)
{
	if (t->as_json)
		agent_json_error(&t->json, text);
	else
		log_error("%s", text);
	return EXIT_WARDER;
}

static int be_terminal(struct talk *t, bool tty)
{
	if (tty && term_raw(STDIN_FILENO) == 0) {
		t->raw = !t->stays;
		log_set_newline("\r\n");
	}
	loop(t);
	term_restore();
	log_set_newline("\n");
	close(t->sock);
	return t->code;
}

static int begin_talk(const struct agent_request *asked, void (*line)(struct str row), bool as_json)
{
	struct agent_request q = *asked;
	struct talk *t = &talk;
	char text[256];
	int r;

	*t = (struct talk){
		.sock = -1, .as_json = as_json, .line = line, .in_open = takes_input(q.op)
	};
	r = agent_connect(&t->sock);
	if (r < 0) {
		snprintf(text, sizeof(text),
			 "no agent answers at the control socket: %s (warder agent)", strerror(-r));
		return refuse(t, text);
	}
	if (q.tty && term_size(STDIN_FILENO, &q.rows, &q.cols) < 0)
		return refuse(t, "option '--tty': the input device is not a terminal (TTY)");
	q.term = q.tty ? getenv("TERM") : NULL;
	r = catch_signals(t);
	if (r == 0)
		r = send_order(t, &q);
	if (r < 0 && r != -EPIPE) { /* it may have said why before it was asked */
		snprintf(text, sizeof(text),
			 r == -EMSGSIZE ? "the command is too long for the agent: --no-agent"
					: "asking the agent: %s",
			 strerror(-r));
		return refuse(t, text);
	}
	return be_terminal(t, q.tty);
}

int agent_talk_on(int sock, bool tty, void (*began)(void *arg, int code, const char *why),
		  void *arg)
{
	struct talk *t = &talk;

	*t = (struct talk){
		.sock = sock, .in_open = true, .stays = true, .began = began, .arg = arg
	};
	if (catch_signals(t) < 0) {
		tell_began(t, EXIT_WARDER, "signals");
		return EXIT_WARDER;
	}
	return cli_finish_output(be_terminal(t, tty));
}

uint64_t agent_talk_bytes(bool in)
{
	return in ? talk.sent : talk.got;
}

int agent_talk(const struct agent_request *asked, void (*line)(struct str row))
{
	int code = begin_talk(asked, line, false);

	return cli_finish_output(code);
}

int agent_talk_json(const struct agent_request *asked, void (*line)(struct str row), bool ends)
{
	int code = begin_talk(asked, line, true);

	if (ends)
		agent_json_exit(&talk.json, code);
	return cli_finish_output(code);
}
