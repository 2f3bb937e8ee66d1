// SPDX-License-Identifier: Apache-2.0
/* exec, fork, exit, signal. */
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/names.h"

static const char *const stdin_types[] = {
	[WIRE_STDIN_NONE] = "none",	[WIRE_STDIN_TTY] = "tty",   [WIRE_STDIN_PIPE] = "pipe",
	[WIRE_STDIN_SOCKET] = "socket", [WIRE_STDIN_FILE] = "file", [WIRE_STDIN_OTHER] = "other",
};

static void decode_args(struct decode_ctx *c, const struct wire_exec *w)
{
	struct str head = decode_bytes(c, w->args);
	struct str all = decode_argv(c, w->exec_id, head, w->args_total);

	decode_set_words(c, F_PROC_ARGS, all);
	event_set_u64(c->ev, F_PROC_ARGC, w->argc);
	event_set_u64(c->ev, F_PROC_ARGS_LEN, w->args_total);
	if (all.n < w->args_total) {
		event_set_bool(c->ev, F_PROC_ARGS_TRUNCATED, true);
		c->cut = true;
	}
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

	event_set_u64(ev, F_PROC_RUID, w.ruid);
	event_set_i64(ev, F_PROC_LOGINUID, (int32_t)w.loginuid);
	decode_set_string(c, F_PROC_EXE, w.exe);
	decode_set_string(c, F_PROC_SCRIPT, w.script);
	decode_args(c, &w);
	decode_set_string(c, F_PROC_CWD, w.cwd);
	decode_tty(c, &w);
	if (w.stdin_type < ARRAY_SIZE(stdin_types))
		event_set_strz(ev, F_PROC_STDIN, stdin_types[w.stdin_type]);
	event_set_u64(ev, F_PROC_CAPS, w.cap_effective);
	event_set_u64(ev, F_PROC_CAPS_PERMITTED, w.cap_permitted);
	if (w.ino) {
		event_set_u64(ev, F_PROC_EXE_INO, w.ino);
		decode_set_dev(c, F_PROC_EXE_DEV, w.dev);
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
	event_set_u64(c->ev, F_EXIT_UTIME, w.utime_ns);
	event_set_u64(c->ev, F_EXIT_STIME, w.stime_ns);
}

void decode_signal(struct decode_ctx *c)
{
	const struct wire_signal w = DECODE_FIXED(c, wire_signal);

	set_signal(c, F_SIGNAL_NAME, w.sig);
	event_set_u64(c->ev, F_SIGNAL_TARGET, w.target_tgid);
}
