// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/pipeline/confine_calls.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/hub_streams.h"
#include "userspace/pipeline/privdrop.h"

/* ---- the talk with the keeper ---- */

int hub_send(int fd, const struct hub_msg *m, int pass_fd)
{
	return agent_send(fd, m, HUB_MSG_HEAD + m->n, pass_fd, 0);
}

int hub_recv(int fd, struct hub_msg *m, int *ret_fd)
{
	_Static_assert(sizeof(*m) <= AGENT_FRAME_MAX, "a message is one packet");
	char packet[AGENT_FRAME_MAX];
	ssize_t n = agent_recv(fd, packet, ret_fd, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0 && n != -EMSGSIZE)
		return -EPIPE;
	memset(m, 0, HUB_MSG_HEAD);
	if (n >= (ssize_t)HUB_MSG_HEAD && n <= (ssize_t)sizeof(*m))
		memcpy(m, packet, (size_t)n);
	if (n < 0 || (size_t)n != HUB_MSG_HEAD + m->n)
		m->type = 0;
	return 1;
}

static void tell_keeper(struct hub *h, uint32_t type, uint32_t id, int code, int sig)
{
	struct hub_msg *m = &h->msg;

	memset(m, 0, HUB_MSG_HEAD);
	m->type = type;
	m->id = id;
	m->code = code;
	m->signal = sig;
	hub_send(h->keeper, m, -1);
}

static void tell_clients(struct hub *h)
{
	int n = 0;

	for (int i = 0; i < HUB_CLIENTS_MAX; i++)
		n += h->client[i].fd >= 0;
	if (n != h->told_clients)
		tell_keeper(h, HUB_CLIENTS, 0, n, 0);
	h->told_clients = n;
}

/* ---- clients ---- */

static void say_exit(struct hub *h, struct hub_client *c, int code, int sig, const char *result)
{
	struct json j;

	buf_reset(&h->text);
	json_init(&j, &h->text);
	json_object_begin(&j);
	json_key(&j, "exit");
	json_i64(&j, code);
	json_key(&j, "signal");
	json_i64(&j, sig);
	if (result && *result) {
		json_key(&j, "reason");
		json_strz(&j, result);
	}
	json_object_end(&j);
	hub_client_queue(c, h->text.p, h->text.n);
}

/* `error`: an errno that says which kind it is; 0. */
static void say_error(struct hub *h, struct hub_client *c, int code, int error, const char *text)
{
	struct json j;

	buf_reset(&h->text);
	json_init(&j, &h->text);
	json_object_begin(&j);
	json_key(&j, "error");
	json_strz(&j, text);
	json_key(&j, "code");
	json_i64(&j, code);
	if (error) {
		json_key(&j, "errno");
		json_strz(&j, strerrorname_np(error));
	}
	json_object_end(&j);
	hub_client_queue(c, h->text.p, h->text.n);
}

static void drop_client(struct hub *h, struct hub_client *c)
{
	struct hub_stream *s = c->stream;

	close(take_fd(c->fd));
	buf_done(&c->queue);
	if (s && s->owner == c) {
		s->owner = NULL;
		if (!s->id && !s->done)
			tell_keeper(h, HUB_GONE, 0, 0, 0);
		else if (!s->done)
			tell_keeper(h, HUB_SIGNAL, s->id, 0, SIGHUP);
	}
	c->stream = NULL;
}

static struct hub_client *add_client(struct hub *h, int fd)
{
	for (int i = 0; i < HUB_CLIENTS_MAX; i++)
		if (h->client[i].fd < 0) {
			h->client[i] = (struct hub_client){ .fd = fd };
			buf_init(&h->client[i].queue, HUB_QUEUE_MAX);
			return &h->client[i];
		}
	agent_send_errno(fd, EXIT_OURS, EBUSY, "too many clients of this sandbox");
	close(fd);
	return NULL;
}

static bool add_words(struct hub_msg *m, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(v[i]) + 1;

		if (len > sizeof(m->words) - m->n)
			return false;
		memcpy(m->words + m->n, v[i], len);
		m->n += (uint32_t)len;
	}
	return true;
}

