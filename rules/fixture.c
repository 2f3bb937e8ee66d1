// SPDX-License-Identifier: Apache-2.0
/* Rules against recorded or written events, without a kernel. */
#include "rules/internal.h"

#include <stdarg.h>
#include "userspace/base/option.h"

#define FIXTURE_NAMES_MAX  32
#define FIXTURE_REPEAT_MAX 100000
#define FIXTURE_ARENA_MAX  ((size_t)16 << 20)

struct fixture {
	const struct ruleset *rs;
	const char *file;
	rule_diag_fn fn;
	void *arg;
	struct arena arena;
	struct rule_memory *st;
	const struct rule_info *want[FIXTURE_NAMES_MAX], *near[FIXTURE_NAMES_MAX];
	size_t want_n, near_n;
	unsigned repeat; /* how often the next event happens */
	int line;
	bool bad; /* this event failed */
};

static void say(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct fixture *f, const char *fmt, ...)
{
	struct rule_diag d = { .line = f->line, .col = 1 };
	va_list ap;

	f->bad = true;
	if (!f->fn)
		return;
	snprintf(d.file, sizeof(d.file), "%s", f->file);
	va_start(ap, fmt);
	vsnprintf(d.text, sizeof(d.text), fmt, ap);
	va_end(ap);
	f->fn(f->arg, &d);
}

static struct str trim(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
		s.n--;
	return s;
}

static int no_rule(struct fixture *f, struct str name, struct err *err)
{
	char word[121], hint[160];
	const char **names = calloc(f->rs->rule_n + 1, sizeof(*names));

	snprintf(word, sizeof(word), "%.*s", (int)MIN(name.n, sizeof(word) - 1), name.p);
	for (size_t i = 0; names && i < f->rs->rule_n; i++)
		names[i] = f->rs->rule[i]->info.name;
	rule_hint(hint, sizeof(hint), word, names, names ? f->rs->rule_n : 0);
	free(names);
	return err_set(err, EINVAL, "%s:%d:1: no rule is named '%s'%s", f->file, f->line, word,
		       hint);
}

static int read_names(struct fixture *f, struct str s, const struct rule_info **v, size_t *n,
		      struct err *err)
{
	while (s.n) {
		const char *semi = memchr(s.p, ';', s.n);
		struct str name = trim((struct str){ s.p, semi ? (size_t)(semi - s.p) : s.n });
		struct rule *r = name.n ? ruleset_rule(f->rs, name) : NULL;

		s = semi ? (struct str){ semi + 1, s.n - (size_t)(semi + 1 - s.p) }
			 : (struct str){ 0 };
		if (!name.n)
			continue;
		if (!r)
			return no_rule(f, name, err);
		if (*n == FIXTURE_NAMES_MAX)
			return err_set(err, EINVAL, "%s:%d:1: more than %d rules for one event",
				       f->file, f->line, FIXTURE_NAMES_MAX);
		v[(*n)++] = &r->info;
	}
	return 0;
}

static bool has(const struct rule_info *const *v, size_t n, const struct rule_info *r)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == r)
			return true;
	return false;
}

/* "{i}" stands for the number of the repetition, from 1. */
static struct str numbered(struct fixture *f, struct str json, unsigned i)
{
	struct buf b;
	struct str out;

	buf_init(&b, 1 << 20);
	for (size_t k = 0; k < json.n; k++) {
		if (json.n - k >= 3 && !memcmp(json.p + k, "{i}", 3)) {
			buf_printf(&b, "%u", i);
			k += 2;
		} else {
			buf_addc(&b, json.p[k]);
		}
	}
	out = b.failed ? (struct str){ 0 } : arena_strndup(&f->arena, b.p ? b.p : "", b.n);
	buf_done(&b);
	return out;
}

static int judge(struct fixture *f, struct str json, unsigned i, struct rule_matches *m,
		 struct err *err)
{
	struct event *ev;
	struct err inner = { 0 };
	char text[256];

	arena_reset(&f->arena);
	ev = arena_zalloc(&f->arena, sizeof(*ev));
	json = numbered(f, json, i);
	if (!ev || !json.p)
		return err_set(err, ENOMEM, "%s:%d:1: out of memory", f->file, f->line);
	if (event_from_json(ev, &f->arena, json, &inner) < 0)
		return err_set(err, EINVAL, "%s:%d:1: %s", f->file, f->line, err_text(&inner));
	if (!closed_check_event(ev, text, sizeof(text)))
		return err_set(err, EINVAL, "%s:%d:1: %s", f->file, f->line, text);
	ruleset_judge(f->rs, f->st, ev, m);
	return 0;
}

