// SPDX-License-Identifier: Apache-2.0
/* Values are UTF-8 on one line: '\n', '\r', '\\' and what separates are escaped, bytes that are not UTF-8 are
 * U+FFFD (and whole, in base64, in a key of their own), other control characters the pictures of U+2400, and
 * what a terminal obeys or an eye misses beyond ASCII is \\u{9b}, its backslash escaped. */
#include "exporters/render/text.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "exporters/render/layout.h"
#include "exporters/render/ocsf.h"
#include "userspace/base/auto.h"
#include "userspace/base/plain.h"
#include "userspace/base/version.h"

#define KEY_TEXT_MAX 64

enum dialect { CEF_HEADER, CEF, LEEF, DIALECTS };

/* Most bytes of a value, by ArcSight's dictionary; keys that are not here have no limit. */
static const struct {
	const char *key;
	size_t max;
} CEF_LIMITS[] = {
	{ "act", 63 },		 { "cat", 1023 },
	{ "cs1", 4000 },	 { "cs2", 4000 },
	{ "cs3", 4000 },	 { "cs4", 4000 },
	{ "cs5", 4000 },	 { "deviceExternalId", 255 },
	{ "dhost", 1023 },	 { "dproc", 1023 },
	{ "duid", 1023 },	 { "dvchost", 100 },
	{ "externalId", 40 },	 { "fileId", 1023 },
	{ "filePath", 1023 },	 { "fileType", 1023 },
	{ "fname", 1023 },	 { "msg", 1023 },
	{ "oldFilePath", 1023 }, { "outcome", 63 },
	{ "proto", 31 },	 { "reason", 1023 },
	{ "shost", 1023 },	 { "sproc", 1023 },
	{ "suid", 1023 },	 { "deviceFacility", 1023 },
};

static const struct render_exception CEF_EXCEPTIONS[] = {
	/* clang-format off */
	/* the process that an event is about is the destination, its parent the source */
	{ 0, WIRE_EXEC, 0, F_PROC_PID, "dpid" }, { 0, WIRE_EXIT, 0, F_PROC_PID, "dpid" },
	{ FAM_LIMIT, 0, 0, F_PROC_PID, "dpid" }, { 0, WIRE_ACTION, 0, F_PROC_PID, "dpid" },
	{ 0, WIRE_EXEC, 0, F_PROC_COMM, "dproc" }, { 0, WIRE_EXIT, 0, F_PROC_COMM, "dproc" },
	{ FAM_LIMIT, 0, 0, F_PROC_COMM, "dproc" }, { 0, WIRE_ACTION, 0, F_PROC_COMM, "dproc" },
	{ 0, WIRE_EXEC, 0, F_PROC_UID, "duid" }, { 0, WIRE_EXIT, 0, F_PROC_UID, "duid" },
	{ FAM_LIMIT, 0, 0, F_PROC_UID, "duid" }, { 0, WIRE_ACTION, 0, F_PROC_UID, "duid" },
	{ 0, WIRE_EXEC, 0, F_PROC_PPID, "spid" }, { 0, WIRE_EXIT, 0, F_PROC_PPID, "spid" },
	{ FAM_LIMIT, 0, 0, F_PROC_PPID, "spid" }, { 0, WIRE_ACTION, 0, F_PROC_PPID, "spid" },
	{ 0, WIRE_EXEC, 0, F_PROC_PCOMM, "sproc" }, { 0, WIRE_EXIT, 0, F_PROC_PCOMM, "sproc" },
	{ FAM_LIMIT, 0, 0, F_PROC_PCOMM, "sproc" }, { 0, WIRE_ACTION, 0, F_PROC_PCOMM, "sproc" },
	{ 0, WIRE_EXEC, 0, F_PROC_EXE, "filePath" }, { 0, WIRE_EXIT, 0, F_PROC_EXE, "filePath" },
	{ 0, WIRE_EXEC, 0, F_PROC_ARGS, "msg" },
	{ FAM_PROC, 0, WIRE_FORK, F_CHILD_PID, NULL },
	{ FAM_PROC, 0, WIRE_SIGNAL, F_SIGNAL_TARGET, NULL },
	{ FAM_PROC, 0, WIRE_SIGNAL, F_SIGNAL_COMM, NULL },
	{ FAM_LIMIT, 0, 0, F_ERRNO, NULL },
	{ FAM_RULE, 0, 0, F_ERRNO, NULL },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_IP, "dst" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_PORT, "dpt" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_IP, "src" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_PORT, "spt" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_NAME, "shost" },
	/* clang-format on */
};

