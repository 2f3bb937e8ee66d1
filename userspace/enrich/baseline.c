// SPDX-License-Identifier: Apache-2.0
#include "userspace/enrich/baseline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"

#define SEP '\t'

/* Entries are lines as in the file; sorted once finished. */
struct baseline {
	char **v;
	size_t n, cap;
};

int baseline_new(struct baseline **ret)
{
	struct baseline *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	*ret = b;
	return 0;
}

void baseline_free(struct baseline *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++)
		free(b->v[i]);
	free(b->v);
	free(b);
}

size_t baseline_count(const struct baseline *b)
{
	return b->n;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct baseline *b)
{
	size_t n = 0;

	if (b->n)
		qsort(b->v, b->n, sizeof(*b->v), compare);
	for (size_t i = 0; i < b->n; i++) {
		if (n && !strcmp(b->v[n - 1], b->v[i]))
			free(b->v[i]);
		else
			b->v[n++] = b->v[i];
	}
	b->n = n;
}

static int add(struct baseline *b, const char *line, struct err *err)
{
	if (b->n == b->cap) {
		size_t cap;
		void *p;

		sort(b); /* the same again and again is the usual case */
		if (b->n >= BASELINE_ENTRIES_MAX)
			return err_set(err, E2BIG, "baseline: more than %d entries",
				       BASELINE_ENTRIES_MAX);
		cap = b->n * 2 >= b->cap ? MAX(2 * b->cap, (size_t)1024) : b->cap;
		p = reallocarray(b->v, cap, sizeof(*b->v));
		if (!p)
			return err_set(err, ENOMEM, "baseline: out of memory");
		b->v = p;
		b->cap = cap;
	}
	b->v[b->n] = strdup(line);
	if (!b->v[b->n])
		return err_set(err, ENOMEM, "baseline: out of memory");
	b->n++;
	return 0;
}

/* ---- what an event shows, as a line ---- */

/* Lines are kept as they stand in the file: what a program calls itself must not end a field or a line. */
static bool put_byte(char *out, size_t max, size_t *n, unsigned char c)
{
	static const char digit[] = "0123456789abcdef";
	bool plain = c >= ' ' && c != 127 && c != '\\';

	if (!c || *n + (plain ? 1 : 4) >= max)
		return false;
	if (plain) {
		out[(*n)++] = (char)c;
	} else {
		out[(*n)++] = '\\';
		out[(*n)++] = 'x';
		out[(*n)++] = digit[c >> 4];
		out[(*n)++] = digit[c & 15];
	}
	out[*n] = 0;
	return true;
}

static bool put(char *out, size_t max, size_t *n, struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!put_byte(out, max, n, (unsigned char)s.p[i]))
			return false;
	return true;
}

static bool put_sep(char *out, size_t max, size_t *n)
{
	if (*n + 1 >= max)
		return false;
	out[(*n)++] = SEP;
	out[*n] = 0;
	return true;
}

/* Numbers of processes are different each time. */
static bool put_path(char *out, size_t max, size_t *n, struct str path)
{
	if (str_starts(path, STR("/proc/"))) {
		size_t k = 6;

		while (k < path.n && path.p[k] >= '0' && path.p[k] <= '9')
			k++;
		if (k > 6 && (k == path.n || path.p[k] == '/')) {
			if (!put(out, max, n, STR("/proc/N")))
				return false;
			path = (struct str){ path.p + k, path.n - k };
		}
	}
	return put(out, max, n, path);
}

/* What an event is to a baseline. */
enum fact {
	FACT_NONE,  /* nothing that it is about */
	FACT_LINE,  /* a line */
	FACT_OTHER, /* too long or too odd for one: never usual */
};

static enum fact put_destination(char *out, size_t max, size_t *n, const struct event *ev)
{
	struct str name = event_str(ev, F_NET_DST_NAME), path = event_str(ev, F_NET_PATH);
	char ip[64], port[32] = "";
	bool v6 = false;

	if (path.n)
		return put(out, max, n, STR("unix:")) && put(out, max, n, path) ? FACT_LINE
										: FACT_OTHER;
	if (!name.n && event_has(ev, F_NET_DST_IP)) {
		name = (struct str){ ip, ip_addr_text(&ev->v[F_NET_DST_IP].ip, ip) };
		v6 = memchr(ip, ':', name.n);
	}
	if (!name.n)
		return FACT_NONE;
	if (event_has(ev, F_NET_DST_PORT))
		snprintf(port, sizeof(port), "%s%llu", v6 ? "#" : ":",
			 (unsigned long long)event_u64(ev, F_NET_DST_PORT));
	name.n = MIN(name.n, (size_t)255);
	return put(out, max, n, name) && put(out, max, n, str_from(port)) ? FACT_LINE : FACT_OTHER;
}

