// SPDX-License-Identifier: Apache-2.0
/* Values of a process, its ancestors and its sandbox. */
#include "rules/field_get.h"

#include <stdio.h>

#define UNUSED(x) ((void)(x))

void get_none(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(e);
	UNUSED(a);
	UNUSED(v);
}

void get_slot(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;
	enum field_id f = (enum field_id)a->slot;

	if (!event_has(ev, f))
		return;
	switch (event_fields[f].type) {
	case FT_STR:
	case FT_MEMBERS:
		val_str(v, ev->v[f].s);
		return;
	case FT_I64:
		val_i64(v, ev->v[f].i);
		return;
	case FT_IP:
		v->t = V_IP;
		v->ip = &ev->v[f].ip;
		return;
	case FT_STRLIST:
		if (a->arg < 0)
			val_list(v, ev->v[f].list.v, ev->v[f].list.n, sizeof(struct str), V_STR);
		else if ((size_t)a->arg < ev->v[f].list.n)
			val_str(v, ev->v[f].list.v[a->arg]);
		return;
	default:
		/* A row may read an unsigned slot as a signed number (Falco's pids). */
		val_u64(v, ev->v[f].u);
	}
}

/* ---- ancestors: 0 is the process itself, 1 its parent ---- */

static const struct event_ancestor *ancestor(const struct event *ev, long n)
{
	size_t i = (size_t)n - 1;

	if (n < 1 || !event_has(ev, F_PROC_ANCESTORS) || i >= ev->v[F_PROC_ANCESTORS].ancestors.n)
		return NULL;
	return &ev->v[F_PROC_ANCESTORS].ancestors.v[i];
}

static void ancestor_list(const struct event *ev, struct val *v, size_t offset, enum vtype et)
{
	if (!event_has(ev, F_PROC_ANCESTORS))
		return;
	if (ev->v[F_PROC_ANCESTORS].ancestors.n)
		val_list(v, (const char *)ev->v[F_PROC_ANCESTORS].ancestors.v + offset,
			 ev->v[F_PROC_ANCESTORS].ancestors.n, sizeof(struct event_ancestor), et);
}

void get_aname(struct eval *e, const struct access *a, struct val *v)
{
	const struct event_ancestor *p;

	if (a->arg == 0) {
		val_str(v, event_str(e->ev, F_PROC_COMM));
	} else if (a->arg > 0) {
		p = ancestor(e->ev, a->arg);
		if (p)
			val_str(v, p->comm);
		else if (a->arg == 1)
			val_str(v, event_str(e->ev, F_PROC_PCOMM));
	} else if (event_has(e->ev, F_PROC_ANCESTORS)) {
		ancestor_list(e->ev, v, offsetof(struct event_ancestor, comm), V_STR);
	} else if (event_has(e->ev, F_PROC_PCOMM)) {
		val_list(v, &e->ev->v[F_PROC_PCOMM].s, 1, sizeof(struct str), V_STR);
	}
}

void get_aexepath(struct eval *e, const struct access *a, struct val *v)
{
	const struct event_ancestor *p;

	if (a->arg == 0) {
		val_str(v, event_str(e->ev, F_PROC_EXE));
	} else if (a->arg > 0) {
		p = ancestor(e->ev, a->arg);
		if (p)
			val_str(v, p->exe);
		else if (a->arg == 1)
			val_str(v, event_str(e->ev, F_PROC_PEXE));
	} else {
		ancestor_list(e->ev, v, offsetof(struct event_ancestor, exe), V_STR);
	}
}

void get_ancestor_exe(struct eval *e, const struct access *a, struct val *v)
{
	if (a->arg < 0) {
		ancestor_list(e->ev, v, offsetof(struct event_ancestor, exe), V_STR);
	} else {
		const struct event_ancestor *p = ancestor(e->ev, a->arg + 1);

		if (p)
			val_str(v, p->exe);
	}
}

void get_apid(struct eval *e, const struct access *a, struct val *v)
{
	const struct event_ancestor *p;

	if (a->arg < 0) {
		ancestor_list(e->ev, v, offsetof(struct event_ancestor, pid), V_U64);
		return;
	}
	p = ancestor(e->ev, a->arg);
	if (p)
		val_u64(v, p->pid);
}

void get_answers(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;

	UNUSED(a);
	if (!event_has(ev, F_DNS_ANSWERS) || !ev->v[F_DNS_ANSWERS].answers.n)
		return;
	val_list(v, &ev->v[F_DNS_ANSWERS].answers.v->data, ev->v[F_DNS_ANSWERS].answers.n,
		 sizeof(struct event_dns_answer), V_STR);
}

/* ---- arguments ---- */

static void first_arg(const struct event *ev, enum field_id f, enum field_id other, struct val *v)
{
	if (event_has(ev, f) && ev->v[f].list.n)
		val_str(v, ev->v[f].list.v[0]);
	else
		val_str(v, event_str(ev, other));
}

void get_argv0(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	first_arg(e->ev, F_PROC_ARGS, F_PROC_EXE, v);
}

void get_pargv0(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	first_arg(e->ev, F_PROC_PARGS, F_PROC_PEXE, v);
}

/* `first` and list[from..] with blanks between. Cut where the scratch memory ends. */
static void join(struct eval *e, struct str first, const union field_value *list, size_t from,
		 struct val *v)
{
	size_t n = first.n, at = 0;
	char *p;