static const struct render_exception LEEF_EXCEPTIONS[] = {
	{ FAM_PROC, 0, WIRE_FORK, F_CHILD_PID, NULL },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_IP, "dst" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_PORT, "dstPort" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_IP, "src" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_PORT, "srcPort" },
};

static const struct render_row CEF_LABELS[] = {
	ROW_TEXT("cn1Label", "sequence"),
	ROW_TEXT_IF("cs1Label", F_SESSION, "session"),
	ROW_TEXT_IF("cs2Label", F_DNS_ANSWERS, "answers"),
	ROW_TEXT_IF("cs3Label", F_RULE_ATTACK, "attack"),
	ROW_TEXT_IF("cs4Label", F_ESCAPE_TYPE, "escape"),
	ROW_TEXT_IF("cs5Label", F_RULE_NAME, "rule"),
};

static const struct render_row CEF_OUTBOUND[] = { ROW_TEXT("deviceDirection", "1") };
static const struct render_row CEF_INBOUND[] = { ROW_TEXT("deviceDirection", "0") };

static void set_limits(struct layout *p)
{
	for (size_t i = 0; i < p->steps_n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(CEF_LIMITS); k++)
			if (!strcmp(CEF_LIMITS[k].key, p->steps[i].path))
				p->steps[i].max = (uint16_t)CEF_LIMITS[k].max;
}

static int make_cef(struct layout *p, const struct kind_def *kind, int version)
{
	int r;

	layout_start(p, NULL);
	r = layout_add_columns(p, cef_columns, version, kind, NULL, CEF_EXCEPTIONS,
			       ARRAY_SIZE(CEF_EXCEPTIONS));
	if (r == 0)
		r = layout_add(p, CEF_LABELS, ARRAY_SIZE(CEF_LABELS), NULL);
	if (r == 0 && kind->family & (FAM_NET | FAM_DNS))
		r = layout_add(p, kind->id == WIRE_NET_ACCEPT ? CEF_INBOUND : CEF_OUTBOUND, 1,
			       NULL);
	set_limits(p);
	return r < 0 ? r : layout_sort(p);
}

static int make_leef(struct layout *p, const struct kind_def *kind, int version)
{
	int r;

	layout_start(p, NULL);
	r = layout_add_columns(p, leef_columns, version, kind, NULL, LEEF_EXCEPTIONS,
			       ARRAY_SIZE(LEEF_EXCEPTIONS));
	return r < 0 ? r : layout_sort(p);
}

/* ---- values ---- */

/* What a byte needs: 0 nothing, 1 UTF-8, 2 a picture, else the letter behind a backslash. */
static unsigned char escape_of(unsigned char c, enum dialect in)
{
	if (c >= 0x80)
		return 1;
	if (c == '\\')
		return '\\';
	if (c == '\n' || c == '\r')
		return in == CEF_HEADER ? 2 : c == '\n' ? 'n' : 'r';
	if (c == '\t')
		return in == LEEF ? 't' : in == CEF ? 0 : 2;
	if (c < 0x20 || c == 0x7f)
		return 2;
	if (in == CEF_HEADER && c == '|')
		return '|';
	return in == CEF && c == '=' ? '=' : 0;
}

