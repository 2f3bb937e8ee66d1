// SPDX-License-Identifier: Apache-2.0
/* Falco's fd.*: the file or socket that an event is about. */
#include "rules/field_get.h"

#include <stdio.h>

#define UNUSED(x) ((void)(x))

static bool is_file(const struct event *ev)
{
	return event_has(ev, F_FILE_PATH);
}

/* On bind, accept and listen the sandbox is the server, else the other side is. */
static bool is_server(const struct event *ev)
{
	return ev->kind == WIRE_NET_ACCEPT || ev->kind == WIRE_NET_LISTEN ||
	       ev->kind == WIRE_NET_BIND;
}

static size_t put_addr(char *p, size_t room, const struct event *ev, enum field_id ip,
		       enum field_id port)
{
	char text[64];
	int n = 0;

	if (event_has(ev, ip)) {
		size_t k = ip_addr_text(&ev->v[ip].ip, text);

		n = snprintf(p, room, "%.*s:%u", (int)k, text, (unsigned)event_u64(ev, port));
	}
	return n > 0 ? (size_t)n : 0;
}

void get_fd_name(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;
	size_t room = 160, n;
	char *p;

	UNUSED(a);
	if (is_file(ev)) {
		val_str(v, ev->v[F_FILE_PATH].s);
		return;
	}
	if (event_has(ev, F_NET_PATH)) {
		val_str(v, ev->v[F_NET_PATH].s);
		return;
	}
	if (!event_has(ev, F_NET_DST_IP) && !event_has(ev, F_NET_SRC_IP))
		return;
	p = eval_scratch(e, room);
	if (!p)
		return;
	/* Falco writes client->server. */
	if (is_server(ev)) {
		n = put_addr(p, room, ev, F_NET_DST_IP, F_NET_DST_PORT);
		n += (size_t)snprintf(p + n, room - n, "->");
		n += put_addr(p + n, room - n, ev, F_NET_SRC_IP, F_NET_SRC_PORT);
	} else {
		n = put_addr(p, room, ev, F_NET_SRC_IP, F_NET_SRC_PORT);
		n += (size_t)snprintf(p + n, room - n, "->");
		n += put_addr(p + n, room - n, ev, F_NET_DST_IP, F_NET_DST_PORT);
	}
	val_str(v, (struct str){ p, n });
}

void get_fd_nameraw(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	val_str(v, event_has(e->ev, F_FILE_RAW_PATH) ? e->ev->v[F_FILE_RAW_PATH].s
						     : event_str(e->ev, F_FILE_PATH));
}

static const char *last_slash(struct str s)
{
	return s.n ? memrchr(s.p, '/', s.n) : NULL;
}

void get_fd_directory(struct eval *e, const struct access *a, struct val *v)
{
	struct str s = event_str(e->ev, F_FILE_PATH);
	const char *slash = last_slash(s);

	UNUSED(a);
	if (!slash)
		return;
	s.n = slash == s.p ? 1 : (size_t)(slash - s.p);
	val_str(v, s);
}

void get_fd_filename(struct eval *e, const struct access *a, struct val *v)
{
	struct str s = event_str(e->ev, F_FILE_PATH);
	const char *slash = last_slash(s);

	UNUSED(a);
	if (event_has(e->ev, F_FILE_NAME)) {
		val_str(v, e->ev->v[F_FILE_NAME].s);
		return;
	}
	if (slash)
		s = (struct str){ slash + 1, s.n - (size_t)(slash + 1 - s.p) };
	val_str(v, s);
}

void get_fd_num(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;
	struct str o = event_str(ev, F_OUTCOME);

	UNUSED(a);
	if (ev->kind != WIRE_FILE_OPEN)
		return;
	if (str_eqz(o, "failure") || str_eqz(o, "denied"))
		val_i64(v, -1);
	else
		val_i64(v, event_has(ev, F_FILE_FD) ? ev->v[F_FILE_FD].i : 0);
}

struct fd_type {
	const char *ours, *type, *ch;
};

