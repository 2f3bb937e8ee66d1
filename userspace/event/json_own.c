// SPDX-License-Identifier: Apache-2.0
/* One pass over a copy of the text: strings stay where they are in it, keys are found by their first eight bytes
 * in a table made once. Whenever something is unusual it gives up; event_from_json then starts over, slowly. */
#include "userspace/event/json_own.h"

#include <pthread.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/event/json_read.h"

#define PAD	      16 /* zero bytes behind the copy: words may be loaded anywhere in it */
#define NEST_MAX      4
#define GROUPS_MAX    48
#define SLOTS	      1024 /* a power of two, mostly empty */
#define KINDS_SLOTS   256
#define LIST_MAX      (1 << 20)
#define ANCESTORS_MAX 256
#define ANSWERS_MAX   256
#define ONES	      0x0101010101010101ull
#define HIGH	      (ONES << 7)

/* A key inside an object: of a field, or of an object in it. */
struct slot {
	uint64_t head; /* its first eight bytes */
	const char *key;
	uint8_t n;     /* 0 = a free slot */
	uint8_t group; /* the object that it stands in; 0 = the top one */
	int16_t what;  /* field, or ~group */
	uint8_t type;
};

static struct slot slots[SLOTS];
static struct str groups[GROUPS_MAX];
static size_t groups_n;
static const struct kind_def *kinds[KINDS_SLOTS];
static bool tables_fit;
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

struct own {
	char *p; /* in the copy */
	struct event *ev;
	struct arena *arena;
	char *end;
};

/* ---- tables ---- */

static uint64_t load_head(const char *p, size_t n)
{
	uint64_t x = 0;

	memcpy(&x, p, MIN(n, sizeof(x)));
	return x;
}

static inline size_t slot_of(uint64_t head, size_t n, unsigned group)
{
	uint64_t x = (head ^ (n << 3 | (uint64_t)group << 56)) * 0x9e3779b97f4a7c15ull;

	return (size_t)(x >> 54);
}

static void add_slot(const char *key, size_t n, unsigned group, int what, int type)
{
	uint64_t head = load_head(key, n);
	size_t i = slot_of(head, n, group);

	while (slots[i].n)
		i = (i + 1) % SLOTS;
	slots[i] = (struct slot){ head,		  key,		 (uint8_t)n,
				  (uint8_t)group, (int16_t)what, (uint8_t)type };
}

/* The object of this path, which stands in `parent`; a new one gets a slot. */
static unsigned group_of(struct str path, unsigned parent)
{
	const char *name = path.p + (parent ? groups[parent].n + 1 : 0);

	for (size_t i = 1; i < groups_n; i++)
		if (str_eq(groups[i], path))
			return (unsigned)i;
	if (groups_n == GROUPS_MAX) {
		tables_fit = false;
		return 0;
	}
	groups[groups_n] = path;
	add_slot(name, (size_t)(path.p + path.n - name), parent, ~(int)groups_n, 0);
	return (unsigned)groups_n++;
}

static size_t kind_slot(struct str name)
{
	uint64_t tail = load_head(name.p + (name.n > 8 ? name.n - 8 : 0), MIN(name.n, (size_t)8));

	return slot_of(load_head(name.p, name.n) + tail * 31, name.n, 0) >> 2;
}

static void fill_tables(void)
{
	tables_fit = true;
	groups_n = 1;
	for (int f = 0; f < F_COUNT; f++) {
		const char *name = event_fields[f].name, *part = name, *dot;
		unsigned group = 0;

		for (; (dot = strchr(part, '.')); part = dot + 1)
			group = group_of((struct str){ name, (size_t)(dot - name) }, group);
		add_slot(part, strlen(part), group, f, event_fields[f].type);
	}
	for (size_t i = 0; i < event_kinds_n; i++) {
		size_t k = kind_slot(str_from(event_kinds[i].name));

		while (kinds[k])
			k = (k + 1) % KINDS_SLOTS;
		kinds[k] = &event_kinds[i];
	}
}
_Static_assert(2 * (F_COUNT + GROUPS_MAX) < SLOTS, "table of keys too full");

static const struct kind_def *find_kind(struct str name)
{
	for (size_t k = kind_slot(name); kinds[k]; k = (k + 1) % KINDS_SLOTS)
		if (str_eqz(name, kinds[k]->name))
			return kinds[k];
	return NULL;
}

