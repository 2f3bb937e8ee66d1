// SPDX-License-Identifier: Apache-2.0
/* The rule language, one named behaviour a case, in the .cases files of tests/rules/conformance.
 *
 *   == name of the behaviour
 *   proc.comm = bash                 a bare condition, which is rule "r"; or YAML; or, for short,
 *   @r proc.comm = bash              a whole rule "r" (desc d, output o), keys may follow below it
 *   +++ local.yaml                   what follows is the next file
 *   fires: exec; proc.comm=bash      exactly "r" fires; "fires a,b:" exactly these
 *   quiet: exec; proc.comm=sh        none does
 *   output: exec; proc.pid=7 => p=7  a rule fires and says this
 *   says: 5:14: unknown field        loading says this; without "warning:" it does not load
 *   state r: degraded ...            what became of the rule, and why
 *
 * Events are as make_event reads them; all of a case are of one sandbox, in order. */
#include "rules_test.h"

#include <dirent.h>
#include <fcntl.h>
#include "rules/internal.h"
#include "rules/load.h"
#include "userspace/base/fd.h"

#define DIRECTORY "tests/rules/conformance"

struct verdict {
	struct str word, names, rest;
};

struct one_case {
	const char *file;
	int line;
	struct str name;
	struct buf text; /* files, a NUL behind each */
	struct str bare; /* the condition, when that is all */
	struct verdict v[64];
	size_t n;
	unsigned wrong;
};

/* What the cases made use of, with each answer. */
static struct {
	bool op[OP_COUNT][2], tr[TR_COUNT][2], quant[Q_ONE + 1][2];
	struct buf text;
	unsigned cases;
} seen;

static const char *const quant_names[] = {
	[Q_ANY] = "anyof", [Q_ALL] = "allof", [Q_ONE] = "oneof"
};

static void complain(struct one_case *c, const char *what, struct str line, const char *got)
{
	print_error("%s:%d: %.*s\n  %s %.*s\n  but: %s\n", c->file, c->line, (int)c->name.n,
		    c->name.p, what, (int)line.n, line.p, got);
	c->wrong++;
}

static struct str next_line(struct str *left)
{
	const char *nl = left->n ? memchr(left->p, '\n', left->n) : NULL;
	struct str line = { left->p, nl ? (size_t)(nl - left->p) : left->n };

	*left = (struct str){ left->p + line.n + !!nl, left->n - line.n - !!nl };
	return line;
}

static bool read_verdict(struct one_case *c, struct str line)
{
	static const char *const words[] = { "fires", "quiet", "output", "says", "state" };
	struct verdict *v = &c->v[c->n];
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *colon;

		n = strlen(words[i]);
		if (!str_starts(line, str_from(words[i])) || line.n <= n ||
		    (line.p[n] != ':' && line.p[n] != ' '))
			continue;
		colon = memchr(line.p + n, ':', line.n - n);
		assert_non_null(colon);
		assert_true(c->n < ARRAY_SIZE(c->v));
		v->word = (struct str){ line.p, n };
		v->names = (struct str){ line.p + n + (line.p[n] == ' '), 0 };
		v->names.n = (size_t)(colon - v->names.p);
		if (line.p[n] == ':')
			v->names = STR("");
		v->rest = (struct str){ colon + 1, line.n - (size_t)(colon + 1 - line.p) };
		while (v->rest.n && v->rest.p[0] == ' ')
			v->rest = (struct str){ v->rest.p + 1, v->rest.n - 1 };
		c->n++;
		return true;
	}
	return false;
}

static void add_rule(struct buf *b, struct str name, struct str cond)
{
	buf_printf(
		b,
		"- rule: %.*s\n  desc: d\n  output: o\n  priority: INFO\n  condition: |-\n    %.*s\n",
		(int)name.n, name.p, (int)cond.n, cond.p);
}

static void read_text(struct one_case *c, struct str line)
{
	if (str_starts(line, STR("+++ "))) {
		buf_addc(&c->text, 0);
	} else if (line.n && line.p[0] == '@') {
		size_t n = 1;

		while (n < line.n && line.p[n] != ' ')
			n++;
		add_rule(&c->text, (struct str){ line.p + 1, n - 1 },
			 (struct str){ line.p + n + 1, line.n - n - 1 });
	} else if (!c->text.n && line.n && line.p[0] != '-') {
		c->bare = line;
		add_rule(&c->text, STR("r"), line);
	} else {
		buf_add(&c->text, line.p, line.n);
		buf_addc(&c->text, '\n');
	}
}

static struct ruleset *load_case(struct one_case *c, struct said *said)
{
	struct ruleset *rs = NULL;
	struct str left = { c->text.p, c->text.n };
	int r = 0;

