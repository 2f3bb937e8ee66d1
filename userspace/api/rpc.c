// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/rpc.h"

#include <string.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/event/json_read.h"

/* ---- is it JSON ---- */

struct check {
	const char *p, *end;
	char open[RPC_DEPTH_MAX]; /* the brackets that are to be closed */
	int depth;
};

static char peek(struct check *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
	return c->p < c->end ? *c->p : 0;
}

static bool digits(struct check *c)
{
	const char *from = c->p;

	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	return c->p > from;
}

static bool number(struct check *c)
{
	if (c->p < c->end && *c->p == '-')
		c->p++;
	if (c->p < c->end && *c->p == '0')
		c->p++;
	else if (!digits(c))
		return false;
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		if (!digits(c))
			return false;
	}
	if (c->p < c->end && (*c->p | 0x20) == 'e') {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		return digits(c);
	}
	return true;
}

static bool string(struct check *c)
{
	for (c->p++; c->p < c->end && *c->p != '"'; c->p++) {
		if ((unsigned char)*c->p < 0x20)
			return false;
		if (*c->p != '\\')
			continue;
		if (++c->p == c->end || !*c->p || !strchr("\"\\/bfnrtu", *c->p))
			return false;
		for (int i = 0; *c->p == 'u' && i < 4; i++)
			if (c->end - c->p < 6 - i ||
			    !strchr("0123456789abcdefABCDEF", c->p[1 + i]) || !c->p[1 + i])
				return false;
	}
	return c->p++ < c->end;
}

static bool word(struct check *c, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, w, n))
		return false;
	c->p += n;
	return true;
}

static bool scalar(struct check *c)
{
	switch (*c->p) {
	case '"':
		return string(c);
	case 't':
		return word(c, "true");
	case 'f':
		return word(c, "false");
	case 'n':
		return word(c, "null");
	default:
		return number(c);
	}
}

static bool key(struct check *c)
{
	if (peek(c) != '"' || !string(c) || peek(c) != ':')
		return false;
	c->p++;
	return true;
}

/* Behind a value: brackets that end, and a comma. False: it is malformed. *ret_over: that was all. */
static bool behind(struct check *c, bool *ret_over)
{
	for (;;) {
		char b = peek(c);

		if (!c->depth) {
			*ret_over = true;
			return c->p == c->end;
		}
		if (c->p == c->end)
			return false;
		c->p++;
		if (b == ',')
			return c->open[c->depth - 1] != '}' || key(c);
		if (b != c->open[--c->depth])
			return false;
	}
}

bool rpc_is_json(struct str text)
{
	struct check c = { .p = text.p, .end = text.p + text.n };
	bool over = false;

	if (!utf8_is_valid(text))
		return false;
	while (!over) {
		char b = peek(&c);

		if (c.p == c.end)
			return false;
		if (b != '{' && b != '[') {
			if (!scalar(&c) || !behind(&c, &over))
				return false;
			continue;
		}
		if (c.depth == RPC_DEPTH_MAX)
			return false;
		c.open[c.depth++] = b == '{' ? '}' : ']';
		c.p++;
		if (peek(&c) == c.open[c.depth - 1]) {
			if (!behind(&c, &over))
				return false;
		} else if (b == '{' && !key(&c)) {
			return false;
		}
	}
	return true;
}

/* ---- what is in it ---- */

bool rpc_member(struct str object, const char *name, struct str *ret)
{
	struct scan s = scan_of(object);
	struct str k, v;

	while (scan_member(&s, &k, &v))
		if (str_eqz(k, name)) {
			while (v.n && strchr(" \t\r\n", v.p[v.n - 1]))
				v.n--;
			*ret = v;
			return true;
		}
	return false;
}

int rpc_text(struct str object, const char *name, struct arena *arena, const char **ret,
	     struct err *err)
{
	struct json_reader r;
	struct str v, s;

	if (!rpc_member(object, name, &v))
		return 0;
	if (json_reader_init(&r, arena, v) < 0)
		return err_set(err, ENOMEM, "'%s': too much", name);
	if (*r.p != '"' || !json_read_string(&r, &s) || memchr(s.p, 0, s.n))
		return err_set(err, EINVAL, "'%s': expected a string%s", name,
			       *v.p == '"' ? " without NUL" : "");
	*ret = s.p;
	return 1;
}

/* An id: a text or a whole number (MCP: never null). */
static bool is_id(struct str v)
{
	struct check c = { .p = v.p, .end = v.p + v.n };

	if (!v.n || v.n > RPC_ID_MAX)
		return false;
	if (*v.p == '"')
		return true;
	if (*c.p == '-')
		c.p++;
	return digits(&c) && c.p == c.end;
}

int rpc_parse(struct rpc_message *ret, struct arena *arena, struct str text, struct err *err)
{
	const char *version = NULL;
	struct str v;
	int r;

	*ret = (struct rpc_message){ 0 };
	if (!rpc_is_json(text))
		return err_set(err, EBADMSG, "not JSON, or deeper than %d", RPC_DEPTH_MAX);
	while (text.n && strchr(" \t\r\n", *text.p)) {
		text.p++;
		text.n--;
	}
	if (*text.p != '{')
		return err_set(err, EINVAL, "not an object");
	if (rpc_member(text, "id", &v)) {
		if (!is_id(v))
			return err_set(err, EINVAL, "'id': expected a string or a whole number");
		ret->id = v;
	}
	if (rpc_text(text, "jsonrpc", arena, &version, err) < 1 || strcmp(version, "2.0"))
		return err_set(err, EINVAL, "'jsonrpc': expected \"2.0\"");
	r = rpc_text(text, "method", arena, &ret->method, err);
	if (r < 0)
		return r;
	if (rpc_member(text, "params", &ret->params) && *ret->params.p != '{')
		return err_set(err, EINVAL, "'params': expected an object");
	if (!r && !rpc_member(text, "result", &v) && !rpc_member(text, "error", &v))
		return err_set(err, EINVAL, "'method' is missing");
	return 0;
}

int rpc_arguments_parse(struct rpc_arguments *ret, struct arena *arena, struct str object,
			struct err *err)
{
	const struct {
		const char *name;
		const char **at;
	} texts[] = { { "command", &ret->command },
		      { "code", &ret->code },
		      { "path", &ret->path },
		      { "content", &ret->content },
		      { "cwd", &ret->cwd } };
	struct scan s = scan_of(object);
	struct json_reader r;
	struct str k, v;

	*ret = (struct rpc_arguments){ 0 };
	while (object.n && scan_member(&s, &k, &v)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(texts) && !str_eqz(k, texts[i].name))
			i++;
		if (i == ARRAY_SIZE(texts) && !str_eqz(k, "timeout"))
			return err_set(err, EINVAL, "unknown argument '%.*s'",
				       (int)MIN(k.n, (size_t)64), k.p);
	}
	for (size_t i = 0; object.n && i < ARRAY_SIZE(texts); i++)
		if (rpc_text(object, texts[i].name, arena, texts[i].at, err) < 0)
			return -EINVAL;
	if (object.n && rpc_member(object, "timeout", &v) &&
	    (json_reader_init(&r, arena, v) < 0 || !json_read_u64(&r, &ret->timeout) ||
	     r.p != r.end || !ret->timeout || ret->timeout > 86400))
		return err_set(err, EINVAL, "'timeout': expected seconds, 1 to 86400");
	return 0;
}
