// SPDX-License-Identifier: Apache-2.0
/* exec, fork, exit, signal. */
#include <sodium.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/names.h"
#include "userspace/event/path.h"

static const char *const stdin_types[] = {
	[WIRE_STDIN_NONE] = "none",	[WIRE_STDIN_TTY] = "tty",   [WIRE_STDIN_PIPE] = "pipe",
	[WIRE_STDIN_SOCKET] = "socket", [WIRE_STDIN_FILE] = "file", [WIRE_STDIN_OTHER] = "other",
	[WIRE_STDIN_NULL] = "null",
};

/* Longer than is kept: its beginning, its end, and a hash of what came of it, so that a copy found
 * elsewhere can be recognized. */
static void decode_long_args(struct decode_ctx *c, struct str all, size_t total)
{
	unsigned char hash[crypto_hash_sha256_BYTES];
	char hex[2 * sizeof(hash) + 1];
	size_t head = WIRE_ARGS_MAX - WIRE_ARGS_TAIL;

	decode_set_words(c, F_PROC_ARGS, (struct str){ all.p, MIN(all.n, head) });
	if (all.n < MIN(total, (size_t)WIRE_ARGS_SENT))
		return;
	decode_set_words(c, F_PROC_ARGS_TAIL,
			 (struct str){ all.p + all.n - WIRE_ARGS_TAIL, WIRE_ARGS_TAIL });
	crypto_hash_sha256(hash, (const unsigned char *)all.p, all.n);
	sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
	event_set_str(c->ev, F_PROC_ARGS_SHA256, decode_copy(c, str_from(hex)));
	event_set_u64(c->ev, F_PROC_ARGS_HASHED, all.n);
}

static void decode_args(struct decode_ctx *c, const struct wire_exec *w)
{
	struct str head = decode_bytes(c, w->args);
	struct str all = decode_area(c, w->exec_id, WIRE_CHUNK_ARGS, head, w->args_total);

	if (w->args_total > WIRE_ARGS_MAX)
		decode_long_args(c, all, w->args_total);
	else
		decode_set_words(c, F_PROC_ARGS, all);
	event_set_u64(c->ev, F_PROC_ARGC, w->argc);
	event_set_u64(c->ev, F_PROC_ARGS_LEN, w->args_total);
	if (all.n < w->args_total || w->args_total > WIRE_ARGS_MAX) {
		event_set_bool(c->ev, F_PROC_ARGS_TRUNCATED, true);
		c->cut = true;
	}
}

/* Whole entries: enrich leaves of them what the session's owner chose. */
static void decode_env(struct decode_ctx *c, const struct wire_exec *w)
{
	struct str head = decode_bytes(c, w->env);
	struct str all = decode_area(c, w->exec_id, WIRE_CHUNK_ENV, head, w->env_total);

	if (!w->env_total)
		return;
	decode_set_words(c, F_PROC_ENV, all);
	event_set_u64(c->ev, F_PROC_ENV_LEN, w->env_total);
	if (all.n < w->env_total)
		event_set_bool(c->ev, F_PROC_ENV_TRUNCATED, true);
}

/* Where a script is called by a relative name, it starts from the working directory. */
static void decode_script(struct decode_ctx *c, const struct wire_exec *w)
{
	struct str script = decode_string(c, w->script), cwd;

	if (!script.p)
		return;
	cwd = decode_bytes(c, w->cwd);
	if (cwd.p && !path_is_clean(script)) {
		script = path_join(c->ev->arena, cwd, script);
		c->no_memory |= !script.p;
	}
	event_set_str(c->ev, F_PROC_SCRIPT, script);
}

/* What ran is still the caller: its own image is filled in later. */
static void decode_failed_exec(struct decode_ctx *c, const struct wire_exec *w)
{
	struct str path = decode_string(c, w->exe), base = decode_bytes(c, w->cwd);

	if (!path_is_clean(path) && base.p) {
		path = path_join(c->ev->arena, base, path);
		c->no_memory |= !path.p;
	}
	event_set_str(c->ev, F_EXEC_PATH, path);
	if (w->tries)
		event_set_u64(c->ev, F_EXEC_TRIES, w->tries);
}

static void decode_ancestors(struct decode_ctx *c, const struct wire_exec *w)
{
	size_t n = MIN((size_t)w->ancestors_n, (size_t)WIRE_ANCESTORS);
	struct event_ancestor *v;

	if (n == 0)
		return;
	v = arena_zalloc(c->ev->arena, n * sizeof(*v));
	if (!v) {
		c->no_memory = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const struct wire_ancestor *a = &w->ancestors[i];
		size_t k = strnlen(a->comm, sizeof(a->comm));

		v[i].pid = a->tgid;
		v[i].start = a->start;
		if (k)
			v[i].comm = decode_copy(c, (struct str){ a->comm, k });
	}
	c->ev->v[F_PROC_ANCESTORS].ancestors.v = v;
	c->ev->v[F_PROC_ANCESTORS].ancestors.n = n;
	event_mark(c->ev, F_PROC_ANCESTORS);
	event_set_str(c->ev, F_PROC_PCOMM, v[0].comm);
}