	assert_int_equal(ruleset_new(&rs, hear, said), 0);
	ruleset_allow_state(rs);
	while (left.n && r == 0) {
		struct str file = { left.p, strlen(left.p) };

		r = ruleset_add_text(rs, "case.yaml", file, NULL);
		left = (struct str){ left.p + file.n + 1, left.n - file.n - 1 };
	}
	if (r == 0)
		r = ruleset_compile(rs, NULL);
	if (r == 0)
		return rs;
	ruleset_free(rs);
	return NULL;
}

static void note(const struct ruleset *rs, const struct one_case *c, bool fired)
{
	for (size_t i = 0; i < rs->atom_n; i++) {
		seen.op[rs->atom[i]->op][fired] = true;
		if (rs->atom[i]->rhs)
			seen.tr[TR_VAL][fired] = true;
	}
	for (size_t i = 0; i < rs->access_n; i++)
		for (size_t k = 0; k < rs->access[i]->tr_n; k++)
			seen.tr[rs->access[i]->tr[k]][fired] = true;
	for (int q = Q_ANY; q <= Q_ONE; q++)
		if (strstr(c->text.p, quant_names[q]))
			seen.quant[q][fired] = true;
}

static size_t judge(const struct ruleset *rs, struct rule_memory *st, struct str spec,
		    struct made_event *e, struct rule_matches *m)
{
	struct rule_matches a, b;
	char text[4096];

	assert_true(spec.n < sizeof(text));
	memcpy(text, spec.p, spec.n);
	text[spec.n] = 0;
	make_event(e, text);
	ruleset_eval(rs, &e->ev, &a);
	ruleset_eval_plain(rs, &e->ev, &b);
	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.v, b.v, a.n * sizeof(a.v[0]));
	return ruleset_judge(rs, st, &e->ev, m);
}

