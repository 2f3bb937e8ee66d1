// SPDX-License-Identifier: Apache-2.0
/* The table of attacks is whole, and each row can be judged. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/rule.h"
#include "userspace/scenarios/scenario.h"

#define PUBLIC 60

static void test_all_there(void **state)
{
	size_t seen[PUBLIC + 1] = { 0 };

	(void)state;
	for (size_t i = 0; scenario_at(i); i++) {
		int n = atoi(scenario_at(i)->id + 1);

		assert_in_range(n, 1, PUBLIC);
		seen[n]++;
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(scenario_at(i)->id, scenario_at(k)->id);
	}
	for (int n = 1; n <= PUBLIC; n++)
		if (!seen[n])
			fail_msg("P%02d is missing", n);
}

/* T1611 or T1059.004, separated by single spaces. */
static bool is_technique(const char *p)
{
	for (;;) {
		int n = 0;

		if (sscanf(p, "T%*1[0-9]%*1[0-9]%*1[0-9]%*1[0-9]%n", &n) < 0 || n != 5)
			return false;
		p += n;
		if (*p == '.') {
			n = 0;
			sscanf(p, ".%*1[0-9]%*1[0-9]%*1[0-9]%n", &n);
			if (n != 4)
				return false;
			p += n;
		}
		if (!*p)
			return true;
		if (*p++ != ' ')
			return false;
	}
}

static void check_row(const struct scenario *s)
{
	struct err err = { 0 };

	if (!is_technique(s->attack))
		fail_msg("%s: '%s'", s->id, s->attack);
	assert_true(s->title && s->expect);
	if (!!(s->expect & SCENARIO_KILLED) != !!s->reason)
		fail_msg("%s: a kill has a reason", s->id);
	if (!!(s->expect & SCENARIO_DETECTED) != !!s->detect[0])
		fail_msg("%s: what is detected is in the record", s->id);
	for (size_t k = 0; k < SCENARIO_DETECT_MAX && s->detect[k]; k++) {
		struct rule_filter *f = NULL;

		if (rule_filter_new(&f, str_from(s->detect[k]), &err) < 0)
			fail_msg("%s: %s: %s", s->id, s->detect[k], err_text(&err));
		rule_filter_free(f);
	}
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; scenario_at(i); i++) {
		const struct scenario *s = scenario_at(i), other = scenario_under(s, "gvisor");

		check_row(s);
		check_row(&other);
		if (s->expect & SCENARIO_BLOCKED && !s->steps)
			fail_msg("%s: what is blocked was tried", s->id);
	}
}

/* Each row of a backend is of a scenario, says why it is there, and changes nothing but the verdict. */
static void test_rows_of_a_backend(void **state)
{
	size_t found = 0, rows = 0;

	(void)state;
	for (size_t i = 0; scenario_at(i); i++) {
		const struct scenario *s = scenario_at(i), other = scenario_under(s, "gvisor"),
				      same = scenario_under(s, "ns");

		assert_memory_equal(s, &same, sizeof(same));
		for (const struct scenario *v = scenarios_gvisor; v->id; v++) {
			if (strcmp(v->id, s->id) != 0)
				continue;
			found++;
			if (!v->remark)
				fail_msg("%s: why?", v->id);
			assert_int_equal(other.expect, v->expect);
			assert_string_equal(other.title, s->title);
			assert_memory_equal(other.words, s->words, sizeof(s->words));
			assert_memory_equal(other.options, s->options, sizeof(s->options));
		}
	}
	for (const struct scenario *v = scenarios_gvisor; v->id; v++)
		rows++;
	assert_int_equal(found, rows);
}

static const struct rule_info *find_rule(const struct ruleset *rs, const char *name)
{
	for (size_t i = 0; i < ruleset_count(rs); i++)
		if (!strcmp(ruleset_get(rs, i)->name, name))
			return ruleset_get(rs, i);
	return NULL;
}

static void check_rules(const struct ruleset *rs, const struct scenario *s)
{
	for (size_t k = 0; k < SCENARIO_RULES_MAX && s->rules[k]; k++)
		if (!find_rule(rs, s->rules[k]))
			fail_msg("%s: no pack has the rule '%s'", s->id, s->rules[k]);
	if (s->killer &&
	    (!find_rule(rs, s->killer) || find_rule(rs, s->killer)->action != RULE_ACT_KILL))
		fail_msg("%s: '%s' is no rule that kills", s->id, s->killer);
}

static void test_rules_exist_and_all_are_tagged(void **state)
{
	struct ruleset *rs = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	ruleset_allow_state(rs);
	for (size_t i = 0; i < rule_packs_n; i++)
		assert_int_equal(
			strcmp(rule_packs[i].name, RULE_PACK_MACROS)
				? ruleset_add_text(rs, rule_packs[i].name, rule_packs[i].text, &err)
				: ruleset_add_library(rs, rule_packs[i].name, rule_packs[i].text,
						      &err),
			0);
	assert_int_equal(ruleset_compile(rs, &err), 0);
	for (size_t i = 0; scenario_at(i); i++) {
		const struct scenario other = scenario_under(scenario_at(i), "gvisor");

		check_rules(rs, scenario_at(i));
		check_rules(rs, &other);
	}
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);

		if (!r->attack_n)
			fail_msg("rule '%s' names no technique", r->name);
		for (size_t k = 0; k < r->attack_n; k++) {
			char id[16];

			snprintf(id, sizeof(id), "%.*s", (int)r->attack[k].n, r->attack[k].p);
			if (!is_technique(id))
				fail_msg("rule '%s': '%s' is no technique's id", r->name, id);
		}
	}
	ruleset_free(rs);
}

static void test_ids(void **state)
{
	const struct scenario s = { .id = "P16b" };

	(void)state;
	assert_true(scenario_is(&s, STR("P16b")));
	assert_true(scenario_is(&s, STR("P16")));
	assert_false(scenario_is(&s, STR("P1")));
	assert_false(scenario_is(&s, STR("P17")));
	assert_false(scenario_is(&s, STR("")));
}

static void test_payload_is_a_static_program(void **state)
{
	struct str p = scenario_payload();
	Elf64_Ehdr h;

	(void)state;
	assert_true(p.n > sizeof(h));
	memcpy(&h, p.p, sizeof(h));
	assert_memory_equal(h.e_ident, ELFMAG, SELFMAG);
	for (int i = 0; i < h.e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, p.p + h.e_phoff + (size_t)i * h.e_phentsize, sizeof(ph));
		assert_int_not_equal(ph.p_type, PT_INTERP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_there),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_rows_of_a_backend),
		cmocka_unit_test(test_rules_exist_and_all_are_tagged),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_payload_is_a_static_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
