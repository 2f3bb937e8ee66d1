// SPDX-License-Identifier: Apache-2.0
/* An event's JSON by the layout of its kind. */
#include "exporters/render/layout.h"

#include <errno.h>
#include <string.h>

/* ---- writing by it ---- */

static inline char *put_text(char *d, const char *text, size_t n)
{
	memcpy(d, text, n);
	return d + n;
}

/* Of a layout or a format, with LAYOUT_PIECE bytes to spare behind it: nothing is called for a short one. */
static inline char *put_constant(char *d, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i += LAYOUT_PIECE)
		memcpy(d + i, text + i, LAYOUT_PIECE);
	return d + n;
}

static char *open_groups(const struct layout *p, char *d, uint8_t from, uint8_t to)
{
	if (to == from)
		return d;
	d = open_groups(p, d, from, p->groups[to].parent);
	return layout_put_key(d, p->groups[to].open, p->groups[to].open_n);
}

char *layout_enter(const struct layout *p, char *d, uint8_t from, uint8_t g)
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

/* What a row's own function, or a form that may be empty, has to say; with its key, or nothing at all. */
static char *put_perhaps(struct json_writer *w, char *d, const struct layout *p,
			 const struct layout_step *s, uint8_t *group, const struct event *ev)
{
	size_t before = (size_t)(d - w->out->p), value;

	d = layout_enter(p, d, *group, s->group);
	d = layout_put_key(d, s->key, s->key_n);
	value = (size_t)(d - w->out->p);
	d = s->fn ? s->fn(w, d, ev) : put_form(w, d, s, &ev->v[s->field]);
	if (d && (size_t)(d - w->out->p) == value)
		return w->out->p + before;
	*group = s->group;
	return d;
}

static char *put_steps(struct json_writer *w, char *d, const struct layout *p, uint8_t *ret_group,
		       const struct event *ev)
{
	uint64_t present[LAYOUT_WORDS];
	uint8_t group = 0;

	memcpy(present, ev->present, sizeof(ev->present));
	present[LAYOUT_WORDS - 1] = LAYOUT_ALWAYS;
	for (const struct layout_step *s = p->steps; s < p->steps + p->steps_n; s++) {
		if (!(present[s->when_word] & s->when_bit) ||
		    present[s->unless_word] & s->unless_bit)
			continue;
		d = ensure(w, d, 2 * SLACK + s->text_n);
		if (!d)
			return NULL;
		if (s->perhaps) {
			d = put_perhaps(w, d, p, s, &group, ev);
		} else {
			if (s->group != group)
				d = layout_enter(p, d, group, s->group);
			d = layout_put_key(d, s->key, s->key_n);
			group = s->group;
			if (s->text) {
				d = put_constant(d, s->text, s->text_n);
				group = s->last_group;
			} else {
				d = s->form == FORM_TYPE
					    ? put_value(w, d, s->type, &ev->v[s->field])
					    : put_form(w, d, s, &ev->v[s->field]);
			}
		}
		if (!d)
			return NULL;
	}
	*ret_group = group;
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

			d = ensure(w, d, 2 * SLACK);
			if (!d)
				return NULL;
			if (*group != p->rest)
				d = layout_enter(p, d, *group, p->rest);
			*group = p->rest;
			d = layout_put_key(d, layout_own_keys[f].key, layout_own_keys[f].n);
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
	d = layout_enter(p, d, *group, p->rest);
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
	d = layout_enter(p, d, group, 0);
	*d++ = '}';
	out->n = (size_t)(d - out->p);
	return 0;
}
