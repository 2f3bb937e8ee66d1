// SPDX-License-Identifier: Apache-2.0
/* Programs that the guest starts, or tries to. The description of one is dropped by the sentry when it is larger than
 * its socket buffer; that there was one is told by the call's number, which is always small. */
#include <errno.h>
#include <stdlib.h>

#include "userspace/base/auto.h"
#include "userspace/event/path.h"
#include "userspace/pipeline/guest_priv.h"

#define HEAD_MAX      (12 * 1024) /* of argv, and of the environment, in the record itself */
#define NAME_MAX_KEPT 512

/* ---- what does not fit ---- */

static void send_chunk(struct guest *g, const struct wire_hdr *h, uint64_t id,
		       enum wire_chunk_what what, struct str area, size_t at)
{
	struct wire_chunk w = {
		.h = *h,
		.exec_id = id,
		.offset = (uint32_t)at,
		.n = (uint32_t)MIN(area.n - at, (size_t)WIRE_CHUNK_MAX),
		.what = what,
	};

	w.h.kind = WIRE_CHUNK;
	guest_begin(g, sizeof(w));
	buf_add(&g->rec, area.p + at, w.n);
	guest_send(g, &w, sizeof(w));
	g->stats.records--; /* not one by itself */
}

static void send_chunks(struct guest *g, const struct wire_hdr *h, uint64_t id,
			enum wire_chunk_what what, struct str area, size_t from)
{
	for (size_t at = from; at < area.n; at += WIRE_CHUNK_MAX)
		send_chunk(g, h, id, what, area, at);
}

/* The words, each with its NUL; p == NULL where there are none, or no memory. */
static struct str words(struct guest *g, const struct seccheck_msg *m,
			const struct seccheck_list *l, size_t max)
{
	size_t at = 0, n = 0, want = l->bytes + l->n;
	struct str word;
	char *out;

	if (!l->n || want > SECCHECK_PACKET_MAX)
		return (struct str){ 0 };
	out = arena_alloc(&g->arena, want);
	if (!out)
		return (struct str){ 0 };
	while (seccheck_list_next(m, l, &at, &word) && n + word.n + 1 <= want) {
		memcpy(out + n, word.p, word.n);
		n += word.n;
		out[n++] = 0;
	}
	return (struct str){ out, MIN(n, max) };
}

/* ---- one that runs ---- */

static void set_comm(struct wire_hdr *h, struct str path)
{
	struct str name = path_name(path);

	if (name.n)
		guest_name(h->comm, name);
}

static bool is_memfd(struct str path)
{
	return str_starts(path, STR("/memfd:"));
}

/* What was learned of the same exec before is answered by this. */
static void described(struct guest *g)
{
	struct guest_process *p = g->process;

	if (!p)
		return;
	p->exec_at = 0;
	p->misses = 0;
	free(take_ptr(p->miss));
}

static void send_exec(struct guest *g, const struct seccheck_msg *m, struct str exe)
{
	struct wire_exec w = { .h = guest_header(g, m, WIRE_EXEC), .exec_id = g->next_id++ };
	struct str args = words(g, m, &m->argv, SECCHECK_PACKET_MAX);
	struct str env = words(g, m, &m->env, WIRE_ENV_MAX);

	described(g);
	set_comm(&w.h, exe);
	w.ruid = m->c.ruid;
	w.loginuid = UINT32_MAX;
	w.stdin_type = g->process ? g->process->stdin_type : UINT8_MAX;
	w.argc = (uint32_t)m->argv.n;
	w.args_total = (uint32_t)args.n;
	w.env_total = (uint32_t)(m->env.bytes + m->env.n);
	w.mode = m->mode;
	w.exe_uid = m->uid;
	w.memfd = is_memfd(exe);
	if (str_ends(exe, STR(" (deleted)")))
		w.h.flags |= WIRE_F_DELETED;
	/* In one piece where it fits, since the pieces come first. */
	if (args.n > HEAD_MAX)
		send_chunks(g, &w.h, w.exec_id, WIRE_CHUNK_ARGS, args, HEAD_MAX);
	if (env.n > HEAD_MAX)
		send_chunks(g, &w.h, w.exec_id, WIRE_CHUNK_ENV, env, 0);
	guest_begin(g, sizeof(w));
	w.exe = guest_tail(g, exe, WIRE_PATH_MAX);
	w.cwd = guest_tail(g, m->c.cwd, WIRE_PATH_MAX - 1);
	w.args = guest_tail(g, args, HEAD_MAX);
	if (env.n <= HEAD_MAX)
		w.env = guest_tail(g, env, HEAD_MAX);
	guest_send(g, &w, sizeof(w));
	if (w.memfd)
		guest_escape(g, m, WIRE_ESCAPE_MEMFD_EXEC, exe, NULL);
}