static void check_event(struct one_case *c, const struct ruleset *rs, struct rule_memory *st,
			const struct verdict *v)
{
	struct rule_matches m;
	struct made_event e;
	char got[512] = "", want[512] = "";
	size_t n = 0;

	judge(rs, st, v->rest, &e, &m);
	for (size_t i = 0; i < m.n && n < sizeof(got); i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s", i ? "," : "", m.v[i]->name);
	if (str_eqz(v->word, "fires"))
		snprintf(want, sizeof(want), "%.*s", v->names.n ? (int)v->names.n : 1,
			 v->names.n ? v->names.p : "r");
	if (strcmp(got, want) != 0)
		complain(c, want[0] ? "should fire on" : "should be quiet on", v->rest, got);
	else
		note(rs, c, want[0] != 0);
	drop_event(&e);
}

static void check_output(struct one_case *c, const struct ruleset *rs, struct rule_memory *st,
			 const struct verdict *v)
{
	const char *arrow = memmem(v->rest.p, v->rest.n, " => ", 4);
	struct str want;
	struct rule_matches m;
	struct made_event e;
	auto_buf struct buf out = { 0 };

	assert_non_null(arrow);
	want = (struct str){ arrow + 4, (size_t)(v->rest.p + v->rest.n - arrow) - 4 };
	buf_init(&out, 0);
	if (!judge(rs, st, (struct str){ v->rest.p, (size_t)(arrow - v->rest.p) }, &e, &m))
		buf_addz(&out, "(quiet)");
	else
		rule_format_output(m.v[0], &e.ev, &out);
	buf_addc(&out, 0);
	if (!str_eqz(want, out.p))
		complain(c, "should say", want, out.p);
	drop_event(&e);
}

static void check_state(struct one_case *c, const struct ruleset *rs, const struct verdict *v)
{
	static const char *const names[] = { "loaded", "degraded", "refused", "disabled" };
	const struct rule *r = ruleset_rule(rs, v->names);
	char got[256] = "no such rule";

	if (r)
		snprintf(got, sizeof(got), "%s%s%s", names[r->info.state], r->info.why ? " " : "",
			 r->info.why ? r->info.why : "");
	if (!str_eqz(v->rest, got))
		complain(c, "should be", v->rest, got);
}

static void check_said(struct one_case *c, const struct said *said, const struct verdict *v)
{
	const char *text = said->text;
	struct err err = { 0 };
	struct rule_filter *f = NULL;

	/* A condition alone: places count within it. */
	if (c->bare.n && !memmem(v->rest.p, v->rest.n, "warning:", 8)) {
		if (rule_filter_new(&f, c->bare, &err) == 0)
			rule_filter_free(f);
		text = err_text(&err);
	}
	if (!memmem(text, strlen(text), v->rest.p, v->rest.n))
		complain(c, "loading should say", v->rest, text);
}

static unsigned run_case(struct one_case *c)
{
	struct said said = { .n = 0 };
	struct ruleset *rs;
	struct rule_memory *st = NULL;
	bool bad = false;

	seen.cases++;
	buf_addc(&c->text, 0);
	assert_false(c->text.failed);
	for (size_t i = 0; i < c->text.n; i++)
		buf_addc(&seen.text, c->text.p[i] ? c->text.p[i] : '\n');
	if (!c->n)
		complain(c, "has no verdict", STR(""), "");
	for (size_t i = 0; i < c->n; i++)
		bad |= str_eqz(c->v[i].word, "says") &&
		       !memmem(c->v[i].rest.p, c->v[i].rest.n, "warning:", 8);
	rs = load_case(c, &said);
	if (!rs != bad)
		complain(c, bad ? "should not load" : "should load", STR(""), said.text);
	if (rs)
		assert_int_equal(rule_memory_new(&st, rs), 0);
	for (size_t i = 0; i < c->n; i++) {
		const struct verdict *v = &c->v[i];

		if (str_eqz(v->word, "says"))
			check_said(c, &said, v);
		else if (!rs)
			continue;
		else if (str_eqz(v->word, "state"))
			check_state(c, rs, v);
		else if (str_eqz(v->word, "output"))
			check_output(c, rs, st, v);
		else
			check_event(c, rs, st, v);
	}
	rule_memory_free(st);
	ruleset_free(rs);
	buf_done(&c->text);
	return c->wrong;
}

static unsigned run_file(const char *path)
{
	auto_free char *text = NULL;
	struct one_case c = { .file = path };
	struct str left;
	unsigned wrong = 0;
	size_t n = 0;
	int line = 0;

	assert_int_equal(file_read_at(AT_FDCWD, path, 1 << 20, &text, &n), 0);
	for (left = (struct str){ text, n }; left.n;) {
		struct str s = next_line(&left);

		line++;
		if (str_starts(s, STR("== "))) {
			if (c.name.n)
				wrong += run_case(&c);
			c = (struct one_case){ .file = path,
					       .line = line,
					       .name = { s.p + 3, s.n - 3 } };
			buf_init(&c.text, 0);
		} else if (c.name.n && s.n && s.p[0] != '#' && !read_verdict(&c, s)) {
			if (c.n)
				fail_msg("%s:%d: text behind a verdict", path, line);
			read_text(&c, s);
		}
	}
	assert_true(c.name.n > 0);
	return wrong + run_case(&c);
}

static void every_case_holds(void **state)
{
	DIR *d = opendir(DIRECTORY);
	unsigned wrong = 0;

	(void)state;
	assert_non_null(d);
	buf_init(&seen.text, 0);
	for (struct dirent *e; (e = readdir(d));) {
		char path[512];

		if (!str_ends(str_from(e->d_name), STR(".cases")))
			continue;
		snprintf(path, sizeof(path), DIRECTORY "/%s", e->d_name);
		wrong += run_file(path);
	}
	closedir(d);
	buf_addc(&seen.text, 0);
	assert_int_equal(wrong, 0);
	print_message("%u cases\n", seen.cases);
}

static void lacks(unsigned *missing, const char *what, const char *name, const bool answer[2])
{
	for (int fired = 0; fired < 2; fired++) {
		if (answer[fired])
			continue;
		print_error("%s '%s' has no case that %s\n", what, name,
			    fired ? "fires" : "is quiet");
		++*missing;
	}
}

/* What the engine's own tables name has a case: one that fires, one that does not. */
static void nothing_is_left_out(void **state)
{
	static const char *const items[] = { "- list: ",
					     "- macro: ",
					     "- rule: ",
					     "- required_engine_version: ",
					     "- required_plugin_versions:",
					     "\n  override:",
					     "\n  append:",
					     "\n  items:" };
	unsigned missing = 0;

	(void)state;
	for (int i = 0; i < OP_COUNT; i++)
		lacks(&missing, "operator", op_name((enum rule_op)i), seen.op[i]);
	for (int i = 0; i < TR_COUNT; i++)
		lacks(&missing, "transformer", transformer_name((enum transformer)i), seen.tr[i]);
	for (int i = Q_ANY; i <= Q_ONE; i++)
		lacks(&missing, "quantifier", quant_names[i], seen.quant[i]);
	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		if (!strstr(seen.text.p, items[i])) {
			print_error("no case has '%s'\n", items[i]);
			missing++;
		}
	for (size_t i = 0; load_rule_key(i); i++) {
		char key[64];

		snprintf(key, sizeof(key), "\n  %s:", load_rule_key(i));
		if (!strstr(seen.text.p, key)) {
			print_error("key '%s' of a rule has no case\n", load_rule_key(i));
			missing++;
		}
	}
	buf_done(&seen.text);
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_case_holds),
					    cmocka_unit_test(nothing_is_left_out) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
