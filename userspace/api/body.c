// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/body.h"

#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/json_read.h"

enum type {
	TEXT,	 /* const char * */
	DECIMAL, /* const char *: 1, 0.5 */
	NUMBER,	 /* struct api_number */
	BOOL,	 /* struct api_number */
	LIST,	 /* struct api_words */
	MAP,	 /* struct api_words */
	OBJECT,	 /* the rows of `inner` */
};

struct field {
	const char *name;
	enum type type;
	size_t at;
	const struct field *inner;
};

/* ---- the bodies ---- */

static const struct field NETWORK[] = {
	{ "mode", TEXT, offsetof(struct api_create, net_mode), NULL },
	{ "allowOut", LIST, offsetof(struct api_create, net_allow), NULL },
	{ 0 },
};

static const struct field CREATE[] = {
	{ "name", TEXT, offsetof(struct api_create, name), NULL },
	{ "policy", TEXT, offsetof(struct api_create, policy), NULL },
	{ "tenant", TEXT, offsetof(struct api_create, tenant), NULL },
	{ "workspace", TEXT, offsetof(struct api_create, workspace), NULL },
	{ "snapshot", TEXT, offsetof(struct api_create, snapshot), NULL },
	{ "cwd", TEXT, offsetof(struct api_create, cwd), NULL },
	{ "command", LIST, offsetof(struct api_create, command), NULL },
	{ "timeout", NUMBER, offsetof(struct api_create, timeout), NULL },
	{ "idleTimeout", NUMBER, offsetof(struct api_create, idle_timeout), NULL },
	{ "memoryMB", NUMBER, offsetof(struct api_create, memory_mb), NULL },
	{ "diskMB", NUMBER, offsetof(struct api_create, disk_mb), NULL },
	{ "pids", NUMBER, offsetof(struct api_create, pids), NULL },
	{ "cpus", DECIMAL, offsetof(struct api_create, cpus), NULL },
	{ "metadata", MAP, offsetof(struct api_create, metadata), NULL },
	{ "envs", MAP, offsetof(struct api_create, envs), NULL },
	{ "allowInternetAccess", BOOL, offsetof(struct api_create, internet), NULL },
	{ "network", OBJECT, 0, NETWORK },
	{ 0 },
};

static const struct field SNAPSHOT[] = {
	{ "name", TEXT, offsetof(struct api_snapshot, name), NULL },
	{ 0 },
};

static const struct field COMMAND[] = {
	{ "cmd", TEXT, offsetof(struct api_command, cmd), NULL },
	{ "args", LIST, offsetof(struct api_command, args), NULL },
	{ "cwd", TEXT, offsetof(struct api_command, cwd), NULL },
	{ "stdin", TEXT, offsetof(struct api_command, stdin_text), NULL },
	{ "encoding", TEXT, offsetof(struct api_command, encoding), NULL },
	{ "envs", MAP, offsetof(struct api_command, envs), NULL },
	{ "timeout", NUMBER, offsetof(struct api_command, timeout), NULL },
	{ "maxOutput", NUMBER, offsetof(struct api_command, max_output), NULL },
	{ "background", BOOL, offsetof(struct api_command, background), NULL },
	{ 0 },
};

/* ---- values ---- */

struct reader {
	struct json_reader json;
	const char *where; /* the member at hand */
};

static bool read_text(struct json_reader *r, const char **ret)
{
	struct str s, copy;

	if (json_peek(r) != '"')
		return json_problem(r, "expected a string");
	if (!json_read_string(r, &s))
		return false;
	if (memchr(s.p, 0, s.n))
		return json_problem(r, "NUL in a string");
	copy = arena_strndup(r->arena, s.p, s.n);
	*ret = copy.p;
	return copy.p || json_problem(r, "too much");
}

/* A number with an optional fraction, kept as text: the option that it becomes has its own rules. */
static bool read_decimal(struct json_reader *r, const char **ret)
{
	const char *start;
	struct str copy;
	bool digits = false;

	json_peek(r);
	start = r->p;
	for (; (*r->p >= '0' && *r->p <= '9') || (digits && *r->p == '.'); r->p++)
		digits = true;
	if (!digits || r->p - start > 20)
		return json_problem(r, "expected a number like 0.5");
	copy = arena_strndup(r->arena, start, (size_t)(r->p - start));
	*ret = copy.p;
	return copy.p || json_problem(r, "too much");
}

static bool add_word(struct json_reader *r, struct api_words *w, const char *z)
{
	if (w->n == API_WORDS_MAX)
		return json_problem(r, "too many of them");
	w->v[w->n++] = z;
	w->v[w->n] = NULL;
	return true;
}

static bool read_pair(struct json_reader *r, struct api_words *w)
{
	const char *key, *value;
	struct str kv;

	if (!read_text(r, &key) || !json_expect(r, ':', "expected ':'") || !read_text(r, &value))
		return false;
	if (!*key || strchr(key, '='))
		return json_problem(r, "a name that is empty or has a '='");
	kv = arena_printf(r->arena, "%s=%s", key, value);
	if (!kv.p)
		return json_problem(r, "too much");
	for (size_t i = 0; i < w->n; i++)
		if (!strncmp(w->v[i], kv.p, strlen(key) + 1))
			return json_problem(r, "a name that is given twice");
	return add_word(r, w, kv.p);
}

