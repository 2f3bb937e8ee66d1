// SPDX-License-Identifier: Apache-2.0
/* Event -> one JSON object. Walks the present bits in table order; the dots of a field's name are the
 * nesting, so neighbouring fields share their open object. The text of every key is made once. */
#include "userspace/event/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/clock.h"
#include "userspace/base/json.h"

#define GROUPS_MAX 24 /* objects: the top one and one for each prefix */
#define KEY_MAX	   32

struct group {
	uint8_t parent;
	uint8_t depth;
	uint8_t open_n;
	char open[KEY_MAX]; /* "proc":{ */
	struct str prefix;  /* "net.src" */
};

struct field_key {
	uint8_t group;
	uint8_t n;
	char key[KEY_MAX]; /* "exe": */
};

static struct group groups[GROUPS_MAX]; /* 0 is the top object */
static size_t groups_n;
static struct field_key keys[F_COUNT];
static pthread_once_t keys_once = PTHREAD_ONCE_INIT;

/* Names come from fields.h and are short; a unit test checks that everything fits. */
static uint8_t put_key(char *out, const char *name, size_t n, const char *tail)
{
	size_t t = strlen(tail);

	if (n + t + 2 > KEY_MAX)
		return 0;
	out[0] = '"';
	memcpy(out + 1, name, n);
	out[1 + n] = '"';
	memcpy(out + 2 + n, tail, t);
	return (uint8_t)(n + t + 2);
}

static uint8_t group_of(struct str prefix, uint8_t parent)
{
	size_t i, skip = parent ? groups[parent].prefix.n + 1 : 0;

	for (i = 1; i < groups_n; i++)
		if (str_eq(groups[i].prefix, prefix))
			return (uint8_t)i;
	if (groups_n == GROUPS_MAX)
		return 0;
	groups[i] = (struct group){
		.parent = parent,
		.depth = (uint8_t)(groups[parent].depth + 1),
		.prefix = prefix,
	};
	groups[i].open_n = put_key(groups[i].open, prefix.p + skip, prefix.n - skip, ":{");
	groups_n++;
	return (uint8_t)i;
}

static void keys_fill(void)
{
	groups_n = 1;
	for (int f = 0; f < F_COUNT; f++) {
		const char *name = event_fields[f].name, *part = name, *dot;
		uint8_t g = 0;

		while ((dot = strchr(part, '.'))) {
			g = group_of((struct str){ name, (size_t)(dot - name) }, g);
			part = dot + 1;
		}
		keys[f].group = g;
		keys[f].n = put_key(keys[f].key, part, strlen(part), ":");
	}
}

struct writer {
	struct buf *out;
	uint8_t group;
	bool invalid; /* some string was not UTF-8: "raw" is needed */
	int error;
};

static bool room_grow(struct writer *w, size_t n)
{
	int r = buf_reserve(w->out, n);

	if (r < 0)
		w->error = r;
	return r == 0;
}

static inline bool room(struct writer *w, size_t n)
{
	return w->out->cap - w->out->n >= n || room_grow(w, n);
}

static inline void put_char(struct buf *b, char c)
{
	b->p[b->n++] = c;
}

