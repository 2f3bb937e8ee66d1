// SPDX-License-Identifier: Apache-2.0
/* Sandboxes as a whole: made, shown, stopped, let go on, ended. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporters/scan.h"
#include "userspace/api/body.h"
#include "userspace/api/route.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/option.h"

#define TIMEOUT_DEFAULT 300 /* s */
#define TIMEOUT_MAX	(366 * 86400)
#define OPTIONS_MAX	(64 + 2 * API_WORDS_MAX)
#define FILTERS_MAX	16
#define START_TEXT_MAX	1024

/* ---- a row of the agent's -> the object that clients get ---- */

static void copy(struct json *j, const char *to, struct str row, const char *from)
{
	struct str v;

	json_key(j, to);
	if (scan_find(row, from, &v))
		json_raw(j, v);
	else
		json_null(j);
}

static const char *state_of(struct str row, char *ret, size_t size)
{
	scan_text(row, "state", ret, size);
	return strcmp(ret, "frozen") ? ret : "paused";
}

static uint64_t number_of(struct str row, const char *key)
{
	struct str v;
	uint64_t n = 0;

	return scan_find(row, key, &v) && scan_u64(v, &n) ? n : 0;
}

static void put_number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

/* When its time to live is over; as it was made, to the millisecond. */
static void put_end(struct json *j, struct str row)
{
	uint64_t ttl = number_of(row, "ttl_ms"), created;
	char text[64], end[RFC3339_NS_LEN + 1];
	struct tm tm = { 0 };
	const char *rest;

	json_key(j, "endAt");
	rest = strptime(scan_text(row, "created", text, sizeof(text)), "%Y-%m-%dT%H:%M:%S", &tm);
	if (!ttl || !rest) {
		json_null(j);
		return;
	}
	created = (uint64_t)timegm(&tm) * 1000 +
		  (*rest == '.' ? strtoul(rest + 1, NULL, 10) / 1000000 : 0);
	rfc3339_ns(end, (created + ttl) * NSEC_PER_MSEC);
	json_strz(j, end);
}

static void put_sandbox(struct json *j, struct str row)
{
	struct str metadata = STR("{}");
	char state[16];

	scan_find(row, "metadata", &metadata);
	json_object_begin(j);
	copy(j, "sandboxID", row, "session");
	copy(j, "name", row, "name");
	copy(j, "tenant", row, "tenant");
	json_key(j, "state");
	json_strz(j, state_of(row, state, sizeof(state)));
	copy(j, "startedAt", row, "created");
	put_end(j, row);
	json_key(j, "metadata");
	json_raw(j, metadata);
	json_key(j, "cpus");
	if (!number_of(row, "cpu_milli")) {
		json_null(j);
	} else {
		json_raw(j, (struct str){ 0 });
		buf_printf(j->out, "%" PRIu64 ".%03" PRIu64, number_of(row, "cpu_milli") / 1000,
			   number_of(row, "cpu_milli") % 1000);
	}
	put_number(j, "memoryMB", number_of(row, "memory") >> 20);
	put_number(j, "diskMB", number_of(row, "disk") >> 20);
	put_number(j, "pids", number_of(row, "pids"));
	copy(j, "workspace", row, "workspace");
	json_object_end(j);
}

/* ---- list and get ---- */

struct filters {
	const char *state; /* a list with commas; NULL = any */
	const char *pair[FILTERS_MAX][2];
	size_t n;
};

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, word, n) && (!p[n] || p[n] == ','))
			return true;
	return false;
}

/* Is it `text`, as JSON writes it? */
static bool is_text(struct str value, const char *text)
{
	auto_buf struct buf b = { 0 };
	struct json j;

	json_init(&j, &b);
	json_strz(&j, text);
	return !b.failed && str_eq((struct str){ b.p, b.n }, value);
}

static bool is_wanted(struct str row, const struct filters *f)
{
	struct str metadata = STR("{}"), key, value;
	size_t hits = 0;
	struct scan s;
	char state[16];

	if (f->state && !has_word(f->state, state_of(row, state, sizeof(state))))
		return false;
	scan_find(row, "metadata", &metadata);
	s = scan_of(metadata);
	while (scan_member(&s, &key, &value)) {
		/* Keys come without their quotes, still escaped. */
		for (size_t i = 0; i < f->n; i++) {
			auto_buf struct buf quoted = { 0 };

			buf_printf(&quoted, "\"%.*s\"", (int)key.n, key.p);
			hits += is_text((struct str){ quoted.p, quoted.n }, f->pair[i][0]) &&
				is_text(value, f->pair[i][1]);
		}
	}
	return hits == f->n;
}