/* What is expected is expected of the last repetition; before it those rules must be quiet. */
static int try_event(struct fixture *f, struct str json, struct err *err)
{
	struct rule_matches m;
	int r;

	f->bad = false;
	for (unsigned i = 1; i <= f->repeat; i++) {
		r = judge(f, json, i, &m, err);
		if (r < 0)
			return r;
		for (size_t k = 0; i < f->repeat && k < m.n; k++)
			if (has(f->want, f->want_n, m.v[k]))
				say(f, "rule '%s' fired on repetition %u already", m.v[k]->name, i);
	}
	for (size_t i = 0; i < f->want_n; i++)
		if (!has(m.v, m.n, f->want[i]))
			say(f, "rule '%s' should fire, it did not", f->want[i]->name);
	for (size_t i = 0; i < m.n; i++)
		if (has(f->near, f->near_n, m.v[i]))
			say(f, "rule '%s' fired on its near miss", m.v[i]->name);
		else if (!has(f->want, f->want_n, m.v[i]))
			say(f, "rule '%s' fired, it should not", m.v[i]->name);
	return f->bad;
}

static int read_repeat(struct fixture *f, struct str s, struct err *err)
{
	char text[16];
	uint64_t n;

	snprintf(text, sizeof(text), "%.*s", (int)MIN(s.n, sizeof(text) - 1), s.p);
	if (parse_u64(text, &n) < 0 || n < 1 || n > FIXTURE_REPEAT_MAX)
		return err_set(err, EINVAL, "%s:%d:1: 'repeat' must be 1 to %d", f->file, f->line,
			       FIXTURE_REPEAT_MAX);
	f->repeat = (unsigned)n;
	return 0;
}

static int new_sandbox(struct fixture *f, struct err *err)
{
	rule_memory_free(f->st);
	f->st = NULL;
	if (rule_memory_new(&f->st, f->rs) < 0)
		return err_set(err, ENOMEM, "%s:%d:1: out of memory", f->file, f->line);
	return 0;
}

/* A comment is prose, unless its first word, with a colon or alone, is a letter away from one of ours. */
static int read_prose(struct fixture *f, struct str s, struct err *err)
{
	static const char *const names[] = { "fires", "near", "repeat", "sandbox" };
	char word[16], hint[96];
	size_t n = 0;

	while (n < s.n && s.p[n] != ':' && s.p[n] != ' ' && s.p[n] != '\t')
		n++;
	if (!n || n >= sizeof(word) || (n < s.n && s.p[n] != ':'))
		return 0;
	for (size_t i = 0; i < n; i++)
		word[i] = s.p[i] >= 'A' && s.p[i] <= 'Z' ? s.p[i] + 32 : s.p[i];
	word[n] = 0;
	if (!*rule_hint(hint, sizeof(hint), word, names, ARRAY_SIZE(names)))
		return 0;
	return err_set(err, EINVAL, "%s:%d:1: unknown key '%.*s'%s", f->file, f->line, (int)n, s.p,
		       hint);
}

static int read_comment(struct fixture *f, struct str s, struct err *err)
{
	s = trim((struct str){ s.p + 1, s.n - 1 });
	if (str_starts(s, STR("fires:")))
		return read_names(f, (struct str){ s.p + 6, s.n - 6 }, f->want, &f->want_n, err);
	if (str_starts(s, STR("near:")))
		return read_names(f, (struct str){ s.p + 5, s.n - 5 }, f->near, &f->near_n, err);
	if (str_starts(s, STR("repeat:")))
		return read_repeat(f, trim((struct str){ s.p + 7, s.n - 7 }), err);
	return str_eqz(s, "sandbox") ? new_sandbox(f, err) : read_prose(f, s, err);
}

int ruleset_test(const struct ruleset *rs, const char *file, struct str text, rule_diag_fn fn,
		 void *arg, size_t *ret_events, struct err *err)
{
	struct fixture f = { .rs = rs, .file = file, .fn = fn, .arg = arg, .repeat = 1 };
	size_t events = 0;
	int failed = 0, r = 0;

	r = new_sandbox(&f, err);
	arena_init(&f.arena, FIXTURE_ARENA_MAX);
	while (text.n && r >= 0) {
		const char *nl = memchr(text.p, '\n', text.n);
		struct str line = { text.p, nl ? (size_t)(nl - text.p) : text.n };

		text = (struct str){ text.p + line.n + !!nl, text.n - line.n - !!nl };
		f.line++;
		line = trim(line);
		if (!line.n)
			continue;
		if (line.p[0] == '#') {
			r = read_comment(&f, line, err);
			continue;
		}
		r = try_event(&f, line, err);
		failed += r > 0;
		events++;
		f.want_n = f.near_n = 0;
		f.repeat = 1;
	}
	arena_done(&f.arena);
	rule_memory_free(f.st);
	if (r >= 0 && (f.want_n || f.near_n || f.repeat > 1))
		r = err_set(err, EINVAL, "%s:%d:1: no event behind what is said of one", file,
			    f.line);
	else if (r >= 0 && !events)
		r = err_set(err, EINVAL, "%s:%d:1: no event in it, so nothing is tested", file,
			    f.line);
	if (r < 0)
		return r;
	*ret_events = events;
	return failed;
}