static inline void put_bytes(struct buf *b, const char *p, size_t n)
{
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static inline void put_comma(struct buf *b)
{
	if (b->p[b->n - 1] != '{' && b->p[b->n - 1] != '[')
		put_char(b, ',');
}

static void open_groups(struct buf *b, uint8_t from, uint8_t to)
{
	if (to == from)
		return;
	open_groups(b, from, groups[to].parent);
	put_comma(b);
	put_bytes(b, groups[to].open, groups[to].open_n);
}

/* Close and open objects so that members of group `g` can follow. */
static void enter_group(struct buf *b, uint8_t from, uint8_t g)
{
	uint8_t to = g;

	while (groups[to].depth > groups[from].depth)
		to = groups[to].parent;
	while (from != to) {
		put_char(b, '}');
		from = groups[from].parent;
		while (groups[to].depth > groups[from].depth)
			to = groups[to].parent;
	}
	open_groups(b, to, g);
}

/* The buffer is grown for the worst case of the whole string: six bytes each. */
static bool put_str(struct writer *w, struct str s)
{
	struct buf *b = w->out;
	bool valid = true;

	if (s.n > SIZE_MAX / JSON_ESCAPE_MAX - 3 || !room(w, s.n * JSON_ESCAPE_MAX + 3))
		return false;
	put_char(b, '"');
	b->n = (size_t)(json_escape(b->p + b->n, s, &valid) - b->p);
	put_char(b, '"');
	w->invalid |= !valid;
	return true;
}

static bool put_u64(struct writer *w, uint64_t v)
{
	if (!room(w, 24))
		return false;
	w->out->n = (size_t)(json_digits(w->out->p + w->out->n, v) - w->out->p);
	return true;
}

static bool put_i64(struct writer *w, int64_t v)
{
	if (!room(w, 24))
		return false;
	if (v < 0)
		put_char(w->out, '-');
	return put_u64(w, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static bool put_hex(struct writer *w, uint64_t v)
{
	static const char digits[] = "0123456789abcdef";
	struct buf *b = w->out;
	int shift = v ? (63 - __builtin_clzll(v)) / 4 * 4 : 0;

	if (!room(w, 24))
		return false;
	put_bytes(b, "\"0x", 3);
	for (; shift >= 0; shift -= 4)
		put_char(b, digits[v >> shift & 15]);
	put_char(b, '"');
	return true;
}

static bool put_time(struct writer *w, uint64_t real_ns)
{
	struct buf *b = w->out;

	if (!room(w, RFC3339_NS_LEN + 3))
		return false;
	put_char(b, '"');
	rfc3339_ns(b->p + b->n, real_ns);
	b->n += RFC3339_NS_LEN;
	put_char(b, '"');
	return true;
}

static bool put_ip(struct writer *w, const struct ip_addr *ip)
{
	struct buf *b = w->out;

	if (!room(w, 64))
		return false;
	put_char(b, '"');
	b->n += ip_addr_text(ip, b->p + b->n);
	put_char(b, '"');
	return true;
}

static bool put_list(struct writer *w, const struct str *v, size_t n)
{
	if (!room(w, 2))
		return false;
	put_char(w->out, '[');
	for (size_t i = 0; i < n; i++) {
		if (!room(w, 2))
			return false;
		if (i)
			put_char(w->out, ',');
		if (!put_str(w, v[i]))
			return false;
	}
	if (!room(w, 1))
		return false;
	put_char(w->out, ']');
	return true;
}

/* `text` is what stands in front of the value: punctuation and key. */
static inline bool put_text(struct writer *w, const char *text)
{
	size_t n = strlen(text);

	if (!room(w, n))
		return false;
	put_bytes(w->out, text, n);
	return true;
}

static bool put_ancestors(struct writer *w, const struct event_ancestor *v, size_t n)
{
	if (!put_text(w, "["))
		return false;
	for (size_t i = 0; i < n; i++) {
		bool ok = put_text(w, i ? ",{\"pid\":" : "{\"pid\":") && put_u64(w, v[i].pid) &&
			  put_text(w, ",\"start\":") && put_u64(w, v[i].start);

		if (v[i].comm.p)
			ok = ok && put_text(w, ",\"comm\":") && put_str(w, v[i].comm);
		if (v[i].exe.p)
			ok = ok && put_text(w, ",\"exe\":") && put_str(w, v[i].exe);
		if (!ok || !put_text(w, "}"))
			return false;
	}
	return put_text(w, "]");
}

static bool put_answers(struct writer *w, const struct event_dns_answer *v, size_t n)
{
	if (!put_text(w, "["))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!put_text(w, i ? ",{\"name\":" : "{\"name\":") || !put_str(w, v[i].name) ||
		    !put_text(w, ",\"type\":") || !put_str(w, v[i].type) ||
		    !put_text(w, ",\"ttl\":") || !put_u64(w, v[i].ttl) ||
		    !put_text(w, ",\"data\":") || !put_str(w, v[i].data) || !put_text(w, "}"))
			return false;
	return put_text(w, "]");
}

static bool put_value(struct writer *w, enum field_type type, const union field_value *v)
{
	switch (type) {
	case FT_STR:
		return put_str(w, v->s);
	case FT_U64:
		return put_u64(w, v->u);
	case FT_I64:
		return put_i64(w, v->i);
	case FT_BOOL:
		return put_text(w, v->u ? "true" : "false");
	case FT_TIME:
		return put_time(w, v->u);
	case FT_HEX:
		return put_hex(w, v->u);
	case FT_IP:
		return put_ip(w, &v->ip);
	case FT_STRLIST:
		return put_list(w, v->list.v, v->list.n);
	case FT_ANCESTORS:
		return put_ancestors(w, v->ancestors.v, v->ancestors.n);
	case FT_ANSWERS:
		return put_answers(w, v->answers.v, v->answers.n);
	}
	return false;
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

static void put_raw_object(const struct event *ev, struct buf *out)
{
	struct json j;

	buf_addz(out, ",\"raw\":");
	json_init(&j, out);
	json_object_begin(&j);
	for (int f = 0; f < F_COUNT; f++)
		if (event_has(ev, f))
			put_raw_field(&j, ev, f);
	json_object_end(&j);
}

int event_to_json(const struct event *ev, struct buf *out)
{
	struct writer w = { .out = out, .error = -EMSGSIZE };
	bool failed_before = out->failed;
	size_t n = out->n;

	pthread_once(&keys_once, keys_fill);
	out->failed = false;
	if (!put_text(&w, "{"))
		goto fail;
	for (size_t word = 0; word < EVENT_PRESENT_WORDS; word++) {
		for (uint64_t bits = ev->present[word]; bits; bits &= bits - 1) {
			int f = (int)(word * 64) + __builtin_ctzll(bits);
			const struct field_key *k = &keys[f];

			if (!room(&w, 4 * KEY_MAX))
				goto fail;
			if (k->group != w.group) {
				enter_group(out, w.group, k->group);
				w.group = k->group;
			}
			put_comma(out);
			put_bytes(out, k->key, k->n);
			if (!put_value(&w, event_fields[f].type, &ev->v[f]))
				goto fail;
		}
	}
	if (!room(&w, KEY_MAX))
		goto fail;
	enter_group(out, w.group, 0);
	if (w.invalid)
		put_raw_object(ev, out);
	put_text(&w, "}");
	if (out->failed)
		goto fail;
	out->failed = failed_before;
	return 0;

fail:
	out->n = n;
	out->failed = failed_before;
	return w.error;
}
