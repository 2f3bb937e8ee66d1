// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/execs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/option.h"
#include "userspace/pipeline/agent_frame.h"

#define HUB_TURNS     64 /* messages in one turn */
#define HUB_SEND_S    2	 /* for a hub that takes nothing: then it counts as dead */
#define EXEC_ENV_MAX  (AGENT_WORDS_MAX + SANDBOX_ENV_MAX + 32)
#define STOP_WAIT_MS  200
#define EXIT_OURS     125
#define EXIT_NOT_EXEC 126
#define EXIT_NOT_HERE 127

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void execs_init(struct execs *x, int hub, uint64_t cap)
{
	const struct timeval wait = { .tv_sec = HUB_SEND_S };

	if (hub >= 0)
		setsockopt(hub, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	*x = (struct execs){ .hub = hub, .record = -1, .cap = cap ? cap : RELAY_ALL };
}

static struct exec_job *find(struct execs *x, uint32_t id)
{
	for (size_t i = 0; i < SANDBOX_EXECS_MAX; i++)
		if (x->job[i].id == id)
			return &x->job[i];
	return NULL;
}

static void release(struct execs *x, struct exec_job *job)
{
	if (job->runs)
		x->running--;
	relay_free(job->relay);
	free(job->words);
	*job = (struct exec_job){ 0 };
}

static void tell(struct execs *x, uint32_t type, uint32_t id, int code, int sig, const char *words,
		 int fd)
{
	static struct hub_msg m; /* the keeper has one thread that comes here */

	memset(&m, 0, HUB_MSG_HEAD);
	m.type = type;
	m.id = id;
	m.code = code;
	m.signal = sig;
	m.n = words ? (uint32_t)MIN(strlen(words), sizeof(m.words) - 1) : 0;
	if (m.n)
		memcpy(m.words, words, m.n);
	if (x->hub >= 0 && hub_send(x->hub, &m, fd) < 0)
		close_fd(&x->hub);
}

/* `error`: a negative errno; 0 = no more is known than the text says. */
static void fail_errno(struct execs *x, uint32_t id, int code, int error, const char *why)
{
	tell(x, HUB_FAILED, id, code, -error, why, -1);
}

static void fail(struct execs *x, uint32_t id, int code, const char *why)
{
	fail_errno(x, id, code, 0, why);
}

/* ---- what it runs with ---- */

/* The plan's environment with the request's in its place; NULL-terminated vectors into `m`. */
struct words {
	char *argv[AGENT_WORDS_MAX + 1];
	char *env[EXEC_ENV_MAX];
	size_t env_n;
	const char *cwd;
};

static void put_env(struct words *w, char *kv)
{
	const char *eq = strchr(kv, '=');
	size_t i, n = eq ? (size_t)(eq - kv) + 1 : 0;

	if (!n || n == 1)
		return;
	for (i = 0; i < w->env_n; i++)
		if (!strncmp(w->env[i], kv, n))
			break;
	if (i == EXEC_ENV_MAX)
		return;
	w->env[i] = kv;
	if (i == w->env_n)
		w->env_n++;
}

/* The message's strings, each with its NUL inside it. */
static bool read_words(struct words *w, struct hub_msg *m, const struct sandbox_plan *plan)
{
	char *const *env;
	size_t at = 0, n = sandbox_plan_env(plan, &env);

	if (!m->argc || m->argc > AGENT_WORDS_MAX || m->envc > AGENT_WORDS_MAX || !m->n ||
	    m->words[m->n - 1])
		return false;
	for (size_t i = 0; i < n; i++)
		put_env(w, env[i]);
	for (size_t i = 0; i < (size_t)m->argc + m->envc + 1; i++) {
		char *word = m->words + at;

		if (at >= m->n)
			return false;
		at += strlen(word) + 1;
		if (i < m->argc)
			w->argv[i] = word;
		else if (i < (size_t)m->argc + m->envc)
			put_env(w, word);
		else
			w->cwd = *word ? word : NULL;
	}
	return at == m->n;
}

/* ---- from the request to the end ---- */

/* Pipes to and from it: its ends in stdio, the hub's ends go there. */
static int open_pipes(struct execs *x, struct exec_job *job, int stdio[3])
{
	int in[2], out[2], err[2], r, ends[2];

	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	stdio[0] = in[0];
	tell(x, HUB_OPENED, job->id, 0, 0, NULL, in[1]);
	close(in[1]);
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return -errno;
	tell(x, HUB_OPENED, job->id, 1, 0, NULL, out[0]);
	tell(x, HUB_OPENED, job->id, 2, 0, NULL, err[0]);
	close(out[0]);
	close(err[0]);
	r = relay_new_to(&job->relay, x->cap, (const int[]){ out[1], err[1] }, ends, NULL);
	stdio[1] = ends[0];
	stdio[2] = ends[1];
	return r;
}

static int begin(struct execs *x, struct exec_job *job, struct hub_msg *m, struct err *err)
{
	auto_free struct words *w = calloc(1, sizeof(*w));
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct sandbox_exec e = { .id = job->id, .tty = m->tty, .rows = m->rows, .cols = m->cols };
	int r;

	if (!w || null < 0)
		return err_set(err, ENOMEM, "%m");
	if (!read_words(w, m, x->plan))
		return err_set(err, EBADMSG, "malformed request");
	e.argv = w->argv;
	e.env = w->env;
	e.env_n = w->env_n;
	e.cwd = w->cwd;
	job->tty = m->tty;
	e.stdio[0] = e.stdio[1] = e.stdio[2] = null;
	r = job->tty ? 0 : open_pipes(x, job, e.stdio);
	if (r < 0)
		err_set(err, -r, "its pipes: %m");
	if (r == 0)
		r = sandbox_exec(x->sandbox, &e, err);
	if (e.stdio[0] != null)
		close(e.stdio[0]);
	if (r == 0 && job->relay) {
		if (x->record >= 0)
			relay_copy_to(job->relay, fcntl(x->record, F_DUPFD_CLOEXEC, 3));
		r = relay_start(job->relay, err);
	}
	return r;
}

static void keep_words(const struct execs *x, struct exec_job *job, const struct hub_msg *m)
{
	size_t n = 0;

	if (!x->began || !sandbox_plan_holds(x->plan))
		return;
	for (uint32_t i = 0; i < m->argc && n < m->n && n < sizeof(m->words); i++)
		n += strnlen(m->words + n, sizeof(m->words) - n) + 1;
	n = MIN(n, sizeof(m->words));
	job->words = n ? malloc(n) : NULL;
	if (job->words)
		memcpy(job->words, m->words, n);
	job->words_n = job->words ? n : 0;
}

static void take_exec(struct execs *x, struct hub_msg *m)
{
	struct exec_job *job = find(x, 0);
	struct err err = { 0 };

	if (!m->id || find(x, m->id))
		return;
	if (!job) {
		fail(x, m->id, EXIT_OURS, "too many commands run in this sandbox");
		return;
	}
	job->id = m->id;
	job->runs = true;
	x->any = true;
	x->running++;
	keep_words(x, job, m);
	if (begin(x, job, m, &err) < 0) {
		fail(x, job->id, EXIT_OURS, err_text(&err));
		release(x, job);
	}
}

void execs_answer(struct execs *x, uint32_t id, int r, const char *text)
{
	if (r < 0)
		return fail_errno(x, id, EXIT_OURS, r, text);
	tell(x, HUB_LINE, id, 0, 0, text, -1);
	tell(x, HUB_DONE, id, 0, 0, NULL, -1);
}

/* Three strings, each with its NUL inside the message. */
static void take_snapshot(struct execs *x, const struct hub_msg *m)
{
	const char *word[3] = { m->words };
	uint64_t max = 0;
	size_t n = 0;

	for (int i = 1; i < 3 && n < m->n; i++) {
		n += strnlen(m->words + n, m->n - n) + 1;
		word[i] = m->words + n;
	}

	if (!m->id || find(x, m->id))
		return;
	if (!x->snapshot || !x->sandbox)
		fail_errno(x, m->id, EXIT_OURS, -EAGAIN, "the sandbox does not run yet");
	else if (n >= m->n || m->words[m->n - 1] || parse_u64(word[1], &max) < 0)
		fail_errno(x, m->id, EXIT_OURS, -EINVAL, "malformed request");
	else
		x->snapshot(x->arg, m->id, word[0], max, word[2], m->code);
}

/* Its terminal came: what it shows goes through a relay like all output. */
static int join_tty(struct execs *x, struct exec_job *job, int master)
{
	int out[2], r;

	if (job->relay)
		return -EEXIST;
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	tell(x, HUB_OPENED, job->id, 0, 0, NULL, master);
	tell(x, HUB_OPENED, job->id, 1, 0, NULL, out[0]);
	close(out[0]);
	r = relay_new_tty_to(&job->relay, x->cap, out[1], NULL);
	if (r == 0)
		r = relay_tty(job->relay, master, NULL);
	if (r == 0 && x->record >= 0)
		relay_copy_to(job->relay, fcntl(x->record, F_DUPFD_CLOEXEC, 3));
	return r < 0 ? r : relay_start(job->relay, NULL);
}

/* Init may say anything: of a command that is not there, or not so far. */
static void hear_exec(void *arg, struct sandbox_exec_event *ev)
{
	struct execs *x = arg;
	struct exec_job *job = ev->id ? find(x, ev->id) : NULL;

	if (!job || !job->runs) {
		if (ev->tty >= 0)
			close(ev->tty);
		return;
	}
	switch (ev->what) {
	case SANDBOX_EXEC_TTY:
		if (job->tty)
			join_tty(x, job, ev->tty);
		close(ev->tty);
		break;
	case SANDBOX_EXEC_STARTED:
		tell(x, HUB_STARTED, job->id, 0, 0, NULL, -1);
		if (job->words)
			x->began(x->arg, ev->code > 0 ? (uint32_t)ev->code : 0, job->words,
				 job->words_n);
		break;
	case SANDBOX_EXEC_FAILED:
		fail(x, job->id,
		     ev->code == ENOENT || ev->code == ENOTDIR ? EXIT_NOT_HERE
		     : ev->code == EACCES || ev->code == EPERM || ev->code == ENOEXEC ||
				     ev->code == EISDIR
			     ? EXIT_NOT_EXEC
			     : EXIT_OURS,
		     ev->code == ENOENT ? "command or directory not found in the sandbox"
					: strerror(ev->code));
		x->running--;
		job->runs = false;
		break;
	case SANDBOX_EXEC_DONE:
		if (job->relay)
			relay_end(job->relay);
		tell(x, HUB_DONE, job->id, ev->code, ev->signal, NULL, -1);
		x->running--;
		job->runs = false;
		break; /* what it has written is passed on; the hub says when it has it all */
	}
}

void execs_begin(struct execs *x, struct sandbox *s, const struct sandbox_plan *p, int record)
{
	x->sandbox = s;
	x->plan = p;
	if (x->hub < 0)
		return;
	if (record >= 0)
		x->record = fcntl(record, F_DUPFD_CLOEXEC, 3);
	sandbox_on_exec(s, hear_exec, x);
}

void execs_hear(struct execs *x, void (*first)(void *arg, int sig), void *arg)
{
	static struct hub_msg m;

	for (int i = 0; i < HUB_TURNS && x->hub >= 0; i++) {
		struct exec_job *job;
		int fd = -1, r = hub_recv(x->hub, &m, &fd);
		bool is_strange =
			fd >= 0 || (r > 0 && (m.type < HUB_EXEC || m.type > HUB_SNAPSHOT));

		if (fd >= 0)
			close(fd);
		if (is_strange) {
			log_error(
				"the hub sent what is no request (%u): it may have been taken over, and is not heard any more",
				m.type);
			r = -EPROTO;
		}
		if (r < 0)
			close_fd(
				&x->hub); /* it died: the sandbox goes on, nobody can speak with it */
		if (r <= 0)
			return;
		if (m.type == HUB_EXEC && x->sandbox)
			take_exec(x, &m);
		else if (m.type == HUB_SNAPSHOT)
			take_snapshot(x, &m);
		else if (m.type == HUB_SIGNAL && !m.id)
			first(arg, m.signal);
		else if (m.type == HUB_SIGNAL && x->sandbox)
			sandbox_exec_signal(x->sandbox, m.id, m.signal);
		else if (m.type == HUB_CLOSED && m.id && (job = find(x, m.id)) && !job->runs)
			release(x, job);
		else if (m.type == HUB_GONE)
			x->gone = true;
		else if (m.type == HUB_CLIENTS)
			x->clients = m.code;
	}
}

void execs_started(struct execs *x)
{
	if (x->hub >= 0)
		tell(x, HUB_STARTED, 0, 0, 0, NULL, -1);
}

void execs_look_idle(struct execs *x, bool first_runs, uint64_t now)
{
	bool idle = !first_runs && !x->running && x->clients <= 0;

	if (!idle)
		x->idle_ns = 0;
	else if (!x->idle_ns)
		x->idle_ns = now;
}

void execs_stop(struct execs *x)
{
	struct relay_counts counts;

	for (size_t i = 0; i < SANDBOX_EXECS_MAX; i++) {
		if (!x->job[i].id)
			continue;
		if (x->job[i].relay)
			relay_finish(x->job[i].relay, STOP_WAIT_MS, &counts);
		release(x, &x->job[i]);
	}
	close_fd(&x->record);
}