static bool is_success(const struct event *ev)
{
	return str_eqz(event_str(ev, F_OUTCOME), "success");
}

/* *ret_path: where the path begins in the line, 0 = none. */
static enum fact line_of(char *out, size_t max, const struct event *ev, size_t *ret_path)
{
	struct str exe = event_str(ev, F_PROC_EXE), path = event_str(ev, F_FILE_PATH);
	const char *word = ev->kind == WIRE_EXEC	? "exec"
			   : ev->kind == WIRE_FILE_OPEN ? "open"
							: "connect";
	size_t n = 0;

	*ret_path = 0;
	if (ev->kind != WIRE_NET_CONNECT && !is_success(ev))
		return FACT_NONE;
	if (!exe.n)
		return ev->kind == WIRE_FILE_OPEN ? FACT_OTHER : FACT_NONE;
	if (!put(out, max, &n, str_from(word)) || !put_sep(out, max, &n) || !put(out, max, &n, exe))
		return FACT_OTHER;
	if (ev->kind == WIRE_EXEC)
		return FACT_LINE;
	if (!put_sep(out, max, &n))
		return FACT_OTHER;
	if (ev->kind == WIRE_NET_CONNECT)
		return put_destination(out, max, &n, ev);
	*ret_path = n;
	return path.n && path.p[0] == '/' && put_path(out, max, &n, path) ? FACT_LINE : FACT_OTHER;
}

static bool is_kind(const struct event *ev)
{
	return ev->kind == WIRE_EXEC || ev->kind == WIRE_FILE_OPEN || ev->kind == WIRE_NET_CONNECT;
}

int baseline_learn(struct baseline *b, const struct event *ev, struct err *err)
{
	char line[BASELINE_LINE_MAX];
	size_t path;

	if (!is_kind(ev) || line_of(line, sizeof(line), ev, &path) != FACT_LINE)
		return 0;
	return add(b, line, err);
}

/* ---- is it usual? ---- */

static bool has(const struct baseline *b, const char *line)
{
	return b->n && bsearch(&line, b->v, b->n, sizeof(*b->v), compare);
}

void baseline_apply(const struct baseline *b, struct event *ev)
{
	char line[BASELINE_LINE_MAX];
	enum fact fact;
	size_t path, n;
	bool known;

	fact = is_kind(ev) ? line_of(line, sizeof(line), ev, &path) : FACT_NONE;
	if (fact == FACT_NONE)
		return;
	known = fact == FACT_LINE && has(b, line);
	/* Its directories, from the inner one out. */
	for (n = fact == FACT_LINE && path ? strlen(line) : 0; !known && n > path; n--) {
		if (line[n - 1] != '/')
			continue;
		line[n] = 0;
		known = has(b, line);
	}
	event_set_bool(ev, F_BASELINE_NEW, !known);
}

/* ---- many files become their directory ---- */

/* Of these each file counts by itself. */
static bool is_whole(const char *path, size_t n)
{
	static const char *const dirs[] = { "/",     "/etc/", "/root/", "/home/", "/proc/",
					    "/sys/", "/dev/", "/run/",	"/boot/", "/var/" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (strlen(dirs[i]) == n && !memcmp(dirs[i], path, n))
			return true;
	return memmem(path, n, "/.ssh/", 6) || memmem(path, n, "/.aws/", 6) ||
	       (n > 6 && !memcmp(path, "/proc/", 6));
}

/* Length of the line up to and with the last slash of its directory; 0 = no open, or none. */
static size_t parent(const char *line)
{
	const char *path = strncmp(line, "open\t", 5) ? NULL : strchr(line + 5, SEP);
	size_t n = strlen(line);

	if (!path)
		return 0;
	if (line[n - 1] == '/')
		n--;
	while (n && line[n - 1] != '/')
		n--;
	return n > (size_t)(path + 1 - line) ? n : 0;
}

static const char *path_of(const char *line)
{
	return strchr(line + 5, SEP) + 1;
}

/* Entries right in the directory that the first `n` bytes of v[i] name: they begin alike, so they stand
 * together, with what is deeper in between. */
static size_t entries_in(const struct baseline *b, size_t i, size_t n)
{
	size_t count = 0;
	char *dir = b->v[i];

	for (size_t k = i; k < b->n && !strncmp(b->v[k], dir, n); k++)
		count += parent(b->v[k]) == n;
	return count;
}

static bool fold_once(struct baseline *b)
{
	bool changed = false;

	for (size_t i = 0; i < b->n; i++) {
		size_t n = parent(b->v[i]);
		const char *path;

		if (!n || (i && parent(b->v[i - 1]) == n && !strncmp(b->v[i - 1], b->v[i], n)))
			continue;
		path = path_of(b->v[i]);
		if (is_whole(path, n - (size_t)(path - b->v[i])) ||
		    entries_in(b, i, n) <= BASELINE_FILES_MAX)
			continue;
		/* All that is below it becomes equal and goes with the next sort. */
		for (size_t k = i + 1; k < b->n && !strncmp(b->v[k], b->v[i], n); k++)
			b->v[k][n] = 0;
		b->v[i][n] = 0;
		changed = true;
	}
	return changed;
}

/* What stands below a directory that is in the list says nothing more. */
static void drop_covered(struct baseline *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		size_t k = n ? strlen(b->v[n - 1]) : 0;

		if (k && parent(b->v[i]) && b->v[n - 1][k - 1] == '/' &&
		    !strncmp(b->v[n - 1], "open\t", 5) && strlen(b->v[i]) > k &&
		    !strncmp(b->v[i], b->v[n - 1], k))
			free(b->v[i]);
		else
			b->v[n++] = b->v[i];
	}
	b->n = n;
}

