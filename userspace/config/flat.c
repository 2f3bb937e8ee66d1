// SPDX-License-Identifier: Apache-2.0
#include "userspace/config/flat.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"

struct level {
	bool is_map;
	bool have_key;	/* map: a key was read, its value comes next */
	size_t key_len; /* of the prefix that belongs to this level */
};

struct loader {
	struct flat_file *file;
	struct err *err;
	yaml_parser_t parser;
	struct level level[FLAT_DEPTH_MAX];
	int depth; /* levels open */
	char key[FLAT_KEY_MAX];
	size_t cap;
};

static int fail_at(struct loader *l, const yaml_mark_t *mark, const char *text)
{
	return err_set(l->err, EINVAL, "%s:%zu:%zu: %s", l->file->path, mark->line + 1,
		       mark->column + 1, text);
}

static int add_entry(struct loader *l, const yaml_event_t *ev)
{
	struct flat_file *f = l->file;
	struct str key, value;

	if (f->n == FLAT_ENTRIES_MAX)
		return fail_at(l, &ev->start_mark, "too many entries");
	if (f->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		struct flat_entry *v = reallocarray(f->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		f->v = v;
		l->cap = cap;
	}
	if (memchr(ev->data.scalar.value, 0, ev->data.scalar.length))
		return fail_at(l, &ev->start_mark, "NUL in a value");
	key = arena_strndup(&f->arena, l->key, strlen(l->key));
	value = arena_strndup(&f->arena, (const char *)ev->data.scalar.value,
			      ev->data.scalar.length);
	if (!key.p || !value.p)
		return -ENOMEM;
	f->v[f->n++] = (struct flat_entry){ key.p, value.p, (int)ev->start_mark.line + 1,
					    (int)ev->start_mark.column + 1,
					    !l->level[l->depth - 1].is_map };
	return 0;
}

static bool key_known(const struct flat_file *f, const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < f->n; i++)
		if (!strncmp(f->v[i].key, key, n) && (!f->v[i].key[n] || f->v[i].key[n] == '.'))
			return true;
	return false;
}

static int take_key(struct loader *l, const yaml_event_t *ev)
{
	struct level *lv = &l->level[l->depth - 1];
	const char *text = (const char *)ev->data.scalar.value;
	size_t n = ev->data.scalar.length, at = lv->key_len;

	if (!n || strlen(text) != n || at + n + 2 > sizeof(l->key))
		return fail_at(l, &ev->start_mark, "key is empty or too long");
	if (at)
		l->key[at++] = '.';
	memcpy(l->key + at, text, n + 1);
	if (key_known(l->file, l->key))
		return fail_at(l, &ev->start_mark, "duplicate key");
	lv->have_key = true;
	return 0;
}

/* After a value: the key of the level that holds it is used up. */
static void value_done(struct loader *l)
{
	struct level *lv;

	if (!l->depth)
		return;
	lv = &l->level[l->depth - 1];
	if (lv->is_map) {
		lv->have_key = false;
		l->key[lv->key_len] = 0;
	}
}

static int open_level(struct loader *l, const yaml_event_t *ev, bool is_map)
{
	struct level *outer = l->depth ? &l->level[l->depth - 1] : NULL;

	if (!outer && !is_map)
		return fail_at(l, &ev->start_mark, "expected 'key: value' lines");
	if (outer && outer->is_map && !outer->have_key)
		return fail_at(l, &ev->start_mark, "a map or list cannot be a key");
	if (outer && !outer->is_map)
		return fail_at(l, &ev->start_mark, "a list may hold plain values only");
	if (l->depth == FLAT_DEPTH_MAX)
		return fail_at(l, &ev->start_mark, "nested too deep");
	l->level[l->depth++] = (struct level){ .is_map = is_map, .key_len = strlen(l->key) };
	return 0;
}

static int take_scalar(struct loader *l, const yaml_event_t *ev)
{
	int r;

	if (!l->depth)
		return fail_at(l, &ev->start_mark, "expected 'key: value' lines");
	if (l->level[l->depth - 1].is_map && !l->level[l->depth - 1].have_key)
		return take_key(l, ev);
	r = add_entry(l, ev);
	value_done(l);
	return r;
}

static int take_event(struct loader *l, const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return take_scalar(l, ev);
	case YAML_MAPPING_START_EVENT:
		return open_level(l, ev, true);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(l, ev, false);
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		l->depth--;
		value_done(l);
		return 0;
	case YAML_ALIAS_EVENT:
		return fail_at(l, &ev->start_mark, "aliases are not accepted here");
	default:
		return 0;
	}
}

static int load_text(struct loader *l, const char *text, size_t n)
{
	bool end = false;
	int r = 0;

	/* libyaml aborts on a text that is NULL, which one of no bytes may be. */
	yaml_parser_set_input_string(&l->parser, (const unsigned char *)(n ? text : ""), n);
	while (!end && r == 0) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&l->parser, &ev)) {
			const char *why = l->parser.problem ? l->parser.problem : "not YAML";

			return fail_at(l, &l->parser.problem_mark, why);
		}
		r = take_event(l, &ev);
		end = ev.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&ev);
	}
	return r;
}

int flat_parse(struct flat_file *ret, const char *name, const char *text, size_t n, struct err *err)
{
	struct flat_file f = { 0 };
	struct loader l = { .file = &f, .err = err };
	int r;

	arena_init(&f.arena, 4 * FLAT_FILE_MAX);
	snprintf(f.path, sizeof(f.path), "%s", name);
	if (!yaml_parser_initialize(&l.parser))
		return -ENOMEM;
	r = load_text(&l, text, n);
	yaml_parser_delete(&l.parser);
	if (r < 0) {
		flat_done(&f);
		return r;
	}
	*ret = f;
	return 0;
}

int flat_load(struct flat_file *ret, const char *path, struct err *err)
{
	auto_free char *text = NULL;
	size_t n;
	int r;

	r = file_read_trusted(path, FLAT_FILE_MAX, &text, &n, "configuration", err);
	return r < 0 ? r : flat_parse(ret, path, text, n, err);
}

int flat_single(const struct flat_file *f, const struct flat_entry *e, struct err *err)
{
	return e->in_list ? err_set(err, EINVAL, "%s:%d:%d: '%s' has one value, not a list",
				    f->path, e->line, e->col, e->key)
			  : 0;
}

void flat_done(struct flat_file *f)
{
	arena_done(&f->arena);
	free(f->v);
	f->v = NULL;
	f->n = 0;
}