static void begin_exec(struct hub *h, struct hub_client *c, const struct agent_request *q)
{
	struct hub_stream *s = hub_stream_add(h);
	const char *cwd = q->cwd ? q->cwd : "";
	struct hub_msg *m = &h->msg;

	memset(m, 0, HUB_MSG_HEAD);
	m->type = HUB_EXEC;
	m->tty = q->tty;
	m->rows = q->rows;
	m->cols = q->cols;
	m->argc = (uint32_t)q->argc;
	m->envc = (uint32_t)q->env_n;
	if (!s)
		return say_error(h, c, EXIT_OURS, EBUSY, "too many commands run in this sandbox");
	m->id = s->id;
	if (!q->argc)
		say_error(h, c, EXIT_OURS, EINVAL, "no command given");
	else if (!add_words(m, q->argv, q->argc) || !add_words(m, q->env, q->env_n) ||
		 !add_words(m, &cwd, 1))
		say_error(h, c, EXIT_OURS, E2BIG, "command and environment are too long");
	else if (hub_send(h->keeper, m, -1) < 0)
		say_error(h, c, EXIT_OURS, ESRCH, "the sandbox is busy, or has ended");
	else {
		s->tty = q->tty;
		s->owner = c;
		c->stream = s;
		return;
	}
	hub_stream_free(s);
}

/* Its stream has no bytes, only an end. */
static void begin_snapshot(struct hub *h, struct hub_client *c, const struct agent_request *q)
{
	struct hub_stream *s = hub_stream_add(h);
	const char *who = q->who ? q->who : "";
	struct hub_msg *m = &h->msg;

	memset(m, 0, HUB_MSG_HEAD);
	m->type = HUB_SNAPSHOT;
	if (!s)
		return say_error(h, c, EXIT_OURS, EBUSY, "too many commands run in this sandbox");
	m->id = s->id;
	m->code = q->argc == 3; /* what runs, too */
	if (q->argc != 2 && q->argc != 3)
		say_error(h, c, EXIT_OURS, EINVAL, "one name of a snapshot, and its room");
	else if (!add_words(m, q->argv, 2) || !add_words(m, &who, 1) ||
		 hub_send(h->keeper, m, -1) < 0)
		say_error(h, c, EXIT_OURS, ESRCH, "the sandbox is busy, or has ended");
	else {
		s->owner = c;
		c->stream = s;
		return;
	}
	hub_stream_free(s);
}

static void say_line(struct hub *h, struct hub_client *c, const struct hub_msg *m)
{
	buf_reset(&h->text);
	buf_printf(&h->text, "{\"line\":%.*s}", (int)m->n, m->words);
	hub_client_queue(c, h->text.p, h->text.n);
}

static void begin_attach(struct hub *h, struct hub_client *c)
{
	struct hub_stream *s = &h->stream[0];

	if (!h->attachable)
		return say_error(
			h, c, EXIT_OURS, EINVAL,
			"this sandbox began without a command: there is nothing to attach to "
			"(warder exec)");
	c->stream = s;
	hub_client_queue(c, "{\"attached\":true}", 17);
	for (size_t at = 0; at < h->ring.n; at += AGENT_DATA_MAX)
		hub_client_data(c, 'o', h->ring.p + at,
				MIN(h->ring.n - at, (size_t)AGENT_DATA_MAX));
}