	for (size_t i = from; i < list->list.n; i++)
		n += list->list.v[i].n + 1;
	n = MIN(n, RULE_SCRATCH / 4);
	p = eval_scratch(e, n);
	if (!p)
		return;
	if (first.n) {
		at = MIN(first.n, n);
		memcpy(p, first.p, at);
	}
	for (size_t i = from; i < list->list.n && at < n; i++) {
		size_t k;

		if (at || i > from)
			p[at++] = ' ';
		k = MIN(list->list.v[i].n, n - at);
		if (k)
			memcpy(p + at, list->list.v[i].p, k);
		at += k;
	}
	val_str(v, (struct str){ p, at });
}

void get_args(struct eval *e, const struct access *a, struct val *v)
{
	if (!event_has(e->ev, F_PROC_ARGS))
		return;
	if (a->arg < 0)
		join(e, (struct str){ 0 }, &e->ev->v[F_PROC_ARGS], 1, v);
	else if ((size_t)a->arg + 1 < e->ev->v[F_PROC_ARGS].list.n)
		val_str(v, e->ev->v[F_PROC_ARGS].list.v[a->arg + 1]);
}

static void cmdline(struct eval *e, enum field_id comm, enum field_id args, struct val *v)
{
	if (!event_has(e->ev, comm))
		return;
	if (event_has(e->ev, args))
		join(e, e->ev->v[comm].s, &e->ev->v[args], 1, v);
	else
		val_str(v, e->ev->v[comm].s);
}

void get_cmdline(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	cmdline(e, F_PROC_COMM, F_PROC_ARGS, v);
}

void get_pcmdline(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	cmdline(e, F_PROC_PCOMM, F_PROC_PARGS, v);
}

void get_exeline(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	if (event_has(e->ev, F_PROC_ARGS))
		join(e, (struct str){ 0 }, &e->ev->v[F_PROC_ARGS], 0, v);
}

void get_nargs(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	if (event_has(e->ev, F_PROC_ARGS) && e->ev->v[F_PROC_ARGS].list.n)
		val_u64(v, e->ev->v[F_PROC_ARGS].list.n - 1);
}

void get_lenargs(struct eval *e, const struct access *a, struct val *v)
{
	uint64_t n = 0;

	UNUSED(a);
	if (!event_has(e->ev, F_PROC_ARGS))
		return;
	for (size_t i = 1; i < e->ev->v[F_PROC_ARGS].list.n; i++)
		n += e->ev->v[F_PROC_ARGS].list.v[i].n;
	val_u64(v, n);
}

/* Device number as the kernel counts it: /dev/pts/3 is 136:3. */
void get_tty(struct eval *e, const struct access *a, struct val *v)
{
	struct str s = event_str(e->ev, F_PROC_TTY);
	uint64_t n = 0;

	UNUSED(a);
	if (!s.n) {
		val_u64(v, 0);
		return;
	}
	for (size_t i = 0; i < s.n; i++)
		n = s.p[i] >= '0' && s.p[i] <= '9' ? n * 10 + (uint64_t)(s.p[i] - '0') : 0;
	val_u64(v, (136 << 8) + (n & 0xfffff));
}

void get_duration(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	if (event_has(e->ev, F_MONO) && event_has(e->ev, F_PROC_START) &&
	    e->ev->v[F_MONO].u >= e->ev->v[F_PROC_START].u)
		val_u64(v, e->ev->v[F_MONO].u - e->ev->v[F_PROC_START].u);
}

/* ---- capabilities and users ---- */

static const char *const cap_names[] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};

static void cap_text(struct eval *e, enum field_id f, struct val *v)
{
	size_t room = 1024, n = 0;
	uint64_t caps;
	char *p;

	if (!event_has(e->ev, f))
		return;
	caps = e->ev->v[f].u;
	p = eval_scratch(e, room);
	if (!p)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(cap_names); i++)
		if (caps >> i & 1)
			n += (size_t)snprintf(p + n, room - n, "%sCAP_%s", n ? " " : "",
					      cap_names[i]);
	val_str(v, (struct str){ p, n });
}

void get_cap_effective(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	cap_text(e, F_PROC_CAPS, v);
}

void get_cap_permitted(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	cap_text(e, F_PROC_CAPS_PERMITTED, v);
}

static void id_name(const struct event *ev, enum field_id f, const char *nobody, struct val *v)
{
	if (!event_has(ev, f))
		return;
	if (ev->v[f].u == 0)
		val_strz(v, "root");
	else if (ev->v[f].u == 65534)
		val_strz(v, nobody);
}

void get_user_name(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	id_name(e->ev, F_PROC_UID, "nobody", v);
}

void get_group_name(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	id_name(e->ev, F_PROC_GID, "nogroup", v);
}

/* ---- the sandbox as a container ---- */

/* Never missing: what we see always happens in a sandbox, and `container.id != host` must say so. */
void get_container_id(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	if (event_has(e->ev, F_SESSION))
		val_str(v, e->ev->v[F_SESSION].s);
	else
		val_strz(v, "sandbox");
}

void get_container_name(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	if (event_has(e->ev, F_SANDBOX))
		val_str(v, e->ev->v[F_SANDBOX].s);
	else
		val_strz(v, "sandbox");
}

void get_container_type(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(e);
	UNUSED(a);
	val_strz(v, "warder");
}

void get_false(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(e);
	UNUSED(a);
	val_u64(v, 0);
}
