// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/toml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/buf.h"

struct toml {
	const char *name;
	struct str in;
	size_t at;
	unsigned line;
	toml_fn fn;
	void *arg;
	struct err *err;
	char path[TOML_PATH_MAX];
	size_t path_n, table_n; /* of it, the table's */
	struct buf text;	/* of the string that was read last */
	int depth;
};

static int bad(struct toml *t, const char *what)
{
	return err_set(t->err, EINVAL, "%s:%u: %s", t->name, t->line, what);
}

/* The byte `ahead` of where we are; -1: the end. */
static int peek(const struct toml *t, size_t ahead)
{
	return t->at + ahead < t->in.n ? (unsigned char)t->in.p[t->at + ahead] : -1;
}

static bool take(struct toml *t, const char *z)
{
	size_t n = strlen(z);

	if (t->in.n - t->at < n || memcmp(t->in.p + t->at, z, n) != 0)
		return false;
	t->at += n;
	return true;
}

static void blanks(struct toml *t)
{
	while (peek(t, 0) == ' ' || peek(t, 0) == '\t')
		t->at++;
}

/* Blanks and a comment, up to the line's end. */
static void to_line_end(struct toml *t)
{
	blanks(t);
	if (peek(t, 0) == '#')
		while (peek(t, 0) >= 0 && peek(t, 0) != '\n')
			t->at++;
	if (peek(t, 0) == '\r' && peek(t, 1) == '\n')
		t->at++;
}

static bool line_end(struct toml *t)
{
	to_line_end(t);
	if (peek(t, 0) < 0)
		return true;
	if (peek(t, 0) != '\n')
		return false;
	t->at++;
	t->line++;
	return true;
}

static void empty_lines(struct toml *t)
{
	do {
		to_line_end(t);
	} while (peek(t, 0) == '\n' && line_end(t));
}

/* ---- strings ---- */

static int add_code(struct toml *t, int digits)
{
	unsigned long v = 0;
	char c[4];

	for (int i = 0; i < digits; i++) {
		int d = peek(t, 0);

		if (d >= '0' && d <= '9')
			d -= '0';
		else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
			d = (d | 0x20) - 'a' + 10;
		else
			return bad(t, "an escape wants more hex digits");
		v = v << 4 | (unsigned)d;
		t->at++;
	}
	if (v > 0x10ffff || (v >= 0xd800 && v < 0xe000))
		return bad(t, "an escape is no Unicode character");
	if (v < 0x80)
		return buf_addc(&t->text, (char)v);
	c[0] = (char)(v < 0x800 ? 0xc0 | v >> 6 : v < 0x10000 ? 0xe0 | v >> 12 : 0xf0 | v >> 18);
	c[1] = (char)(0x80 | (v >> (v < 0x800 ? 0 : v < 0x10000 ? 6 : 12) & 0x3f));
	c[2] = (char)(0x80 | (v >> (v < 0x10000 ? 0 : 6) & 0x3f));
	c[3] = (char)(0x80 | (v & 0x3f));
	return buf_add(&t->text, c, v < 0x800 ? 2 : v < 0x10000 ? 3 : 4);
}

/* A line that ends in a backslash goes on with the next that is not empty. */
static bool goes_on(struct toml *t)
{
	size_t at = t->at;

	while (at < t->in.n && strchr(" \t\r", t->in.p[at]) && t->in.p[at])
		at++;
	if (at == t->in.n || t->in.p[at] != '\n')
		return false;
	while (at < t->in.n && strchr(" \t\r\n", t->in.p[at]) && t->in.p[at])
		t->line += t->in.p[at++] == '\n';
	t->at = at;
	return true;
}

