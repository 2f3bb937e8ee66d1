// SPDX-License-Identifier: Apache-2.0
/* Processes that were kept and go on. What lists them may be in the guest's hands like all that a sentry says. */
#include <errno.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/json_read.h"
#include "userspace/event/path.h"
#include "userspace/pipeline/guest_priv.h"

#define ARGS_KEPT (12 * 1024)

struct known {
	uint64_t pid, ppid, uid, gid, start;
	struct str comm, exe, cwd;
	size_t argc, args_total;
	struct buf args; /* NUL-terminated words */
};

typedef bool member_fn(struct json_reader *r, struct str key, void *arg);

static bool each_member(struct json_reader *r, member_fn *fn, void *arg)
{
	struct str key;

	if (!json_take(r, '{'))
		return false;
	if (json_take(r, '}'))
		return true;
	do {
		if (!json_read_string(r, &key) || !json_take(r, ':') || !fn(r, key, arg))
			return false;
	} while (json_take(r, ','));
	return json_take(r, '}');
}

/* Any value, however deep; of what nobody reads only brackets have to fit. */
static bool skip(struct json_reader *r)
{
	size_t depth = 0;
	struct str s;

	do {
		char c = json_peek(r);

		if (c == '"') {
			if (!json_read_string(r, &s))
				return false;
		} else if (c == '{' || c == '[') {
			r->p++;
			depth++;
		} else if (depth && (c == '}' || c == ']')) {
			r->p++;
			depth--;
		} else if (depth && (c == ',' || c == ':')) {
			r->p++;
		} else {
			size_t n = strspn(r->p, "+-.0123456789aefilnrstuE");

			if (!n)
				return false;
			r->p += n;
		}
	} while (depth);
	return true;
}

static bool take_ids(struct json_reader *r, struct str key, void *arg)
{
	return str_eqz(key, "effective") ? json_read_u64(r, arg) : skip(r);
}

static bool take_status(struct json_reader *r, struct str key, void *arg)
{
	struct known *k = arg;

	if (str_eqz(key, "comm"))
		return json_read_string(r, &k->comm);
	if (str_eqz(key, "pid"))
		return json_read_u64(r, &k->pid);
	if (str_eqz(key, "ppid"))
		return json_read_u64(r, &k->ppid);
	if (str_eqz(key, "uid"))
		return each_member(r, take_ids, &k->uid);
	if (str_eqz(key, "gid"))
		return each_member(r, take_ids, &k->gid);
	return skip(r);
}

static bool take_args(struct json_reader *r, struct known *k)
{
	struct str word;

	if (!json_take(r, '['))
		return false;
	if (json_take(r, ']'))
		return true;
	do {
		if (!json_read_string(r, &word))
			return false;
		k->argc++;
		k->args_total += word.n + 1;
		if (k->args.n + word.n + 1 <= ARGS_KEPT) {
			buf_add(&k->args, word.p, word.n);
			buf_addc(&k->args, 0);
		}
	} while (json_take(r, ','));
	return json_take(r, ']');
}

static bool take_process(struct json_reader *r, struct str key, void *arg)
{
	struct known *k = arg;

	if (str_eqz(key, "exe"))
		return json_read_string(r, &k->exe);
	if (str_eqz(key, "cwd"))
		return json_read_string(r, &k->cwd);
	if (str_eqz(key, "args"))
		return take_args(r, k);
	if (str_eqz(key, "clone_ts"))
		return json_read_u64(r, &k->start);
	if (str_eqz(key, "status"))
		return each_member(r, take_status, k);
	return skip(r);
}

static void tell(struct guest *g, const struct known *k)
{
	struct wire_exec w = {
		.h = {
			.kind = WIRE_EXEC,
			.ts = g->now,
			.start = guest_start_of(g, (int64_t)k->start),
			.sandbox = g->opt.sandbox_id,
			.tgid = (uint32_t)k->pid,
			.tid = (uint32_t)k->pid,
			.nspid = (uint32_t)k->pid,
			.ppid = (uint32_t)k->ppid,
			.uid = (uint32_t)k->uid,
			.gid = (uint32_t)k->gid,
			.nr = WIRE_NR_NONE,
			.ring = WIRE_RING_NONE,
			.vantage = WIRE_V_RUNTIME,
		},
		.exec_id = g->next_id++,
		.ruid = (uint32_t)k->uid,
		.loginuid = UINT32_MAX,
		.stdin_type = UINT8_MAX,
		.argc = (uint32_t)k->argc,
		.args_total = (uint32_t)MIN(k->args_total, (size_t)UINT32_MAX),
	};

	guest_name(w.h.comm, k->comm);
	if (k->args.n < k->args_total)
		w.h.flags |= WIRE_F_TRUNC;
	guest_begin(g, sizeof(w));
	w.exe = guest_tail(g, k->exe, WIRE_PATH_MAX);
	w.cwd = guest_tail(g, k->cwd, WIRE_PATH_MAX - 1);
	w.args = guest_tail(g, (struct str){ k->args.p, k->args.n }, ARGS_KEPT);
	guest_send(g, &w, sizeof(w));
}

static bool learn(struct guest *g, struct json_reader *r, struct known *k)
{
	struct guest_process *p;

	*k = (struct known){ .args = k->args };
	buf_reset(&k->args);
	if (!each_member(r, take_process, k) || !k->pid || k->pid > INT32_MAX ||
	    k->ppid > INT32_MAX)
		return false;
	p = guest_process(g, (int32_t)k->pid, true);
	if (p) {
		p->ppid = (int32_t)k->ppid;
		guest_name(p->comm, k->comm);
	}
	tell(g, k);
	return true;
}

static bool take_result(struct json_reader *r, struct str key, void *arg)
{
	struct guest *g = arg;
	struct known k = { 0 };
	size_t n = 0;
	bool good;

	if (!str_eqz(key, "result"))
		return skip(r);
	if (!json_take(r, '['))
		return false;
	buf_init(&k.args, ARGS_KEPT);
	do {
		good = n++ < GUEST_PROCESSES_MAX && learn(g, r, &k);
	} while (good && json_take(r, ','));
	buf_done(&k.args);
	g->stats.started |= good;
	return good && json_take(r, ']');
}

int guest_known(struct guest *g, struct str text, uint64_t boot_ns)
{
	struct json_reader r;
	struct arena arena;
	bool good;
	int k;

	g->now = boot_ns;
	g->process = NULL;
	arena_init(&arena, text.n + (1u << 20));
	k = json_reader_init(&r, &arena, text);
	good = k == 0 && each_member(&r, take_result, g) && g->stats.started;
	arena_done(&arena);
	return k < 0 ? k : good ? 0 : -EBADMSG;
}