/* A client comes with its first request. */
static void take_visitor(struct hub *h)
{
	struct agent_request q;
	struct hub_client *c;
	struct err err = { 0 };
	int fd = -1, r;
	ssize_t n = agent_recv(h->listen, h->packet, &fd, MSG_DONTWAIT);

	if (n <= 0 || fd < 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	c = add_client(h, fd);
	if (!c)
		return;
	arena_reset(&h->arena);
	r = agent_request_parse(&q, &h->arena, (struct str){ h->packet, (size_t)n }, &err);
	if (r < 0)
		say_error(h, c, EXIT_OURS, EBADMSG, err_text(&err));
	else if (q.op == AGENT_EXEC)
		begin_exec(h, c, &q);
	else if (q.op == AGENT_SNAPSHOT)
		begin_snapshot(h, c, &q);
	else if (q.op == AGENT_ATTACH)
		begin_attach(h, c);
	else
		say_error(h, c, EXIT_OURS, EOPNOTSUPP, "not for this sandbox");
}

static void resize(struct hub_stream *s, const struct agent_request *q)
{
	struct winsize ws = { .ws_row = q->rows, .ws_col = q->cols };

	if (s->tty && s->in >= 0 && q->rows && q->cols)
		ioctl(s->in, TIOCSWINSZ, &ws);
}

static void take_order(struct hub *h, struct hub_client *c, struct str text)
{
	struct agent_request q;

	arena_reset(&h->arena);
	if (agent_request_parse(&q, &h->arena, text, NULL) < 0)
		return;
	if (q.op == AGENT_SIGNAL && q.signal)
		c->stream->asked = true;
	if (q.op == AGENT_SIGNAL && q.signal)
		tell_keeper(h, HUB_SIGNAL, c->stream->id, 0, q.signal);
	else if (q.op == AGENT_RESIZE)
		resize(c->stream, &q);
	else if (q.op == AGENT_DETACH) {
		if (c->stream->owner == c)
			c->stream->owner = NULL;
		c->stream = NULL;
		hub_client_queue(c, "{\"detached\":true}", 17);
		c->leaving = true;
	}
}

static void hear_client(struct hub *h, struct hub_client *c)
{
	struct hub_stream *s = c->stream;
	ssize_t n = agent_recv(c->fd, h->packet, NULL, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return;
	if (n <= 0) {
		drop_client(h, c);
		return;
	}
	if (!s)
		return;
	if (h->packet[0] == '{')
		take_order(h, c, (struct str){ h->packet, (size_t)n });
	else if (h->packet[0] == 'i' && n > 1)
		hub_stream_input(s, h->packet + 1, (size_t)n - 1);
	else if (h->packet[0] == 'i')
		s->in_eof = !s->tty; /* of a terminal the client sends what is typed */
}

/* ---- streams ---- */

static void end_stream(struct hub *h, struct hub_stream *s)
{
	for (int i = 0; i < HUB_CLIENTS_MAX; i++) {
		struct hub_client *c = &h->client[i];

		if (c->fd < 0 || c->stream != s)
			continue;
		say_exit(h, c, s->code, s->signal, h->finished ? h->result : NULL);
		c->stream = NULL;
		c->leaving = true;
	}
	if (s->id)
		tell_keeper(h, HUB_CLOSED, s->id, 0, 0);
	hub_stream_free(s);
}

static void refuse_stream(struct hub *h, struct hub_stream *s, const struct hub_msg *m)
{
	if (s->owner) {
		say_error(h, s->owner, m->code, m->signal, m->words);
		s->owner->leaving = true;
		s->owner->stream = NULL;
	}
	tell_keeper(h, HUB_CLOSED, s->id, 0, 0);
	hub_stream_free(s);
}

/* True: the keeper has gone. */
static bool hear_keeper(struct hub *h)
{
	struct hub_msg *m = &h->msg;
	struct hub_stream *s;
	int fd = -1, r = hub_recv(h->keeper, m, &fd);

	if (r < 0 && h->finished) { /* all was said */
		close(take_fd(h->keeper));
		return false;
	}
	if (r <= 0)
		return r < 0;
	m->words[MIN((size_t)m->n, sizeof(m->words) - 1)] = 0;
	s = hub_stream_find(h, m->id);
	if (s && m->type == HUB_OPENED && fd >= 0) {
		hub_stream_open(s, m->code, take_fd(fd));
	} else if (s && m->type == HUB_STARTED && s->owner && !s->id && h->let_go) {
		hub_client_queue(s->owner, "{\"started\":true,\"exit\":0}", 25);
		s->owner->leaving = true;
		s->owner->stream = NULL;
		s->owner = NULL;
	} else if (s && m->type == HUB_STARTED && s->owner) {
		hub_client_queue(s->owner, "{\"started\":true}", 16);
	} else if (s && m->type == HUB_LINE && s->owner) {
		say_line(h, s->owner, m);
	} else if (s && m->type == HUB_FAILED) {
		refuse_stream(h, s, m);
	} else if (s && (m->type == HUB_DONE || m->type == HUB_FINISHED)) {
		s->done = clock_ns(CLOCK_MONOTONIC);
		s->heard = s->done;
		s->code = m->code;
		s->signal = m->signal;
	}
	if (m->type == HUB_FINISHED) {
		memcpy(h->result, m->words, MIN((size_t)m->n + 1, sizeof(h->result)));
		h->result[sizeof(h->result) - 1] = 0;
		h->finished = clock_ns(CLOCK_MONOTONIC);
	}
	if (fd >= 0)
		close(fd);
	return false;
}

/* Who breaks a rule is killed by the kernel at once, and its sandbox some milliseconds later: then that is why. */
static bool may_be_a_rule(const struct hub *h, const struct hub_stream *s, uint64_t now)
{
	return s->id && s->signal == SIGKILL && !s->asked && !h->finished &&
	       now - s->done < HUB_RULE_NS;
}

static void look_at_ends(struct hub *h)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < HUB_STREAMS_MAX; i++) {
		struct hub_stream *s = &h->stream[i];

		if (s->used && s->done && hub_stream_is_dry(s, now) && !may_be_a_rule(h, s, now))
			end_stream(h, s);
	}
	if (!h->finished)
		return;
	for (int i = 1; i < HUB_STREAMS_MAX; i++) /* their processes are dead */
		if (h->stream[i].used && !h->stream[i].done) {
			h->stream[i].done = h->stream[i].heard = now;
			h->stream[i].code = 137;
			h->stream[i].signal = SIGKILL;
		}
}

