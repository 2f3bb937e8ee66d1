// SPDX-License-Identifier: Apache-2.0
#include "exporters/render/layout.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_OCSF(id, ocsf, since, form, ecs, ecs_form, cef, leef) \
	[F_##id] = { ocsf, since, FORM_##form },
#define COLUMN_ECS(id, ocsf, since, form, ecs, ecs_form, cef, leef) \
	[F_##id] = { ecs, 0, FORM_##ecs_form },
#define COLUMN_CEF(id, ocsf, since, form, ecs, ecs_form, cef, leef)  [F_##id] = { cef, 0, 0 },
#define COLUMN_LEEF(id, ocsf, since, form, ecs, ecs_form, cef, leef) [F_##id] = { leef, 0, 0 },

const struct render_column ocsf_columns[F_COUNT] = { RENDER_MAP(COLUMN_OCSF) };
const struct render_column ecs_columns[F_COUNT] = { RENDER_MAP(COLUMN_ECS) };
const struct render_column cef_columns[F_COUNT] = { RENDER_MAP(COLUMN_CEF) };
const struct render_column leef_columns[F_COUNT] = { RENDER_MAP(COLUMN_LEEF) };

/* ---- making a layout ---- */

static int add_group(struct layout *p, const char *path)
{
	const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path;
	struct layout_group *g;
	size_t n = strlen(name);
	int parent = 0;

	if (!*path)
		return 0;
	for (int i = 1; i < p->groups_n; i++)
		if (!strcmp(p->groups[i].path, path))
			return i;
	if (dot) {
		char up[LAYOUT_PATH_MAX];

		snprintf(up, sizeof(up), "%.*s", (int)(dot - path), path);
		parent = add_group(p, up);
		if (parent < 0)
			return parent;
	}
	if (p->groups_n == LAYOUT_GROUPS_MAX)
		return -E2BIG;
	g = &p->groups[p->groups_n];
	*g = (struct layout_group){ .parent = (uint8_t)parent,
				    .depth = (uint8_t)(p->groups[parent].depth + 1) };
	snprintf(g->path, sizeof(g->path), "%s", path);
	g->list = n > 2 && !strcmp(name + n - 2, "[]");
	n = (size_t)snprintf(g->open, sizeof(g->open), ",\"%.*s\":%s{", (int)(g->list ? n - 2 : n),
			     name, g->list ? "[" : "");
	if (n >= sizeof(g->open))
		return -ENAMETOOLONG;
	g->open_n = (uint8_t)n;
	return p->groups_n++;
}

void layout_start(struct layout *p, const char *rest)
{
	memset(p, 0, sizeof(*p));
	p->groups_n = 1;
	p->rest = (uint8_t)(rest ? add_group(p, rest) : 0);
}

int layout_add(struct layout *p, const struct render_row *rows, size_t n, const char *root)
{
	for (size_t i = 0; i < n; i++) {
		const struct render_row *r = &rows[i];
		struct layout_step *s = &p->steps[p->steps_n];
		bool rooted = r->path[0] == '$';
		int len;

		if (p->steps_n == LAYOUT_STEPS_MAX)
			return -E2BIG;
		*s = (struct layout_step){
			.form = (uint8_t)r->form,
			.type = r->field >= 0 ? (uint8_t)event_fields[r->field].type : 0,
			.when = (int16_t)r->when,
			.unless = (int16_t)r->unless,
			.field = (int16_t)r->field,
			.text = r->text,
			.text_n = (uint16_t)(r->text ? strlen(r->text) : 0),
			.fn = r->fn,
		};
		len = snprintf(s->path, sizeof(s->path), "%s%s", rooted ? root : "",
			       r->path + rooted);
		if ((size_t)len >= sizeof(s->path))
			return -ENAMETOOLONG;
		p->steps_n++;
	}
	return 0;
}

static const char *column_path(const struct render_column *c, int f, int version,
			       const struct kind_def *kind, const struct render_exception *x,
			       size_t n)
{
	if (c->since > version)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (x[i].field == f && (!x[i].kind || x[i].kind == kind->id) &&
		    (!x[i].families || x[i].families & kind->family) &&
		    (!x[i].not_kind || x[i].not_kind != kind->id))
			return x[i].path;
	return c->path;
}

int layout_add_columns(struct layout *p, const struct render_column *columns, int version,
		       const struct kind_def *kind, const char *root,
		       const struct render_exception *exceptions, size_t n)
{
	for (int f = 0; f < F_COUNT; f++) {
		const struct render_column *c = &columns[f];
		struct render_row row = ROW_FIELD(NULL, f, c->form);
		int r;

		if (!(event_fields[f].families & kind->family))
			continue;
		row.path = column_path(c, f, version, kind, exceptions, n);
		if (!row.path || (row.path[0] == '$' && !root))
			continue;
		p->handled[f / 64] |= (uint64_t)1 << (f % 64);
		if (!strcmp(row.path, "+"))
			continue;
		r = layout_add(p, &row, 1, root);
		if (r < 0)
			return r;
	}
	return 0;
}

/* By components, so that the members of an object stand together. */
static int compare_steps(const void *pa, const void *pb)
{
	const char *a = ((const struct layout_step *)pa)->path;
	const char *b = ((const struct layout_step *)pb)->path;

	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (*a == '.' ? 1 : (unsigned char)*a) - (*b == '.' ? 1 : (unsigned char)*b);
}

static bool exclude_each_other(const struct layout_step *a, const struct layout_step *b)
{
	return (a->unless >= 0 && a->unless == b->when) || (b->unless >= 0 && b->unless == a->when);
}

int layout_finish(struct layout *p)
{
	qsort(p->steps, p->steps_n, sizeof(p->steps[0]), compare_steps);
	for (size_t i = 0; i < p->steps_n; i++) {
		struct layout_step *s = &p->steps[i];
		const char *dot = strrchr(s->path, '.');
		char up[LAYOUT_PATH_MAX];
		int g, n;

		if (i && !strcmp(s->path, s[-1].path) && !exclude_each_other(s, s - 1))
			return -EEXIST;
		snprintf(up, sizeof(up), "%.*s", dot ? (int)(dot - s->path) : 0, s->path);
		g = add_group(p, up);
		if (g < 0)
			return g;
		s->group = (uint8_t)g;
		n = snprintf(s->key, sizeof(s->key), ",\"%s\":", dot ? dot + 1 : s->path);
		if ((size_t)n >= sizeof(s->key))
			return -ENAMETOOLONG;
		s->key_n = (uint8_t)n;
	}
	return 0;
}

const struct layout *
layout_get(struct layout_cache *cache, const struct event *ev, int version,
	   int (*make)(struct layout *p, const struct kind_def *kind, int version), int *ret_code)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct kind_def *kind = event_kind_by_id((uint16_t)ev->kind);
	size_t i = kind ? (size_t)(kind - event_kinds) : LAYOUT_KINDS_MAX;
	const struct layout *found;
	struct layout *p;

	*ret_code = -EINVAL;
	if (i >= LAYOUT_KINDS_MAX)
		return NULL;
	found = __atomic_load_n(&cache->layouts[i], __ATOMIC_ACQUIRE);
	if (found)
		return found;
	pthread_mutex_lock(&lock);
	found = cache->layouts[i];
	*ret_code = -ENOMEM;
	p = found ? NULL : malloc(sizeof(*p));
	if (p) {
		*ret_code = make(p, kind, version);
		if (*ret_code == 0)
			__atomic_store_n(&cache->layouts[i], found = p, __ATOMIC_RELEASE);
		else
			free(p);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- writing by it ---- */

static inline char *put_text(char *d, const char *text, size_t n)
{
	memcpy(d, text, n);
	return d + n;
}

static inline char *put_layout_key(char *d, const char key[LAYOUT_KEY_MAX], size_t n)
{
	size_t skip = d[-1] == '{';

	memcpy(d - skip, key, LAYOUT_KEY_MAX);
	if (skip)
		d[-1] = '{';
	return d + n - skip;
}

static char *open_groups(const struct layout *p, char *d, uint8_t from, uint8_t to)
{
	if (to == from)
		return d;
	d = open_groups(p, d, from, p->groups[to].parent);
	return put_layout_key(d, p->groups[to].open, p->groups[to].open_n);
}

static char *enter_group(const struct layout *p, char *d, uint8_t from, uint8_t g)
{
	const struct layout_group *groups = p->groups;
	uint8_t to = g;

	while (groups[to].depth > groups[from].depth)
		to = groups[to].parent;
	while (from != to) {
		*d++ = '}';
		if (groups[from].list)
			*d++ = ']';
		from = groups[from].parent;
		while (groups[to].depth > groups[from].depth)
			to = groups[to].parent;
	}
	return open_groups(p, d, to, g);
}

bool str_is_shell_safe(struct str s)
{
	static const bool safe[256] = {
		['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['+' ... ':'] = true, ['@'] = true,
		['_'] = true,	      ['%'] = true,	    ['='] = true,
	};
	bool ok = s.n > 0;

	for (size_t i = 0; i < s.n; i++)
		ok &= safe[(unsigned char)s.p[i]];
	return ok;
}

/* 'it'\''s': POSIX single quotes. */
static char *put_quoted(struct json_writer *w, char *d, struct str s)
{
	bool valid = true;

	*d++ = '\'';
	while (s.n) {
		const char *q = memchr(s.p, '\'', s.n);
		size_t n = q ? (size_t)(q - s.p) : s.n;

		d = ensure(w, d, n * JSON_ESCAPE_MAX + SLACK);
		if (!d)
			return NULL;
		d = json_escape(d, (struct str){ s.p, n }, &valid);
		if (q) {
			d = put_text(d, "'\\\\''", 5);
			n++;
		}
		s.p += n;
		s.n -= n;
	}
	*d++ = '\'';
	w->invalid |= !valid;
	return d;
}

char *put_command(struct json_writer *w, char *d, const struct str *v, size_t n)
{
	*d++ = '"';
	for (size_t i = 0; i < n; i++) {
		d = ensure(w, d, v[i].n + SLACK);
		if (!d)
			return NULL;
		if (i)
			*d++ = ' ';
		if (str_is_shell_safe(v[i]))
			d = put_text(d, v[i].p, v[i].n);
		else
			d = put_quoted(w, d, v[i]);
		if (!d)
			return NULL;
	}
	d = ensure(w, d, SLACK);
	if (d)
		*d++ = '"';
	return d;
}

/* ^([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?\.)*...$: what OCSF 1.1 and 1.3 take as hostname_t. */
static bool is_host_name(struct str s)
{
	char before = '.';

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '.' || c == '-') {
			if (before == '.' || (c == '.' && before == '-'))
				return false;
		} else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9'))) {
			return false;
		}
		before = c;
	}
	return before != '.' && before != '-';
}

static char *put_form(struct json_writer *w, char *d, const struct layout_step *s,
		      const union field_value *v)
{
	switch ((enum render_form)s->form) {
	case FORM_STRING:
		*d++ = '"';
		d = s->type == FT_I64 ? put_i64(d, v->i) : json_digits(d, v->u);
		*d++ = '"';
		return d;
	case FORM_MS:
		return json_digits(d, v->u / NSEC_PER_MSEC);
	case FORM_COMMAND:
		return put_command(w, d, v->list.v, v->list.n);
	case FORM_HOST:
		return is_host_name(v->s) ? put_str(w, d, v->s) : d;
	case FORM_HOST_OR_UNKNOWN:
		return put_str(w, d, is_host_name(v->s) ? v->s : STR("unknown"));
	case FORM_NOT_HOST:
		return is_host_name(v->s) ? d : put_str(w, d, v->s);
	case FORM_OCTAL:
		*d++ = '"';
		for (int shift = 9; shift >= 0; shift -= 3)
			*d++ = (char)('0' + (v->u >> shift & 7));
		*d++ = '"';
		return d;
	case FORM_TYPE:
		break;
	}
	return put_value(w, d, s->type, v);
}

static char *put_step(struct json_writer *w, char *d, const struct layout *p,
		      const struct layout_step *s, uint8_t *group, const struct event *ev)
{
	size_t before = (size_t)(d - w->out->p), value;

	d = enter_group(p, d, *group, s->group);
	d = put_layout_key(d, s->key, s->key_n);
	if (s->text) {
		*group = s->group;
		return put_text(d, s->text, s->text_n);
	}
	value = (size_t)(d - w->out->p);
	d = s->fn ? s->fn(w, d, ev) : put_form(w, d, s, &ev->v[s->field]);
	if (d && (size_t)(d - w->out->p) == value)
		return w->out->p + before; /* nothing to say */
	*group = s->group;
	return d;
}

static char *put_steps(struct json_writer *w, char *d, const struct layout *p, uint8_t *group,
		       const struct event *ev)
{
	for (const struct layout_step *s = p->steps; s < p->steps + p->steps_n; s++) {
		if ((s->when >= 0 && !event_has(ev, (enum field_id)s->when)) ||
		    (s->unless >= 0 && event_has(ev, (enum field_id)s->unless)))
			continue;
		d = ensure(w, d, 2 * SLACK + s->text_n);
		if (d)
			d = put_step(w, d, p, s, group, ev);
		if (!d)
			return NULL;
	}
	return d;
}

/* What no row carries, under its own name. */
static char *put_rest(struct json_writer *w, char *d, const struct layout *p, uint8_t *group,
		      const struct event *ev)
{
	for (size_t word = 0; word < EVENT_PRESENT_WORDS; word++) {
		uint64_t bits = ev->present[word] & ~p->handled[word];

		for (; bits; bits &= bits - 1) {
			size_t f = word * 64 + (size_t)__builtin_ctzll(bits);
			const char *name = event_fields[f].name;
			size_t n = strlen(name);

			d = ensure(w, d, 2 * SLACK);
			if (!d)
				return NULL;
			d = enter_group(p, d, *group, p->rest);
			*group = p->rest;
			if (d[-1] != '{')
				*d++ = ',';
			*d++ = '"';
			d = put_text(d, name, n);
			d = put_text(d, "\":", 2);
			d = put_value(w, d, event_fields[f].type, &ev->v[f]);
			if (!d)
				return NULL;
		}
	}
	return d;
}

/* Behind the rest: the bytes of strings that were not UTF-8. */
static char *put_raw(struct json_writer *w, char *d, const struct layout *p, uint8_t *group,
		     const struct event *ev)
{
	d = ensure(w, d, 2 * SLACK);
	if (!d)
		return NULL;
	d = enter_group(p, d, *group, p->rest);
	*group = p->rest;
	if (d[-1] != '{')
		*d++ = ',';
	d = put_text(d, "\"raw\":", 6);
	w->out->n = (size_t)(d - w->out->p);
	event_raw_to_json(ev, w->out);
	if (w->out->failed)
		return NULL;
	w->end = w->out->p + w->out->cap;
	return ensure(w, w->out->p + w->out->n, SLACK);
}

int layout_json(const struct layout *p, const struct event *ev, struct buf *out)
{
	struct json_writer w = { .out = out };
	uint8_t group = 0;
	size_t n = out->n;
	char *d;

	w.error = buf_reserve(out, 2 * SLACK);
	if (w.error < 0)
		return w.error;
	w.error = -EMSGSIZE;
	w.end = out->p + out->cap;
	d = out->p + n;
	*d++ = '{';
	d = put_steps(&w, d, p, &group, ev);
	if (d)
		d = put_rest(&w, d, p, &group, ev);
	if (d && w.invalid)
		d = put_raw(&w, d, p, &group, ev);
	if (d)
		d = ensure(&w, d, 2 * SLACK);
	if (!d) {
		out->n = n;
		return w.error;
	}
	d = enter_group(p, d, group, 0);
	*d++ = '}';
	out->n = (size_t)(d - out->p);
	return 0;
}
