// SPDX-License-Identifier: Apache-2.0
/* Paths of open files. The record of a closed file's writes has no path: the file is gone when the call
 * that closed it ends. It refers to the event that opened it. Once those were told only a copy of the
 * descriptor can tell more, so of such files the last few are enough: a storm of files stays in the cache. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/enrich/sandbox.h"
#include "userspace/event/path.h"

struct open_file {
	struct lru_node node; /* a = id */
	char *path;
	size_t n;
};

static void drop_open(void *ctx, struct lru_node *node)
{
	struct open_file *o = (struct open_file *)node;
	struct sandbox *s = ctx;

	s->open_bytes -= o->n;
	free(o->path);
}

void opens_init(struct sandbox *s, size_t max)
{
	lru_init(&s->opens, sizeof(struct open_file), max, drop_open, s);
	lru_init(&s->opens_told, sizeof(struct open_file), OPENS_TOLD_MAX, drop_open, s);
}

/* What is in one table goes to the other one. */
static void told(struct sandbox *s, const struct lru_key *key, struct open_file *o)
{
	struct open_file *to = (struct open_file *)lru_add(&s->opens_told, key);

	if (!to)
		return; /* stays where it is */
	to->path = o->path;
	to->n = o->n;
	o->path = NULL;
	o->n = 0;
	lru_remove(&s->opens, &o->node);
}

static void remember(struct sandbox *s, const struct lru_key *key, struct str path)
{
	struct open_file *o;
	char *copy;

	if (lru_find(&s->opens, key))
		return;
	copy = malloc(path.n + 1);
	if (!copy)
		return; /* its writes come without a path, and say so */
	memcpy(copy, path.p, path.n);
	o = (struct open_file *)lru_add(&s->opens, key);
	if (!o) {
		free(copy);
		return;
	}
	o->path = copy;
	o->n = path.n;
	s->open_bytes += path.n;
	while (s->open_bytes > OPENS_BYTES_MAX && (s->opens_told.n || s->opens.n > 1))
		lru_evict(s->opens_told.n ? &s->opens_told : &s->opens);
}

static int fill(struct sandbox *s, const struct lru_key *key, struct event *ev)
{
	struct open_file *open = (struct open_file *)lru_find(&s->opens, key), *o = open;
	struct str path, name, *v;

	if (!o)
		o = (struct open_file *)lru_find(&s->opens_told, key);
	if (!o) {
		v = arena_alloc(ev->arena, sizeof(*v));
		if (!v)
			return -ENOMEM;
		*v = STR("path");
		event_set_list(ev, F_DEGRADED, v, 1);
		return 0;
	}
	path = arena_strndup(ev->arena, o->path, o->n);
	if (!path.p)
		return -ENOMEM;
	name = path_name(path);
	event_set_str(ev, F_FILE_PATH, path);
	if (name.n)
		event_set_str(ev, F_FILE_NAME, name);
	if (open)
		told(s, key, open);
	return 0;
}

int opens_apply(struct sandbox *s, struct event *ev)
{
	struct lru_key key;

	if (!event_has(ev, F_FILE_OPEN_ID))
		return 0;
	key = key_of_ids(s, ev->v[F_FILE_OPEN_ID].u, 0);
	if (event_str(ev, F_FILE_PATH).n) {
		remember(s, &key, ev->v[F_FILE_PATH].s);
		return 0;
	}
	return ev->kind == WIRE_FILE_WRITE ? fill(s, &key, ev) : 0;
}