/* Nothing is left to tell, or nobody takes it. */
static bool is_over(const struct hub *h)
{
	if (!h->finished)
		return false;
	if (clock_ns(CLOCK_MONOTONIC) - h->finished > HUB_LAST_NS)
		return true;
	for (int i = 0; i < HUB_STREAMS_MAX; i++)
		if (h->stream[i].used)
			return false;
	for (int i = 0; i < HUB_CLIENTS_MAX; i++)
		if (h->client[i].fd >= 0)
			return false;
	return true;
}

static bool is_undecided(const struct hub *h)
{
	for (int i = 1; i < HUB_STREAMS_MAX; i++)
		if (h->stream[i].used && h->stream[i].done)
			return true;
	return false;
}

static void serve(struct hub *h)
{
	struct hub_poll p;

	while (!is_over(h)) {
		hub_poll_set(h, &p);
		if (poll(p.fds, p.n, h->finished || is_undecided(h) ? HUB_TICK_MS : -1) < 0 &&
		    errno != EINTR)
			return;
		if (p.fds[0].revents && hear_keeper(h))
			return;
		if (p.fds[1].revents)
			take_visitor(h);
		for (int i = 0; i < HUB_CLIENTS_MAX; i++) {
			struct hub_client *c = &h->client[i];

			if (c->fd >= 0 && p.client[i] >= 0 &&
			    p.fds[p.client[i]].revents & (POLLIN | POLLHUP | POLLERR))
				hear_client(h, c);
		}
		for (int i = 0; i < HUB_STREAMS_MAX; i++)
			hub_stream_pump(h, &h->stream[i]);
		look_at_ends(h);
		for (int i = 0; i < HUB_CLIENTS_MAX; i++)
			if (h->client[i].fd >= 0 && !hub_client_flush(&h->client[i]))
				drop_client(h, &h->client[i]);
		tell_clients(h);
	}
}

void hub_run(const struct hub_options *opt, int keeper)
{
	struct hub *h = calloc(1, sizeof(*h));

	if (!h)
		return;
	h->keeper = keeper;
	h->listen = opt->listen;
	h->let_go = opt->let_go;
	h->attachable = opt->attachable;
	arena_init(&h->arena, 4 * AGENT_FRAME_MAX + 2 * AGENT_WORDS_MAX * sizeof(char *));
	buf_init(&h->text, AGENT_FRAME_MAX);
	buf_init(&h->ring, 2 * HUB_RING_MAX);
	for (int i = 0; i < HUB_CLIENTS_MAX; i++)
		h->client[i].fd = -1;
	hub_stream_first(h, opt->in, opt->out, opt->err, opt->tty);
	if (opt->client >= 0) {
		h->stream[0].owner = add_client(h, opt->client);
		h->stream[0].owner->stream = &h->stream[0];
	}
	serve(h);
	for (int i = 0; i < HUB_CLIENTS_MAX; i++)
		if (h->client[i].fd >= 0) {
			if (!h->finished)
				agent_send_error(h->client[i].fd, EXIT_OURS,
						 "the sandbox's keeper died");
			close(h->client[i].fd);
			buf_done(&h->client[i].queue);
		}
	for (int i = 0; i < HUB_STREAMS_MAX; i++)
		hub_stream_free(&h->stream[i]);
	arena_done(&h->arena);
	buf_done(&h->text);
	buf_done(&h->ring);
	free(h);
}

int hub_start(pid_t *ret_pid, int *ret_fd, const struct hub_options *opt, struct err *err)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "hub: socketpair: %m");
	pid = fork();
	if (pid == 0) {
		int keep[] = { pair[1], opt->listen, opt->in, opt->out, opt->err, opt->client };
		int null = open("/dev/null", O_RDWR);

		for (int i = 0; null >= 0 && i < 3; i++)
			dup2(null, i);
		prctl(PR_SET_NAME, "warder-hub");
		signal(SIGPIPE, SIG_IGN);
		/* A terminal's ^C is for the command, not for who carries it there. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		if (fd_keep_only(keep, ARRAY_SIZE(keep)) < 0 ||
		    privdrop(opt->uid, opt->gid, NULL) < 0 ||
		    confine_files_only(NULL, 0, NULL) < 0 ||
		    confine_calls(CONFINE_TALK | CONFINE_TTY, NULL) < 0)
			_exit(125);
		hub_run(opt, pair[1]);
		_exit(0);
	}
	if (pid < 0) {
		int e = errno;

		close(pair[0]);
		close(pair[1]);
		return err_set(err, e, "hub: fork: %m");
	}
	close(pair[1]);
	*ret_pid = pid;
	*ret_fd = pair[0];
	return 0;
}
