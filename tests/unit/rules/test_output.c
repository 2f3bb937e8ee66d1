// SPDX-License-Identifier: Apache-2.0
/* Output templates. */
#include "rules_test.h"

static void prints(const char *output, const char *event, const char *want)
{
	struct rule_matches m;
	struct made_event e;
	struct ruleset *rs;
	struct said said;
	char text[1024];
	struct buf out;

	snprintf(
		text, sizeof(text),
		"- rule: r\n  desc: d\n  priority: INFO\n  condition: not kind = oom\n  output: '%s'\n",
		output);
	rs = load(text, &said);
	if (!rs)
		fail_msg("%s: %s", output, said.text);
	make_event(&e, event);
	ruleset_eval(rs, &e.ev, &m);
	assert_int_equal(m.n, 1);
	buf_init(&out, 0);
	assert_int_equal(rule_format_output(m.v[0], &e.ev, &out), 0);
	buf_addc(&out, 0);
	assert_string_equal(out.p, want);
	buf_done(&out);
	drop_event(&e);
	ruleset_free(rs);
}

#define EXEC                                                                               \
	"exec; proc.comm=bash; proc.exe=/usr/bin/bash; proc.args=bash|-c|id; proc.pid=7; " \
	"proc.ancestors=node:|init:; proc.memfd=true; proc.loginuid=-1; time=1700000000000000001"

static void fields_are_filled_in(void **state)
{
	(void)state;
	prints("plain text", EXEC, "plain text");
	prints("c=%proc.comm p=%proc.pid.", EXEC, "c=bash p=7.");
	prints("%proc.comm", EXEC, "bash");
	prints("%proc.args", EXEC, "bash -c id");
	prints("%proc.args[1]", EXEC, "-c");
	prints("%proc.aname[2]|%proc.aname[9]", EXEC, "init|<NA>");
	prints("%proc.memfd %proc.loginuid", EXEC, "true -1");
	prints("%proc.script", EXEC, "<NA>");
	prints("%container.image.repository", EXEC, "<NA>");
	prints("%time", EXEC, "2023-11-14T22:13:20.000000001Z");
	prints("100%% of %proc.comm", EXEC, "100% of bash");
	prints("100 % of it", EXEC, "100 % of it");
	prints("%6proc.comm|%2proc.comm|%4proc.script|", EXEC, "bash  |ba|<NA>|");
	prints("%toupper(proc.comm) %len(proc.args) %basename(proc.exe)", EXEC, "BASH 3 bash");
	prints("*%proc.comm", EXEC, "bash");
	prints("%net.dst.ip:%net.dst.port", "net.connect; net.dst.ip=2001:db8::1; net.dst.port=443",
	       "2001:db8::1:443");
	prints("%proc.comm", "session.start", "<NA>");
	prints("%evt.type %proc.name", EXEC, "execve bash");
	prints("%proc.cmdline", EXEC, "bash -c id");
}

/* A value must not begin a line of its own in a log, nor talk to a terminal. */
static void control_characters_are_shown(void **state)
{
	(void)state;
	prints("%proc.comm", "exec; proc.comm=a\nb\tc\x1b[31m\x7f", "a\\nb\\tc\\x1b[31m\\x7f");
	prints("%proc.comm",
	       "exec; proc.comm=\xc2\x9b"
	       "31m\xc3\xa9",
	       "\\x9b31m\xc3\xa9");
	prints("%proc.args", "exec; proc.args=a\nb|c", "a\\nb c");
}

/* The fields of `output` as JSON, of at most `max` bytes. */
static void gives(const char *output, const char *event, size_t max, const char *want)
{
	struct rule_matches m;
	struct made_event e;
	struct ruleset *rs;
	struct said said;
	char text[4096];
	struct buf out;

	snprintf(
		text, sizeof(text),
		"- rule: r\n  desc: d\n  priority: INFO\n  condition: not kind = oom\n  output: '%s'\n",
		output);
	rs = load(text, &said);
	if (!rs)
		fail_msg("%s: %s", output, said.text);
	make_event(&e, event);
	ruleset_eval(rs, &e.ev, &m);
	assert_int_equal(m.n, 1);
	buf_init(&out, max);
	assert_true(rule_format_fields(m.v[0], &e.ev, &out) >= 0);
	buf_addc(&out, 0);
	assert_string_equal(out.p, want);
	buf_done(&out);
	drop_event(&e);
	ruleset_free(rs);
}

static void fields_are_json_too(void **state)
{
	char longer[5000], want[5000];

	(void)state;
	gives("plain 100 % text", EXEC, 0, "{}");
	gives("%proc.comm %9proc.pid %proc.memfd %proc.loginuid", EXEC, 0,
	      "{\"proc.comm\":\"bash\",\"proc.pid\":7,\"proc.memfd\":true,\"proc.loginuid\":-1}");
	gives("%proc.comm %proc.comm", EXEC, 0, "{\"proc.comm\":\"bash\"}");
	gives("%proc.script %container.image.repository %k8s.ns.name", EXEC, 0,
	      "{\"proc.script\":null,\"container.image.repository\":null,\"k8s.ns.name\":null}");
	gives("%proc.aname[2] %proc.args %proc.args[1] %toupper(proc.comm) %len(proc.args)", EXEC,
	      0,
	      "{\"proc.aname[2]\":\"init\",\"proc.args\":[\"bash\",\"-c\",\"id\"],\"proc.args[1]\":\"-c\","
	      "\"toupper(proc.comm)\":\"BASH\",\"len(proc.args)\":3}");
	gives("%evt.type %proc.cmdline %time", EXEC, 0,
	      "{\"evt.type\":\"execve\",\"proc.cmdline\":\"bash -c id\",\"time\":1700000000000000001}");
	gives("%net.dst.ip %net.dst.port", "net.connect; net.dst.ip=2001:db8::1; net.dst.port=443",
	      0, "{\"net.dst.ip\":\"2001:db8::1\",\"net.dst.port\":443}");
	gives("%proc.comm", "exec; proc.comm=a\"\\b", 0, "{\"proc.comm\":\"a\\\"\\\\b\"}");
	/* What does not fit is left out, what does is there. */
	gives("%proc.comm %proc.exe %proc.pid", EXEC, 40,
	      "{\"proc.comm\":\"bash\",\"proc.pid\":7}");
	/* Long ones are cut, between characters. */
	snprintf(longer, sizeof(longer), "exec; proc.exe=%04095d\u00e9", 0);
	memcpy(longer + 15 + 4095, "\xc3\xa9", 3);
	snprintf(want, sizeof(want), "{\"proc.exe\":\"%04095d\"}", 0);
	gives("%proc.exe", longer, 0, want);
}

static void an_output_has_an_end(void **state)
{
	struct rule_matches m;
	struct made_event e;
	struct said said;
	struct ruleset *rs =
		load("- rule: r\n  desc: d\n  priority: INFO\n  condition: kind = exec\n"
		     "  output: '%4000proc.comm %4000proc.comm'\n",
		     &said);
	struct buf out;

	(void)state;
	assert_non_null(rs);
	make_event(&e, "exec; proc.comm=x");
	ruleset_eval(rs, &e.ev, &m);
	buf_init(&out, 5000);
	assert_int_equal(rule_format_output(m.v[0], &e.ev, &out), -EMSGSIZE);
	buf_done(&out);
	drop_event(&e);
	ruleset_free(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_filled_in),
		cmocka_unit_test(control_characters_are_shown),
		cmocka_unit_test(fields_are_json_too),
		cmocka_unit_test(an_output_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
