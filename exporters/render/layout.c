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

struct layout_own_key layout_own_keys[F_COUNT];

/* Under the lock of layout_get. */
static int fill_own_keys(void)
{
	for (int f = 0; f < F_COUNT; f++) {
		struct layout_own_key *k = &layout_own_keys[f];
		int n = snprintf(k->key, sizeof(k->key), ",\"%s\":", event_fields[f].name);

		if ((size_t)n >= sizeof(k->key))
			return -ENAMETOOLONG;
		k->n = (uint8_t)n;
	}
	return 0;
}

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

static int keep_text(struct layout *p, struct layout_step *s, const char *text)
{
	size_t n = strlen(text);

	if (p->texts_n + n + LAYOUT_PIECE > sizeof(p->texts))
		return -E2BIG;
	s->text = memcpy(p->texts + p->texts_n, text, n);
	s->text_n = (uint16_t)n;
	p->texts_n += n;
	return 0;
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
			.fn = r->fn,
		};
		len = snprintf(s->path, sizeof(s->path), "%s%s", rooted ? root : "",
			       r->path + rooted);
		if ((size_t)len >= sizeof(s->path))
			return -ENAMETOOLONG;
		if (r->text && keep_text(p, s, r->text) < 0)
			return -E2BIG;
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

int layout_sort(struct layout *p)
{
	qsort(p->steps, p->steps_n, sizeof(p->steps[0]), compare_steps);
	for (size_t i = 1; i < p->steps_n; i++) {
		struct layout_step *s = &p->steps[i];

		if (!strcmp(s->path, s[-1].path) && !exclude_each_other(s, s - 1))
			return -EEXIST;
	}
	return 0;
}

static int make_key(struct layout *p, struct layout_step *s)
{
	const char *dot = strrchr(s->path, '.');
	char up[LAYOUT_PATH_MAX];
	int g, n;

	snprintf(up, sizeof(up), "%.*s", dot ? (int)(dot - s->path) : 0, s->path);
	g = add_group(p, up);
	if (g < 0)
		return g;
	s->group = s->last_group = (uint8_t)g;
	n = snprintf(s->key, sizeof(s->key), ",\"%s\":", dot ? dot + 1 : s->path);
	if ((size_t)n >= sizeof(s->key))
		return -ENAMETOOLONG;
	s->key_n = (uint8_t)n;
	s->perhaps = s->fn || s->form == FORM_HOST || s->form == FORM_NOT_HOST;
	s->when_word = s->when < 0 ? LAYOUT_WORDS - 1 : (uint8_t)(s->when / 64);
	s->when_bit = s->when < 0 ? LAYOUT_ALWAYS : (uint64_t)1 << s->when % 64;
	s->unless_word = s->unless < 0 ? LAYOUT_WORDS - 1 : (uint8_t)(s->unless / 64);
	s->unless_bit = s->unless < 0 ? LAYOUT_NEVER : (uint64_t)1 << s->unless % 64;
	return 0;
}

static bool is_constant(const struct layout_step *s)
{
	return s->text && s->when < 0 && s->unless < 0;
}

/* Constants that always follow one another become one text, with the objects that end and begin in it. */
static int join_constants(struct layout *p)
{
	char joined[LAYOUT_TEXTS_MAX + LAYOUT_MEMBER_MAX], *d = joined;
	size_t n = 0;

	*d++ = 'x'; /* not '{': what comes first of an object is seen when it is written */
	for (size_t i = 0; i < p->steps_n; n++) {
		struct layout_step *s = &p->steps[n];
		char *start = d;

		*s = p->steps[i++];
		if (!s->text)
			continue;
		if (s->text_n > LAYOUT_MEMBER_MAX / 2)
			return -ENAMETOOLONG;
		d = mempcpy(d, s->text, s->text_n);
		while (is_constant(s) && i < p->steps_n && is_constant(&p->steps[i])) {
			const struct layout_step *more = &p->steps[i++];

			if (more->text_n > LAYOUT_MEMBER_MAX / 2 ||
			    d - joined > LAYOUT_TEXTS_MAX - LAYOUT_PIECE)
				return -E2BIG;
			d = layout_enter(p, d, s->last_group, more->group);
			d = layout_put_key(d, more->key, more->key_n);
			d = mempcpy(d, more->text, more->text_n);
			s->last_group = more->group;
		}
		if (d - joined > LAYOUT_TEXTS_MAX - LAYOUT_PIECE)
			return -E2BIG;
		s->text_n = (uint16_t)(d - start);
		s->text = p->texts + (start - joined); /* where it is going to be */
	}
	p->steps_n = (uint16_t)n;
	memcpy(p->texts, joined, (size_t)(d - joined));
	return 0;
}

int layout_finish(struct layout *p)
{
	int r = layout_sort(p);

	for (size_t i = 0; r == 0 && i < p->steps_n; i++)
		r = make_key(p, &p->steps[i]);
	return r < 0 ? r : join_constants(p);
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
		*ret_code = fill_own_keys();
		if (*ret_code == 0)
			*ret_code = make(p, kind, version);
		if (*ret_code == 0)
			__atomic_store_n(&cache->layouts[i], found = p, __ATOMIC_RELEASE);
		else
			free(p);
	}
	pthread_mutex_unlock(&lock);
	return found;
}