static bool read_words(struct json_reader *r, struct api_words *w, bool map)
{
	const char *z;

	w->v = arena_zalloc(r->arena, (API_WORDS_MAX + 1) * sizeof(*w->v));
	if (!w->v)
		return json_problem(r, "too much");
	w->given = true;
	if (!json_expect(r, map ? '{' : '[', map ? "expected an object" : "expected a list"))
		return false;
	while (!json_take(r, map ? '}' : ']')) {
		if (w->n && !json_expect(r, ',', "expected ',' or its end"))
			return false;
		if (map ? !read_pair(r, w) : (!read_text(r, &z) || !add_word(r, w, z)))
			return false;
	}
	return true;
}

static bool read_object(struct reader *r, const struct field *fields, void *ret);

static bool read_value(struct reader *r, const struct field *f, void *ret)
{
	void *at = (char *)ret + f->at;
	struct api_number *n = at;
	bool flag = false;

	switch (f->type) {
	case TEXT:
		return read_text(&r->json, at);
	case DECIMAL:
		return read_decimal(&r->json, at);
	case NUMBER:
		json_peek(&r->json);
		n->given = json_read_u64(&r->json, &n->v);
		return n->given;
	case BOOL:
		n->given = json_read_bool(&r->json, &flag);
		n->v = flag;
		return n->given;
	case LIST:
	case MAP:
		return read_words(&r->json, at, f->type == MAP);
	case OBJECT:
		return read_object(r, f->inner, ret);
	}
	return false;
}

static bool read_member(struct reader *r, const struct field *fields, void *ret, uint32_t *seen)
{
	struct str key;

	if (json_peek(&r->json) != '"')
		return json_problem(&r->json, "expected the name of a member");
	if (!json_read_string(&r->json, &key))
		return false;
	for (int i = 0; fields[i].name; i++) {
		if (!str_eqz(key, fields[i].name))
			continue;
		r->where = fields[i].name;
		if (*seen & 1u << i)
			return json_problem(&r->json, "it is given twice");
		*seen |= 1u << i;
		return json_expect(&r->json, ':', "expected ':'") &&
		       read_value(r, &fields[i], ret) && (r->where = NULL, true);
	}
	r->where = arena_strndup(r->json.arena, key.p, MIN(key.n, (size_t)64)).p;
	return json_problem(&r->json, "unknown member");
}

static bool read_object(struct reader *r, const struct field *fields, void *ret)
{
	uint32_t seen = 0;

	if (!json_expect(&r->json, '{', "expected an object"))
		return false;
	if (json_take(&r->json, '}'))
		return true;
	do {
		if (!read_member(r, fields, ret, &seen))
			return false;
	} while (json_take(&r->json, ','));
	return json_expect(&r->json, '}', "expected ',' or '}'");
}

static int parse(const struct field *fields, void *ret, struct arena *arena, struct str text,
		 struct err *err)
{
	struct reader r = { 0 };
	bool good;

	if (text.n > API_BODY_MAX)
		return err_set(err, EMSGSIZE, "body: more than %d bytes", API_BODY_MAX);
	if (json_reader_init(&r.json, arena, text) < 0)
		return err_set(err, ENOMEM, "body: %m");
	good = read_object(&r, fields, ret) &&
	       (!json_peek(&r.json) || json_problem(&r.json, "text behind it")) &&
	       r.json.p == r.json.end;
	if (good)
		return 0;
	return err_set(err, EBADMSG, "body: %s%s%s%s", r.where ? "'" : "", r.where ? r.where : "",
		       r.where ? "': " : "", r.json.problem ? r.json.problem : "malformed");
}

int api_create_parse(struct api_create *ret, struct arena *arena, struct str text, struct err *err)
{
	struct api_create c = { 0 };
	int r = text.n ? parse(CREATE, &c, arena, text, err) : 0; /* all of it is optional */

	if (r == 0 && c.internet.given && (c.net_mode || c.net_allow.given))
		r = err_set(err, EBADMSG, "body: 'allowInternetAccess' and 'network' contradict");
	if (r == 0)
		*ret = c;
	return r;
}

int api_snapshot_parse(struct api_snapshot *ret, struct arena *arena, struct str text,
		       struct err *err)
{
	struct api_snapshot c = { 0 };
	int r = parse(SNAPSHOT, &c, arena, text, err);

	if (r == 0 && !c.name)
		r = err_set(err, EBADMSG, "body: 'name' is needed");
	if (r == 0)
		*ret = c;
	return r;
}

int api_command_parse(struct api_command *ret, struct arena *arena, struct str text,
		      struct err *err)
{
	struct api_command c = { 0 };
	int r = parse(COMMAND, &c, arena, text, err);

	if (r == 0 && !c.cmd == !c.args.n)
		r = err_set(err, EBADMSG, "body: one of 'cmd' and 'args' is needed");
	if (r == 0 && c.encoding && strcmp(c.encoding, "utf-8") && strcmp(c.encoding, "base64"))
		r = err_set(err, EBADMSG, "body: 'encoding': expected utf-8 or base64");
	if (r == 0)
		*ret = c;
	return r;
}
