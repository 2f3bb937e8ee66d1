// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/agent_frame.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/event/json_read.h"
#include "userspace/pipeline/run_status.h"

const char *const agent_op_names[AGENT_OPS] = {
	[AGENT_NONE] = "",
	[AGENT_RUN] = "run",
	[AGENT_CREATE] = "create",
	[AGENT_EXEC] = "exec",
	[AGENT_ATTACH] = "attach",
	[AGENT_PS] = "ps",
	[AGENT_LOGS] = "logs",
	[AGENT_EVENTS] = "events",
	[AGENT_KILL] = "kill",
	[AGENT_PAUSE] = "pause",
	[AGENT_RESUME] = "resume",
	[AGENT_RM] = "rm",
	[AGENT_SIGNAL] = "signal",
	[AGENT_RESIZE] = "resize",
	[AGENT_DETACH] = "detach",
	[AGENT_SNAPSHOT] = "snapshot",
	[AGENT_SNAPSHOTS] = "snapshots",
	[AGENT_SNAPSHOT_RM] = "snapshot.rm",
};

/* ---- text -> request ---- */

static bool is_text(struct json_reader *r, struct str s)
{
	return !memchr(s.p, 0, s.n) || json_problem(r, "NUL in a text");
}

static bool read_text(struct json_reader *r, const char **ret)
{
	struct str s;

	if (!json_read_string(r, &s) || !is_text(r, s))
		return false;
	*ret = arena_strndup(r->arena, s.p, s.n).p;
	return *ret != NULL;
}

static bool read_list(struct json_reader *r, const char ***ret, size_t *ret_n)
{
	const char **v = arena_zalloc(r->arena, (AGENT_WORDS_MAX + 1) * sizeof(*v));
	size_t n = 0;

	if (!v || !json_expect(r, '[', "expected a list"))
		return false;
	while (!json_take(r, ']')) {
		if (n == AGENT_WORDS_MAX)
			return json_problem(r, "list too long");
		if (n && !json_expect(r, ',', "expected ',' or ']'"))
			return false;
		if (!read_text(r, &v[n++]))
			return false;
	}
	*ret = v;
	*ret_n = n;
	return true;
}

static bool read_number(struct json_reader *r, uint64_t max, uint64_t *ret)
{
	return json_read_u64(r, ret) && (*ret <= max || json_problem(r, "number too large"));
}

static bool read_op(struct json_reader *r, enum agent_op *ret)
{
	struct str s;

	if (!json_read_string(r, &s))
		return false;
	for (int i = 1; i < AGENT_OPS; i++)
		if (str_eqz(s, agent_op_names[i])) {
			*ret = (enum agent_op)i;
			return true;
		}
	return json_problem(r, "unknown op");
}

static bool read_member(struct json_reader *r, struct str key, struct agent_request *q)
{
	const struct {
		const char *key;
		const char **at;
	} texts[] = { { "sandbox", &q->sandbox }, { "who", &q->who },	    { "cwd", &q->cwd },
		      { "dir", &q->dir },	  { "filter", &q->filter }, { "term", &q->term } };
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (str_eqz(key, texts[i].key))
			return read_text(r, texts[i].at);
	if (str_eqz(key, "op"))
		return read_op(r, &q->op);
	if (str_eqz(key, "argv"))
		return read_list(r, &q->argv, &q->argc);
	if (str_eqz(key, "env"))
		return read_list(r, &q->env, &q->env_n);
	if (str_eqz(key, "metadata"))
		return read_list(r, &q->metadata, &q->metadata_n);
	if (str_eqz(key, "hold"))
		return json_read_bool(r, &q->hold);
	if (str_eqz(key, "tty"))
		return json_read_bool(r, &q->tty);
	if (str_eqz(key, "follow"))
		return json_read_bool(r, &q->follow);
	if (str_eqz(key, "rows"))
		return read_number(r, UINT16_MAX, &n) && (q->rows = (uint16_t)n, true);
	if (str_eqz(key, "cols"))
		return read_number(r, UINT16_MAX, &n) && (q->cols = (uint16_t)n, true);
	if (str_eqz(key, "signal"))
		return read_number(r, 64, &n) && (q->signal = (int)n, true);
	return json_problem(r, "unknown member");
}

int agent_request_parse(struct agent_request *ret, struct arena *arena, struct str text,
			struct err *err)
{
	struct agent_request q = { 0 };
	struct json_reader r;
	struct str key;
	bool good = true;