void guest_exec(struct guest *g, const struct seccheck_msg *m)
{
	send_exec(g, m, m->path);
}

/* The first one is not told as an exec, and by which path it was found is not said. */
void guest_start(struct guest *g, const struct seccheck_msg *m)
{
	struct str first = { 0 };
	size_t at = 0;

	seccheck_list_next(m, &m->argv, &at, &first);
	if (memchr(first.p ? first.p : "", '/', first.n))
		first = path_join(&g->arena, m->c.cwd, first);
	send_exec(g, m, first);
}

/* ---- one that does not ---- */

static void send_failed(struct guest *g, const struct seccheck_msg *m, struct str path,
			struct str base, int32_t ret, uint32_t tries)
{
	struct wire_exec w = { .h = guest_header(g, m, WIRE_EXEC), .tries = tries };

	w.h.nr = 59;
	w.h.ret = ret;
	guest_begin(g, sizeof(w));
	w.exe = guest_tail(g, path, WIRE_PATH_MAX);
	w.cwd = guest_tail(g, base, WIRE_PATH_MAX - 1);
	guest_send(g, &w, sizeof(w));
}

static struct seccheck_msg who(const struct seccheck_msg *m)
{
	struct seccheck_msg out = { .c = m->c };

	out.c.container_id = out.c.cwd = out.c.process_name = (struct str){ 0 };
	return out;
}

/* Looking through PATH is one failure, not ten. */
static void missed(struct guest *g, const struct seccheck_msg *m)
{
	struct guest_process *p = g->process;
	struct str path = path_join(&g->arena, guest_base(m, m->path), m->path);

	if (!p || !path.p)
		return;
	free(p->miss);
	p->miss = strndup(path.p, MIN(path.n, (size_t)NAME_MAX_KEPT));
	p->misses++;
	p->exec = who(m);
	p->exec_at = 0;
}

void guest_exec_call(struct guest *g, const struct seccheck_msg *m)
{
	struct guest_process *p = g->process;
	struct str path = m->path;

	if (!m->has_exit)
		return;
	if (m->error == ENOENT || m->error == ENOTDIR) {
		missed(g, m);
	} else if (m->error) {
		described(g);
		send_failed(g, m, m->path, guest_base(m, m->path), (int32_t)-m->error, 0);
	} else if (p && p->exec_at) { /* its description was lost, and this is one, too */
		path = path_join(&g->arena, guest_base(m, m->path), m->path);
		send_exec(g, m, path);
	}
}

/* ---- one that was not described ---- */

void guest_exec_begins(struct guest *g, const struct seccheck_msg *m)
{
	struct guest_process *p = g->process;

	if (!p)
		return;
	p->exec_at = g->now;
	p->exec = who(m);
	g->due = MIN(g->due, p->exec_at + GUEST_EXEC_WAIT_NS);
}

static void send_undescribed(struct guest *g, const struct seccheck_msg *m)
{
	struct wire_exec w = { .h = guest_header(g, m, WIRE_EXEC) };

	g->stats.undescribed++;
	w.h.flags |= WIRE_F_TRUNC;
	w.h.nr = 59;
	w.ruid = m->c.ruid;
	w.loginuid = UINT32_MAX;
	w.stdin_type = UINT8_MAX;
	w.args_total = SECCHECK_PACKET_MAX; /* about: what is smaller comes through */
	guest_begin(g, sizeof(w));
	guest_send(g, &w, sizeof(w));
}

void guest_exec_over(struct guest *g, struct guest_process *p)
{
	const struct seccheck_msg m = p->exec;
	uint32_t misses = p->misses;
	auto_free char *miss = take_ptr(p->miss);
	bool undescribed = p->exec_at;

	p->exec_at = 0;
	p->misses = 0;
	if (undescribed)
		send_undescribed(g, &m);
	else if (misses && miss)
		send_failed(g, &m, str_from(miss), (struct str){ 0 }, -ENOENT,
			    misses > 1 ? misses : 0);
}