static void decode_tty(struct decode_ctx *c, const struct wire_exec *w)
{
	if (w->tty.len)
		decode_set_string(c, F_PROC_TTY, w->tty);
	else if (w->tty_nr)
		decode_set_dev(c, F_PROC_TTY, w->tty_nr);
}

void decode_exec(struct decode_ctx *c)
{
	const struct wire_exec w = DECODE_FIXED(c, wire_exec);
	struct event *ev = c->ev;

	if (ev->hdr.ret < 0) {
		decode_failed_exec(c, &w);
		return;
	}
	event_set_u64(ev, F_PROC_RUID, w.ruid);
	event_set_i64(ev, F_PROC_LOGINUID, (int32_t)w.loginuid);
	decode_set_string(c, F_PROC_EXE, w.exe);
	decode_script(c, &w);
	decode_args(c, &w);
	decode_env(c, &w);
	decode_areas_done(c, w.exec_id);
	decode_set_string(c, F_PROC_CWD, w.cwd);
	decode_tty(c, &w);
	if (w.stdin_type < ARRAY_SIZE(stdin_types))
		event_set_strz(ev, F_PROC_STDIN, stdin_types[w.stdin_type]);
	if (ev->hdr.vantage != WIRE_V_GUEST) { /* gVisor does not tell them */
		event_set_u64(ev, F_PROC_CAPS, w.cap_effective);
		event_set_u64(ev, F_PROC_CAPS_PERMITTED, w.cap_permitted);
	}
	if (w.ino) {
		event_set_u64(ev, F_PROC_EXE_INO, w.ino);
		decode_set_dev(c, F_PROC_EXE_DEV, w.dev);
	}
	if (w.exe_ctime) {
		event_set_u64(ev, F_PROC_EXE_MTIME, w.exe_mtime);
		event_set_u64(ev, F_PROC_EXE_CTIME, w.exe_ctime);
		event_set_u64(ev, F_PROC_EXE_UID, w.exe_uid);
		event_set_u64(ev, F_PROC_EXE_MODE, w.mode & 07777);
	}
	if (w.memfd)
		event_set_bool(ev, F_PROC_MEMFD, true);
	if (ev->hdr.flags & WIRE_F_DELETED || (w.ino && !w.nlink && !w.memfd))
		event_set_bool(ev, F_PROC_DELETED, true);
	if (w.upper_layer)
		event_set_bool(ev, F_PROC_DROPPED, true);
	if (w.secureexec)
		event_set_bool(ev, F_PROC_SETUID, true);
	decode_ancestors(c, &w);
}

void decode_fork(struct decode_ctx *c)
{
	const struct wire_fork w = DECODE_FIXED(c, wire_fork);

	event_set_u64(c->ev, F_CHILD_PID, w.child_tgid);
	event_set_u64(c->ev, F_CHILD_NSPID, w.child_nspid);
	event_set_u64(c->ev, F_CHILD_START, w.child_start);
	event_set_u64(c->ev, F_CHILD_FLAGS, w.clone_flags);
}

static void set_signal(struct decode_ctx *c, enum field_id f, uint32_t sig)
{
	const char *name = name_signal(sig);

	if (name)
		event_set_strz(c->ev, f, name);
	else
		event_set_str(c->ev, f, arena_printf(c->ev->arena, "SIG%u", sig));
}

void decode_exit(struct decode_ctx *c)
{
	const struct wire_exit w = DECODE_FIXED(c, wire_exit);
	uint32_t sig = w.status & 0x7f;

	if (sig) {
		set_signal(c, F_EXIT_SIGNAL, sig);
		event_set_bool(c->ev, F_EXIT_CORE, w.status & 0x80);
	} else {
		event_set_u64(c->ev, F_EXIT_CODE, w.status >> 8 & 0xff);
	}
	if (c->ev->hdr.vantage == WIRE_V_GUEST)
		return;
	event_set_u64(c->ev, F_EXIT_UTIME, w.utime_ns);
	event_set_u64(c->ev, F_EXIT_STIME, w.stime_ns);
}

void decode_signal(struct decode_ctx *c)
{
	const struct wire_signal w = DECODE_FIXED(c, wire_signal);

	set_signal(c, F_SIGNAL_NAME, w.sig);
	event_set_u64(c->ev, F_SIGNAL_TARGET, w.target_tgid);
	decode_set_comm(c, F_SIGNAL_COMM, w.target_comm);
}
