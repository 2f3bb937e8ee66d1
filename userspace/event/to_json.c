// SPDX-License-Identifier: Apache-2.0
/* Event -> one JSON object. Walks the present bits in table order; the dots of a field's name are the
 * nesting, so neighbouring fields share their open object. The text of every key is made once. */
#include "userspace/event/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "userspace/event/json_keys.h"
#include "userspace/event/json_value.h"
#include "userspace/event/part.h"

/* A text of ours, padded to JSON_KEY_MAX. A member that is the first of its object has no comma. */
static inline char *put_key(char *d, const char key[JSON_KEY_MAX], size_t n)
{
	size_t skip = d[-1] == '{';

	memcpy(d - skip, key, JSON_KEY_MAX);
	if (skip)
		d[-1] = '{';
	return d + n - skip;
}

static char *open_groups(char *d, uint8_t from, uint8_t to)
{
	if (to == from)
		return d;
	d = open_groups(d, from, json_groups[to].parent);
	return put_key(d, json_groups[to].open, json_groups[to].open_n);
}

/* Close and open objects so that members of group `g` can follow. */
static char *enter_group(char *d, uint8_t from, uint8_t g)
{
	uint8_t to = g;

	while (json_groups[to].depth > json_groups[from].depth)
		to = json_groups[to].parent;
	while (from != to) {
		*d++ = '}';
		from = json_groups[from].parent;
		while (json_groups[to].depth > json_groups[from].depth)
			to = json_groups[to].parent;
	}
	return open_groups(d, to, g);
}

/* One member of "raw" for each string that is not UTF-8: its path and its bytes. */
static void put_raw(struct json *j, struct str s, const char *path)
{
	if (utf8_is_valid(s))
		return;
	json_key(j, path);
	json_base64(j, s);
}

static void put_raw_field(struct json *j, const struct event *ev, int f)
{
	const union field_value *v = &ev->v[f];
	const char *name = event_fields[f].name;
	char path[96];

	switch (event_fields[f].type) {
	case FT_STR:
		put_raw(j, v->s, name);
		break;
	case FT_STRLIST:
		for (size_t i = 0; i < v->list.n; i++) {
			snprintf(path, sizeof(path), "%s.%zu", name, i);
			put_raw(j, v->list.v[i], path);
		}
		break;
	case FT_ANCESTORS:
		for (size_t i = 0; i < v->ancestors.n; i++) {
			snprintf(path, sizeof(path), "%s.%zu.comm", name, i);
			put_raw(j, v->ancestors.v[i].comm, path);
			snprintf(path, sizeof(path), "%s.%zu.exe", name, i);
			put_raw(j, v->ancestors.v[i].exe, path);
		}
		break;
	case FT_ANSWERS:
		for (size_t i = 0; i < v->answers.n; i++) {
			snprintf(path, sizeof(path), "%s.%zu.name", name, i);
			put_raw(j, v->answers.v[i].name, path);
			snprintf(path, sizeof(path), "%s.%zu.type", name, i);
			put_raw(j, v->answers.v[i].type, path);
			snprintf(path, sizeof(path), "%s.%zu.data", name, i);
			put_raw(j, v->answers.v[i].data, path);
		}
		break;
	default:
		break;
	}
}

void event_raw_to_json(const struct event *ev, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	for (int f = 0; f < F_COUNT; f++)
		if (event_has(ev, f))
			put_raw_field(&j, ev, f);
	json_object_end(&j);
}

/* Where the text of a part stands in for its fields. */
struct parts {
	uint64_t starts; /* first fields, of the first 64 */
	const struct event_part *v[EVENT_PARTS];
};

static void find_parts(struct parts *ps, const struct event *ev)
{
	ps->starts = 0;
	for (unsigned i = 0; i < EVENT_PARTS; i++) {
		ps->v[i] = ev->part[i] && event_part_holds(ev->part[i], ev) ? ev->part[i] : NULL;
		if (ps->v[i])
			ps->starts |= ps->v[i]->mask & -ps->v[i]->mask;
	}
}

static const struct event_part *part_at(const struct parts *ps, size_t f)
{
	for (unsigned i = 0; i < EVENT_PARTS; i++)
		if (ps->v[i] && ps->v[i]->mask >> f & 1)
			return ps->v[i];
	return NULL;
}

static char *put_part(struct json_writer *w, char *d, const struct event_part *p)
{
	d = ensure(w, d, p->json.n + SLACK);
	if (!d)
		return NULL;
	if (d[-1] != '{')
		*d++ = ',';
	memcpy(d, p->json.p, p->json.n);
	return d + p->json.n;
}

static char *put_members(struct json_writer *w, char *d, const struct event *ev)
{
	struct parts parts;
	uint8_t group = 0;

	find_parts(&parts, ev);
	for (size_t word = 0; word < EVENT_PRESENT_WORDS; word++) {
		for (uint64_t bits = ev->present[word]; bits; bits &= bits - 1) {
			size_t f = word * 64 + (size_t)__builtin_ctzll(bits);
			const struct json_field_key *k = &json_keys[f];
			const struct event_part *part;

			d = ensure(w, d, SLACK);
			if (!d)
				return NULL;
			if (k->group != group) {
				d = enter_group(d, group, k->group);
				group = k->group;
			}
			if (!word && parts.starts >> f & 1) {
				part = part_at(&parts, f);
				d = put_part(w, d, part);
				bits &= ~part->mask | (1ull << f);
			} else {
				d = put_value(w, put_key(d, k->key, k->n), k->type, &ev->v[f]);
			}
			if (!d)
				return NULL;
		}
	}
	d = ensure(w, d, SLACK);
	return d ? enter_group(d, group, 0) : NULL;
}

int event_members_to_json(const struct event *ev, uint64_t mask, struct buf *out)
{
	struct json_writer w = { .out = out };
	size_t n = out->n;
	char *d;
	int r;

	json_keys_init();
	r = buf_reserve(out, SLACK);
	if (r < 0)
		return r;
	w.error = -EMSGSIZE;
	w.end = out->p + out->cap;
	d = out->p + n;
	*d++ = '{'; /* so that the first member has no comma */
	for (uint64_t bits = mask; bits; bits &= bits - 1) {
		int f = __builtin_ctzll(bits);

		d = ensure(&w, d, SLACK);
		if (d)
			d = put_value(&w, put_key(d, json_keys[f].key, json_keys[f].n),
				      json_keys[f].type, &ev->v[f]);
		if (!d)
			return w.error;
	}
	out->n = (size_t)(d - out->p) - 1;
	memmove(out->p + n, out->p + n + 1, out->n - n);
	return 0;
}

int event_to_json(const struct event *ev, struct buf *out)
{
	struct json_writer w = { .out = out };
	bool failed_before = out->failed;
	size_t n = out->n;
	char *d = NULL;

	json_keys_init();
	out->failed = false;
	w.error = buf_reserve(out, SLACK);
	if (w.error == 0) {
		w.error = -EMSGSIZE;
		w.end = out->p + out->cap;
		d = out->p + n;
		*d++ = '{';
		d = put_members(&w, d, ev);
	}
	if (d) {
		out->n = (size_t)(d - out->p);
		if (w.invalid) {
			buf_addz(out, ",\"raw\":");
			event_raw_to_json(ev, out);
		}
		buf_addc(out, '}');
	}
	if (!d || out->failed) {
		out->n = n;
		out->failed = failed_before;
		return w.error;
	}
	out->failed = failed_before;
	return 0;
}
