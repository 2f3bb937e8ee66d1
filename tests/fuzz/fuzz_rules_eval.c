// SPDX-License-Identifier: Apache-2.0
/* Conditions, a line each, and behind an empty line an event as JSON. All conditions are judged as one
 * set and apart; with look-ups and without: the results must agree. */
#include <stdlib.h>

#include "rules/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CONDITIONS_MAX 16

/* YAML changes or refuses other bytes; a condition must be the same text on both ways. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || (unsigned char)s.p[i] >= 0x7f)
			return false;
	return s.n && s.p[0] != ' ';
}

static struct ruleset *together(const struct str *cond, size_t n)
{
	struct ruleset *rs = NULL;
	struct buf b;

	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < n; i++)
		buf_printf(&b,
			   "- rule: %zu\n  desc: d\n  output: \"%%proc.comm %%20fd.name\"\n"
			   "  priority: INFO\n  condition: |-\n    %.*s\n",
			   i, (int)cond[i].n, cond[i].p);
	if (ruleset_new(&rs, NULL, NULL) == 0 &&
	    (ruleset_add_text(rs, "t", (struct str){ b.p, b.n }, NULL) < 0 ||
	     ruleset_compile(rs, NULL) < 0)) {
		ruleset_free(rs);
		rs = NULL;
	}
	buf_done(&b);
	return rs;
}

static void check(const struct ruleset *rs, const struct event *ev, const bool *apart, size_t n)
{
	struct rule_matches a, b;
	bool seen[CONDITIONS_MAX] = { false };
	struct buf out;

	ruleset_eval(rs, ev, &a);
	ruleset_eval_plain(rs, ev, &b);
	if (a.n != b.n || a.more != b.more || memcmp(a.v, b.v, a.n * sizeof(a.v[0])))
		abort();
	buf_init(&out, 1 << 16);
	for (size_t i = 0; i < a.n; i++) {
		seen[atoi(a.v[i]->name)] = true;
		rule_format_output(a.v[i], ev, &out);
	}
	buf_done(&out);
	for (size_t i = 0; i < n; i++)
		if (seen[i] != apart[i])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size }, cond[CONDITIONS_MAX];
	bool apart[CONDITIONS_MAX] = { false };
	struct ruleset *rs = NULL;
	struct arena arena;
	struct event ev;
	size_t n = 0;

	while (text.n && n < CONDITIONS_MAX) {
		const char *nl = memchr(text.p, '\n', text.n);
		size_t len = nl ? (size_t)(nl - text.p) : text.n;

		if (!len)
			break;
		cond[n] = (struct str){ text.p, len };
		n += is_plain(cond[n]);
		text = (struct str){ text.p + len + !!nl, text.n - len - !!nl };
	}
	arena_init(&arena, 4 << 20);
	/* Rules leave out events that rules made, filters do not. */
	if (n && event_from_json(&ev, &arena, text, NULL) == 0 && ev.kind != WIRE_RULE_ALERT &&
	    ev.kind != WIRE_ACTION && ev.kind != WIRE_APPROVAL)
		rs = together(cond, n);
	for (size_t i = 0; rs && i < n; i++) {
		struct rule_filter *f = NULL;

		if (rule_filter_new(&f, cond[i], NULL) < 0)
			abort(); /* it loaded as a rule */
		apart[i] = rule_filter_match(f, &ev);
		rule_filter_free(f);
	}
	if (rs)
		check(rs, &ev, apart, n);
	ruleset_free(rs);
	arena_done(&arena);
	return 0;
}