static int escape(struct toml *t, bool lines)
{
	static const char names[] = "btnfre\"\\", values[] = "\b\t\n\f\r\x1b\"\\";
	const char *at;
	int c = peek(t, 0);

	if (lines && goes_on(t))
		return 0;
	t->at++;
	if (c == 'u' || c == 'U' || c == 'x')
		return add_code(t, c == 'U' ? 8 : c == 'u' ? 4 : 2);
	at = c > 0 ? strchr(names, c) : NULL;
	return at ? buf_addc(&t->text, values[at - names]) : bad(t, "an escape that TOML has not");
}

/* Does the string end here? Its last quotes may be of its text: up to two before the three. */
static int string_end(struct toml *t, int quote, bool lines)
{
	int r = 0;

	if (!lines) {
		t->at++;
		return 1;
	}
	if (peek(t, 1) != quote || peek(t, 2) != quote) {
		t->at++;
		return buf_addc(&t->text, (char)quote);
	}
	t->at += 3;
	for (int i = 0; i < 2 && r == 0 && peek(t, 0) == quote; i++, t->at++)
		r = buf_addc(&t->text, (char)quote);
	return r < 0 ? r : 1;
}

/* Any of the four kinds, into t->text; at its quote. */
static int string(struct toml *t)
{
	int quote = peek(t, 0), r = 0;
	bool lines = peek(t, 1) == quote && peek(t, 2) == quote;

	buf_reset(&t->text);
	t->at += lines ? 3 : 1;
	if (lines && peek(t, 0) == '\r' && peek(t, 1) == '\n')
		t->at++;
	if (lines && peek(t, 0) == '\n') {
		t->at++;
		t->line++;
	}
	while (r == 0) {
		int c = peek(t, 0);

		if (c < 0 || (c == '\n' && !lines))
			return bad(t, "a string without an end");
		if (c == quote) {
			r = string_end(t, quote, lines);
		} else if (c == '\\' && quote == '"') {
			t->at++;
			r = escape(t, lines);
		} else {
			t->line += c == '\n';
			t->at++;
			r = buf_addc(&t->text, (char)c);
		}
	}
	return r < 0 ? r : 0;
}

/* ---- names ---- */

static bool is_bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int add_name(struct toml *t, struct str name)
{
	size_t dot = t->path_n ? 1 : 0;

	if (t->path_n + dot + name.n > sizeof(t->path))
		return err_set(t->err, E2BIG, "%s:%u: a name longer than %d bytes", t->name,
			       t->line, TOML_PATH_MAX);
	if (dot)
		t->path[t->path_n++] = '.';
	if (name.n)
		memcpy(t->path + t->path_n, name.p, name.n);
	t->path_n += name.n;
	return 0;
}

/* Behind what t->path has. */
static int names(struct toml *t)
{
	int r;

	do {
		size_t from;

		blanks(t);
		from = t->at;
		if (peek(t, 0) == '"' || peek(t, 0) == '\'') {
			r = string(t);
			if (r == 0)
				r = add_name(t, (struct str){ t->text.p, t->text.n });
		} else {
			while (is_bare(peek(t, 0)))
				t->at++;
			r = t->at == from
				    ? bad(t, "a name is wanted")
				    : add_name(t, (struct str){ t->in.p + from, t->at - from });
		}
		if (r < 0)
			return r;
		blanks(t);
	} while (take(t, "."));
	return 0;
}

/* ---- values ---- */

static int tell(struct toml *t, struct toml_item item)
{
	item.path = (struct str){ t->path, t->path_n };
	item.line = t->line;
	return t->fn(t->arg, &item, t->err);
}

static int value(struct toml *t, bool in_list);

static int array(struct toml *t)
{
	int r = 0;

	t->at++;
	for (;;) {
		empty_lines(t);
		if (take(t, "]"))
			return 0;
		r = value(t, true);
		if (r < 0)
			return r;
		empty_lines(t);
		if (!take(t, ",") && peek(t, 0) != ']')
			return bad(t, "',' or ']' is wanted");
	}
}

