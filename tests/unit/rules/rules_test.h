/* SPDX-License-Identifier: Apache-2.0 */
/* Events from one line of text, and what the loader said. */
#ifndef WARDER_TESTS_UNIT_RULES_RULES_TEST_H
#define WARDER_TESTS_UNIT_RULES_RULES_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"

struct made_event {
	struct arena arena;
	struct event ev;
};

static inline void set_list(struct made_event *m, enum field_id f, struct str s)
{
	struct str *v = arena_alloc(&m->arena, 64 * sizeof(*v));
	size_t n = 0;

	assert_non_null(v);
	for (;;) {
		const char *bar = memchr(s.p, '|', s.n);

		assert_true(n < 64);
		v[n] = (struct str){ s.p, bar ? (size_t)(bar - s.p) : s.n };
		s = (struct str){ s.p + v[n].n + !!bar, s.n - v[n].n - !!bar };
		n++;
		if (!bar)
			break;
	}
	event_set_list(&m->ev, f, v, n);
}

/* "comm:exe|comm:exe"; an empty exe is unknown. */
static inline void set_ancestors(struct made_event *m, struct str s)
{
	struct event_ancestor *v = arena_zalloc(&m->arena, 16 * sizeof(*v));
	size_t n = 0;

	assert_non_null(v);
	while (s.n) {
		size_t word = 0, colon;

		while (word < s.n && s.p[word] != '|')
			word++;
		for (colon = 0; colon < word && s.p[colon] != ':';)
			colon++;
		assert_true(n < 16);
		v[n].pid = 100 + n;
		v[n].comm = (struct str){ s.p, colon };
		if (colon + 1 < word)
			v[n].exe = (struct str){ s.p + colon + 1, word - colon - 1 };
		n++;
		word += word < s.n;
		s = (struct str){ s.p + word, s.n - word };
	}
	m->ev.v[F_PROC_ANCESTORS].ancestors.v = v;
	m->ev.v[F_PROC_ANCESTORS].ancestors.n = n;
	event_mark(&m->ev, F_PROC_ANCESTORS);
}

static inline void set_field(struct made_event *m, struct str name, struct str value)
{
	int f = event_field_find(name);
	struct event *ev = &m->ev;

	if (f < 0)
		fail_msg("no field '%.*s'", (int)name.n, name.p);
	switch (event_fields[f].type) {
	case FT_STR:
		event_set_str(ev, (enum field_id)f, value);
		return;
	case FT_I64:
		event_set_i64(ev, (enum field_id)f, strtoll(value.p, NULL, 0));
		return;
	case FT_BOOL:
		event_set_bool(ev, (enum field_id)f, str_eqz(value, "true"));
		return;
	case FT_IP: {
		struct ip_addr ip;

		assert_int_equal(ip_addr_parse(value, &ip), 0);
		event_set_ip(ev, (enum field_id)f, ip);
		return;
	}
	case FT_STRLIST:
		set_list(m, (enum field_id)f, value);
		return;
	case FT_ANCESTORS:
		set_ancestors(m, value);
		return;
	case FT_ANSWERS:
		fail_msg("answers are not made from text");
		return;
	default:
		event_set_u64(ev, (enum field_id)f, strtoull(value.p, NULL, 0));
	}
}

/* "kind; field=value; field=value". Lists: a|b|c. */
static inline void make_event(struct made_event *m, const char *spec)
{
	struct str text, word;
	const struct kind_def *k;

	arena_init(&m->arena, 1 << 20);
	text = arena_strndup(&m->arena, spec, strlen(spec));
	word = (struct str){ text.p, strcspn(text.p, ";") };
	k = event_kind_by_name(word);
	if (!k)
		fail_msg("no kind '%.*s'", (int)word.n, word.p);
	event_init(&m->ev, (enum wire_kind)k->id, &m->arena);
	for (;;) {
		const char *p = word.p + word.n, *eq;

		if (!*p)
			return;
		p += strspn(p, "; ");
		word = (struct str){ p, strcspn(p, ";") };
		eq = memchr(word.p, '=', word.n);
		if (!word.n)
			return;
		assert_non_null(eq);
		set_field(m, (struct str){ word.p, (size_t)(eq - word.p) },
			  (struct str){ eq + 1, word.n - (size_t)(eq + 1 - word.p) });
	}
}

static inline void drop_event(struct made_event *m)
{
	arena_done(&m->arena);
}

/* All messages of a load, one a line: "line:col: [warning: ]text". */
struct said {
	char text[16384];
	size_t n;
	unsigned errors, warnings;
};

static inline void hear(void *arg, const struct rule_diag *d)
{
	struct said *s = arg;
	int k = snprintf(s->text + s->n, sizeof(s->text) - s->n, "%d:%d: %s%s\n", d->line, d->col,
			 d->warning ? "warning: " : "", d->text);

	if (k > 0 && (size_t)k < sizeof(s->text) - s->n)
		s->n += (size_t)k;
	s->errors += !d->warning;
	s->warnings += d->warning;
}

/* A compiled set, or NULL when the text has errors. */
static inline struct ruleset *load(const char *text, struct said *said)
{
	struct ruleset *rs = NULL;
	struct err err = { 0 };

	memset(said, 0, sizeof(*said));
	assert_int_equal(ruleset_new(&rs, hear, said), 0);
	if (ruleset_add_text(rs, "t.yaml", str_from(text), &err) < 0 ||
	    ruleset_compile(rs, &err) < 0) {
		assert_true(said->errors > 0);
		assert_true(err.text[0]);
		ruleset_free(rs);
		return NULL;
	}
	assert_int_equal(said->errors, 0);
	return rs;
}

/* Names of the rules that fire, joined by a comma. */
static inline const char *fires(const struct ruleset *rs, const char *spec)
{
	static char out[4096];
	struct rule_matches m;
	struct made_event e;
	size_t n = 0;

	make_event(&e, spec);
	ruleset_eval(rs, &e.ev, &m);
	out[0] = 0;
	for (size_t i = 0; i < m.n; i++)
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s", i ? "," : "", m.v[i]->name);
	drop_event(&e);
	return out;
}

#define RULE(name, cond) \
	"- rule: " name "\n  desc: d\n  output: o\n  priority: INFO\n  condition: " cond "\n"

#endif
