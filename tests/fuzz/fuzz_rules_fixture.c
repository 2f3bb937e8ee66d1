// SPDX-License-Identifier: Apache-2.0
/* A file for `rules test` made of anything, against rules that remember: it says what differs and where, or why it is
 * no such file. What rules say of its events is text and JSON within its bounds. */
#include <stdlib.h>
#include <string.h>

#include "rules/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REPEATS_MAX 2 /* each may stand for 100,000 events */

static const char RULES[] =
	"- rule: shell\n  desc: d\n  priority: INFO\n  condition: kind = exec and proc.comm in (sh, bash)\n"
	"  output: '%proc.args %20proc.exe %proc.args[1] %fd.sport %evt.time %k8s.ns.name'\n"
	"- rule: many\n  desc: d\n  priority: INFO\n  condition: kind = exec\n  output: '%file.path'\n"
	"  count: 3\n  window: 10s\n  by: proc.exe\n"
	"- rule: steps\n  desc: d\n  priority: INFO\n  output: '%net.dst.ip'\n"
	"  sequence: [kind = file.open]\n  condition: kind = net.connect\n  within: 5s\n";

static struct ruleset *rules(void)
{
	static struct ruleset *rs;

	if (rs)
		return rs;
	if (ruleset_new(&rs, NULL, NULL) < 0)
		abort();
	ruleset_allow_state(rs);
	if (ruleset_add_text(rs, "r", (struct str){ RULES, sizeof(RULES) - 1 }, NULL) < 0 ||
	    ruleset_compile(rs, NULL) < 0)
		abort();
	return rs;
}

static void hear(void *arg, const struct rule_diag *d)
{
	unsigned *said = arg;

	if (d->line < 0 || !d->text[0])
		abort();
	(*said)++;
}

/* The fields of an output are one JSON object, whatever the event holds. */
static void format(struct str line)
{
	struct rule_matches m;
	struct arena arena;
	struct event ev;
	struct buf out;

	arena_init(&arena, 4 << 20);
	buf_init(&out, 1 << 16);
	if (event_from_json(&ev, &arena, line, NULL) == 0) {
		ruleset_eval(rules(), &ev, &m);
		for (size_t i = 0; i < m.n; i++) {
			buf_reset(&out);
			if (rule_format_fields(m.v[i], &ev, &out) >= 0 && !out.failed &&
			    (out.n < 2 || out.p[0] != '{' || out.p[out.n - 1] != '}'))
				abort();
			buf_reset(&out);
			rule_format_output(m.v[i], &ev, &out);
		}
	}
	buf_done(&out);
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	unsigned said = 0, repeats = 0;
	struct err err = { 0 };
	size_t events = 0;
	int r;

	for (size_t i = 0; i + 7 < size; i++)
		repeats += !memcmp(data + i, "repeat:", 7);
	if (repeats > REPEATS_MAX || size > 8192)
		return 0;
	r = ruleset_test(rules(), "fuzz", text, hear, &said, &events, &err);
	if (r < 0 ? !err.text[0] : (size_t)r > events || (r > 0) != (said > 0))
		abort();
	for (size_t at = 0; at < size;) {
		const char *nl = memchr(text.p + at, '\n', size - at);
		size_t n = nl ? (size_t)(nl - text.p) - at : size - at;

		format((struct str){ text.p + at, n });
		at += n + 1;
	}
	return 0;
}