static int key_and_value(struct toml *t)
{
	size_t was = t->path_n;
	int r = names(t);

	if (r == 0 && !take(t, "="))
		r = bad(t, "'=' is wanted");
	if (r == 0) {
		blanks(t);
		r = value(t, false);
	}
	t->path_n = was;
	return r;
}

static int inline_table(struct toml *t, bool in_list)
{
	int r = tell(t, (struct toml_item){ .type = TOML_TABLE, .in_list = in_list });

	t->at++;
	empty_lines(t);
	if (r == 0 && take(t, "}"))
		return 0;
	while (r == 0) {
		r = key_and_value(t);
		if (r != 0)
			break;
		empty_lines(t);
		if (take(t, "}"))
			return 0;
		if (!take(t, ","))
			return bad(t, "',' or '}' is wanted");
		empty_lines(t);
	}
	return r;
}

/* true, a number, a date: all that is no text. */
static int plain(struct toml *t, bool in_list)
{
	struct toml_item item = { .type = TOML_OTHER, .in_list = in_list };
	char number[64], *end;
	size_t from = t->at, n = 0;

	while (is_bare(peek(t, 0)) || (peek(t, 0) > 0 && strchr("+.:", peek(t, 0))))
		t->at++;
	item.text = (struct str){ t->in.p + from, t->at - from };
	if (!item.text.n)
		return bad(t, "a value is wanted");
	for (size_t i = 0; i < item.text.n && n + 1 < sizeof(number); i++)
		if (item.text.p[i] != '_')
			number[n++] = item.text.p[i];
	number[n] = 0;
	item.number = strtod(number, &end);
	if (str_eqz(item.text, "true") || str_eqz(item.text, "false"))
		item.type = TOML_BOOL;
	else if (!*end && item.text.n < sizeof(number))
		item.type = TOML_NUMBER;
	else if (item.text.p[0] < '0' || item.text.p[0] > '9')
		return bad(t, "a value is wanted");
	return tell(t, item);
}

static int value(struct toml *t, bool in_list)
{
	int c = peek(t, 0), r;

	if (c == '"' || c == '\'') {
		r = string(t);
		return r < 0 ? r
			     : tell(t, (struct toml_item){ .type = TOML_STRING,
							   .in_list = in_list,
							   .text = { t->text.p, t->text.n } });
	}
	if (c != '[' && c != '{')
		return plain(t, in_list);
	if (++t->depth > TOML_DEPTH_MAX)
		return err_set(t->err, E2BIG, "%s:%u: nested deeper than %d", t->name, t->line,
			       TOML_DEPTH_MAX);
	r = c == '[' ? array(t) : inline_table(t, in_list);
	t->depth--;
	return r;
}

static int table(struct toml *t)
{
	bool list = take(t, "[[");
	int r;

	if (!list)
		t->at++;
	t->path_n = 0;
	r = names(t);
	if (r == 0 && !take(t, list ? "]]" : "]"))
		r = bad(t, "']' is wanted");
	t->table_n = t->path_n;
	return r < 0 ? r : tell(t, (struct toml_item){ .type = TOML_TABLE, .in_list = list });
}

static int lines(struct toml *t)
{
	int r = 0;

	(void)take(t, "\xef\xbb\xbf");
	for (;;) {
		empty_lines(t);
		if (peek(t, 0) < 0)
			return 0;
		t->path_n = t->table_n;
		r = peek(t, 0) == '[' ? table(t) : key_and_value(t);
		if (r != 0)
			return r;
		if (!line_end(t))
			return bad(t, "more than one thing on a line");
	}
}

int toml_read(const char *name, struct str text, toml_fn fn, void *arg, struct err *err)
{
	struct toml t = {
		.name = name,
		.in = text,
		.line = 1,
		.fn = fn,
		.arg = arg,
		.err = err,
	};
	int r;

	buf_init(&t.text, text.n + 1);
	r = lines(&t);
	if (r == -ENOMEM || r == -EMSGSIZE)
		err_set(err, -r, "%s: %m", name);
	buf_done(&t.text);
	return r;
}