/* ---- values ---- */

/* The first byte from p on that is no plain ASCII of a string: quote, backslash, control character, other. The
 * zeros behind the copy are such bytes. */
static inline char *plain_end(char *p)
{
	uint64_t x, hit;

	for (;; p += 8) {
		x = json_load8(p);
		hit = (x | (x - ONES * 0x20) | ((x ^ ONES * '"') - ONES) |
		       ((x ^ ONES * '\\') - ONES)) &
		      HIGH;
		if (hit)
			break;
	}
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return p + __builtin_ctzll(hit) / 8; /* borrows falsify only what is above the lowest one */
#endif
	while ((unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return p;
}

/* Escapes, and what is not ASCII. */
static bool read_odd_string(struct own *r, struct str *ret)
{
	struct json_reader in = { .p = r->p, .end = r->end, .arena = r->arena };

	if (!json_read_string(&in, ret))
		return false;
	r->p += in.p - r->p;
	return true;
}

static inline bool read_string(struct own *r, struct str *ret)
{
	char *start = r->p + 1, *end;

	if (*r->p != '"')
		return false;
	end = plain_end(start);
	if (*end != '"')
		return read_odd_string(r, ret);
	*end = 0; /* as the strings of the slow reader have it */
	*ret = (struct str){ start, (size_t)(end - start) };
	r->p = end + 1;
	return true;
}

static inline bool read_u64(struct own *r, uint64_t *ret)
{
	const char *p = r->p;
	uint64_t v = 0;
	unsigned d;

	for (; (d = (unsigned)(unsigned char)*p - '0') < 10; p++)
		v = v * 10 + d;
	if (p == r->p || p - r->p > 19 || (*r->p == '0' && p - r->p > 1))
		return false; /* none; perhaps too large; a leading zero */
	r->p += p - r->p;
	*ret = v;
	return true;
}

static bool read_i64(struct own *r, int64_t *ret)
{
	bool negative = *r->p == '-';
	uint64_t v;

	r->p += negative;
	if (!read_u64(r, &v) || v > INT64_MAX)
		return false;
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

static bool read_bool(struct own *r, uint64_t *ret)
{
	if (!memcmp(r->p, "true", 4)) {
		*ret = 1;
		r->p += 4;
		return true;
	}
	*ret = 0;
	if (memcmp(r->p, "false", 5))
		return false;
	r->p += 5;
	return true;
}

static inline unsigned two(const char *p)
{
	return (unsigned)(p[0] - '0') * 10 + (unsigned)(p[1] - '0');
}

/* Only the one form that rfc3339_ns writes: "2026-01-31T12:34:56.123456789Z". */
static bool read_time(struct own *r, uint64_t *ret)
{
	static const char form[] = "\"dddd-dd-ddTdd:dd:dd.dddddddddZ\"";
	static const uint8_t days[] = { 0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const char *p = r->p;
	unsigned year, month, day, hour, minute, second, ns = 0, y, m;
	uint64_t n;

	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? (unsigned char)(p[i] - '0') > 9 : p[i] != form[i])
			return false;
	p++;
	year = two(p) * 100 + two(p + 2);
	month = two(p + 5);
	day = two(p + 8);
	hour = two(p + 11);
	minute = two(p + 14);
	second = two(p + 17);
	if (year < 1970 || year > 2500 || month < 1 || month > 12 || day < 1 || day > days[month] ||
	    hour > 23 || minute > 59 || second > 59)
		return false;
	if (month == 2 && day == 29 && (year % 4 || (year % 100 == 0 && year % 400)))
		return false;
	for (int i = 20; i < 29; i++)
		ns = ns * 10 + (unsigned)(p[i] - '0');
	y = month <= 2 ? year - 1 : year;
	m = month <= 2 ? month + 12 : month;
	n = y * 365ull + y / 4 - y / 100 + y / 400 + (153 * (m - 3) + 2) / 5 + day - 1 - 719468;
	*ret = (((n * 24 + hour) * 60 + minute) * 60 + second) * NSEC_PER_SEC + ns;
	r->p += sizeof(form) - 1;
	return true;
}

static bool read_hex(struct own *r, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = r->p + 3;

	if (memcmp(r->p, "\"0x", 3))
		return false;
	for (; p - r->p < 3 + 16; p++) {
		unsigned c = (unsigned char)*p;

		if (c - '0' < 10)
			v = v << 4 | (c - '0');
		else if (c - 'a' < 6)
			v = v << 4 | (c - 'a' + 10);
		else
			break;
	}
	if (p == r->p + 3 || *p != '"')
		return false;
	r->p += p + 1 - r->p;
	*ret = v;
	return true;
}

static bool read_ip(struct own *r, struct ip_addr *ret)
{
	struct str s;

	return read_string(r, &s) && ip_addr_parse(s, ret) == 0;
}

static bool take(struct own *r, const char *text, size_t n)
{
	if (memcmp(r->p, text, n)) /* it may look into the padding */
		return false;
	r->p += n;
	return true;
}
#define TAKE(r, text)                                                                \
	({                                                                           \
		_Static_assert(sizeof(text) - 1 <= PAD, "looks behind the padding"); \
		take((r), (text), sizeof(text) - 1);                                 \
	})

/* ---- lists; an empty one is "[]" ---- */

static void *grow(struct own *r, void *old, size_t n, size_t *room, size_t size)
{
	void *p = old;

	if (n < *room)
		return old;
	*room = *room ? *room * 2 : 8;
	p = arena_alloc(r->arena, *room * size);
	if (p && n)
		memcpy(p, old, n * size);
	return p;
}

/* In front of a member: is there another one? `*bad` on anything but "[", "," and "]" in their places. */
static bool next(struct own *r, size_t n, bool *bad)
{
	char c = *r->p;

	if (n == 0 && c == '[' && r->p[1] == ']') {
		r->p += 2;
		return false;
	}
	if (c == (n ? ',' : '[')) {
		r->p++;
		return true;
	}
	*bad = !n || c != ']';
	r->p++;
	return false;
}

static bool read_list(struct own *r, union field_value *ret)
{
	size_t n = 0, room = 0;
	struct str *v = NULL;
	bool bad = false;

	for (; next(r, n, &bad); n++) {
		v = grow(r, v, n, &room, sizeof(*v));
		if (n == LIST_MAX || !v || !read_string(r, &v[n]))
			return false;
	}
	ret->list.v = v;
	ret->list.n = n;
	return !bad;
}

static bool read_ancestor(struct own *r, struct event_ancestor *a)
{
	*a = (struct event_ancestor){ 0 };
	return TAKE(r, "{\"pid\":") && read_u64(r, &a->pid) && TAKE(r, ",\"start\":") &&
	       read_u64(r, &a->start) && (!TAKE(r, ",\"comm\":") || read_string(r, &a->comm)) &&
	       (!TAKE(r, ",\"exe\":") || read_string(r, &a->exe)) && TAKE(r, "}");
}

static bool read_ancestors(struct own *r, union field_value *ret)
{
	struct event_ancestor *v = NULL;
	size_t n = 0, room = 0;
	bool bad = false;

	for (; next(r, n, &bad); n++) {
		v = grow(r, v, n, &room, sizeof(*v));
		if (n == ANCESTORS_MAX || !v || !read_ancestor(r, &v[n]))
			return false;
	}
	ret->ancestors.v = v;
	ret->ancestors.n = n;
	return !bad;
}

static bool read_answer(struct own *r, struct event_dns_answer *a)
{
	uint64_t ttl;

	if (!TAKE(r, "{\"name\":") || !read_string(r, &a->name) || !TAKE(r, ",\"type\":") ||
	    !read_string(r, &a->type) || !TAKE(r, ",\"ttl\":") || !read_u64(r, &ttl) ||
	    ttl > UINT32_MAX || !TAKE(r, ",\"data\":") || !read_string(r, &a->data))
		return false;
	a->ttl = (uint32_t)ttl;
	return TAKE(r, "}");
}

static bool read_answers(struct own *r, union field_value *ret)
{
	struct event_dns_answer *v = NULL;
	size_t n = 0, room = 0;
	bool bad = false;

	for (; next(r, n, &bad); n++) {
		v = grow(r, v, n, &room, sizeof(*v));
		if (n == ANSWERS_MAX || !v || !read_answer(r, &v[n]))
			return false;
	}
	ret->answers.v = v;
	ret->answers.n = n;
	return !bad;
}

static bool read_value(struct own *r, unsigned type, union field_value *ret)
{
	switch (type) {
	case FT_STR:
		return read_string(r, &ret->s);
	case FT_U64:
		return read_u64(r, &ret->u);
	case FT_I64:
		return read_i64(r, &ret->i);
	case FT_BOOL:
		return read_bool(r, &ret->u);
	case FT_TIME:
		return read_time(r, &ret->u);
	case FT_HEX:
		return read_hex(r, &ret->u);
	case FT_IP:
		return read_ip(r, &ret->ip);
	case FT_STRLIST:
		return read_list(r, ret);
	case FT_ANCESTORS:
		return read_ancestors(r, ret);
	case FT_ANSWERS:
		return read_answers(r, ret);
	}
	return false;
}

/* ---- members ---- */

/* At a key's opening quote; afterwards behind its colon. */
static inline const struct slot *read_key(struct own *r, unsigned group)
{
	char *key = r->p + 1, *end;
	uint64_t head = json_load8(key), quote = head ^ ONES * '"', hit;
	size_t n;

	hit = (quote - ONES) & ~quote & HIGH;
	if (*r->p != '"')
		return NULL;
	if (hit && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		n = (size_t)__builtin_ctzll(hit) / 8;
	else
		n = (size_t)((end = plain_end(key)) - key);
	if (n < 8 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		head &= (1ull << 8 * n) - 1;
	else
		head = load_head(key, n);
	if (!n || key[n] != '"' || key[n + 1] != ':')
		return NULL;
	r->p = key + n + 2;
	for (size_t i = slot_of(head, n, group); slots[i].n; i = (i + 1) % SLOTS)
		if (slots[i].head == head && slots[i].n == n && slots[i].group == group &&
		    (n <= 8 || !memcmp(slots[i].key + 8, key + 8, n - 8)))
			return &slots[i];
	return NULL;
}

/* Behind a value: "}" for each object that ends, then a comma, or nothing more. */
static bool leave(struct own *r, size_t *depth, bool *ret_end)
{
	while (*r->p == '}') {
		r->p++;
		if ((*depth)-- == 0) {
			*ret_end = true;
			return r->p == r->end;
		}
	}
	return *r->p++ == ',';
}

static bool read_members(struct own *r)
{
	unsigned group[NEST_MAX + 1] = { 0 };
	bool end = false;
	size_t depth = 0;

	if (*r->p++ != '{')
		return false;
	while (!end) {
		const struct slot *s = read_key(r, group[depth]);

		if (!s)
			return false;
		if (s->what < 0) {
			if (depth == NEST_MAX || *r->p++ != '{')
				return false;
			group[++depth] = (unsigned)~s->what;
			continue;
		}
		if (event_has(r->ev, (enum field_id)s->what) ||
		    !read_value(r, s->type, &r->ev->v[s->what]))
			return false;
		event_mark(r->ev, (enum field_id)s->what);
		if (!leave(r, &depth, &end))
			return false;
	}
	return true;
}

static bool check(struct event *ev)
{
	const struct kind_def *kind = event_has(ev, F_KIND) ? find_kind(ev->v[F_KIND].s) : NULL;

	if (!kind)
		return false;
	ev->kind = kind->id;
	event_set_strz(ev, F_KIND, kind->name);
	if (!event_has(ev, F_V))
		event_set_u64(ev, F_V, EVENT_SCHEMA_VERSION);
	return event_u64(ev, F_V) == EVENT_SCHEMA_VERSION;
}

bool event_from_own_json(struct event *ret, struct arena *arena, struct str json)
{
	struct own r = { .ev = ret, .arena = arena };
	size_t used = arena->used, total = arena->total;
	const struct arena_block *head = arena->head;

	pthread_once(&tables_once, fill_tables);
	if (!tables_fit || !json.n)
		return false;
	r.p = arena_alloc(arena, json.n + PAD);
	if (!r.p)
		return false;
	memcpy(r.p, json.p, json.n);
	memset(r.p + json.n, 0, PAD);
	r.end = r.p + json.n;
	event_init(ret, 0, arena);
	event_unset(ret, F_V);
	if (read_members(&r) && check(ret))
		return true;
	if (arena->head == head) { /* the slow reader gets the room back */
		arena->used = used;
		arena->total = total;
	}
	return false;
}