static unsigned char escapes[DIALECTS][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void add_escaped(struct buf *out, struct str s, enum dialect in, bool *valid)
{
	size_t plain = 0;

	for (size_t i = 0; i < s.n;) {
		unsigned char c = (unsigned char)s.p[i], e = escapes[in][c];
		size_t n = e == 1 ? utf8_length((struct str){ s.p + i, s.n - i }) : 1;

		if (!e ||
		    (e == 1 && n && !is_deceptive(utf8_code_point((struct str){ s.p + i, n })))) {
			i += n;
			continue;
		}
		buf_add(out, s.p + plain, i - plain);
		plain = i += MAX(n, (size_t)1);
		if (e == 1 && n) {
			buf_printf(out, "\\\\u{%04x}",
				   utf8_code_point((struct str){ s.p + i - n, n }));
		} else if (e == 1) {
			buf_addz(out, "\xef\xbf\xbd");
			*valid = false;
		} else if (e == 2) {
			const char picture[] = { (char)0xe2, (char)0x90,
						 (char)(c == 0x7f ? 0xa1 : 0x80 + c) };

			buf_add(out, picture, sizeof(picture));
		} else {
			buf_addc(out, '\\');
			buf_addc(out, (char)e);
		}
	}
	buf_add(out, s.p + plain, s.n - plain);
}

/* The longest part of at most `max` bytes that cuts no character. */
static struct str cut(struct str s, size_t max)
{
	if (s.n <= max)
		return s;
	s.n = max;
	for (int k = 0; k < 3 && s.n && ((unsigned char)s.p[s.n] & 0xc0) == 0x80; k++)
		s.n--;
	return s;
}

static void add_command(struct buf *out, const struct str *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct str s = v[i];

		if (i)
			buf_addc(out, ' ');
		if (str_is_shell_safe(s)) {
			buf_add(out, s.p, s.n);
			continue;
		}
		buf_addc(out, '\'');
		for (size_t k = 0; k < s.n; k++)
			if (s.p[k] == '\'')
				buf_addz(out, "'\\''");
			else
				buf_addc(out, s.p[k]);
		buf_addc(out, '\'');
	}
}

/* The value as text that is not escaped yet; lists of objects as JSON. */
static struct str value_text(struct buf *tmp, enum field_id f, const union field_value *v)
{
	struct json_writer w = { .out = tmp };
	char *d;

	buf_reset(tmp);
	switch (event_fields[f].type) {
	case FT_STR:
	case FT_MEMBERS:
		return v->s;
	case FT_STRLIST:
		add_command(tmp, v->list.v, v->list.n);
		return (struct str){ tmp->p, tmp->n };
	default:
		break;
	}
	if (buf_reserve(tmp, 2 * SLACK) < 0)
		return STR("");
	w.end = tmp->p + tmp->cap;
	d = f == F_TIME ? json_digits(tmp->p, v->u / NSEC_PER_MSEC)
			: put_value(&w, tmp->p, event_fields[f].type, v);
	if (!d) {
		tmp->failed = true;
		return STR("");
	}
	tmp->n = (size_t)(d - tmp->p);
	if (tmp->n >= 2 && tmp->p[0] == '"') /* a time, an address: nothing in them is escaped */
		return (struct str){ tmp->p + 1, tmp->n - 2 };
	return (struct str){ tmp->p, tmp->n };
}

/* "proc.args_len" -> "WarderProcArgsLen" or "procArgsLen" */
static void own_key(char key[KEY_TEXT_MAX], const char *name, enum dialect in)
{
	size_t n = 0;
	bool upper = in == CEF;

	if (in == CEF)
		n = (size_t)(stpcpy(key, CEF_OWN_PREFIX) - key);
	for (; *name && n < KEY_TEXT_MAX - 1; name++) {
		if (*name == '.' || *name == '_') {
			upper = true;
			continue;
		}
		key[n++] = (char)(upper ? toupper((unsigned char)*name) : *name);
		upper = false;
	}
	key[n] = 0;
}

static char own_keys[DIALECTS][F_COUNT][KEY_TEXT_MAX];

static void tables_fill(void)
{
	for (int in = 0; in < DIALECTS; in++) {
		for (int c = 0; c < 256; c++)
			escapes[in][c] = escape_of((unsigned char)c, (enum dialect)in);
		for (int f = 0; f < F_COUNT; f++)
			own_key(own_keys[in][f], event_fields[f].name, (enum dialect)in);
	}
}

struct text_writer {
	struct buf *out, tmp;
	enum dialect in;
	bool first, valid;
};

static void add_pair(struct text_writer *t, const char *key, struct str value)
{
	if (!t->first)
		buf_addc(t->out, t->in == LEEF ? '\t' : ' ');
	t->first = false;
	buf_addz(t->out, key);
	buf_addc(t->out, '=');
	add_escaped(t->out, value, t->in, &t->valid);
}

static void add_field(struct text_writer *t, const char *key, size_t max, enum field_id f,
		      const struct event *ev)
{
	struct str value = value_text(&t->tmp, f, &ev->v[f]);
	struct str part = max ? cut(value, max) : value;
	const char *own = own_keys[t->in][f];

	add_pair(t, key ? key : own, part);
	if (part.n < value.n)
		add_pair(t, own, value);
}