int baseline_finish(struct baseline *b)
{
	sort(b);
	while (fold_once(b))
		sort(b);
	drop_covered(b);
	return 0;
}

/* ---- the file ---- */

int baseline_write(const struct baseline *b, struct buf *out)
{
	for (size_t i = 0; i < b->n; i++)
		buf_printf(out, "%s\n", b->v[i]);
	return out->failed ? -ENOMEM : 0;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The line as line_of would write it. Column of what is wrong, from 1; 0 = good. */
static size_t normalise(char *out, size_t max, struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		size_t at = i;

		if (c == SEP) {
			if (!put_sep(out, max, &n))
				return at + 1;
			continue;
		}
		if (c == '\\') {
			int hi = i + 3 < s.n && s.p[i + 1] == 'x' ? hex(s.p[i + 2]) : -1;
			int lo = hi >= 0 ? hex(s.p[i + 3]) : -1;

			if (lo < 0)
				return at + 1;
			c = (unsigned char)(hi << 4 | lo);
			i += 3;
		}
		if (!put_byte(out, max, &n, c))
			return at + 1;
	}
	return 0;
}

static const char *what_is_wrong(const char *line)
{
	size_t fields = 1, want = !strncmp(line, "exec\t", 5) ? 2 : 3;

	if (strncmp(line, "exec\t", 5) && strncmp(line, "open\t", 5) &&
	    strncmp(line, "connect\t", 8))
		return "expected exec, open or connect and a tab";
	for (const char *p = line; *p; p++) {
		fields += *p == SEP;
		if (*p == SEP && (!p[1] || p[1] == SEP))
			return "a field is empty";
	}
	return fields == want ? NULL
	       : want == 2    ? "exec has one program"
			      : "expected a program and what it reached";
}

static int read_line(struct baseline *b, const char *name, size_t no, struct str s, struct err *err)
{
	char line[BASELINE_LINE_MAX];
	const char *wrong;
	size_t col;

	if (s.n && s.p[s.n - 1] == '\r')
		s.n--;
	if (!s.n || s.p[0] == '#')
		return 0;
	if (s.n >= sizeof(line))
		return err_set(err, EINVAL, "%s:%zu:1: line too long", name, no);
	col = normalise(line, sizeof(line), s);
	if (col)
		return err_set(err, EINVAL, "%s:%zu:%zu: expected a character or \\xHH", name, no,
			       col);
	wrong = what_is_wrong(line);
	return wrong ? err_set(err, EINVAL, "%s:%zu:1: %s", name, no, wrong) : add(b, line, err);
}

int baseline_read(struct baseline **ret, const char *name, struct str text, struct err *err)
{
	struct baseline *b = NULL;
	int r = baseline_new(&b);

	for (size_t no = 1; r == 0 && text.n; no++) {
		const char *nl = memchr(text.p, '\n', text.n);
		struct str s = { text.p, nl ? (size_t)(nl - text.p) : text.n };

		text = (struct str){ s.p + s.n + !!nl, text.n - s.n - !!nl };
		r = read_line(b, name, no, s, err);
	}
	if (r < 0) {
		baseline_free(b);
		return r;
	}
	sort(b);
	*ret = b;
	return 0;
}
