// SPDX-License-Identifier: Apache-2.0
/* Each key of a rule that `override` can change: what the rule is like then, and that it was not before. */
#include "rules_test.h"

#include "rules/load.h"
#include "rules/state.h"

#define COUNTS "  count: 2\n  window: 1s\n  distinct: proc.comm\n  by: proc.uid\n"
#define SUMS   "  count: 2K\n  window: 1s\n  sum: proc.pid\n"
#define STEPS  "  sequence: [kind = exit]\n  within: 1s\n"

static const struct row {
	const char *key, *before, *value; /* of the rule as it was, of the override */
	bool append;
	const char *says; /* in the text of the rule, and only then */
} rows[] = {
	{ "condition", "", "and proc.pid = 1", true, "cond=kind = exec and proc.pid = 1;" },
	{ "condition", "", "kind = exit", false, "cond=kind = exit;" },
	{ "output", "", "more", true, "out=o more;" },
	{ "output", "", "p", false, "out=p;" },
	{ "desc", "", "more", true, "desc=d more;" },
	{ "desc", "", "e", false, "desc=e;" },
	{ "tags", "  tags: [a]\n", "[b]", true, "tags=a,b,;" },
	{ "tags", "  tags: [a]\n", "[b]", false, "tags=b,;" },
	{ "attack", "  attack: [T1000]\n", "[T1001]", true, "attack=T1000,T1001,;" },
	{ "attack", "  attack: [T1000]\n", "[T1001]", false, "attack=T1001,;" },
	{ "exceptions", "  exceptions: [{name: a, fields: proc.comm, values: [x]}]\n",
	  "[{name: a, values: [y]}]", true, "exceptions=a:2,;" },
	{ "exceptions", "  exceptions: [{name: a, fields: proc.comm, values: [x]}]\n",
	  "[{name: b, fields: proc.comm, values: [y]}]", false, "exceptions=b:1,;" },
	{ "priority", "", "ERROR", false, "priority=error;" },
	{ "enabled", "", "false", false, "enabled=0;" },
	{ "warn_evttypes", "", "false", false, "any_kind=1;" },
	{ "skip-if-unknown-filter", "", "true", false, "skip=1;" },
	{ "capture", "  capture: false\n", "true", false, "" },
	{ "capture_duration", "  capture_duration: 1\n", "2", false, "" },
	{ "action", "  action: freeze\n", "kill", false, "action=kill;" },
	{ "scope", "  action: kill\n", "process", false, "scope=1;" },
	{ "throttle", "  throttle: 1s\n", "2s", false, "throttle=2000000000;" },
	{ "deny_fallback", "", "kill", false, "fallback=1;" },
	{ "dry_run", "", "true", false, "dry=1;" },
	{ "for", "  for: {tenant: a}\n", "{tenant: [b, c]}", false, "tenant=b,c,;" },
	{ "count", COUNTS, "3", false, "count=3;" },
	{ "window", COUNTS, "2s", false, "time=2000000000;" },
	{ "distinct", COUNTS, "proc.exe", false, "of=proc.exe;" },
	{ "by", COUNTS, "[proc.gid, proc.exe]", false, "by=proc.gid,proc.exe,;" },
	{ "sum", SUMS, "proc.ppid", false, "of=proc.ppid;" },
	{ "sequence", STEPS, "[kind = exit, kind = fork]", false, "steps=2;" },
	{ "within", STEPS, "2s", false, "time=2000000000;" },
};

static void add_strs(struct buf *b, const char *key, const struct str *v, size_t n)
{
	buf_printf(b, "%s=", key);
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%.*s,", (int)v[i].n, v[i].p);
	buf_addc(b, ';');
}

static void tell(const struct rule *r, struct buf *b)
{
	const struct rule_info *k = &r->info;

	buf_reset(b);
	buf_printf(b, "cond=%s;out=%s;desc=%s;priority=%s;action=%s;scope=%d;", r->cond.s.p,
		   r->out.s.p, k->desc, rule_priority_name(k->priority),
		   rule_action_name(k->action), k->scope);
	buf_printf(b, "throttle=%llu;fallback=%d;dry=%d;enabled=%d;any_kind=%d;skip=%d;exceptions=",
		   (unsigned long long)k->throttle_ns, k->deny_fallback, k->dry_run, r->enabled,
		   r->any_kind, r->skip_unknown);
	for (size_t i = 0; i < r->ex_n; i++)
		buf_printf(b, "%s:%zu,", r->ex[i].name.p, r->ex[i].values_n);
	buf_addc(b, ';');
	add_strs(b, "tags", k->tags, k->tags_n);
	add_strs(b, "attack", k->attack, k->attack_n);
	add_strs(b, "tenant", k->only[RULE_FOR_TENANT].v, k->only[RULE_FOR_TENANT].n);
	if (r->st) {
		buf_printf(b, "count=%llu;time=%llu;steps=%zu;of=%s;by=",
			   (unsigned long long)r->st->count, (unsigned long long)r->st->window_ns,
			   r->st->steps_n, r->st->of ? r->st->of->row->name : "");
		for (size_t i = 0; i < r->st->by_n; i++)
			buf_printf(b, "%s,", r->st->by[i]->row->name);
		buf_addc(b, ';');
	}
	buf_addc(b, 0);
	assert_false(b->failed);
}

static void rule_of(const char *text, struct buf *ret)
{
	struct ruleset *rs = NULL;
	struct said said = { .n = 0 };
	struct err err = { 0 };

	assert_int_equal(ruleset_new(&rs, hear, &said), 0);
	ruleset_allow_state(rs);
	if (ruleset_add_text(rs, "t", str_from(text), &err) < 0 || ruleset_compile(rs, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	assert_int_equal(ruleset_count(rs), 1);
	tell(rs->rule[0], ret);
	ruleset_free(rs);
}

static void each_key_is_changed(void **state)
{
	auto_buf struct buf before = { 0 }, after = { 0 };
	char text[2048];

	(void)state;
	buf_init(&before, 65536);
	buf_init(&after, 65536);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *w = &rows[i];

		snprintf(text, sizeof(text), RULE("r", "kind = exec") "%s", w->before);
		rule_of(text, &before);
		snprintf(text, sizeof(text),
			 RULE("r", "kind = exec") "%s- rule: r\n  %s: %s\n  override: {%s: %s}\n",
			 w->before, w->key, w->value, w->key, w->append ? "append" : "replace");
		rule_of(text, &after);
		if (!strstr(after.p, w->says) || (*w->says && strstr(before.p, w->says)))
			fail_msg("'%s' (%s): '%s' should come\nbefore %s\nafter  %s", w->key,
				 w->append ? "append" : "replace", w->says, before.p, after.p);
		if (!*w->says) /* Falco's, without meaning here */
			assert_string_equal(before.p, after.p);
	}
}

static void none_is_left_out(void **state)
{
	unsigned missing = 0;

	(void)state;
	for (size_t i = 0; load_rule_key(i); i++) {
		for (int append = 0; append < 2; append++) {
			bool found = !load_rule_key_takes(i, append);

			for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
				found |= !strcmp(rows[k].key, load_rule_key(i)) &&
					 rows[k].append == append;
			if (!found) {
				print_error("no row that overrides '%s' by %s\n", load_rule_key(i),
					    append ? "append" : "replace");
				missing++;
			}
		}
	}
	assert_int_equal(missing, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_is_changed),
		cmocka_unit_test(none_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