static void add_fields(struct text_writer *t, const struct layout *p, const struct event *ev)
{
	for (size_t i = 0; i < p->steps_n; i++) {
		const struct layout_step *s = &p->steps[i];

		if (s->when >= 0 && !event_has(ev, (enum field_id)s->when))
			continue;
		if (s->text)
			add_pair(t, s->path, (struct str){ s->text, s->text_n });
		else
			add_field(t, s->path, s->max, (enum field_id)s->field, ev);
	}
	for (size_t word = 0; word < EVENT_PRESENT_WORDS; word++) {
		uint64_t bits = ev->present[word] & ~p->handled[word];

		for (; bits; bits &= bits - 1)
			add_field(t, NULL, 0,
				  (enum field_id)(word * 64 + (size_t)__builtin_ctzll(bits)), ev);
	}
	if (!t->valid) {
		buf_reset(&t->tmp);
		event_raw_to_json(ev, &t->tmp);
		add_pair(t, t->in == CEF ? CEF_OWN_PREFIX "Raw" : "raw",
			 (struct str){ t->tmp.p, t->tmp.n });
	}
}

/* Milliseconds where the format has them, and all of it in a key of ours. */
static void add_time(struct text_writer *t, const char *key, const struct event *ev)
{
	char text[RFC3339_NS_LEN + 1];

	if (!event_has(ev, F_TIME))
		return;
	add_field(t, key, 0, F_TIME, ev);
	rfc3339_ns(text, event_u64(ev, F_TIME));
	add_pair(t, own_keys[t->in][F_TIME], str_from(text));
}

/* 2 ... 10 */
static int severity_of(const struct event *ev)
{
	int s = ocsf_severity(ev);

	return s > 6 ? 5 : MIN(s * 2, 10);
}

static int finish(struct text_writer *t, size_t before)
{
	bool failed = t->out->failed || t->tmp.failed;

	buf_done(&t->tmp);
	if (failed)
		t->out->n = before;
	return failed ? -EMSGSIZE : 0;
}

/* CEF:0|Warder|Warder|version|what|name|severity|key=value key=value */
int render_cef(const struct format *f, const struct event *ev, struct buf *out)
{
	static struct layout_cache cache;
	struct str kind = event_str(ev, F_KIND), name = event_str(ev, F_RULE_NAME);
	struct text_writer t = { .out = out, .in = CEF, .first = true, .valid = true };
	const struct layout *p;
	size_t before = out->n;
	bool ignored = true;
	int r;

	p = layout_get(&cache, ev, f->version, make_cef, &r);
	if (!p)
		return r;
	if (!name.n)
		name = event_str(ev, F_ESCAPE_TYPE);
	pthread_once(&tables_once, tables_fill);
	buf_init(&t.tmp, RENDER_TEXT_MAX);
	buf_addz(out, "CEF:0|Warder|Warder|" WARDER_VERSION "|");
	add_escaped(out, cut(kind, 1023), CEF_HEADER, &ignored);
	buf_addc(out, '|');
	add_escaped(out, cut(name.n ? name : kind, 512), CEF_HEADER, &ignored);
	buf_printf(out, "|%d|", severity_of(ev));
	add_time(&t, "rt", ev);
	add_fields(&t, p, ev);
	return finish(&t, before);
}

/* LEEF:2.0|Warder|Warder|version|what|x09|key=value<TAB>key=value */
int render_leef(const struct format *f, const struct event *ev, struct buf *out)
{
	static struct layout_cache cache;
	struct text_writer t = { .out = out, .in = LEEF, .first = true, .valid = true };
	const struct layout *p;
	size_t before = out->n;
	char severity[12];
	int r;

	p = layout_get(&cache, ev, f->version, make_leef, &r);
	if (!p)
		return r;
	pthread_once(&tables_once, tables_fill);
	buf_init(&t.tmp, RENDER_TEXT_MAX);
	buf_printf(out, "LEEF:2.0|Warder|Warder|" WARDER_VERSION "|%s|x09|",
		   event_kind_by_id((uint16_t)ev->kind)->name);
	add_time(&t, "devTime", ev);
	snprintf(severity, sizeof(severity), "%d", severity_of(ev));
	add_pair(&t, "sev", str_from(severity));
	add_fields(&t, p, ev);
	return finish(&t, before);
}