	if (json_reader_init(&r, arena, text) < 0)
		return err_set(err, ENOMEM, "request: %m");
	good = json_expect(&r, '{', "expected an object");
	if (good && !json_take(&r, '}')) {
		do {
			good = json_read_string(&r, &key) && json_expect(&r, ':', "expected ':'") &&
			       read_member(&r, key, &q);
		} while (good && json_take(&r, ','));
		good = good && json_expect(&r, '}', "expected ',' or '}'");
	}
	good = good && (!json_peek(&r) || json_problem(&r, "text behind it")) && r.p == r.end;
	if (good && !q.op)
		good = json_problem(&r, "no op");
	if (!good)
		return err_set(err, EBADMSG, "request: %s",
			       r.problem ? r.problem : "too long or malformed");
	*ret = q;
	return 0;
}

/* ---- request -> text ---- */

static void add_text(struct json *j, const char *key, const char *z)
{
	if (!z)
		return;
	json_key(j, key);
	json_strz(j, z);
}

static void add_list(struct json *j, const char *key, const char *const *v, size_t n)
{
	if (!n)
		return;
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_strz(j, v[i]);
	json_array_end(j);
}

static void add_number(struct json *j, const char *key, uint64_t n)
{
	if (!n)
		return;
	json_key(j, key);
	json_u64(j, n);
}

static void add_flag(struct json *j, const char *key, bool v)
{
	if (!v)
		return;
	json_key(j, key);
	json_bool(j, v);
}

int agent_request_print(struct buf *out, const struct agent_request *q)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	add_text(&j, "op", agent_op_names[q->op]);
	add_text(&j, "sandbox", q->sandbox);
	add_text(&j, "who", q->who);
	add_list(&j, "argv", q->argv, q->argc);
	add_list(&j, "env", q->env, q->env_n);
	add_text(&j, "cwd", q->cwd);
	add_list(&j, "metadata", q->metadata, q->metadata_n);
	add_text(&j, "dir", q->dir);
	add_text(&j, "filter", q->filter);
	add_text(&j, "term", q->term);
	add_flag(&j, "tty", q->tty);
	add_flag(&j, "follow", q->follow);
	add_flag(&j, "hold", q->hold);
	add_number(&j, "rows", q->rows);
	add_number(&j, "cols", q->cols);
	add_number(&j, "signal", (uint64_t)q->signal);
	json_object_end(&j);
	return out->failed || out->n > AGENT_FRAME_MAX ? -EMSGSIZE : 0;
}

/* ---- packets ---- */

int agent_send(int sock, const void *p, size_t n, int fd, int flags)
{
	ssize_t sent;

	do {
		sent = fd_send(sock, p, n, &fd, fd >= 0, flags);
	} while (sent == -EINTR);
	return sent < 0 ? (int)sent : 0;
}

ssize_t agent_recv(int sock, void *p, int *ret_fd, int flags)
{
	int fd = -1;
	ssize_t n;

	/* ECONNRESET: the other side went without having read all of ours; what it said before comes after that. */
	do {
		n = fd_recv(sock, p, AGENT_FRAME_MAX, &fd, ret_fd != NULL, flags | MSG_TRUNC);
	} while (n == -EINTR || n == -ECONNRESET);
	if (n > AGENT_FRAME_MAX) {
		if (fd >= 0)
			close(fd);
		return -EMSGSIZE;
	}
	if (n >= 0 && ret_fd)
		*ret_fd = fd;
	return n;
}

int agent_send_error(int sock, int code, const char *text)
{
	return agent_send_errno(sock, code, 0, text);
}

int agent_send_errno(int sock, int code, int error, const char *text)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	add_text(&j, "error", text);
	json_key(&j, "code");
	json_i64(&j, code);
	add_text(&j, "errno", error ? strerrorname_np(error < 0 ? -error : error) : NULL);
	json_object_end(&j);
	return out.failed ? -ENOMEM : agent_send(sock, out.p, out.n, -1, MSG_DONTWAIT);
}

int agent_address(void *ret_sockaddr_un, char *path, size_t size)
{
	struct sockaddr_un *at = ret_sockaddr_un;

	*at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if ((size_t)snprintf(path, size, "%s/control.sock", run_dir()) >= size ||
	    strlen(path) >= sizeof(at->sun_path))
		return -ENAMETOOLONG;
	memcpy(at->sun_path, path, strlen(path) + 1);
	return 0;
}

int agent_connect(int *ret_fd)
{
	auto_close int fd = -1;
	struct sockaddr_un at;
	char path[4096];
	int r = agent_address(&at, path, sizeof(path));

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return -errno;
	*ret_fd = take_fd(fd);
	return 0;
}