static const struct fd_type *fd_type(const struct event *ev)
{
	static const struct fd_type file = { "regular", "file", "f" };
	static const struct fd_type map[] = {
		{ "directory", "directory", "d" }, { "fifo", "pipe", "p" },
		{ "inet", "ipv4", "4" },	   { "inet6", "ipv6", "6" },
		{ "unix", "unix", "u" },	   { "netlink", "netlink", "n" },
	};
	struct str s = event_str(ev, F_NET_FAMILY);

	if (!s.n && event_has(ev, F_NET_DST_IP))
		s = ev->v[F_NET_DST_IP].ip.family == 6 ? STR("inet6") : STR("inet");
	if (!s.n)
		s = event_str(ev, F_FILE_TYPE);
	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (str_eqz(s, map[i].ours))
			return &map[i];
	return is_file(ev) ? &file : NULL;
}

void get_fd_type(struct eval *e, const struct access *a, struct val *v)
{
	const struct fd_type *t = fd_type(e->ev);

	UNUSED(a);
	if (t)
		val_strz(v, t->type);
}

void get_fd_typechar(struct eval *e, const struct access *a, struct val *v)
{
	const struct fd_type *t = fd_type(e->ev);

	UNUSED(a);
	if (t)
		val_strz(v, t->ch);
}

void get_fd_sockfamily(struct eval *e, const struct access *a, struct val *v)
{
	const struct fd_type *t = fd_type(e->ev);

	UNUSED(a);
	if (t && (t->ch[0] == '4' || t->ch[0] == '6'))
		val_strz(v, "ip");
	else if (t && t->ch[0] == 'u')
		val_strz(v, "unix");
}

/* ---- addresses ---- */

/* Two slots as a list without building one: their distance is the stride. */
static void pair(const struct event *ev, enum field_id x, enum field_id y, enum vtype et,
		 struct val *v)
{
	bool hx = event_has(ev, x), hy = event_has(ev, y);

	if (!hx && !hy)
		return;
	val_list(v, hx ? (const void *)&ev->v[x] : (const void *)&ev->v[y], (size_t)hx + (size_t)hy,
		 (size_t)(y - x) * sizeof(ev->v[0]), et);
}

_Static_assert(F_NET_DST_IP > F_NET_SRC_IP && F_NET_DST_PORT > F_NET_SRC_PORT,
	       "pair() walks upwards");

void get_fd_ip(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	pair(e->ev, F_NET_SRC_IP, F_NET_DST_IP, V_IP, v);
}

void get_fd_port(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	pair(e->ev, F_NET_SRC_PORT, F_NET_DST_PORT, V_U64, v);
}

static void get_ip(const struct event *ev, enum field_id f, struct val *v)
{
	if (!event_has(ev, f))
		return;
	v->t = V_IP;
	v->ip = &ev->v[f].ip;
}

static void get_port(const struct event *ev, enum field_id f, struct val *v)
{
	if (event_has(ev, f))
		val_u64(v, ev->v[f].u);
}

void get_fd_sip(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	get_ip(e->ev, is_server(e->ev) ? F_NET_SRC_IP : F_NET_DST_IP, v);
}

void get_fd_cip(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	get_ip(e->ev, is_server(e->ev) ? F_NET_DST_IP : F_NET_SRC_IP, v);
}

void get_fd_sport(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	get_port(e->ev, is_server(e->ev) ? F_NET_SRC_PORT : F_NET_DST_PORT, v);
}

void get_fd_cport(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	get_port(e->ev, is_server(e->ev) ? F_NET_DST_PORT : F_NET_SRC_PORT, v);
}

void get_fd_connected(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;

	UNUSED(a);
	val_u64(v, ev->kind == WIRE_NET_ACCEPT || (ev->kind == WIRE_NET_CONNECT &&
						   !str_eqz(event_str(ev, F_OUTCOME), "failure") &&
						   !str_eqz(event_str(ev, F_OUTCOME), "denied")));
}

/* A send event is written for the first datagram to an address. */
void get_fd_name_changed(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	val_u64(v, e->ev->kind == WIRE_NET_SEND || e->ev->kind == WIRE_NET_CONNECT);
}

void get_fd_is_server(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	val_u64(v, is_server(e->ev));
}