/* *ret_n = rows that were put. */
static int take_rows(struct call *c, struct json *j, const struct filters *f, size_t *ret_n)
{
	ssize_t n;
	size_t rows = 0;

	while ((n = call_next(c, 0)) > 0) {
		struct str row;

		if (!scan_find(call_packet(c, (size_t)n), "line", &row)) {
			*ret_n = rows;
			return 0; /* {"exit":0} */
		}
		if (f && !is_wanted(row, f))
			continue;
		put_sandbox(j, row);
		rows++;
	}
	return -1;
}

int answer_list(struct call *c)
{
	static const char *const states[] = { "starting", "running", "paused", "held" };
	const char *metadata = api_target_query(&c->target, "metadata");
	struct filters f = { .state = api_target_query(&c->target, "state") };
	struct err err = { 0 };
	struct json j;
	size_t n = 0;

	for (const char *p = f.state; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		size_t len = strcspn(p, ","), i = 0;

		while (i < ARRAY_SIZE(states) &&
		       (strlen(states[i]) != len || strncmp(states[i], p, len)))
			i++;
		if (i == ARRAY_SIZE(states))
			return call_fail(c, 400, "query 'state': '%.*s' is not a state",
					 (int)MIN(len, (size_t)80), p);
	}
	if (metadata &&
	    api_pairs_parse(f.pair, FILTERS_MAX, &f.n, &c->arena, str_from(metadata), &err) < 0)
		return call_fail(c, 400, "query 'metadata': %s", err_text(&err));
	if (call_ask(c, &(struct agent_request){ .op = AGENT_PS }) < 0)
		return -1;
	call_json(c, 200, &j);
	json_array_begin(&j);
	if (take_rows(c, &j, &f, &n) < 0)
		return -1;
	json_array_end(&j);
	return 0;
}

static int show(struct call *c, const char *box, unsigned status)
{
	const struct agent_request q = { .op = AGENT_PS, .sandbox = box };
	struct json j;
	size_t n = 0;

	if (call_ask(c, &q) < 0)
		return -1;
	call_json(c, status, &j);
	if (take_rows(c, &j, NULL, &n) < 0)
		return -1;
	return n == 1 ? 0 : call_fail(c, 404, "no running sandbox has the name or id '%.80s'", box);
}

int answer_get(struct call *c)
{
	return show(c, c->sandbox, 200);
}

/* ---- create ---- */

struct options {
	struct arena *arena;
	const char **v;
	size_t n;
	bool failed;
};

static void put(struct options *o, const char *name, const char *value)
{
	if (!value)
		return;
	if (o->n + 2 > OPTIONS_MAX) {
		o->failed = true;
		return;
	}
	o->v[o->n++] = name;
	o->v[o->n++] = value;
}

static void put_count(struct options *o, const char *name, const struct api_number *v,
		      const char *unit)
{
	const char *text;

	if (!v->given)
		return;
	text = arena_printf(o->arena, "%" PRIu64 "%s", v->v, unit).p;
	put(o, name, text);
	o->failed |= !text;
}

/* "allowOut" by itself is mode allow, as a list of what is allowed is nothing else. */
static void put_network(struct options *o, const struct api_create *b)
{
	const char *mode = b->net_mode ? b->net_mode : b->net_allow.given ? "allow" : NULL;

	if (b->internet.given)
		mode = b->internet.v ? "open" : "none";
	put(o, "--net", mode);
	for (size_t i = 0; i < b->net_allow.n; i++)
		put(o, "--net-allow", b->net_allow.v[i]);
}

static int make_options(struct options *o, const struct api_create *b)
{
	struct api_number timeout = b->timeout;

	if (!timeout.given && !b->policy) /* which may have a time of its own */
		timeout = (struct api_number){ TIMEOUT_DEFAULT, true };
	put(o, "--policy", b->policy);
	put(o, "--name", b->name);
	put(o, "--tenant", b->tenant);
	put(o, "--workspace",
	    b->workspace ? arena_printf(o->arena, "name:%s", b->workspace).p : NULL);
	put(o, "--from", b->snapshot);
	put(o, "--cwd", b->cwd);
	put(o, "--cpus", b->cpus);
	put_count(o, "--ttl", &timeout, "s");
	put_count(o, "--idle", &b->idle_timeout, "s");
	put_count(o, "--memory", &b->memory_mb, "M");
	put_count(o, "--disk", &b->disk_mb, "M");
	put_count(o, "--pids", &b->pids, "");
	put_network(o, b);
	for (size_t i = 0; i < b->envs.n; i++)
		put(o, "--env", b->envs.v[i]);
	put(o, "--quiet", "--");
	for (size_t i = 0; i < b->command.n && o->n < OPTIONS_MAX; i++)
		o->v[o->n++] = b->command.v[i];
	if (!b->command.n)
		o->n--;
	return o->failed ? -E2BIG : 0;
}

/* It runs, or why it does not: what its keeper says is told. */
static int await_start(struct call *c, char id[64])
{
	char text[START_TEXT_MAX] = "", code[16];
	size_t used = 0;
	ssize_t n;

	*id = 0;
	while ((n = upstream_next(&c->up, 0)) > 0) {
		struct str p = call_packet(c, (size_t)n), v;

		if (call_is_data(c, 'e') || call_is_data(c, 'o')) {
			size_t len = MIN((size_t)n - 1, sizeof(text) - 1 - used);

			memcpy(text + used, c->up.packet + 1, len);
			text[used += len] = 0;
			continue;
		}
		if (scan_find(p, "error", &v)) {
			/* The policy that is not there is a mistake in the body. */
			scan_text(p, "errno", code, sizeof(code));
			call_fail_packet(c, p);
			return strcmp(code, "ENOENT")
				       ? -1
				       : call_fail(c, 400, "%.*s", (int)v.n - 2, v.p + 1);
		}
		if (scan_find(p, "session", &v))
			scan_text(p, "session", id, 64);
		if (scan_find(p, "started", &v) && *id)
			return 0;
		if (scan_find(p, "exit", &v))
			break;
	}
	if (n < 0)
		return call_fail_errno(c, (int)n, "the agent");
	text[strcspn(text, "\n")] = 0;
	return call_fail(c, 422, "%s", *text ? text : "the sandbox did not start");
}

int answer_create(struct call *c)
{
	struct options o = { .arena = &c->arena };
	struct api_create body;
	struct agent_request q = { .op = AGENT_CREATE };
	struct err err = { 0 };
	char id[64];

	if (api_create_parse(&body, &c->arena, (struct str){ c->body.p, c->body.n }, &err) < 0)
		return call_fail(c, 400, "%s", err_text(&err));
	if (body.timeout.v > TIMEOUT_MAX || body.idle_timeout.v > TIMEOUT_MAX)
		return call_fail(c, 400, "body: 'timeout': more than %d seconds", TIMEOUT_MAX);
	o.v = arena_zalloc(&c->arena, (OPTIONS_MAX + 1) * sizeof(*o.v));
	if (!o.v || make_options(&o, &body) < 0)
		return call_fail(c, 400, "body: too many words");
	q.argv = o.v;
	q.argc = o.n;
	q.metadata = body.metadata.v;
	q.metadata_n = body.metadata.n;
	if (call_ask(c, &q) < 0 || await_start(c, id) < 0)
		return -1;
	return show(c, arena_strndup(&c->arena, id, strlen(id)).p, 201);
}

/* ---- those that answer with nothing ---- */

static int order(struct call *c, enum agent_op op)
{
	const struct agent_request q = { .op = op, .sandbox = c->sandbox };

	if (call_ask(c, &q) < 0 || call_next(c, 0) < 0)
		return -1;
	c->status = 204;
	return 0;
}

int answer_remove(struct call *c)
{
	return order(c, AGENT_RM);
}

int answer_pause(struct call *c)
{
	return order(c, AGENT_PAUSE);
}

int answer_resume(struct call *c)
{
	return order(c, AGENT_RESUME);
}
